#include "journal/changes.h"

#include <algorithm>
#include <expected>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "journal/rows.h"

namespace trainyard::journal {
namespace {

std::string words_for(int parallel_max) {
  return parallel_max == 0 ? "no limit" : fmt::format("{}", parallel_max);
}

std::string text_about_kept(std::size_t tasks) {
  if (tasks == 1) {
    return "1 task was changed after it had finished; its result is kept (--rerun-changed runs it "
           "again)";
  }
  return fmt::format(
      "{} tasks were changed after they had finished; their results are kept (--rerun-changed runs "
      "them again)",
      tasks);
}

}  // namespace

Result<std::vector<OldGroup>> read_old_groups(Database& database, const std::string& batches) {
  return collect(
      database,
      fmt::format(
          "SELECT number, batch, name, needs, parallel_max, fail_fast, try_first, position, "
          "needs_tasks FROM groups WHERE batch IN ({}) ORDER BY number",
          batches),
      [](const Statement& row) {
        return OldGroup{.number = static_cast<std::uint32_t>(row.integer(0)),
                        .batch = static_cast<std::uint32_t>(row.integer(1)),
                        .name = std::string(row.text(2)),
                        .settings = {.needs = std::string(row.text(3)),
                                     .needs_tasks = std::string(row.text(8)),
                                     .parallel_max = row.small(4),
                                     .fail_fast = row.small(5) != 0,
                                     .try_first = row.small(6) != 0},
                        .present = !row.null(7)};
      });
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

void Changes::add(std::string line) {
  count_ += 1;
  if (first_.size() < kChangeLinesMax) first_.push_back(std::move(line));
}

void Changes::compare(const std::string& group, const GroupSettings& before,
                      const GroupSettings& after) {
  if (before.needs != after.needs) {
    add(fmt::format("group '{}': needs changed from {} to {}", group, before.needs, after.needs));
  }
  if (before.needs_tasks != after.needs_tasks) {
    add(fmt::format("group '{}': its tasks needed some of {} and need some of {}", group,
                    before.needs_tasks, after.needs_tasks));
  }
  if (before.parallel_max != after.parallel_max) {
    add(fmt::format("group '{}': max-parallel changed from {} to {}", group,
                    words_for(before.parallel_max), words_for(after.parallel_max)));
  }
  if (before.try_first != after.try_first) {
    add(fmt::format("group '{}': try-first changed from {} to {}", group, before.try_first ? 1 : 0,
                    after.try_first ? 1 : 0));
  }
  if (before.fail_fast != after.fail_fast) {
    add(fmt::format("group '{}': fail-fast changed from {} to {}", group, before.fail_fast,
                    after.fail_fast));
  }
}

std::vector<std::string> Changes::lines() const {
  std::vector<std::string> lines = first_;
  std::size_t count = count_;
  if (kept_ > 0) {
    lines.insert(lines.begin(), text_about_kept(kept_));
    ++count;
  }
  if (count > kChangeLinesMax) {
    lines.resize(kChangeLinesMax);
    lines.back() = fmt::format("and {} more", count - kChangeLinesMax + 1);
  }
  return lines;
}

}  // namespace trainyard::journal
