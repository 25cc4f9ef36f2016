#include "hardware/device_regions.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <system_error>

#include "hardware/cgroup.h"

namespace trainyard::hardware {
namespace {

bool is_a_size(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end && number > 0;
}

}  // namespace

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
