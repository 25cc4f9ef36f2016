// Values that bash may evaluate: a text like `n={v}; echo $((n))` executes a value such as
// `x[$(id)]`. If a text has such a place, its values must be plain.
//
// Does not follow the assignment of variables, and does not know quotes: in doubt a text has such a
// place. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::text {

/// The characters of a plain value, for messages.
inline constexpr std::string_view kPlain = "letters, digits and _.+-%/=,:@";

struct EvaluatingPlace {
  std::string_view what;  ///< For example "'[[ ... ]]'".
  std::string_view cure;
};

/// The first kind of place of a text for bash, without its placeholders, that evaluates what a
/// variable or a value in it says: arithmetic, `[[ ]]`, subscripts, `declare`, `read "$name"`.
std::optional<EvaluatingPlace> evaluating_place(std::string_view text);

/// Whether bash finds nothing in the value that it could execute, however often it evaluates it.
bool is_plain(std::string_view value);

/// The first name in a plain value for which `is_variable` is true. Bash then evaluates the
/// variable, whose value has not been checked.
std::optional<std::string> variable_in(std::string_view value,
                                       const std::function<bool(std::string_view)>& is_variable);

}  // namespace trainyard::text
