#include "ranks/shared_arenas.h"

#include <expected>
#include <new>

#include <fmt/format.h>

namespace trainyard::ranks {
namespace {

/// The size of the address space of a process on today's machines.
constexpr std::size_t kAddressable = std::size_t{1} << 47U;

}  // namespace

class SharedArenas::Memory final : public detail::BufferMemory {
 public:
  Memory(std::shared_ptr<SharedArenas> arenas, link::ArenaPool::Loan loan)
      : arenas_(std::move(arenas)),
        loan_(std::make_unique<link::ArenaPool::Loan>(std::move(loan))) {}
  Memory(Memory&&) = delete;
  Memory& operator=(Memory&&) = delete;
  ~Memory() override {
    const std::scoped_lock lock(arenas_->mutex_);
    loan_.reset();
  }

  [[nodiscard]] std::span<const std::byte> bytes() const override { return loan_->bytes(); }
  [[nodiscard]] std::span<std::byte> writable() override { return loan_->bytes(); }
  [[nodiscard]] const SharedArenas* arenas() const { return arenas_.get(); }
  [[nodiscard]] const wire::SharedBuffer& place() const { return loan_->buffer(); }

 private:
  std::shared_ptr<SharedArenas> arenas_;
  std::unique_ptr<link::ArenaPool::Loan> loan_;
};

Result<std::shared_ptr<detail::BufferMemory>> SharedArenas::lend(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  Result<link::ArenaPool::Loan> loan = pool_.lend(bytes);
  lock.unlock();
  if (!loan) return std::unexpected(std::move(loan.error()));
  return std::make_shared<Memory>(shared_from_this(), std::move(*loan));
}

Result<Buffer> SharedArenas::alloc(DType type, Dimensions shape) {
  const std::optional<std::size_t> count = count_of(shape);
  if (!count) return std::unexpected(Error{"a shape of more numbers than memory can hold"});
  auto memory = lend(*count * bytes_of(type));
  if (!memory) return std::unexpected(std::move(memory.error()));
  return Buffer(type, std::move(shape), std::move(*memory));
}

Result<Buffer> alloc_own(DType type, Dimensions shape) {
  const std::optional<std::size_t> count = count_of(shape);
  if (!count) return std::unexpected(Error{"a shape of more numbers than memory can hold"});
  const std::size_t bytes = *count * bytes_of(type);
  try {
    if (bytes <= kAddressable) return Buffer(type, std::move(shape));
  } catch (const std::bad_alloc&) {
    // The error is that of more than can be addressed.
  }
  return std::unexpected(
      Error{fmt::format("a buffer of {} bytes: there is not so much memory", bytes)});
}

std::optional<wire::SharedBuffer> SharedArenas::find(const detail::BufferMemory* memory) const {
  const auto* const ours = dynamic_cast<const Memory*>(memory);
  if (ours == nullptr || ours->arenas() != this) return std::nullopt;
  return ours->place();
}

}  // namespace trainyard::ranks
