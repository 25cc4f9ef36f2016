#include "journal/progress_table.h"

#include <algorithm>
#include <expected>

namespace trainyard::journal {

Result<ProgressTable> ProgressTable::open(Database& database) {
  Result<Statement> put =
      database.prepare("INSERT OR REPLACE INTO progress VALUES (?1, ?2, ?3, ?4, ?5)");
  if (!put) return std::unexpected(std::move(put.error()));
  Result<Statement> remove =
      database.prepare("DELETE FROM progress WHERE task = ?1 AND attempt = ?2 AND at_ms = ?3");
  if (!remove) return std::unexpected(std::move(remove.error()));
  Result<Statement> thin = database.prepare(
      "DELETE FROM progress WHERE task = ?1 AND attempt = ?2 AND at_ms < ?3 AND at_ms IN "
      "(SELECT at_ms FROM (SELECT at_ms, row_number() OVER (ORDER BY at_ms) AS place FROM progress "
      "WHERE task = ?1 AND attempt = ?2) WHERE place % 2 = 0)");
  if (!thin) return std::unexpected(std::move(thin.error()));
  Result<Statement> look = database.prepare(
      "SELECT at_ms, (SELECT count(*) FROM progress WHERE task = ?1 AND attempt = ?2), "
      "(SELECT min(at_ms) FROM progress WHERE task = ?1 AND attempt = ?2) "
      "FROM progress WHERE task = ?1 AND attempt = ?2 ORDER BY at_ms DESC LIMIT 2");
  if (!look) return std::unexpected(std::move(look.error()));
  return ProgressTable(std::move(*put), std::move(*remove), std::move(*thin), std::move(*look));
}

Result<ProgressTable::Attempt> ProgressTable::look(std::uint32_t task_number,
                                                   std::uint32_t attempt) {
  Attempt found{.attempt = attempt};
  look_.ask(task_number, attempt);
  for (int n = 0; n < 2; ++n) {
    const Result<bool> row = look_.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    found.before_last = Instant{Duration(look_.integer(0))};
    if (n > 0) continue;
    found.last = found.before_last;
    found.rows = look_.small(1);
    found.first = Instant{Duration(look_.integer(2))};
  }
  look_.stop();
  // About what it was when these rows were kept.
  if (found.rows > 1) found.gap = (found.last - found.first) / kProgressRowsMax;
  return found;
}

Result<void> ProgressTable::add(Instant at, std::uint32_t task_number,
                                const model::Progressed& progress) {
  Attempt& attempt = attempts_[task_number];
  if (attempt.attempt != progress.key.attempt) {
    const Result<Attempt> found = look(task_number, progress.key.attempt);
    if (!found) return std::unexpected(found.error());
    attempt = *found;
  }
  // The first row stays; the last one only when it is far enough from the one before it.
  const bool last_stays = attempt.rows <= 1 || attempt.last - attempt.before_last >= attempt.gap;
  if (last_stays) {
    if (attempt.rows == 0) attempt.first = at;
    attempt.before_last = attempt.last;
    ++attempt.rows;
  } else {
    Result<void> removed = remove_.run(task_number, attempt.attempt, attempt.last);
    if (!removed) return removed;
  }
  attempt.last = at;
  Result<void> written =
      put_.run(task_number, attempt.attempt, at, progress.fraction, progress.values);
  if (!written || attempt.rows < kProgressRowsMax) return written;
  return thin(task_number, attempt);
}

Result<void> ProgressTable::thin(std::uint32_t task_number, Attempt& attempt) {
  Result<void> thinned = thin_.run(task_number, attempt.attempt, attempt.last);
  if (!thinned) return thinned;
  const Result<Attempt> left = look(task_number, attempt.attempt);
  if (!left) return std::unexpected(left.error());
  const Duration twice = attempt.gap * 2;
  attempt = *left;
  attempt.gap = std::max({twice, attempt.gap * 2, Duration(1)});
  return {};
}

}  // namespace trainyard::journal
