#include "journal/past.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "journal/rows.h"
#include "model/resources.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

constexpr const char* kForgetTries = R"sql(
UPDATE reached SET largest = 0, load_tries = 0, train_tries = 0, preempted = 0, crowded = 0
  WHERE task IN (SELECT e.task FROM ended e JOIN tasks t ON t.number = e.task
                 WHERE e.verdict = {failed} AND t.batch IN ({batches}));
)sql";

constexpr const char* kReached = R"sql(
SELECT r.task, r.memory, r.gpu_memory, r.largest, r.load_tries, r.train_tries, r.preempted,
    r.crowded, s.memory, s.gpu_memory
  FROM reached r JOIN tasks t ON t.number = r.task JOIN shapes s ON s.number = t.shape
  WHERE t.batch IN ({batches})
)sql";

constexpr const char* kSharing = R"sql(
SELECT t.number, s.sharing_best, s.sharing_factor, s.sharing_tasks, s.sharing_max
  FROM shapes s JOIN tasks t ON t.shape = s.number
  WHERE s.sharing_best + s.sharing_max > 0 AND t.batch IN ({batches})
)sql";

constexpr const char* kTaken = R"sql(
SELECT e.task, t.shape, e.ended_ms, e.memory_peak,
    CASE WHEN e.gpu_capped THEN 0 ELSE e.gpu_memory_peak END, s.gpu_memory
  FROM ended e JOIN tasks t ON t.number = e.task JOIN shapes s ON s.number = t.shape
  WHERE e.verdict = {finished} AND e.memory_peak + e.gpu_memory_peak > 0 AND NOT t.edited
    AND t.batch IN ({batches})
)sql";

constexpr const char* kSaid = R"sql(
SELECT s.task, s.on_hold, s.priority FROM said s JOIN tasks t ON t.number = s.task
  WHERE t.batch IN ({batches})
)sql";

/// Of each task the last attempt that failed by itself, though later ones were lost, stopped or
/// killed. An attempt does not count if its task was killed before the next one: its row says
/// KILLED.
constexpr const char* kFailed = R"sql(
SELECT task, message, max(attempt) FROM (
    SELECT task, attempt, message FROM ended WHERE verdict = {failed} AND failure IN ({own})
    UNION ALL SELECT task, attempt, message FROM attempts WHERE failure IN ({own})
    UNION ALL SELECT task, attempt, message FROM live
      WHERE ended_ms IS NOT NULL AND failure IN ({own}))
  WHERE task IN (SELECT number FROM tasks WHERE batch IN ({batches}))
    AND task NOT IN (SELECT task FROM ended WHERE verdict = {finished})
  GROUP BY task
)sql";

std::uint8_t tries(const Statement& row, int column) {
  return static_cast<std::uint8_t>(row.small(column));
}

}  // namespace

Result<Past> Past::read(Database& database, const std::string& batches) {
  Past past(database);
  Result<void> done =
      database.run(fmt::format(kForgetTries, fmt::arg("batches", batches),
                               fmt::arg("failed", std::to_underlying(model::Verdict::Failed))));
  if (done) done = past.read_reached(batches);
  if (done) done = past.read_sharing(batches);
  if (done) done = past.read_said(batches);
  if (done) done = past.read_failed(batches);
  if (done) done = past.read_taken(batches);
  if (!done) return std::unexpected(std::move(done.error()));
  return past;
}

Result<void> Past::read_reached(const std::string& batches) {
  return each(*database_, fmt::format(kReached, fmt::arg("batches", batches)),
              [&](const Statement& row) {
                reached_[static_cast<std::uint32_t>(row.integer(0))] = {
                    .reached = {.task = {},
                                .memory = {row.integer(1)},
                                .gpu_memory = {row.integer(2)},
                                .largest = row.small(3) != 0,
                                .tries = {.load = tries(row, 4),
                                          .train = tries(row, 5),
                                          .preempted = tries(row, 6),
                                          .crowded = tries(row, 7)}},
                    .written = {.memory = {row.integer(8)}, .gpu_memory = {row.integer(9)}}};
              });
}

Result<void> Past::read_taken(const std::string& batches) {
  // By shape, and of each by the time of their end: the oldest goes when there are too many.
  std::map<std::int64_t, std::multimap<std::int64_t, std::uint32_t>> last;
  return each(*database_,
              fmt::format(kTaken, fmt::arg("batches", batches),
                          fmt::arg("finished", std::to_underlying(model::Verdict::Finished))),
              [&](const Statement& row) {
                const auto task = static_cast<std::uint32_t>(row.integer(0));
                auto& of_shape = last[row.integer(1)];
                of_shape.emplace(row.integer(2), task);
                taken_[task] = {.ended = {Duration(row.integer(2))},
                                .what = {.task = {},
                                         .memory = {row.integer(3)},
                                         .gpu_memory = {row.integer(4)},
                                         .gpu_memory_written = {row.integer(5)}}};
                if (of_shape.size() <= kTakenMax) return;
                taken_.erase(of_shape.begin()->second);
                of_shape.erase(of_shape.begin());
              });
}

Result<void> Past::read_sharing(const std::string& batches) {
  return each(
      *database_, fmt::format(kSharing, fmt::arg("batches", batches)), [&](const Statement& row) {
        sharing_[static_cast<std::uint32_t>(row.integer(0))] = {.shape = {},
                                                                .to_a_gpu = row.small(1),
                                                                .factor = row.real(2),
                                                                .tasks = row.small(3),
                                                                .to_a_gpu_max = row.small(4)};
      });
}

Result<void> Past::read_said(const std::string& batches) {
  return each(*database_, fmt::format(kSaid, fmt::arg("batches", batches)),
              [&](const Statement& row) {
                model::SaidOfTask& said = said_[static_cast<std::uint32_t>(row.integer(0))];
                said.on_hold = row.small(1) != 0;
                if (!row.null(2)) said.priority = row.small(2);
              });
}

Result<void> Past::read_failed(const std::string& batches) {
  const std::string own = fmt::format("{}, {}, {}", std::to_underlying(model::Failure::Exit),
                                      std::to_underlying(model::Failure::Error),
                                      std::to_underlying(model::Failure::Crashed));
  return each(*database_,
              fmt::format(kFailed, fmt::arg("batches", batches), fmt::arg("own", own),
                          fmt::arg("finished", std::to_underlying(model::Verdict::Finished)),
                          fmt::arg("failed", std::to_underlying(model::Verdict::Failed))),
              [this](const Statement& row) {
                failed_[static_cast<std::uint32_t>(row.integer(0))] = row.text(1);
              });
}

Result<std::optional<model::Reached>> Past::reached_by(std::uint32_t row, model::TaskIndex task,
                                                       const model::Terms& terms) {
  const auto found = reached_.find(row);
  if (found == reached_.end()) return std::nullopt;
  const Written& written = found->second.written;
  const model::Request& now = terms.request;
  const bool same = (terms.learns_memory || written.memory == now.memory) &&
                    (terms.learns_gpu_memory || written.gpu_memory == now.gpu_memory);
  if (!same) {
    if (Result<void> gone = forget(row); !gone) return std::unexpected(std::move(gone.error()));
    return std::nullopt;
  }
  model::Reached reached = found->second.reached;
  reached.task = task;
  return reached;
}

std::optional<model::SharingMeasured> Past::sharing_of(std::uint32_t row,
                                                       model::ShapeIndex shape) const {
  const auto found = sharing_.find(row);
  if (found == sharing_.end()) return std::nullopt;
  model::SharingMeasured measured = found->second;
  measured.shape = shape;
  return measured;
}

std::optional<model::SaidOfTask> Past::said_of(std::uint32_t row, model::TaskIndex task) const {
  const auto found = said_.find(row);
  if (found == said_.end()) return std::nullopt;
  model::SaidOfTask said = found->second;
  said.task = task;
  return said;
}

std::optional<model::FailedBefore> Past::failed_with(std::uint32_t row,
                                                     model::TaskIndex task) const {
  const auto found = failed_.find(row);
  if (found == failed_.end()) return std::nullopt;
  return model::FailedBefore{.task = task, .message = found->second};
}

Result<void> Past::forget(std::uint32_t row) {
  if (!reached_.contains(row)) return {};
  return database_->run(fmt::format("DELETE FROM reached WHERE task = {}", row));
}

std::optional<Past::Taken> Past::taken_by(std::uint32_t row, model::TaskIndex task) const {
  const auto found = taken_.find(row);
  if (found == taken_.end()) return std::nullopt;
  Taken taken = found->second;
  taken.what.task = task;
  return taken;
}

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
