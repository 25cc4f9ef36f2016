// Finds the places in a shell command where a value is possible. It is not where its text would be
// read once more (arithmetic, subscripts, `eval`, `sh -c`), nor where shells disagree about the end
// of a quote or a substitution. In doubt it says no.
//
// The shell receives values as variables, so a misread place shows a wrong text or several words. A
// value is executed only where its text is read once more: that is what matters here.
//
// Knows POSIX sh as far as needed, and the differences of bash. Not a checker of commands: a
// command that no shell takes is read to its end as well. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "text/shell_quote.h"
#include "text/shell_refusal.h"
#include "text/shell_words.h"

namespace trainyard::text {

/// Features of a command that do not depend on its values.
struct ShellTraits {
  /// Its "$@" is another one in a part of it, as in a function or after `set --`.
  bool changes_parameters = false;
  bool has_pipe = false;
  /// See ShellWords.
  bool uses_status_of_cut_pipe = false;
  bool ends_in_background = false;
  bool leaves_background = false;
  bool hides_failures = false;
  bool has_bash_operator = false;  ///< `&>`, `&>>` or `|&`, outside of quotes and backticks.
};

/// A here-document, from its `<<`.
struct HereEnd {
  std::string word;
  bool quoted = false;         ///< Nothing is expanded in the document.
  bool tabs_stripped = false;  ///< `<<-`
  bool is_code = false;        ///< The reader of the document takes it for a program.
  bool is_sent_on = false;     ///< Its line ends with a pipe: the reader of the document is not
                               ///< known yet.
  std::size_t depth = 0;       ///< The number of substitutions and quotes around its `<<`.

  /// Whether a line of the document is its end.
  [[nodiscard]] bool is_ended_by(std::string_view line) const;

  /// Whether some shell takes the line for the end: in `$(...)` that may be `EOF)` too.
  [[nodiscard]] bool may_be_ended_by(std::string_view line) const;
};

/// The target of the document in the line of its `<<`, taken character by character.
class PipeOfLine {
 public:
  void take(char byte);

  /// Whether the reader of the document is on a later line, if this one ends here, as in `cat <<EOF
  /// |` and `cat <<EOF | {`.
  [[nodiscard]] bool is_open() const;

 private:
  bool piped_ = false;
  std::string begins_;  ///< The beginning of the text after the last pipe.
};

/// Reads a command from left to right and knows where it is.
class ShellReader {
 public:
  /// Reads on. The text of a command in pieces, with values between them.
  void read(std::string_view text);

  /// The late refusal of a value in a place that seemed possible: in a document in a group, whose
  /// output is piped to a reader that takes it as a program. Called when all has been read.
  ShellRefusal at_end();

  /// In doubt "$@" changes. Asked after at_end().
  [[nodiscard]] ShellTraits traits() const;

  /// The place of a value at this point, which the reader then takes as present; or the reason why
  /// no value is possible.
  std::expected<ShellContext, ShellRefusal> value_here();

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
    bool in_double = false;  ///< For braces: they are in double quotes.
    ShellWords words;        ///< The words outside of quotes and braces.
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
  void open_substitution(Inside inside);
  void open_parenthesis();
  void close_parenthesis();
  void follow_words(char byte);
  void follow_group(char byte);
  void remember(char byte);
  void give_up(const ShellRefusal& why);
  [[nodiscard]] bool at_word_start() const;
  [[nodiscard]] ShellWords& words();
  [[nodiscard]] ShellRefusal why_not_here() const;
  [[nodiscard]] ShellRefusal read_again_here() const;
  [[nodiscard]] bool joins_a_name() const;

  std::vector<Frame> frames_{Frame{}};
  ShellRefusal given_up_;  ///< The reason why the place is unknown; nothing while it is known.
  char before_ = '\n';     ///< The character before, for `$(`, `<<` and the start of words.
  char before_that_ = '\n';
  PipeOfLine pipe_;
  bool group_is_piped_ = false;  ///< The output of several commands goes to the input of the next
                                 ///< ones.
  ShellRefusal late_;            ///< For a value in a document that was read before.
  ShellTraits traits_;
  bool in_word_ = false;  ///< The character that is being read ends a part of a word.
  bool backslash_ = false;
  bool comment_ = false;
  bool variable_ = false;         ///< In the name of `$name`.
  bool variable_before_ = false;  ///< Before the backslash that was read last.

  // Here-documents.
  Reading reading_ = Reading::Nothing;
  HereEnd here_word_;
  std::vector<HereEnd> here_wanted_;  ///< Their documents start with the next line.
  bool in_here_ = false;
  std::string here_line_;
  std::string here_joined_;     ///< The same, with the lines before it that a backslash continues.
  std::string here_closers_;    ///< The characters that close the open expansions in the document.
  std::string here_expansion_;  ///< The text in them.
  bool lost_in_here_ = false;   ///< Until the document ends.
  bool value_in_here_ = false;  ///< A value is in a document that has been read.
};

/// The shell that runs texts.
inline constexpr const char* kBash = "/bin/bash";

/// The program and its arguments; arguments added to them are "$0" and "$@" of the text.
///
/// A text with a pipe runs with pipefail, so that `train | tee log` fails if `train` does. A
/// command that SIGPIPE has killed (status 141) is then not a failure of the text, if all others of
/// its last pipeline, the last command among them, have succeeded: `sort -r | head -n 1`. With `set
/// -e` it is one, since bash has stopped there.
std::vector<std::string> bash_command(std::string text, const ShellTraits& traits);

/// The same for a text that has no placeholders.
std::vector<std::string> bash_command(std::string text);

}  // namespace trainyard::text
