// What the keeper does, in its own process: starts, watches and ends processes as it is told over a
// socket, and ends them all when the other end of the socket is gone. See io/keeper.h.
//
// One thread, no Asio: it should be small. It waits in one place, wakes for nothing, and sends what
// there is to tell in one piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/keeper.h"
#include "io/keeper_message.h"
#include "io/keeper_spawn.h"
#include "io/oom.h"
#include "io/process_scan.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::io {

class KeeperProcess {
 public:
  /// Turns this process, which must be a fresh fork, into the keeper at the other end of `socket`.
  KeeperProcess(Descriptor socket, KeeperOptions options);

  /// Returns when the yard has gone and every process has been ended.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  using Number = std::uint64_t;  ///< Attempts in the order in which they were started, from 1.

  //   start            leader ends                nothing of it is left
  //  ──────▶ Running ─────────────▶ Clearing ───────────────────────────▶ (forgotten)
  //                                    └── 2 s over: told, and still watched ──┘
  struct Attempt {
    AttemptKey key;
    pid_t leader = 0;  ///< Leads its session and process group.
    Descriptor pidfd;  ///< Closed once the leader has been reaped.
    std::string mark;  ///< Its TRAINYARD_TASK_DIR and _ATTEMPT, as environ has them.
    std::int64_t oom_kills_before = 0;
    bool killed_by_us = false;
    bool told = false;
    ProcessEnded ended;
    Clock::time_point tell_at_latest;
    std::vector<std::int64_t> sessions;  ///< Other sessions that its processes have made.

    [[nodiscard]] bool running() const { return pidfd.is_open(); }
  };

  /// A process whose parent has died, so that it is our child now.
  struct Orphan {
    Number owner = 0;          ///< The attempt that it is of; 0 when it hides that.
    Number owner_at_most = 0;  ///< The last attempt that had been started when it was first seen.
  };

  void wait_for_events();
  void read_socket();
  void take_messages();
  void take(KeeperMessage message);
  void start(AttemptKey key, const Launch& launch);
  void leader_ended(Number number);
  End how_it_ended(const Attempt& attempt, int status) const;

  void look_for_leftovers();
  [[nodiscard]] std::vector<pid_t> list_children();
  void adopt(pid_t pid);
  Number owner_of(const ProcessStat& process) const;
  void reap_orphans();
  void find_owners();
  bool has_leftovers(Number number, const Attempt& attempt) const;
  void clear_up(bool looked);
  void forget(Number number);

  void carry_out_stops();
  /// Signals the processes of the trees that `own_tree` starts.
  void signal_trees(const std::function<int(const ProcessStat&)>& own_tree, int signal);
  void signal_everything(int signal);
  void yard_has_gone();
  void end_everything();

  void tell_end(Attempt& attempt);
  void flush();
  void watch_socket(bool for_writing);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::optional<Clock::time_point> wake_at() const;

  KeeperOptions options_;
  Descriptor socket_;
  Descriptor epoll_;
  Descriptor child_signals_;  ///< SIGCHLD: an orphan may have ended.
  Descriptor children_;       ///< /proc/self/task/<tid>/children.
  Spawner spawner_;
  OomWatch oom_;
  ProcessScan scan_;

  KeeperMessageReader reader_;
  std::string outgoing_;
  std::optional<Clock::time_point> flush_at_;  ///< When `outgoing_` must be sent.
  bool waits_for_room_ = false;                ///< In the socket.

  Number last_number_ = 0;
  std::unordered_map<Number, Attempt> attempts_;
  std::unordered_map<pid_t, Number> leaders_;  ///< Of the running ones.
  std::unordered_map<std::uint64_t, Number> by_key_;
  std::unordered_map<pid_t, Orphan> orphans_;
  std::vector<StopMessage> stops_;
  std::vector<Number> leaders_ended_;
  std::vector<Number> clearing_;  ///< Those that are not running any more.
  bool look_ = false;             ///< Something has ended, or may have.
  bool more_messages_ = false;    ///< There are more in `reader_` than were taken at once.

  std::int64_t oom_kills_ = 0;  ///< As of `oom_read_at_`.
  Clock::time_point oom_read_at_;

  bool yard_gone_ = false;
  Clock::time_point kill_at_;
  Clock::time_point give_up_at_;
  bool killing_ = false;
};

}  // namespace trainyard::io
