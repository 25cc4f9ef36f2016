// A yard, put together once: keeper, event loop, GPUs, socket, journal, machine, scheduler, and
// what is done when one of them gives out. `trainyard run` and the library hand it their tasks and
// keep what is theirs: how a job is read, what people see.
//
//   YardRun yard(tasks, std::move(parts), options);
//   yard.listen();                        // its socket, by which its tasks and people reach it
//   yard.begin(journal...);               // or go_on(): what is to be run is in the journal
//   const Ending ending = yard.run();     // until all has ended, or the run is given up
//
// It does not lock the run directory, and forks nothing: both have been done when it is made.
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "hardware/this_machine.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "link/control_server.h"
#include "link/frame_server.h"
#include "model/gpu_limits.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "process/code_asker.h"
#include "process/delegated_group.h"
#include "process/keeper.h"
#include "process/promise_board.h"
#include "run/allocated_machines.h"
#include "run/code_watch.h"
#include "run/fleet.h"
#include "run/local_machine.h"
#include "run/remote_machines.h"
#include "run/shared_ledger.h"
#include "run/submissions.h"
#include "run/tasks.h"
#include "schedule/scheduler.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "wire/control.h"

namespace trainyard::run {

/// What must be forked before there are databases, sockets and threads.
struct YardParts {
  /// Where it tells the other yards on the machine what it promises, and its guard and keeper hold
  /// the descriptor of: it goes after them. Nothing: it is alone, as far as it knows.
  std::optional<process::PromiseBoard> promises = std::nullopt;
  process::Keeper keeper;
  hardware::ThisMachine machine;
  /// Asks git what code attempts run. Nothing: the code is not known.
  std::optional<process::CodeAsker> codes = std::nullopt;
  /// Where else tasks run: reached, and ready for this run. Nothing: nowhere.
  std::unique_ptr<RemoteMachines> remotes = nullptr;
  /// Those of them that a batch system has given. Nothing: none.
  std::unique_ptr<AllocatedMachines> allocated = nullptr;
};

struct YardRunOptions {
  std::string directory;  ///< Of the run; absolute, there, and locked.
  std::string program;    ///< Who answers at the socket: "trainyard 0.1.0".
  model::Policy policy;   ///< For the machine of the parts.
  Duration sample_every{1000};
  Bytes log_max;                ///< What a log of a task may take of the disk; 0: any amount.
  model::GpuLimits gpu_limits;  ///< Of the runs of this user together.
  bool records_all = false;     ///< The journal keeps all that the scheduler hears.
  bool runs_here = true;        ///< The yard's own machine is one of the run.
  /// INT and TERM end the run, once gently and twice at once. Changes process-wide state: for
  /// programs, not for libraries.
  bool ends_on_signals = false;
  /// It goes on when its user has logged out, and what was the session's alone is gone: its socket
  /// is not made there.
  bool outlives_session = false;
  /// A control group of our own is opened where a task has a hard limit: whoever is in ours is
  /// moved. For programs, not for libraries, whose limits are kept by looking each second.
  bool opens_control_group = false;
  /// Ends the run gently, from whichever thread.
  std::stop_token stop;
  /// A pipe or a socket: the run lasts until nobody holds its other end. Until then it stays when
  /// all has ended, and what has not ended then is ended as by INT.
  std::optional<int> lasts_as_long_as;
};

/// What a dead execution of a run has left: its processes end, and its socket goes away. Before
/// another one begins, with the directory locked. What the agents of these keys have goes on.
Result<void> clear_up(const std::string& run_directory,
                      const std::vector<std::string>& agents = {});

/// How an execution has ended.
struct Ending {
  bool interrupted = false;
  int signal = 0;  ///< By which it was interrupted first: INT or TERM; 0: by something else.
  bool keeper_gone = false;  ///< No more tasks could start, and not all was done.
  /// The machine could start no task for too long, and why; empty: it could.
  std::string cannot_start;
  std::optional<Error> gave_up;  ///< The journal could not be written for too long.
  /// The machines on which files are left that tasks have written; empty: none.
  std::string files_left;
  /// It could not be written at the very end; all else is as the journal says.
  std::optional<Error> not_closed;
};

class YardRun {
 public:
  /// `tasks` must outlive it.
  YardRun(Tasks& tasks, YardParts parts, YardRunOptions options);
  YardRun(YardRun&&) = delete;
  YardRun& operator=(YardRun&&) = delete;
  ~YardRun();

  /// An error says why nothing can reach it: tasks of two phases cannot run then, and neither do
  /// kill and submit.
  Result<void> listen();

  /// What is known of this execution before it begins: processes, host, socket and GPUs. Whoever
  /// runs it adds the rest.
  [[nodiscard]] journal::Execution execution() const;

  /// A run begins: with its first batch, in a journal that is made anew.
  Result<void> begin(const std::string& job_name, const journal::Batch& first,
                     const journal::Execution& execution);
  /// An old run goes on, with all its batches.
  struct Resumed {
    std::vector<std::shared_ptr<const model::Plan>> plans;
    int finished = 0;
    journal::Journal::NotKept not_kept;
    std::vector<std::string> changes;
  };
  Result<Resumed> go_on(const std::vector<journal::Batch>& batches,
                        const journal::Execution& execution,
                        const journal::JournalOptions& options);

  /// These tasks begin anew when the run goes on: before go_on(). An error names one that it does
  /// not know, or that can never start with what it is to have.
  Result<void> retry(const std::vector<wire::Retry>& tasks);

  /// What its user calls the run by on this host, after one of these. Nothing where it could be
  /// given no number, which has been noted.
  [[nodiscard]] std::optional<std::uint32_t> number() const { return number_; }

  /// After begin() or go_on(), once: until all has ended. What is left of the tasks then is ended,
  /// and the journal says how it was.
  Ending run();

  // For callbacks of run().

  void interrupt();
  /// As `trainyard kill` does. `reply` is told whether the task was running or waiting. False, and
  /// no reply, where nothing runs yet.
  bool kill(model::TaskIndex task, LocalMachine::Answered reply);

 private:
  void take_number(bool is_new);
  bool open_group();
  void make_machine();
  void make_fleet();
  void look_after_allocations(const schedule::Scheduler& scheduler);
  void end_with_machines();
  void make_ledger();
  model::Launch launch(model::AttemptKey key, const model::Grant& grant);
  void serve(const wire::ControlRequest& request, link::Reply reply);
  struct NamedTask {
    const std::string& group;
    const std::string& id;
  };
  /// Names the task that can never start with what it is to have; empty: it can.
  [[nodiscard]] std::string why_never(const wire::Retry& retry,
                                      const model::RetryAsked& asked) const;
  /// Asks the scheduler about a task; the reply says what it answers.
  void ask(NamedTask named, LocalMachine::Asked asked, link::Reply reply);
  void watch_signals();
  void watch_other_end(int descriptor);
  void let_go();
  void tell_unwritten(const std::optional<Error>& why);
  void see(const model::Turn& turn, bool all_ended);
  std::string bring_files_back();
  void take_apart();
  void end_leftovers();

  Tasks& tasks_;
  YardRunOptions options_;
  std::optional<process::PromiseBoard> promises_;  ///< Goes after the keeper.
  std::unique_ptr<process::Keeper> keeper_;
  hardware::CapacityReading capacity_;
  std::unique_ptr<RemoteMachines> remotes_;       ///< Nothing: the run has but this machine.
  std::unique_ptr<AllocatedMachines> allocated_;  ///< After those, which it must not outlive.
  std::optional<sys::EventLoop> own_loop_;        ///< Where there are none, who bring one.
  sys::EventLoop& loop_;
  std::optional<hardware::GpuWatch> gpus_;  ///< After the loop, which it must not outlive.
  std::optional<CodeWatch> codes_;          ///< As that.
  std::unique_ptr<link::FrameServer> server_;
  std::optional<link::ControlServer> control_;
  std::unique_ptr<journal::Journal> journal_;
  std::optional<LimitsWatch> limits_;   ///< As the next.
  std::optional<SharedLedger> ledger_;  ///< Before the machine, which it must outlive.
  std::unique_ptr<LocalMachine> machine_;
  std::unique_ptr<Fleet> fleet_;  ///< That and the remote ones.
  std::unique_ptr<Submissions> submissions_;
  process::DelegatedGroup group_;     ///< For tasks that have limits of their own.
  std::vector<std::string> regions_;  ///< Of GPU memory, to which it can keep them.
  std::vector<model::BatchAdded> batches_;
  /// Asked for before the run goes on, and what people call the tasks.
  std::vector<std::pair<model::RetryAsked, std::string>> retries_;
  std::optional<sys::EventLoop::TimerId> machines_end_;
  Instant at_;  ///< The last thing that happened.
  std::optional<std::uint32_t> number_;
  std::int64_t started_unix_ms_ = 0;  ///< This execution, as the journal has it.
  bool interrupted_ = false;
  std::string cannot_start_;       ///< As Ending has it.
  bool ended_unfinished_ = false;  ///< A task, after the keeper was gone.
  /// A part of the run's disk, for the ends of tasks when the disk is full.
  sys::Descriptor reserved_space_;
  int signal_ = 0;              ///< That has interrupted it; 0: none.
  bool brings_files_ = false;   ///< All is over but for that.
  bool all_ended_ = false;      ///< After the last turn; what is submitted meanwhile has not begun.
  std::optional<int> held_by_;  ///< Somebody has the other end of it, and may submit more.
};

}  // namespace trainyard::run
