#include "sys/private_directory.h"

#include <cerrno>
#include <expected>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "sys/files.h"
#include "sys/foreign_mounts.h"

namespace trainyard::sys {
namespace {

constexpr mode_t kOwnersAlone = 0700;

/// As entry_facts(), where a file system is mounted that is asked.
std::expected<EntryFacts, int> facts_of_mount(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return std::unexpected(errno);
  return EntryFacts{.mode = about.st_mode, .owner = about.st_uid, .inode = about.st_ino};
}

}  // namespace

Result<void> make_own_directory(const std::string& path) {
  if (const auto above = std::filesystem::path(path).parent_path().string(); !above.empty()) {
    if (Result<void> made = make_directories(above); !made) return made;
  }
  if (::mkdir(path.c_str(), kOwnersAlone) != 0 && errno != EEXIST) {
    return std::unexpected(
        system_error(fmt::format("cannot make the directory '{}'", path), errno));
  }
  auto status = entry_facts(path);
  if (!status && status.error() == EXDEV) {
    if (!ForeignMounts::read().place_of(path)) {
      return std::unexpected(
          Error{fmt::format("'{}' is on a file system that another user has mounted", path)});
    }
    status = facts_of_mount(path);
  }
  if (!status) {
    return std::unexpected(system_error(fmt::format("cannot look at '{}'", path), status.error()));
  }
  if (!S_ISDIR(status->mode)) {
    return std::unexpected(Error{fmt::format("'{}' is a {}, not a directory", path,
                                             S_ISLNK(status->mode) ? "symbolic link" : "file")});
  }
  if (status->owner != own_user()) {
    return std::unexpected(Error{fmt::format("'{}' is another user's", path)});
  }
  const bool is_private = (status->mode & ALLPERMS) == kOwnersAlone;
  if ((!is_private && ::fchmodat(AT_FDCWD, path.c_str(), kOwnersAlone, AT_SYMLINK_NOFOLLOW) != 0) ||
      ::access(path.c_str(), W_OK | X_OK) != 0) {
    return std::unexpected(system_error(fmt::format("cannot write in '{}'", path), errno));
  }
  return {};
}

std::uint32_t own_user() { return ::geteuid(); }

}  // namespace trainyard::sys
