// A yard, put together once: keeper, event loop, GPUs, socket, journal, machine, scheduler, and the
// reactions when one of them fails. `trainyard run` and the library pass it their tasks and keep
// their own part: reading a job, and the output for users.
//
//   YardRun yard(tasks, std::move(parts), options);
//   yard.listen();                        // its socket, by which its tasks and people reach it
//   yard.begin(journal...);               // or go_on(): what is to be run is in the journal
//   const Ending ending = yard.run();     // until all has ended, or the run is given up
//
// It does not lock the run directory, and forks nothing: both have been done before it is made.
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
#include "process/keeper.h"
#include "process/memory_group.h"
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

/// The parts that must be forked before there are databases, sockets and threads.
struct YardParts {
  /// The file with this yard's reservations for the other yards on the machine, whose descriptor
  /// its guard and keeper hold: it is destroyed after them. Nothing: other yards are ignored.
  std::optional<process::PromiseBoard> promises = std::nullopt;
  process::Keeper keeper;
  hardware::ThisMachine machine;
  /// Asks git what code attempts run. Nothing: the code is not known.
  std::optional<process::CodeAsker> codes = std::nullopt;
  /// The other machines of the run: reached, and ready for this run. Nothing: none.
  std::unique_ptr<RemoteMachines> remotes = nullptr;
  /// Those of them that come from a batch system. Nothing: none.
  std::unique_ptr<AllocatedMachines> allocated = nullptr;
};

struct YardRunOptions {
  std::string directory;  ///< Of the run; absolute, existing, and locked.
  std::string program;    ///< The name given at the socket: "trainyard 0.1.0".
  model::Policy policy;   ///< For the machine of the parts.
  Duration sample_every{1000};
  Bytes log_max;                ///< Maximum size of a task's log on disk; 0: any.
  model::GpuLimits gpu_limits;  ///< Of all runs of this user together.
  bool records_all = false;     ///< The journal keeps all events of the scheduler.
  bool runs_here = true;        ///< The yard's own machine is one of the run.
  /// INT and TERM end the run, once gently and twice at once. Changes process-wide state: for
  /// programs, not for libraries.
  bool ends_on_signals = false;
  /// It continues after its user has logged out, when files of the session are gone: its socket is
  /// not made there.
  bool outlives_session = false;
  /// A control group of our own is opened if a task has a hard limit: processes in ours are moved.
  /// For programs, not for libraries, whose limits are enforced by a look each second.
  bool opens_control_group = false;
  /// Ends the run gently, from whichever thread.
  std::stop_token stop;
  /// A pipe or a socket: the run lasts until nobody holds its other end. Until then it stays when
  /// all has ended, and tasks that have not ended then are killed at once, as by INT twice.
  std::optional<int> lasts_as_long_as;
};

/// Removes the remains of a dead execution of a run: its processes and its socket. Call before
/// another one begins, with the directory locked. Attempts of the agents with these keys go on.
/// `tell`, which may be empty, receives a line for users after a wait of more than a second for the
/// keeper or the guard.
Result<void> clear_up(const std::string& run_directory, const std::vector<std::string>& agents = {},
                      const std::function<void(const std::string&)>& tell = {});

/// The end of an execution.
struct Ending {
  bool interrupted = false;
  int signal = 0;            ///< The signal of its first interrupt: INT or TERM; 0: another cause.
  bool keeper_gone = false;  ///< No more tasks could start, and not all was done.
  /// Why the machine could start no task for too long; empty: it could.
  std::string cannot_start;
  std::optional<Error> gave_up;  ///< The journal could not be written for too long.
  /// The machines on which files of tasks are left; empty: none.
  std::string files_left;
  /// The journal could not be written at the very end; all else is as it says.
  std::optional<Error> not_closed;
};

class YardRun {
 public:
  /// `tasks` must outlive it.
  YardRun(Tasks& tasks, YardParts parts, YardRunOptions options);
  YardRun(YardRun&&) = delete;
  YardRun& operator=(YardRun&&) = delete;
  ~YardRun();

  /// An error says why nothing can reach it: two-phase tasks cannot run then, and neither do kill
  /// and submit.
  Result<void> listen();

  /// The facts about this execution before it begins: processes, host, socket and GPUs. The caller
  /// adds the rest.
  [[nodiscard]] journal::Execution execution() const;

  /// Begins a run with its first batch, in a new journal.
  Result<void> begin(const std::string& job_name, const journal::Batch& first,
                     const journal::Execution& execution);
  /// The result of resuming an old run, with all its batches.
  struct Resumed {
    std::vector<std::shared_ptr<const model::Plan>> plans;
    int finished = 0;
    journal::Journal::NotKept not_kept;
    std::vector<std::string> changes;
  };
  Result<Resumed> go_on(const std::vector<journal::Batch>& batches,
                        const journal::Execution& execution,
                        const journal::JournalOptions& options);

  /// These tasks start over when the run is resumed: before go_on(). An error names one that it
  /// does not know, or that can never start with its new request.
  Result<void> retry(const std::vector<wire::Retry>& tasks);

  /// The number of the run on this host, after one of these. Nothing if it could be given no
  /// number, which has been noted.
  [[nodiscard]] std::optional<std::uint32_t> number() const { return number_; }

  /// Call once, after begin() or go_on(): runs until all has ended. Remaining processes of the
  /// tasks are ended then, and the journal has the result.
  Ending run();

  /// INT and TERM end this process again, as by default. Until then they have no effect after
  /// run(), so that the outcome can be reported whole. Call after run(), if `ends_on_signals`.
  void let_go_of_signals();

  // For callbacks of run().

  void interrupt();
  /// Like `trainyard kill`. `reply` is called with whether the task was running or waiting. False,
  /// and no reply, if nothing runs yet.
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
  /// Names the task that can never start with its new request; empty: it can.
  [[nodiscard]] std::string why_never(const wire::Retry& retry,
                                      const model::RetryAsked& asked) const;
  /// Sends the scheduler a request about a task; `reply` gets its answer.
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
  std::optional<sys::EventLoop> own_loop_;        ///< Set without remotes_, which has a loop.
  sys::EventLoop& loop_;
  std::optional<hardware::GpuWatch> gpus_;  ///< After the loop, which it must not outlive.
  std::optional<CodeWatch> codes_;          ///< Like gpus_.
  std::unique_ptr<link::FrameServer> server_;
  std::optional<link::ControlServer> control_;
  std::unique_ptr<journal::Journal> journal_;
  std::optional<LimitsWatch> limits_;   ///< Like ledger_.
  std::optional<SharedLedger> ledger_;  ///< Before the machine, which it must outlive.
  std::unique_ptr<LocalMachine> machine_;
  std::unique_ptr<Fleet> fleet_;  ///< machine_ and the remote ones.
  std::unique_ptr<Submissions> submissions_;
  process::DelegatedGroup group_;     ///< For tasks that have limits of their own.
  std::vector<std::string> regions_;  ///< Of GPU memory that it can limit.
  std::vector<model::BatchAdded> batches_;
  /// Requests from before the run was resumed, and the names of the tasks.
  std::vector<std::pair<model::RetryAsked, std::string>> retries_;
  std::optional<sys::EventLoop::TimerId> machines_end_;
  Instant at_;  ///< The last thing that happened.
  std::optional<std::uint32_t> number_;
  std::string numbering_;             ///< See model::Promises.
  std::int64_t started_unix_ms_ = 0;  ///< Of this execution, as in the journal.
  bool interrupted_ = false;
  std::string cannot_start_;       ///< See Ending.
  bool ended_unfinished_ = false;  ///< A task ended after the keeper was gone.
  /// A part of the run's disk, for the ends of tasks when the disk is full.
  sys::Descriptor reserved_space_;
  int signal_ = 0;              ///< The one that has interrupted it; 0: none.
  bool brings_files_ = false;   ///< All is over but for that.
  bool all_ended_ = false;      ///< After the last turn; submissions since then have not begun.
  std::optional<int> held_by_;  ///< Another process has its other end, and may submit more.
};

}  // namespace trainyard::run
