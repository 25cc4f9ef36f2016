// File systems that other users have mounted (FUSE). Who looks at a path on one of them waits for a
// program of that user, for as long as the user likes.
//
//   const auto foreign = ForeignMounts::read();
//   if (const auto place = foreign.place_of("/tmp/x")) ...  // Looking at *place waits for no user.
//
// For paths that another user has chosen; sys/files.h has entry_facts() for the entries of a
// directory that is trusted. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

namespace trainyard::sys {

class ForeignMounts {
 public:
  /// The mounts that this process sees. None where /proc is not mounted.
  static ForeignMounts read();
  /// The mounts in a text as /proc/self/mountinfo has it, for `user`. Mounts of root are trusted.
  static ForeignMounts in(std::string_view mountinfo, uid_t user);

  /// The place of a directory, without links. Nothing if the directory is on such a file system, or
  /// if the kernel does not know it without asking a file system: it knows each directory in which
  /// a process has bound a socket. If there are no such mounts, the path itself, without a look at
  /// it.
  [[nodiscard]] std::optional<std::string> place_of(const std::string& directory) const;

 private:
  using Device = std::pair<std::uint32_t, std::uint32_t>;  ///< Its major and minor number.
  std::set<Device> devices_;
};

}  // namespace trainyard::sys
