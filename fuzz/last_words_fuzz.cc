// Whatever a command leaves on its standard error: one line that can be shown.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "wire/last_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string words =
      trainyard::wire::last_words(std::string_view(reinterpret_cast<const char*>(data), size));
  check(words.size() <= 300, "a line within its limit");
  check(trainyard::valid_utf8(words) == words, "UTF-8");
  const bool plain = std::ranges::none_of(
      words, [](char byte) { return static_cast<unsigned char>(byte) < 0x20; });
  check(plain, "one line, without control characters");
  return 0;
}
