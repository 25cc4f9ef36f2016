#include "journal/changes.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "journal/plan_rows.h"

namespace trainyard::journal {
namespace {

std::string words_for(int parallel_max) {
  return parallel_max == 0 ? "no limit" : fmt::format("{}", parallel_max);
}

}  // namespace

void Changes::add(std::string line) {
  count_ += 1;
  if (first_.size() < kChangeLinesMax) first_.push_back(std::move(line));
}

void Changes::compare(const std::string& group, const GroupSettings& before,
                      const GroupSettings& after) {
  if (before.needs != after.needs) {
    add(fmt::format("group '{}': needs was {} and is {}", group, before.needs, after.needs));
  }
  if (before.needs_tasks != after.needs_tasks) {
    add(fmt::format("group '{}': its tasks needed some of {} and need some of {}", group,
                    before.needs_tasks, after.needs_tasks));
  }
  if (before.parallel_max != after.parallel_max) {
    add(fmt::format("group '{}': max-parallel was {} and is {}", group,
                    words_for(before.parallel_max), words_for(after.parallel_max)));
  }
  if (before.try_first != after.try_first) {
    add(fmt::format("group '{}': try-first was {} and is {}", group, before.try_first ? 1 : 0,
                    after.try_first ? 1 : 0));
  }
  if (before.fail_fast != after.fail_fast) {
    add(fmt::format("group '{}': fail-fast was {} and is {}", group, before.fail_fast,
                    after.fail_fast));
  }
}

std::vector<std::string> Changes::lines() const {
  std::vector<std::string> lines = first_;
  if (count_ > kChangeLinesMax) {
    lines.back() = fmt::format("and {} more", count_ - kChangeLinesMax + 1);
  }
  return lines;
}

}  // namespace trainyard::journal
