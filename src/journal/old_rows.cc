#include "journal/old_rows.h"

#include <algorithm>
#include <expected>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace trainyard::journal {

Result<std::vector<OldGroup>> read_old_groups(Database& database, const std::string& batches) {
  std::vector<OldGroup> old;
  Result<Statement> rows =
      database.prepare(fmt::format("SELECT number, batch, name, needs, parallel_max, fail_fast, "
                                   "try_first, position, needs_tasks "
                                   "FROM groups WHERE batch IN ({}) ORDER BY number",
                                   batches));
  if (!rows) return std::unexpected(std::move(rows.error()));
  while (true) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return old;
    old.push_back({.number = static_cast<std::uint32_t>(rows->integer(0)),
                   .batch = static_cast<std::uint32_t>(rows->integer(1)),
                   .name = std::string(rows->text(2)),
                   .settings = {.needs = std::string(rows->text(3)),
                                .needs_tasks = std::string(rows->text(8)),
                                .parallel_max = rows->small(4),
                                .fail_fast = rows->small(5) != 0,
                                .try_first = rows->small(6) != 0},
                   .present = !rows->null(7)});
  }
}

std::vector<LonePair> pairs_of(std::vector<Lone> old, std::vector<Lone> now) {
  std::ranges::sort(old);
  std::ranges::sort(now);
  std::vector<LonePair> pairs;
  auto at = old.cbegin();
  for (const Lone& task : now) {
    const auto before = [&task](const Lone& other) {
      return std::tie(other.group, other.id) < std::tie(task.group, task.id);
    };
    while (at != old.cend() && before(*at)) ++at;
    if (at == old.cend() || at->group != task.group || at->id != task.id) continue;
    pairs.push_back({.old = at->place, .now = task.place});
    ++at;
  }
  return pairs;
}

}  // namespace trainyard::journal
