// What ends a here-document of the shell, and whether a value could. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard {

/// What ends a here-document.
struct HereEnd {
  std::string word;
  bool quoted = false;         ///< Nothing is expanded in the document.
  bool tabs_stripped = false;  ///< `<<-`
  std::size_t depth = 0;       ///< How many substitutions and quotes its `<<` stands in.

  /// Whether a line of the document is its end.
  [[nodiscard]] bool is_ended_by(std::string_view line) const;

  /// Whether some shell takes it for the end: in `$(...)` that may be `EOF)` too.
  [[nodiscard]] bool may_be_ended_by(std::string_view line) const;
};

/// A piece of a text.
struct ShellPiece {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Whether a line of `text` that has something of the piece, which stands in the document, may end
/// it. Shells do not agree whether that may be a line that the one before it continues.
bool may_end_document(const HereEnd& end, std::string_view text, ShellPiece piece);

}  // namespace trainyard
