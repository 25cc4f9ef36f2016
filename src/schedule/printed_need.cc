#include "schedule/printed_need.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace trainyard::schedule {
namespace {

/// Memory of a process on a GPU that its framework's allocator does not count: the context of the
/// driver and the kernels, 0.3 to 0.8 GB.
constexpr Bytes kUncounted = mib(512);

/// No GPU has more. A larger number in a text is not a number of bytes.
constexpr double kMost = 1e15;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// "2.00 GiB", "2.00GiB", "2.00G", "2147483648 bytes" at the beginning of the text.
std::optional<Bytes> size_at(std::string_view text) {
  // The driver's part of TensorFlow and XLA leaves the "iB" out.
  constexpr std::array<std::pair<std::string_view, double>, 13> kUnits{{{"TiB", 1099511627776.0},
                                                                        {"GiB", 1073741824.0},
                                                                        {"MiB", 1048576.0},
                                                                        {"KiB", 1024.0},
                                                                        {"T", 1099511627776.0},
                                                                        {"G", 1073741824.0},
                                                                        {"M", 1048576.0},
                                                                        {"K", 1024.0},
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
  const std::string_view word = text.substr(0, text.find_first_not_of(kLetters));
  for (const auto& [unit, bytes] : kUnits) {
    if (word != unit) continue;
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

/// The bytes of one number of the TensorFlow type at the beginning of the text.
std::optional<double> bytes_of_type(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 14> kTypes{{{"float", 4},
                                                                        {"half", 2},
                                                                        {"bfloat16", 2},
                                                                        {"double", 8},
                                                                        {"bool", 1},
                                                                        {"int8", 1},
                                                                        {"uint8", 1},
                                                                        {"int16", 2},
                                                                        {"int32", 4},
                                                                        {"uint32", 4},
                                                                        {"int64", 8},
                                                                        {"uint64", 8},
                                                                        {"complex64", 8},
                                                                        {"complex128", 16}}};
  const std::string_view word = text.substr(0, text.find(' '));
  const auto* const found =
      std::ranges::find(kTypes, word, &std::pair<std::string_view, double>::first);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

/// The part of TensorFlow's exception about the tensor that had no room: "shape[32768,24576] and
/// type float".
std::optional<Bytes> tensor_in(std::string_view text) {
  constexpr std::string_view kShape = "OOM when allocating tensor with shape[";
  constexpr std::string_view kType = "] and type ";
  const std::size_t found = text.find(kShape);
  if (found == std::string_view::npos) return std::nullopt;
  text.remove_prefix(found + kShape.size());
  const std::size_t end = text.find(kType);
  if (end == std::string_view::npos) return std::nullopt;
  std::optional<double> bytes = bytes_of_type(text.substr(end + kType.size()));
  std::string_view shape = text.substr(0, end);
  while (bytes && !shape.empty()) {
    const std::string_view side = shape.substr(0, shape.find(','));
    std::uint32_t length = 0;
    const auto [after, error] = std::from_chars(side.data(), side.data() + side.size(), length);
    if (error != std::errc() || after != side.data() + side.size()) return std::nullopt;
    bytes = std::min(*bytes * length, kMost);
    shape.remove_prefix(std::min(side.size() + 1, shape.size()));
  }
  if (!bytes) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*bytes)};
}

/// The number before these words, a number and a unit: "5.10 GiB already allocated".
std::optional<Bytes> size_before(std::string_view text, std::string_view words) {
  const std::size_t found = text.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  const std::size_t space = text.substr(0, found).find_last_not_of(' ');
  const std::size_t unit = text.find_last_of(' ', space);
  if (space == std::string_view::npos || unit == std::string_view::npos) return std::nullopt;
  const std::size_t number = text.substr(0, unit).find_last_of(' ');
  return size_at(text.substr(number == std::string_view::npos ? 0 : number + 1));
}

/// The amount that was requested as memory ran out.
std::optional<Bytes> wish_in(std::string_view text) {
  // Without their first letters, which may be capitals.
  constexpr std::array<std::string_view, 5> kWords{"ried to allocate", "rying to allocate",
                                                   "ailed to allocate request for",
                                                   "ailed to allocate", "ut of memory allocating"};
  for (const std::string_view words : kWords) {
    if (const auto wanted = size_after(text, words)) return wanted;
  }
  return tensor_in(text);
}

/// The memory that the process had then, as far as that is printed.
std::optional<Bytes> had_in(std::string_view text) {
  // All of it, as the driver counts it.
  if (const auto all = size_after(text, "this process has")) return all;
  // If the driver does not say so, torch counts used and unused memory, each by itself.
  if (const auto used = size_after(text, "Of the allocated memory")) {
    return *used + size_before(text, "is reserved by PyTorch but unallocated").value_or(Bytes{}) +
           kUncounted;
  }
  const auto allocated = size_before(text, "already allocated");
  const auto reserved = size_before(text, "reserved in total by PyTorch");
  if (!allocated && !reserved) return std::nullopt;
  return std::max(allocated.value_or(Bytes{}), reserved.value_or(Bytes{})) + kUncounted;
}

}  // namespace

Bytes printed_need(std::string_view text, Bytes peak) {
  const std::optional<Bytes> wanted = wish_in(text);
  if (!wanted) return {};
  return had_in(text).value_or(peak) + *wanted;
}

}  // namespace trainyard::schedule
