// The machine we are on, behind the Machine port: the keeper's processes, a look at /proc every
// second, and what people ask from outside.
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
  /// Told whether it was done, once it is decided and written down: of a task that is to be killed,
  /// once it is over with it, whether it was running or waiting.
  using Answered = std::move_only_function<void(bool done)>;

  /// What finds metrics in what a task prints; may be empty.
  using PatternOf = std::move_only_function<LinePattern(model::TaskIndex)>;
  /// Told what a task sends to the program.
  using OnMessage = std::move_only_function<void(model::AttemptKey, const wire::Message&)>;

  struct Options {
    Instant begins;  ///< Where the time of the run starts, or goes on.
    Duration sample_every{1000};
    /// How this machine joins the run. Empty if it is no machine of the run and starts none of its
    /// tasks.
    std::optional<model::MachineJoined> joins;
    Launcher launch;
    PatternOf pattern_of = nullptr;  ///< May be missing.
    /// Where tasks are heard; must outlive the machine. May be missing when none has two phases.
    link::FrameServer* frames = nullptr;
    OnMessage on_message = nullptr;  ///< May be missing.
    /// Told what people should know of the processes that are started, in a line. May be missing.
    std::move_only_function<void(const std::string&)> on_note = nullptr;
    /// The control group in which attempts get one of their own that have a limit of memory.
    std::string delegated_group;
    /// The regions of GPU memory that they can be kept to a part of; empty: of none.
    std::vector<std::string> regions;
    /// Whether a batch is on its way. May be missing.
    std::move_only_function<bool() const> more_to_come = nullptr;
    /// Samples the GPUs. Not owned, must outlive the machine; null without GPUs.
    hardware::GpuWatch* gpus = nullptr;
    std::string run_directory;   ///< Whose disk tasks may ask for some of.
    bool looks_at_disk = false;  ///< Also before one of them does.
    Bytes log_max;               ///< What a log of a task may take of the disk; 0: any amount.
    /// Ledger shared with the other yards on this machine. Not owned; null: other yards are
    /// ignored.
    SharedLedger* ledger = nullptr;
    /// Between TERM and KILL, as whoever decides has it.
    Duration stop_grace = model::Policy().stop_grace;
    /// How long a GPU must have answered before tasks start on it, as the notes say.
    Duration gpu_steady_after = model::Policy().gpu_steady_after;
    /// What may be given of GPUs; must outlive this. May be missing: all of them.
    LimitsWatch* limits = nullptr;
    /// What code attempts run; must outlive this, or go before it. May be missing: nobody knows.
    CodeWatch* codes = nullptr;
    /// Where the keeper notes ends, and for which execution; the clock is the machine's. An empty
    /// path: nowhere.
    process::EndNotes notes = {};
  };

  LocalMachine(sys::EventLoop& loop, process::Keeper& keeper, Options options);

  void carry_out(const model::Command& command) override;
  std::optional<model::ClaimRefused> claim(const Claim& claim) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override;

  [[nodiscard]] bool more_to_come() const override {
    return options_.more_to_come && options_.more_to_come();
  }

  /// There is more to run. Before the loop begins, or from its callbacks.
  void add(model::BatchAdded batch);
  /// From callbacks of the loop only, or before it begins.
  void ask_to_interrupt();
  /// What somebody wants of one task. Without a request: it is given one here.
  using Asked =
      std::variant<model::KillAsked, model::RetryAsked, model::HoldAsked, model::PriorityAsked>;
  void ask(Asked asked, Answered reply);
  /// What was on its way is not any more: wait() returns. From callbacks of the loop only.
  void look_again();
  /// Joins, and looks at the machine, unless that has been done: before anything is told.
  void look_first();
  /// What has happened on another machine of the run. From callbacks of the loop only, or before it
  /// begins.
  void hear_of(model::What what);
  [[nodiscard]] Instant now() const;

  /// The keeper died, and nobody takes its place: all knowledge of what ran is gone with it.
  [[nodiscard]] bool keeper_gone() const { return keeper_gone_; }

 private:
  struct Attempt {
    model::AttemptKey key;
    std::vector<std::int64_t> pids;  ///< Of its processes: of several ranks in their order.
    std::vector<Bytes> rank_peaks;   ///< What each had at most, over the samples.
    std::optional<std::uint32_t> journal_number;  ///< Of its task, where the journal has it.
    std::string memory_group;
    std::vector<std::string> logs;
    std::string result_path;
    std::string result_copy_path;
    int ranks = 0;                    ///< Of each its own device; 0: it is one process.
    bool forked = false;              ///< It shares memory with what it was forked from.
    std::optional<Instant> lived_at;  ///< When the last sample saw that.
    Bytes memory_peak;                ///< Over the samples; 0 when it was never seen.
    Bytes others;  ///< The most that one process had of files and shared memory then.
    bool on_gpus = false;
    std::optional<model::Code> code;  ///< That it runs, as was known when it started.
    Bytes gpu_memory_max;   ///< What it was told to take of each of them at most; 0: nothing.
    std::string capped_by;  ///< What keeps it to that; empty: nothing.
    /// Through which it may share its GPUs; nothing once it was told to end.
    std::optional<hardware::MpsService> mps;
    bool lost = false;  ///< Its keeper has died, and another one is not there yet.
    Bytes gpu_memory_peak;
    /// What it said last of how far it is, and nobody was told yet.
    std::optional<wire::Progress> progress;
    std::string values;      ///< The last ones that it said.
    PrintedMetrics printed;  ///< And what it prints of it.
    Duration cpu_time{0};
  };

  void hear(std::span<const process::KeeperNews> news);
  void hear_silence(bool silent);
  void hear_end(const process::ProcessEnded& news);
  void hear_noted_ends();
  void hear_finished(const std::vector<model::AttemptKey>& keys);
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
  /// The other user who computes on a GPU, beyond what that user's runs have reserved there.
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
  bool looks_at_disk_;  ///< As a task asks for some of it.
  Instant next_sample_;
  Instant next_look_;  ///< At neighbours, while somebody waits for what they hold.
  process::ProcessTable processes_;
  FreshLooks fresh_;
  LogBounds log_bounds_;
  std::optional<link::TaskServer> tasks_;
  std::map<model::TaskIndex, Attempt> running_;
  model::TaskIndex read_last_;  ///< Whose logs were read last: those of the next one come first.
  GpuOwners owners_;
  std::vector<model::Gpu> gpus_;  ///< What is known of them.
  /// What people were told of one that does not answer.
  struct Silence {
    bool answers = false;
    std::optional<Instant> told;
  };
  std::vector<Silence> silences_;  ///< Of each of them.
  bool gpus_answer_ = true;        ///< All of them, when they were last sampled.
  std::vector<model::Event> inbox_;
  std::vector<model::What> held_;  ///< Until the GPUs have been looked at.
  int looks_to_come_ = 0;          ///< Before they are told.
  std::map<std::uint64_t, Answered> asked_;
  std::uint64_t next_request_ = 1;
  bool interrupted_ = false;
  bool keeper_silent_ = false;
  bool keeper_killed_ = false;  ///< By us, as it would not end what it was told to.
  bool keeper_gone_ = false;
};

}  // namespace trainyard::run
