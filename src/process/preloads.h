// The processes that have imported beforehand, and the launches that wait for one of them to import
// or to fork. Starts such processes when they are needed, again when they die, and ends those that
// have been unused for a while.
//
//   take ──▶ waits ──▶ asked for ──▶ outcome: its process, or its end
//             ▲            │
//             └────────────┘ the importing process died: once more, with a new one
//
// In the keeper only, one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper_message.h"
#include "process/keeper_spawn.h"
#include "process/preload_server.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class Preloads {
 public:
  using Clock = std::chrono::steady_clock;

  /// The maximum number of importing processes.
  static constexpr std::size_t kServersMax = 8;
  /// The numbers of watched descriptors have this bit.
  static constexpr std::uint64_t kEvents = std::uint64_t{1} << 62U;

  struct Options {
    /// Tells about(number) when the descriptor is readable, until it is closed.
    std::function<bool(const sys::Descriptor&, std::uint64_t)> watch;
    /// A session of ours that is there from now on, or no longer.
    std::function<void(pid_t, bool)> session;
    Clock::duration idle_max;    ///< Maximum time that an unused one stays.
    Clock::duration late_after;  ///< Until a note reports one that has not begun to import.
    Clock::duration answer_max = std::chrono::seconds(30);  ///< For the fork of a task.
  };
  Preloads(Spawner& spawner, Options options) : spawner_(spawner), options_(std::move(options)) {}

  /// Takes a launch over, or does not: there are as many importing processes as may be, all with
  /// something else. Then it can be started without one.
  bool take(model::AttemptKey key, const model::Launch& launch);

  /// Ends a launch that has not started; false when there is no such one. A launch that has been
  /// requested gets the signal as soon as it is there; to kill it at once ends the importing
  /// process.
  bool signal(const SignalMessage& message);

  /// An attempt that was an outcome is over.
  void forget(model::AttemptKey key);

  /// Something that has kEvents can be heard.
  void about(std::uint64_t number, Clock::time_point now);

  /// The outcome of a launch since the last call.
  struct Outcome {
    model::AttemptKey key;
    std::expected<Spawned, model::End> process;
    std::optional<SignalMessage> signal;  ///< To be sent at once.
  };
  std::vector<Outcome> take_outcomes();

  /// Notes for users about imports since the last call, in lines.
  std::vector<std::string> take_notes();

  /// Ends processes that have been unused for a while, and those that do not answer.
  void look_at_the_clock(Clock::time_point now);
  /// Extends the deadlines of answers by the time in which this process could not read them.
  void wait_longer(Clock::duration away);
  /// The time when it must be looked at.
  [[nodiscard]] std::optional<Clock::time_point> wake_at() const;

  /// Forgets what waits, and ends the importing processes.
  void end_all();
  [[nodiscard]] bool empty() const { return servers_.empty(); }

 private:
  struct Waiting {
    model::AttemptKey key;
    model::Launch launch;
    int tries = 0;  ///< Importing processes that died on it.
    std::optional<SignalMessage> signal;
  };
  struct Server {
    std::uint64_t number = 0;
    model::Launch pattern;  ///< Its first launch, to find similar ones.
    std::unique_ptr<PreloadServer> process;
    std::deque<Waiting> waiting;  ///< The first one has been asked for, if the process is busy.
    std::size_t users = 0;        ///< Attempts that it has started and that are not over.
    std::optional<Clock::time_point> idle_since;
    std::optional<Clock::time_point> answer_by;  ///< It has been asked for a task.
    std::optional<Clock::time_point> late_at;    ///< It should have begun to import.
    bool ending = false;                         ///< For good.
    bool killed = false;                         ///< By us: no launch is to blame.
  };
  using Servers = std::list<Server>;

  Servers::iterator find(const model::Launch& launch);
  bool make_room();
  void end(Server& server);
  void start(Server& server);
  void ask(Server& server);
  void finish(Server& server, std::expected<Spawned, model::End> process);
  void has_ended(Server& server);
  void erase_if_done(Servers::iterator server);
  void refuse_all(Server& server, const Error& why);
  void rest(Server& server, Clock::time_point now);

  Spawner& spawner_;
  Options options_;
  Servers servers_;
  std::uint64_t last_number_ = 0;
  std::map<model::AttemptKey, std::uint64_t> server_of_;  ///< By attempt, while it runs.
  std::vector<Outcome> outcomes_;
  std::vector<std::string> notes_;
};

}  // namespace trainyard::process
