// How a value goes into a shell command so that the shell sees the value and nothing else, wherever
// in the command it stands: as a word, within quotes, in a here-document, in `backticks`.
//
// Knows the words of POSIX sh as far as quoting needs them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  std::uint8_t backticks = 0;  ///< How many pairs of backticks it stands in.

  friend bool operator==(const ShellContext&, const ShellContext&) = default;
};

/// The value as one word of sh: as it is where that is safe, else in single quotes.
std::string shell_word(std::string_view value);

/// The value so that it means itself in that place.
std::string shell_quoted(std::string_view value, ShellContext context);

/// Reads a command from left to right and knows where it is.
class ShellReader {
 public:
  /// Reads on. The text of a command in pieces, with values between them.
  void read(std::string_view text);

  /// Where a value would stand now. Tells the reader that one does.
  ShellContext value_here();

  /// Whether the last character read was a backslash that quotes the next one: no value can stand
  /// here, as only its first character would be quoted.
  [[nodiscard]] bool after_backslash() const { return backslash_; }

 private:
  enum class Inside : std::uint8_t { Plain, Parentheses, Arithmetic, Backticks, Single, Double };
  struct Frame {
    Inside inside = Inside::Plain;
    int parentheses = 0;  ///< Open ones that are no substitution.
  };
  struct HereEnd {
    std::string word;
    bool quoted = false;
    bool tabs_stripped = false;
  };
  /// The end of a here-document while it is read: `<<` was seen, and its word is not over.
  enum class Reading : std::uint8_t { Nothing, AfterArrows, Word, WordSingle, WordDouble };

  void step(char byte);
  void step_plain(char byte);
  void step_double(char byte);
  bool step_here_word(char byte);
  void step_here_line(char byte);
  void open_parenthesis();
  void close_parenthesis();
  void toggle_backticks();
  [[nodiscard]] bool at_word_start() const;

  std::vector<Frame> frames_{Frame{}};
  char before_ = '\n';  ///< The character before, for `$(`, `<<` and the start of words.
  char before_that_ = '\n';
  bool backslash_ = false;
  bool comment_ = false;
  Reading reading_ = Reading::Nothing;
  HereEnd here_word_;
  std::vector<HereEnd> here_wanted_;  ///< Their documents start with the next line.
  bool in_here_ = false;
  std::string here_line_;
};

}  // namespace trainyard
