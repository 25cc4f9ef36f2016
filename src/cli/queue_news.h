// The words by which a run that the queue began reports whether it waits for room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/turn.h"
#include "model/waiting.h"

namespace trainyard::cli {

/// Pure.
class QueueNews {
 public:
  /// Takes every turn. Returns the word to write, where there is something new.
  std::optional<std::string> see(const model::Turn& turn);

 private:
  [[nodiscard]] std::string word() const;

  /// Shapes of which tasks wait for room, and why.
  std::map<std::uint32_t, model::Cause> without_room_;
  std::set<std::uint32_t> later_;  ///< Shapes of which tasks are held or wait for a time.
  bool started_ = false;           ///< Some task.
  std::string told_;               ///< The last word; empty: none.
};

/// Why a run waits for room after these words; nothing where it has found room. None where the last
/// word is not known.
std::optional<model::Cause> cause_in(std::string_view words);

}  // namespace trainyard::cli
