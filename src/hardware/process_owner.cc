#include "hardware/process_owner.h"

#include <cstdint>
#include <optional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/cgroup.h"

namespace trainyard::hardware {

std::optional<std::uint32_t> other_user_of(std::int64_t pid) {
  struct stat about{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &about) != 0) return std::nullopt;
  if (about.st_uid == ::geteuid()) return std::nullopt;
  return about.st_uid;
}

std::string name_of_process(std::int64_t pid) {
  std::string name = read_small_file(fmt::format("/proc/{}/comm", pid));
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

}  // namespace trainyard::hardware
