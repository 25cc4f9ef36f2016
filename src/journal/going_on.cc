#include "journal/going_on.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "model/status.h"

namespace trainyard::journal {

Result<GoingOn> GoingOn::set_aside(Database& database, const std::vector<FoundAttempt>& found) {
  GoingOn going_on(database);
  if (found.empty()) return going_on;
  const Result<void> made = database.run(
      "DROP TABLE IF EXISTS temp.going_on;"
      "CREATE TEMP TABLE going_on AS SELECT * FROM live WHERE FALSE");
  if (!made) return std::unexpected(made.error());
  Result<Statement> keep = database.prepare(
      "INSERT INTO temp.going_on SELECT * FROM live WHERE task = ?1 AND attempt = ?2 AND ended_ms "
      "IS NULL RETURNING task");
  if (!keep) return std::unexpected(std::move(keep.error()));
  for (const FoundAttempt& each : found) {
    keep->ask(each.row, each.key.attempt);
    const Result<bool> runs = keep->next();
    if (!runs) return std::unexpected(runs.error());
    keep->stop();
    if (*runs) going_on.kept_.insert_or_assign(each.row, each.key);
  }
  return going_on;
}

Result<void> GoingOn::let_time_pass(std::int64_t unix_ms, Instant& at) const {
  if (kept_.empty()) return {};
  const Result<std::int64_t> begins = database_->number(
      "SELECT started_unix_ms - started_ms FROM executions ORDER BY number DESC LIMIT 1");
  if (!begins) return std::unexpected(begins.error());
  constexpr Duration kMost{2 * 86'400'000};
  at = std::clamp(Instant{Duration{unix_ms - *begins}}, at, at + kMost);
  return {};
}

Result<void> GoingOn::go_on_with(std::uint32_t row, model::TaskIndex task,
                                 model::PlannedTask& planned) {
  const auto kept = kept_.find(row);
  if (kept == kept_.end() || kept->second.task != task || !planned.is_open()) return {};
  planned.first_attempt = kept->second.attempt;
  go_on_.insert(kept->second);
  return database_->run(
      fmt::format("INSERT INTO live SELECT * FROM temp.going_on WHERE task = {0};"
                  "UPDATE live SET train_numbers = train_numbers - 1 WHERE task = {0} AND "
                  "status = {3} AND train_numbers > 0;"
                  "UPDATE live SET status = {2} WHERE task = {0};"
                  "DELETE FROM attempts WHERE task = {0} AND attempt = {1};"
                  "UPDATE tasks SET attempt_before = {1} - 1 WHERE number = {0}",
                  row, kept->second.attempt, std::to_underlying(Status::Init),
                  std::to_underlying(Status::Training)));
}

}  // namespace trainyard::journal
