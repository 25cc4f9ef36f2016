// Whatever a task leaves: its result is an object that another parser takes, or none with a
// warning; and what was kept once is kept as it is.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "wire/result_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const trainyard::wire::ParsedResult result = trainyard::wire::parse_result(text);
  check(result.object.size() <= trainyard::wire::kResultBytesMax, "a result within its limit");
  const auto plain = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (result.object.empty()) {
    check(!result.warning.empty(), "a warning where nothing is kept");
    return 0;
  }
  const auto kept = nlohmann::json::parse(result.object, nullptr, /*allow_exceptions=*/false);
  check(kept.is_object(), "an object that another parser takes");
  check(!result.warning.empty() || plain == kept, "the same meaning where there is no warning");
  const trainyard::wire::ParsedResult again = trainyard::wire::parse_result(result.object);
  check(again.object == result.object && again.warning.empty(), "the same result a second time");
  return 0;
}
