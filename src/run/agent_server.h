// An agent: the local machine at the end of a stream. It decides nothing: it carries out the
// decisions of the yard, and reports the events here.
//
//   yard ══ ssh ══ `trainyard agent --stdio` ══ socket ══ agent: LocalMachine ── keeper ── tasks
//
// It lasts longer than a stream: the next one resumes at the point where the last was cut. When the
// lease is over and no yard has come back, the keeper has ended everything (Keeper::let_run_until),
// and the agent exits. Its reports wait meanwhile; readings that nobody receives are left out, as
// the next ones replace them.
//
// A yard that has died may be followed by another one that resumes the run: it begins the same run
// here, receives the reports that were not received, and says which attempts go on.
//
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "hardware/this_machine.h"
#include "link/frame_server.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "run/local_machine.h"
#include "run/log_bounds.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "wire/agent.h"
#include "wire/unheard_lines.h"

namespace trainyard::run {

class AgentLooker;

class AgentServer {
 public:
  /// The time that it waits for a yard to begin a run.
  static constexpr Duration kIdleMax{60'000};
  /// Bytes that may wait to be sent before readings are left out.
  static constexpr std::size_t kReadingsMax = std::size_t{1} << 20;

  struct Parts {
    process::Keeper keeper;
    hardware::ThisMachine machine;
    sys::Descriptor listener;  ///< Unix socket that accepts streams, one after the other.
    std::string program;       ///< The name of this program: "trainyard 0.1.0".
  };
  explicit AgentServer(Parts parts);
  AgentServer(AgentServer&&) = delete;
  AgentServer& operator=(AgentServer&&) = delete;
  ~AgentServer();

  /// Runs until the yard is done with it, or does not come back. When it returns nothing runs any
  /// more.
  void run();

  /// After run(): the directory of the run, if nobody needs it any more; empty: it may be needed.
  [[nodiscard]] std::string directory_to_forget() const {
    return forgets_ ? own_directory_ : std::string();
  }

 private:
  void accept();
  void hear(std::string_view line);
  void take(const wire::AgentOpen& open);
  void take(const wire::AgentLook& look);
  void take(const wire::AgentBegin& begins);
  void take(wire::AgentStart start);
  void take(const wire::AgentCommand& command);
  void take(const wire::AgentHeard& heard);
  void take(const wire::AgentBye& bye);
  Result<void> begin(const wire::AgentBegin& begin);
  Result<void> go_on(const wire::AgentBegin& begin);
  void end_all_but(const std::vector<model::AttemptKey>& kept);
  void kill_what_ends();
  void say_what_runs();
  void note_run(const model::What& what);
  void forget_heard_runs();
  void feed_logs();
  void hide_gpus(std::vector<std::string>& environment) const;
  void tell(model::Event event);
  void say(decltype(wire::AgentSays::what) what);
  void say_at_once(decltype(wire::AgentSays::what) what);
  void refuse(const std::string& why);
  void run_until(Duration moment);
  void finish();
  void tell_of_the_lease(model::What& what) const;
  void look_whether_anybody_is_there();
  [[nodiscard]] bool somebody_listens() const { return stream_ != nullptr && greeted_; }

  sys::EventLoop loop_;
  process::Keeper keeper_;
  hardware::ThisMachine machine_;
  sys::Descriptor listener_;
  std::string program_;
  std::string instance_;
  std::unique_ptr<link::FrameServer> tasks_;  ///< Receives messages of tasks.
  std::unique_ptr<AgentLooker> looker_;       ///< While it looks.
  std::unique_ptr<LocalMachine> local_;       ///< Once a run has begun.
  std::unique_ptr<sys::LineStream> stream_;   ///< Nothing: no yard is connected.
  bool greeted_ = false;                      ///< Over this stream.
  std::string mark_;  ///< NAME=value in the environment of all that it starts.
  std::map<model::AttemptKey, model::Launch> launches_;
  struct Run {
    wire::AgentRun known;
    std::uint64_t end_said_in = 0;  ///< The number of the line that reports its end.
  };
  std::map<model::AttemptKey, Run> runs_;  ///< Until their ends were received.
  std::string run_directory_;              ///< As given when the run began.
  std::set<model::AttemptKey> ending_;     ///< Before it is ready for another yard.
  std::optional<sys::EventLoop::TimerId> kill_timer_;
  std::string own_directory_;  ///< The run's, if it is only on this machine; empty: the yard's.
  LogFeed logs_;               ///< Of its attempts, then.
  std::optional<sys::EventLoop::TimerId> logs_timer_;
  bool forgets_ = false;
  wire::UnheardLines unheard_;
  std::uint64_t heard_ = 0;
  Duration runs_until_;  ///< On sys::boot_clock().
  bool done_ = false;
};

}  // namespace trainyard::run
