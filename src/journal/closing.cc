#include "journal/closing.h"

#include <utility>

#include <fmt/format.h>

#include "model/command.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

/// Closes what the dead execution left open: the attempts that ran are lost, in whichever batch.
constexpr const char* kCloseExecution = R"sql(
UPDATE tasks SET attempt_before = l.attempt FROM live l
  WHERE l.task = tasks.number AND l.attempt > tasks.attempt_before;
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage,
    CASE WHEN ended_ms IS NULL THEN {lost} ELSE failure END, exit_code, started_ms,
    coalesce(ended_ms, {at}), memory_requested, memory_peak, cpu_ms,
    CASE WHEN ended_ms IS NULL THEN 'trainyard died while the task ran' ELSE message END,
    gpus, gpu_memory_requested, gpu_memory_peak, memory_at_least, gpu_capped,
    gpu_memory_max, capped_by, code, machine
  FROM live WHERE attempt > 0;
DELETE FROM live;
UPDATE executions SET ended_ms = {at}, how = 'died' WHERE ended_ms IS NULL;
UPDATE shapes SET waiting = waiting + running + retrying, running = 0, retrying = 0
  WHERE running + retrying > 0;
UPDATE groups SET phase = {blocked} WHERE phase = {runs};
DELETE FROM headroom;
DELETE FROM headroom_gpus;
)sql";

/// Every attempt but the last one of a task that keeps its verdict becomes an earlier attempt. Only
/// for the batches that are taken over.
constexpr const char* kCloseAttempts = R"sql(
UPDATE tasks SET attempt_before = e.attempt FROM ended e
  WHERE e.task = tasks.number AND e.attempt > tasks.attempt_before AND tasks.batch IN ({batches});
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage, failure, exit_code, started_ms,
    ended_ms, memory_requested, memory_peak, cpu_ms, message, gpus, gpu_memory_requested,
    gpu_memory_peak, memory_at_least, gpu_capped,
    gpu_memory_max, capped_by, code, machine
  FROM ended WHERE attempt > 0 AND {again} AND
    task IN (SELECT number FROM tasks WHERE batch IN ({batches}));
DELETE FROM ended WHERE {again} AND
  task IN (SELECT number FROM tasks WHERE batch IN ({batches}));
DELETE FROM shapes WHERE group_number IN (SELECT number FROM groups WHERE batch IN ({batches}));
)sql";

constexpr const char* kForgetResult = R"sql(
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage, failure, exit_code, started_ms,
    ended_ms, memory_requested, memory_peak, cpu_ms, message, gpus, gpu_memory_requested,
    gpu_memory_peak, memory_at_least, gpu_capped,
    gpu_memory_max, capped_by, code, machine
  FROM ended WHERE attempt > 0 AND task = {task};
DELETE FROM ended WHERE task = {task};
)sql";

}  // namespace

Result<void> close_dead_execution(Database& database, Instant at, const std::string& batches,
                                  Unfinished unfinished) {
  Result<void> closed = database.run(
      fmt::format(kCloseExecution, fmt::arg("at", at.since_start.count()),
                  fmt::arg("lost", std::to_underlying(model::Failure::Lost)),
                  fmt::arg("runs", std::to_underlying(model::GroupPhase::Running)),
                  fmt::arg("blocked", std::to_underlying(model::GroupPhase::Blocked))));
  if (!closed) return closed;
  const std::string again =
      unfinished == Unfinished::Stay
          ? "FALSE"
          : fmt::format("verdict <> {}", std::to_underlying(model::Verdict::Finished));
  return database.run(
      fmt::format(kCloseAttempts, fmt::arg("batches", batches), fmt::arg("again", again)));
}

Result<void> forget_result(Database& database, std::uint32_t task) {
  return database.run(fmt::format(kForgetResult, fmt::arg("task", task)));
}

Result<void> stop_until_retried(Database& database, std::uint32_t task) {
  return database.run(fmt::format("UPDATE ended SET verdict = {}, result = '' WHERE task = {}",
                                  std::to_underlying(model::Verdict::Stopped), task));
}

}  // namespace trainyard::journal
