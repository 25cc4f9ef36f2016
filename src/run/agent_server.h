// An agent: the local machine at the end of a stream. It decides nothing: what the yard has decided
// it carries out, what happens here it tells.
//
//   yard ══ ssh ══ `trainyard agent --stdio` ══ socket ══ agent: LocalMachine ── keeper ── tasks
//
// It lasts longer than a stream: the next one goes on where the last was cut. When the lease is
// over and nobody has come back, the keeper has ended everything (Keeper::let_run_until), and the
// agent goes. What it tells meanwhile waits; readings that nobody hears are left out, as the next
// ones say the same anew.
//
// A yard that has died may be followed by another one, with which the run goes on: it begins the
// same run here, is told of what it has not heard, and says what of it goes on.
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
#include "run/agent_looker.h"
#include "run/local_machine.h"
#include "run/log_feed.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "wire/agent.h"
#include "wire/unheard_lines.h"

namespace trainyard::run {

class AgentServer {
 public:
  /// How long it waits for somebody to begin a run.
  static constexpr Duration kIdleMax{60'000};
  /// So much may wait to be heard before readings are left out.
  static constexpr std::size_t kReadingsMax = std::size_t{1} << 20;

  struct Parts {
    process::Keeper keeper;
    hardware::ThisMachine machine;
    sys::Descriptor listener;  ///< Where streams come from, one after the other: a Unix socket.
    std::string program;       ///< Who answers: "trainyard 0.1.0".
  };
  explicit AgentServer(Parts parts);
  AgentServer(AgentServer&&) = delete;
  AgentServer& operator=(AgentServer&&) = delete;
  ~AgentServer();

  /// Until the yard is over with it, or does not come back. When it returns nothing runs any more.
  void run();

  /// After run(): the directory of the run, which nobody needs any more; empty: somebody may.
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
  std::unique_ptr<link::FrameServer> tasks_;  ///< Where tasks are heard.
  std::unique_ptr<AgentLooker> looker_;       ///< While it looks.
  std::unique_ptr<LocalMachine> local_;       ///< Once a run has begun.
  std::unique_ptr<sys::LineStream> stream_;   ///< Nothing: nobody is there.
  bool greeted_ = false;                      ///< Over this stream.
  std::string mark_;  ///< In the environment of all that it starts: NAME=value.
  std::map<model::AttemptKey, model::Launch> launches_;
  struct Run {
    wire::AgentRun known;
    std::uint64_t end_said_in = 0;  ///< The number of the line that tells its end.
  };
  std::map<model::AttemptKey, Run> runs_;  ///< Until their ends have been heard.
  std::string run_directory_;              ///< As it was begun.
  std::set<model::AttemptKey> ending_;     ///< Before it is ready for another yard.
  std::optional<sys::EventLoop::TimerId> kill_timer_;
  std::string own_directory_;  ///< Of the run, where it is this machine's alone; empty: the yard's.
  LogFeed logs_;               ///< Of its attempts, then.
  std::optional<sys::EventLoop::TimerId> logs_timer_;
  bool forgets_ = false;
  wire::UnheardLines unheard_;
  std::uint64_t heard_ = 0;
  Duration runs_until_;  ///< On sys::boot_clock().
  bool done_ = false;
};

}  // namespace trainyard::run
