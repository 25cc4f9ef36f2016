#include "hardware/cgroup.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::hardware {
namespace {

bool is_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// The directories of a group and of those above it, as far as the mount shows them.
std::vector<std::string> levels(const std::string& mount, std::string_view path) {
  if (!is_directory(mount)) return {};
  // A path out of our namespace ("/../other") is of no use.
  if (path.contains("..")) path = "/";
  while (path.size() > 1 && !is_directory(mount + std::string(path))) {
    const std::size_t slash = path.find('/', 1);
    path = slash == std::string_view::npos ? "/" : path.substr(slash);
  }
  std::vector<std::string> found;
  while (path.size() > 1) {
    found.push_back(mount + std::string(path));
    path = path.substr(0, path.rfind('/'));
  }
  found.push_back(mount);
  return found;
}

void take_line(Cgroups& found, std::string_view line, const std::string& cgroup) {
  // "4:memory:/some/group"; of version 2: "0::/some/group".
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string_view path = line.substr(second + 1);
  if (controllers.empty()) {
    const std::string hybrid = cgroup + "/unified";
    const bool is_hybrid = is_directory(hybrid);
    if (is_hybrid || std::filesystem::exists(cgroup + "/cgroup.controllers")) {
      found.unified = levels(is_hybrid ? hybrid : cgroup, path);
    }
    return;
  }
  const auto take = [&](std::vector<std::string>& into, std::string_view name) {
    if (!has_controller(controllers, name)) return;
    const std::string alone = cgroup + "/" + std::string(name);
    into = levels(is_directory(alone) ? alone : cgroup + "/" + std::string(controllers), path);
  };
  take(found.memory, "memory");
  take(found.cpu, "cpu");
  take(found.cpuset, "cpuset");
  take(found.pids, "pids");
}

bool is_a_size(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end && number > 0;
}

}  // namespace

bool has_controller(std::string_view controllers, std::string_view wanted) {
  constexpr std::string_view kBetween = ", \n";
  while (!controllers.empty()) {
    const std::size_t end = std::min(controllers.find_first_of(kBetween), controllers.size());
    if (controllers.substr(0, end) == wanted) return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

std::string read_small_file(const std::string& path) {
  return sys::read_file(path, mib(1)).value_or(std::string());
}

Cgroups find_cgroups(const std::string& proc, const std::string& cgroup) {
  Cgroups found;
  const std::string text = read_small_file(proc + "/self/cgroup");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    take_line(found, rest.substr(0, end), cgroup);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return found;
}

std::optional<std::int64_t> read_limit(const std::string& path) {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  const std::string text = read_small_file(path);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number >= kNoLimit) return std::nullopt;
  return number;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.starts_with(name) && line.size() > name.size() &&
        (line[name.size()] == ' ' || line[name.size()] == ':')) {
      line.remove_prefix(name.size() + 1);
      while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
      std::int64_t number = 0;
      const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (error == std::errc{}) return number;
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> oom_kills_in(const std::string& file) {
  return number_after(read_small_file(file), "oom_kill");
}

std::vector<std::string> named_regions(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty() && names.size() < kDeviceRegionsMax) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos) continue;
    if (is_a_size(line.substr(space + 1))) names.emplace_back(line.substr(0, space));
  }
  return names;
}

std::vector<std::string> device_regions(const std::string& root) {
  return named_regions(read_small_file(root + "/dmem.capacity"));
}

std::vector<std::string> regions_of(const model::Gpu& gpu, const std::vector<std::string>& all) {
  std::vector<std::string> found;
  if (gpu.pci.empty()) return found;
  const std::string begins = "drm/" + gpu.pci + "/vram";
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&begins](const std::string& name) { return name.starts_with(begins); });
  return found;
}

}  // namespace trainyard::hardware
