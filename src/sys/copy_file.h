// Copies one plain file: its bytes, its permissions, and the time when it was last written. If the
// file system can, the copy shares the blocks of the original until one of them is written.
//
// Never a hard link: later writes to the original do not reach the copy. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard::sys {

/// False where there is no plain file at `from`: nothing, a link, a pipe. There must be nothing at
/// `to`, whose directory is there. After an error part of the copy may be left.
struct FileCopy {
  std::string from;
  std::string to;
};
Result<bool> copy_file(const FileCopy& copy);

}  // namespace trainyard::sys
