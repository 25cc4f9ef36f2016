#include "model/event.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/match.h"

namespace trainyard::model {

std::string to_text(int rank, const End& end) {
  return match(
      end,
      [&](const ExitedWith& it) {
        return fmt::format("rank {} exited with code {}", rank, it.code);
      },
      [&](const KilledBy& it) {
        return fmt::format("rank {} was killed by signal {}", rank, it.signal);
      },
      [&](const NotStarted& it) { return fmt::format("rank {}: {}", rank, it.why); },
      [&](const Vanished& it) { return fmt::format("rank {}: {}", rank, it.why); });
}

std::string_view to_text(Said said) {
  constexpr std::array<std::string_view, 7> kNames{"loading",       "loaded", "training", "trained",
                                                   "out_of_memory", "failed", "nonsense"};
  return kNames.at(std::to_underlying(said));
}

Instant moment_of(const Event& event, AttemptKey key) {
  std::optional<Instant> seen;
  if (const auto* const started = std::get_if<AttemptStarted>(&event.what)) {
    if (started->key == key) seen = started->began;
  } else if (const auto* const ended = std::get_if<AttemptEnded>(&event.what)) {
    if (ended->key == key) seen = ended->ended;
  }
  return std::min(seen.value_or(event.at), event.at);
}

}  // namespace trainyard::model
