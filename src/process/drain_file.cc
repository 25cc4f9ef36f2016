#include "process/drain_file.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <utility>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

#include "process/promise_board.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "wire/promises_text.h"

namespace trainyard::process {
namespace {

constexpr const char* kFile = "/gpus";

std::string prefix_for(uid_t user) { return fmt::format("trainyard-drain.{}.", user); }

/// The directories of a user. The rest of their names is random, so that no other user can make
/// them first.
std::vector<std::string> places_of(const std::vector<std::string>& directories, uid_t user) {
  const std::string prefix = prefix_for(user);
  std::vector<std::string> places;
  for (const std::string& directory : directories) {
    for (const std::string& name : sys::names_in(directory)) {
      if (!name.starts_with(prefix)) continue;
      std::string path = directory + "/" + name;
      const auto seen = sys::entry_facts(path);
      if (seen && S_ISDIR(seen->mode) && seen->owner == user) places.push_back(std::move(path));
    }
  }
  return places;
}

void add_drains_in(const std::string& place, uid_t user, std::vector<model::Drain>& drains) {
  const auto opened = sys::open_file(place + kFile, {.owner = user});
  if (!opened) return;
  std::string text(wire::kPromiseBytesMax, '\0');
  const ssize_t got = ::pread(opened->descriptor.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  for (model::Drain& drain : wire::drains_from(text)) drains.push_back(std::move(drain));
}

std::vector<model::Drain> read_of(const std::vector<std::string>& directories, uid_t user) {
  std::vector<model::Drain> drains;
  for (const std::string& place : places_of(directories, user)) add_drains_in(place, user, drains);
  return drains;
}

Result<void> remove_place(const std::string& place) {
  const std::string path = place + kFile;
  // A write that was killed leaves it.
  static_cast<void>(::unlink((path + ".new").c_str()));
  if ((::unlink(path.c_str()) == 0 || errno == ENOENT) &&
      (::rmdir(place.c_str()) == 0 || errno == ENOENT)) {
    return {};
  }
  return std::unexpected(sys::system_error("cannot remove '" + place + "'", errno));
}

Result<void> write_in(const std::string& place, const std::vector<model::Drain>& drains) {
  constexpr mode_t kEnteredByAll = 0755;
  constexpr mode_t kReadByAll = 0644;
  const std::string path = place + kFile;
  Result<void> written = sys::replace_file(path, wire::to_text(drains));
  // Independent of the umask: all users read the drains of root.
  if (written) {
    static_cast<void>(::chmod(path.c_str(), kReadByAll));
    static_cast<void>(::chmod(place.c_str(), kEnteredByAll));
  }
  return written;
}

}  // namespace

std::vector<model::Drain> read_own_drains(const std::vector<std::string>& directories) {
  return read_of(directories, ::geteuid());
}

std::vector<model::Drain> read_drains(const std::vector<std::string>& directories) {
  std::vector<model::Drain> drains = read_of(directories, 0);
  if (::geteuid() == 0) return drains;
  for (model::Drain& drain : read_own_drains(directories)) drains.push_back(std::move(drain));
  return drains;
}

Result<void> write_own_drains(const std::vector<std::string>& directories,
                              const std::vector<model::Drain>& drains) {
  if (directories.empty()) {
    return std::unexpected(Error{"this has no effect while TRAINYARD_PROMISES is off"});
  }
  const std::vector<std::string> before = places_of(directories, ::geteuid());
  if (!drains.empty()) {
    // Makes the directory where there is none yet.
    const Result<PromiseBoard> board = PromiseBoard::open(directories);
    if (!board) return std::unexpected(board.error());
    const Result<std::string> place =
        sys::make_private_directory_in(board->directory(), prefix_for(::geteuid()));
    if (!place) return std::unexpected(place.error());
    if (Result<void> written = write_in(*place, drains); !written) {
      static_cast<void>(remove_place(*place));
      return written;
    }
  }
  // Only now, so that a drain that stays applies at every moment.
  for (const std::string& place : before) {
    if (Result<void> removed = remove_place(place); !removed) return removed;
  }
  return {};
}

}  // namespace trainyard::process
