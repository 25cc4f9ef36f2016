// The programs that read one of their arguments, or their input, as a program once more: sh -c,
// python -c, awk, ssh. A value in such a text is a part of that program, whatever the quotes around
// it.
//
// Knows the usual programs by their names, but not through variables: `$SHELL -c` is not seen.
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "text/shell_refusal.h"

namespace trainyard::text {

/// Whether a word is one of `words`.
bool is_in(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

/// Follows one simple command.
class SecondReader {
 public:
  /// Takes its next word, the name of the command first; neither `a=b` before it nor redirections.
  /// With `may_vanish` the word is an expansion without quotes, and may be no word at all.
  void take(std::string_view word, bool may_vanish = false);

  /// The refusal by a program that reads the next word, which begins with `begun`, as a program.
  [[nodiscard]] ShellRefusal refusal(std::string_view begun) const;

  /// Whether the next word is a command for a shell, as after `sh -c`.
  [[nodiscard]] bool takes_shell_command() const;

  /// Whether its input is read as a program.
  [[nodiscard]] bool reads_input() const { return program_ != nullptr && reads_input_; }

  /// Whether its next file argument is read as a program.
  [[nodiscard]] bool takes_a_script() const;

  /// A program that reads words again; the table is in the source.
  struct Program;

 private:
  enum class State : std::uint8_t { Options, Operands, Code };

  void find(std::string_view word);
  void take_option(std::string_view option);
  void take_operand(std::string_view operand);

  const Program* program_ = nullptr;  ///< The last program that was seen.
  State state_ = State::Operands;
  int skipped_ = 0;             ///< The number of next words that are values of an option, or `$0`.
  bool code_is_next_ = false;   ///< `-c` was there.
  bool reads_input_ = false;    ///< No script, no -c.
  bool operands_only_ = false;  ///< `-s` was there: the next word is not a script.
  bool options_ended_ = false;  ///< `--` was there.
  bool first_ = true;           ///< No word has been taken.
  bool starts_others_ = false;  ///< For example `nohup` and `timeout 5`.
};

}  // namespace trainyard::text
