// Where in a shell command a value would stand, and where none can: in arithmetic, within
// `${...}`, and wherever shells do not agree about where a quote or a substitution ends. In doubt
// it says no, as a value that is quoted for another place than its own is run as a command.
//
// Knows POSIX sh as far as quoting needs it, and what bash does otherwise. Not a checker of
// commands: one that no shell takes is read to its end as well. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "config/here_document.h"
#include "config/shell_quote.h"
#include "config/shell_words.h"

namespace trainyard {

/// Why no value can stand at a place.
struct ShellRefusal {
  std::string_view where;    ///< As in "within '${...}'".
  bool runs_values = false;  ///< So would one in a variable be run there.
};

/// Reads a command from left to right and knows where it is.
class ShellReader {
 public:
  /// Reads on. The text of a command in pieces, with values between them.
  void read(std::string_view text);

  /// Where a value would stand now, and tells the reader that one does; or why none can.
  std::expected<ShellContext, ShellRefusal> value_here();

  /// The end of the here-document that is being read; nullptr in none.
  [[nodiscard]] const HereEnd* here_document() const {
    return in_here_ ? &here_wanted_.front() : nullptr;
  }

 private:
  enum class Inside : std::uint8_t {
    Plain,
    Parentheses,
    Arithmetic,
    Backticks,
    Braces,
    Single,
    Double
  };
  struct Frame {
    Inside inside = Inside::Plain;
    int parentheses = 0;     ///< Open ones that are no substitution.
    bool in_double = false;  ///< Of braces: they stand in double quotes.
    ShellWords words;        ///< Of what no quotes or braces hold.
  };
  /// The end of a here-document while it is read: `<<` was seen, and its word is not over.
  enum class Reading : std::uint8_t { Nothing, AfterArrows, Word, WordSingle, WordDouble };

  void read_byte(char byte);
  void step(char byte);
  void step_plain(char byte);
  void step_double(char byte);
  void step_braces(char byte);
  void step_quote(char byte);
  void step_arrow();
  void step_sign();
  void step_line_end();
  bool step_here_word(char byte);
  void step_here(char byte);
  void step_here_expansion(char byte, bool escaped);
  void end_here_line();
  void open_after_dollar(char byte);
  void open_backticks();
  void open_parenthesis();
  void close_parenthesis();
  void leave_backticks();
  void follow_words(char byte);
  void remember(char byte);
  void give_up(std::string_view why);
  [[nodiscard]] bool in_backticks() const;
  [[nodiscard]] bool at_word_start() const;
  [[nodiscard]] ShellWords& words();
  [[nodiscard]] ShellRefusal why_not_here() const;
  [[nodiscard]] std::string_view formula_here() const;
  [[nodiscard]] bool joins_a_name() const;

  std::vector<Frame> frames_{Frame{}};
  std::string_view given_up_;  ///< Why nobody knows where it is; empty while it does.
  char before_ = '\n';         ///< The character before, for `$(`, `<<` and the start of words.
  char before_that_ = '\n';
  bool in_word_ = false;  ///< The character that is being read ends a part of a word.
  bool backslash_ = false;
  bool comment_ = false;
  bool variable_ = false;           ///< In the name of `$name`.
  bool variable_before_ = false;    ///< Before the backslash that was read last.
  bool lost_in_backticks_ = false;  ///< Until they end.

  // Here-documents.
  Reading reading_ = Reading::Nothing;
  HereEnd here_word_;
  std::vector<HereEnd> here_wanted_;  ///< Their documents start with the next line.
  bool in_here_ = false;
  std::string here_line_;
  std::string here_joined_;     ///< The same, with the lines before it that a backslash continues.
  std::string here_closers_;    ///< What closes the expansions that are open in the document.
  std::string here_expansion_;  ///< What stands in them.
  bool lost_in_here_ = false;   ///< Until the document ends.
};

}  // namespace trainyard
