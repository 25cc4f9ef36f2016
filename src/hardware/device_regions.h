// The memory of GPUs as the kernel's control groups know it: the regions of the controller `dmem`,
// of Linux 6.14 and later. The drivers of AMD's and Intel's GPUs have some, NVIDIA's has none.
//
// Reads files, and changes nothing. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/resources.h"

namespace trainyard::hardware {

/// No more regions than this are read.
constexpr std::size_t kDeviceRegionsMax = 256;

/// The names in a text of lines "drm/0000:03:00.0/vram0 8514437120", as `dmem.capacity` has them:
/// a word and a number above 0. Other lines are left out.
std::vector<std::string> named_regions(std::string_view text);

/// Those of `<root>/dmem.capacity`, where `root` is the directory of the machine's own group.
std::vector<std::string> device_regions(const std::string& root);

/// Those that are memory of this GPU, by its place on the bus.
std::vector<std::string> regions_of(const model::Gpu& gpu, const std::vector<std::string>& all);

}  // namespace trainyard::hardware
