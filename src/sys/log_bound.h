// A bound on a log that somebody else writes: of one that has grown beyond it only the beginning
// and the end are kept, as a hole in the file. Who writes goes on as before, and so does who reads:
// the file is as long as it was.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trainyard::sys {

/// Drops the middle of a file that takes more than `most` of the disk: its first part, of an eighth
/// of that, stays, and of its end a half. Returns what was given back; nothing of what takes no
/// more, is not there, is no plain file or has a second name (a hard link). An error where the file system can make no holes (NFS
/// before 4.2), or the file may not be written.
///
/// It takes more between two looks, as much as is written meanwhile. `most` is a megabyte at least:
/// what stays is whole blocks of 64 KiB.
Result<Bytes> bound_log(const std::string& path, Bytes most);

}  // namespace trainyard::sys
