// The machine we are on, behind the Machine port: the keeper's processes, a look at /proc every
// second, and what people ask from outside.
//
// Belongs to the thread of its loop. `loop` and `keeper` must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "io/event_loop.h"
#include "io/frame_server.h"
#include "io/gpu_driver.h"
#include "io/gpu_watch.h"
#include "io/keeper.h"
#include "io/process_table.h"
#include "io/task_server.h"
#include "model/command.h"
#include "model/event.h"
#include "model/gpu_stranger.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "run/machine.h"
#include "wire/task.h"

namespace trainyard {

class LocalMachine final : public Machine {
 public:
  using Launcher = std::move_only_function<Launch(AttemptKey, const std::vector<GpuIndex>&)>;
  /// Told whether the task was running or waiting, once it is over with it.
  using KillReply = std::move_only_function<void(bool done)>;

  /// Told what a task sends to the program.
  using OnMessage = std::move_only_function<void(AttemptKey, const wire::Message&)>;

  struct Options {
    Capacity capacity;
    Instant begins;  ///< Where the time of the run starts, or goes on.
    Duration sample_every{1000};
    Launcher launch;
    /// Where two-phase tasks are heard; must outlive the machine. May be missing when there are
    /// none.
    io::FrameServer* frames = nullptr;
    OnMessage on_message = nullptr;  ///< May be missing.
    /// Told what people should know of the processes that are started, in a line. May be missing.
    std::move_only_function<void(const std::string&)> on_note = nullptr;
    /// The control group in which attempts get one of their own that have a limit of memory.
    std::string delegated_group;
    /// Who looks at the GPUs; must outlive the machine. May be missing where there are none.
    io::GpuWatch* gpus = nullptr;
  };

  LocalMachine(io::EventLoop& loop, io::Keeper& keeper, Options options);

  [[nodiscard]] Capacity capacity() const override { return options_.capacity; }
  FirstLook look() override;
  void carry_out(const Command& command) override;
  std::vector<Event> wait(std::optional<Instant> until) override;

  /// Both may be called from callbacks of the loop only.
  void ask_to_interrupt();
  void ask_to_kill(TaskIndex task, KillReply reply);

  /// The keeper died, and with it all knowledge of what ran.
  [[nodiscard]] bool keeper_gone() const { return keeper_gone_; }

 private:
  struct Attempt {
    AttemptKey key;
    std::int64_t pid = 0;
    std::string memory_group;
    int ranks = 0;        ///< Of each its own device; 0: it is one process.
    bool forked = false;  ///< It shares memory with what it was forked from.
    Bytes memory_peak;    ///< Over the samples; 0 when it was never seen.
    bool on_gpus = false;
    Bytes gpu_memory_peak;
    /// What it said last of how far it is, and nobody was told yet.
    std::optional<wire::Progress> progress;
    Duration cpu_time{0};
  };

  [[nodiscard]] Instant now() const;
  void hear(std::span<const io::KeeperNews> news);
  void hear_silence(bool silent);
  void hear_end(const io::ProcessEnded& news);
  void hear_task(AttemptKey key, wire::TaskReport report);
  void tell_progress(Attempt& attempt);
  void lose_everything(const std::string& why);
  void start(const StartAttempt& command);
  Sampled sample();
  void grant(const GrantDevice& command);
  void hear_gpus(const std::vector<io::GpuState>& states);
  /// Processes on it that are none of our tasks'.
  [[nodiscard]] std::vector<GpuStranger> strangers_on(const io::GpuState& state) const;
  GpusSampled gpus_from(const std::vector<io::GpuState>& states);
  void look_at_gpus_soon();

  io::EventLoop& loop_;
  io::Keeper& keeper_;
  Options options_;
  Duration clock_offset_;
  Instant next_sample_;
  io::ProcessTable processes_;
  std::optional<io::TaskServer> tasks_;
  std::map<TaskIndex, Attempt> running_;
  /// Which attempt each process belongs to, at the last look.
  std::map<std::int64_t, TaskIndex> owners_;
  std::vector<Event> inbox_;
  std::map<std::uint64_t, KillReply> kills_;
  std::uint64_t next_kill_ = 1;
  bool interrupted_ = false;
  bool keeper_silent_ = false;
  bool keeper_killed_ = false;  ///< By us, as it would not end what it was told to.
  bool keeper_gone_ = false;
};

}  // namespace trainyard
