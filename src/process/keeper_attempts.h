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
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/time.h"
#include "hardware/capacity.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/end_notes.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "process/keeper_spawn.h"
#include "process/memory_group.h"
#include "process/port_lease.h"
#include "process/signal_receivers.h"
#include "process/start.h"
#include "sys/descriptor.h"
#include "sys/process_scan.h"

namespace trainyard::process {

class KeeperAttempts {
 public:
  using Clock = std::chrono::steady_clock;
  /// Processes in the order in which they were started, from 1. The number of an attempt is that of
  /// its first process.
  using Number = std::uint64_t;

  /// An attempt that has ended, and the files in which it may have left something.
  struct Over {
    ProcessEnded ended;
    EndReader::Question files;
    std::optional<NotedAttempt> noted;  ///< Nothing: its end will not be asked for.
    Duration seen_at{0};  ///< Time of the news, on the clock of `ended.at`, which is no later.
  };

  struct ClearedUp {
    std::vector<Over> over;  ///< Their end is to be reported now.
    /// Each attempt once of which processes are left when its own have ended: its end is known and
    /// is noted, as all that know it may be killed before the rest is gone.
    std::vector<Over> lingering;
  };

  /// The time of some news, and the time when it happened: earlier, if the keeper was away.
  struct Heard {
    Clock::time_point now;
    Clock::time_point happened;
  };

  struct Options {
    Duration grace;          ///< Between TERM and KILL of ranks when one of them has failed.
    Duration late_after;     ///< The time until late_starts() reports one that is on its way.
    Duration oom_count_age;  ///< As KeeperOptions has it.
  };
  /// Attempts of one process are entered on the board, until the caller says that their end is safe
  /// (ExitBoard::leave). The board must outlive this.
  KeeperAttempts(Options options, ExitBoard& board) : options_(options), board_(board) {}

  /// From now on the guard can note the ends of the attempts that are added, if the keeper dies.
  void note_ends(EndNotes notes) { end_notes_ = std::move(notes); }
  /// Nothing before note_ends().
  [[nodiscard]] const std::optional<EndNotes>& end_notes() const { return end_notes_; }

  /// Nothing is running and nothing is left over.
  [[nodiscard]] bool empty() const { return attempts_.empty() && orphans_.empty(); }

  /// The number of open descriptors: one each, and another one on the way to its program.
  [[nodiscard]] std::size_t descriptors() const { return leaders_.size() + on_their_way_.size(); }

  /// The number of the next process added.
  [[nodiscard]] Number next_number() const { return last_number_ + 1; }

  /// Reads the counter of OOM kills unless that was done just now: where an attempt that is about
  /// to be started counts from.
  void prepare(Clock::time_point now);
  void add(model::AttemptKey key, Spawned spawned);
  /// The processes of an attempt of several ranks, in their order. `lease` is held as long as
  /// anything of them is there.
  void add_ranks(model::AttemptKey key, std::vector<Spawned> spawned,
                 std::optional<PortLease> lease);
  /// Not all ranks of an attempt could be started, so it ends: kills those that were.
  void give_up(Number attempt, model::NotStarted why);

  /// A process may be a step further on its way to its program. Returns the news of its attempt, if
  /// all its processes run now. To be called when its status is readable, and before
  /// leader_ended().
  std::optional<ProcessStarted> look_at_start(Number number, Clock::time_point happened);
  /// The descriptor for the status of a process that is on its way; null when it is not.
  [[nodiscard]] const sys::Descriptor* status_of(Number number) const;
  /// Readable when its leader ends; null when that has been reaped.
  [[nodiscard]] const sys::Descriptor* process_of(Number number) const;
  /// Kills the processes that are on their way: they have nothing to save. One may have begun by
  /// now: its end is no failure of its own.
  void end_those_on_their_way();
  /// One line for each process that is on its way for too long; each is reported once.
  std::vector<std::string> late_starts(Clock::time_point now);
  /// Extends the deadlines of starts by the time in which this process could not read how far they
  /// had come.
  void wait_longer(Clock::duration away);
  /// The time of the next line of late_starts().
  [[nodiscard]] std::optional<Clock::time_point> late_at() const;

  /// A process that we have started has ended, as its pidfd says. Kills what is left of its group.
  /// Returns the news of a rank that is the first to fail; the others of its attempt get the grace
  /// to end.
  std::optional<RankFailed> leader_ended(Number number, const Heard& heard);
  /// Kills the ranks whose grace is over.
  void kill_those_over_their_grace(Clock::time_point now);
  /// The time when kill_those_over_their_grace() has something to do next.
  [[nodiscard]] std::optional<Clock::time_point> grace_ends_at() const;

  /// The processes of this session are none of an attempt's, and left alone, until they are given
  /// back.
  void set_aside(pid_t session) { set_aside_.insert(session); }
  void give_back(pid_t session) { set_aside_.erase(session); }

  /// To be called after something has ended: takes in those whose parent is gone, and reaps.
  void look_around();

  /// Forgets the attempts that are over, and kills what is left of those whose leader has ended.
  /// `looked`: look_around() has just been called.
  ClearedUp clear_up(bool looked, Clock::time_point now);
  [[nodiscard]] bool has_to_clear_up() const { return !clearing_.empty(); }
  /// Processes are being killed whose end is not reported: they may leave their group, or have
  /// forked as they were killed. To be looked at again soon.
  [[nodiscard]] bool has_remains() const {
    return !clearing_.empty() || (attempts_.empty() && !orphans_.empty());
  }

  /// The latest time for the next clear_up().
  [[nodiscard]] std::optional<Clock::time_point> clear_up_at() const;

  /// Sends the signals to those processes of the attempts that handle them
  /// (process/signal_receivers.h). If no process does, all get TERM, and any other signal is not
  /// sent. All get KILL, and TERM where the launch says so (term_to_all).
  void signal(std::span<const SignalMessage> messages);
  /// Sends it to all descendants of this process, but for one child that ends with it; 0: there is
  /// none. TERM as signal() sends it, with this grace.
  void signal_everything(int signal, Duration grace, pid_t spared);
  /// Sends TERM to the other processes of attempts where those that handle it have exited, or half
  /// of the grace has passed. A process that got it between fork and exec is one of the others: the
  /// program that it executes does not know of the signal.
  void end_helpers(Clock::time_point now);
  /// The time when end_helpers() has something to do next.
  [[nodiscard]] std::optional<Clock::time_point> helpers_end_at() const;
  /// Lines that people should read about signals.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct Sent {
    int signal = 0;
    Duration grace{0};        ///< Time from TERM to its KILL.
    bool is_request = false;  ///< The attempt is told to end; false: for another reason.
  };

  /// A process that we have started, until it has been reaped. It leads a session and a process
  /// group.
  struct Leader {
    Number attempt = 0;
    std::optional<int> rank;  ///< If the attempt has several ranks.
    pid_t pid = 0;
    std::unique_ptr<Start> start;  ///< Until its program runs.
    Clock::time_point born;
    bool looked_at = false;      ///< It was on its way then.
    Clock::time_point late_at;   ///< The time to report that it still is; max() once reported.
    std::optional<Sent> signal;  ///< For its program when it runs.
    std::optional<model::NotStarted> not_started;  ///< The reason why it never runs.
    std::string errors_path;                       ///< The file of its standard error.
    std::string output_path;                       ///< Its standard output.
    sys::Descriptor pidfd;
  };

  //   add              its programs run      last leader ends       nothing of it is left
  //  ────▶ On its way ───────────────▶ Running ─────────▶ Clearing ─────────────▶ (forgotten)
  //            └──────────── all have failed ───────────────┘ └─ 2 s over: told, ──┘
  //                                                              and still watched
  struct Attempt {
    model::AttemptKey key;
    std::vector<Number> leaders;     ///< Those not ended, in the order of their ranks.
    std::vector<std::int64_t> pids;  ///< All that were started, in the same order.
    std::size_t on_their_way = 0;    ///< The number of these that are on their way.
    bool runs = false;               ///< A program of it does, or did.
    bool lacks_a_rank = false;  ///< One of its programs does not run: it counts as not started.
    Clock::time_point began;    ///< The start of its last program that runs.
    std::optional<model::NotStarted> not_started;  ///< Reason, if not all ranks could start.
    EndReader::Question files;
    std::optional<NotedAttempt> noted;
    MemoryGroup memory_group;  ///< Taken away with the attempt.
    std::optional<PortLease> lease;
    std::string mark;       ///< Its TRAINYARD_TASK_DIR and _ATTEMPT, as environ has them.
    std::string directory;  ///< The task's.
    std::int64_t oom_kills_before = 0;
    bool passes_term_on = false;  ///< model::Launch
    bool term_to_all = false;     ///< model::Launch
    bool killed_by_us = false;
    bool got_fatal_signal = false;             ///< TERM or KILL, and its program did not handle it.
    std::optional<Clock::time_point> kill_at;  ///< For ranks that outlive one that has failed.
    bool lingers = false;                      ///< ClearedUp::lingering had it.
    bool told = false;
    ProcessEnded ended;
    Duration seen_at{0};
    Clock::time_point tell_at_latest;
    std::vector<pid_t> groups;  ///< Of leaders that have ended, perhaps with processes left.
    std::vector<std::int64_t> sessions;  ///< Theirs, and others that its processes have made.
  };

  /// A process whose parent has died, so that it is our child now.
  struct Orphan {
    Number owner = 0;          ///< The attempt that it is of; 0 when it hides that.
    Number owner_at_most = 0;  ///< The last attempt that had been started when it was first seen.
    bool unnamed = false;      ///< Nothing could be read of it that says whose it is, yet.
  };

  using Signals = std::unordered_map<Number, Sent>;
  /// The processes of an attempt that got TERM before their helpers.
  struct Receivers {
    std::vector<sys::ProcessStat> processes;
    Clock::time_point others_at;  ///< The latest time for the others to get it.
    bool have_exited = false;
  };

  static std::uint64_t packed(model::AttemptKey key) {
    return (std::uint64_t{key.task.value} << 32U) | key.attempt;
  }
  [[nodiscard]] model::End how_it_ended(const Attempt& attempt, const Leader& leader,
                                        const ProcessExit& exit) const;
  /// Of those since its start that may have been its own: exactly where it has a group.
  [[nodiscard]] std::int64_t oom_kills_of(const Attempt& attempt) const;
  void add_leader(Number attempt, std::optional<int> rank, Spawned spawned);
  std::optional<RankFailed> take_end(Attempt& attempt, const Leader& leader, model::End end);
  void signal_attempts(const Signals& signals, Clock::time_point now);
  bool signal_those_on_their_way(Attempt& attempt, const Sent& sent);
  void signal_groups(Attempt& attempt, const Sent& sent);
  void signal_group(Attempt& attempt, const Leader& leader, const Sent& sent);
  [[nodiscard]] Signals signal_handlers(const Signals& signals, Clock::time_point now);
  void signal_all_processes(const Signals& signals);
  void note_not_sent(const Attempt& attempt, int signal);
  [[nodiscard]] SignalCandidate candidate(const sys::ProcessStat& process, int signal) const;
  /// The number of the attempt of each process; at most 0 of those that are of none.
  [[nodiscard]] std::vector<int> trees_of_attempts(
      std::span<const sys::ProcessStat> processes) const;
  void is_told_to_end(Attempt& attempt, int signal) const;
  void judge_fatal_signal(Attempt& attempt, const std::optional<ProcessExit>& exit) const;
  void adopt(pid_t pid);
  [[nodiscard]] std::optional<Number> owner_of(const sys::ProcessStat& process) const;
  void forget_empty_groups(Attempt& attempt) const;
  void reap_orphans();
  void find_owners();
  [[nodiscard]] bool has_leftovers(Number number, Attempt& attempt) const;
  void forget(Number number);
  /// Signals the processes of the trees that `own_tree` names.
  void signal_trees(const std::function<int(const sys::ProcessStat&)>& own_tree, int signal);

  Number last_number_ = 0;
  Options options_;
  ExitBoard& board_;
  std::optional<EndNotes> end_notes_;
  std::unordered_map<Number, Attempt> attempts_;
  std::unordered_map<Number, Leader> leaders_;
  std::unordered_map<pid_t, Number> by_pid_;  ///< The leaders.
  std::set<Number> on_their_way_;             ///< Of the leaders.
  std::set<Number> partly_ended_;             ///< Attempts of which some leaders have ended.
  std::unordered_map<std::uint64_t, Number> by_key_;
  std::unordered_map<pid_t, Orphan> orphans_;
  std::set<pid_t> set_aside_;
  std::unordered_map<Number, Receivers> receivers_;
  Clock::time_point receivers_read_at_;  ///< The next time.
  std::vector<std::string> notes_;
  std::vector<Number> clearing_;  ///< Attempts that are not running any more.

  sys::ChildList children_;
  sys::ProcessScan scan_;
  hardware::OomWatch oom_;
  std::int64_t oom_kills_ = 0;  ///< As of `oom_read_at_`.
  Clock::time_point oom_read_at_;
};

}  // namespace trainyard::process
