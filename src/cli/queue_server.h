// The process that serves a user's queue on a host: begins its submissions as runs, and hears how
// they end. There is one at a time, which has the lock of the queue's directory.
//
// The runs are processes of their own, each with its yard and its keeper, and go on without it.
// Whoever serves the queue next finds them at work, or finds how they ended, and goes on with those
// that died. So it may be killed at any moment.
//
// A run for which no task is to blame (exit code 75), or that dies again and again, stays in the
// queue, which resumes it after growing pauses (schedule::IncompleteRun).
//
// Belongs to one thread, which it serves on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/no_start_news.h"
#include "run/queue_files.h"
#include "schedule/queue_choice.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/files.h"

namespace trainyard::cli {

// What it is told.
constexpr std::string_view kLookWord =
    "look\n";  ///< A submission, or whether it drains, has changed.
constexpr std::string_view kDownWord = "down\n";  ///< It goes, where nothing is at work.
constexpr std::string_view kNowWord = "now\n";    ///< What is at work is ended, and it goes.

class QueueServer {
 public:
  /// `words` is the pipe by which it is told.
  QueueServer(run::QueueFiles files, sys::RunLock lock, sys::Descriptor words);
  QueueServer(QueueServer&&) = delete;
  QueueServer& operator=(QueueServer&&) = delete;
  ~QueueServer();

  /// Until it is told to go, by a word or by TERM, which leaves all at work.
  void serve();

 private:
  /// A submission that has become a run.
  struct AtWork {
    std::string run_directory;
    std::int64_t pid = 0;
    bool is_child = false;
    sys::Descriptor ended;  ///< Closed for one that nobody can watch: it is looked at.
    sys::Descriptor words;  ///< Of a child.
    schedule::QueuedSubmission submission;
    /// What tasks of it wait for; nothing where none waits for room, or nobody reports it.
    std::optional<schedule::RoomNeed> need;
    int deaths = 0;
  };
  enum class How : std::uint8_t { Begin, GoOn };
  /// How a run ended that is to be resumed.
  struct IncompleteEnd {
    std::uint32_t number = 0;
    std::string run_directory;
    bool began = true;  ///< As schedule::IncompleteRun has it.
    std::string why;
  };

  void take_up();
  void hear();
  void hear(std::string_view word);
  void look();
  void begin_next();
  [[nodiscard]] schedule::Fate fate_of(std::uint32_t number);
  [[nodiscard]] schedule::QueueLoad load() const;
  void start(std::uint32_t number, How how, int deaths);
  void has_started(std::uint32_t number);
  [[nodiscard]] bool cannot_start_more() const;
  bool adopt(std::uint32_t number, const std::string& run_directory);
  void set_aside(IncompleteEnd ended);
  void resume_later(std::uint32_t number);
  void resume(std::uint32_t number);
  void watch(std::uint32_t number);
  void hear_run(std::uint32_t number);
  void see_end(std::uint32_t number);
  void judge(std::uint32_t number, const AtWork& run);
  void refuse(std::uint32_t number, const std::string& run_directory, std::string why);
  void refuse(std::uint32_t number, const std::string& run_directory, const Error& error);
  void end(run::EndedSubmission ended);
  void tell_of_no_start(std::uint32_t number, const std::string& why);
  void write_ends();
  void look_at_unwatched();
  void look_often();
  void look_again_later();
  void end_all();

  run::QueueFiles files_;
  sys::RunLock lock_;
  sys::Descriptor words_;
  sys::EventLoop loop_;
  NoStartNews news_{loop_};
  std::map<std::uint32_t, AtWork> at_work_;
  /// What waits, as it was read once.
  std::map<std::uint32_t, schedule::QueuedSubmission> waiting_;
  /// Ends that could not be written yet, by the number of the submission. Commands that wait for a
  /// submission are answered when its end is written.
  std::map<std::uint32_t, run::EndedSubmission> unwritten_ends_;
  /// Runs that ended incomplete: they wait to be resumed, or are active again.
  std::map<std::uint32_t, schedule::IncompleteRun> incomplete_;
  bool leaves_ = false;  ///< What is at work has been told to end.
  bool over_ = false;
  bool looks_often_ = false;  ///< Something may change that nobody tells.
  sys::EventLoop::TimerId next_look_ = 0;
};

/// Starts it, in a process of its own, where nobody serves the queue yet. True where it was.
Result<bool> start_queue(const run::QueueFiles& files);

}  // namespace trainyard::cli
