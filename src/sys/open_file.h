// Opens a file where another user or a task may have put something else: a pipe, which would be
// waited for, or a link to a file that is none of theirs.
//
//   auto log = open_file(path, {.flags = O_WRONLY | O_CREAT | O_APPEND});
//
// Not for files of the kernel, terminals, or pipes that are meant (sys/fifo.h). Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// The treatment of a link in the place of a file. Links to directories on the way there are
/// followed, except below FileOptions::below.
enum class Links : std::uint8_t {
  Follow,
  Refuse,     ///< A symbolic link is refused.
  RefuseAny,  ///< A file with a second name (a hard link) is refused as well, also for reading.
};

/// The way to open a file, and requirements beyond that of a regular file.
struct FileOptions {
  /// The flags of open(2). O_TRUNC empties the file only after it was checked. A file that is
  /// opened for writing must have one name, as another name (a hard link) may be of another file.
  int flags = O_RDONLY;
  mode_t mode = 0600;  ///< Mode of a file that O_CREAT makes, less the umask.
  Links links = Links::Refuse;
  std::optional<uid_t> owner;     ///< The user who must own it; nothing: any user.
  std::optional<Bytes> size_max;  ///< A larger file is refused.
  /// A directory above the file, which may be reached by links: from there to the file, a link is
  /// refused, as a task may have put it there. Empty, or not above the file: all are followed.
  std::string_view below = {};
};

struct OpenedFile {
  Descriptor descriptor;
  struct stat facts{};  ///< The result of fstat(2), before the file was emptied.
};

struct OpenFailure {
  int number = 0;  ///< The errno; 0: something else is in the place of the file, and is as it was.
  Error error;     ///< Names the path, the cause and, for writing, the cure.
};

/// Opens a directory for openat(2) and its like (O_PATH). Refuses a link below `below`, as
/// FileOptions says, also one that is put there meanwhile.
std::expected<Descriptor, OpenFailure> open_directory(const std::string& path,
                                                      std::string_view below);

/// Opens a regular file. Waits for no other process, whatever is at `path`.
std::expected<OpenedFile, OpenFailure> open_file(const std::string& path,
                                                 const FileOptions& options);

/// Why open_file() would refuse what is at `path`, as the end of a sentence about it: "is a pipe,
/// not a regular file". Nothing where it would not, or where there is no such file. Opens nothing:
/// for files that a library opens by their names.
std::optional<std::string> reason_to_refuse_at(const std::string& path, const FileOptions& options);

}  // namespace trainyard::sys
