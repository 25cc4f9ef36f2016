// The facts about all tasks of a group that are needed before the first row of its table: the
// columns, the best task, the time it took. Small whatever the number of tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"
#include "report/other_code.h"
#include "report/replaced_numbers.h"
#include "report/result_fields.h"

namespace trainyard::report {

/// The maximum number of result columns of a table.
constexpr std::size_t kResultColumnsMax = 6;
/// The number of warnings about results that are shown below a table.
constexpr std::size_t kWarningsShown = 5;

class GroupDigest {
 public:
  explicit GroupDigest(journal::GroupRow group) : group_(std::move(group)) {}

  void look_at(const journal::TaskRow& row);

  [[nodiscard]] const journal::GroupRow& group() const { return group_; }

  /// The keys of the matrix, where every task has the same and its id says no more than they do
  /// ("lr=0.1,seed=2"): then their values are columns and the id is not. Else empty.
  [[nodiscard]] const std::vector<std::string>& matrix_keys() const { return matrix_keys_; }

  [[nodiscard]] std::vector<FieldColumn> result_columns() const {
    return columns_.first(kResultColumnsMax);
  }
  /// Whether results contain more than these columns show, warnings included.
  [[nodiscard]] bool more_than_columns() const {
    return warnings_ > 0 || columns_.more_than(kResultColumnsMax);
  }
  /// The number of results that are missing or changed.
  [[nodiscard]] int warnings() const { return warnings_; }
  /// The warnings among them about one number that is NaN or infinite.
  [[nodiscard]] const ReplacedNumbers& replaced_numbers() const { return replaced_; }
  /// The first few tasks with another warning, without their results.
  [[nodiscard]] const std::vector<journal::TaskRow>& first_warned() const { return first_warned_; }
  /// The best task among those that have finished and were not edited since.
  [[nodiscard]] std::optional<Best> best() const;
  /// The scores among which best() does not choose; empty where there is a best task or no score.
  [[nodiscard]] std::vector<std::string> rival_scores() const { return best_.rivals(); }
  /// The names of the scalar fields for which result_columns() has no room.
  [[nodiscard]] std::vector<std::string> fields_left_out() const {
    return columns_.beyond(kResultColumnsMax);
  }
  /// The first few fields that are text where a number was to be expected.
  [[nodiscard]] std::vector<TextField> text_fields() const { return columns_.texts(); }
  /// The fields that are lists or objects, and so no columns.
  [[nodiscard]] const std::vector<std::string>& nested_fields() const { return columns_.nested(); }
  /// The task that did better before its command was edited; nothing if none did.
  [[nodiscard]] std::optional<Best> better_before_edit() const;

  /// Whether any of its tasks loaded before it trained.
  [[nodiscard]] bool stages() const { return stages_; }

  /// The number of tasks that finished before the job file was edited.
  [[nodiscard]] int edited() const { return edited_; }

  /// The number of tasks that finished before the tasks that they need ran again.
  [[nodiscard]] int out_of_date() const { return out_of_date_; }

  /// The tasks that ran other code than the tasks that started last.
  [[nodiscard]] const OtherCode& other_code() const { return other_code_; }

  /// Whether any of its tasks had a GPU.
  [[nodiscard]] bool any_gpus() const { return gpus_; }

  /// Whether any of its tasks was capped to less than all of a GPU.
  [[nodiscard]] bool any_capped() const { return capped_; }

  /// From the first start to the last end of all attempts; nothing while tasks run or wait.
  [[nodiscard]] std::optional<Duration> took() const;

 private:
  void look_at_matrix(const journal::TaskRow& row);

  journal::GroupRow group_;
  bool first_row_ = true;
  bool stages_ = false;
  bool gpus_ = false;
  bool capped_ = false;
  int edited_ = 0;
  int out_of_date_ = 0;
  OtherCode other_code_;
  int warnings_ = 0;
  ReplacedNumbers replaced_;
  std::vector<journal::TaskRow> first_warned_;
  std::vector<std::string> matrix_keys_;
  FieldColumns columns_;
  BestSoFar best_;
  BestSoFar best_of_edited_;
  std::optional<Instant> started_;
  std::optional<Instant> ended_;
};

/// From its start to its end, or to `now` while it runs; nothing when it never ran.
std::optional<Duration> duration_of(const journal::TaskRow& row,
                                    std::optional<Instant> now = std::nullopt);

/// The time of all attempts of a task, the last one until `now` while it runs, without the time
/// between them; nothing for a task that never started, and without `now` for one that runs.
std::optional<Duration> time_of_attempts(const journal::TaskRow& row,
                                         std::optional<Instant> now = std::nullopt);

/// The status of a task for people: word_for(), with FAILED before it for a failure. After it comes
/// ", edited" if the job file has changed the task since, ", out of date" if the tasks that it
/// needs ran again since, ", other code" if other code was started since.
std::string standing_text(const journal::TaskRow& row);

/// "1 of 2 tasks ran an earlier command: 'trainyard run --resume runs/x --rerun-changed' runs it
/// again"; empty where `edited` is 0.
std::string edited_text(int edited, int tasks, std::string_view run_directory);

/// The word for a task that is out of date.
constexpr const char* kOutOfDate = "out of date";
/// "2 tasks finished before what they need ran again"; empty for none.
std::string out_of_date_text(int tasks);
/// "this run started before run 2, which it needs, ran again: 'trainyard retry 3 --cascade' runs it
/// again", with the name of the run for "this run", and the cure. `needs` are not empty.
std::string needs_run_again_text(std::string_view run, const std::vector<std::uint32_t>& needs,
                                 std::string_view cure);
/// "its tasks left 2 running processes (4711, 4712)", with at most 10 pids. `pids`, of a run that
/// died, are not empty.
std::string processes_left_text(const std::vector<std::int64_t>& pids);

/// The warning about the result of a task, with the path of the file as users reach it:
/// "runs/x/train/a/result.1.json: is empty: result discarded".
std::string result_warning(const journal::TaskRow& row, std::string_view run_directory);

/// Whether an attempt of the task runs: only then has the task reserved something.
bool has_reserved(const journal::TaskRow& row);

/// Whether its last attempt has ended, and the delay of the next one runs.
bool waits_for_retry(const journal::TaskRow& row);

/// Whether the delay of its next attempt runs at `now`: it waits for nothing else.
bool delay_runs(const journal::TaskRow& row, Instant now);

/// The message of the task; in that of a retry which it waits for, the time that is left. A task on
/// hold has no such time.
std::string message_at(const journal::TaskRow& row, std::optional<Instant> now);

/// The number of starts: "2"; "1 (3 trainings)" if one of its processes trained more than once.
std::string attempts_text(const journal::TaskRow& row);

/// The memory cap on each of its GPUs: "9 GB"; "no": no way to cap it was found, "-": it was not to
/// be capped.
std::string cap_text(const journal::TaskRow& row);

/// "2 GB of memory and 5 GB of GPU memory": those of the two that are learned (not 0).
std::string learned_text(Bytes memory, Bytes gpu_memory);
/// "3 tasks that succeeded"; "other tasks of its group" if none is of its own kind.
std::string taught_by_text(int tasks);

/// Its memory peak: "2 GB"; "at least 2 GB" if that was its largest process alone; "-" if it was
/// not measured.
std::string memory_peak_text(const journal::TaskRow& row);

/// "17 finished, 1 failed in 2m5s; 3 skipped": the numbers that are not 0, the most important first.
/// The time is that of the tasks that ran.
std::string counts_text(const GroupDigest& digest);

/// The word for the phase of a group, in tables and in JSON: "WAITING" while all its tasks that are
/// to run are WAITING, for another group or for their turn; not "FINISHED" where none was to run.
std::string_view shown_phase(const journal::GroupRow& group);

/// The reason why a group was skipped, with a note if the groups that it needs have finished since.
/// `why` is its message or its why_skipped, and may be empty. The command to type is named only
/// with a `run_directory`, as the user reaches it: a report can be read anywhere.
std::string cause_text(const journal::GroupRow& group, const std::string& why,
                       std::string_view run_directory = {});

// A task or group that is running in the journal of a run that is not active is lost: --resume will
// record that, and start it again. The yard has died, or could not write to the journal at its end.
void mark_lost(journal::TaskRow& row);
void mark_lost(journal::GroupRow& row);

}  // namespace trainyard::report
