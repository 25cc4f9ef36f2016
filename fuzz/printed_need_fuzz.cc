// Whatever a framework prints as it runs out of a GPU's memory, lies about numbers included.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "schedule/printed_need.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const trainyard::Bytes peak{std::int64_t{6} << 30U};
  const trainyard::Bytes needed = trainyard::schedule::printed_need(text, peak);
  check(needed >= trainyard::Bytes{}, "a need is no debt");
  check(needed == trainyard::schedule::printed_need(text, peak), "the same text, the same number");
  return 0;
}
