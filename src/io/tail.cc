#include "io/tail.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "io/descriptor.h"

namespace trainyard::io {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

Error cannot_read(const std::string& path, int code) {
  return system_error(fmt::format("cannot read '{}'", path), code);
}

}  // namespace

Result<std::string> Tail::read_more() {
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::string{};
    return std::unexpected(cannot_read(path_, errno));
  }
  struct stat facts{};
  if (fstat(file.get(), &facts) != 0) return std::unexpected(cannot_read(path_, errno));
  if (!S_ISREG(facts.st_mode)) {
    return std::unexpected(Error{fmt::format("'{}' is no plain file", path_)});
  }
  if (facts.st_size < offset_) offset_ = 0;
  const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(end_ - offset_, 0));
  std::string piece(std::min<std::uint64_t>(kPiece, left), '\0');
  const ssize_t got = pread(file.get(), piece.data(), piece.size(), offset_);
  if (got < 0) return std::unexpected(cannot_read(path_, errno));
  piece.resize(static_cast<std::size_t>(got));
  offset_ += got;
  return piece;
}

void Tail::stop_at_present() {
  struct stat facts{};
  end_ = stat(path_.c_str(), &facts) == 0 ? facts.st_size : 0;
  if (end_ < offset_) offset_ = 0;
}

}  // namespace trainyard::io
