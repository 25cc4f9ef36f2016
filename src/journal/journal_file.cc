#include "journal/journal_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "journal/schema.h"
#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::journal {
namespace {

namespace fs = std::filesystem;

/// f_type of file systems that are shared between machines, or may be.
constexpr std::array<std::int64_t, 16> kShared{
    0x6969,      // NFS
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0x517B,      // SMB
    0xFE534D42,  // SMB 2
    0xFF534D42,  // CIFS
    0x5346414F,  // AFS
    0x6B414653,  // AFS of the kernel
    0x73757245,  // Coda
    0x01021997,  // 9P
    0x7461636F,  // OCFS2
    0x01161970,  // GFS2
    0xAAD7AAEA,  // PanFS
    0x65735546,  // FUSE: sshfs and others, nobody can say
};

/// A page of a kibibyte: of most pages that a turn changes, it changes one row. The data sorted for
/// an index is 30 bytes a task, and needs no file of its own, for which there may be no room.
constexpr const char* kSetUp =
    "PRAGMA busy_timeout = 10000; PRAGMA synchronous = OFF; PRAGMA page_size = 1024; PRAGMA "
    "cache_size = -2000; PRAGMA temp_store = MEMORY";

std::string directory_of(const std::string& path) {
  const fs::path directory = fs::path(path).parent_path();
  return directory.empty() ? "." : directory.string();
}

Error no_run(const std::string& path, const std::string& why) {
  return Error{fmt::format("no run found in '{}': {}", directory_of(path), why)};
}

/// Identifies the open file.
Result<Found> identify(Database& database, const std::string& path) {
  // Before the name of the format: a yard that begins commits both at once, perhaps between the
  // two.
  const Result<std::int64_t> tables = database.number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  const Result<std::int64_t> application = database.number("PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  if (*application != kApplicationId) {
    if (*application == 0 && *tables == 0) return Found::NotBegun;
    return std::unexpected(Error{fmt::format("'{}' is not a journal of trainyard", path)});
  }
  const Result<std::int64_t> version = database.number("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (*version != kSchemaVersion) {
    return std::unexpected(Error{fmt::format(
        "journal '{}' was made by another version of trainyard (its tables are version {}, this "
        "one reads version {}): use that version, or run the job file with --new, or the command "
        "again",
        path, *version, kSchemaVersion)});
  }
  return Found::Journal;
}

/// An error when there is no journal in the open file that could be read.
Result<void> expect_journal(Database& database, const std::string& path) {
  const Result<Found> found = identify(database, path);
  if (!found) return std::unexpected(found.error());
  if (*found == Found::Journal) return {};
  return std::unexpected(no_run(path, "it was killed before it started"));
}

Result<void> set_log(Database& database, LogKind kind) {
  if (kind == LogKind::Rollback) {
    return database.run("PRAGMA journal_mode = DELETE");
  }
  database.count_log_pages();
  // The log is cut to this when it starts anew.
  return database.run("PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 4194304");
}

/// The error for a path below a directory that this user may not search, with the cure if that
/// directory is theirs.
Error refuse_search(const std::string& path) {
  Error error = sys::system_error(fmt::format("cannot look into '{}'", directory_of(path)), EACCES);
  fs::path closed = directory_of(path);
  struct stat status{};
  while (::stat(closed.c_str(), &status) != 0) {
    if (!closed.has_relative_path()) return error;
    closed = closed.parent_path();
  }
  if (status.st_uid == ::geteuid() && ::access(closed.c_str(), X_OK) != 0) {
    error.message += fmt::format("; try \"chmod u+rwx '{}'\"", closed.string());
  }
  return error;
}

LogKind resolved(LogKind kind, const std::string& path) {
  return kind == LogKind::ByFileSystem ? log_kind_for(path) : kind;
}

}  // namespace

std::optional<Error> refuse_access(const std::string& path, Use use) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 && errno == EACCES) return refuse_search(path);
  for (const char* const end : Database::kFileEnds) {
    const std::string file = path + end;
    if (::stat(file.c_str(), &status) != 0) continue;
    const auto is_refused = [&file](int mode) {
      return ::access(file.c_str(), mode) != 0 && errno == EACCES;
    };
    const bool cannot_read = is_refused(R_OK);
    if (!cannot_read && (use == Use::Read || !is_refused(W_OK))) continue;
    if (status.st_uid == ::geteuid()) {
      return Error{fmt::format("cannot {0} '{1}': permission denied; try \"chmod u+rw '{1}'\"",
                               cannot_read ? "read" : "write", file)};
    }
    if (file != path) continue;
    return Error{fmt::format(
        "the run in '{}' belongs to another user (uid {}), and only they can {}change it",
        directory_of(path), status.st_uid, cannot_read ? "look into it or " : "")};
  }
  return std::nullopt;
}

bool shares_memory(std::int64_t file_system_type) {
  // Some kernels hand out the upper half of a 32-bit type as negative.
  const std::int64_t type = file_system_type & 0xFFFFFFFF;
  return std::ranges::find(kShared, type) == kShared.end();
}

LogKind log_kind_for(const std::string& path) {
  struct statfs status{};
  if (statfs(directory_of(path).c_str(), &status) != 0) return LogKind::Rollback;
  return shares_memory(status.f_type) ? LogKind::Ahead : LogKind::Rollback;
}

Result<Found> look_at(const std::string& path) {
  if (std::optional<Error> refused = refuse_access(path, Use::Read)) {
    return std::unexpected(std::move(*refused));
  }
  if (!sys::exists(path)) return Found::Nothing;
  std::error_code error;
  if (fs::file_size(path, error) == 0 && !sys::exists(path + "-wal")) return Found::NotBegun;
  // Opened for writing, because what a killed yard left half done must be put back first.
  Result<Database> database = Database::open(path, Database::Access::Write);
  if (!database) return std::unexpected(std::move(database.error()));
  Result<void> patience = database->run("PRAGMA busy_timeout = 5000");
  if (!patience) return std::unexpected(std::move(patience.error()));
  return identify(*database, path);
}

Result<Database> open_for_writing(const std::string& path, LogKind kind) {
  if (std::optional<Error> refused = refuse_access(path, Use::Write)) {
    return std::unexpected(std::move(*refused));
  }
  if (!sys::exists(path)) return std::unexpected(no_run(path, "it has no journal"));
  Result<Database> database = Database::open(path, Database::Access::Write);
  if (!database) return database;
  Result<void> ready = database->run("PRAGMA busy_timeout = 10000; PRAGMA cache_size = -2000");
  if (ready) ready = expect_journal(*database, path);
  if (ready) ready = set_log(*database, resolved(kind, path));
  if (ready) ready = wait_for_the_disk(*database);
  if (!ready) return std::unexpected(std::move(ready.error()));
  return database;
}

Result<void> wait_for_the_disk(Database& database) {
  return database.run("PRAGMA synchronous = NORMAL");
}

Result<Database> open_for_reading(const std::string& path) {
  if (std::optional<Error> refused = refuse_access(path, Use::Read)) {
    return std::unexpected(std::move(*refused));
  }
  if (!sys::exists(path)) return std::unexpected(no_run(path, "it has no journal"));
  // Opened for writing, although nothing is written: a process that may only read makes a log if
  // there is none, and cannot remove it again. The last one to close removes it.
  Result<Database> database = Database::open(path, Database::Access::Write);
  if (!database) return database;
  Result<void> ready = database->run(
      "PRAGMA busy_timeout = 5000; PRAGMA cache_size = -2000; PRAGMA query_only = ON");
  if (ready) ready = expect_journal(*database, path);
  if (ready) return database;
  if (::access(directory_of(path).c_str(), W_OK) == 0) {
    return std::unexpected(std::move(ready.error()));
  }
  // In a directory that must not be written SQLite cannot make what it shares with a writer. Then
  // there is no writer, and the file is whole unless a log lies beside it.
  std::error_code error;
  if (sys::exists(path + "-wal") && fs::file_size(path + "-wal", error) > 0) {
    return std::unexpected(
        std::move(ready.error())
            .in("its newest rows are in the -wal file next to it, which can only "
                "be read in a writable directory"));
  }
  Result<Database> unchanging = Database::open(path, Database::Access::ReadUnchanging);
  if (!unchanging || !expect_journal(*unchanging, path)) {
    return std::unexpected(std::move(ready.error()));
  }
  return unchanging;
}

namespace {

/// Makes an empty file that only its user can read; refuses a link to another file. If it cannot be
/// made, SQLite reports why. Closed before SQLite opens it, as closing it drops the locks on it.
Result<void> make_file(const std::string& path) {
  const auto file = sys::open_file(path, {.flags = O_RDWR | O_CREAT});
  if (!file && file.error().number == 0) return std::unexpected(file.error().error);
  return {};
}

}  // namespace

Result<Database> open_new(const std::string& path, LogKind kind) {
  const Result<Found> found = look_at(path);
  if (!found) return std::unexpected(found.error());
  if (*found == Found::Journal) {
    return std::unexpected(
        Error{fmt::format("there is a run in '{}' already", directory_of(path))});
  }
  if (*found == Found::NotBegun) {
    std::error_code error;
    for (const char* end : Database::kFileEnds) fs::remove(path + end, error);
  }
  // A job file may contain passwords, and it is kept as it was. The files that SQLite makes beside
  // this one get the same mode.
  if (Result<void> made = make_file(path); !made) return std::unexpected(std::move(made.error()));
  Result<Database> database = Database::open(path, Database::Access::Create);
  if (!database) return database;
  Result<void> ready = database->run(kSetUp);
  if (ready) ready = set_log(*database, resolved(kind, path));
  if (!ready) return std::unexpected(std::move(ready.error()));
  return database;
}

std::optional<FileIdentity> file_at(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return std::nullopt;
  return FileIdentity{.device = facts.st_dev, .inode = facts.st_ino};
}

namespace {

/// Whether the write-ahead log has lost its head. SQLite writes that only when the log starts anew:
/// later turns leave a hole in its place. Closing the log drops no lock, as nobody locks that file.
bool is_log_emptied(const Database& database, const std::string& path) {
  constexpr std::string_view kMagic = "\x37\x7f\x06";  // In the format of SQLite's files.
  if (database.log_pages() == 0) return false;
  const auto log = sys::open_file(path + "-wal", {});
  std::array<char, kMagic.size()> head{};
  return log && (::pread(log->descriptor.get(), head.data(), head.size(), 0) < std::ssize(head) ||
                 std::string_view(head.data(), head.size()) != kMagic);
}

}  // namespace

bool is_replaced(const Database& database, const std::string& path,
                 const std::optional<FileIdentity>& opened) {
  return file_at(path) != opened || Database::refuse_other_files(path).has_value() ||
         is_log_emptied(database, path);
}

std::optional<Error> refuse_other_directory(const std::string& path,
                                            const sys::Descriptor& opened) {
  const std::string directory = directory_of(path);
  struct stat was{};
  struct stat is{};
  const bool is_there = ::stat(directory.c_str(), &is) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
    return sys::system_error(
        fmt::format("cannot look at the run directory '{}', and nothing is written to that path",
                    directory),
        errno);
  }
  if (::fstat(opened.get(), &was) != 0) return std::nullopt;
  if (is_there && was.st_dev == is.st_dev && was.st_ino == is.st_ino) return std::nullopt;
  const std::string place = sys::path_of(opened);
  std::error_code error;
  const bool is_link = fs::is_symlink(fs::symlink_status(directory, error));
  // Where a task has removed the directory, there is no other, or one that it has made anew: that
  // has nothing which the journal could displace.
  if (place.empty() && !is_link && !file_at(path)) return std::nullopt;
  const std::string cure =
      place.empty()
          ? std::string("It was removed: remove what is in its place, and start the run again")
          : fmt::format("It is now '{}': move it back, and resume the run", place);
  return Error{fmt::format(
      "the run directory '{}' was moved or removed while the run was active, and nothing is "
      "written to that path. {}",
      directory, cure)};
}

Result<void> put_back(Database& database, const std::string& path) {
  const std::string aside = sys::aside_path(path);
  for (const char* const end : Database::kFileEnds) {
    if (::rename((path + end).c_str(), (aside + end).c_str()) == 0 || errno == ENOENT) continue;
    return std::unexpected(
        sys::system_error(fmt::format("cannot rename '{}{}'", path, end), errno));
  }
  Result<void> copied = make_file(path);
  if (copied) copied = database.copy_into(path);
  if (!copied) ::unlink(path.c_str());
  return copied;
}

}  // namespace trainyard::journal
