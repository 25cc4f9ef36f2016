#include "text/shell_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace trainyard::text {
namespace {

/// A longer part of a word adds nothing.
constexpr std::size_t kWordMax = 64;

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
constexpr std::array<std::string_view, 6> kNameTakers{"unset",     "read",    "mapfile",
                                                      "readarray", "getopts", "wait"};
/// The word without the descriptor before the arrow of a redirection: `2>log`, or `{fd}>log`.
std::string_view without_descriptor(std::string_view word) {
  if (word.starts_with('{')) {
    const std::size_t end = word.find('}');
    if (end != std::string_view::npos && is_name(word.substr(1, end - 1)))
      return word.substr(end + 1);
  }
  word.remove_prefix(std::min(word.find_first_not_of("0123456789"), word.size()));
  return word;
}

/// With or without the file that it names: `2>log`, `>`.
bool is_redirection(std::string_view word) {
  word = without_descriptor(word);
  return word.starts_with('<') || word.starts_with('>');
}

/// `>&file`, or the `>&` before it. `2>&1` has a number on its left, or on its right alone.
bool is_joint_redirection(std::string_view word) {
  word = without_descriptor(word);
  return word.starts_with(">&") || word.starts_with("<&");
}

/// The word that ends a here-document does not name a file.
bool names_its_file(std::string_view redirection) {
  if (redirection.ends_with("<<") && !redirection.ends_with("<<<")) return true;
  return std::string_view("<>&|").find(redirection.back()) == std::string_view::npos;
}

/// Variables of bash whose values it reads as formulas, or as commands, however they are set.
constexpr std::array<std::string_view, 13> kReadAgain{
    "RANDOM", "SRANDOM", "SECONDS", "OPTIND",         "HISTCMD", "LINENO",  "PS0",
    "PS1",    "PS2",     "PS4",     "PROMPT_COMMAND", "ENV",     "BASH_ENV"};
bool gives_to_one_read_again(std::string_view word) {
  std::string_view name = word.substr(0, word.find('='));
  if (name.ends_with('+')) name.remove_suffix(1);
  return is_in(name, kReadAgain);
}

constexpr std::array<std::string_view, 5> kEvaluators{"eval", "trap", "alias", "compgen",
                                                      "complete"};

/// Words that end several commands at once: a redirection there applies to each of them.
constexpr std::array<std::string_view, 5> kGroupEnds{"}", "done", "fi", "esac", ""};

constexpr ShellRefusal kPrintsProgram{
    .where = "in a command that prints what is read as a program",
    .cure = "write the program to a file, with the value as an argument of it"};
constexpr std::string_view kNumber =
    "convert it to a number first: n=$(printf %d {v}) || exit; echo $((n + 1))";
constexpr std::string_view kName =
    "assign it to a variable first, x={v}, and write \"$x\" there, in single quotes";
constexpr std::string_view kList =
    "write the command as a list, in which no shell reads it; a variable of 'env' would be run "
    "here as well";

constexpr std::array<std::string_view, 4> kConditions{"if", "elif", "while", "until"};

/// Without an argument their status is that of the command before them.
constexpr std::array<std::string_view, 2> kReturns{"return", "exit"};

/// Whether a script of `sed` has the command `q` or `Q`: `1q`, `/x/q`, `{p;q}`. Not `$q`, which is
/// for the last line.
bool has_quit(std::string_view script) {
  constexpr std::string_view kBefore = "0123456789/;{}! \n";
  constexpr std::string_view kAfter = "0123456789;} \n";
  for (std::size_t i = script.find_first_of("qQ"); i != std::string_view::npos;
       i = script.find_first_of("qQ", i + 1)) {
    const bool begins = i == 0 || kBefore.contains(script[i - 1]);
    const bool ends = i + 1 == script.size() || kAfter.contains(script[i + 1]);
    if (begins && ends) return true;
  }
  return false;
}

/// Whether a command may exit before it has read all of its input, given one of its words.
bool may_exit_early(std::string_view command, std::string_view word) {
  command.remove_prefix(command.rfind('/') + 1);
  if (command == "head") return true;
  if (command == "sed") return has_quit(word);
  constexpr std::array<std::string_view, 3> kSearchers{"grep", "egrep", "fgrep"};
  if (!is_in(command, kSearchers) || !word.starts_with('-')) return false;
  if (word.starts_with("--")) {
    return word == "--quiet" || word == "--silent" || word.starts_with("--max-count");
  }
  // Behind these letters the rest of the word is a value.
  return word.find_first_of("qm") < word.find_first_of("efABCdD");
}

/// Whether a command may wait for those in the background or kill them, given one of its words.
bool may_end_others(std::string_view command, std::string_view word) {
  constexpr std::array<std::string_view, 8> kCommands{"wait",    "fg",   "kill",   "pkill",
                                                      "killall", "eval", "source", "."};
  return is_in(command, kCommands) || word.starts_with("--pid");
}

/// With `-v`.
constexpr std::array<std::string_view, 3> kNameTesters{"test", "[", "printf"};

}  // namespace

void ShellWords::add(char byte) {
  // In quotes they redirect nothing.
  static_cast<void>(follow_operator('x'));
  append(byte == '<' || byte == '>' ? 'x' : byte);
  may_vanish_ = false;
}

ShellWords ShellWords::of_substitution() const {
  ShellWords words;
  words.uses_every_status_ = true;
  words.has_pipefail_ = has_pipefail_;
  return words;
}

/// Decides what a `|` or `&` was, now that the character after it is known. True where both are one
/// operator, `||` or `&&`.
bool ShellWords::follow_operator(char byte) {
  const char before = std::exchange(operator_, '\0');
  if (before == '\0') return false;
  if (before == byte) {
    end_pipeline(true);
    return true;
  }
  if (before == '|') {
    has_pipe_ = reads_pipe_ = true;
    if (cut_ == Cut::Subshell) cut_ = Cut::Pipe;
  } else if (byte != '>') {
    end_pipeline(false);
    in_background_ = leaves_background_ = true;
    if (last_cut_ != Cut::None) background_may_be_cut_ = true;
  }
  return false;
}

/// The command has ended with this character.
void ShellWords::end_in_pipeline(char byte) {
  // The command that reads the pipe is on the next line, or the pipe is `|&`.
  if ((byte == '\n' || byte == '&') && reads_pipe_ && command_.empty()) return;
  if (reads_pipe_ && may_exit_early_ && has_pipefail_) cut_ = Cut::Pipe;
  reads_pipe_ = may_exit_early_ = false;
  if (byte == '|' || byte == '&') {
    operator_ = byte;
  } else if (byte == '(') {
    open_parenthesis();
  } else {
    end_pipeline(false);
    if (byte == ')') close_parenthesis();
  }
}

void ShellWords::end_pipeline(bool uses_status) {
  const Cut cut = std::exchange(cut_, Cut::None);
  uses_status |= std::exchange(is_inverted_, false);
  if (cut == Cut::None) return;
  const bool is_used = uses_status || in_condition_ || stops_on_failure_ || uses_every_status_;
  if (is_used) uses_status_of_cut_pipe_ = true;
  last_cut_ = cut;
}

void ShellWords::open_parenthesis() {
  parentheses_.push_back(
      {.is_file = last_ == "<" || last_ == ">",
       .prints_program = prints_program() || (word_ == "<" && second_.takes_a_script()),
       .has_pipefail_before = has_pipefail_,
       .cut_before = std::exchange(cut_, Cut::None),
       .is_inverted_before = std::exchange(is_inverted_, false)});
  last_cut_ = Cut::None;
}

void ShellWords::close_parenthesis() {
  // The end of a pattern of `case`.
  if (parentheses_.empty()) return;
  const Parentheses closed = parentheses_.back();
  parentheses_.pop_back();
  if (closed.is_file) last_cut_ = Cut::None;
  has_pipefail_ = closed.has_pipefail_before;
  follow_body();
  end_group(Cut::Subshell);
  if (cut_ == Cut::None) cut_ = closed.cut_before;
  is_inverted_ = closed.is_inverted_before;
}

/// The group that ends now may be the body of a function, whose status is that of its last pipeline.
void ShellWords::follow_body() {
  if (has_function_ && last_cut_ != Cut::None) uses_status_of_cut_pipe_ = true;
}

/// The status of a group is that of its last pipeline, and the group is a command of another one.
void ShellWords::end_group(Cut cut) {
  const Cut last = std::exchange(last_cut_, Cut::None);
  if (last != Cut::None) cut_ = std::max(cut, last);
}

void ShellWords::append(char byte) {
  command_start_ = false;
  if (word_.empty()) may_vanish_ = byte == '$' || byte == '`';
  if (word_.size() < kWordMax) word_ += byte;
}

std::string ShellWords::read(char byte) {
  const bool continues_operator = follow_operator(byte);
  follow_brackets(byte);
  // `&>log` is no end of the command before it.
  const std::string sent_away = std::exchange(sent_away_, {});
  if (byte == '>' && word_.empty() && command_.empty()) command_ = sent_away;
  // A redirection ends a word, as in `train>log`; `2>log` is one word.
  const bool redirects = (byte == '<' || byte == '>') && bracket_ == Bracket::None;
  if (redirects && !is_redirection(word_) && !without_descriptor(word_).empty()) {
    end_word();
    word_.clear();
  }
  const bool blank = byte == ' ' || byte == '\t';
  // The character belongs to a redirection, as in `2>&1`, `>|log`.
  const bool arrow =
      (byte == '&' || byte == '|') && is_redirection(word_) && !names_its_file(word_);
  if (arrow || (!blank && std::string_view("\n;|&()").find(byte) == std::string_view::npos)) {
    append(byte);
    // Quotes there do no harm.
    if (arrow) command_start_ = true;
    return {};
  }
  end_word();
  follow_function(byte);
  if (byte == '&') sent_away_ = command_;
  // Within `[[ ]]` these are no end.
  if (!blank && command_ != "[[") {
    if (!continues_operator) end_in_pipeline(byte);
    end_command();
  }
  return std::exchange(word_, {});
}

/// `name () {`: after a separate word nothing else opens a parenthesis.
void ShellWords::follow_function(char byte) {
  if (byte == ')' && may_be_function_) changes_parameters_ = has_function_ = true;
  if (byte == ' ' || byte == '\t') return;
  may_be_function_ = byte == '(' && is_alone_ && is_name(command_);
}

/// Reads a word of `set`: its words that are not options are the new parameters.
void ShellWords::follow_set() {
  if (const char sign = std::exchange(option_sign_, '\0'); sign != '\0') {
    if (word_ == "errexit" && sign == '-') stops_on_failure_ = true;
    if (word_ == "pipefail") has_pipefail_ = sign == '-';
    return;
  }
  const bool is_option = word_[0] == '-' || word_[0] == '+';
  if (!is_option || word_ == "--") changes_parameters_ = true;
  if (is_option && word_.ends_with('o')) option_sign_ = word_[0];
  if (word_[0] == '-' && word_.contains('e')) stops_on_failure_ = true;
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
  const bool redirects = is_redirection(word_) || stands_after_arrow();
  may_be_function_ = false;
  is_alone_ = command_.empty();
  if (command_ == "set" && !redirects) follow_set();
  // The variable is assigned by the command, as in `for RANDOM in`, `read RANDOM`.
  if (is_in(word_, kReadAgain)) later_values_ = kAfterOwnVariable;
  if (command_ == "[[") {
    if (word_ == "]]") command_ = "]]";
  } else if (word_ == "{") {
    // A command starts in the braces, as in `coproc NAME { ...; }`.
    command_.clear();
  } else if (command_.empty()) {
    find_command();
  } else if (is_in(command_, kDeclarers) && (word_[0] == '-' || word_[0] == '+')) {
    // -i is a number, -n another name.
    if (word_.find_first_of("in") != std::string::npos) later_values_ = kAfterInteger;
    if (word_.find_first_of("aA") != std::string::npos) declares_lists_ = true;
  }
  if (command_ == "trap" && (word_ == "EXIT" || word_ == "0")) sets_exit_trap_ = true;
  if (!command_.empty() && !redirects) {
    may_exit_early_ = may_exit_early_ || may_exit_early(command_, word_);
    if (may_end_others(command_, word_)) {
      // The next word may name a process, also an earlier one, whose status `wait` then returns.
      if (command_ == "wait") {
        hides_failures_ = word_ == command_ && (hides_failures_ || leaves_background_);
      }
      leaves_background_ = false;
      ends_others_ = true;
    }
    if (is_in(command_, kReturns) && word_ != command_ && word_ != "$?") last_cut_ = Cut::None;
    // Without an argument `wait` succeeds.
    if (command_ == "wait" && word_ != command_ && background_may_be_cut_) cut_ = Cut::Subshell;
    second_.take(word_, may_vanish_);
  }
  last_ = word_;
}

/// The command comes after words that are not part of it.
void ShellWords::find_command() {
  if (std::exchange(skips_, false)) return;
  if (is_in(word_, kGroupEnds)) {
    if (word_ == "}") follow_body();
    end_group(Cut::Pipe);
  } else if (!is_redirection(word_) && word_[0] != '#' && !is_in(word_, kReturns)) {
    last_cut_ = Cut::None;
  }
  if (is_redirection(word_)) {
    skips_ = !names_its_file(word_);
  } else if (word_ == "function") {
    skips_ = true;
    changes_parameters_ = has_function_ = true;
  } else if (is_in(word_, kConditions)) {
    in_condition_ = true;
  } else if (word_ == "then" || word_ == "do") {
    in_condition_ = false;
  } else if (word_ == "!") {
    is_inverted_ = true;
  } else if (word_ == "coproc") {
    is_coprocess_ = true;
  } else if (word_[0] != '-' && !is_prefix(word_)) {
    // A word with a dash is an option of a prefix, as in `command -p`.
    command_ = word_;
    // A comment is not a command, and `done` ends those that were started in its loop.
    if (word_[0] != '#' && !is_in(command_, kGroupEnds)) in_background_ = is_coprocess_;
    changes_parameters_ = changes_parameters_ || word_ == "shift";
  }
}

void ShellWords::end_command() {
  if (command_ == "return" && last_cut_ != Cut::None) uses_status_of_cut_pipe_ = true;
  group_reads_input_ = group_reads_input_ || second_.reads_input();
  command_.clear();
  declares_lists_ = false;
  second_ = {};
  skips_ = false;
  is_coprocess_ = false;
  last_.clear();
  command_start_ = true;
}

/// The word is the file of the redirection before it.
bool ShellWords::stands_after_arrow() const {
  return is_redirection(last_) && !names_its_file(last_);
}

bool ShellWords::prints_program() const {
  return !parentheses_.empty() && parentheses_.back().prints_program;
}

bool ShellWords::reads_input() const {
  SecondReader with_this = second_;
  // The word ends at the `<<`, as in `sh<<EOF`.
  const bool is_word = !word_.empty() && !is_redirection(word_) && !stands_after_arrow();
  if (is_word) with_this.take(word_, may_vanish_);
  if (with_this.reads_input()) return true;
  return group_reads_input_ && ends_group();
}

bool ShellWords::ends_group() const {
  const bool is_word = !word_.empty() && !is_redirection(word_) && !stands_after_arrow();
  return is_in(command_.empty() && is_word ? word_ : command_, kGroupEnds);
}

bool ShellWords::evaluates() const { return is_in(command_, kEvaluators); }

ShellRefusal ShellWords::formula() const {
  if (bracket_ != Bracket::None) {
    return {.where = "in a subscript, which bash would read as a formula", .cure = kNumber};
  }
  if (prints_program()) return kPrintsProgram;
  if (command_ == "let") {
    return {.where = "after 'let', which would read its value as a formula", .cure = kNumber};
  }
  if (evaluates()) {
    return {.where = "after 'eval' or 'trap', which read its value as a command", .cure = kName};
  }
  if (gives_to_one_read_again(word_)) {
    return {.where = "in a variable of bash that it reads as a formula or as a command",
            .cure = kList};
  }
  if (is_in(command_, kDeclarers) && word_.contains("=(")) {
    return {.where = "in a list of values within quotes, which bash reads again", .cure = kName};
  }
  // A value in parentheses is a list where the variable is one, be it since long.
  const bool lists = declares_lists_ || command_ == "declare" || command_ == "typeset";
  if (is_in(command_, kDeclarers) && lists && word_.contains('=')) {
    return {.where = "after 'declare', which in bash may read its value as a list of words",
            .cure = "give it its value first: x={v}; declare -r x"};
  }
  if (is_joint_redirection(word_) || (is_joint_redirection(last_) && !names_its_file(last_))) {
    return {.where = "after '>&', of which bash reads the file's name twice",
            .cure = "write >{v} 2>&1"};
  }
  if (is_redirection(word_) || stands_after_arrow()) {
    const bool text = word_.starts_with("<<<") || last_.starts_with("<<<");
    return text && second_.reads_input() ? kProgramAsInput : ShellRefusal{};
  }
  return second_.refusal(word_);
}

ShellRefusal ShellWords::name() const {
  if (is_redirection(word_) || is_redirection(last_)) return {};
  const bool declared = is_in(command_, kDeclarers) && word_.find('=') == std::string::npos;
  const bool tested = is_in(command_, kNameTesters) && last_ == "-v";
  if (!declared && !tested && !is_in(command_, kNameTakers)) return {};
  return {.where = "where the name of a variable belongs, in which bash may run what a value says",
          .cure = kList};
}

}  // namespace trainyard::text
