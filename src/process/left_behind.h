// The content of the files that an attempt left. A plain value.
#pragma once

#include <optional>
#include <string>

namespace trainyard::process {

/// Texts as they were found: their content is not checked.
struct LeftBehind {
  std::optional<std::string> result;  ///< The whole file; nothing when there is none.
  std::string trouble;                ///< The reason why it could not be read, for users.
  /// The end of its standard error when it ended badly; where that is empty, the last lines of its
  /// standard output.
  std::string errors;
  bool errors_are_output = false;  ///< They are from its standard output.
  /// Whether its checkpoint directory has an entry, when it ended badly. End notes do not have it.
  bool has_checkpoint = false;

  friend bool operator==(const LeftBehind&, const LeftBehind&) = default;
};

}  // namespace trainyard::process
