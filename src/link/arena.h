// Memory that one process writes and others read: a buffer of megabytes is copied once, into an
// arena, and not again for each reader. An arena belongs to who sends; the descriptor goes over the
// socket once for each reader, who maps it once and cannot write to it.
//
// Knows no sockets (link/arena_exchange.h does). One thread each.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::link {

/// A piece of mapped memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* start, std::size_t size) : start_(start), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(start_), size_};
  }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

/// The sender's side. It has pages where something was written.
class Arena {
 public:
  static Result<Arena> make(std::size_t size);

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] const sys::Descriptor& descriptor() const { return descriptor_; }

 private:
  Arena(sys::Descriptor descriptor, Mapping mapping)
      : descriptor_(std::move(descriptor)), mapping_(std::move(mapping)) {}
  sys::Descriptor descriptor_;
  Mapping mapping_;
};

/// The reader's side.
class ArenaView {
 public:
  /// Refuses what is no memory that was sealed by Arena: what could be cut short while it is read
  /// would end the reader by a signal.
  static Result<ArenaView> map(const sys::Descriptor& descriptor, std::size_t size_max);

  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }

 private:
  explicit ArenaView(Mapping mapping) : mapping_(std::move(mapping)) {}
  Mapping mapping_;
};

}  // namespace trainyard::link
