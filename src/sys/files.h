// Files and directories: whole small files in and out, the lock of a run directory, and paths.
//
// Not for data sets or logs: nothing here streams. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/bytes.h"
#include "base/result.h"
#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::sys {

/// The last bytes of a plain file, at most `at_most`. Does not wait for a writer. `below` is that
/// of FileOptions, here and in all that follows.
Result<std::string> read_end_of_file(const std::string& path, std::size_t at_most,
                                     Links links = Links::Follow, std::string_view below = {});

/// Reads a whole file of at most `at_most`; a pipe or a device is as good as a plain file, and is
/// waited for: for files of the kernel and what the user names, as /dev/stdin. A larger one is an
/// error, and no more of it than that is read.
Result<std::string> read_file(const std::string& path, Bytes at_most);

/// The same for a file from an untrusted user: it must be a plain file, so that reading it neither
/// waits nor has an effect. Nothing when there is no such file.
Result<std::optional<std::string>> read_plain_file(const std::string& path, Bytes at_most,
                                                   Links links = Links::Follow,
                                                   std::string_view below = {});

/// Whether there is something at a path, links followed. False where that cannot be found out.
bool exists(const std::string& path);

/// A handle (O_PATH) on what the kernel finds at a path without asking a disk; errno says why there
/// is none. A link at the path is not followed. None before Linux 5.12.
Descriptor open_cached(const std::string& path);

/// True when the kernel knows, without asking the disk, that there is no such file. Never waits;
/// false where it would have to, and before Linux 5.12.
bool is_known_to_be_absent(const std::string& path);

/// The facts about an entry of a directory that other users can write.
struct EntryFacts {
  mode_t mode = 0;
  uid_t owner = 0;
  std::uint64_t inode = 0;
};
/// The entry itself: a link is not followed. An errno; EXDEV: a file system is mounted there. It
/// may be that of another user (FUSE), which may not answer and may name any owner, and is asked
/// nothing.
std::expected<EntryFacts, int> entry_facts(const std::string& path);

/// The size of a plain file as the kernel has it at hand. Never waits for a disk; nothing where it
/// would have to, where the path is not that of a plain file, and before Linux 5.12.
std::optional<Bytes> known_size(const std::string& path);
/// The same, and waits for a disk where that is necessary.
std::optional<Bytes> size_of_file(const std::string& path);

/// Writes all of it where the file stands. `path` is for the error.
Result<void> write_all(const Descriptor& file, std::string_view text, const std::string& path);

/// A file that takes the place of another one once it is whole; until then it is <path>.new, made
/// anew whatever stands there. Is taken away again when it is not put in its place.
class FreshFile {
 public:
  /// The readers for whom it is whole at every moment: those that read it meanwhile, or also those
  /// after a crash of the machine, which costs ten times as much.
  enum class Lasting : std::uint8_t { WhileWeRun, ThroughCrash };

  static Result<FreshFile> make(const std::string& path, std::string_view below = {});
  FreshFile(FreshFile&&) noexcept = default;
  FreshFile& operator=(FreshFile&&) = delete;
  ~FreshFile();

  Result<void> write(std::string_view text);
  Result<void> put_in_place(Lasting lasting);

 private:
  FreshFile(std::string path, Descriptor directory)
      : path_(std::move(path)), fresh_(path_ + ".new"), directory_(std::move(directory)) {}
  /// The name of a path in the directory.
  [[nodiscard]] const char* name_in(const std::string& path) const {
    return path.c_str() + (path_.rfind('/') + 1);
  }
  Result<void> flush();
  Result<void> sync_directory();

  std::string path_;
  std::string fresh_;  ///< Where it is until then.
  Descriptor directory_;
  Descriptor file_;  ///< Closed when it is in its place.
  std::string buffer_;
};

/// Puts `text` in the place of whatever is at `path`: after a crash of the machine at any moment,
/// either the old or the new is there, whole. Writes <path>.new first.
Result<void> write_file_atomically(const std::string& path, std::string_view text);

/// The same for concurrent readers, but not for a crash of the machine, after which it may be
/// empty: a tenth of the time.
Result<void> replace_file(const std::string& path, std::string_view text,
                          std::string_view below = {});

/// Makes the directory and those above it that are missing. One that is there already is fine.
Result<void> make_directories(const std::string& path);

/// The present path of an open directory, wherever it has been moved; empty if it was removed.
std::string path_of(const Descriptor& directory);

/// Gives our user access to its directory again (u+rwx), which a task may have taken away. Where
/// `below` is above it, so to all directories from there on, up to the first link.
void restore_access(const std::string& directory, std::string_view below = {});

/// Makes an empty directory that only our user may look into, in $TMPDIR or /tmp. `prefix` starts
/// its name.
Result<std::string> make_private_directory(std::string_view prefix);

/// The same, in `parent`.
Result<std::string> make_private_directory_in(const std::string& parent, std::string_view prefix);

/// A name next to `path` that no process can guess, to rename what is in the way at `path`:
/// "<path>.other-1f0c93ab".
std::string aside_path(const std::string& path);

/// Removes what a task has put in the place of another file. Another name of a file stays, and so
/// does the content of a directory, under aside_path().
void clear_place(const std::string& path);

/// The names of what is in a directory, in any order, as far as they can be read: none when it
/// cannot be opened.
std::vector<std::string> names_in(const std::string& directory);

Result<std::string> current_directory();

/// "localhost" when the machine has no name.
std::string host_name();

/// Space on the disk of a directory, in a file without a name: it is free again when the descriptor
/// is closed, also by a kill. Closed where the file system has no such files, or no room.
Descriptor reserve_space(const std::string& directory, Bytes size);

/// The lock of a run directory, held until it is destroyed or the process dies, however it dies.
/// The file <run-dir>/lock, or of another name, stays. Only its user may read it, as a read lock of
/// another user would keep the run from its user. Keeps the directory open, by which
/// process/watchers.h knows the process of a run.
class RunLock {
 public:
  /// The directory must be there. An error says which process holds it, or that its children do.
  static Result<RunLock> take(const std::string& run_directory, const char* name = "lock");

  /// The same for a directory in which tasks have run, and in which no run is active: removes what
  /// a task has put in the place of the lock, if that is no regular file of one name.
  static Result<RunLock> clear_and_take(const std::string& run_directory);

  /// The process that holds it now; nothing when none does. 0 for one that cannot be named: it took
  /// the lock only just, or on another machine. Takes no lock, so it disturbs nobody.
  static std::optional<std::int64_t> holder(const std::string& run_directory);

  /// A process with a copy of it holds the lock, too.
  [[nodiscard]] int descriptor() const { return file_.get(); }

 private:
  RunLock(Descriptor file, Descriptor directory)
      : file_(std::move(file)), directory_(std::move(directory)) {}
  Descriptor file_;
  Descriptor directory_;
};

}  // namespace trainyard::sys
