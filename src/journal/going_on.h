// The attempts of a dead execution that still run on some machine: they go on, and their rows stay,
// if their tasks are the same.
//
// Reads and writes inside a transaction that the caller begins and ends. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/options.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::journal {

class GoingOn {
 public:
  /// Keeps the rows of those that run as far as the journal knows: before the execution is closed,
  /// which takes them for lost.
  static Result<GoingOn> set_aside(Database& database, const std::vector<FoundAttempt>& found);

  /// If some attempts ran on without a yard, the time of the run has gone on as well, by the wall
  /// clock: two days at most. To be called once the execution is closed.
  Result<void> let_time_pass(std::int64_t unix_ms, Instant& at) const;

  /// If the attempt of this row is still running, and its task is the same, it is not lost. Its row
  /// is put back, and it waits for the event that it continues, with that attempt.
  Result<void> go_on_with(std::uint32_t row, model::TaskIndex task, model::PlannedTask& planned);

  /// All of these.
  [[nodiscard]] const std::set<model::AttemptKey>& go_on() const { return go_on_; }

 private:
  explicit GoingOn(Database& database) : database_(&database) {}

  Database* database_;
  std::map<std::uint32_t, model::AttemptKey> kept_;  ///< By the numbers of their rows.
  std::set<model::AttemptKey> go_on_;
};

}  // namespace trainyard::journal
