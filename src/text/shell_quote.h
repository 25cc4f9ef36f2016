// The form of a value in a shell command: as a variable, for the shell that we start, which thereby
// never reads a value; and written out, for people and fingerprints.
//
// ShellReader finds the place of a value in a command, not this. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::text {

/// The place of a value in a command.
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

/// The value as one word of sh: unchanged if that is safe, else in single quotes.
std::string shell_word(std::string_view value);

/// The command, or a part of one, in single quotes for a message; in double quotes if it has single
/// ones itself: 'status sweep', "status 'my sweep'".
std::string quoted_command(const std::string& command);

/// The value, written out so that it means itself in that place.
std::string shell_quoted(std::string_view value, ShellContext context);

/// A text that the shell expands to the variable's value, and to nothing else, in that place;
/// nothing for a comment. Whatever the value is, a place that was read wrongly makes it a wrong
/// text or several words, never a part of the command's text.
std::string shell_variable(std::string_view name, Quoting quoting);

}  // namespace trainyard::text
