// Whatever the text: a line of /proc is read or refused, and numbers are found or not.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hardware/cgroup.h"
#include "sys/process_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto process = trainyard::sys::parse_process_stat(input);
  trainyard::check(!process || input.contains(')'), "a name in brackets");
  const auto number = trainyard::hardware::number_after(input, "oom_kill");
  trainyard::check(!number || input.contains("oom_kill"), "a name before a number");
  return 0;
}
