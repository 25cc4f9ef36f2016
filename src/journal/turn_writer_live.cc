// The part of the writer of turns that takes rows up again: of what another execution has left
// under way, and of tasks that begin anew.
#include <algorithm>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "journal/turn_writer.h"
#include "model/ids.h"
#include "model/stage_times.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

std::optional<Duration> stage_time(const Statement& row, int column) {
  if (row.null(column)) return std::nullopt;
  return Duration(row.integer(column));
}

/// The last time when the task began to train: only the decisions have it. A plain command trains
/// from its beginning on.
Result<Instant> training_since(Database& database, std::uint32_t number, std::uint32_t attempt) {
  const Result<std::int64_t> at = database.number(
      fmt::format("SELECT at_ms FROM events WHERE data LIKE "
                  "'%{{\"task\":{},\"attempt\":{},\"status\":\"TRAINING\"%' ORDER BY seq DESC "
                  "LIMIT 1",
                  number, attempt));
  if (!at) return std::unexpected(at.error());
  return Instant{Duration(*at)};
}

}  // namespace

TurnWriter::Task TurnWriter::read_row(const Statement& row) {
  Task task{.attempt = static_cast<std::uint32_t>(row.integer(2)),
            .status = static_cast<Status>(row.small(0)),
            .stage = static_cast<Stage>(row.small(1)),
            .failure = static_cast<model::Failure>(row.small(3)),
            .exit_code = row.small(4),
            .pid = row.integer(5),
            .started = Instant{Duration(row.integer(6))},
            .memory_requested = {row.integer(8)},
            .memory_now = {row.integer(9)},
            .memory_peak = {row.integer(10)},
            .cpu_time = Duration(row.integer(11)),
            .message = std::string(row.text(12)),
            .warning = std::string(row.text(13)),
            .result = std::string(row.text(14)),
            .times = {.load_numbers = row.small(15),
                      .train_numbers = row.small(16),
                      .load = stage_time(row, 17),
                      .train = stage_time(row, 18)},
            .gpus = std::string(row.text(19)),
            .gpu_memory_requested = {row.integer(20)},
            .gpu_memory_now = {row.integer(21)},
            .gpu_memory_peak = {row.integer(22)},
            .gpu_memory_max = {row.integer(23)},
            .capped_by = std::string(row.text(24)),
            .code = static_cast<std::uint32_t>(row.integer(25)),
            .machine = static_cast<std::uint32_t>(row.integer(26))};
  if (!row.null(7)) task.ended = Instant{Duration(row.integer(7))};
  if (!row.null(27)) task.retry_at = Instant{Duration(row.integer(27))};
  return task;
}

Result<void> TurnWriter::read_live(Database& database) {
  Result<Statement> row = database.prepare(
      "SELECT status, stage, attempt, failure, exit_code, pid, started_ms, ended_ms, "
      "memory_requested, memory_now, memory_peak, cpu_ms, message, warning, result, load_numbers, "
      "train_numbers, load_ms, train_ms, gpus, gpu_memory_requested, gpu_memory_now, "
      "gpu_memory_peak, gpu_memory_max, capped_by, code, machine, retry_at_ms FROM live WHERE task "
      "= ?1");
  if (!row) return std::unexpected(std::move(row.error()));
  for (std::uint32_t index = 0; index < book_.ended.size(); ++index) {
    const std::uint32_t number = book_.numbers.of(model::TaskIndex{index});
    row->ask(number);
    const Result<bool> found = row->next();
    if (!found) return std::unexpected(found.error());
    if (!*found) continue;
    Task task = read_row(*row);
    row->stop();
    if (task.status == Status::Loading) {
      task.times.now = Stage::Load;
      task.times.load_began = task.started;
    } else if (task.status == Status::Training) {
      Result<Instant> since = task.times.load_numbers == 0
                                  ? task.started
                                  : training_since(database, number, task.attempt);
      if (!since) return std::unexpected(std::move(since.error()));
      task.times.now = Stage::Train;
      task.times.train_began = *since;
    }
    live_.insert_or_assign(index, std::move(task));
  }
  return {};
}

Result<void> TurnWriter::begin_anew(model::TaskIndex task) {
  check(book_.ended.at(task.value), "a task that begins anew has ended");
  book_.ended[task.value] = false;
  const auto anew = [this, task](Task row, model::Verdict verdict) {
    count(task, counted_as(row.status, verdict), Counted::Waiting);
    row.status = Status::Init;
    row.verdict = model::Verdict::None;
    if (row.attempt > 0) touched_.insert_or_assign(task.value, std::move(row));
  };
  // The task may have ended, and been asked for, in the same turn.
  if (const auto now = touched_.find(task.value); now != touched_.end()) {
    anew(now->second, now->second.verdict);
    return {};
  }
  const std::uint32_t number = book_.numbers.of(task);
  statements_.ended_read.ask(number);
  const Result<bool> found = statements_.ended_read.next();
  if (!found) return std::unexpected(found.error());
  check(*found, "what has ended has a row");
  constexpr int kVerdictColumn = 28;
  anew(read_row(statements_.ended_read),
       static_cast<model::Verdict>(statements_.ended_read.small(kVerdictColumn)));
  statements_.ended_read.stop();
  const bool now = std::ranges::find(ended_now_, task.value) != ended_now_.end();
  if (!now) reopened_now_.push_back(task.value);
  return statements_.ended_delete.run(number);
}

/// The row of an attempt that has ended, or that another one followed, is in another table.
Result<void> TurnWriter::apply(Instant at, const model::CodeFound& found) {
  const Result<std::uint32_t> code =
      found.code ? codes_.put(at, *found.code, found.diff) : std::uint32_t{0};
  if (!code) return std::unexpected(code.error());
  for (const model::AttemptKey key : found.attempts) {
    if (Task* row = touch_running(key); row != nullptr) {
      row->code = *code;
    } else if (Result<void> put = codes_.correct(
                   {.task = book_.numbers.of(key.task), .attempt = key.attempt}, *code);
               !put) {
      return put;
    }
  }
  return {};
}

}  // namespace trainyard::journal
