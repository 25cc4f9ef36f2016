#include "text/typed_line.h"

#include <utility>

#include "base/check.h"

namespace trainyard::text {
namespace {

bool ends_word(char byte) { return byte == ' ' || byte == '\t' || byte == '\n'; }

/// The characters that a backslash escapes in double quotes.
bool is_special_in_double_quotes(char byte) { return std::string_view("\"\\$`").contains(byte); }

class LineReader {
 public:
  explicit LineReader(std::string_view breaks) : breaks_(breaks) {}

  void read(char byte);

  TypedLine finish() {
    // A backslash at the very end: the character that it quotes is not typed yet.
    line_.open = quote_;
    return std::move(line_);
  }

 private:
  void add(char byte) {
    line_.word += byte;
    in_word_ = true;
  }
  void open(Quoting quote) {
    quote_ = quote;
    in_word_ = true;
    line_.stays = line_.word.size();
  }
  void read_plain(char byte);
  void read_quoted(char byte);
  void end_word();

  std::string_view breaks_;
  TypedLine line_;
  Quoting quote_ = Quoting::Word;
  bool backslash_ = false;
  bool in_word_ = false;
};

void LineReader::read(char byte) {
  if (quote_ == Quoting::Word) return read_plain(byte);
  read_quoted(byte);
}

void LineReader::read_plain(char byte) {
  if (std::exchange(backslash_, false)) {
    if (byte != '\n') add(byte);
    return;
  }
  if (byte == '\\') {
    backslash_ = true;
  } else if (byte == '\'') {
    open(Quoting::SingleQuotes);
  } else if (byte == '"') {
    open(Quoting::DoubleQuotes);
  } else if (ends_word(byte)) {
    end_word();
  } else {
    // Bash leaves these two at the beginning of the word that it completes.
    if (breaks_.contains(byte) && (byte == '@' || byte == '$')) line_.stays = line_.word.size();
    add(byte);
    if (breaks_.contains(byte) && byte != '@' && byte != '$') line_.stays = line_.word.size();
  }
}

void LineReader::read_quoted(char byte) {
  if (std::exchange(backslash_, false)) {
    if (!is_special_in_double_quotes(byte)) add('\\');
    add(byte);
    return;
  }
  if (quote_ == Quoting::DoubleQuotes && byte == '\\') {
    backslash_ = true;
    return;
  }
  if (byte != (quote_ == Quoting::SingleQuotes ? '\'' : '"')) return add(byte);
  // Bash takes a quote that is closed for the end of a word, too.
  quote_ = Quoting::Word;
  line_.stays = line_.word.size();
}

void LineReader::end_word() {
  if (in_word_) line_.words.push_back(std::exchange(line_.word, {}));
  in_word_ = false;
  line_.stays = 0;
}

/// `begins`: it is the beginning of its word.
std::string outside_of_quotes(std::string_view text, bool begins) {
  // A path in a home directory: bash must read the sign.
  const bool home = begins && text.starts_with("~/");
  std::string typed;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool leads = begins && i == 0 && (text[i] == '#' || (text[i] == '~' && !home));
    const bool acts = std::string_view(" \t!\"$&'()*;<>?[\\]^`{|}").contains(text[i]);
    if (leads || acts) typed += '\\';
    typed += text[i];
  }
  return typed;
}

}  // namespace

TypedLine read_typed_line(std::string_view line, std::string_view breaks) {
  LineReader reader(breaks);
  for (const char byte : line) reader.read(byte);
  return reader.finish();
}

std::string as_typed(std::string_view whole, const TypedLine& line) {
  check(whole.size() >= line.stays, "what is offered begins with what stays");
  const std::string_view rest = whole.substr(line.stays);
  if (line.open != Quoting::Word) return shell_quoted(rest, {.quoting = line.open});
  return outside_of_quotes(rest, line.stays == 0);
}

}  // namespace trainyard::text
