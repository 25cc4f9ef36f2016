#include "model/set_variables.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/fingerprint.h"

namespace trainyard::model {
namespace {

constexpr std::string_view kVersionOfSet = "1";

using ValuesByName = std::map<std::string_view, std::string_view>;

/// The last value counts of a name that is there twice.
ValuesByName values_of(std::span<const std::string_view> environment) {
  ValuesByName values;
  for (const std::string_view entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    values.insert_or_assign(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return values;
}

std::uint64_t fingerprint_of_value(std::string_view value) {
  Fingerprint fingerprint;
  fingerprint.add(value);
  return fingerprint.value();
}

std::string record_of(std::string_view name, std::optional<std::string_view> before,
                      std::optional<std::string_view> now) {
  return fmt::format(";{}={}={}", name,
                     now ? fmt::format("{:x}", fingerprint_of_value(*now)) : std::string(),
                     before ? fmt::format("{}={}", before->size(), *before) : std::string());
}

/// One variable as TRAINYARD_SET has it.
struct SetVariable {
  std::string_view name;
  std::optional<std::uint64_t> now;        ///< A fingerprint; nothing: it was taken out.
  std::optional<std::string_view> before;  ///< Nothing: it was not there.
};

template <class Number>
std::optional<Number> number_from(std::string_view digits, int base) {
  Number number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Takes what is before the next one of these characters, and the character. Nothing where none is
/// left.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

/// Takes one record from the text, which begins behind its semicolon. Nothing where it is none.
std::optional<SetVariable> take_record(std::string_view& text) {
  const auto name = take_until(text, '=');
  const auto fingerprint = take_until(text, '=');
  if (!name || name->empty() || !fingerprint) return std::nullopt;
  SetVariable variable{.name = *name};
  if (!fingerprint->empty()) {
    variable.now = number_from<std::uint64_t>(*fingerprint, 16);
    if (!variable.now) return std::nullopt;
  }
  if (!text.empty() && !text.starts_with(';')) {
    const auto digits = take_until(text, '=');
    const auto length = digits ? number_from<std::size_t>(*digits, 10) : std::nullopt;
    if (!length || *length > text.size()) return std::nullopt;
    variable.before = text.substr(0, *length);
    text.remove_prefix(*length);
  }
  if (!text.empty() && !text.starts_with(';')) return std::nullopt;
  text.remove_prefix(std::min<std::size_t>(text.size(), 1));
  return variable;
}

/// All of them, or none where the text is not whole.
std::vector<SetVariable> read_set_variables(std::string_view text) {
  std::vector<SetVariable> variables;
  if (!text.starts_with(kVersionOfSet)) return variables;
  text.remove_prefix(kVersionOfSet.size());
  if (!text.starts_with(';')) return variables;
  text.remove_prefix(1);
  while (!text.empty()) {
    const std::optional<SetVariable> variable = take_record(text);
    if (!variable) return {};
    variables.push_back(*variable);
  }
  return variables;
}

}  // namespace

std::string set_variables(std::span<const std::string_view> before,
                          std::span<const std::string_view> now) {
  const ValuesByName old_values = values_of(before);
  const ValuesByName new_values = values_of(now);
  std::string text(kVersionOfSet);
  auto old_one = old_values.begin();
  auto new_one = new_values.begin();
  while (old_one != old_values.end() || new_one != new_values.end()) {
    const bool is_new = old_one == old_values.end() ||
                        (new_one != new_values.end() && new_one->first < old_one->first);
    const bool is_gone = new_one == new_values.end() ||
                         (old_one != old_values.end() && old_one->first < new_one->first);
    const std::string_view name = is_new ? new_one->first : old_one->first;
    const auto was = is_new ? std::nullopt : std::optional((old_one++)->second);
    const auto is = is_gone ? std::nullopt : std::optional((new_one++)->second);
    if (was != is && name != kSetVariables) text += record_of(name, was, is);
  }
  return text.size() <= kSetVariablesMax ? text : std::string(kVersionOfSet);
}

std::vector<std::string> without_set_variables(std::vector<std::string> environment) {
  const std::vector<std::string_view> entries(environment.begin(), environment.end());
  ValuesByName values = values_of(entries);
  const auto mark = values.find(kSetVariables);
  if (mark == values.end()) return environment;
  for (const SetVariable& set : read_set_variables(mark->second)) {
    const auto found = values.find(set.name);
    const std::optional<std::uint64_t> now =
        found == values.end() ? std::nullopt : std::optional(fingerprint_of_value(found->second));
    if (now != set.now && !set.name.starts_with("TRAINYARD_")) continue;
    if (set.before) {
      values.insert_or_assign(set.name, *set.before);
    } else {
      values.erase(set.name);
    }
  }
  values.erase(kSetVariables);
  std::vector<std::string> left;
  left.reserve(values.size());
  std::ranges::transform(values, std::back_inserter(left), [](const auto& variable) {
    return fmt::format("{}={}", variable.first, variable.second);
  });
  return left;
}

}  // namespace trainyard::model
