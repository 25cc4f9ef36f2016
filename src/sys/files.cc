#include "sys/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/token.h"

namespace trainyard::sys {
namespace {

Error too_large(const std::string& path, Bytes at_most) {
  return Error{fmt::format("'{}' is larger than {}", path, to_text(at_most))};
}

Result<std::string> read_to_end(const Descriptor& file, const std::string& path, Bytes at_most) {
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  const auto most = static_cast<std::size_t>(at_most.count);
  std::string text;
  for (;;) {
    const std::size_t had = text.size();
    // One byte more than allowed, to see whether there is more.
    text.resize(std::min(had + kChunk, most + 1));
    const ssize_t got = ::read(file.get(), text.data() + had, text.size() - had);
    if (got < 0 && errno == EINTR) {
      text.resize(had);
      continue;
    }
    if (got < 0) return std::unexpected(system_error(fmt::format("cannot read '{}'", path), errno));
    text.resize(had + static_cast<std::size_t>(got));
    if (got == 0) return text;
    if (text.size() > most) return std::unexpected(too_large(path, at_most));
  }
}

std::optional<Bytes> size_if_plain(int directory, const std::string& path, int flags) {
  struct statx about{};
  if (::statx(directory, path.c_str(), flags, STATX_TYPE | STATX_SIZE, &about) != 0 ||
      !S_ISREG(about.stx_mode)) {
    return std::nullopt;
  }
  return Bytes{static_cast<std::int64_t>(about.stx_size)};
}

std::string lock_path(const std::string& directory, const char* name) {
  return directory + "/" + name;
}

/// A lock of the open file, not of the process (F_OFD_*): it is not lost when something else in
/// this process opens and closes the same file, and it can be asked about without being taken.
struct flock whole_file_lock() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::int64_t pid_in(const Descriptor& file) {
  std::array<char, 24> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::int64_t pid = 0;
  if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
  return pid;
}

}  // namespace

Result<void> write_all(const Descriptor& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      return std::unexpected(system_error(fmt::format("cannot write '{}'", path), errno));
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<std::string> read_file(const std::string& path, Bytes at_most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return std::unexpected(system_error(fmt::format("cannot read '{}'", path), errno));
  }
  return read_to_end(file, path, at_most);
}

Result<std::optional<std::string>> read_plain_file(const std::string& path, Bytes at_most,
                                                   Links links, std::string_view below) {
  const auto opened = open_file(path, {.links = links, .size_max = at_most, .below = below});
  if (!opened && opened.error().number == ENOENT) return std::nullopt;
  if (!opened) return std::unexpected(opened.error().error);
  return read_to_end(opened->descriptor, path, at_most);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Descriptor open_cached(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  return Descriptor(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how))));
}

bool is_known_to_be_absent(const std::string& path) {
  const Descriptor file = open_cached(path);
  return !file.is_open() && errno == ENOENT;
}

std::expected<EntryFacts, int> entry_facts(const std::string& path) {
  struct statx about{};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if (::statx(AT_FDCWD, path.c_str(), flags, STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO,
              &about) != 0) {
    return std::unexpected(errno);
  }
  if ((about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return std::unexpected(EXDEV);
  return EntryFacts{.mode = about.stx_mode, .owner = about.stx_uid, .inode = about.stx_ino};
}

std::optional<Bytes> known_size(const std::string& path) {
  const Descriptor file = open_cached(path);
  if (!file.is_open()) return std::nullopt;
  // A file system over a network answers from what it has kept.
  return size_if_plain(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC);
}

std::optional<Bytes> size_of_file(const std::string& path) {
  return size_if_plain(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
}

Result<std::string> read_end_of_file(const std::string& path, std::size_t at_most, Links links,
                                     std::string_view below) {
  const auto opened = open_file(path, {.links = links, .below = below});
  if (!opened) return std::unexpected(opened.error().error);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(opened->facts.st_size, 0));
  const std::size_t from = size - std::min(size, at_most);
  std::string text(size - from, '\0');
  const ssize_t got =
      ::pread(opened->descriptor.get(), text.data(), text.size(), static_cast<off_t>(from));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

Result<FreshFile> FreshFile::make(const std::string& path, std::string_view below) {
  const auto failed = [&path](int error) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", path), error));
  };
  const std::size_t name = path.rfind('/') + 1;
  auto directory = open_directory(name == 0 ? "." : path.substr(0, name), below);
  if (!directory && directory.error().number != 0) return failed(directory.error().number);
  if (!directory) return std::unexpected(std::move(directory.error().error));
  FreshFile made(path, std::move(*directory));
  // A file left by an earlier attempt, or anything that is not our file, such as a pipe or a link.
  static_cast<void>(::unlinkat(made.directory_.get(), made.name_in(made.fresh_), 0));
  made.file_ = Descriptor(::openat(made.directory_.get(), made.name_in(made.fresh_),
                                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!made.file_.is_open()) return failed(errno);
  return made;
}

FreshFile::~FreshFile() {
  if (file_.is_open()) static_cast<void>(::unlinkat(directory_.get(), name_in(fresh_), 0));
}

Result<void> FreshFile::write(std::string_view text) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  buffer_ += text;
  return buffer_.size() < kAtOnce ? Result<void>{} : flush();
}

Result<void> FreshFile::flush() { return write_all(file_, std::exchange(buffer_, {}), fresh_); }

Result<void> FreshFile::put_in_place(Lasting lasting) {
  Result<void> written = flush();
  const bool on_disk = lasting == Lasting::ThroughCrash;
  if (written && on_disk && ::fsync(file_.get()) != 0) {
    written = std::unexpected(system_error(fmt::format("cannot write '{}'", fresh_), errno));
  }
  const int directory = directory_.get();
  if (written && ::renameat(directory, name_in(fresh_), directory, name_in(path_)) != 0) {
    written = std::unexpected(system_error(fmt::format("cannot write '{}'", path_), errno));
  }
  if (!written) return written;
  file_.close();
  return on_disk ? sync_directory() : written;
}

/// So that the name of a new file is on disk as well as what is in it.
Result<void> FreshFile::sync_directory() {
  const Descriptor opened(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory (EINVAL); there is nothing to be done about it.
  if (!opened.is_open() || (::fsync(opened.get()) != 0 && errno != EINVAL)) {
    return std::unexpected(
        system_error(fmt::format("cannot write to the directory of '{}'", path_), errno));
  }
  return {};
}

namespace {

Result<void> replace(const std::string& path, std::string_view text, FreshFile::Lasting lasting,
                     std::string_view below = {}) {
  Result<FreshFile> file = FreshFile::make(path, below);
  if (!file) return std::unexpected(std::move(file).error());
  Result<void> written = file->write(text);
  return written ? file->put_in_place(lasting) : written;
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view text) {
  return replace(path, text, FreshFile::Lasting::ThroughCrash);
}

Result<void> replace_file(const std::string& path, std::string_view text, std::string_view below) {
  return replace(path, text, FreshFile::Lasting::WhileWeRun, below);
}

Result<void> make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return {};
  int error = errno;
  if (error == ENOENT) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (!parent.empty() && parent != path) {
      if (Result<void> made = make_directories(parent); !made) return made;
      if (::mkdir(path.c_str(), 0777) == 0) return {};
      error = errno;
    }
  }
  struct stat about{};
  if (error == EEXIST && ::stat(path.c_str(), &about) == 0) {
    if (S_ISDIR(about.st_mode)) return {};
    error = ENOTDIR;
  }
  return std::unexpected(system_error(fmt::format("cannot make the directory '{}'", path), error));
}

Result<std::string> make_private_directory(std::string_view prefix) {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  return make_private_directory_in(parent.string(), prefix);
}

Result<std::string> make_private_directory_in(const std::string& parent, std::string_view prefix) {
  std::string path = fmt::format("{}/{}XXXXXX", parent, prefix);
  if (::mkdtemp(path.data()) == nullptr) {
    return std::unexpected(
        system_error(fmt::format("cannot make a directory in '{}'", parent), errno));
  }
  return path;
}

std::string path_of(const Descriptor& directory) {
  struct stat facts{};
  if (::fstat(directory.get(), &facts) != 0 || facts.st_nlink == 0) return {};
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", directory.get()), error)
      .string();
}

void restore_access(const std::string& directory, std::string_view below) {
  const bool is_below = !below.empty() && directory.starts_with(std::string(below) + "/");
  for (std::size_t end = is_below ? below.size() : directory.size();;) {
    const auto opened = open_directory(directory.substr(0, end), below);
    struct stat facts{};
    if (!opened || ::fstat(opened->get(), &facts) != 0) return;
    if ((facts.st_mode & S_IRWXU) != S_IRWXU) {
      // fchmod(2) refuses such a descriptor, and any other needs the access that is missing.
      static_cast<void>(
          ::chmod(fmt::format("/proc/self/fd/{}", opened->get()).c_str(), facts.st_mode | S_IRWXU));
    }
    if (end == directory.size()) return;
    end = std::min(directory.find('/', end + 1), directory.size());
  }
}

std::string aside_path(const std::string& path) {
  return fmt::format("{}.other-{}", path, random_token().substr(0, 8));
}

void clear_place(const std::string& path) {
  if (::unlink(path.c_str()) != 0) ::rename(path.c_str(), aside_path(path).c_str());
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  // Not a range-for: its step throws where reading fails in the middle, as /proc does when a
  // process goes away.
  const std::filesystem::directory_iterator end;
  while (!error && entry != end) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  return names;
}

Result<std::string> current_directory() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::current_path(error);
  if (error)
    return std::unexpected(system_error("cannot find the current directory", error.value()));
  return path.string();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

Result<RunLock> RunLock::take(const std::string& run_directory, const char* name) {
  const std::string path = lock_path(run_directory, name);
  auto opened = open_file(path, {.flags = O_RDWR | O_CREAT});
  if (!opened) {
    const bool is_other = opened.error().number == 0;
    std::string& message = opened.error().error.message;
    if (is_other) message += " if no run of trainyard is active there";
    return std::unexpected(std::move(opened.error().error));
  }
  Descriptor file = std::move(opened->descriptor);
  struct flock lock = whole_file_lock();
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    const int error = errno;
    if (error != EAGAIN && error != EACCES) {
      return std::unexpected(system_error(fmt::format("cannot lock '{}'", path), error));
    }
    const std::int64_t pid = pid_in(file);
    std::string who = pid > 0 ? fmt::format("process {}", pid) : "another process";
    // A keeper has a copy of the lock, and ends the children of a process that was killed.
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
      who = fmt::format(
          "the children of process {0}, which has ended, or by process {0} of another machine",
          pid);
    }
    return std::unexpected(Error{fmt::format("'{}' is in use by {}", run_directory, who)});
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", path), errno));
  }
  if (Result<void> written = write_all(file, pid, path); !written) {
    return std::unexpected(std::move(written).error());
  }
  return RunLock(std::move(file),
                 Descriptor(::open(run_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
}

Result<RunLock> RunLock::clear_and_take(const std::string& run_directory) {
  const std::string path = lock_path(run_directory, "lock");
  // One process at a time, which would else remove the lock that another one has just taken. A task
  // may hold this as well: nothing waits for it.
  const Descriptor turn(::open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool is_alone = ::flock(turn.get(), LOCK_EX | LOCK_NB) == 0;
  // Not a lock with a second name that a run holds, perhaps on another machine.
  const bool is_clearable = is_alone && !holder(run_directory);
  if (is_clearable && reason_to_refuse_at(path, {.flags = O_RDWR})) clear_place(path);
  return take(run_directory);
}

Descriptor reserve_space(const std::string& directory, Bytes size) {
  Descriptor space(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (space.is_open() && ::fallocate(space.get(), 0, 0, size.count) != 0) space.close();
  return space;
}

std::optional<std::int64_t> RunLock::holder(const std::string& run_directory) {
  const auto opened = open_file(lock_path(run_directory, "lock"), {});
  if (!opened) return std::nullopt;
  const Descriptor& file = opened->descriptor;
  struct flock lock = whole_file_lock();
  // Tests for a read lock: a test for a write lock would need a writable file.
  lock.l_type = F_RDLCK;
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return pid_in(file);
}

}  // namespace trainyard::sys
