// Replaces the text of a file that the user edits: nothing else of it changes, and nothing next to
// it. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::sys {

/// Puts `after` in the place of `before`, with the same mode; behind links in the file that they
/// lead to. At any moment, also of a crash, either is there, whole. An error where it holds
/// anything but `before` by now, or where it would not be the same file to others: it has a second
/// name (a hard link), or an owner that we cannot give it.
Result<void> rewrite_kept_file(const std::string& path, std::string_view before,
                               std::string_view after);

}  // namespace trainyard::sys
