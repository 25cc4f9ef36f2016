#include "process/drain_file.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "model/gpu_limits.h"
#include "process/promise_board.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "wire/promises_text.h"

namespace trainyard::process {
namespace {

std::string path_for(const std::string& directory, uid_t user) {
  return fmt::format("{}/drain.{}", directory, user);
}

std::vector<model::Drain> read_of(const std::string& directory, uid_t user) {
  const std::string path = path_for(directory, user);
  const auto opened = sys::open_file(path, {.owner = user});
  if (!opened) return {};
  std::string text(wire::kPromiseBytesMax, '\0');
  const ssize_t got = ::pread(opened->descriptor.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return wire::drains_from(text);
}

std::string first_there(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    struct stat seen{};
    if (::stat(directory.c_str(), &seen) == 0) return directory;
  }
  return {};
}

}  // namespace

std::vector<model::Drain> read_own_drains(const std::vector<std::string>& directories) {
  const std::string directory = first_there(directories);
  return directory.empty() ? std::vector<model::Drain>{} : read_of(directory, ::geteuid());
}

std::vector<model::Drain> read_drains(const std::vector<std::string>& directories) {
  const std::string directory = first_there(directories);
  if (directory.empty()) return {};
  std::vector<model::Drain> drains = read_of(directory, 0);
  if (::geteuid() == 0) return drains;
  for (model::Drain& drain : read_of(directory, ::geteuid())) drains.push_back(std::move(drain));
  return drains;
}

Result<void> write_own_drains(const std::vector<std::string>& directories,
                              const std::vector<model::Drain>& drains) {
  if (directories.empty()) {
    return std::unexpected(Error{"this has no effect while TRAINYARD_PROMISES is off"});
  }
  // Makes the directory where there is none yet.
  const Result<PromiseBoard> board = PromiseBoard::open(directories);
  if (!board) return std::unexpected(board.error());
  const std::string path = path_for(board->directory(), ::geteuid());
  if (drains.empty()) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return std::unexpected(sys::system_error("cannot remove '" + path + "'", errno));
  }
  Result<void> written = sys::replace_file(path, wire::to_text(drains));
  constexpr mode_t kReadByAll = 0644;
  if (written) static_cast<void>(::chmod(path.c_str(), kReadByAll));
  return written;
}

}  // namespace trainyard::process
