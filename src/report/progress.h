// The progress line during a run. It receives every turn of the loop and counts; it queries
// nothing, and has no clock but the times of the events.
//
// In a terminal it is one line that is redrawn, with lasting lines above it for failures. Elsewhere
// (a log, a CI job) it is a plain line now and then. Belongs to the thread that runs the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/machine_rooms.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "report/sink.h"

namespace trainyard::report {

/// A task that runs now.
struct RunningTask {
  std::uint32_t group = 0;
  Duration so_far{0};
};

struct Remaining {
  Duration time{0};
  bool at_least = false;  ///< There are groups of which nothing has finished yet.
};

/// The time that a run will still take, from the time that its tasks have taken so far.
class Forecast {
 public:
  /// Adds a group with this number of tasks that have not ended.
  void add_group(int left) { groups_.push_back({.left = left}); }

  /// An attempt that did the work of its task took so long.
  void finished(std::uint32_t group, Duration took);
  /// A task has ended, however it did.
  void ended(std::uint32_t group);
  /// A task that had ended waits or runs again.
  void begins_anew(std::uint32_t group);
  /// The number of tasks that run at once.
  void at_once(int tasks);

  /// Every task that is left takes as long as the mean of its group, as many at once as now (or as
  /// lately, when the last ones run). Nothing while nothing is known.
  [[nodiscard]] std::optional<Remaining> remaining(std::span<const RunningTask> running) const;

 private:
  struct Group {
    int left = 0;
    std::int64_t count = 0;
    Duration sum{0};
  };
  std::vector<Group> groups_;
  int at_once_ = 0;
};

struct ProgressOptions {
  /// "train/lr=1".
  std::move_only_function<std::string(model::TaskIndex) const> name_of;
  /// The log of an attempt to read after a failure, nothing where it printed nothing; may be empty.
  std::move_only_function<std::optional<std::string>(model::AttemptKey)> log_of;
  /// The name for people of a batch that is added to an active run; may be empty: "submission 2".
  std::move_only_function<std::string(std::uint32_t) const> batch_name;
  bool terminal = false;
  std::move_only_function<int()> width;  ///< Columns of the terminal, asked at each drawing.
  Sink write;
};

class ProgressLine {
 public:
  /// Lasting lines about failures, retries and results that are missing or changed; further ones are
  /// only counted, `status` has them.
  static constexpr int kTroubleLinesMax = 100;
  /// Lasting lines about the effect of sharing GPUs.
  static constexpr int kSharingLinesMax = 20;
  /// The maximum number of lasting lines about reservations that other tasks' measurements have
  /// changed.
  static constexpr int kLearnedLinesMax = 20;
  /// In a terminal: ten times a second, and once more each time to take back a reason for waiting.
  static constexpr Duration kRedrawMin{100};
  static constexpr Duration kPlainEvery{10'000};  ///< Elsewhere: a line at most so often, and ...
  static constexpr int kPlainSteps = 10;          ///< ... one at each tenth of the tasks.
  static constexpr Duration kQuietMax{60'000};    ///< Elsewhere, when nothing changes.
  /// The reason why tasks wait is shown once no task has started next to a running one for this
  /// time. Outside a terminal it also comes before the next line is due, if no task runs.
  static constexpr Duration kReasonAfter{5000};

  explicit ProgressLine(ProgressOptions options);

  /// Takes in a turn and shows it.
  void on(const model::Turn& turn);

  /// Shows a lasting line from another part of the program.
  void note(std::string_view line);

  /// Takes the line away (terminal), or leaves a last one. Nothing is shown after that.
  void finish();

 private:
  enum class Doing : std::uint8_t { Running, Retrying, Loaded };
  struct Active {
    Doing doing = Doing::Running;
    std::uint32_t attempt = 0;
    Instant started;
    std::optional<Duration> took;  ///< The time of the attempt, once it has ended.
    Bytes promised;
    std::optional<double> fraction;  ///< The progress that it reported.
  };
  struct Counts {
    int done = 0;
    int running = 0;
    int retrying = 0;
    int on_hold = 0;
    int failed = 0;
    int skipped = 0;
    int stopped = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  /// The groups of a batch: how many, their first names, their tasks.
  struct Added {
    int groups = 0;
    int tasks = 0;
    int finished = 0;  ///< In an earlier execution.
    int not_selected = 0;
    std::vector<std::string> names;  ///< Names and task counts of the first few groups.
  };
  Added add(const model::BatchAdded& batch);
  [[nodiscard]] int count_selected_by_retry(const model::Turn& first) const;
  void see_batches(const model::Turn& turn);
  void see(const model::Event& event);
  void see(const model::Decision& decision);
  void see(const model::TaskChanged& change);
  void see(const model::GroupChanged& change);
  void see(const model::SharingMeasured& change);
  void see(const model::Learned& change);
  void see(const model::SaidOfTask& change);
  void end(const model::TaskChanged& change, std::optional<Duration> took);
  /// Null if another attempt of the task, or none, is active.
  Active* find(model::AttemptKey key);
  void leave(model::TaskIndex task);
  void count_end(model::TaskIndex task, model::Verdict verdict, int by);
  void begin_anew(model::TaskIndex task);
  void hold(model::TaskIndex task);
  /// True if the task was on hold.
  bool release(model::TaskIndex task);
  void see_start(model::TaskIndex task, Bytes memory);
  /// Counts one more trouble. False, having said so once, when there have been too many.
  bool may_tell_trouble();
  void tell_trouble(const model::TaskChanged& change, std::optional<Duration> took);
  void tell_interrupt(const model::InterruptAsked& asked);
  void lasting(std::string_view line);

  [[nodiscard]] int total() const { return total_ - uncounted_; }
  [[nodiscard]] int waiting() const;
  [[nodiscard]] int ended() const;
  [[nodiscard]] std::uint32_t group_of(model::TaskIndex task) const;
  [[nodiscard]] std::string line() const;
  [[nodiscard]] std::string fractions_text() const;
  [[nodiscard]] std::string forecast_text() const;
  [[nodiscard]] std::string reason_text() const;
  [[nodiscard]] static std::string text_of(const Added& added);

  void show();
  void draw();
  void write_plain();
  void count_as_shown();
  [[nodiscard]] int step() const;

  ProgressOptions options_;
  int total_ = 0;
  int uncounted_ = 0;               ///< The number of these that are NOT_SELECTED or NOT_NEEDED.
  std::vector<std::string> names_;  ///< The names of the groups.
  std::vector<bool> was_open_;      ///< By group: it had something to run in this execution.
  std::vector<std::uint32_t> shape_groups_;   ///< The group of each shape.
  std::vector<std::uint32_t> shape_batches_;  ///< And the number of its batch.
  std::vector<std::uint32_t> group_ends_;     ///< The first task after each group.
  Instant now_;
  Counts counts_;
  std::map<model::TaskIndex, Active> active_;
  std::map<model::TaskIndex, model::Verdict> ended_badly_;  ///< The tasks that may start over.
  std::set<model::TaskIndex> on_hold_;                      ///< Not part of the forecast.
  Bytes promised_;
  std::map<model::MachineIndex, Bytes> used_;  ///< By its tasks, at the last sample of it.
  Forecast forecast_;
  std::map<model::ShapeIndex, model::Reason> reasons_;
  model::MachineRooms rooms_;  ///< At the last reading: the numbers of reasons.
  Instant last_start_;
  Instant last_start_beside_;  ///< The last start of a task alongside others.
  int interrupts_ = 0;
  int troubles_told_ = 0;
  int sharing_told_ = 0;
  int learned_told_ = 0;

  bool started_ = false;
  bool finished_ = false;
  bool drawn_ = false;         ///< The terminal's last line is ours.
  bool shows_reason_ = false;  ///< That line said why tasks wait.
  Instant shown_at_;
  Counts shown_;
  int step_shown_ = 0;
};

}  // namespace trainyard::report
