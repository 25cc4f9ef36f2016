#include "mnist/options.h"

#include <charconv>
#include <cstddef>
#include <expected>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace mnist {
namespace {

constexpr int kHiddenMax = 4096;
constexpr int kEpochsMax = 1000;

/// Reads all of `text` as a number from `min` to `max`.
template <class Number>
bool read_number(std::string_view text, Number min, Number max, Number& into) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  // Written so that a NaN, which compares as false, is refused.
  if (status != std::errc{} || rest != end || !(value >= min && value <= max)) return false;
  into = value;
  return true;
}

std::string set_option(Options& options, std::string_view name, std::string_view value) {
  const auto must = [&](bool holds, std::string_view rule) {
    return holds ? std::string() : fmt::format("{}: '{}' is not {}", name, value, rule);
  };
  if (name == "--data") {
    options.data = value;
    return must(!value.empty(), "a directory");
  }
  if (name == "--lr") {
    return must(read_number(value, 1e-9, 1e3, options.learning_rate), "a rate from 1e-9 to 1000");
  }
  if (name == "--hidden") {
    return must(read_number(value, 1, kHiddenMax, options.hidden), "a number from 1 to 4096");
  }
  if (name == "--seed") {
    return must(read_number<std::uint64_t>(value, 0, UINT64_MAX, options.seed), "a whole number");
  }
  if (name == "--epochs") {
    return must(read_number(value, 1, kEpochsMax, options.epochs), "a number from 1 to 1000");
  }
  if (name == "--fraction") {
    return must(read_number(value, 1e-6, 1.0, options.fraction), "a share above 0, at most 1");
  }
  return fmt::format("unknown option '{}'", name);
}

}  // namespace

Result<Options> parse_options(std::span<const char* const> arguments, Options defaults) {
  Options options = std::move(defaults);
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--help") {
      options.help = true;
      return options;
    }
    if (i + 1 == arguments.size())
      return std::unexpected(fmt::format("{}: a value is missing", name));
    std::string fault = set_option(options, name, arguments[i + 1]);
    if (!fault.empty()) return std::unexpected(std::move(fault));
  }
  return options;
}

}  // namespace mnist
