#include "process/memory_group.h"

#include <cerrno>
#include <expected>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "sys/descriptor.h"

namespace trainyard::process {

int write_control(const std::string& path, std::string_view text) {
  const sys::Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

Result<void> set_control(const std::string& path, std::string_view text) {
  const int error = write_control(path, text);
  if (error == 0) return {};
  return std::unexpected(sys::system_error(fmt::format("cannot write '{}'", path), error));
}

void change_memory_limit(const std::string& path, Bytes most) {
  static_cast<void>(write_control(path + "/memory.max", fmt::to_string(most.count)));
}

void remove_group(const std::string& path) { static_cast<void>(::rmdir(path.c_str())); }

MemoryGroup::~MemoryGroup() {
  if (is_there()) ::rmdir(path_.c_str());
}

Result<MemoryGroup> MemoryGroup::make(std::string path, const Limits& limits) {
  if (::mkdir(path.c_str(), 0755) != 0) {
    return std::unexpected(
        sys::system_error(fmt::format("cannot make the control group '{}'", path), errno));
  }
  MemoryGroup group(std::move(path));
  for (const auto& [region, most] : limits.regions) {
    // A driver that was loaded anew meanwhile is no reason not to train.
    static_cast<void>(
        write_control(group.path_ + "/dmem.max", fmt::format("{} {}", region, most.count)));
  }
  if (limits.memory == Bytes{}) return group;
  Result<void> limited =
      set_control(group.path_ + "/memory.max", fmt::to_string(limits.memory.count));
  if (limited) limited = set_control(group.path_ + "/memory.oom.group", "1");
  if (!limited) return std::unexpected(std::move(limited).error());
  // If the kernel does not count swap, there is nothing to limit.
  static_cast<void>(write_control(group.path_ + "/memory.swap.max", "0"));
  return group;
}

Result<void> MemoryGroup::take_in(pid_t pid) const {
  return set_control(door(), fmt::to_string(pid));
}

bool MemoryGroup::is_over_limit() const {
  if (!is_there()) return false;
  const std::string events = hardware::read_small_file(path_ + "/memory.events");
  // The first counts how often the limit was reached, the second all processes that were killed,
  // for any reason.
  return hardware::number_after(events, "oom").value_or(0) > 0 &&
         hardware::number_after(events, "oom_kill").value_or(0) > 0;
}

Bytes MemoryGroup::peak() const {
  if (!is_there()) return {};
  const std::string events = hardware::read_small_file(path_ + "/memory.events");
  if (hardware::number_after(events, "max").value_or(0) > 0) return {};
  return {hardware::read_limit(path_ + "/memory.peak").value_or(0)};
}

bool MemoryGroup::has_processes() const {
  return is_there() &&
         hardware::number_after(hardware::read_small_file(path_ + "/cgroup.events"), "populated")
                 .value_or(0) > 0;
}

void MemoryGroup::kill() const {
  if (is_there()) static_cast<void>(write_control(path_ + "/cgroup.kill", "1"));
}

}  // namespace trainyard::process
