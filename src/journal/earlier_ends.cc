#include "journal/earlier_ends.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <utility>
#include <variant>

#include "base/time.h"
#include "journal/schema.h"
#include "journal/turn_writer.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

/// The shape of the task when this attempt of it runs; nothing when it does not.
Result<std::optional<std::uint32_t>> shape_of_running(Database& database, const EarlierEnd& end) {
  Result<Statement> row = database.prepare(
      "SELECT t.shape FROM live l JOIN tasks t ON t.number = l.task WHERE l.task = ?1 AND "
      "l.attempt = ?2 AND l.ended_ms IS NULL AND t.shape IS NOT NULL");
  if (!row) return std::unexpected(std::move(row.error()));
  row->ask(end.task, end.attempt);
  const Result<bool> found = row->next();
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return static_cast<std::uint32_t>(row->integer(0));
}

Result<void> put(Database& database, const EarlierEnd& end, std::uint32_t shape, Instant at) {
  const Result<std::int64_t> last = database.number("SELECT max(number) FROM executions");
  if (!last) return std::unexpected(last.error());
  Bookkeeping book;
  book.execution = *last;
  book.numbers.tasks = {end.task};
  book.shape_of_task = {shape};
  book.ended = {false};
  Result<TurnWriter> writer = TurnWriter::open(database, std::move(book));
  if (!writer) return std::unexpected(std::move(writer.error()));
  if (Result<void> known = writer->read_live(database); !known) return known;
  model::Event event = end.event;
  event.at = at;
  return writer->write({.events = {std::move(event)}, .decisions = {end.decision}});
}

bool was_stopped(const EarlierEnd& end) {
  return std::ranges::any_of(end.decision.changes, [](const model::Change& change) {
    const auto* const task = std::get_if<model::TaskChanged>(&change);
    return task != nullptr && task->verdict == model::Verdict::Stopped;
  });
}

}  // namespace

Result<EarlierEndCounts> put_earlier_ends(Database& database, const std::vector<EarlierEnd>& ends) {
  // With the order in which they came, as std::stable_sort would keep it: its buffer is deprecated.
  std::vector<std::pair<Instant, std::size_t>> order;
  order.reserve(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) order.emplace_back(ends[i].event.at, i);
  std::ranges::sort(order);
  EarlierEndCounts counts;
  for (const auto& [when, place] : order) {
    const EarlierEnd& end = ends[place];
    const Result<std::optional<std::uint32_t>> found = shape_of_running(database, end);
    if (!found) return std::unexpected(found.error());
    const std::optional<std::uint32_t>& shape = *found;
    if (!shape) continue;
    const Result<std::int64_t> last = database.number(kLastInstant);
    if (!last) return std::unexpected(last.error());
    const Instant at = std::max(end.event.at, Instant{Duration(*last)});
    if (Result<void> done = put(database, end, *shape, at); !done) {
      return std::unexpected(std::move(done.error()));
    }
    ++(was_stopped(end) ? counts.stopped : counts.own);
  }
  return counts;
}

}  // namespace trainyard::journal
