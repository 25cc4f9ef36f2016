#include "sys/log_bound.h"

#include <cerrno>
#include <cstdint>
#include <expected>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::sys {
namespace {

/// Space is given back in whole blocks of this size; few file systems have larger ones.
constexpr std::int64_t kBlock = std::int64_t{64} << 10;
/// The unit of stat(2), whatever the blocks of the file system are.
constexpr std::int64_t kCounted = 512;

std::int64_t whole_blocks(std::int64_t bytes) { return bytes / kBlock * kBlock; }

Bytes taken_by(const struct stat& facts) { return Bytes{facts.st_blocks * kCounted}; }

}  // namespace

Result<Bytes> bound_log(const std::string& path, Bytes most) {
  struct stat facts{};
  if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return Bytes{};
  const Bytes before = taken_by(facts);
  const std::int64_t first = whole_blocks(most.count / 8);
  const std::int64_t last = whole_blocks(facts.st_size - (most.count / 2));
  if (before <= most || last <= first) return Bytes{};
  const auto opened = open_file(path, {.flags = O_WRONLY});
  if (!opened && opened.error().number == 0) return Bytes{};
  if (!opened) return std::unexpected(opened.error().error);
  const Descriptor& file = opened->descriptor;
  constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (fallocate(file.get(), kHole, first, last - first) != 0) {
    return std::unexpected(system_error(fmt::format("cannot bound '{}'", path), errno));
  }
  if (fstat(file.get(), &facts) != 0) return Bytes{};
  return before - taken_by(facts);
}

}  // namespace trainyard::sys
