#include "process/memory_group.h"

#include <array>
#include <cerrno>
#include <expected>
#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/capacity.h"
#include "sys/descriptor.h"

namespace trainyard::process {
namespace {

constexpr std::string_view kLeaf = "trainyard";
constexpr std::string_view kHowTo =
    "start it with 'systemd-run --user --scope -p Delegate=yes trainyard run ...'";

bool names(const std::string& file, std::string_view controller) {
  return hardware::has_controller(hardware::read_small_file(file), controller);
}

bool names_memory(const std::string& file) { return names(file, "memory"); }

bool may_write(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

bool may_make_groups_in(const std::string& path) {
  return may_write(path) && may_write(path + "/cgroup.procs") &&
         may_write(path + "/cgroup.subtree_control");
}

/// True if systemd manages the group. systemd takes a group for its own unless configured
/// otherwise.
bool is_kept_by_systemd(const std::string& path) {
  const std::string unit = std::filesystem::path(path).extension().string();
  if (unit != ".scope" && unit != ".service" && unit != ".slice") return false;
  for (const char* const name : {"user.delegate", "trusted.delegate"}) {
    std::array<char, 8> value{};
    const ssize_t got = ::getxattr(path.c_str(), name, value.data(), value.size());
    if (got == 1 && value[0] == '1') return false;
  }
  return true;
}

std::string why_not_in(const std::string& path) {
  if (!names_memory(path + "/cgroup.controllers")) {
    return fmt::format("the control group '{}' does not control memory", path);
  }
  // No process can be moved out of the kernel's root group.
  if (!std::filesystem::exists(path + "/cgroup.type")) {
    return "there is no control group below that of the machine";
  }
  if (is_kept_by_systemd(path)) {
    return fmt::format("the control group '{}' is systemd's; {}", path, kHowTo);
  }
  if (!may_make_groups_in(path)) {
    return fmt::format("the control group '{}' is not ours to change; {}", path, kHowTo);
  }
  return {};
}

/// Moves the processes of one group into another.
Result<void> move_all(const std::string& from, const std::string& to) {
  // Some may be started meanwhile: those that were moved start theirs in the other.
  constexpr int kPassesMax = 20;
  const std::string door = to + "/cgroup.procs";
  for (int pass = 0; pass < kPassesMax; ++pass) {
    std::istringstream inside(hardware::read_small_file(from + "/cgroup.procs"));
    bool empty = true;
    for (std::string pid; inside >> pid; empty = false) {
      const int error = write_control(door, pid);
      const bool has_ended = error == ESRCH;
      if (error != 0 && !has_ended) {
        return std::unexpected(sys::system_error(fmt::format("cannot write '{}'", door), error));
      }
    }
    if (empty) break;
  }
  return {};
}

}  // namespace

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

std::optional<std::int64_t> MemoryGroup::oom_kills() const {
  if (!is_there()) return std::nullopt;
  return hardware::oom_kills_in(path_ + "/memory.events");
}

bool MemoryGroup::is_over_limit() const {
  if (!is_there()) return false;
  const std::string events = hardware::read_small_file(path_ + "/memory.events");
  const auto count = [&](const char* name) {
    return hardware::number_after(events, name).value_or(0);
  };
  return count("oom") > 0 && count("oom_kill") > 0;
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

DelegatedGroup find_delegated_group(const hardware::Cgroups& groups) {
  DelegatedGroup found;
  if (groups.unified.empty()) {
    found.why_not =
        groups.memory.empty() ? "cgroup v2 is not available" : "only cgroup v1 is available";
    return found;
  }
  const std::string& own = groups.unified.front();
  const bool in_leaf =
      groups.unified.size() > 1 && std::filesystem::path(own).filename().string() == kLeaf;
  if (in_leaf) {
    const std::string& above = groups.unified[1];
    if (names_memory(above + "/cgroup.subtree_control") && may_make_groups_in(above)) {
      return {.path = above, .is_open = true, .why_not = {}};
    }
  }
  if (!groups.memory.empty() && !names_memory(own + "/cgroup.controllers")) {
    found.why_not = "the memory controller is in cgroup v1";
    return found;
  }
  found.why_not = why_not_in(own);
  if (found.why_not.empty()) found.path = own;
  return found;
}

DelegatedGroup find_delegated_group() {
  const hardware::CapacitySources usual;
  return find_delegated_group(hardware::find_cgroups(usual.proc, usual.cgroup));
}

Result<void> open_delegated_group(DelegatedGroup& group) {
  if (group.is_open) {
    group.has_regions = names(group.path + "/cgroup.subtree_control", "dmem");
    return {};
  }
  const std::string leaf = fmt::format("{}/{}", group.path, kLeaf);
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) {
    return std::unexpected(
        sys::system_error(fmt::format("cannot make the control group '{}'", leaf), errno));
  }
  Result<void> moved = move_all(group.path, leaf);
  if (!moved) return moved;
  Result<void> enabled = set_control(group.path + "/cgroup.subtree_control", "+memory");
  group.is_open = enabled.has_value();
  // If the kernel has no dmem controller, limits of memory are enough.
  group.has_regions = group.is_open && names(group.path + "/cgroup.controllers", "dmem") &&
                      write_control(group.path + "/cgroup.subtree_control", "+dmem") == 0;
  return enabled;
}

}  // namespace trainyard::process
