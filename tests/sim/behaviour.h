// What one made-up attempt does once it is started: how long it runs, how it ends, what memory it
// takes meanwhile. Made from the seed, the task and the attempt alone, so that it does not hang on
// when it is started. How it ends is the attempt's, as what fails once may succeed when it is tried
// again; all else is the task's, above all what it needs.
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

/// How likely things go wrong with a task, out of a thousand.
struct Odds {
  std::uint64_t failure = 0;  ///< Exit code, signal, vanishing, no start: each.
  std::uint64_t hunger = 0;   ///< Needing more memory than asked for.
  std::uint64_t manners = 0;  ///< Ignoring TERM, old, late and duplicate news: each.
};

/// What goes wrong with a two-phase attempt, if anything does.
enum class Mishap : std::uint8_t {
  None,
  FailsToLoad,
  FailsToTrain,
  Nonsense,     ///< Says what nobody understands, or speaks out of turn.
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
  /// What a two-phase task needs to get through its hungry stage; it says that it ran out of memory
  /// when it has less.
  Bytes need;
  std::optional<Duration> term_takes;  ///< From TERM to its end; nothing: it ignores TERM.
  std::optional<Duration> told_again;  ///< How long after its end old news of it comes.
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
  /// What it takes on each of its GPUs in training, after a share of it; in thousandths.
  Bytes gpu_need;
  std::int64_t gpu_after_share = 0;
  bool obeys_cap = false;   ///< It takes no more of a GPU than it is told to.
  bool makes_do = false;    ///< And can do with that, where it would have taken more.
  Duration gpu_lingers{0};  ///< How long after its end the driver shows that still.

  /// What it has when it has run for so long.
  [[nodiscard]] Bytes memory_after(Duration elapsed) const;
};

/// `of_attempt` is the source of this attempt's luck, `promise` what it is promised now.
Behaviour make_behaviour(Random random, Random of_attempt, const Odds& odds,
                         const model::Shape& shape, Bytes promise, Duration longest);

}  // namespace trainyard::sim
