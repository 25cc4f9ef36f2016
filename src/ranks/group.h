// Decides the next steps of a group of ranks: a state machine that touches nothing.
//
// An event goes in (a rank connected, replied, died; a caller requests an execution), commands come
// out (send this, signal those, that request is answered). Time is a number that comes with the
// event. The data sent and received stays with the code that carries the commands out
// (ranks/rank_group.h).
//
//        Launch            all joined            all initialised
//  Down ────────▶ Launching ────────▶ Initialising ────────▶ Ready ◀───────┐
//   ▲                 │                    │          Execute │            │ all have replied
//   │ all processes   │ a limit, a death,  │                  ▼            │
//   │ have ended      │ a refusal, a stop  │              Executing ───────┤
//   │                 ▼                    ▼     stop, limit, │ a failure  │
//  Ending ◀───────────┴────────────────────┴─────────────┐    ▼            │
//   stop or close, then TERM, then KILL                  └── Settling ─────┘
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/event.h"
#include "trainyard/rank_limits.h"
#include "trainyard/return_code.h"

namespace trainyard::ranks {

enum class Phase : std::uint8_t {
  Down,
  Launching,
  Initialising,
  Ready,
  Executing,
  Settling,  ///< The execution is answered; some ranks have not replied yet.
  Ending,
};

/// The result of a request.
struct Verdict {
  ReturnCode code = ReturnCode::Ok;
  std::string why;
  std::optional<int> rank;  ///< The rank that caused it.

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// --- what happens ---

struct LaunchAsked {};
struct RankJoined {
  int rank = 0;
};
/// A process that may join sends an invalid hello: a rank that is not there, another number of
/// ranks.
struct RankRefused {
  std::string why;
};
/// To the request that it was sent last.
struct RankReplied {
  int rank = 0;
  Verdict verdict;
};
/// One of its connections has ended.
struct RankGone {
  int rank = 0;
  std::string why;
};
/// It does not speak the protocol.
struct RankSpokeNonsense {
  int rank = 0;
  std::string what;
};
/// `rank` is nothing for the launcher, whose end is that of all ranks.
struct ProcessEnd {
  std::optional<int> rank;
  model::End end;
};
struct ExecuteAsked {
  std::uint64_t id = 0;
};
/// The event is sent to those ranks.
struct EventAsked {
  std::uint64_t id = 0;
  std::set<int> ranks;
};
struct EventHeard {
  std::uint64_t id = 0;
  int rank = 0;
};
/// Ends what runs: the execution, or the launch.
struct StopAsked {
  std::string reason;
};
struct CloseAsked {};
/// The keeper that started the processes has died, and the processes with it.
struct KeeperLost {
  std::string why;
};
struct TimePassed {};
using GroupEvent = std::variant<LaunchAsked, RankJoined, RankRefused, RankReplied, RankGone,
                                RankSpokeNonsense, ProcessEnd, ExecuteAsked, EventAsked, EventHeard,
                                StopAsked, CloseAsked, KeeperLost, TimePassed>;

// --- what is to be done ---

struct StartProcesses {};
struct SendInitialise {
  int rank = 0;
};
struct SendExecute {
  int rank = 0;
};
struct SendStop {
  int rank = 0;
  std::string reason;
};
struct SendClose {
  int rank = 0;
};
struct SignalProcesses {
  int signal = 0;
};
/// The answers.
struct Launched {
  Verdict verdict;
};
struct Executed {
  std::uint64_t id = 0;
  Verdict verdict;
};
struct EventOver {
  std::uint64_t id = 0;
  Verdict verdict;
};
/// An execution that was not answered begins anew: the group is to be launched again for it.
struct Restart {
  std::uint64_t id = 0;
  Verdict verdict;
};
/// No process is left, and none of its connections means anything any more.
struct GroupDown {
  std::string left;  ///< The processes that could not be ended; mostly empty.
};
using GroupCommand =
    std::variant<StartProcesses, SendInitialise, SendExecute, SendStop, SendClose, SignalProcesses,
                 Launched, Executed, EventOver, Restart, GroupDown>;

/// "exited with code 3", "was killed by signal 9 (out of memory)".
std::string end_text(const model::End& end);

class Group {
 public:
  struct Options {
    int ranks = 1;
    /// Each rank is a process of ours, whose end is reported; else there is one launcher.
    bool own_processes = true;
    RankLimits limits;
    int restarts = 0;  ///< Retries of an execution after a rank has died.
  };
  explicit Group(Options options);

  std::vector<GroupCommand> on(const GroupEvent& event, Duration now);

  [[nodiscard]] Phase phase() const { return phase_; }
  /// The latest time for TimePassed.
  [[nodiscard]] std::optional<Duration> wake_at() const;

 private:
  struct Member {
    bool joined = false;
    bool gone = false;
    bool process = false;  ///< There is one that has not ended.
    bool waited_for = false;
    std::optional<Verdict> verdict;  ///< Verdict of its last reply.
  };
  /// A rank that is gone: how its process ended is waited for, so long.
  struct Suspect {
    int rank = 0;
    std::string why;
    Duration until{0};
  };
  struct PendingEvent {
    std::set<int> missing;
    Duration deadline{0};
  };

  [[nodiscard]] static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void take(const LaunchAsked& it);
  void take(const RankJoined& it);
  void take(const RankRefused& it);
  void take(const RankReplied& it);
  void take(const RankGone& it);
  void take(const RankSpokeNonsense& it);
  void take(const ProcessEnd& it);
  void take(const ExecuteAsked& it);
  void take(const EventAsked& it);
  void take(const EventHeard& it);
  void take(const StopAsked& it);
  void take(const CloseAsked& it);
  void take(const KeeperLost& it);
  void take(const TimePassed& it);

  void all_joined();
  void initialised();
  void executed();
  void settle(Verdict verdict);
  void late();
  void answer(Verdict verdict);
  void fail(Verdict verdict);
  void end(bool cleanly, const std::string& reason);
  void end_events(const Verdict& verdict);
  void next_way_of_ending();
  void down(std::string left);
  void tell_all_to_stop(const std::string& reason);
  [[nodiscard]] bool has_processes() const;
  [[nodiscard]] bool waits_for_replies() const;
  void ask(GroupCommand (*command)(int rank));

  Options options_;
  Duration now_{0};
  std::vector<GroupCommand> commands_;

  Phase phase_ = Phase::Down;
  std::vector<Member> members_;
  bool launcher_ = false;             ///< It runs.
  std::optional<Duration> deadline_;  ///< Deadline of the phase.
  std::optional<Suspect> suspect_;
  std::optional<Verdict> fault_;  ///< The reason why it is down or ending, if not requested.
  std::optional<std::uint64_t> execution_;  ///< Not answered yet.
  std::optional<std::uint64_t> retried_;    ///< To begin anew, or begun anew.
  int tries_ = 0;                           ///< Tries of that one, beside the first.
  bool stopped_ = false;                    ///< The execution was asked to stop.
  std::string stop_reason_;
  std::map<std::uint64_t, PendingEvent> events_;
  int ending_step_ = 0;
  Duration ending_grace_{0};
};

}  // namespace trainyard::ranks
