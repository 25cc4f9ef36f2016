// The end of a here-document of the shell. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::text {

/// A here-document, from its `<<`.
struct HereEnd {
  std::string word;
  bool quoted = false;         ///< Nothing is expanded in the document.
  bool tabs_stripped = false;  ///< `<<-`
  bool is_code = false;        ///< The reader of the document takes it for a program.
  bool is_sent_on = false;     ///< Its line ends with a pipe: the reader of the document is not
                               ///< known yet.
  std::size_t depth = 0;       ///< The number of substitutions and quotes around its `<<`.

  /// Whether a line of the document is its end.
  [[nodiscard]] bool is_ended_by(std::string_view line) const;

  /// Whether some shell takes the line for the end: in `$(...)` that may be `EOF)` too.
  [[nodiscard]] bool may_be_ended_by(std::string_view line) const;
};

/// The target of the document in the line of its `<<`, taken character by character.
class PipeOfLine {
 public:
  void take(char byte);

  /// Whether the reader of the document is on a later line, if this one ends here, as in `cat <<EOF
  /// |` and `cat <<EOF | {`.
  [[nodiscard]] bool is_open() const;

 private:
  bool piped_ = false;
  std::string begins_;  ///< The beginning of the text after the last pipe.
};

}  // namespace trainyard::text
