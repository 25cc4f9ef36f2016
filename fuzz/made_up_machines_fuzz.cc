// Whatever somebody types for machines that are not here: some kinds of them, or what is wrong.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "settings/made_up_machines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kinds = settings::parse_made_up_machines(text);
  if (!kinds) {
    check(kinds.error().message.contains("', character "), "a mistake has its place");
    return 0;
  }
  check(!kinds->empty(), "one kind at least");
  int machines = 0;
  for (const settings::MadeUpMachines& kind : *kinds) {
    check(kind.count >= 1 && kind.gpus.size() <= settings::kMadeUpGpusMax, "within the limits");
    machines += kind.count;
    const auto again = settings::parse_made_up_machines(settings::to_text(kind));
    check(again && again->size() == 1, "its text is read");
    check((*again)[0].count == kind.count && (*again)[0].gpus.size() == kind.gpus.size(),
          "as the same, but for sizes that are told rounded");
  }
  check(machines <= settings::kMadeUpMachinesMax, "within the limit");
  return 0;
}
