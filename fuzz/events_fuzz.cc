// Events, as the other end may have written them: an event that was read is written so that it is
// read again as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/events.h"

using trainyard::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = trainyard::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto event = wire::event_from_text(text)) {
    const std::string written = wire::to_text(*event);
    const auto again = wire::event_from_text(written);
    check(again.has_value(), "an event again");
    check(wire::to_text(*again) == written, "the text of an event again");
    // One that holds what is no number differs from itself.
    check(written.contains(R"("nan")") || *again == *event, "the same event again");
  }
  return 0;
}
