#include "config/shell_quote.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard {
namespace {

bool safe_in_a_word(char byte) {
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  const bool digit = byte >= '0' && byte <= '9';
  return letter || digit || std::string_view("_@%+=:,./-").find(byte) != std::string_view::npos;
}

std::string with_backslashes(std::string_view value, std::string_view before) {
  std::string quoted;
  for (const char byte : value) {
    if (before.find(byte) != std::string_view::npos) quoted += '\\';
    quoted += byte;
  }
  return quoted;
}

/// A single quote cannot be quoted in single quotes: they are left for it.
std::string in_single_quotes(std::string_view value) {
  std::string quoted;
  for (const char byte : value) {
    if (byte == '\'') {
      quoted += "'\\''";
    } else {
      quoted += byte;
    }
  }
  return quoted;
}

bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

}  // namespace

std::string shell_word(std::string_view value) {
  if (!value.empty() && std::ranges::all_of(value, safe_in_a_word)) return std::string(value);
  return "'" + in_single_quotes(value) + "'";
}

std::string shell_quoted(std::string_view value, ShellContext context) {
  std::string quoted;
  switch (context.place) {
    case ShellPlace::Word:
      quoted = shell_word(value);
      break;
    case ShellPlace::SingleQuotes:
      quoted = in_single_quotes(value);
      break;
    case ShellPlace::DoubleQuotes:
      quoted = with_backslashes(value, "\\$`\"");
      break;
    case ShellPlace::HereDocument:
      quoted = with_backslashes(value, "\\$`");
      break;
    case ShellPlace::HereDocumentRaw:
      quoted = value;
      break;
    case ShellPlace::Comment:
      quoted = value;
      std::ranges::replace(quoted, '\n', ' ');
      break;
  }
  // The shell takes one layer of backslashes off what stands in backticks before it reads it.
  for (int i = 0; i < context.backticks; ++i) quoted = with_backslashes(quoted, "\\`");
  return quoted;
}

void ShellReader::read(std::string_view text) {
  for (const char byte : text) {
    step(byte);
    before_that_ = std::exchange(before_, byte);
  }
}

ShellContext ShellReader::value_here() {
  ShellContext context;
  const auto backticks = std::ranges::count(frames_, Inside::Backticks, &Frame::inside);
  context.backticks = static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(backticks, 8));
  if (in_here_) {
    const bool raw = here_wanted_.front().quoted;
    context.place = raw ? ShellPlace::HereDocumentRaw : ShellPlace::HereDocument;
    // Whatever the value is, this line is not the end of the document.
    here_line_ += '\n';
  } else if (comment_) {
    context.place = ShellPlace::Comment;
  } else if (frames_.back().inside == Inside::Single) {
    context.place = ShellPlace::SingleQuotes;
  } else if (frames_.back().inside == Inside::Double) {
    context.place = ShellPlace::DoubleQuotes;
  }
  before_that_ = std::exchange(before_, 'v');
  return context;
}

void ShellReader::step(char byte) {
  if (in_here_) return step_here_line(byte);
  if (std::exchange(backslash_, false)) return;
  if (reading_ != Reading::Nothing && step_here_word(byte)) return;
  if (comment_) {
    if (byte != '\n') return;
    comment_ = false;
  }
  const Inside inside = frames_.back().inside;
  if (inside == Inside::Single) {
    if (byte == '\'') frames_.pop_back();
  } else if (inside == Inside::Double) {
    step_double(byte);
  } else {
    step_plain(byte);
  }
}

void ShellReader::step_double(char byte) {
  if (byte == '\\') backslash_ = true;
  if (byte == '"') frames_.pop_back();
  if (byte == '`') toggle_backticks();
  if (byte == '(' && before_ == '$') frames_.push_back({.inside = Inside::Parentheses});
}

void ShellReader::step_plain(char byte) {
  switch (byte) {
    case '\\':
      backslash_ = true;
      break;
    case '\'':
      frames_.push_back({.inside = Inside::Single});
      break;
    case '"':
      frames_.push_back({.inside = Inside::Double});
      break;
    case '`':
      toggle_backticks();
      break;
    case '(':
      open_parenthesis();
      break;
    case ')':
      close_parenthesis();
      break;
    case '#':
      comment_ = at_word_start();
      break;
    case '<':
      // `<<<` is a string and not a document; in $((...)) the arrows are a shift.
      if (before_ == '<' && before_that_ != '<' && frames_.back().inside != Inside::Arithmetic) {
        reading_ = Reading::AfterArrows;
        here_word_ = {};
      }
      break;
    case '\n':
      in_here_ = !here_wanted_.empty();
      break;
    default:
      break;
  }
}

bool ShellReader::at_word_start() const {
  return std::string_view(" \t\n;|&()`").find(before_) != std::string_view::npos;
}

void ShellReader::open_parenthesis() {
  Frame& frame = frames_.back();
  if (before_ == '$') {
    frames_.push_back({.inside = Inside::Parentheses});
  } else if (before_ == '(' && before_that_ == '$' && frame.inside == Inside::Parentheses &&
             frame.parentheses == 0) {
    frame.inside = Inside::Arithmetic;
    ++frame.parentheses;
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
  }
  // Else it ends a pattern of `case`.
}

void ShellReader::toggle_backticks() {
  if (frames_.back().inside == Inside::Backticks) {
    frames_.pop_back();
  } else {
    frames_.push_back({.inside = Inside::Backticks});
  }
}

bool ShellReader::step_here_word(char byte) {
  switch (reading_) {
    case Reading::AfterArrows:
      if (byte == '<') {
        reading_ = Reading::Nothing;
        return true;
      }
      if (byte == '-' && here_word_.word.empty() && before_ == '<') {
        here_word_.tabs_stripped = true;
        return true;
      }
      if (is_blank(byte)) return true;
      reading_ = Reading::Word;
      return step_here_word(byte);
    case Reading::Word:
      if (byte == '\'' || byte == '"') {
        reading_ = byte == '"' ? Reading::WordDouble : Reading::WordSingle;
        here_word_.quoted = true;
        return true;
      }
      if (byte == '\\') {
        here_word_.quoted = true;
        return true;
      }
      if (is_blank(byte) || std::string_view("\n;|&()<>").find(byte) != std::string_view::npos) {
        reading_ = Reading::Nothing;
        if (!here_word_.word.empty() || here_word_.quoted) here_wanted_.push_back(here_word_);
        return false;
      }
      here_word_.word += byte;
      return true;
    case Reading::WordSingle:
    case Reading::WordDouble:
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

void ShellReader::step_here_line(char byte) {
  if (byte != '\n') {
    const bool escaped = std::exchange(backslash_, false);
    backslash_ = byte == '\\' && !escaped && !here_wanted_.front().quoted;
    here_line_ += byte;
    return;
  }
  backslash_ = false;
  std::string_view line = here_line_;
  if (here_wanted_.front().tabs_stripped) {
    while (line.starts_with('\t')) line.remove_prefix(1);
  }
  if (line == here_wanted_.front().word) {
    here_wanted_.erase(here_wanted_.begin());
    in_here_ = !here_wanted_.empty();
  }
  here_line_.clear();
}

}  // namespace trainyard
