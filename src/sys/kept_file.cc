#include "sys/kept_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "sys/descriptor.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

Error cannot_rewrite(const std::string& path, int error) {
  return system_error(fmt::format("cannot write '{}'", path), error);
}

/// Owner and permissions of a file; an error if a new file in its place could not have the same.
Result<struct stat> look_at_kept(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return std::unexpected(cannot_rewrite(path, errno));
  if (!S_ISREG(about.st_mode)) {
    return std::unexpected(Error{fmt::format("'{}' is not a regular file", path)});
  }
  if (about.st_nlink > 1) {
    return std::unexpected(
        Error{fmt::format("'{}' has a second name (a hard link): it is left to you", path)});
  }
  // In a directory of ours a file that may not be written could be replaced all the same.
  if (::access(path.c_str(), W_OK) != 0) return std::unexpected(cannot_rewrite(path, errno));
  return about;
}

/// A new file next to it, which is removed unless it takes its place.
class Beside {
 public:
  explicit Beside(const std::string& path) {
    const std::filesystem::path whole(path);
    name_ = (whole.parent_path() / fmt::format(".{}.XXXXXX", whole.filename().string())).string();
    file_ = Descriptor(::mkostemp(name_.data(), O_CLOEXEC));
    error_ = errno;
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() {
    if (file_.is_open()) static_cast<void>(::unlink(name_.c_str()));
  }

  Result<void> write(std::string_view text, const struct stat& like) {
    if (!file_.is_open()) return std::unexpected(cannot_rewrite(name_, error_));
    if (Result<void> written = write_all(file_, text, name_); !written) return written;
    struct stat mine{};
    const bool seen = ::fstat(file_.get(), &mine) == 0;
    const bool same = seen && mine.st_uid == like.st_uid && mine.st_gid == like.st_gid;
    if (!same && ::fchown(file_.get(), like.st_uid, like.st_gid) != 0) {
      return std::unexpected(
          Error{"it belongs to another user or group, and would be ours then: it is left to you"});
    }
    if (::fchmod(file_.get(), like.st_mode & 07777U) != 0 || ::fsync(file_.get()) != 0) {
      return std::unexpected(cannot_rewrite(name_, errno));
    }
    return {};
  }

  Result<void> put_in_place(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) {
      return std::unexpected(cannot_rewrite(path, errno));
    }
    file_.close();
    return {};
  }

 private:
  std::string name_;
  Descriptor file_;
  int error_ = 0;
};

}  // namespace

Result<void> rewrite_kept_file(const std::string& path, std::string_view before,
                               std::string_view after) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) return std::unexpected(cannot_rewrite(path, error.value()));
  const Result<struct stat> about = look_at_kept(real);
  if (!about) return std::unexpected(about.error());
  Beside beside(real);
  if (Result<void> written = beside.write(after, *about); !written) {
    return std::unexpected(std::move(written.error()).in(path));
  }
  // Checked as late as possible: an editor may have saved it since.
  const Result<std::optional<std::string>> now =
      read_plain_file(real, Bytes{static_cast<std::int64_t>(before.size())});
  if (!now || *now != before) {
    return std::unexpected(
        Error{fmt::format("'{}' has changed since it was read: nothing was written", path)});
  }
  return beside.put_in_place(real);
}

}  // namespace trainyard::sys
