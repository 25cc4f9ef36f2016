// How a value goes into a shell command: as a variable, for the shell that we start, which thereby
// never reads a value; and written out, for people and fingerprints.
//
// Not where in a command it stands: ShellReader finds that. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::text {

/// Where in a command a value stands.
enum class Quoting : std::uint8_t {
  Word,  ///< Outside all quotes.
  SingleQuotes,
  DoubleQuotes,
  Comment,
  HereDocument,  ///< One in which the shell expands `$`.
};

struct ShellContext {
  Quoting quoting = Quoting::Word;
  bool quoted = false;  ///< A word that means something else without quotes, whatever it is.

  friend bool operator==(const ShellContext&, const ShellContext&) = default;
};

/// The value as one word of sh: as it is where that is safe, else in single quotes.
std::string shell_word(std::string_view value);

/// The value, written out so that it means itself in that place.
std::string shell_quoted(std::string_view value, ShellContext context);

/// What the shell expands to the variable's value, and to nothing else, in that place; nothing for
/// a comment. Whatever the value is, a place that was read wrongly makes it a wrong text or several
/// words, never a part of the command's text.
std::string shell_variable(std::string_view name, Quoting quoting);

}  // namespace trainyard::text
