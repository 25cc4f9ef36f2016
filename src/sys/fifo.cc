#include "sys/fifo.h"

#include <cerrno>
#include <cstddef>
#include <expected>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::sys {
namespace {

constexpr std::size_t kReadMax = std::size_t{64} << 10;
constexpr int kOwnerAlone = 0600;

bool is_fifo(const Descriptor& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && S_ISFIFO(status.st_mode);
}

}  // namespace

Result<Descriptor> open_fifo(const std::string& path) {
  if (::mkfifo(path.c_str(), kOwnerAlone) != 0 && errno != EEXIST) {
    return std::unexpected(system_error(fmt::format("cannot make '{}'", path), errno));
  }
  // For writing as well, so that it is not at its end when a writer goes.
  Descriptor fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fifo.is_open()) {
    return std::unexpected(system_error(fmt::format("cannot open '{}'", path), errno));
  }
  if (!is_fifo(fifo)) return std::unexpected(Error{fmt::format("'{}' is not a named pipe", path)});
  return fifo;
}

std::string read_waiting(const Descriptor& fifo) {
  std::string text(kReadMax, '\0');
  const ssize_t got = ::read(fifo.get(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(got > 0 ? got : 0));
  return text;
}

bool tell_fifo(const std::string& path, std::string_view word) {
  const Descriptor fifo(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fifo.is_open() || !is_fifo(fifo)) return false;
  return ::write(fifo.get(), word.data(), word.size()) == static_cast<ssize_t>(word.size());
}

}  // namespace trainyard::sys
