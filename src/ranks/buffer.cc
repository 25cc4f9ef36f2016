#include "trainyard/buffer.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard {
namespace {

struct Named {
  DType type;
  std::string_view text;
  std::size_t bytes;
};

constexpr std::array<Named, 13> kTypes{{
    {.type = DType::Bool, .text = "bool", .bytes = 1},
    {.type = DType::UInt8, .text = "uint8", .bytes = 1},
    {.type = DType::Int8, .text = "int8", .bytes = 1},
    {.type = DType::UInt16, .text = "uint16", .bytes = 2},
    {.type = DType::Int16, .text = "int16", .bytes = 2},
    {.type = DType::UInt32, .text = "uint32", .bytes = 4},
    {.type = DType::Int32, .text = "int32", .bytes = 4},
    {.type = DType::UInt64, .text = "uint64", .bytes = 8},
    {.type = DType::Int64, .text = "int64", .bytes = 8},
    {.type = DType::Float16, .text = "float16", .bytes = 2},
    {.type = DType::BFloat16, .text = "bfloat16", .bytes = 2},
    {.type = DType::Float32, .text = "float32", .bytes = 4},
    {.type = DType::Float64, .text = "float64", .bytes = 8},
}};

const Named& about(DType type) {
  const auto* const found = std::ranges::find(kTypes, type, &Named::type);
  check(found != kTypes.end(), "a known dtype");
  return *found;
}

std::size_t bytes_needed(DType type, const Dimensions& shape) {
  const std::optional<std::size_t> count = count_of(shape);
  check(count.has_value(), "a shape that memory can hold");
  return count.value_or(0) * bytes_of(type);
}

/// Doubles, so that it lies well for every type.
class OwnMemory final : public detail::BufferMemory {
 public:
  explicit OwnMemory(std::size_t size)
      : words_((size + sizeof(double) - 1) / sizeof(double)), size_(size) {}
  [[nodiscard]] std::span<const std::byte> bytes() const override {
    return std::as_bytes(std::span(words_)).first(size_);
  }
  [[nodiscard]] std::span<std::byte> writable() override {
    return std::as_writable_bytes(std::span(words_)).first(size_);
  }

 private:
  std::vector<double> words_;
  std::size_t size_;
};

class BorrowedMemory final : public detail::BufferMemory {
 public:
  explicit BorrowedMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

std::string_view to_text(DType type) { return about(type).text; }

std::optional<DType> parse_dtype(std::string_view text) {
  const auto* const found = std::ranges::find(kTypes, text, &Named::text);
  return found == kTypes.end() ? std::nullopt : std::optional(found->type);
}

std::size_t bytes_of(DType type) { return about(type).bytes; }

std::optional<std::size_t> count_of(const Dimensions& shape) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / sizeof(double);
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto times = static_cast<std::uint64_t>(size);
    if (times > 0 && count > kMost / times) return std::nullopt;
    count *= times;
  }
  return static_cast<std::size_t>(count);
}

Buffer::Buffer(DType type, Dimensions shape)
    : type_(type),
      shape_(std::move(shape)),
      memory_(std::make_shared<OwnMemory>(bytes_needed(type, shape_))) {}

Buffer::Buffer(DType type, Dimensions shape, std::shared_ptr<detail::BufferMemory> memory)
    : type_(type), shape_(std::move(shape)), memory_(std::move(memory)) {
  check(memory_ != nullptr && memory_->bytes().size() == bytes_needed(type, shape_),
        "memory of the size that the shape needs");
}

Buffer Buffer::view(DType type, Dimensions shape, std::span<const std::byte> bytes) {
  return {type, std::move(shape), std::make_shared<BorrowedMemory>(bytes)};
}

std::span<const std::byte> Buffer::bytes() const {
  return memory_ == nullptr ? std::span<const std::byte>() : memory_->bytes();
}

std::span<std::byte> Buffer::writable() {
  return memory_ == nullptr ? std::span<std::byte>() : memory_->writable();
}

void Buffer::copy_in(std::span<const std::byte> bytes) {
  const std::span<std::byte> room = writable();
  check(room.size() == bytes.size(), "as many values as the shape says");
  std::ranges::copy(bytes, room.begin());
}

void Buffer::check_type(DType asked) const {
  if (asked == type_) return;
  throw BufferTypeError(
      fmt::format("the buffer contains {0}, not {1}: send it as {1} (NumPy: array.astype('{1}')), "
                  "or read it as {0}",
                  to_text(type_), to_text(asked)));
}

}  // namespace trainyard
