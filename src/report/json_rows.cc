#include "report/json_rows.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/places.h"
#include "report/result_fields.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json milliseconds(std::optional<Duration> duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json milliseconds(std::optional<Instant> instant) {
  return instant ? Json(instant->since_start.count()) : Json(nullptr);
}

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json log_of(const TaskRow& row, Grouping grouping, std::string_view stream) {
  if (row.attempt == 0) return nullptr;
  return task_directory_of(row, grouping) + "/" + log_name(stream, row.attempt);
}

Json result_of(const TaskRow& row) {
  if (row.result.empty()) return nullptr;
  Json result = Json::parse(row.result, nullptr, false);
  return result.is_object() ? result : Json(nullptr);
}

}  // namespace

std::string json_text(std::string_view text) { return dump(Json(text)); }

std::string json_of(const TaskRow& row, Grouping grouping, std::optional<Instant> now) {
  Json matrix = Json::object();
  for (const auto& [key, value] : row.matrix) matrix[key] = value;
  const bool failed = row.standing.failure != Failure::None;
  const bool by_itself = row.standing.failure == Failure::Exit;
  Json task{
      {"group", row.group_name},
      {"id", row.id},
      {"word", word_for(row.standing)},
      {"status", to_text(row.standing.status)},
      {"verdict",
       row.standing.verdict == Verdict::None ? Json(nullptr) : Json(to_text(row.standing.verdict))},
      {"failure", failed ? Json(to_text(row.standing.failure)) : Json(nullptr)},
      {"exit_code", by_itself ? Json(row.standing.exit_code) : Json(nullptr)},
      {"stage", to_text(row.stage)},
      {"attempt", row.attempt},
      {"pid", row.pid == 0 ? Json(nullptr) : Json(row.pid)},
      {"matrix", std::move(matrix)},
      {"started_ms", milliseconds(row.started)},
      {"ended_ms", milliseconds(row.ended)},
      {"duration_ms", milliseconds(duration_of(row, now))},
      {"cpu_time_ms", row.cpu_time.count()},
      {"memory_requested_bytes", row.memory_requested.count},
      {"memory_now_bytes", row.memory_now.count},
      {"memory_peak_bytes", row.memory_peak.count},
      {"result", result_of(row)},
      {"warning", text_or_null(row.warning)},
      {"message", text_or_null(row.message)},
      {"stdout", log_of(row, grouping, "stdout")},
      {"stderr", log_of(row, grouping, "stderr")}};
  return dump(task);
}

std::string json_of(const AttemptRow& row, std::string_view id) {
  const bool failed = row.failure != Failure::None;
  return dump(
      Json{{"id", id},
           {"attempt", row.key.attempt},
           {"started_ms", milliseconds(std::optional(row.started))},
           {"ended_ms", milliseconds(row.ended)},
           {"failure", failed ? Json(to_text(row.failure)) : Json(nullptr)},
           {"exit_code", row.failure == Failure::Exit ? Json(row.exit_code) : Json(nullptr)},
           {"memory_peak_bytes", row.memory_peak.count},
           {"message", text_or_null(row.message)}});
}

std::string json_of(const GroupRow& row) {
  return dump(Json{{"name", row.name},
                   {"phase", word_for_phase(row.phase)},
                   {"message", text_or_null(row.message)},
                   {"tasks", row.tasks},
                   {"finished", row.finished},
                   {"failed", row.failed},
                   {"skipped", row.skipped},
                   {"stopped", row.stopped},
                   {"running", row.running},
                   {"retrying", row.retrying},
                   {"waiting", row.waiting}});
}

std::string json_of(const ExecutionRow& row) {
  return dump(Json{{"number", row.number},
                   {"yard_pid", row.yard_pid},
                   {"host", row.host},
                   {"command_line", row.command_line},
                   {"version", row.version},
                   {"job_file", row.job_file},
                   {"git_commit", text_or_null(row.git_commit)},
                   {"started_unix_ms", row.started_unix_ms},
                   {"started_ms", milliseconds(std::optional(row.started))},
                   {"ended_ms", milliseconds(row.ended)},
                   {"how", text_or_null(row.how)}});
}

std::string json_of(const WaitingReason& row) {
  return dump(Json{{"group", row.group_name},
                   {"tasks", row.tasks},
                   {"memory_requested_bytes", row.memory.count},
                   {"reason", row.reason}});
}

std::string json_of(const MachineRow& row) {
  return dump(Json{{"at_ms", milliseconds(std::optional(row.at))},
                   {"memory_available_bytes", row.memory_available.count},
                   {"memory_of_tasks_bytes", row.memory_of_tasks.count},
                   {"cpu_used_by_others", row.cpu_used_by_others}});
}

std::string json_of(const Best& best) {
  return dump(Json{{"id", best.id}, {"key", best.key}, {"value", best.value}});
}

}  // namespace trainyard::report
