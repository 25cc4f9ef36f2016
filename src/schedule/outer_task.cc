#include "schedule/outer_task.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"

namespace trainyard::schedule {
namespace {

bool is_held_by(const OuterTask& outer, const model::Gpu& gpu) {
  return std::ranges::any_of(
      outer.gpus, [&gpu](const std::string& label) { return model::is_called(gpu, label); });
}

/// True if the request fits next to the outer task. The GPUs that are dedicated to that task are
/// left out.
bool fits_beside(model::Request request, const model::Policy& policy,
                 const model::Capacity& capacity, const OuterTask& outer) {
  model::Capacity left = capacity;
  left.cpus = left.cpus - std::min(left.cpus, outer.cpus);
  left.memory -= std::min(left.memory, outer.memory);
  left.gpus.clear();
  std::optional<model::GpuIndex> gpu;
  for (std::uint32_t i = 0; i < capacity.gpus.size(); ++i) {
    model::Gpu each = capacity.gpus[i];
    const bool is_held = is_held_by(outer, each);
    if (is_held && outer.gpu_memory == Bytes{}) continue;
    if (is_held && model::wants_whole_gpus(request)) continue;
    if (is_held) each.memory -= std::min(each.memory, outer.gpu_memory);
    if (request.gpu && request.gpu->value == i) {
      gpu = model::GpuIndex{static_cast<std::uint32_t>(left.gpus.size())};
    }
    left.gpus.push_back(std::move(each));
  }
  if (request.gpu && !gpu) return false;
  request.gpu = gpu;
  return !never_fits(request, policy, left);
}

std::string holdings_text(const OuterTask& outer) {
  std::vector<std::string> parts;
  if (outer.cpus > model::Cpus{}) {
    const double cpus = model::as_number(outer.cpus);
    parts.push_back(fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s"));
  }
  if (outer.memory > Bytes{}) parts.push_back(fmt::format("{} of memory", to_text(outer.memory)));
  if (!outer.gpus.empty()) {
    parts.push_back(fmt::format(
        "{}GPU {}", outer.gpu_memory > Bytes{} ? to_text(outer.gpu_memory) + " of " : "",
        fmt::join(outer.gpus, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::optional<std::string> waits_for_outer_task(const model::Plan& plan,
                                                const model::Policy& policy,
                                                const model::Capacity& capacity,
                                                const OuterTask& outer) {
  for (const model::Shape& shape : plan.shapes) {
    const model::Request& request = shape.terms.request;
    if (never_fits(request, policy, capacity) || fits_beside(request, policy, capacity, outer)) {
      continue;
    }
    return fmt::format(
        "group '{}' would wait for ever: task {}, in which this command was started, holds {} "
        "until "
        "the command ends",
        plan.groups.at(shape.group.value).shown(), outer.name, holdings_text(outer));
  }
  return std::nullopt;
}

}  // namespace trainyard::schedule
