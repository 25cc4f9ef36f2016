// A command line that somebody is typing for bash: what its words are, and how what they go on with
// is written so that bash reads it.
//
// Not a shell: nothing is expanded, and what stands before `;`, `|` and the like is not ours, for
// bash hands over one command. Reads anything. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/shell_quote.h"

namespace trainyard::text {

struct TypedLine {
  std::vector<std::string> words;  ///< Those before the cursor that are whole, without quotes.
  std::string word;              ///< The one at the cursor, as far as it is typed, without quotes.
  Quoting open = Quoting::Word;  ///< The quotes in which the cursor stands.
  /// So much of `word` stays as it was typed: what is offered takes the place of the rest.
  std::size_t stays = 0;
};

/// Reads a line up to the cursor. Of the word there, what stands before the last of `breaks`
/// outside of quotes stays (bash's COMP_WORDBREAKS), and in quotes that are open what stands before
/// these.
TypedLine read_typed_line(std::string_view line, std::string_view breaks);

/// What takes the place of the end of the word at the cursor, so that the word becomes `whole`,
/// which must begin with what stays.
std::string as_typed(std::string_view whole, const TypedLine& line);

}  // namespace trainyard::text
