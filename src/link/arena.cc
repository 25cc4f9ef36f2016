#include "link/arena.h"

#include <cerrno>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::link {
namespace {

/// It keeps its size, and nobody but who has it mapped already can write to it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

Result<Mapping> map_shared(const sys::Descriptor& descriptor, std::size_t size, int protection) {
  void* const start = ::mmap(nullptr, size, protection, MAP_SHARED, descriptor.get(), 0);
  if (start == MAP_FAILED) return std::unexpected(sys::system_error("cannot map an arena", errno));
  return Mapping(start, size);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

Result<Arena> Arena::make(std::size_t size) {
  sys::Descriptor descriptor(::memfd_create("trainyard-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_open() || ::ftruncate(descriptor.get(), static_cast<off_t>(size)) != 0) {
    return std::unexpected(sys::system_error("cannot make an arena", errno));
  }
  Result<Mapping> mapping = map_shared(descriptor, size, PROT_READ | PROT_WRITE);
  if (!mapping) return std::unexpected(std::move(mapping.error()));
  if (::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
    return std::unexpected(sys::system_error("cannot seal an arena", errno));
  }
  return Arena(std::move(descriptor), std::move(*mapping));
}

Result<ArenaView> ArenaView::map(const sys::Descriptor& descriptor, std::size_t size_max) {
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  struct stat about{};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor.get(), &about) != 0) {
    return std::unexpected(Error{"a descriptor that is not of an arena"});
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0 || size > size_max) {
    return std::unexpected(
        Error{fmt::format("an arena of {} bytes, at most {} are allowed", size, size_max)});
  }
  Result<Mapping> mapping = map_shared(descriptor, size, PROT_READ);
  if (!mapping) return std::unexpected(std::move(mapping.error()));
  return ArenaView(std::move(*mapping));
}

}  // namespace trainyard::link
