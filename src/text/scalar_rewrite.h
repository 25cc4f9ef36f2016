// Puts other values into a YAML text that a person wrote, and changes nothing else: no comment, no
// order, no blank. What it cannot do so is refused, and what comes out is read again and compared
// before anybody sees it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/yaml_reader.h"

namespace trainyard::text {

/// One value of a mapping, where it stands.
struct ScalarEdit {
  Place place;       ///< Of the value, as YamlNode has it.
  std::string key;   ///< Whose value it is.
  std::string from;  ///< What stands there, as read.
  /// What is to stand there: letters, digits, dots and single blanks between them, so that it is
  /// one plain value wherever it stands.
  std::string to;
};

/// The text with all of them. An error names the file, and line and column of the first that cannot
/// be: one that is no plain or quoted text in one line, or has an anchor or a tag before it, or
/// that is meant elsewhere, too, by an alias.
Result<std::string> rewrite_scalars(std::string_view text, const std::string& file,
                                    const std::vector<ScalarEdit>& edits);

/// What is different between two texts with as many lines, as `diff -u` shows it with no lines
/// around; empty where nothing is.
std::string line_diff(std::string_view before, std::string_view after, const std::string& file);

}  // namespace trainyard::text
