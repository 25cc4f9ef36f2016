// The processes that the keeper watches, by attempt: the one it has started, and everything that
// came of it. Knows when an attempt is over: when the last of these is gone.
//
// Signals and reaps them, starts none. No sockets. In the keeper only, one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "io/children.h"
#include "io/descriptor.h"
#include "io/end_reader.h"
#include "io/keeper.h"
#include "io/keeper_message.h"
#include "io/keeper_spawn.h"
#include "io/memory_group.h"
#include "io/oom.h"
#include "io/process_scan.h"
#include "io/start.h"
#include "model/event.h"
#include "model/ids.h"

namespace trainyard::io {

class KeeperAttempts {
 public:
  using Clock = std::chrono::steady_clock;
  using Number = std::uint64_t;  ///< Attempts in the order in which they were started, from 1.

  /// One that is over, and the files in which it may have left something.
  struct Over {
    ProcessEnded ended;
    EndReader::Question files;
  };

  /// Nothing is running and nothing is left over.
  [[nodiscard]] bool empty() const { return attempts_.empty() && orphans_.empty(); }

  /// How many descriptors they hold open: one each, and another one on the way to its program.
  [[nodiscard]] std::size_t descriptors() const { return leaders_.size() + on_their_way_.size(); }

  /// What the next one added will be called.
  [[nodiscard]] Number next_number() const { return last_number_ + 1; }

  /// Reads the counter of OOM kills unless that was done just now: where an attempt that is about
  /// to be started counts from.
  void prepare(Clock::time_point now);
  void add(AttemptKey key, Spawned spawned);

  /// One may be a step further on its way to its program: what is to be told of it, if that runs
  /// now. To be called when its status is readable, and before leader_ended().
  std::optional<ProcessStarted> look_at_start(Number number);
  /// By which one that is on its way tells of it; null when it is not.
  [[nodiscard]] const Descriptor* status_of(Number number) const;
  /// Readable when its leader ends; null when that has been reaped.
  [[nodiscard]] const Descriptor* process_of(Number number) const;
  /// Ends those that are on their way: they have nothing to save.
  void end_those_on_their_way();
  /// Which are on their way for so long that people should know, each once, in lines.
  std::vector<std::string> late_starts(Clock::time_point now);
  /// When late_starts() has something to say next.
  [[nodiscard]] std::optional<Clock::time_point> late_at() const;

  /// The process of an attempt has ended, as its pidfd says. Kills what is left of its group.
  void leader_ended(Number number, Clock::time_point now);

  /// The processes of this session are none of an attempt's, and left alone, until they are given
  /// back.
  void set_aside(pid_t session) { set_aside_.insert(session); }
  void give_back(pid_t session) { set_aside_.erase(session); }

  /// To be called after something has ended: takes in those whose parent is gone, and reaps.
  void look_around();

  /// Forgets the attempts that are over, kills what is left of those whose leader has ended, and
  /// returns those of which the end is to be told now. `looked`: look_around() has just been
  /// called.
  std::vector<Over> clear_up(bool looked, Clock::time_point now);
  [[nodiscard]] bool has_to_clear_up() const { return !clearing_.empty(); }
  /// Something is being killed, of which nobody tells when it has gone: it may leave its group, or
  /// have forked as it was killed. To be looked at again soon.
  [[nodiscard]] bool has_remains() const {
    return !clearing_.empty() || (attempts_.empty() && !orphans_.empty());
  }

  /// When clear_up() must be called at the latest.
  [[nodiscard]] std::optional<Clock::time_point> clear_up_at() const;

  void signal(std::span<const SignalMessage> messages);
  void signal_everything(int signal);

 private:
  //   add              its program runs       leader ends           nothing of it is left
  //  ────▶ On its way ───────────────▶ Running ─────────▶ Clearing ─────────────▶ (forgotten)
  //            └───────────── it has failed ────────────────┘ └─ 2 s over: told, ──┘
  //                                                              and still watched
  struct Attempt {
    AttemptKey key;
    pid_t leader = 0;              ///< Leads its session and process group.
    std::unique_ptr<Start> start;  ///< Until its program runs.
    Clock::time_point late_at;     ///< When people are told that it still is; max() once they were.
    std::optional<int> signal;     ///< That it gets when its program runs.
    std::string not_started;       ///< Why it never runs.
    EndReader::Question files;
    Descriptor pidfd;          ///< Closed once the leader has been reaped.
    MemoryGroup memory_group;  ///< Taken away with the attempt.
    std::string mark;          ///< Its TRAINYARD_TASK_DIR and _ATTEMPT, as environ has them.
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

  [[nodiscard]] End how_it_ended(const Attempt& attempt, int status) const;
  void adopt(pid_t pid);
  [[nodiscard]] Number owner_of(const ProcessStat& process) const;
  void reap_orphans();
  void find_owners();
  [[nodiscard]] bool has_leftovers(Number number, const Attempt& attempt) const;
  void forget(Number number);
  /// Signals the processes of the trees that `own_tree` names.
  void signal_trees(const std::function<int(const ProcessStat&)>& own_tree, int signal);
  void signal_those_outside_their_groups(const std::unordered_map<Number, int>& signals);

  Number last_number_ = 0;
  std::unordered_map<Number, Attempt> attempts_;
  std::unordered_map<pid_t, Number> leaders_;  ///< Of the running ones.
  std::set<Number> on_their_way_;
  std::unordered_map<std::uint64_t, Number> by_key_;
  std::unordered_map<pid_t, Orphan> orphans_;
  std::set<pid_t> set_aside_;
  std::vector<Number> clearing_;  ///< Those that are not running any more.

  ChildList children_;
  ProcessScan scan_;
  OomWatch oom_;
  std::int64_t oom_kills_ = 0;  ///< As of `oom_read_at_`.
  Clock::time_point oom_read_at_;
};

}  // namespace trainyard::io
