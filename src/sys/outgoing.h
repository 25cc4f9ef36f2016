// Data that waits to be sent over a socket: bytes, and descriptors that go with some of them.
//
// Does not bound itself: callers of add() check size(). One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sys/descriptor.h"

namespace trainyard::sys {

/// Waits for room in a socket, in any thread. False if it is not writable in time. True also when
/// the other end is closed.
bool wait_until_writable(int descriptor, std::chrono::milliseconds at_most);

class Outgoing {
 public:
  /// The descriptors go with the first of the bytes. They are copied.
  void add(std::string_view bytes, const std::vector<int>& descriptors);

  /// Sends as much as the socket takes now. When the receiver is gone, all is dropped.
  void send_some(int socket);

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  struct Attached {
    std::size_t at = 0;  ///< The byte that they go with.
    std::vector<Descriptor> descriptors;
  };
  std::string bytes_;
  std::deque<Attached> attached_;
};

}  // namespace trainyard::sys
