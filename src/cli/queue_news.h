// What a run that the queue began tells it: whether it looks for room.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "model/turn.h"

namespace trainyard::cli {

/// What it says, and what the queue reads.
constexpr std::string_view kLooksForRoom = "looks\n";
constexpr std::string_view kFoundRoom = "found\n";

class QueueNews {
 public:
  /// Every turn.
  void see(const model::Turn& turn);

 private:
  std::set<std::uint32_t> looking_;  ///< Shapes of which tasks wait for room.
  bool started_ = false;             ///< Some task.
  bool told_ = false;
  bool looks_ = true;  ///< What was told last.
};

}  // namespace trainyard::cli
