// The words by which a run that the queue began reports whether it looks for room, and which.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "model/turn.h"
#include "schedule/queue_choice.h"

namespace trainyard::cli {

/// The words that the run writes and the queue reads.
constexpr std::string_view kLooksForGpu = "looks for a GPU\n";
constexpr std::string_view kLooksForRoom = "looks\n";
constexpr std::string_view kFoundRoom = "found\n";

/// Pure.
class QueueNews {
 public:
  /// Takes every turn. Returns the word to write, where there is something new.
  std::optional<std::string_view> see(const model::Turn& turn);

 private:
  [[nodiscard]] std::string_view word() const;

  std::map<std::uint32_t, schedule::Shortage> looking_;  ///< Shapes of which tasks wait for room.
  std::set<std::uint32_t> later_;  ///< Shapes of which tasks are held or wait for a time.
  bool started_ = false;           ///< Some task.
  std::string_view told_;          ///< The last word; empty: none.
};

/// The room that a run lacks after these words; nothing where it found room.
std::optional<schedule::Shortage> lack_in(std::string_view words);

}  // namespace trainyard::cli
