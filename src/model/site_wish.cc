#include "model/site_wish.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/utf8.h"

namespace trainyard::model {
namespace {

constexpr std::array<std::string_view, 2> kWishKeys{"machine", "gpu"};
constexpr std::string_view kExample = "as in 'machine=lab*' or 'gpu=H100'";
constexpr std::size_t kPatternBytesMax = 256;

/// Goes back to the last '*' alone, so that it costs |pattern| x |text| at most.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;  // In the text: where what stands behind the '*' is looked for next.
  std::size_t place = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    if (place < pattern.size() && pattern[place] == '*') {
      star = place++;
      after_star = at;
    } else if (place < pattern.size() &&
               (pattern[place] == '?' || small_letter(pattern[place]) == small_letter(text[at]))) {
      ++place;
      ++at;
    } else if (star != std::string_view::npos) {
      place = star + 1;
      at = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', place) == std::string_view::npos;
}

/// Adds one of its parts, "machine=lab*".
Result<void> add_part(std::string_view part, SiteWish& wish) {
  const std::size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  if (std::ranges::find(kWishKeys, key) == kWishKeys.end()) {
    const auto meant = nearest(key, kWishKeys);
    if (equals == std::string_view::npos && !meant) {
      return std::unexpected(
          Error{fmt::format("'{}' must be the name of a machine or a GPU, {}", part, kExample)});
    }
    return std::unexpected(
        Error{meant ? fmt::format("unknown key '{}' (did you mean '{}'?)", key, *meant)
                    : fmt::format("unknown key '{}'; use 'machine' or 'gpu'", key)});
  }
  const std::string_view pattern =
      equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  if (pattern.empty()) {
    return std::unexpected(
        Error{fmt::format("'{}' must be a name or a pattern, {}", key, kExample)});
  }
  if (pattern.size() > kPatternBytesMax) {
    return std::unexpected(
        Error{fmt::format("'{}' has a pattern of more than {} bytes", key, kPatternBytesMax)});
  }
  std::string& into = key == "machine" ? wish.machine : wish.gpu;
  if (!into.empty()) return std::unexpected(Error{fmt::format("duplicate key '{}'", key)});
  into = pattern;
  return {};
}

}  // namespace

bool SiteWish::takes_machine(std::string_view name) const {
  return machine.empty() || name.empty() || matches_pattern(machine, name);
}

bool SiteWish::takes_gpu(std::string_view name) const {
  return gpu.empty() || name.empty() || matches_pattern("*" + gpu + "*", name);
}

Result<SiteWish> parse_site_wish(std::string_view text) {
  SiteWish wish;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (const Result<void> added = add_part(text.substr(begin, end - begin), wish); !added) {
      return std::unexpected(added.error());
    }
    begin = end + 1;
  }
  return wish;
}

std::string to_text(const SiteWish& wish) {
  std::string text = wish.machine.empty() ? "" : "machine=" + wish.machine;
  if (!wish.gpu.empty()) text += (text.empty() ? "gpu=" : ",gpu=") + wish.gpu;
  return text;
}

std::string predicate_text(const SiteWish& wish) {
  std::string text =
      wish.machine.empty() ? std::string() : fmt::format("is called '{}'", wish.machine);
  if (!wish.gpu.empty()) {
    text += fmt::format("{}has a GPU called '{}'", text.empty() ? "" : " and ", wish.gpu);
  }
  return text;
}

}  // namespace trainyard::model
