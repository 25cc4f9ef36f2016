// The version of the code in a directory, as git knows it: enough to tell versions apart.
#pragma once

#include <compare>
#include <string>

namespace trainyard::model {

struct Code {
  std::string root;    ///< Of the work tree, absolute.
  std::string commit;  ///< All digits of it.
  /// A hash, in digits, of the uncommitted changes of files that git knows. Empty: there are none.
  std::string changes;

  friend auto operator<=>(const Code&, const Code&) = default;
};

/// For people: "a1b2c3d", and "a1b2c3d+9f3e21" where something is changed since that commit.
std::string to_text(const Code& code);

}  // namespace trainyard::model
