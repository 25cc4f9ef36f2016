#include "sys/copy_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <expected>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::sys {
namespace {

constexpr mode_t kPermissions = 0777;

/// Whether the kernel copied all of it. Where it cannot copy between these two, the rest is left to
/// be read and written from the present positions.
bool copied_by_kernel(const Descriptor& from, const Descriptor& to, off_t size) {
  if (::ioctl(to.get(), FICLONE, from.get()) == 0) return true;
  while (size > 0) {
    constexpr off_t kAtOnce = off_t{1} << 30;
    const auto part = static_cast<std::size_t>(std::min(size, kAtOnce));
    const ssize_t copied = ::copy_file_range(from.get(), nullptr, to.get(), nullptr, part, 0);
    if (copied < 0 && errno == EINTR) continue;
    // Some file systems say that a file is empty which is not.
    if (copied <= 0) return false;
    size -= copied;
  }
  return true;
}

/// Copies the rest of the file. Returns 0, or the errno.
int copy_by_hand(const Descriptor& from, const Descriptor& to) {
  std::vector<char> bytes(std::size_t{1} << 17);
  while (true) {
    const ssize_t got = ::read(from.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? 0 : errno;
    std::string_view rest(bytes.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const ssize_t written = ::write(to.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
}

}  // namespace

Result<bool> copy_file(const FileCopy& copy) {
  const auto opened = open_file(copy.from, {});
  if (!opened) {
    const int error = opened.error().number;
    if (error == 0 || error == ENOENT || error == ENOTDIR || error == ELOOP) return false;
    return std::unexpected(opened.error().error);
  }
  const auto& [from, about] = *opened;
  const Descriptor to(::open(copy.to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const auto failed = [&copy](int why) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", copy.to), why));
  };
  if (!to.is_open()) return failed(errno);
  if (!copied_by_kernel(from, to, about.st_size)) {
    if (const int why = copy_by_hand(from, to); why != 0) return failed(why);
  }
  const std::array<timespec, 2> times{about.st_atim, about.st_mtim};
  if (::fchmod(to.get(), about.st_mode & kPermissions) != 0) return failed(errno);
  ::futimens(to.get(), times.data());
  return true;
}

}  // namespace trainyard::sys
