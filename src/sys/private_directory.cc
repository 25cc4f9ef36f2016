#include "sys/private_directory.h"

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "sys/descriptor.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

constexpr mode_t kOwnersAlone = 0700;

}  // namespace

Result<void> make_own_directory(const std::string& path) {
  if (Result<void> made = make_directories(path); !made) {
    return std::unexpected(std::move(made.error()));
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return std::unexpected(system_error(fmt::format("cannot look at '{}'", path), errno));
  }
  if (status.st_uid != own_user()) {
    return std::unexpected(Error{fmt::format("'{}' is another user's", path)});
  }
  const bool is_private = (status.st_mode & ALLPERMS) == kOwnersAlone;
  if ((!is_private && ::chmod(path.c_str(), kOwnersAlone) != 0) ||
      ::access(path.c_str(), W_OK | X_OK) != 0) {
    return std::unexpected(system_error(fmt::format("cannot write in '{}'", path), errno));
  }
  return {};
}

std::uint32_t own_user() { return ::geteuid(); }

}  // namespace trainyard::sys
