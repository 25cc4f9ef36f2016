// The process that serves a user's queue on a host. It starts submissions as runs, and decides what
// happens when they end. One process at a time serves a queue: it has the lock of the directory.
//
// The runs are separate processes, each with its yard and its keeper, and continue without it. The
// next process that serves the queue finds them active, or reads how they ended, and resumes those
// that died. So the server may be killed at any moment.
//
// The server reads journals of runs and writes its log through QueueServer::Program.
//
// A run that ended incomplete (exit code 75), or that dies again and again, stays in the queue,
// which resumes it after growing pauses (Setbacks).
//
// Belongs to the thread that calls serve().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "queue/queue_files.h"
#include "queue/rules/next_step.h"
#include "queue/rules/queue_choice.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/start_program.h"

namespace trainyard::queue {

/// The environment variable of a run that a queue has started.
constexpr const char* kFromQueue = "TRAINYARD_FROM_QUEUE";
/// The hidden command by which a queue posts that a submission did not start: post-not-started
/// --reason=WHY, and then the arguments of `run`.
constexpr const char* kPostNotStarted = "post-not-started";

// The words that the server receives.
constexpr std::string_view kLookWord =
    "look\n";  ///< A submission has changed, or the queue drains or no longer drains.
constexpr std::string_view kDownWord = "down\n";  ///< The queue goes down if no run is active.
constexpr std::string_view kNowWord =
    "now\n";  ///< Active runs are stopped, and the queue goes down.

/// Notifies of submissions that were refused or skipped: a separate process of our program posts
/// each to the `notify` of its job, so that no web server blocks the queue.
class NoStartNews {
 public:
  /// The number of processes that post at a time, and the number that may wait for that.
  static constexpr std::size_t kPostingMax = 8;
  static constexpr std::size_t kWaitingMax = 100;

  /// `loop` must outlive the object.
  explicit NoStartNews(sys::EventLoop& loop) : loop_(loop) {}

  /// Starts the process, now or later; its output goes to the file `log`. False if too many wait:
  /// then the submission is not reported.
  [[nodiscard]] bool post(sys::ProgramToStart program, std::string log);

 private:
  struct Waiting {
    sys::ProgramToStart program;
    std::string log;
  };
  void start_next();
  void see_end(std::int64_t pid);

  sys::EventLoop& loop_;
  std::deque<Waiting> waiting_;
  std::map<std::int64_t, sys::StartedProgram> posting_;  ///< By process id.
};

/// The active runs of a queue, each a process that is watched: what it reports, and when it exits. A
/// run is active from the call that adds it until its process has exited, which is reported once.
class ActiveRuns {
 public:
  struct EndedRun {
    std::uint32_t number = 0;
    std::string run_directory;
    std::optional<sys::ProgramEnd> process;  ///< Nothing: it was no child.
  };
  /// Both may add runs.
  struct Listener {
    std::function<void(std::uint32_t number)> see_words;  ///< The run has started.
    std::function<void(const EndedRun& run)> see_end;
  };

  /// `loop` must outlive the object.
  ActiveRuns(sys::EventLoop& loop, Listener listener)
      : loop_(loop), listener_(std::move(listener)) {}
  ActiveRuns(ActiveRuns&&) = delete;
  ActiveRuns& operator=(ActiveRuns&&) = delete;

  /// Watches a run that was started as a child of this process.
  void add(std::uint32_t number, const std::string& run_directory,
           const QueuedSubmission& submission, sys::StartedProgram started);
  /// Watches a run that another process has started: an earlier queue, or the user. False if it is
  /// not active.
  bool adopt(std::uint32_t number, const std::string& run_directory);

  [[nodiscard]] bool contains(std::uint32_t number) const { return runs_.contains(number); }
  [[nodiscard]] bool is_empty() const { return runs_.empty(); }
  [[nodiscard]] QueueLoad load() const;

  /// Sends SIGINT to all.
  void interrupt() const;
  /// Polls the runs that cannot be watched. False if there are none.
  bool poll_unwatched();

 private:
  struct ActiveRun {
    std::string run_directory;
    std::int64_t pid = 0;
    bool is_child = false;
    sys::Descriptor ended;  ///< Closed for a process that cannot be watched: it is polled.
    sys::Descriptor words;  ///< The words of a child process.
    QueuedSubmission submission;
    /// The room that its tasks wait for; nothing if none waits for room, or it is not known.
    std::optional<RoomNeed> need;
  };
  void watch(std::uint32_t number, ActiveRun run);
  void read_words(std::uint32_t number);
  void see_end(std::uint32_t number);

  sys::EventLoop& loop_;
  Listener listener_;
  std::map<std::uint32_t, ActiveRun> runs_;
};

class QueueServer {
 public:
  /// The rest of the program, which reads the journals of runs. Runs are named by their
  /// directories.
  struct Program {
    std::function<Result<run::RunOutcome>(const std::string& run)> outcome_of;
    /// The number of finished tasks.
    std::function<int(const std::string& run)> count_finished;
    /// Whether runs that the run needs ran again after it.
    std::function<Result<bool>(const std::string& run)> is_out_of_date;
    std::function<Fate(const QueueFiles& files, std::uint32_t number)> fate_of;
    std::function<void(const std::string& text)> note;  ///< For the log of the queue.
  };

  /// `words` is the pipe from which the server receives words.
  QueueServer(QueueFiles files, sys::RunLock lock, sys::Descriptor words, Program program);

  /// Serves the queue until a word or TERM stops the server; TERM leaves all runs active.
  void serve();

 private:
  void take_up();
  void read_words();
  void look();
  void begin_next();
  [[nodiscard]] Fate fate_of(std::uint32_t number);
  void carry_out(std::uint32_t number, const std::string& run_directory, NextStep step);
  void start(std::uint32_t number, StartNow how);
  bool adopt(std::uint32_t number, const std::string& run_directory);
  void set_aside(std::uint32_t number, const std::string& run_directory, SetAside step);
  void resume_later(std::uint32_t number);
  void resume(std::uint32_t number);
  void see_words(std::uint32_t number);
  void see_end(const ActiveRuns::EndedRun& run);
  [[nodiscard]] Result<bool> is_to_run_again(const Submission& submission) const;
  void end(std::uint32_t number, const std::string& run_directory, EndedSubmission ended);
  void notify_of_no_start(std::uint32_t number, const std::string& why);
  void look_often();
  void look_again_later();

  QueueFiles files_;
  sys::RunLock lock_;
  sys::Descriptor words_;
  Program program_;
  sys::EventLoop loop_;
  NoStartNews news_{loop_};
  ActiveRuns active_{loop_,
                     {.see_words = [this](std::uint32_t number) { see_words(number); },
                      .see_end = [this](const ActiveRuns::EndedRun& run) { see_end(run); }}};
  /// Waiting submissions, read once.
  std::map<std::uint32_t, QueuedSubmission> waiting_;
  /// Ends that could not be written yet, by the number of the submission. Commands that wait for a
  /// submission are answered when its end is written.
  std::map<std::uint32_t, EndedSubmission> unwritten_ends_;
  Setbacks setbacks_;
  bool leaves_ = false;       ///< The server has interrupted the active runs.
  bool over_ = false;         ///< serve() returns.
  bool looks_often_ = false;  ///< Something may change without an event.
  sys::EventLoop::TimerId next_look_ = 0;
};

}  // namespace trainyard::queue
