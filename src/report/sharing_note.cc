#include "report/sharing_note.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/list_text.h"

namespace trainyard::report {
namespace {

constexpr std::size_t kNamed = 3;

}  // namespace

std::string sharing_note(const model::Plan& plan, const model::Capacity& capacity) {
  Bytes largest;
  for (const model::Gpu& gpu : capacity.gpus) largest = std::max(largest, gpu.memory);
  std::vector<std::size_t> tasks(plan.shapes.size());
  for (const model::PlannedTask& task : plan.tasks) {
    if (task.is_open()) ++tasks[task.shape.value];
  }
  std::vector<bool> measured(plan.shapes.size());
  for (const model::SharingMeasured& it : plan.sharing) measured.at(it.shape.value) = true;
  std::set<std::string> groups;
  std::size_t sharing = 0;
  for (std::size_t shape = 0; shape < plan.shapes.size(); ++shape) {
    const model::Request& request = plan.shapes[shape].terms.request;
    const model::GpuSharing& written = request.sharing;
    const bool may_share = request.gpus > 0 && request.gpu_memory > Bytes{} &&
                           Bytes{2 * request.gpu_memory.count} <= largest &&
                           written.max_per_gpu != 1 && written.utilization == 0;
    const std::uint32_t group = plan.shapes[shape].group.value;
    if (!may_share || measured[shape] || tasks[shape] == 0) continue;
    sharing += tasks[shape];
    groups.insert(fmt::format("'{}'", plan.groups[group].shown()));
  }
  if (sharing < 2) return {};
  return fmt::format(
      "tasks of {} share GPUs where their memory allows it; until measured, sharing is assumed not "
      "to slow them down ('max-per-gpu' limits the tasks on a GPU, 'gpu-utilization' sets the "
      "share of a GPU that a task uses)",
      short_list_text(groups, kNamed));
}

}  // namespace trainyard::report
