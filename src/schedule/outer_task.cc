#include "schedule/outer_task.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "model/ids.h"
#include "schedule/scheduler.h"

namespace trainyard::schedule {
namespace {

bool is_held_by(const OuterTask& outer, const model::Gpu& gpu) {
  return std::ranges::any_of(
      outer.gpus, [&gpu](const std::string& label) { return model::is_called(gpu, label); });
}

/// Leaves of a GPU what the outer tasks do not hold. Returns false if a task with this request
/// cannot have the GPU: one of them has all of it, or the task wants whole GPUs and one has a part.
bool leave_rest(model::Gpu& gpu, const model::Request& request, std::span<const OuterTask> outer) {
  for (const OuterTask& each : outer) {
    if (!is_held_by(each, gpu)) continue;
    if (each.gpu_memory == Bytes{} || model::wants_whole_gpus(request)) return false;
    gpu.memory -= std::min(gpu.memory, each.gpu_memory);
  }
  return true;
}

/// True if the request fits next to the outer tasks. The GPUs that are dedicated to one of them are
/// left out.
bool fits_beside(model::Request request, const model::Policy& policy,
                 const model::Capacity& capacity, std::span<const OuterTask> outer) {
  model::Capacity left = capacity;
  for (const OuterTask& each : outer) {
    left.cpus = left.cpus - std::min(left.cpus, each.cpus);
    left.memory -= std::min(left.memory, each.memory);
  }
  left.gpus.clear();
  std::optional<model::GpuIndex> gpu;
  for (std::uint32_t i = 0; i < capacity.gpus.size(); ++i) {
    model::Gpu each = capacity.gpus[i];
    if (!leave_rest(each, request, outer)) continue;
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

/// Says what is in the way: the one outer task next to which the request does not fit, else all of
/// them. Those that hold nothing are left out.
std::string holders_text(const model::Request& request, const model::Policy& policy,
                         const model::Capacity& capacity, std::span<const OuterTask> outer) {
  const auto alone = std::ranges::find_if(outer, [&](const OuterTask& each) {
    return !fits_beside(request, policy, capacity, {&each, 1});
  });
  if (alone != outer.end()) {
    return fmt::format("task {}, in which this command was started, holds {}", alone->name,
                       holdings_text(*alone));
  }
  std::vector<std::string> holders;
  for (const OuterTask& each : outer) {
    const std::string holdings = holdings_text(each);
    if (!holdings.empty()) holders.push_back(fmt::format("{} ({})", each.name, holdings));
  }
  return fmt::format("tasks {}, in which this command was started, hold what it needs",
                     list_text(holders));
}

}  // namespace

std::optional<std::string> waits_for_outer_tasks(const model::Plan& plan,
                                                 const model::Policy& policy,
                                                 const model::Capacity& capacity,
                                                 std::span<const OuterTask> outer) {
  for (const model::Shape& shape : plan.shapes) {
    const model::Request& request = shape.terms.request;
    if (never_fits(request, policy, capacity) || fits_beside(request, policy, capacity, outer)) {
      continue;
    }
    return fmt::format("group '{}' would wait for ever: {} until the command ends",
                       plan.groups.at(shape.group.value).shown(),
                       holders_text(request, policy, capacity, outer));
  }
  return std::nullopt;
}

}  // namespace trainyard::schedule
