// The machine we are on, behind the Machine port: the keeper's processes, a look at /proc every
// second, and requests of users from outside.
//
// Belongs to the thread of its loop. `loop` and `keeper` must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "hardware/gpu_driver.h"
#include "hardware/gpu_watch.h"
#include "hardware/mps.h"
#include "link/frame_server.h"
#include "link/task_server.h"
#include "model/code.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"
#include "process/process_table.h"
#include "run/code_watch.h"
#include "run/fresh_looks.h"
#include "run/gpu_owners.h"
#include "run/limits_watch.h"
#include "run/log_bounds.h"
#include "run/machine.h"
#include "run/printed_metrics.h"
#include "run/shared_ledger.h"
#include "sys/event_loop.h"
#include "wire/task.h"

namespace trainyard::run {

class LocalMachine final : public Machine {
 public:
  using Launcher = std::move_only_function<model::Launch(model::AttemptKey, const model::Grant&)>;
  /// Called with the outcome once the decision is committed; for a kill, once the task has ended,
  /// whether it was running or waiting.
  using Answered = std::move_only_function<void(bool done)>;

  /// Returns the pattern that finds metrics in the output of a task; may be empty.
  using PatternOf = std::move_only_function<LinePattern(model::TaskIndex)>;
  /// Receives messages of a task to the program.
  using OnMessage = std::move_only_function<void(model::AttemptKey, const wire::Message&)>;

  struct Options {
    Instant begins;  ///< The time of the run at which it starts, or resumes.
    Duration sample_every{1000};
    /// The event with which this machine joins the run. Empty if it is no machine of the run and
    /// starts none of its tasks.
    std::optional<model::MachineJoined> joins;
    Launcher launch;
    PatternOf pattern_of = nullptr;  ///< May be missing.
    /// Receives messages of tasks; must outlive the machine. May be missing when no task has two
    /// phases.
    link::FrameServer* frames = nullptr;
    OnMessage on_message = nullptr;  ///< May be missing.
    /// Receives notes for the user about the started processes, a line each. May be missing.
    std::move_only_function<void(const std::string&)> on_note = nullptr;
    /// The control group in which attempts with a memory limit get a group of their own.
    std::string delegated_group;
    /// The regions of GPU memory in which they can be limited; empty: none.
    std::vector<std::string> regions;
    /// Whether a batch is pending. May be missing.
    std::move_only_function<bool() const> more_to_come = nullptr;
    /// Samples the GPUs. Not owned, must outlive the machine; null without GPUs.
    hardware::GpuWatch* gpus = nullptr;
    std::string run_directory;   ///< On the disk that tasks request space of.
    bool looks_at_disk = false;  ///< Also before a task requests some.
    Bytes log_max;               ///< Maximum size of a task's log on disk; 0: any.
    /// Ledger shared with the other yards on this machine. Not owned; null: other yards are
    /// ignored.
    SharedLedger* ledger = nullptr;
    /// Time between TERM and KILL, as in the scheduler's policy.
    Duration stop_grace = model::Policy().stop_grace;
    /// The time that a GPU must have answered before tasks start on it, for the notes.
    Duration gpu_steady_after = model::Policy().gpu_steady_after;
    /// The limits on GPUs; must outlive this. May be missing: no limit.
    LimitsWatch* limits = nullptr;
    /// The code that attempts run; must outlive this, or be destroyed before it. May be missing:
    /// unknown.
    CodeWatch* codes = nullptr;
    /// The file in which the keeper notes ends, and the execution; the clock is the machine's. An
    /// empty path: none.
    process::EndNotes notes = {};
  };

  LocalMachine(sys::EventLoop& loop, process::Keeper& keeper, Options options);

  void carry_out(const model::Command& command) override;
  std::optional<model::ClaimRefused> claim(const Claim& claim) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override;

  [[nodiscard]] bool more_to_come() const override {
    return options_.more_to_come && options_.more_to_come();
  }

  /// Adds a batch. Before the loop begins, or from its callbacks.
  void add(model::BatchAdded batch);
  /// From callbacks of the loop only, or before it begins.
  void ask_to_interrupt();
  /// A user's request about one task. Without a request number: it is given one here.
  using Asked =
      std::variant<model::KillAsked, model::RetryAsked, model::HoldAsked, model::PriorityAsked>;
  void ask(Asked asked, Answered reply);
  /// A batch that was pending will not come: wait() returns. From callbacks of the loop only.
  void look_again();
  /// Joins, and reads the machine, unless that has been done: before any other event.
  void look_first();
  /// An event of another machine of the run. From callbacks of the loop only, or before it begins.
  void hear_of(model::What what);
  [[nodiscard]] Instant now() const;

  /// The keeper died without a successor: all knowledge of the running attempts is gone with it.
  [[nodiscard]] bool keeper_gone() const { return keeper_gone_; }

 private:
  struct Attempt {
    model::AttemptKey key;
    std::vector<std::int64_t> pids;  ///< Of its processes: those of ranks in their order.
    std::vector<Bytes> rank_peaks;   ///< The peak memory of each, over the samples.
    std::optional<std::uint32_t> journal_number;  ///< Of its task, if in the journal.
    std::string memory_group;
    std::vector<std::string> logs;
    process::EndReader::Question files;  ///< The question to the reader of ends.
    int ranks = 0;                       ///< Each with its own device; 0: one process.
    bool forked = false;                 ///< It shares memory with its parent of the fork.
    std::optional<Instant> lived_at;     ///< The time of the last sample that saw it.
    Bytes memory_peak;                   ///< Over the samples; 0 when it was never seen.
    Bytes others;  ///< The most that one process had of files and shared memory then.
    bool on_gpus = false;
    std::optional<model::Code> code;  ///< The code that was known at its start.
    Bytes gpu_memory_max;             ///< Its cap on each of them; 0: none.
    std::string capped_by;            ///< The mechanism that enforces it; empty: none.
    /// The service through which it may share its GPUs; nothing once it was stopped.
    std::optional<hardware::MpsService> mps;
    bool lost = false;  ///< Its keeper has died, and there is no new one yet.
    Bytes gpu_memory_peak;
    /// Its last progress that was not reported yet.
    std::optional<wire::Progress> progress;
    std::string values;      ///< Its last values.
    PrintedMetrics printed;  ///< Metrics that it prints.
    Duration cpu_time{0};
  };

  void hear(std::span<const process::KeeperNews> news);
  void hear_silence(bool silent);
  void hear_end(const process::ProcessEnded& news);
  void hear_noted_ends();
  void hear_exits(const std::vector<process::UnreportedExit>& exits, std::optional<Duration> at);
  void hear_last_words(model::AttemptKey key);
  void conclude(Attempt attempt, model::AttemptEnded ended);
  void lose_keeper();
  void take_another(const process::KeeperReplaced& keeper);
  void hear_task(model::AttemptKey key, wire::TaskReport report);
  void hear_progress(model::AttemptKey key, wire::Progress progress);
  void introduce(model::AttemptKey key, model::Launch& launch);
  [[nodiscard]] PrintedMetrics printed_by(model::TaskIndex task, const model::Launch& launch);
  void read_what_they_print();
  void tell_progress(Attempt& attempt);
  void lose_everything(const process::KeeperGone& gone);
  void start(const model::StartAttempt& command);
  model::Sampled sample();
  [[nodiscard]] std::optional<model::DiskRoom> disk_room() const;
  void look_at_fresh(Instant at);
  static void add_peak(const Attempt& attempt, const process::ProcessEnded& news,
                       model::Usage& usage);
  void grant(const model::GrantDevice& command);
  void look_at_all(Instant at);
  void look_at_neighbours(SharedLedger::Look look);
  [[nodiscard]] bool looks_at_neighbours() const {
    return options_.ledger != nullptr && options_.ledger->is_worth_a_look();
  }
  void hear_code(model::CodeFound found);
  void hear_gpus(const std::vector<hardware::GpuState>& states);
  /// The other user who computes on a GPU, beyond the reservations of that user's runs there.
  std::optional<std::uint32_t> other_user_on(const hardware::GpuState& state,
                                             const std::string& uuid);
  Bytes memory_of_strangers(const hardware::GpuState& state);
  void tell_of_silence(std::size_t index, bool present);
  model::GpusSampled gpus_from(const std::vector<hardware::GpuState>& states);
  void look_at_gpus_soon();
  void hold(model::What what);
  void tell(model::What what);
  void release_held();

  sys::EventLoop& loop_;
  process::Keeper& keeper_;
  Options options_;
  Duration clock_offset_;
  bool looked_ = false;
  bool looks_at_disk_;  ///< Set when a task requests some of it.
  Instant next_sample_;
  Instant next_look_;  ///< The next look at neighbours, while a task waits for their resources.
  process::ProcessTable processes_;
  FreshLooks fresh_;
  LogBounds log_bounds_;
  std::optional<link::TaskServer> tasks_;
  std::map<model::TaskIndex, Attempt> running_;
  model::TaskIndex read_last_;  ///< The task whose logs were read last: those of the next one come
                                ///< first.
  GpuOwners owners_;
  std::vector<model::Gpu> gpus_;  ///< The present knowledge about them.
  /// The notes about a GPU that does not answer.
  struct Silence {
    bool answers = false;
    std::optional<Instant> noted;
  };
  std::vector<Silence> silences_;  ///< For each GPU.
  bool gpus_answer_ = true;        ///< All of them, when they were last sampled.
  std::vector<model::Event> inbox_;
  std::vector<model::What> held_;  ///< Until the GPUs have been looked at.
  int looks_to_come_ = 0;          ///< Looks to come before that.
  std::map<std::uint64_t, Answered> asked_;
  std::uint64_t next_request_ = 1;
  bool interrupted_ = false;
  bool keeper_silent_ = false;
  bool keeper_killed_ = false;  ///< By us, as it did not end what it was told to.
  bool keeper_gone_ = false;
};

}  // namespace trainyard::run
