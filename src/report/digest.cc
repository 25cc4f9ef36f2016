#include "report/digest.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/score.h"
#include "model/command.h"
#include "model/status.h"
#include "report/help_line.h"
#include "report/terminal_text.h"
#include "schedule/another_try.h"
#include "text/shell_quote.h"

namespace trainyard::report {

void GroupDigest::look_at(const journal::TaskRow& row) {
  look_at_matrix(row);
  stages_ = stages_ || row.times.load_numbers > 0;
  gpus_ = gpus_ || !row.gpus.empty();
  capped_ = capped_ || row.gpu_memory_max > Bytes{};
  edited_ += row.edited ? 1 : 0;
  out_of_date_ += row.out_of_date ? 1 : 0;
  other_code_.look_at(row);
  if (row.first_started && (!started_ || *row.first_started < *started_)) {
    started_ = row.first_started;
  }
  if (row.ended && (!ended_ || *row.ended > *ended_)) ended_ = row.ended;
  if (!row.warning.empty()) {
    ++warnings_;
    if (!replaced_.look_at(row.warning) && first_warned_.size() < kWarningsShown) {
      first_warned_.push_back(row);
      first_warned_.back().result.clear();
    }
  }
  if (row.result.empty()) return;
  const Fields fields = read_fields(row.result);
  columns_.look_at(fields);
  if (row.standing.verdict != model::Verdict::Finished) return;
  (row.edited ? best_of_edited_ : best_).look_at(row.id, fields);
}

std::optional<Best> GroupDigest::best() const {
  return best_.best(columns_.first(FieldColumns::kKeysMax));
}

std::optional<Best> GroupDigest::better_before_edit() const {
  std::optional<Best> before = best_of_edited_.best(columns_.first(FieldColumns::kKeysMax));
  const std::optional<Best> now = best();
  if (!before || !now || before->key != now->key) return before;
  const bool more = score_direction(now->key) == Better::More;
  const bool better = more ? before->value > now->value : before->value < now->value;
  return better ? before : std::nullopt;
}

void GroupDigest::look_at_matrix(const journal::TaskRow& row) {
  if (!first_row_ && matrix_keys_.empty()) return;
  std::string id;
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.matrix) {
    id += fmt::format("{}{}={}", id.empty() ? "" : ",", key, value);
    keys.push_back(key);
  }
  if (first_row_) matrix_keys_ = keys;
  first_row_ = false;
  if (id != row.id || keys != matrix_keys_) matrix_keys_.clear();
}

std::optional<Duration> GroupDigest::took() const {
  if (group_.running + group_.retrying + group_.waiting > 0) return std::nullopt;
  if (!started_ || !ended_ || *ended_ < *started_) return std::nullopt;
  return *ended_ - *started_;
}

bool has_reserved(const journal::TaskRow& row) {
  return row.standing.status >= Status::Available && row.standing.status <= Status::Finished;
}

bool waits_for_retry(const journal::TaskRow& row) {
  return row.standing.status == Status::Interrupt && row.standing.verdict == model::Verdict::None;
}

std::optional<Duration> duration_of(const journal::TaskRow& row, std::optional<Instant> now) {
  const std::optional<Instant> until = row.ended ? row.ended : now;
  if (!row.started || !until) return std::nullopt;
  return std::max(*until - *row.started, Duration{0});
}

std::optional<Duration> time_of_attempts(const journal::TaskRow& row, std::optional<Instant> now) {
  if (!row.first_started || (!row.ended && !now)) return std::nullopt;
  return row.earlier_attempts + duration_of(row, now).value_or(Duration{0});
}

std::string result_warning(const journal::TaskRow& row, std::string_view run_directory) {
  // Other warnings are about files on another machine.
  if (!row.warning.starts_with("result.")) return row.warning;
  return fmt::format("{}/{}/{}", run_directory, row.directory, row.warning);
}

std::string message_at(const journal::TaskRow& row, std::optional<Instant> now) {
  if (!waits_for_retry(row) || !row.ended || !now) return row.message;
  return schedule::with_time_left(row.message,
                                  row.standing.on_hold ? Duration::max() : *now - *row.ended);
}

bool delay_runs(const journal::TaskRow& row, Instant now) {
  return waits_for_retry(row) && !row.standing.on_hold && row.retry_at && now < *row.retry_at;
}

std::string attempts_text(const journal::TaskRow& row) {
  if (row.attempt == 0) return "-";
  const auto trained = static_cast<std::uint32_t>(std::max(row.times.train_numbers, 0));
  return trained > row.attempt ? fmt::format("{} ({} trainings)", row.attempt, trained)
                               : fmt::format("{}", row.attempt);
}

std::string cap_text(const journal::TaskRow& row) {
  if (row.gpu_memory_max == Bytes{}) return "-";
  return row.capped_by.empty() ? "none" : to_text(row.gpu_memory_max);
}

std::string learned_text(Bytes memory, Bytes gpu_memory) {
  std::string text;
  if (memory > Bytes{}) text = to_text(memory) + " of memory";
  if (gpu_memory > Bytes{}) {
    text += fmt::format("{}{} of GPU memory", text.empty() ? "" : " and ", to_text(gpu_memory));
  }
  return text;
}

std::string taught_by_text(int tasks) {
  return tasks == 0 ? "other tasks of its group" : counted(tasks, "task") + " that succeeded";
}

std::string memory_peak_text(const journal::TaskRow& row) {
  if (row.memory_peak == Bytes{}) return "-";
  return (row.memory_at_least ? "at least " : "") + to_text(row.memory_peak);
}

std::string standing_text(const journal::TaskRow& row) {
  std::string word = model::word_for(row.standing);
  if (row.edited) {
    word += ", edited";
  } else if (row.standing.verdict == model::Verdict::Failed) {
    word = "FAILED " + word;
  }
  if (row.out_of_date) word += fmt::format(", {}", kOutOfDate);
  return row.newer_code.empty() ? word : fmt::format("{}, {}", word, kOtherCode);
}

std::string edited_text(int edited, int tasks, std::string_view run_directory) {
  if (edited == 0) return {};
  const std::string resume =
      fmt::format("trainyard run --resume {} --rerun-changed", text::shell_word(run_directory));
  return fmt::format("{} of {} ran an earlier command: {}", with_commas(edited),
                     counted(tasks, "task"), runs_again_text(resume, edited));
}

std::string out_of_date_text(int tasks) {
  if (tasks == 0) return {};
  return fmt::format("{} finished before what {} ran again", counted(tasks, "task"),
                     tasks == 1 ? "it needs" : "they need");
}

std::string needs_run_again_text(std::string_view run, const std::vector<std::uint32_t>& needs,
                                 std::string_view cure) {
  return fmt::format("{} started before run{} {}, which it needs, ran again: {}", run,
                     needs.size() == 1 ? "" : "s", fmt::join(needs, ", "), cure);
}

std::string processes_left_text(const std::vector<std::int64_t>& pids) {
  constexpr std::size_t kPidsShown = 10;
  const std::size_t shown = std::min(pids.size(), kPidsShown);
  const std::string more =
      pids.size() > shown ? fmt::format(" and {} more", pids.size() - shown) : "";
  return fmt::format("its tasks left {} running process{} ({}{})", pids.size(),
                     pids.size() == 1 ? "" : "es", fmt::join(std::span(pids).first(shown), ", "),
                     more);
}

std::string counts_text(const GroupDigest& digest) {
  using Count = std::pair<int, std::string_view>;
  const journal::GroupRow& group = digest.group();
  const std::array<Count, 7> run{{{group.finished, "finished"},
                                  {group.failed, "failed"},
                                  {group.stopped, "stopped"},
                                  {group.running, "running"},
                                  {group.lost, "lost"},
                                  {group.retrying, "retrying"},
                                  {group.waiting, "waiting"}}};
  const std::array<Count, 3> not_run{{{group.skipped, "skipped"},
                                      {group.not_needed, "not needed"},
                                      {group.not_selected, "not selected"}}};
  const auto joined = [](std::span<const Count> counts) {
    std::string text;
    for (const auto& [count, word] : counts) {
      if (count == 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_commas(count), word);
    }
    return text;
  };
  std::string text = joined(run);
  const std::string others = joined(not_run);
  const std::optional<Duration> took = text.empty() ? std::nullopt : digest.took();
  if (took) text += " in " + to_text(*took);
  if (!text.empty() && !others.empty()) text += took ? "; " : ", ";
  return text + others;
}

void mark_lost(journal::TaskRow& row) {
  const Status status = row.standing.status;
  const bool has_process = status != Status::Init && status != Status::Interrupt;
  if (row.standing.verdict != model::Verdict::None || !has_process || row.attempt == 0) return;
  row.standing.failure = model::Failure::Lost;
  row.pid = 0;
}

void mark_lost(journal::GroupRow& row) {
  row.lost += std::exchange(row.running, 0);
  row.died = row.phase == model::GroupPhase::Running;
}

std::string cause_text(const journal::GroupRow& group, const std::string& why,
                       std::string_view run_directory) {
  if (why.empty() || !group.needs_finished_since) return why;
  const std::string resuming =
      run_directory.empty()
          ? "resuming the run"
          : text::quoted_command("trainyard run --resume " + text::shell_word(run_directory));
  return fmt::format("{}; what was needed has finished since: {} runs the skipped tasks", why,
                     resuming);
}

namespace {

std::string_view word_for_phase(model::GroupPhase phase) {
  switch (phase) {
    case model::GroupPhase::Blocked:
      return "WAITING";
    case model::GroupPhase::Running:
      return "RUNNING";
    case model::GroupPhase::Finished:
      return "FINISHED";
    case model::GroupPhase::Failed:
      return "FAILED";
    case model::GroupPhase::Skipped:
      return "SKIPPED";
    case model::GroupPhase::Stopped:
      return "STOPPED";
  }
  return "UNKNOWN";
}

}  // namespace

std::string_view shown_phase(const journal::GroupRow& group) {
  if (group.died) return "DIED";
  const int not_to_run = group.skipped + group.not_needed + group.not_selected;
  const bool blocked = group.phase == model::GroupPhase::Blocked;
  // All that waited for other groups were killed: the phase changes when those groups have ended.
  if (blocked && group.skipped > 0 && not_to_run == group.tasks) {
    return word_for_phase(model::GroupPhase::Skipped);
  }
  const bool ran = group.tasks > group.not_needed + group.not_selected;
  if (group.phase == model::GroupPhase::Finished && group.tasks > 0 && !ran) {
    return group.not_needed > 0 ? "NOT_NEEDED" : "NOT_SELECTED";
  }
  const bool none_started = group.phase == model::GroupPhase::Running && group.waiting > 0 &&
                            group.waiting + not_to_run == group.tasks;
  return none_started ? "WAITING" : word_for_phase(group.phase);
}

}  // namespace trainyard::report
