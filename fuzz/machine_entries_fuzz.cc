// Whatever somebody writes for the machines of a run: entries that are written so that they are
// read again as the same, or what is wrong.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "settings/machine_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto machines = settings::parse_machines(text);
  if (!machines) {
    check(!machines.error().message.empty(), "a mistake is said");
    return 0;
  }
  check(!machines->empty(), "one machine at least");
  const std::string written = settings::to_text(*machines);
  check(!written.contains('\n'), "on one line");
  const auto again = settings::parse_machines(written);
  check(again && *again == *machines, "the same again");
  for (const settings::MachineEntry& entry : *machines) {
    check(!entry.host.empty() && !entry.host.starts_with('-'), "no option of ssh");
    check(!entry.setup.contains('\0'), "a line that a shell can be given");
  }
  return 0;
}
