// The file of a journal: its state, how it is opened, and whether its file system can be trusted
// with a write-ahead log. The only part of the journal that knows of file systems.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "journal/options.h"
#include "journal/sqlite.h"
#include "sys/descriptor.h"

namespace trainyard::journal {

/// Whether processes that map a file of this kind of file system (statfs f_type) see each other's
/// changes at once, which a write-ahead log needs. NFS, Lustre and their like do not.
bool shares_memory(std::int64_t file_system_type);

/// Ahead or Rollback for a file at `path`, which need not exist.
LogKind log_kind_for(const std::string& path);

enum class Use : std::uint8_t { Read, Write };

/// An error for a journal that this user may not read, or not write for Use::Write, or for such a
/// file of theirs beside it. By default no other user may read a journal, as it holds the user's
/// data and environment. Also for a directory that this user may not search: a journal there cannot
/// be ruled out. With the cure where the mode of a file or directory of this user is the cause.
std::optional<Error> refuse_access(const std::string& path, Use use);

/// The content of the file at `path`. An error is for a file that is not a journal, is of another
/// version of trainyard, or cannot be read.
enum class Found : std::uint8_t {
  Nothing,   ///< No file.
  NotBegun,  ///< A journal whose yard was killed before the run had begun: nothing is in it.
  Journal,
};
Result<Found> look_at(const std::string& path);

/// Opens a journal that is there for writing. Errors as above, and when there is none.
Result<Database> open_for_writing(const std::string& path, LogKind kind);
/// The same for reading, also in a directory that must not be written.
Result<Database> open_for_reading(const std::string& path);
/// Makes an empty one that only its user may read, in place of one that has not begun. An error
/// when there is a journal. It does not wait for the disk before wait_for_the_disk(): a power
/// failure before the run has begun loses nothing.
Result<Database> open_new(const std::string& path, LogKind kind);
Result<void> wait_for_the_disk(Database& database);

/// The file in the place of a journal; a link is not followed.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Nothing where there is no file.
std::optional<FileIdentity> file_at(const std::string& path);

/// True if a task has replaced the file at `path`, which was `opened` as `database`, or has emptied
/// its write-ahead log, or if one of the files beside it is one that no reader would open.
bool is_replaced(const Database& database, const std::string& path,
                 const std::optional<FileIdentity>& opened);
/// An error if the run directory of `path`, which was `opened`, has been moved, or a link or another
/// run is in its place: a file that is written to `path` would be none of the run. Names the present
/// path of `opened`. Also if that cannot be found out, as in a directory that a task has closed.
std::optional<Error> refuse_other_directory(const std::string& path, const sys::Descriptor& opened);
/// Makes the file at `path` again from its open database, which must not be written afterwards. What
/// is in the way there, and beside it, is renamed (sys::aside_path). An error where the log was
/// emptied and the database is larger than SQLite's cache. After an error no journal is at `path`,
/// unless the directory cannot be written.
Result<void> put_back(Database& database, const std::string& path);

}  // namespace trainyard::journal
