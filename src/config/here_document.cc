#include "config/here_document.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>

namespace trainyard {
namespace {

/// Whether the backslash at the end of a line is none that another one quotes.
bool is_continued(std::string_view line) {
  const auto others =
      std::ranges::find_if(line | std::views::reverse, [](char byte) { return byte != '\\'; });
  return (others - std::ranges::begin(line | std::views::reverse)) % 2 == 1;
}

}  // namespace

bool HereEnd::is_ended_by(std::string_view line) const {
  if (tabs_stripped) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  return line == word;
}

bool HereEnd::may_be_ended_by(std::string_view line) const {
  const auto end = std::min(line.find_last_not_of(")`") + 1, line.size());
  return is_ended_by(line) || is_ended_by(line.substr(0, end));
}

bool may_end_document(const HereEnd& end, std::string_view text, ShellPiece piece) {
  const auto any_line = [&end](std::string_view lines) {
    return std::ranges::any_of(lines | std::views::split('\n'), [&end](const auto& line) {
      return end.may_be_ended_by(std::string_view(line.begin(), line.end()));
    });
  };
  const auto ends_line = [&](std::size_t at) {
    return text[at] == '\n' && (end.quoted || !is_continued(text.substr(0, at)));
  };
  while (piece.begin > 0 && !ends_line(piece.begin - 1)) --piece.begin;
  while (piece.end < text.size() && !ends_line(piece.end)) ++piece.end;
  std::string joined;
  for (std::size_t at = piece.begin; at < piece.end; ++at) {
    if (text[at] == '\n' && !ends_line(at)) {
      joined.pop_back();
    } else {
      joined += text[at];
    }
  }
  return any_line(text.substr(piece.begin, piece.end - piece.begin)) || any_line(joined);
}

}  // namespace trainyard
