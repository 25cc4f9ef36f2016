// The words by which a run that the queue began reports whether it waits for room.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "model/turn.h"

namespace trainyard::cli {

/// The words that the run writes and the queue reads.
constexpr std::string_view kWaitsForRoom = "looks\n";
constexpr std::string_view kFoundRoom = "found\n";

/// Pure.
class QueueNews {
 public:
  /// Takes every turn. Returns the word to write, where there is something new.
  std::optional<std::string_view> see(const model::Turn& turn);

 private:
  [[nodiscard]] std::string_view word() const;

  std::set<std::uint32_t> without_room_;  ///< Shapes of which tasks wait for room.
  std::set<std::uint32_t> later_;         ///< Shapes of which tasks are held or wait for a time.
  bool started_ = false;                  ///< Some task.
  std::string_view told_;                 ///< The last word; empty: none.
};

/// Whether a run waits for room after these words.
bool still_waits_for_room(std::string_view words);

}  // namespace trainyard::cli
