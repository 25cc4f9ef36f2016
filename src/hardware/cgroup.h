// Where the control groups are that we live in, version 1 and 2, and what their files say.
//
// Finds and reads; makes and changes nothing. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/resources.h"

namespace trainyard::hardware {

/// Directories, our own group first, then those above it up to the root of the mount.
struct Cgroups {
  std::vector<std::string> unified;  ///< Version 2; empty where it is not used.
  std::vector<std::string> memory;   ///< The rest version 1, by controller.
  std::vector<std::string> cpu;
  std::vector<std::string> cpuset;
  std::vector<std::string> pids;
};

/// Reads <proc>/self/cgroup and looks below `cgroup`, the directory where they are mounted. In a
/// container the mount may show the container's own group as its root, while the paths are those of
/// the host: the longest end of a path that is there counts.
Cgroups find_cgroups(const std::string& proc, const std::string& cgroup);

/// Whether a list of controllers, "cpu,memory" or "cpu memory", has this one.
bool has_controller(std::string_view controllers, std::string_view wanted);

/// The text of a small file; empty when it cannot be read.
std::string read_small_file(const std::string& path);

/// The number that a file holds. Nothing for "max", for anything else that is no number, and for
/// one so high (2^60) that it is version 1's way of saying "no limit".
std::optional<std::int64_t> read_limit(const std::string& path);

/// The number behind a name in a text of lines "name number".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view name);

/// The processes that the kernel's out-of-memory killer has ended, by a file that has the line
/// "oom_kill 3": memory.events or memory.oom_control of a group, or vmstat. Nothing where it has not.
std::optional<std::int64_t> oom_kills_in(const std::string& file);

/// Maximum number of regions of GPU memory that are read.
constexpr std::size_t kDeviceRegionsMax = 256;

/// The regions of GPU memory in a text of lines "drm/0000:03:00.0/vram0 8514437120", as the file
/// `dmem.capacity` has them (Linux 6.14 and later; the drivers of AMD and Intel, not NVIDIA's): a
/// word and a number above 0. Other lines are left out.
std::vector<std::string> named_regions(std::string_view text);

/// Those of `<root>/dmem.capacity`, where `root` is the directory of the machine's own group.
std::vector<std::string> device_regions(const std::string& root);

/// Those that are memory of this GPU, by its place on the bus.
std::vector<std::string> regions_of(const model::Gpu& gpu, const std::vector<std::string>& all);

}  // namespace trainyard::hardware
