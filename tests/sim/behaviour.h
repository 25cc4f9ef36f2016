// The behaviour of a made-up attempt once it is started: its duration, its end, its memory
// meanwhile. Made from the seed, the task and the attempt alone, so that it does not depend on the
// time of its start. The end is the attempt's, as a failed attempt may succeed when it is retried;
// all else is the task's, above all its need of memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "sim/random.h"

namespace trainyard::sim {

/// Its number, as <csignal> is of the machine's half.
inline constexpr int kSigkill = 9;

/// The probability of each trouble of a task, in thousandths.
struct Odds {
  std::uint64_t failure = 0;  ///< Exit code, signal, vanishing, no start: each.
  std::uint64_t hunger = 0;   ///< Needing more memory than asked for.
  std::uint64_t manners = 0;  ///< Ignoring TERM, old, late and duplicate news: each.
};

/// The trouble of a two-phase attempt, if there is any.
enum class Mishap : std::uint8_t {
  None,
  FailsToLoad,
  FailsToTrain,
  Nonsense,     ///< Sends invalid words, or speaks out of turn.
  NeverTrains,  ///< Ends well after loading, without having asked for a device.
  DiesWaiting,  ///< While it waits for its device.
  Lingers,      ///< Does not end after it has trained.
};

enum class Curve : std::uint8_t { Flat, Ramp, Late, Spike };

struct Behaviour {
  Duration start_takes{0};
  Duration runs{0};  ///< A two-phase task: trains.
  Duration loads{0};
  Duration news_takes{0};  ///< From its end to the news of it.
  Bytes memory_most;
  /// The memory that a two-phase task needs to get through its hungry stage; it reports that it ran
  /// out of memory when it has less.
  Bytes need;
  std::optional<Duration> term_takes;  ///< From TERM to its end; nothing: it ignores TERM.
  std::optional<Duration> told_again;  ///< From its end to old news of it.
  model::End end;
  bool exists = true;  ///< False: it cannot be started.
  bool says_started = true;
  bool started_twice = false;
  bool ended_twice = false;
  Curve curve = Curve::Flat;
  Mishap mishap = Mishap::None;
  /// A two-phase task that says that it trains, and whose end tells the rest, as scripts of the
  /// shell do.
  bool end_tells = false;
  bool tells_memory = false;  ///< Its standard error says that memory ran out.
  std::optional<Stage> hungry_stage;
  /// Its memory on each of its GPUs in training, after a share of it; in thousandths.
  Bytes gpu_need;
  std::int64_t gpu_after_share = 0;
  bool obeys_cap = false;   ///< It stays within its cap on a GPU.
  bool makes_do = false;    ///< And can do with that, where it would have taken more.
  Duration gpu_lingers{0};  ///< From its end until the driver no longer shows it.

  /// Its memory when it has run for this time.
  [[nodiscard]] Bytes memory_after(Duration elapsed) const;
};

/// `of_attempt` is the source of this attempt's luck, `promise` what it is promised now.
Behaviour make_behaviour(Random random, Random of_attempt, const Odds& odds,
                         const model::Shape& shape, Bytes promise, Duration longest);

}  // namespace trainyard::sim
