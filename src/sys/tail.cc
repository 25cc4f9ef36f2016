#include "sys/tail.h"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::sys {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
/// Smaller holes may be zeros that a program wrote.
constexpr std::int64_t kHoleLeast = std::int64_t{64} << 10;

/// The next position with data, from `place` on. sys/tail.h leaves holes.
std::int64_t data_from(int file, std::int64_t place, std::int64_t size) {
  const off_t found = lseek(file, place, SEEK_DATA);
  if (found >= 0) return found;
  return errno == ENXIO ? std::max(place, size) : place;
}

/// Space is given back in whole blocks of this size; few file systems have larger ones.
constexpr std::int64_t kBlock = std::int64_t{64} << 10;
/// The unit of stat(2), whatever the blocks of the file system are.
constexpr std::int64_t kCounted = 512;

std::int64_t whole_blocks(std::int64_t bytes) { return bytes / kBlock * kBlock; }

Bytes taken_by(const struct stat& facts) { return Bytes{facts.st_blocks * kCounted}; }

}  // namespace

std::string_view last_lines(std::string_view text, std::size_t lines_max) {
  std::size_t start = text.size();
  for (std::size_t lines = 0; start > 0; --start) {
    if (text[start - 1] == '\n' && start != text.size() && ++lines == lines_max) break;
  }
  return text.substr(start);
}

Result<std::string> Tail::read_more() {
  const auto opened = open_file(path_, {.below = below_});
  if (!opened && opened.error().number == ENOENT) return std::string{};
  if (!opened) return std::unexpected(opened.error().error);
  const auto& [file, facts] = *opened;
  if (facts.st_size < offset_) offset_ = 0;
  if (const std::int64_t data = data_from(file.get(), offset_, facts.st_size);
      data - offset_ >= kHoleLeast && offset_ < end_) {
    const Bytes dropped{data - std::exchange(offset_, data)};
    return fmt::format("\n[{} of this log were not kept]\n", to_text(dropped));
  }
  const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(end_ - offset_, 0));
  std::string piece(std::min<std::uint64_t>(kPiece, left), '\0');
  const ssize_t got = pread(file.get(), piece.data(), piece.size(), offset_);
  if (got < 0) {
    return std::unexpected(system_error(fmt::format("cannot read '{}'", path_), errno));
  }
  piece.resize(static_cast<std::size_t>(got));
  offset_ += got;
  return piece;
}

Tail::Unread Tail::unread() {
  struct stat facts{};
  const std::int64_t size = lstat(path_.c_str(), &facts) == 0 ? facts.st_size : 0;
  Unread unread;
  if (size < offset_) {
    unread.anew = true;
    offset_ = 0;
  }
  unread.bytes = std::max<std::int64_t>(std::min(size, end_) - offset_, 0);
  return unread;
}

void Tail::stop_at_present() {
  struct stat facts{};
  end_ = lstat(path_.c_str(), &facts) == 0 ? facts.st_size : 0;
  if (end_ < offset_) offset_ = 0;
}

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
