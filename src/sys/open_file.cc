#include "sys/open_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::sys {
namespace {

std::string_view type_name(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "pipe";
    case S_IFLNK:
      return "symbolic link";
    case S_IFDIR:
      return "directory";
    case S_IFSOCK:
      return "socket";
    default:
      return "device";
  }
}

bool opens_for_writing(const FileOptions& options) {
  return (options.flags & O_ACCMODE) != O_RDONLY;
}

/// Why the file is refused, as the end of a sentence about it.
std::optional<std::string> reason_to_refuse(const struct stat& facts, const FileOptions& options) {
  if (!S_ISREG(facts.st_mode)) {
    return fmt::format("is a {}, not a regular file", type_name(facts.st_mode));
  }
  if (options.owner && facts.st_uid != *options.owner) {
    return fmt::format("belongs to user {}, not to user {}", facts.st_uid, *options.owner);
  }
  // 0 names: the file has just been removed.
  if (opens_for_writing(options) && facts.st_nlink > 1) {
    return fmt::format("has {} names (hard links)", facts.st_nlink);
  }
  if (options.links == Links::RefuseAny && facts.st_nlink > 1) {
    return fmt::format("has {} names (hard links); if it is the right file, replace it with a copy",
                       facts.st_nlink);
  }
  const Bytes size{facts.st_size};
  if (options.size_max && size > *options.size_max) {
    return fmt::format("has {}, more than the {} it may have", to_text(size, *options.size_max),
                       to_text(*options.size_max, size));
  }
  return std::nullopt;
}

OpenFailure refusal(const std::string& path, const std::string& reason,
                    const FileOptions& options) {
  const char* const cure = opens_for_writing(options) ? "; remove it" : "";
  return {.error = Error{fmt::format("'{}' {}{}", path, reason, cure)}};
}

OpenFailure failure(const std::string& path, int error, const FileOptions& options) {
  const char* const verb = opens_for_writing(options) ? "write" : "read";
  return {.number = error, .error = system_error(fmt::format("cannot {} '{}'", verb, path), error)};
}

/// The failure for a file that open() itself refused: a link, a pipe without a reader, a socket, a
/// directory.
OpenFailure failure_to_open(const std::string& path, int error, const FileOptions& options) {
  if (error != ELOOP && error != ENXIO && error != EISDIR) return failure(path, error, options);
  const auto reason = reason_to_refuse_at(path, options);
  return reason ? refusal(path, *reason, options) : failure(path, error, options);
}

bool is_link(const Descriptor& directory, const std::string& name) {
  struct stat facts{};
  return ::fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(facts.st_mode);
}

}  // namespace

std::expected<Descriptor, OpenFailure> open_directory(const std::string& path,
                                                      std::string_view below) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  const bool is_below = !below.empty() && path.starts_with(std::string(below) + "/");
  std::size_t end = is_below ? below.size() : path.size();
  Descriptor directory(::open(path.substr(0, end).c_str(), kFlags));
  // One part after the other: the error names the link, and no kernel is too old for it.
  while (directory.is_open()) {
    const std::size_t begin = path.find_first_not_of('/', end);
    if (begin == std::string::npos) return directory;
    end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    Descriptor next(::openat(directory.get(), name.c_str(), kFlags | O_NOFOLLOW));
    const int error = errno;
    if (!next.is_open() && error == ENOTDIR && is_link(directory, name)) {
      return std::unexpected(OpenFailure{
          .error = Error{fmt::format("'{}' is a symbolic link, not a directory; remove it",
                                     path.substr(0, end))}});
    }
    directory = std::move(next);
    errno = error;
  }
  return std::unexpected(failure(path, errno, {}));
}

std::optional<std::string> reason_to_refuse_at(const std::string& path,
                                               const FileOptions& options) {
  struct stat facts{};
  const int flags = options.links != Links::Follow ? AT_SYMLINK_NOFOLLOW : 0;
  if (::fstatat(AT_FDCWD, path.c_str(), &facts, flags) != 0) return std::nullopt;
  return reason_to_refuse(facts, options);
}

std::expected<OpenedFile, OpenFailure> open_file(const std::string& path,
                                                 const FileOptions& options) {
  int flags = (options.flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if (options.links != Links::Follow) flags |= O_NOFOLLOW;
  Descriptor directory;
  const std::size_t name = options.below.empty() ? 0 : path.rfind('/') + 1;
  if (name > 0) {
    auto above = open_directory(path.substr(0, name), options.below);
    if (!above && above.error().number == 0) return std::unexpected(std::move(above.error()));
    if (!above) return std::unexpected(failure(path, above.error().number, options));
    directory = std::move(*above);
  }
  const int at = directory.is_open() ? directory.get() : AT_FDCWD;
  OpenedFile opened{.descriptor =
                        Descriptor(::openat(at, path.c_str() + name, flags, options.mode))};
  const int file = opened.descriptor.get();
  if (file < 0) return std::unexpected(failure_to_open(path, errno, options));
  if (::fstat(file, &opened.facts) != 0) return std::unexpected(failure(path, errno, options));
  if (const auto reason = reason_to_refuse(opened.facts, options)) {
    return std::unexpected(refusal(path, *reason, options));
  }
  if ((options.flags & O_TRUNC) != 0 && ::ftruncate(file, 0) != 0) {
    return std::unexpected(failure(path, errno, options));
  }
  // O_NONBLOCK was for the opening; a program that inherits the file has it as it expects.
  ::fcntl(file, F_SETFL, options.flags & O_APPEND);
  return opened;
}

}  // namespace trainyard::sys
