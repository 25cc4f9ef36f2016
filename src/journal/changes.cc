#include "journal/changes.h"

#include <utility>

#include <fmt/format.h>

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
