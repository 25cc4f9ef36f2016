// Matrix values as a journal keeps them, from a file that anybody may have changed: whatever the
// bytes are, reading ends well, and what was read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "journal/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(*-reinterpret-cast): libFuzzer gives bytes, text is read.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const trainyard::journal::MatrixValues values = trainyard::journal::matrix_from_json(text);
  const trainyard::journal::MatrixValues again =
      trainyard::journal::matrix_from_json(trainyard::journal::matrix_to_json(values));
  trainyard::check(again == values, "what was read to be read again as it was");
  return 0;
}
