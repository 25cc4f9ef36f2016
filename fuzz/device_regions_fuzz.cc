// Whatever the kernel says of the memory of its devices: names, or none.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hardware/cgroup.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto names = trainyard::hardware::named_regions(text);
  check(names.size() <= trainyard::hardware::kDeviceRegionsMax, "no more than are read");
  for (const std::string& name : names) {
    check(!name.empty() && name.find_first_of(" \n") == std::string::npos, "one plain word");
    check(text.contains(name + " "), "a part of what was said");
  }
  return 0;
}
