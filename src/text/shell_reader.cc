#include "text/shell_reader.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

namespace trainyard::text {
namespace {

bool is_one_of(char byte, std::string_view set) { return set.find(byte) != std::string_view::npos; }

/// `$$` is the number of the shell. The second dollar opens nothing, though bash looks for the end
/// of `$$(` as if it did.
constexpr char kTwoDollars = '\x01';

bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

bool starts_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool continues_name(char byte) { return starts_name(byte) || (byte >= '0' && byte <= '9'); }

/// The number of bytes after a pipe that are read.
constexpr std::size_t kBeginMax = 16;

constexpr std::array<std::string_view, 8> kOpeners{"{",   "if",   "while",  "until",
                                                   "for", "case", "select", "!"};

/// On the line of the text's first command, so that its line numbers in bash are right. The
/// trap reads everything in one expression, as each command changes PIPESTATUS. The redirection
/// hides it from `set -x`.
constexpr const char* kForgiveSigpipe =
    "trap '{ [[ \"$-:$?:${PIPESTATUS[@]}\" =~ ^[^e]*:141:((0|141)\\ )+0$ ]] && exit 0; } "
    "2>/dev/null' EXIT; ";

}  // namespace

bool HereEnd::is_ended_by(std::string_view line) const {
  if (tabs_stripped) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  return line == word;
}

bool HereEnd::may_be_ended_by(std::string_view line) const {
  const auto end = std::min(line.find_last_not_of(")`") + 1, line.size());
  return is_ended_by(line) || is_ended_by(line.substr(0, end));
}

void PipeOfLine::take(char byte) {
  if (byte == '|') {
    piped_ = true;
    begins_.clear();
    return;
  }
  // The `&` of `|&` belongs to the pipe.
  const bool blank = byte == ' ' || byte == '\t';
  if (begins_.empty() && (blank || byte == '&' || byte == '\n')) return;
  if (piped_ && begins_.size() < kBeginMax) begins_ += blank || byte == '\n' ? ' ' : byte;
}

bool PipeOfLine::is_open() const {
  if (!piped_) return false;
  const std::string_view begins = begins_;
  const std::string_view word = begins.substr(0, begins.find(' '));
  return word.empty() || word[0] == '(' || word[0] == '#' ||
         std::ranges::find(kOpeners, word) != kOpeners.end();
}

void ShellReader::read(std::string_view text) {
  for (const char byte : text) read_byte(byte);
}

/// The refusal because the value, or the output of a substitution with the value, would be
/// executed.
ShellRefusal ShellReader::read_again_here() const {
  if (!in_here_ && comment_) return {};
  for (const Frame& frame : frames_) {
    if (frame.inside == Inside::Arithmetic) return kInArithmetic;
    const ShellRefusal formula = frame.words.formula();
    if (formula.refuses()) return formula;
  }
  return {};
}

/// The value would continue the name of a variable, or would be one.
bool ShellReader::joins_a_name() const {
  const Inside inside = frames_.back().inside;
  if (in_here_) return variable_ || before_ == '$';
  if (comment_ || inside == Inside::Single) return false;
  return before_ == '$' || (variable_ && inside == Inside::Double);
}

ShellRefusal ShellReader::why_not_here() const {
  if (given_up_.refuses()) return given_up_;
  if (frames_.back().inside == Inside::Backticks) return kInBackticks;
  if (backslash_) return kAfterBackslash;
  if (reading_ != Reading::Nothing) return kInHereWord;
  if (in_here_) {
    const HereEnd& document = here_wanted_.front();
    if (document.is_code) return kProgramAsInput;
    if (document.is_sent_on) return kSentOn;
    if (document.tabs_stripped) return kInTabbedHere;
    if (document.quoted) return kInQuotedHere;
    if (lost_in_here_ || !here_closers_.empty()) return kInHere;
  }
  const ShellRefusal again = read_again_here();
  if (again.refuses()) return again;
  if (!in_here_ && !comment_) {
    // Quotes belong to the command around them; a substitution is a separate command.
    for (const Frame& frame : frames_ | std::views::reverse) {
      if (frame.inside == Inside::Braces) return kInBraces;
      if (frame.inside == Inside::Single || frame.inside == Inside::Double) continue;
      const ShellRefusal name = frame.words.name();
      if (name.refuses()) return name;
      break;
    }
  }
  return joins_a_name() ? kAfterName : ShellRefusal{};
}

std::expected<ShellContext, ShellRefusal> ShellReader::value_here() {
  const ShellRefusal why = why_not_here();
  if (why.refuses()) return std::unexpected(why);
  ShellContext context;
  const Inside inside = frames_.back().inside;
  if (in_here_) {
    context.quoting = Quoting::HereDocument;
  } else if (comment_) {
    context.quoting = Quoting::Comment;
  } else if (inside == Inside::Single) {
    context.quoting = Quoting::SingleQuotes;
  } else if (inside == Inside::Double) {
    context.quoting = Quoting::DoubleQuotes;
  }
  context.quoted = context.quoting == Quoting::Word && (variable_ || words().at_command_start());
  // This line is not the end of a document, whatever the value is.
  if (in_here_) {
    here_line_ += '\n';
    here_joined_ += '\n';
    value_in_here_ = true;
  }
  if (!in_here_ && !comment_) words().add('v');
  variable_ = false;
  remember('v');
  return context;
}

void ShellReader::give_up(const ShellRefusal& why) {
  if (!given_up_.refuses()) given_up_ = why;
}

void ShellReader::remember(char byte) {
  before_that_ = std::exchange(before_, byte == '$' && before_ == '$' ? kTwoDollars : byte);
}

/// The words of the command that contains the quotes and braces.
ShellWords& ShellReader::words() {
  const auto holds = [](const Frame& frame) {
    return frame.inside != Inside::Single && frame.inside != Inside::Double &&
           frame.inside != Inside::Braces;
  };
  return std::ranges::find_if(frames_ | std::views::reverse, holds)->words;
}

bool ShellReader::at_word_start() const { return is_one_of(before_, " \t\n;|&()`"); }

void ShellReader::read_byte(char byte) {
  if (in_here_) return step_here(byte);
  if (std::exchange(backslash_, false)) {
    // The end of a line after a backslash is as good as not there; anything else means itself.
    if (byte == '\n') {
      variable_ = variable_before_;
      if (!here_wanted_.empty()) give_up(kAfterHere);
      return;
    }
    if (!comment_) words().add(byte);
    return remember('x');
  }
  variable_before_ = variable_;
  variable_ = (variable_ && continues_name(byte)) || (before_ == '$' && starts_name(byte));
  in_word_ = false;
  step(byte);
  // The character before a backslash may still join with the one after it.
  if (!backslash_) remember(in_word_ ? 'x' : byte);
}

void ShellReader::step(char byte) {
  if (frames_.back().inside == Inside::Backticks) {
    // Backticks end with the next backtick, in quotes or not. No value is possible in them, so only
    // their pipes matter.
    backslash_ = byte == '\\';
    if (backslash_) return;
    ShellWords& words = frames_.back().words;
    static_cast<void>(words.read(byte == '`' ? '\n' : byte));
    if (byte == '|') traits_.has_pipe = true;
    if (byte != '`') return;
    traits_.uses_status_of_cut_pipe |= words.uses_status_of_cut_pipe();
    frames_.pop_back();
    in_word_ = true;
    return;
  }
  if (reading_ != Reading::Nothing && step_here_word(byte)) return;
  if (comment_) {
    if (byte != '\n') return;
    comment_ = false;
  }
  const Inside inside = frames_.back().inside;
  if (inside != Inside::Single && before_ == kTwoDollars && is_one_of(byte, "({['\"")) {
    give_up(kAfterOther);
  }
  switch (inside) {
    case Inside::Single:
      variable_ = false;
      if (byte == '\'') frames_.pop_back();
      if (byte != '\'') words().add(byte);
      break;
    case Inside::Double:
      step_double(byte);
      break;
    case Inside::Braces:
      step_braces(byte);
      break;
    default:
      step_plain(byte);
      break;
  }
}

void ShellReader::step_double(char byte) {
  if (byte == '\\') backslash_ = true;
  if (byte == '"') {
    frames_.pop_back();
    return;
  }
  words().add(byte);
  if (byte == '`') open_substitution(Inside::Backticks);
  if (before_ == '$') open_after_dollar(byte);
}

void ShellReader::step_braces(char byte) {
  if (byte == '\\') backslash_ = true;
  if (byte == '`') open_substitution(Inside::Backticks);
  if (byte == '\'' || byte == '"') {
    if (frames_.back().in_double) give_up(kAfterQuoteInBraces);
    step_quote(byte);
  }
  if (byte == '}') {
    frames_.pop_back();
  } else if (before_ == '$') {
    open_after_dollar(byte);
  }
}

void ShellReader::step_quote(char byte) {
  const bool unclear = frames_.back().inside == Inside::Arithmetic;
  if (unclear || before_ == '$') give_up(kAfterOther);
  frames_.push_back({.inside = byte == '"' ? Inside::Double : Inside::Single});
}

/// `$(` and `${`.
void ShellReader::open_after_dollar(char byte) {
  const Frame& top = frames_.back();
  const bool in_double = top.inside == Inside::Double || top.in_double;
  if (byte == '(') open_substitution(Inside::Parentheses);
  if (byte == '{') frames_.push_back({.inside = Inside::Braces, .in_double = in_double});
  if (byte == '[') give_up(kAfterOther);
}

void ShellReader::open_substitution(Inside inside) {
  ShellWords substituted = words().of_substitution();
  frames_.push_back({.inside = inside, .words = std::move(substituted)});
}

void ShellReader::step_plain(char byte) {
  follow_words(byte);
  switch (byte) {
    case '\\':
      backslash_ = true;
      break;
    case '\'':
    case '"':
      step_quote(byte);
      break;
    case '`':
      open_substitution(Inside::Backticks);
      break;
    case '(':
      open_parenthesis();
      break;
    case ')':
      close_parenthesis();
      break;
    case '{':
    case '[':
      if (before_ == '$') open_after_dollar(byte);
      break;
    case '#':
      step_sign();
      break;
    case '<':
      step_arrow();
      break;
    case '\n':
      step_line_end();
      break;
    default:
      break;
  }
}

/// A comment starts with a word. To bash `<(x)#`, `x=(a)#` and `@(a)#` are one word.
void ShellReader::step_sign() {
  if (frames_.back().inside == Inside::Arithmetic) return;
  const bool pattern = before_ == '(' && is_one_of(before_that_, "@?*+!");
  if (before_ == ')' || pattern) give_up(kAfterSign);
  comment_ = at_word_start();
}

/// Watches for words that only count alone: commands, and `case`, whose patterns end with a
/// parenthesis that nothing opens.
void ShellReader::follow_words(char byte) {
  Frame& frame = frames_.back();
  if (byte == '\n' && pipe_.is_open()) {
    for (HereEnd& end : here_wanted_) end.is_sent_on = true;
  }
  pipe_.take(byte);
  if (is_one_of(byte, "\\'\"")) return frame.words.quote();
  // A substitution is a part of its word, and what comes after it belongs to the same command.
  if (byte == '(' && before_ == '$') return;
  // In `eval x=(a) b` and `eval <(a) b`, too.
  if (byte == '(' && frame.words.evaluates()) give_up(kAfterOther);
  // The reader of the document comes after its `<<`, as in `cat <<EOF | sh` and `<<EOF sh`.
  if (is_one_of(byte, "\n;|&()") && !here_wanted_.empty() && frame.words.reads_input()) {
    for (HereEnd& end : here_wanted_) end.is_code = true;
  }
  follow_group(byte);
  const std::string word = frame.words.read(byte);
  if (word == "case" && frame.inside == Inside::Parentheses) give_up(kAfterCase);
  const ShellWords& words = frame.words;
  // `&&>log` is `&&` and a redirection, in bash as well.
  traits_.has_bash_operator |=
      (byte == '>' && before_ == '&' && before_that_ != '&') || (byte == '&' && before_ == '|');
  traits_.changes_parameters |= words.changes_parameters();
  traits_.has_pipe |= words.has_pipe();
  traits_.uses_status_of_cut_pipe |= words.uses_status_of_cut_pipe();
  give_up(frame.words.later_values());
}

/// Follows a document in a group, as in `{ cat <<EOF`, the document, `} | sh`.
void ShellReader::follow_group(char byte) {
  const ShellWords& words = frames_.back().words;
  if (!is_one_of(byte, "\n;|&()")) return;
  if (group_is_piped_ && value_in_here_ && words.reads_input()) late_ = kProgramAsInput;
  if (byte == '|') {
    // The second one of `||` ends nothing.
    group_is_piped_ = group_is_piped_ || (before_ != '|' && words.ends_group());
  } else if (is_one_of(byte, "\n;") && !pipe_.is_open()) {
    group_is_piped_ = false;
  }
}

ShellRefusal ShellReader::at_end() {
  if (!in_here_) read_byte('\n');
  return late_;
}

ShellTraits ShellReader::traits() const {
  ShellTraits traits = traits_;
  const ShellWords& words = frames_.front().words;
  traits.ends_in_background = words.ends_in_background();
  traits.leaves_background = words.leaves_background();
  traits.hides_failures = words.hides_failures();
  traits.uses_status_of_cut_pipe |= words.ends_with_status_of_cut_pipe();
  return traits;
}

/// `<<` starts a here-document. `<<<` is a string and not a document; in arithmetic the arrows are
/// a shift.
void ShellReader::step_arrow() {
  if (before_ != '<' || before_that_ == '<') return;
  if (frames_.back().inside == Inside::Arithmetic) return;
  reading_ = Reading::AfterArrows;
  pipe_ = {};
  here_word_ = {.is_code = words().reads_input(), .depth = frames_.size()};
}

void ShellReader::step_line_end() {
  in_here_ = !here_wanted_.empty();
  const auto of_this_line = [this](const HereEnd& end) { return end.depth == frames_.size(); };
  if (!std::ranges::all_of(here_wanted_, of_this_line)) give_up(kAfterHere);
}

void ShellReader::open_parenthesis() {
  Frame& frame = frames_.back();
  if (before_ == '$') return open_after_dollar('(');
  const bool twice = before_ == '(' && frame.inside != Inside::Arithmetic;
  if (twice && before_that_ == '$' && frame.inside == Inside::Parentheses &&
      frame.parentheses == 0) {
    frame.inside = Inside::Arithmetic;
    ++frame.parentheses;
  } else if (twice && frame.parentheses > 0) {
    // `((...))` is arithmetic to bash.
    --frame.parentheses;
    frames_.push_back({.inside = Inside::Arithmetic, .parentheses = 1});
  } else {
    ++frame.parentheses;
  }
}

void ShellReader::close_parenthesis() {
  Frame& frame = frames_.back();
  if (frame.parentheses > 0) {
    --frame.parentheses;
  } else if (frame.inside == Inside::Parentheses || frame.inside == Inside::Arithmetic) {
    frames_.pop_back();
    in_word_ = true;
  }
  // Else it ends a pattern of `case`.
}

bool ShellReader::step_here_word(char byte) {
  switch (reading_) {
    case Reading::AfterArrows:
      if (byte == '<') {
        reading_ = Reading::Nothing;
        follow_words(byte);
        return true;
      }
      if (byte == '-' && before_ == '<') {
        here_word_.tabs_stripped = true;
        return true;
      }
      if (is_blank(byte)) return true;
      reading_ = Reading::Word;
      return step_here_word(byte);
    case Reading::Word:
      // Here, and in the quotes of the word, some shells continue with the next line.
      if (byte == '\n' && before_ == '\\') give_up(kAfterHere);
      if (byte == '\'' || byte == '"') {
        reading_ = byte == '"' ? Reading::WordDouble : Reading::WordSingle;
        here_word_.quoted = true;
        return true;
      }
      if (byte == '\\') {
        here_word_.quoted = true;
        return true;
      }
      if (is_blank(byte) || is_one_of(byte, "\n;|&()<>")) {
        reading_ = Reading::Nothing;
        if (!here_word_.word.empty() || here_word_.quoted) here_wanted_.push_back(here_word_);
        return false;
      }
      here_word_.word += byte;
      return true;
    case Reading::WordSingle:
    case Reading::WordDouble:
      if (byte == '\n') give_up(kAfterHere);
      if (byte == (reading_ == Reading::WordDouble ? '"' : '\'')) {
        reading_ = Reading::Word;
      } else {
        here_word_.word += byte;
      }
      return true;
    case Reading::Nothing:
      break;
  }
  return false;
}

void ShellReader::step_here(char byte) {
  const bool escaped = std::exchange(backslash_, false);
  const bool raw = here_wanted_.front().quoted;
  if (byte == '\n' && escaped) {
    here_joined_.pop_back();
    here_line_.clear();
    variable_ = variable_before_;
    return;
  }
  if (byte == '\n') {
    end_here_line();
    return;
  }
  here_line_ += byte;
  here_joined_ += byte;
  if (raw) return;
  backslash_ = byte == '\\' && !escaped;
  variable_before_ = variable_;
  variable_ =
      !escaped && ((variable_ && continues_name(byte)) || (before_ == '$' && starts_name(byte)));
  step_here_expansion(byte, escaped);
  if (!backslash_) remember(escaped ? 'x' : byte);
}

/// A command or a variable in the document: known to end only where it is simple.
void ShellReader::step_here_expansion(char byte, bool escaped) {
  if (here_closers_.empty()) {
    if (escaped) return;
    if (before_ == kTwoDollars && is_one_of(byte, "({[")) lost_in_here_ = true;
    if (byte == '`' || (before_ == '$' && byte == '[')) lost_in_here_ = true;
    if (before_ != '$' || !is_one_of(byte, "({")) return;
    here_closers_.assign(1, byte == '(' ? ')' : '}');
    here_expansion_.clear();
    return;
  }
  here_expansion_ += byte;
  if (escaped || is_one_of(byte, "\\`'\"#\n")) lost_in_here_ = true;
  if (byte == '(') here_closers_ += ')';
  if (byte == '{') here_closers_ += '}';
  if (byte != ')' && byte != '}') return;
  if (here_closers_.back() != byte) lost_in_here_ = true;
  here_closers_.pop_back();
  if (here_expansion_.find("case") != std::string::npos) lost_in_here_ = true;
}

void ShellReader::end_here_line() {
  const HereEnd& end = here_wanted_.front();
  const bool ends = end.is_ended_by(here_line_);
  const bool surely = ends && end.is_ended_by(here_joined_);
  const bool perhaps = end.may_be_ended_by(here_line_) || end.may_be_ended_by(here_joined_);
  if (perhaps && !surely) give_up(kAfterHere);
  here_line_.clear();
  here_joined_.clear();
  variable_ = false;
  remember('\n');
  if (!ends) {
    if (!here_closers_.empty()) lost_in_here_ = true;
    return;
  }
  if (!here_closers_.empty()) give_up(kAfterHere);
  here_closers_.clear();
  lost_in_here_ = false;
  here_wanted_.erase(here_wanted_.begin());
  in_here_ = !here_wanted_.empty();
}

std::vector<std::string> bash_command(std::string text, const ShellTraits& traits) {
  if (!traits.has_pipe) return {kBash, "-c", std::move(text)};
  return {kBash, "-o", "pipefail", "-c", kForgiveSigpipe + text};
}

std::vector<std::string> bash_command(std::string text) {
  ShellReader reader;
  reader.read(text);
  // Only a value can be refused, and the text has none.
  static_cast<void>(reader.at_end());
  return bash_command(std::move(text), reader.traits());
}

}  // namespace trainyard::text
