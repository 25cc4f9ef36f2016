// The keeper: a small process that starts and watches all task processes on the yard's behalf.
//
// It is forked off before SQLite, sockets and threads exist, so that no task inherits anything of
// the yard. It is the subreaper of everything the tasks start; when the yard's end of its socket
// closes, however the yard died, it ends them all (TERM, then KILL after a grace; or KILL at once)
// and goes. Behind it stands the guard (process/guard.h): when a keeper dies its tasks end with it,
// and another one takes its place, which is as the first one was.
//
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "sys/event_loop.h"

namespace trainyard::process {

/// The name in `ps`.
inline constexpr const char* kKeeperName = "trainyard-keep";

/// News from the keeper.
struct ProcessStarted {
  model::AttemptKey key;
  std::int64_t pid = 0;              ///< The process of rank 0, if there are several.
  std::vector<std::int64_t> others;  ///< The ranks from 1 on, in order.
  Duration at{0};  ///< The time when the last of them began, on the clock of sys::EventLoop::now().
};
/// A rank of an attempt has failed, the first one; the keeper is ending the others. Not reported
/// for an attempt that is being stopped.
struct RankFailed {
  model::AttemptKey key;
  int rank = 0;
  model::End end;
};
struct ProcessEnded {
  model::AttemptKey key;
  model::End end;  ///< The first failure, if there are several ranks.
  /// From wait4: CPU time of all waited-for descendants, also of several ranks together, and the
  /// peak RSS of the largest of all these processes.
  model::Usage usage;
  /// The part of that peak that may be the keeper's own: a process that executes a program takes
  /// over the mark of the process that it was.
  Bytes mark;
  /// Peak memory of all processes of a launch with its own control group (MemoryGroup::peak).
  Bytes group_peak;
  /// The files that a launch with a place for a result has left; empty if the attempt never ran.
  LeftBehind left;
  /// The largest rank by the kernel's figure; nothing where that may be the keeper's own mark.
  model::RanksAtEnd ranks;
  /// The time when the last process that the keeper had started for it ended, on the same clock;
  /// nothing when none was. For one that ended while the keeper was stopped this is the last moment
  /// at which it is known to have lived.
  std::optional<Duration> at = std::nullopt;
  /// TERM or KILL reached one of its processes while that was running, or it is unknown whether one
  /// did. An exit that the keeper had not seen yet when it sent the signal is not for that signal. Nor
  /// is the exit code of a process that was exiting then, if it did not handle, block or ignore
  /// the signal and the attempt has no ranks.
  bool told_to_end = true;
};
/// Something that people should know, in one line.
struct KeeperNote {
  std::string text;
};
/// It has not answered for silence_max(), or answers again.
struct KeeperHeard {
  bool silent = false;
};
/// The keeper has died, or its guard, and then the keeper is ending everything. No more news comes
/// of earlier requests; requests from now on wait for the one that takes its place.
struct KeeperDied {};
/// A new keeper has taken the place of the dead one. All processes that the dead keeper had started
/// have ended, except those that the kernel could not end.
struct KeeperReplaced {
  std::int64_t pid = 0;
  std::string why;  ///< "the keeper (process 12) was killed by signal 9"
  /// The exits of attempts of one process that the keeper had seen before it died and has not
  /// reported, and exits with 0 that it had not seen.
  std::vector<UnreportedExit> exits = {};
};
/// There is no keeper, and there will be none; nothing more will come. The tasks have ended with
/// the keeper, which has noted how (note_ends()), or have no watcher any more.
struct KeeperGone {
  std::string why;
  /// As in KeeperReplaced. Where the guard is gone as well: for KeeperOptions::adopts_orphans, and
  /// without attempts that had been signalled to end.
  std::vector<UnreportedExit> exits = {};
};
using KeeperNews = std::variant<ProcessStarted, RankFailed, ProcessEnded, KeeperNote, KeeperHeard,
                                KeeperDied, KeeperReplaced, KeeperGone>;

/// The file for ends that the yard cannot write down, and the execution that they belong to.
struct EndNotes {
  std::string path;
  std::int64_t execution = 0;
  std::int64_t started_unix_ms = 0;  ///< Start of that execution, as its journal has it.
  Duration clock_offset{0};  ///< From the clock of sys::EventLoop::now() to that of the run.

  friend bool operator==(const EndNotes&, const EndNotes&) = default;
};
/// The directory of the run to which the file belongs.
inline std::string directory_of(const EndNotes& notes) {
  return notes.path.substr(0, notes.path.rfind('/'));
}

struct KeeperOptions {
  /// The body of a launch that is `forked`. It runs in a process of its own that has all that this
  /// one has when the keeper is forked, also open descriptors, less those that a sys::Descriptor
  /// owns and standard input. Guard and keeper have them open as well, until the yard is gone.
  /// Returns the exit code; an exception ends that process alone. If there is a body, every launch
  /// is forked.
  std::function<int(model::AttemptKey, const model::Launch&)> body;
  /// Fork beside other threads, too. They are not there in the keeper and in what it forks, while
  /// the locks that they hold are; so they are in every keeper that takes its place.
  bool beside_threads = false;
  /// The time that a process that has imported for tasks stays when none of them is left.
  Duration preload_idle_max{30'000};
  /// Between TERM and KILL for the ranks of an attempt of which one has failed, and when the yard
  /// is gone.
  Duration stop_grace{10'000};
  /// The most of that when the keeper has no guard any more: it could be killed, too.
  Duration unguarded_grace{500};
  /// When the yard or the guard has died, tasks get KILL at once, without TERM and grace. A yard
  /// that destroys its Keeper has not died.
  bool kills_when_yard_dies = false;
  /// The keeper keeps this program's standard input and output, for launches that print nowhere
  /// else.
  bool keeps_streams = false;
  /// A descriptor that guard and keeper keep open as long as they live: that of a file which the
  /// yard has locked. -1: none. No task inherits it.
  int held = -1;
  /// For a program of ours: it becomes a subreaper, so that it learns of exits that keeper and guard
  /// have not reported when both are killed. The Keeper belongs to its main thread then. Orphans of
  /// its other children become its children as well: look() reaps them.
  bool adopts_orphans = false;
  /// The time after which a note reports a process that is still on its way to its program.
  Duration late_after{5'000};
  /// The maximum age of the count of the kernel's OOM kills from which a new attempt starts.
  Duration oom_count_age{1'000};
  /// The maximum time for a disk to give the files of an attempt: its result, the end of its
  /// errors.
  Duration result_answer_max{5'000};
  /// Number of keepers in a row that are replaced although they died soon after they were forked.
  int replacements_max = 5;
  /// The time between two looks of the guard at a silent keeper. Its patience is counted in these
  /// looks (process/keeper_patience.h).
  Duration guard_looks_every{1'000};
};

class Keeper {
 public:
  /// Forks the guard and the keeper. Call it first thing: there must be no other thread, unless the
  /// options say so. Tasks find the environment and the resource limits that this process has now,
  /// but can open at least 32 files: a lower limit is raised, or is an error.
  static Result<Keeper> fork(KeeperOptions options);

  Keeper(Keeper&&) noexcept;
  Keeper& operator=(Keeper&&) noexcept;
  /// Closes the socket, so that the keeper ends everything and goes, and waits for it, at most
  /// twice the grace and 5 s. After that no process of a task is left, unless the kernel itself
  /// cannot end it (one that waits for a dead network disk).
  ~Keeper();

  /// Process number of the present keeper, or of the last one.
  [[nodiscard]] std::int64_t pid() const;
  /// Process number of the guard of the keeper (process/guard.h).
  [[nodiscard]] std::int64_t guard_pid() const;
  /// The maximum time for the keeper to answer before it is silent: it is suspended, or the machine
  /// is short of memory or CPU time.
  [[nodiscard]] Duration silence_max() const;
  void set_silence_max(Duration silence_max);

  /// Receives all news of the keeper, from run_once() of `loop`, in order, all that there is in one
  /// call. `loop` must outlive this, and the listener may not destroy it.
  using Listener = std::move_only_function<void(std::span<const KeeperNews>)>;
  void listen(sys::EventLoop& loop, Listener listener);

  /// Starts a process in a session and process group of its own: makes the task directory (and
  /// parents), removes an old result file, makes both log files anew (never through a link, and
  /// plain files alone), standard input /dev/null, all descriptors closed, all signals default, and
  /// exec. The process itself does all this: a disk that does not answer holds up nobody else, and
  /// is told in a KeeperNote after 5 s. Answered by ProcessStarted then ProcessEnded, or by
  /// ProcessEnded with NotStarted that says which of these steps failed and why. ProcessEnded comes
  /// after every process of the attempt is gone: those that are in its session, or descend from it,
  /// or have its TRAINYARD_TASK_DIR and TRAINYARD_ATTEMPT in their environment. Should some of them
  /// outlive SIGKILL by 2 s (a dead network disk), it comes all the same; but while the process
  /// that was started itself cannot be ended, nothing comes.
  ///
  /// A launch with ranks of its own starts one process for each rank, each in a session of its own,
  /// with its number, its share of the GPUs and a port where they meet, which no other launch gets
  /// as long as any process of them is there. When one fails, RankFailed reports it, the others get
  /// TERM, and KILL after the grace; ProcessEnded comes when all are gone.
  ///
  /// Sent in the next run_once(), together with everything else of that turn. Waits only when more
  /// than 32 MiB have gathered.
  void start(model::AttemptKey key, const model::Launch& launch);

  /// From now on the keeper notes the end of each attempt that has a journal number
  /// (process/end_notes.h), and empties the file now and then while all of them are written down.
  /// Keeper and guard have the directory of that file as their working directory then, by which
  /// process/watchers.h finds them. The file stays in that directory, wherever a task moves it.
  void note_ends(const EndNotes& notes);
  void is_written(model::AttemptKey key);

  /// A directory of ours alone for a socket or for logs (*.log), which keeper and guard remove with
  /// what is in it when this process is killed. Best told before it is made.
  void remove_at_end(const std::string& directory);

  /// From now on tasks run until that moment of sys::boot_clock() and no longer, unless this is
  /// called again before: then the keeper ends them all as if this process were gone, and goes.
  /// This holds also where this process is stopped meanwhile. Without it there is no such moment.
  void let_run_until(Duration moment);

  /// Checks whether it still answers; a KeeperHeard reports a change. To be called about once a
  /// second. It is asked when it is stopped, or waits for the kernel, and has then silence_max()
  /// and two looks; one that looks asleep is woken by a question only every silence_max(). The
  /// guard wakes or replaces a keeper that does not answer. Also reaps adopted orphans.
  void look();

  /// Kills it: its guard ends everything at once, and it is not replaced. For one that is silent.
  void kill();

  /// Sends a signal to the processes of the attempt that handle it, those in sessions of their own
  /// included, but not to helpers that these have started (process/signal_receivers.h). After TERM
  /// the others get it, too, when these have exited or half of `grace` has passed, which is the
  /// time until the KILL of the caller. Where no process handles it TERM goes to all at once; any
  /// other signal is not sent, which a KeeperNote says. KILL goes to all. An attempt that has
  /// ended, or is not known, is left alone; one that waits to be forked ends of TERM and KILL.
  void signal(model::AttemptKey key, int signal, Duration grace = Duration{0});

 private:
  struct State;
  explicit Keeper(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::process
