#include "sys/foreign_mounts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "sys/descriptor.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

/// Takes the number in front of `text` off; nothing if there is none.
std::optional<std::uint32_t> cut_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The text behind the first `mark`; empty if there is none.
std::string_view text_behind(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

}  // namespace

ForeignMounts ForeignMounts::read() {
  constexpr Bytes kMountsMax = mib(16);
  return in(read_file("/proc/self/mountinfo", kMountsMax).value_or(""), ::geteuid());
}

ForeignMounts ForeignMounts::in(std::string_view mountinfo, uid_t user) {
  ForeignMounts foreign;
  while (!mountinfo.empty()) {
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    // "63 43 0:39 / /mnt rw,relatime - fuse.sshfs me@host: rw,user_id=1000,group_id=1000"
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    const std::string_view file_system = text_behind(line, " - ");
    // The options are the last word; the one before it is the user's to choose.
    const std::string_view options = file_system.substr(file_system.rfind(' ') + 1);
    std::string_view owner = text_behind(options, "user_id=");
    const auto mounted_by = cut_number(owner);
    if (!file_system.starts_with("fuse") || !mounted_by) continue;
    if (*mounted_by == user || *mounted_by == 0) continue;
    line = text_behind(text_behind(line, " "), " ");
    const auto major = cut_number(line);
    line.remove_prefix(std::min<std::size_t>(1, line.size()));
    const auto minor = cut_number(line);
    if (major && minor) foreign.devices_.emplace(*major, *minor);
  }
  return foreign;
}

std::optional<std::string> ForeignMounts::place_of(const std::string& directory) const {
  if (devices_.empty()) return directory;
  const Descriptor there = open_cached(directory + "/.");  // A link to a directory is followed.
  struct statx about{};
  if (!there.is_open() ||
      ::statx(there.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &about) != 0) {
    return std::nullopt;
  }
  if (devices_.contains({about.stx_dev_major, about.stx_dev_minor})) return std::nullopt;
  std::error_code error;
  const auto place =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", there.get()), error);
  return error ? std::nullopt : std::optional(place.string());
}

}  // namespace trainyard::sys
