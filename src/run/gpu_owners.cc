#include "run/gpu_owners.h"

#include "hardware/process_owner.h"

namespace trainyard::run {

void GpuOwners::started(model::TaskIndex task, std::span<const std::int64_t> pids) {
  for (const std::int64_t pid : pids) roots_[pid] = task;
  // One of them may have been looked up before it was known whose they are.
  strangers_.clear();
}

void GpuOwners::also(model::TaskIndex task, std::span<const std::int64_t> pids) {
  for (const std::int64_t pid : pids) owners_.emplace(pid, task);
}

void GpuOwners::ended(model::TaskIndex task) {
  for (auto* const known : {&roots_, &owners_}) {
    std::erase_if(*known, [&](const auto& it) {
      if (it.second == task) former_.insert(it.first);
      return it.second == task;
    });
  }
}

std::optional<model::TaskIndex> GpuOwners::task_of(std::int64_t pid) {
  if (const auto found = owners_.find(pid); found != owners_.end()) return found->second;
  if (former_.contains(pid) || strangers_.contains(pid)) return std::nullopt;
  std::vector<std::int64_t> line = hardware::ancestors_of(pid);
  const bool is_there = !line.empty();
  line.insert(line.begin(), pid);
  for (const std::int64_t one : line) {
    const auto root = roots_.find(one);
    if (root == roots_.end()) continue;
    owners_.emplace(pid, root->second);
    return root->second;
  }
  (is_there ? strangers_ : unseen_).insert(pid);
  return std::nullopt;
}

void GpuOwners::keep_only(const std::vector<hardware::GpuState>& shown) {
  strangers_.merge(unseen_);
  unseen_.clear();
  std::set<std::int64_t> pids;
  for (const hardware::GpuState& state : shown) {
    for (const hardware::GpuProcess& process : state.processes) pids.insert(process.pid);
  }
  for (auto* const known : {&former_, &strangers_}) {
    std::erase_if(*known, [&pids](std::int64_t pid) { return !pids.contains(pid); });
  }
}

}  // namespace trainyard::run
