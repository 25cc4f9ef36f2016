#include "job/written_and_taken.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::job {
namespace {

/// "1m to 1m30s", or one of them where both read the same.
template <class Value>
std::string range_text(Value least, Value most) {
  const std::string low = trainyard::to_text(least);
  const std::string high = trainyard::to_text(most);
  return low == high ? high : low + " to " + high;
}

}  // namespace

void WrittenAndTaken::see(const std::string& group, const std::string& key, Bytes written,
                          Bytes taken) {
  if (taken == Bytes{}) return;
  Bytes& most = seen_[{group, key, written}].most;
  most = std::max(most, taken);
}

void WrittenAndTaken::see(const std::string& group, Duration written, Duration measured) {
  const auto [known, fresh] =
      durations_.try_emplace({group, written}, Measured{.least = measured, .most = measured});
  known->second.least = std::min(known->second.least, measured);
  known->second.most = std::max(known->second.most, measured);
}

void WrittenAndTaken::raised(const std::string& group, const std::string& key, Bytes written,
                             Bytes reserved) {
  Seen& seen = seen_[{group, key, written}];
  const bool first = seen.reserved_most == Bytes{};
  seen.reserved_least = first ? reserved : std::min(seen.reserved_least, reserved);
  seen.reserved_most = std::max(seen.reserved_most, reserved);
}

std::vector<std::string> WrittenAndTaken::notes() const {
  std::vector<std::string> notes;
  std::map<std::pair<std::string, std::string>, std::size_t> values_of_key;
  for (const auto& [what, seen] : seen_) {
    const auto& [group, key, written] = what;
    const Bytes most = seen.most;
    const bool less = most.count < written.count / 4 * 3;
    if (!less && most <= written) continue;
    if (++values_of_key[{group, key}] > kNotesMax) continue;
    std::string note = fmt::format("group '{}': {} is set to {}; tasks used at most {} last time",
                                   group, key, to_text(written), to_text(most));
    if (seen.reserved_most > Bytes{}) {
      note += "; reserving " + range_text(seen.reserved_least, seen.reserved_most);
    }
    notes.push_back(std::move(note));
  }
  for (const auto& [what, measured] : durations_) {
    const auto& [group, written] = what;
    if (++values_of_key[{group, "duration"}] > kNotesMax) continue;
    notes.push_back(
        fmt::format("group '{}': duration is set to {}; tasks took {} last time; expecting that",
                    group, trainyard::to_text(written), range_text(measured.least, measured.most)));
  }
  for (const auto& [what, count] : values_of_key) {
    if (count <= kNotesMax) continue;
    notes.push_back(fmt::format("group '{}': the same holds for {} other values of {}", what.first,
                                count - kNotesMax, what.second));
  }
  return notes;
}

}  // namespace trainyard::job
