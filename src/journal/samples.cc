#include "journal/samples.h"

#include <algorithm>
#include <expected>

#include <fmt/format.h>

#include "journal/schema.h"

namespace trainyard::journal {

Result<SampleTable> SampleTable::open(Database& database) {
  State state;
  Result<Statement> insert = database.prepare("INSERT INTO samples VALUES (?1, ?2, ?3, ?4, ?5)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<Statement> replace = database.prepare(
      "UPDATE samples SET at_ms = ?2, memory_available = ?3, memory_of_tasks = ?4, "
      "cpu_used_by_others = ?5 WHERE number = ?1");
  if (!replace) return std::unexpected(std::move(replace.error()));
  Result<Statement> rows = database.prepare(
      "SELECT number, at_ms, (SELECT count(*) FROM samples), (SELECT sample_gap_ms FROM run) "
      "FROM samples ORDER BY number DESC LIMIT 2");
  if (!rows) return std::unexpected(std::move(rows.error()));
  for (int n = 0; n < 2; ++n) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    const Instant at{Duration(rows->integer(1))};
    if (n == 0) {
      state = {.rows = rows->small(2),
               .last_number = rows->integer(0),
               .last = at,
               .before_last = at,
               .gap = Duration(rows->integer(3))};
    } else {
      state.before_last = at;
    }
  }
  return SampleTable(database, std::move(*insert), std::move(*replace), state);
}

Result<void> SampleTable::add(Instant at, const model::Sampled& sample) {
  Look& look = looks_[sample.machine];
  look = {.available = sample.memory_available,
          .of_tasks = {},
          .cpu_used_by_others = sample.cpu_used_by_others};
  for (const model::TaskSample& task : sample.tasks) look.of_tasks += task.memory;
  // The first row stays; the last one only when it is far enough from the one before it.
  const bool last_stays =
      present_.rows <= 1 || present_.last - present_.before_last >= present_.gap;
  if (last_stays) {
    present_.rows += 1;
    present_.last_number += 1;
    present_.before_last = present_.last;
  }
  present_.last = at;
  Statement& write = last_stays ? insert_ : replace_;
  const Look all = together();
  const Result<void> written =
      write.run(present_.last_number, at, all.available, all.of_tasks, all.cpu_used_by_others);
  if (!written || present_.rows < kSampleRowsMax) return written;
  return thin();
}

void SampleTable::join(const model::MachineJoined& joined) {
  cpus_[joined.machine] = model::as_number(joined.capacity.cpus);
}

SampleTable::Look SampleTable::together() const {
  Look all;
  double cpus = 0;
  for (const auto& [machine, look] : looks_) {
    all.available += look.available;
    all.of_tasks += look.of_tasks;
    const auto its = cpus_.find(machine);
    const double weight = its == cpus_.end() || its->second <= 0 ? 1 : its->second;
    all.cpu_used_by_others += look.cpu_used_by_others * weight;
    cpus += weight;
  }
  if (looks_.size() == 1) {
    // The value as reported: its mean would be rounded.
    all.cpu_used_by_others = looks_.begin()->second.cpu_used_by_others;
  } else if (cpus > 0) {
    all.cpu_used_by_others /= cpus;
  }
  return all;
}

Result<void> SampleTable::thin() {
  const Result<std::int64_t> span =
      database_->number("SELECT max(at_ms) - min(at_ms) FROM samples");
  if (!span) return std::unexpected(span.error());
  present_.gap = std::max({present_.gap * 2, Duration(*span) * 2 / kSampleRowsMax, Duration(1)});
  const Result<void> thinned = database_->run(fmt::format(
      "DELETE FROM samples WHERE number < {} AND number IN (SELECT number FROM (SELECT number, "
      "row_number() OVER (ORDER BY number) AS place FROM samples) WHERE place % 2 = 0)",
      present_.last_number));
  if (!thinned) return thinned;
  present_.rows -= static_cast<int>(database_->rows_changed());
  const Result<void> gap =
      database_->run(fmt::format("UPDATE run SET sample_gap_ms = {}", present_.gap.count()));
  if (!gap) return gap;
  const Result<std::int64_t> before = database_->number(
      fmt::format("SELECT at_ms FROM samples WHERE number < {} ORDER BY number DESC LIMIT 1",
                  present_.last_number));
  if (!before) return std::unexpected(before.error());
  present_.before_last = Instant{Duration(*before)};
  return {};
}

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
