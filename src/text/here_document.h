// What ends a here-document of the shell. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::text {

/// A here-document, as its `<<` says it.
struct HereEnd {
  std::string word;
  bool quoted = false;         ///< Nothing is expanded in the document.
  bool tabs_stripped = false;  ///< `<<-`
  bool is_code = false;        ///< What reads the document takes it for a program.
  bool is_sent_on = false;     ///< Its line ends with a pipe: what reads it is not known yet.
  std::size_t depth = 0;       ///< How many substitutions and quotes its `<<` stands in.

  /// Whether a line of the document is its end.
  [[nodiscard]] bool is_ended_by(std::string_view line) const;

  /// Whether some shell takes it for the end: in `$(...)` that may be `EOF)` too.
  [[nodiscard]] bool may_be_ended_by(std::string_view line) const;
};

/// What the line of a `<<` sends its document to, taken character by character.
class PipeOfLine {
 public:
  void take(char byte);

  /// Whether what reads the document stands on a later line, if this one ends here, as in
  /// `cat <<EOF |` and `cat <<EOF | {`.
  [[nodiscard]] bool is_open() const;

 private:
  bool piped_ = false;
  std::string begins_;  ///< What comes after the last pipe begins so.
};

}  // namespace trainyard::text
