// Whatever stands in the file in which a package says which release it is: a release, or none.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hardware/python_packages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string> release = trainyard::hardware::written_release(text);
  if (!release) return 0;
  check(!release->empty() && release->size() <= 64, "a release within its limit");
  check(text.contains(*release), "a part of what was said");
  check(release->find_first_of(" \n\"'$;,:") == std::string::npos, "one plain word");
  static_cast<void>(trainyard::hardware::is_at_least(*release, 2, 10));
  return 0;
}
