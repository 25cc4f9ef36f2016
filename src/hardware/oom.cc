#include "hardware/oom.h"

#include "hardware/cgroup.h"

namespace trainyard::hardware {

OomWatch::OomWatch(const CapacitySources& sources) : machine_(sources.proc + "/vmstat") {
  const Cgroups groups = find_cgroups(sources.proc, sources.cgroup);
  if (!groups.memory.empty()) {
    group_ = groups.memory.front() + "/memory.oom_control";
  } else if (!groups.unified.empty()) {
    group_ = groups.unified.front() + "/memory.events";
  }
}

std::int64_t OomWatch::kills() const {
  const auto counted = [](const std::string& file) {
    return number_after(read_small_file(file), "oom_kill").value_or(0);
  };
  return counted(machine_) + (group_.empty() ? 0 : counted(group_));
}

}  // namespace trainyard::hardware
