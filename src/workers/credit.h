// Flow control for the events that go to a worker of another machine: how many of them it has not
// received yet, and so whether more may go. Pure; one thread.
//
// Only the sender counts. Behind each quarter of the limit it requests an acknowledgement, which the
// other machine sends when the worker has received all events before the request, or is gone. So
// neither a worker that begins again nor an event that it does not want any more can make the
// counts of two machines differ.
//
//   if (!credit.is_used_up()) { send(event); if (auto number = credit.use(size)) request(*number); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "trainyard/parallel.h"

namespace trainyard::workers {

class Credit {
 public:
  explicit Credit(const QueueLimits& limits) : limits_(limits) {}

  /// Counts an event that is sent. Returns the number of the acknowledgement to request behind it,
  /// if one is due.
  std::optional<std::uint64_t> use(std::size_t bytes);
  /// The worker has received all events before that request. False: there was no such request.
  bool acknowledge(std::uint64_t number);

  [[nodiscard]] bool is_used_up() const {
    return in_flight_.events >= limits_.events_max || in_flight_.bytes >= limits_.bytes_max;
  }
  /// At most half of it is used: a sender that waited continues.
  [[nodiscard]] bool has_room() const {
    return in_flight_.events <= limits_.events_max / 2 && in_flight_.bytes <= limits_.bytes_max / 2;
  }

 private:
  struct Amount {
    std::size_t events = 0;
    std::size_t bytes = 0;
  };
  QueueLimits limits_;
  Amount in_flight_;              ///< All that is not acknowledged.
  Amount since_request_;          ///< The part of it behind the last request.
  std::deque<Amount> requested_;  ///< The other parts, by request.
  std::uint64_t acknowledged_ = 0;
};

}  // namespace trainyard::workers
