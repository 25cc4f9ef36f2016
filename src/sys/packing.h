// Plain numbers and texts as bytes, between processes that are this program: no version, the
// machine's own byte order. And whole pieces of that over a socket.
//
// For few bytes: the messages between the yard and its keeper are in process/keeper_message.h. Pure
// but for the two functions that name a socket; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trainyard::sys {

/// Puts them behind each other.
class Packing {
 public:
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void add(Number number) {
    std::array<char, sizeof(Number)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof(number));
    text_.append(bytes.data(), bytes.size());
  }
  /// At most 4 GiB.
  void add(std::string_view text) {
    add(static_cast<std::uint32_t>(text.size()));
    text_ += text;
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

/// Takes them out again. A missing number is 0, a missing text is empty.
class Unpacking {
 public:
  explicit Unpacking(std::string_view text) : rest_(text) {}

  template <class Number>
  Number number() {
    Number value{};
    if (rest_.size() < sizeof(value)) {
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  std::string text() {
    const std::size_t size = count();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  /// The number of items that come next; never more than there can be.
  std::size_t count() {
    // In this order: the bytes that are left are those behind the number.
    const auto said = number<std::uint32_t>();
    return std::min<std::size_t>(said, rest_.size());
  }

 private:
  std::string_view rest_;
};

/// Sends a piece with its length before it; waits for room. False when the receiver is gone.
bool send_packed(int socket, std::string_view piece);

/// The bytes that came over a socket, cut into pieces. The sender waits for an answer to each
/// piece: more than one piece of maximum length is nonsense.
class PackedReader {
 public:
  explicit PackedReader(std::size_t piece_max) : piece_max_(piece_max) {}

  /// Takes in what can be had without waiting.
  void read(int socket);
  /// The same, but waits until something comes.
  void wait_and_read(int socket);
  /// The next whole piece; nothing while there is none.
  [[nodiscard]] std::optional<std::string> next();
  /// Nothing comes any more: the other end is gone, or has sent a piece that is too long.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void receive(int socket, int flags);

  std::size_t piece_max_;
  std::string bytes_;
  bool broken_ = false;
};

}  // namespace trainyard::sys
