// Reads the files that attempts have left, in a process of its own: results, and the end of their
// errors. Writes down which rank of several failed, where users will look. A disk that does not
// answer delays that process alone.
//
//   ask ──▶ waits ──▶ being read ──▶ its answer; or after answer_max that there is none, and
//             ▲           │          another process for those that wait
//             └───────────┘ the process died: another one
//
// In the keeper only, one thread. One file at a time, and none while there is no room for its
// content.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/time.h"
#include "model/launch.h"
#include "sys/descriptor.h"
#include "sys/packing.h"

namespace trainyard::process {

/// The content of the files that an attempt left, as it was found: it is not checked.
struct LeftBehind {
  std::optional<std::string> result;  ///< The whole file; nothing when there is none.
  std::string trouble;                ///< The reason why it could not be read, for users.
  /// The end of its standard error when it ended badly; where that is empty, the last lines of its
  /// standard output.
  std::string errors;
  bool errors_are_output = false;  ///< They are from its standard output.
  /// Whether its checkpoint directory has an entry from before its start, when it ended badly. End
  /// notes do not have it.
  bool has_checkpoint = false;

  friend bool operator==(const LeftBehind&, const LeftBehind&) = default;
};

class EndReader {
 public:
  using Clock = std::chrono::steady_clock;

  /// The maximum time for an answer after the last one did not come: it may be the same disk.
  static constexpr Duration kNextAnswerMax{1'000};
  /// The maximum number of processes that may die of the same question.
  static constexpr int kTriesMax = 2;

  struct Options {
    /// Tells about() when the descriptor is readable, until it is closed.
    std::function<bool(const sys::Descriptor&)> watch;
    /// A session of ours that is there from now on, or no longer.
    std::function<void(pid_t, bool)> session;
    /// Whether there is room for another answer. If not, go_on() is called later.
    std::function<bool()> has_room;
    Duration answer_max{5'000};  ///< Maximum time for an answer.
  };
  explicit EndReader(Options options)
      : options_(std::move(options)), answer_max_(options_.answer_max) {}
  EndReader(EndReader&&) = delete;
  EndReader& operator=(EndReader&&) = delete;
  ~EndReader();

  struct Question {
    std::string result_path;
    std::string result_copy_path;  ///< The result is copied to this file. Empty: nowhere.
    std::string errors_path;       ///< Empty: not asked for.
    /// The standard output, whose last wire::kOutputTailLines count as errors where `errors_path`
    /// is empty. Empty: nothing is read instead.
    std::string output_path;
    std::string checkpoint_directory;  ///< Looked into where `errors_path` is asked for.
    Duration started{0};               ///< When the attempt started, by sys::EventLoop::now().
    /// For a rank that failed, a line for users that is appended to `told_path`, followed by the
    /// end of the rank's own log if that is another file. Empty: nothing is written.
    std::string told;
    std::string told_path;
    /// The head of a note of this end, and the file to which the note is written with the answer
    /// (process/end_notes.h). No head: the file is removed. No path: no note.
    std::string note;
    std::string note_path;
    /// The directory up to which links on the way to the files are followed
    /// (model::Launch::followed_directory): the task may have put a link below it, and the files
    /// beyond that are not its own. Empty: all links are followed.
    std::string followed_directory;

    /// The question about an attempt of this launch, which starts now, without a note.
    static Question of(const model::Launch& launch);
  };
  struct Answer {
    LeftBehind left;
    /// The time when the disk had the result, on the clock of sys::EventLoop::now().
    std::optional<Duration> written_at;
    bool is_noted = false;  ///< The note is in its file.
  };
  /// Does in this process what a question asks for: waits for the disk.
  static Answer read(const Question& question);
  /// `answer` is called once, from ask(), about() or look_at_the_clock().
  void ask(Question question, std::move_only_function<void(Answer)> answer);

  /// The process that reads, or 0.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// No answer is pending.
  [[nodiscard]] bool is_idle() const { return waiting_.empty(); }
  /// There may be room again.
  void go_on() { ask_next(); }
  /// Something can be heard.
  void about();
  /// Gives up what has not been answered in time, and looks for the answer before.
  void look_at_the_clock(Clock::time_point now);
  /// Extends the deadline of the answer by the time in which this process could not read it.
  void wait_longer(Clock::duration away) { until_ += away; }
  [[nodiscard]] std::optional<Clock::time_point> wake_at() const;

 private:
  struct Asked {
    Question question;
    std::move_only_function<void(Answer)> answer;
    int tries = 0;  ///< Processes that died on it.
  };

  bool start();
  void ask_next();
  void leave();
  void reap();
  void has_died();
  void give_up_first(const std::string& why);

  Options options_;
  pid_t pid_ = 0;  ///< 0: there is none yet.
  sys::Descriptor socket_;
  sys::PackedReader answers_{0};
  std::deque<Asked> waiting_;  ///< The first has been asked if the process is busy.
  bool busy_ = false;
  Clock::time_point until_;  ///< While it is busy.
  Duration answer_max_;
  std::vector<pid_t> left_;  ///< Processes of no use that have not ended yet.
};

/// A question in a form in which another process can take it.
void append_question(sys::Packing& packing, const EndReader::Question& question);
EndReader::Question question_from(sys::Unpacking& packed);

}  // namespace trainyard::process
