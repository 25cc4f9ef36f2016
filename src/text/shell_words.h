// The words of one simple command after the other, as far as they matter for a value: the command,
// and whether a shell would read the value as a formula or as a name. Bash executes the subscripts
// of both: `let x[$(id)]`.
//
// ShellReader finds quotes and substitutions, not this, and has words for each substitution. In
// doubt a value counts as read so. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/second_reader.h"
#include "text/shell_refusal.h"

namespace trainyard::text {

class ShellWords {
 public:
  /// Reads a character outside of quotes. The word that ends with it; empty when none does.
  std::string read(char byte);

  /// Adds a character to the word, whatever it would be elsewhere: one in quotes, or of a value.
  void add(char byte);

  /// Reads the start or the end of a quote: part of a word, and no character of it.
  void quote() {
    static_cast<void>(follow_operator('\''));
    command_start_ = may_vanish_ = false;
  }

  /// The next word is the first of a command.
  [[nodiscard]] bool at_command_start() const { return command_start_; }

  /// The reader, if any, that takes a value here, or a text printed here, for a formula or a
  /// command.
  [[nodiscard]] ShellRefusal formula() const;

  /// The reader, if any, that takes a value here for the name of a variable.
  [[nodiscard]] ShellRefusal name() const;

  /// Whether the input of this command is read as a program, as far as its words are known.
  [[nodiscard]] bool reads_input() const;

  /// Whether the word that ends here ends several commands at once, as `}` and `done` do.
  [[nodiscard]] bool ends_group() const;

  /// Whether the command is `eval` or similar.
  [[nodiscard]] bool evaluates() const;

  /// Whether a part of the text read so far has another "$@" than the beginning: in a function, and
  /// after `set -- a b` and `shift`.
  [[nodiscard]] bool changes_parameters() const { return changes_parameters_; }

  /// The words of a `$(...)` that opens here. The exit status of each of its pipelines is used.
  [[nodiscard]] ShellWords of_substitution() const;

  /// Whether a pipe has been read.
  [[nodiscard]] bool has_pipe() const { return has_pipe_; }

  /// Whether a pipe into a command that may exit before it has read everything (`head`, `grep -q`,
  /// `sed 1q`) decides what the shell does next: in `if` and `while`, before `&&` and `||`, after
  /// `!`, in `$(...)`, after `set -e`, at the end of a function. The command before the pipe may
  /// then fail with SIGPIPE. Not after `set +o pipefail`.
  [[nodiscard]] bool uses_status_of_cut_pipe() const { return uses_status_of_cut_pipe_; }

  /// Whether the last pipeline is such a pipe, and bash would report 141 as the status of the whole
  /// text: PIPESTATUS has one status for a subshell or a `wait`, and an EXIT trap of the text
  /// replaces the trap that forgives SIGPIPE.
  [[nodiscard]] bool ends_with_status_of_cut_pipe() const {
    return last_cut_ == Cut::Subshell || (sets_exit_trap_ && last_cut_ != Cut::None);
  }

  /// Whether the last command was started with `&` or `coproc`. A `wait` before it has not waited
  /// for it.
  [[nodiscard]] bool ends_in_background() const { return in_background_; }

  /// Whether a command that was started with `&` may be running when the text ends: no later one
  /// waits for it or kills it. False where a function or an EXIT trap of the text may do so.
  [[nodiscard]] bool leaves_background() const {
    return leaves_background_ && !(has_function_ && ends_others_) && !sets_exit_trap_;
  }

  /// Whether a `wait` for all that was started with `&` hides their failures, as its status is 0
  /// then. False where a function or an EXIT trap of the text may ask for them.
  [[nodiscard]] bool hides_failures() const {
    return hides_failures_ && !has_function_ && !sets_exit_trap_;
  }

  /// The refusal of all later values: kAfterInteger, kAfterOwnVariable or nothing.
  [[nodiscard]] const ShellRefusal& later_values() const { return later_values_; }

 private:
  /// The place of the open square bracket.
  enum class Bracket : std::uint8_t { None, Word, Subscript };
  /// Whether the first command of a pipeline may fail because the last one exits early: a command
  /// of the pipeline itself, or one in a subshell that ends it or that it waits for.
  enum class Cut : std::uint8_t { None, Pipe, Subshell };
  /// Parentheses that are open.
  struct Parentheses {
    bool is_file = false;  ///< `<(...)`, whose status bash ignores.
    /// `source <(...)`, `bash <(...)`: the text printed in it is read as a program.
    bool prints_program = false;
    bool has_pipefail_before = true;  ///< A subshell has its own options.
    Cut cut_before = Cut::None;
    bool is_inverted_before = false;
  };

  void append(char byte);
  void follow_brackets(char byte);
  bool follow_operator(char byte);
  void end_in_pipeline(char byte);
  void end_pipeline(bool uses_status);
  void open_parenthesis();
  void close_parenthesis();
  void follow_body();
  void end_group(Cut cut);
  void end_word();
  void find_command();
  void follow_function(char byte);
  void follow_set();
  void end_command();
  [[nodiscard]] bool stands_after_arrow() const;
  [[nodiscard]] bool prints_program() const;

  std::string word_;
  bool may_vanish_ = false;  ///< It is an expansion without quotes: none, one or several words.
  std::string last_;         ///< The word before it.
  std::string command_;      ///< The first word of the command that is neither `if` nor `a=b`.
  std::string sent_away_;    ///< The same of the command that an `&` has just ended.
  bool command_start_ = true;
  bool skips_ = false;  ///< The next word is a file's name or a function's, and no command.
  Bracket bracket_ = Bracket::None;
  int brackets_ = 0;  ///< The number of open brackets in a subscript.
  ShellRefusal later_values_;
  bool declares_lists_ = false;     ///< The command is `local -a`, or the like.
  SecondReader second_;             ///< Follows what the command does with its words.
  bool group_reads_input_ = false;  ///< A command before this one reads its input as a program.
  bool changes_parameters_ = false;
  bool is_alone_ = false;         ///< The command has no other word so far.
  bool may_be_function_ = false;  ///< After `name (`, for example.
  char option_sign_ = '\0';       ///< The sign of `-o` or `+o`, before the option that it names.

  // Pipelines.
  char operator_ = '\0';  ///< `|` or `&` when it ended the last command, until the next character.
  bool has_pipe_ = false;
  bool reads_pipe_ = false;      ///< The command reads what the one before it prints.
  bool may_exit_early_ = false;  ///< The command may exit before it has read everything.
  Cut cut_ = Cut::None;          ///< For the pipeline so far: a command of it is both.
  Cut last_cut_ = Cut::None;     ///< For the last pipeline that has ended.
  std::vector<Parentheses> parentheses_;
  bool has_function_ = false;
  bool sets_exit_trap_ = false;    ///< `trap ... EXIT`
  bool is_inverted_ = false;       ///< The pipeline comes after `!`.
  bool in_condition_ = false;      ///< Between `if` or `while` and `then` or `do`.
  bool stops_on_failure_ = false;  ///< `set -e`
  bool has_pipefail_ = true;       ///< The option of bash; a text with a pipe starts with it.
  bool uses_every_status_ = false;
  bool uses_status_of_cut_pipe_ = false;
  bool in_background_ = false;
  bool leaves_background_ = false;  ///< leaves_background(), if functions and traps do nothing.
  bool ends_others_ = false;        ///< A `wait`, `kill` or the like is somewhere in the text.
  bool hides_failures_ = false;     ///< hides_failures(), if functions and traps do nothing.
  /// The first command of a pipeline in the background may fail, which `wait` reports.
  bool background_may_be_cut_ = false;
  bool is_coprocess_ = false;  ///< The command comes after `coproc`.
};

}  // namespace trainyard::text
