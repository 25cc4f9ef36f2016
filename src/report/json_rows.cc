#include "report/json_rows.h"

#include <ranges>
#include <utility>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/waiting.h"
#include "report/digest.h"
#include "report/help_line.h"
#include "run/run_directory.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using text::number_or_null;
using text::one_line_json;
using text::text_or_null;
using Json = nlohmann::ordered_json;

/// An object as text, member by member. There is one for each task and attempt, and the result of a
/// task may have thousands of keys. The library compares each key with all before it.
class Object {
 public:
  template <typename Value>
  void add(std::string_view key, Value&& value) {
    add_text(key, one_line_json(Json(std::forward<Value>(value))));
  }
  /// A value that is JSON already.
  void add_text(std::string_view key, std::string_view json) {
    text_ += text_.size() == 1 ? "" : ",";
    text_ += one_line_json(Json(key));
    text_ += ':';
    text_ += json;
  }

  [[nodiscard]] std::string text() && { return std::move(text_) + "}"; }

 private:
  std::string text_ = "{";
};

Json milliseconds(std::optional<Duration> duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json milliseconds(std::optional<Instant> instant) {
  return instant ? Json(instant->since_start.count()) : Json(nullptr);
}

Json log_of(const journal::TaskRow& row, std::string_view stream) {
  if (row.attempt == 0) return nullptr;
  return row.directory + "/" + run::log_name(stream, row.attempt);
}

/// "0,2" as a list of texts.
Json gpus_of(std::string_view text) {
  Json gpus = Json::array();
  for (const auto gpu : std::views::split(text, ',')) {
    gpus.push_back(std::string_view(gpu.begin(), gpu.end()));
  }
  return gpus;
}

/// GPU memory as JSON: 0 for a task without a GPU, null for a task with GPUs on which no memory of
/// it was measured.
Json gpu_bytes(std::string_view gpus, Bytes seen) {
  return !gpus.empty() && seen == Bytes{} ? Json(nullptr) : Json(seen.count);
}

/// A JSON object from the journal, verbatim; else null.
std::string_view object_or_null(std::string_view text) {
  return text.starts_with('{') && Json::accept(text) ? text : "null";
}

}  // namespace

std::string json_text(std::string_view text) { return one_line_json(Json(text)); }

std::string json_of(const journal::TaskRow& row, std::optional<Instant> now) {
  Object matrix;
  for (const auto& [key, value] : row.matrix) matrix.add(key, value);
  const model::Standing& standing = row.standing;
  const bool ended = standing.verdict != model::Verdict::None;
  const bool failed = standing.failure != model::Failure::None;
  const bool by_itself = standing.failure == model::Failure::Exit;
  const model::TaskEnd* const end = model::end_of(standing);
  const auto of_attempt = [&row](Json value) { return row.attempt > 0 ? value : Json(nullptr); };
  Object task;
  task.add("group", row.group_name);
  task.add("id", row.id);
  task.add("word", model::word_for(standing));
  task.add("status", to_text(standing.status));
  task.add("end", end == nullptr ? Json(nullptr) : Json(end->id));
  task.add("verdict", ended ? Json(model::to_text(standing.verdict)) : Json(nullptr));
  task.add("failure", failed ? Json(model::to_text(standing.failure)) : Json(nullptr));
  task.add("exit_code", by_itself ? Json(standing.exit_code) : Json(nullptr));
  task.add("stage", of_attempt(to_text(row.stage)));
  task.add("attempt", row.attempt);
  task.add("pid", number_or_null(row.pid));
  task.add_text("matrix", std::move(matrix).text());
  task.add("started_ms", milliseconds(row.started));
  task.add("ended_ms", milliseconds(row.ended));
  task.add("duration_ms", milliseconds(duration_of(row, now)));
  task.add("load_numbers", row.times.load_numbers);
  task.add("train_numbers", row.times.train_numbers);
  task.add("load_ms", milliseconds(row.times.load));
  task.add("train_ms", milliseconds(row.times.train));
  task.add("progress", row.progress ? Json(*row.progress) : Json(nullptr));
  task.add_text("progress_values", object_or_null(row.progress_values));
  task.add("cpu_time_ms", row.cpu_time.count());
  task.add("memory_requested_bytes", of_attempt(row.memory_requested.count));
  task.add("memory_now_bytes", row.memory_now.count);
  task.add("memory_peak_bytes", row.memory_peak.count);
  task.add("memory_peak_at_least", row.memory_at_least);
  task.add("machine", text_or_null(row.machine));
  task.add("gpus", gpus_of(row.gpus));
  task.add("gpu_memory_requested_bytes", of_attempt(row.gpu_memory_requested.count));
  task.add("gpu_memory_now_bytes", gpu_bytes(row.gpus, row.gpu_memory_now));
  task.add("gpu_memory_peak_bytes", gpu_bytes(row.gpus, row.gpu_memory_peak));
  task.add("gpu_memory_max_bytes", row.gpu_memory_max.count);
  task.add("gpu_capped_by", text_or_null(row.capped_by));
  task.add_text("result", object_or_null(row.result));
  task.add("edited", row.edited);
  task.add("out_of_date", row.out_of_date);
  task.add("code", text_or_null(row.code));
  task.add("newer_code", text_or_null(row.newer_code));
  task.add("warning", text_or_null(row.warning));
  task.add("message", text_or_null(row.message));
  task.add("traceback", text_or_null(row.traceback));
  task.add("stdout", log_of(row, "stdout"));
  task.add("stderr", log_of(row, "stderr"));
  return std::move(task).text();
}

std::string json_of(const journal::AttemptRow& row, std::string_view id) {
  const bool failed = row.failure != model::Failure::None;
  const bool by_itself = row.failure == model::Failure::Exit;
  Object attempt;
  attempt.add("id", id);
  attempt.add("attempt", row.key.attempt);
  attempt.add("started_ms", milliseconds(std::optional(row.started)));
  attempt.add("ended_ms", milliseconds(row.ended));
  attempt.add("failure", failed ? Json(model::to_text(row.failure)) : Json(nullptr));
  attempt.add("exit_code", by_itself ? Json(row.exit_code) : Json(nullptr));
  attempt.add("memory_peak_bytes", row.memory_peak.count);
  attempt.add("memory_peak_at_least", row.memory_at_least);
  attempt.add("machine", text_or_null(row.machine));
  attempt.add("gpus", gpus_of(row.gpus));
  attempt.add("gpu_memory_peak_bytes", gpu_bytes(row.gpus, row.gpu_memory_peak));
  attempt.add("code", text_or_null(row.code));
  attempt.add("message", text_or_null(row.message));
  return std::move(attempt).text();
}

std::string json_of(const journal::GroupRow& row, std::string_view run_directory) {
  return one_line_json(
      Json{{"name", row.name},
           {"phase", shown_phase(row)},
           {"message", text_or_null(cause_text(row, row.message, run_directory))},
           {"tasks", row.tasks},
           {"finished", row.finished},
           {"out_of_date", row.out_of_date},
           {"failed", row.failed},
           {"skipped", row.skipped},
           {"not_needed", row.not_needed},
           {"not_selected", row.not_selected},
           {"why_skipped", text_or_null(cause_text(row, row.why_skipped, run_directory))},
           {"stopped", row.stopped},
           {"running", row.running},
           {"lost", row.lost},
           {"retrying", row.retrying},
           {"waiting", row.waiting}});
}

std::string json_of(const journal::ExecutionRow& row) {
  return one_line_json(
      Json{{"number", row.number},
           {"yard_pid", row.yard_pid},
           {"host", row.host},
           {"command_line", row.command_line},
           {"version", row.version},
           {"job_file", row.job_file},
           {"git_commit", text_or_null(row.git_commit)},
           {"started_unix_ms", row.started_unix_ms},
           {"started_ms", milliseconds(std::optional(row.started))},
           {"ended_ms", milliseconds(row.ended)},
           {"how", text_or_null(row.how)},
           {"forecast_ms", number_or_null(row.forecast.count())},
           {"forecast_at_the_worst_ms", number_or_null(row.forecast_at_the_worst.count())}});
}

std::string json_of(const journal::WaitingReason& row, std::string_view run_directory) {
  return one_line_json(Json{{"group", row.group_name},
                            {"tasks", row.tasks},
                            {"memory_requested_bytes", row.memory.count},
                            {"cause", model::to_text(row.cause)},
                            {"machine", text_or_null(row.machine)},
                            {"reason", row.reason},
                            {"help", text_or_null(help_line(row.help, run_directory))},
                            {"help_where", text_or_null(to_text(row.help.where))}});
}

std::string json_of(const journal::LearnedRow& row) {
  return one_line_json(Json{{"group", row.group_name},
                            {"memory_bytes", number_or_null(row.memory.count)},
                            {"gpu_memory_bytes", number_or_null(row.gpu_memory.count)},
                            {"tasks", row.tasks}});
}

std::string json_of(const journal::SharingRow& row) {
  const model::SharingMeasured& it = row.measured;
  return one_line_json(Json{{"group", row.group_name},
                            {"to_a_gpu", number_or_null(it.to_a_gpu)},
                            {"factor", it.to_a_gpu == 0 ? Json(nullptr) : Json(it.factor)},
                            {"tasks", it.tasks},
                            {"to_a_gpu_max", number_or_null(it.to_a_gpu_max)}});
}

std::string json_of(const journal::SampleRow& row) {
  return one_line_json(Json{{"at_ms", milliseconds(std::optional(row.at))},
                            {"memory_available_bytes", row.memory_available.count},
                            {"memory_of_tasks_bytes", row.memory_of_tasks.count},
                            {"cpu_used_by_others", row.cpu_used_by_others}});
}

std::string json_of(const journal::MachineRow& row) {
  Json gpus = Json::array();
  for (const journal::GpuRow& gpu : row.gpus) {
    gpus.push_back({{"label", gpu.label},
                    {"name", text_or_null(gpu.name)},
                    {"memory_bytes", gpu.memory.count}});
  }
  return one_line_json(Json{{"name", row.name},
                            {"cpus", model::as_number(row.cpus)},
                            {"memory_bytes", row.memory.count},
                            {"gpus", std::move(gpus)},
                            {"joined_ms", milliseconds(std::optional(row.joined))},
                            {"gone_ms", milliseconds(row.gone)},
                            {"why", text_or_null(row.why)},
                            {"silent_ms", milliseconds(row.silent)},
                            {"until_ms", milliseconds(row.until)}});
}

std::string json_of(const Best& best) {
  return one_line_json(Json{{"id", best.id}, {"key", best.key}, {"value", best.value}});
}

}  // namespace trainyard::report
