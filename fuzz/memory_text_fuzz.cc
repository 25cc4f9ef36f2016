// Whatever a command leaves on its standard error: a line of it, or none.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/memory_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string> line = trainyard::wire::out_of_memory_line(text);
  if (!line) return 0;
  check(line->size() <= 600, "a line within its limit");
  check(text.contains(*line), "a part of what was said");
  check(!line->contains('\n'), "one line");
  return 0;
}
