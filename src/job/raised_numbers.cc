#include "job/raised_numbers.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/percentile.h"
#include "model/resources.h"
#include "schedule/scheduler.h"
#include "settings/configuration.h"

namespace trainyard::job {
namespace {

/// "1m to 1m30s", or one of them where both read the same.
template <class Value>
std::string range_text(Value least, Value most) {
  const std::string low = trainyard::to_text(least);
  const std::string high = trainyard::to_text(most);
  return low == high ? high : low + " to " + high;
}

/// Peaks of one task differ a little from run to run, and a run that is resumed knows its numbers
/// again only where they are the same.
Bytes to_three_digits(Bytes size) {
  std::int64_t step = 1;
  while (size.count / step >= 1000) step *= 10;
  return {(size.count + step - 1) / step * step};
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

void RaisedNumbers::see(model::ShapeIndex shape, const LearnedTask& taken) {
  if (taken.memory > Bytes{}) taken_[shape].memory.push_back(taken.memory);
  if (taken.gpu_memory > Bytes{}) taken_[shape].gpu_memory.push_back(taken.gpu_memory);
}

LearnedUse RaisedNumbers::raise(model::ShapeIndex shape, model::Terms& terms,
                                const TermsBasis& basis) const {
  LearnedUse use;
  const auto found = taken_.find(shape);
  if (found == taken_.end()) return use;
  const model::Policy policy = settings::policy(basis.configuration, basis.capacity);
  model::Request& request = terms.request;
  const Bytes memory = std::min(to_three_digits(percentile_95(found->second.memory)),
                                settings::memory_to_give(policy, basis.capacity));
  use.memory = !terms.learns_memory && !terms.memory_hard && memory > request.memory;
  if (use.memory) request.memory = memory;
  const bool written = request.gpu_memory > Bytes{} && !terms.learns_gpu_memory;
  const bool hard = terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
  model::Terms with = terms;
  with.request.where = {};  // Sizes are compared with the largest GPU, whatever its model.
  with.request.gpu_memory = to_three_digits(percentile_95(found->second.gpu_memory));
  if (!written || hard || with.request.gpu_memory <= request.gpu_memory) return use;
  use.gpu_too_small =
      schedule::never_fits(model::request_of(with), policy, basis.capacity).has_value();
  use.gpu_memory = !use.gpu_too_small;
  if (use.gpu_memory) request.gpu_memory = with.request.gpu_memory;
  return use;
}

void RaisedNumbers::raise_all(const OfGroup& of, std::vector<model::Shape>& shapes,
                              std::vector<LearnedUse>& uses, WrittenAndTaken& told) const {
  for (std::size_t i = of.first; i < shapes.size(); ++i) {
    model::Terms& terms = shapes[i].terms;
    const model::Request written = terms.request;
    const LearnedUse raised = raise({static_cast<std::uint32_t>(i)}, terms, of.basis);
    const model::Request& reserved = terms.request;
    if (raised.memory) told.raised(of.name, "memory", written.memory, reserved.memory);
    if (raised.gpu_memory) {
      told.raised(of.name, "gpu-memory", written.gpu_memory, reserved.gpu_memory);
    }
    uses[i].memory = uses[i].memory || raised.memory;
    uses[i].gpu_memory = uses[i].gpu_memory || raised.gpu_memory;
    uses[i].gpu_too_small = uses[i].gpu_too_small || raised.gpu_too_small;
  }
}

}  // namespace trainyard::job
