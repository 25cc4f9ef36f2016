// How a value goes into a shell command so that the shell sees the value and nothing else: as a
// word, within quotes, in a here-document, in `backticks`.
//
// Not where in a command it stands: ShellReader finds that. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

/// Where in a command a value stands.
enum class ShellPlace : std::uint8_t {
  Word,  ///< Outside all quotes.
  SingleQuotes,
  DoubleQuotes,
  Comment,
  HereDocument,     ///< One in which the shell expands `$`.
  HereDocumentRaw,  ///< One whose end is quoted: nothing is expanded.
};

struct ShellContext {
  ShellPlace place = ShellPlace::Word;
  bool backticks = false;  ///< It stands in backticks.
  bool quoted = false;     ///< A word that means something else without quotes, whatever it is.

  friend bool operator==(const ShellContext&, const ShellContext&) = default;
};

/// The value as one word of sh: as it is where that is safe, else in single quotes.
std::string shell_word(std::string_view value);

/// The value so that it means itself in that place.
std::string shell_quoted(std::string_view value, ShellContext context);

}  // namespace trainyard
