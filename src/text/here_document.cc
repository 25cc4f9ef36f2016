#include "text/here_document.h"

#include <algorithm>
#include <array>

namespace trainyard::text {

bool HereEnd::is_ended_by(std::string_view line) const {
  if (tabs_stripped) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  return line == word;
}

bool HereEnd::may_be_ended_by(std::string_view line) const {
  const auto end = std::min(line.find_last_not_of(")`") + 1, line.size());
  return is_ended_by(line) || is_ended_by(line.substr(0, end));
}

namespace {

/// The number of bytes after a pipe that are read.
constexpr std::size_t kBeginMax = 16;

constexpr std::array<std::string_view, 8> kOpeners{"{",   "if",   "while",  "until",
                                                   "for", "case", "select", "!"};

}  // namespace

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

}  // namespace trainyard::text
