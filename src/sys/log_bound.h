// A bound on a log that another program writes: of a log that has grown beyond it only the
// beginning and the end are kept, with a hole in the file. Writers and readers go on as before: the
// length of the file stays.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trainyard::sys {

/// Drops the middle of a file that takes more than `most` of the disk: an eighth of `most` stays at
/// its beginning, and half of `most` at its end. Returns the bytes that were given back; nothing
/// for a file that takes no more, does not exist, is not a plain file or has a second name (a hard
/// link). An error if the file system can make no holes (NFS before 4.2), or the file may not be
/// written.
///
/// Between two looks the file takes more, as much as is written meanwhile. `most` is at least a
/// megabyte: whole blocks of 64 KiB are kept.
Result<Bytes> bound_log(const std::string& path, Bytes most);

}  // namespace trainyard::sys
