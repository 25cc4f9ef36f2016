// Anything may stand where what was learned is kept: it is read or refused, and what was read is
// written as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "job/learned.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(*-reinterpret-cast): libFuzzer gives bytes, text is read.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto learned = trainyard::job::Learned::parse(text);
  if (!learned) return 0;
  static_cast<void>(learned->expected("g", "t", {.host = "h", .gpus = {"card"}}));
  const auto again = trainyard::job::Learned::parse(learned->to_json());
  trainyard::check(again.has_value() && again->to_json() == learned->to_json(),
                   "what was learned survives being written");
  return 0;
}
