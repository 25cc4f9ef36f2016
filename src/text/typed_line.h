// A command line that a person is typing for bash: its words, and the quoted form of a completion.
//
// Not a shell: nothing is expanded, and text before `;`, `|` and the like is not seen, as bash
// hands over one command. Reads anything. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/shell_quote.h"

namespace trainyard::text {

struct TypedLine {
  std::vector<std::string> words;  ///< The whole words before the cursor, without quotes.
  std::string word;              ///< The word at the cursor, as far as it is typed, without quotes.
  Quoting open = Quoting::Word;  ///< The open quotes at the cursor.
  /// The length of the part of `word` that stays as typed: an offer replaces the rest.
  std::size_t stays = 0;
};

/// Reads a line up to the cursor. The part of its word that stays is the text up to the last of
/// `breaks` outside of quotes (bash's COMP_WORDBREAKS); with open quotes it is the text before
/// these.
TypedLine read_typed_line(std::string_view line, std::string_view breaks);

/// The text that replaces the end of the word at the cursor, so that the word becomes `whole`.
/// `whole` must begin with the part that stays.
std::string as_typed(std::string_view whole, const TypedLine& line);

}  // namespace trainyard::text
