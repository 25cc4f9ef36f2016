#include "schedule/printed_need.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/bytes.h"

namespace trainyard::schedule {
namespace {

/// What a process has on a card that its framework's allocator does not count: the context of the
/// driver and the kernels, 0.3 to 0.8 GB.
constexpr Bytes kUncounted = mib(512);

/// No card has more. What a text says beyond it is no number of bytes.
constexpr double kMost = 1e15;

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// "2.00 GiB", "2.00GiB", "2147483648 bytes" at the beginning of the text.
std::optional<Bytes> size_at(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"TiB", 1099511627776.0},
                                                                       {"GiB", 1073741824.0},
                                                                       {"MiB", 1048576.0},
                                                                       {"KiB", 1024.0},
                                                                       {"GB", 1e9},
                                                                       {"MB", 1e6},
                                                                       {"KB", 1e3},
                                                                       {"bytes", 1},
                                                                       {"B", 1}}};
  text = without_spaces(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  text = without_spaces(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.starts_with(unit)) continue;
    return Bytes{static_cast<std::int64_t>(std::min(number * bytes, kMost))};
  }
  return std::nullopt;
}

/// The number after these words.
std::optional<Bytes> size_after(std::string_view text, std::string_view words) {
  const std::size_t found = text.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  return size_at(text.substr(found + words.size()));
}

/// The number before these words: "5.10 GiB already allocated".
std::optional<Bytes> size_before(std::string_view text, std::string_view words) {
  const std::size_t found = text.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  // A number and its unit, behind what separates them from the one before.
  const std::size_t from = text.substr(0, found).find_last_of(";(,.");
  std::size_t begin = from == std::string_view::npos ? 0 : from + 1;
  // That may have been the point within the number.
  if (from != std::string_view::npos && text[from] == '.') {
    const std::size_t before = text.substr(0, from).find_last_not_of("-0123456789");
    begin = before == std::string_view::npos ? 0 : before + 1;
  }
  return size_at(text.substr(begin));
}

}  // namespace

Bytes printed_need(std::string_view text, Bytes peak) {
  std::optional<Bytes> wanted = size_after(text, "Tried to allocate");
  if (!wanted) wanted = size_after(text, "rying to allocate");
  if (!wanted) return {};
  // All that the process has, as the driver counts it.
  if (const auto all = size_after(text, "this process has")) return *all + *wanted;
  const auto allocated = size_before(text, "already allocated");
  const auto reserved = size_before(text, "reserved in total by PyTorch");
  if (!allocated && !reserved) return peak + *wanted;
  const Bytes counted = std::max(allocated.value_or(Bytes{}), reserved.value_or(Bytes{}));
  return counted + *wanted + kUncounted;
}

}  // namespace trainyard::schedule
