// Numbers in memory with a type and a shape: the weights of a model, a batch. What travels between
// a RankExecutor and its ranks without being turned into text.
//
//   Buffer weights = executor.alloc(DType::Float32, {1000, 10}).value();   // fill it in place,
//   read_checkpoint(weights.fill<float>());                                 // and no copy is made
//   Buffer rates = Buffer::copy_of<float>({2}, {0.1F, 0.2F});
//
// A handle: copies stand for the same memory. Reading is for any thread; filling for one, before
// the buffer is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace trainyard {

/// The types of NumPy and PyTorch, by their names there.
enum class DType : std::uint8_t {
  Bool,
  UInt8,
  Int8,
  UInt16,
  Int16,
  UInt32,
  Int32,
  UInt64,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
};

/// "float32"
std::string_view to_text(DType type);
std::optional<DType> parse_dtype(std::string_view text);
/// The size of one number.
std::size_t bytes_of(DType type);

/// Along each dimension; none for a single number.
using Dimensions = std::vector<std::int64_t>;

/// How many numbers; nothing when a size is negative, or there are more than memory can hold.
std::optional<std::size_t> count_of(const Dimensions& shape);

namespace detail {

/// Memory that lives as long as somebody has it.
class BufferMemory {
 public:
  BufferMemory() = default;
  BufferMemory(BufferMemory&&) = delete;
  BufferMemory& operator=(BufferMemory&&) = delete;
  virtual ~BufferMemory() = default;
  [[nodiscard]] virtual std::span<const std::byte> bytes() const = 0;
  /// The same for who may write; empty for who may not.
  [[nodiscard]] virtual std::span<std::byte> writable() { return {}; }
};

template <class T>
constexpr std::optional<DType> dtype_of() {
  if (std::is_same_v<T, bool>) return DType::Bool;
  if (std::is_same_v<T, float>) return DType::Float32;
  if (std::is_same_v<T, double>) return DType::Float64;
  if (!std::is_integral_v<T>) return std::nullopt;
  switch (sizeof(T)) {
    case 1:
      return std::is_signed_v<T> ? DType::Int8 : DType::UInt8;
    case 2:
      return std::is_signed_v<T> ? DType::Int16 : DType::UInt16;
    case 4:
      return std::is_signed_v<T> ? DType::Int32 : DType::UInt32;
    default:
      return std::is_signed_v<T> ? DType::Int64 : DType::UInt64;
  }
}

}  // namespace detail

/// Thrown by Buffer::as() and Buffer::fill() for another type than the buffer has. what() names
/// both types and how to convert.
class BufferTypeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Buffer {
 public:
  /// A buffer without numbers.
  Buffer() = default;
  /// With memory of its own, all zero. The shape must have a count_of.
  Buffer(DType type, Dimensions shape);
  /// Over memory that somebody keeps. It must have the bytes that the shape needs, and hold still.
  Buffer(DType type, Dimensions shape, std::shared_ptr<detail::BufferMemory> memory);

  /// The numbers of `values`, which must be as many as the shape says.
  template <class T>
  static Buffer copy_of(Dimensions shape, std::span<const T> values) {
    Buffer made(typed<T>(), std::move(shape));
    made.copy_in(std::as_bytes(values));
    return made;
  }
  template <class T>
  static Buffer copy_of(Dimensions shape, std::initializer_list<T> values) {
    return copy_of<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  /// No copy: `values` must stay where they are for as long as a copy of this buffer is used.
  template <class T>
  static Buffer view_of(Dimensions shape, std::span<const T> values) {
    return view(typed<T>(), std::move(shape), std::as_bytes(values));
  }

  [[nodiscard]] DType dtype() const { return type_; }
  [[nodiscard]] const Dimensions& shape() const { return shape_; }
  /// How many numbers.
  [[nodiscard]] std::size_t count() const { return bytes().size() / bytes_of(type_); }
  [[nodiscard]] std::span<const std::byte> bytes() const;

  /// The numbers. Throws BufferTypeError if T is another type than dtype(): what comes from another
  /// process has the type that was sent.
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    check_type(typed<T>());
    return {reinterpret_cast<const T*>(bytes().data()), count()};
  }
  /// To be written; empty when it is somebody else's memory. Throws as as().
  template <class T>
  [[nodiscard]] std::span<T> fill() {
    check_type(typed<T>());
    const std::span<std::byte> bytes = writable();
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  [[nodiscard]] std::span<std::byte> writable();

  [[nodiscard]] const std::shared_ptr<detail::BufferMemory>& memory() const { return memory_; }

 private:
  template <class T>
  static constexpr DType typed() {
    constexpr std::optional<DType> kType = detail::dtype_of<std::remove_cv_t<T>>();
    static_assert(kType.has_value(), "a type that a buffer can have");
    return *kType;  // NOLINT(bugprone-unchecked-optional-access): see above
  }
  static Buffer view(DType type, Dimensions shape, std::span<const std::byte> bytes);
  void copy_in(std::span<const std::byte> bytes);
  void check_type(DType asked) const;

  DType type_ = DType::UInt8;
  Dimensions shape_{0};
  std::shared_ptr<detail::BufferMemory> memory_;
};

}  // namespace trainyard
