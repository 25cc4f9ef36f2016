// What somebody types behind --where.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/result.h"
#include "text/condition.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto condition = trainyard::text::parse_condition(text);
  if (!condition) {
    check(!condition.error().message.empty(), "a mistake says what is wrong");
    return 0;
  }
  check(!text.empty(), "nothing is no condition");
  check(text.contains(condition->name) && text.contains(condition->value),
        "both sides stand in the text");
  return 0;
}
