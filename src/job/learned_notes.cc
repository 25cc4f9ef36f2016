#include "job/learned_notes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"

namespace trainyard::job {

template <class Value>
void LearnedNotes::Range<Value>::see(Value value, const Expected<Value>& expected) {
  least = any ? std::min(least, value) : value;
  most = any ? std::max(most, value) : value;
  if (!any || expected.from.started_unix_ms > from.started_unix_ms) from = expected.from;
  at_least = at_least || expected.at_least;
  any = true;
}

template <class Value>
std::string LearnedNotes::Range<Value>::amounts() const {
  const std::string low = trainyard::to_text(least);
  const std::string high = trainyard::to_text(most);
  return low == high ? high : low + " to " + high;
}

template <class Value>
std::string LearnedNotes::Range<Value>::text() const {
  return amounts() + (at_least ? " (it may need more)" : "");
}

void LearnedNotes::see(const std::string& group, const Kind& kind) {
  const LearnedUse& use = kind.use;
  if (use == LearnedUse{}) return;
  OfGroup& of = groups_[group];
  if (use.memory) of.memory.see(kind.terms.request.memory, kind.expected.memory);
  if (use.gpu_memory) of.gpu_memory.see(kind.terms.request.gpu_memory, kind.expected.gpu_memory);
  if (use.duration) of.duration.see(kind.terms.train_expected, kind.expected.train);
  if (use.gpu_too_small) {
    of.too_much.see(kind.expected.gpu_memory.value, kind.expected.gpu_memory);
  }
  if (use.memory_kept) {
    of.other_memory.see(kind.expected.memory.value, kind.expected.memory);
    of.kept.see(kind.terms.request.memory, {});
  }
  if (use.gpu_kept) {
    of.other_gpu_memory.see(kind.expected.gpu_memory.value, kind.expected.gpu_memory);
  }
}

void LearnedNotes::see_elsewhere(const std::string& group, const LearnedFrom& from) {
  std::optional<LearnedFrom>& known = groups_[group].elsewhere;
  if (!known || from.started_unix_ms > known->started_unix_ms) known = from;
}

void LearnedNotes::tell(const std::string& group, const OfGroup& learned,
                        std::vector<std::string>& notes) const {
  // Numbers from the same run are in one note.
  std::vector<std::pair<std::string, std::vector<std::string>>> by_run;
  const auto add = [&](std::string_view key, const auto& range) {
    if (!range.any) return;
    std::string from = to_text(range.from, here_);
    auto known = std::ranges::find_if(by_run, [&](const auto& it) { return it.first == from; });
    if (known == by_run.end()) {
      known = by_run.insert(by_run.end(), {std::move(from), std::vector<std::string>{}});
    }
    known->second.push_back(fmt::format("{} {}", key, range.text()));
  };
  add("memory", learned.memory);
  add("gpu-memory", learned.gpu_memory);
  add("duration", learned.duration);
  for (const auto& [from, numbers] : by_run) {
    notes.push_back(
        fmt::format("group '{}': {}, as learned from {}", group, fmt::join(numbers, ", "), from));
  }
  if (learned.too_much.any) {
    notes.push_back(
        fmt::format("group '{}': gpu-memory {}, as learned from {}, is more than a GPU here has; "
                    "trainyard learns it again",
                    group, learned.too_much.text(), to_text(learned.too_much.from, here_)));
  }
  // If other tasks of the group reserve the learned amount, the line names the tasks that do not.
  const auto add_kept = [&](std::string_view key, const Range<Bytes>& used,
                            const Range<Bytes>& other, const std::string& kept) {
    if (!other.any) return;
    const std::string reserve =
        used.any ? fmt::format("tasks with the new {} reserve", program_) : "reserving";
    notes.push_back(fmt::format("group '{}': {} used {} of {}, but with another {}: {} {}", group,
                                to_text(other.from, here_), other.amounts(), key, program_, reserve,
                                kept));
  };
  add_kept("memory", learned.memory, learned.other_memory, learned.kept.text());
  add_kept("gpu-memory", learned.gpu_memory, learned.other_gpu_memory, "a whole GPU");
  if (learned.elsewhere && !learned.duration.any) {
    notes.push_back(
        fmt::format("group '{}': durations are known only from {}, and are not used here", group,
                    to_text(*learned.elsewhere, here_)));
  }
}

std::vector<std::string> LearnedNotes::notes() const {
  std::vector<std::string> notes;
  std::size_t groups = 0;
  for (const auto& [group, learned] : groups_) {
    if (++groups <= kGroupsMax) tell(group, learned, notes);
  }
  if (groups > kGroupsMax) {
    notes.push_back(
        fmt::format("numbers of {} more group{} are learned: 'trainyard learned' shows them",
                    groups - kGroupsMax, groups == kGroupsMax + 1 ? "" : "s"));
  }
  return notes;
}

}  // namespace trainyard::job
