#include "config/shell_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard {
namespace {

/// More of a word says nothing new.
constexpr std::size_t kWordMax = 64;

bool is_in(std::string_view word, const auto& set) {
  return std::ranges::find(set, word) != set.end();
}

bool is_name(std::string_view word) {
  const auto is_letter = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= '0' && byte <= '9');
  };
  return !word.empty() && std::ranges::all_of(word, is_letter);
}

/// Before the first word of a command.
bool is_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 14> kPrefixes{
      "if", "then", "else", "elif", "while",   "until",   "do",
      "!",  "{",    "time", "exec", "command", "builtin", "coproc"};
  return is_in(word, kPrefixes) || word.find('=') != std::string_view::npos;
}

constexpr std::array<std::string_view, 4> kDeclarers{"declare", "typeset", "local", "readonly"};
constexpr std::array<std::string_view, 5> kNameTakers{"unset", "read", "mapfile", "readarray",
                                                      "getopts"};
/// With or without the file that it names: `2>log`, `>`.
bool is_redirection(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("0123456789"), word.size()));
  return word.starts_with('<') || word.starts_with('>');
}

/// `>&file`, or the `>&` before it. `2>&1` has a number on its left, or on its right alone.
bool is_joint_redirection(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("0123456789"), word.size()));
  return word.starts_with(">&") || word.starts_with("<&");
}

bool names_its_file(std::string_view redirection) {
  return std::string_view("<>&|").find(redirection.back()) == std::string_view::npos;
}

/// Variables of bash whose values it reads as formulas, or as commands, whoever gives them.
constexpr std::array<std::string_view, 10> kReadAgain{
    "RANDOM", "SRANDOM", "SECONDS",        "OPTIND", "HISTCMD",
    "LINENO", "PS4",     "PROMPT_COMMAND", "ENV",    "BASH_ENV"};
bool gives_to_one_read_again(std::string_view word) {
  std::string_view name = word.substr(0, word.find('='));
  if (name.ends_with('+')) name.remove_suffix(1);
  return is_in(name, kReadAgain);
}

constexpr std::array<std::string_view, 5> kEvaluators{"eval", "trap", "alias", "compgen",
                                                      "complete"};

/// With `-v`.
constexpr std::array<std::string_view, 3> kNameTesters{"test", "[", "printf"};

}  // namespace

void ShellWords::add(char byte) {
  command_start_ = false;
  if (word_.size() < kWordMax) word_ += byte;
}

std::string ShellWords::read(char byte) {
  follow_brackets(byte);
  // `&>log` is no end of the command before it.
  const std::string sent_away = std::exchange(sent_away_, {});
  if (byte == '>' && word_.empty() && command_.empty()) command_ = sent_away;
  const bool blank = byte == ' ' || byte == '\t';
  // As in `2>&1`, `>|log`.
  const bool arrow =
      (byte == '&' || byte == '|') && is_redirection(word_) && !names_its_file(word_);
  if (arrow || (!blank && std::string_view("\n;|&()").find(byte) == std::string_view::npos)) {
    add(byte);
    return {};
  }
  end_word();
  if (byte == '&') sent_away_ = command_;
  // Within `[[ ]]` these are no end.
  if (!blank && command_ != "[[") end_command();
  return std::exchange(word_, {});
}

void ShellWords::follow_brackets(char byte) {
  if (byte == '\n') bracket_ = Bracket::None;
  if (byte == ']' && (bracket_ != Bracket::Subscript || --brackets_ == 0)) bracket_ = Bracket::None;
  if (bracket_ == Bracket::Word && (byte == ' ' || byte == '\t')) bracket_ = Bracket::None;
  if (byte != '[') return;
  if (bracket_ == Bracket::Subscript) ++brackets_;
  if (bracket_ != Bracket::None) return;
  brackets_ = 1;
  // `x[1 + 2]=3`, and `x=([1]=2)`.
  if (is_name(word_)) bracket_ = Bracket::Subscript;
  if (word_.empty()) bracket_ = Bracket::Word;
}

void ShellWords::end_word() {
  if (word_.empty()) return;
  // As in `for RANDOM in`, `read RANDOM`: what comes then is given to it.
  if (is_in(word_, kReadAgain)) values_are_formulas_ = true;
  if (command_ == "[[") {
    if (word_ == "]]") command_ = "]]";
  } else if (word_ == "{") {
    // What is in the braces begins anew, as in `coproc NAME { ...; }`.
    command_.clear();
  } else if (command_.empty()) {
    find_command();
  } else if (is_in(command_, kDeclarers) && (word_[0] == '-' || word_[0] == '+')) {
    // -i is a number, -n another name.
    if (word_.find_first_of("in") != std::string::npos) values_are_formulas_ = true;
  }
  last_ = word_;
}

/// The command comes after what is no word of it.
void ShellWords::find_command() {
  if (std::exchange(skips_, false)) return;
  if (is_redirection(word_)) {
    skips_ = !names_its_file(word_);
  } else if (word_ == "function") {
    skips_ = true;
  } else if (word_[0] != '-' && !is_prefix(word_)) {
    // What begins with a dash is an option of a prefix, as in `command -p`.
    command_ = word_;
  }
}

void ShellWords::end_command() {
  command_.clear();
  skips_ = false;
  last_.clear();
  command_start_ = true;
}

std::string_view ShellWords::formula() const {
  if (bracket_ != Bracket::None) return "in a subscript, which bash would read as a formula";
  if (command_ == "[[") {
    return "in '[[ ... ]]', which may run what a value says as '[ ... ]' does not";
  }
  if (command_ == "let") return "after 'let', which would read its value as a formula";
  if (is_in(command_, kEvaluators)) {
    return "after 'eval' or 'trap', which read its value as a command";
  }
  if (gives_to_one_read_again(word_)) {
    return "in a variable of bash that it reads as a formula or as a command";
  }
  if (is_in(command_, kDeclarers) && word_.contains("=(")) {
    return "in a list of values within quotes, which bash reads again";
  }
  if (is_joint_redirection(word_) || (is_joint_redirection(last_) && !names_its_file(last_))) {
    return "after '>&', of which bash reads the file's name twice ('>file 2>&1' means the same)";
  }
  return {};
}

std::string_view ShellWords::name() const {
  if (is_redirection(word_) || is_redirection(last_)) return {};
  const bool declared = is_in(command_, kDeclarers) && word_.find('=') == std::string::npos;
  const bool tested = is_in(command_, kNameTesters) && last_ == "-v";
  if (!declared && !tested && !is_in(command_, kNameTakers)) return {};
  return "where the name of a variable belongs, in which bash may run what a value says";
}

}  // namespace trainyard
