// Replaces values in a YAML text that a person wrote, and changes nothing else: no comment, no
// order, no blank. An edit that cannot be made in this way is refused, and the result is read again
// and compared before it is returned. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/yaml_reader.h"

namespace trainyard::text {

/// One value of a mapping, at its place.
struct ScalarEdit {
  Place place;       ///< The place of the value, as in YamlNode.
  std::string key;   ///< The key of the value.
  std::string from;  ///< The present text, as read.
  /// The new text: letters, digits, dots and single blanks between them, so that it is one plain
  /// value in any place.
  std::string to;
};

/// The text with all edits. An error names the file, and line and column of the first edit that is
/// refused: the value is not a plain or quoted text in one line, has an anchor or a tag before it,
/// or has another meaning elsewhere by an alias.
Result<std::string> rewrite_scalars(std::string_view text, const std::string& file,
                                    const std::vector<ScalarEdit>& edits);

/// The differences between two texts with the same number of lines, like `diff -u` without context;
/// empty if they are equal.
std::string line_diff(std::string_view before, std::string_view after, const std::string& file);

}  // namespace trainyard::text
