// The words with which a run of the queue reports whether it waits for room, and for how much.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/turn.h"
#include "queue/rules/queue_choice.h"

namespace trainyard::queue {

/// Pure.
class QueueNews {
 public:
  /// Takes every turn, as batches of the run are events of turns. Returns the word to write;
  /// nothing if nothing has changed.
  std::optional<std::string> see(const model::Turn& turn);

 private:
  [[nodiscard]] std::string word() const;

  std::vector<RoomNeed> requests_;  ///< The requests of the tasks of each shape, without
                                    ///< a cause.
  /// Shapes of which tasks wait for room.
  std::map<std::uint32_t, RoomNeed> without_room_;
  std::set<std::uint32_t> later_;  ///< Shapes of which tasks are held or wait for a time.
  bool started_ = false;           ///< Some task has started.
  std::string last_word_;          ///< Empty: none was written.
};

/// The room that a run waits for after these words; nothing if it has found room. Its cause is None
/// if the last word is not known.
std::optional<RoomNeed> need_in(std::string_view words);

}  // namespace trainyard::queue
