#include "sim/behaviour.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace trainyard::sim {
namespace {

Bytes share(Bytes whole, std::int64_t per_mille) { return {whole.count / 1000 * per_mille}; }

/// The end and the usage of an attempt that runs undisturbed.
void make_end(Behaviour& made, Random& random, const Odds& odds) {
  constexpr std::array<int, 5> kSignals{6, 8, 9, 11, 15};
  if (random.per_mille(odds.failure)) {
    made.end = model::ExitedWith{static_cast<int>(random.between(1, 255))};
  } else if (random.per_mille(odds.failure)) {
    made.end = model::KilledBy{.signal = kSignals.at(static_cast<std::size_t>(random.below(5)))};
  } else if (random.per_mille(odds.failure)) {
    made.end = model::Vanished{"nobody watched"};
  } else if (random.per_mille(odds.failure)) {
    made.exists = false;
    made.end = model::NotStarted{.why = "no such file"};
  } else {
    made.end = model::ExitedWith{0};
  }
}

/// A hungry task needs more than it requested. Half of them have a limit, so that they are killed
/// at their promise; the other half just takes it.
void make_memory(Behaviour& made, Random& random, const Odds& odds, const model::Request& asked,
                 Bytes promise) {
  made.curve = static_cast<Curve>(random.below(4));
  made.memory_most = share(asked.memory, random.between(300, 1000));
  // A task needs the same in all its attempts: the caller's source is that of the task.
  const bool hungry = random.per_mille(odds.hunger);
  const Bytes need = share(asked.memory, random.between(1050, 2600));
  const bool limited = random.one_in(2);
  if (!hungry) return;
  made.memory_most = need;
  if (!limited || need <= promise || !made.exists) return;
  made.memory_most = promise;
  // Some see it coming, say so where people read it, and leave.
  made.tells_memory = random.one_in(2);
  if (made.tells_memory) {
    made.end = model::ExitedWith{1};
  } else {
    made.end = model::KilledBy{.signal = kSigkill, .out_of_memory = true};
  }
}

Mishap make_mishap(Random& random, const Odds& odds) {
  constexpr std::array<Mishap, 6> kMishaps{Mishap::FailsToLoad, Mishap::FailsToTrain,
                                           Mishap::Nonsense,    Mishap::NeverTrains,
                                           Mishap::DiesWaiting, Mishap::Lingers};
  if (!random.per_mille(12 * odds.failure)) return Mishap::None;
  return kMishaps.at(static_cast<std::size_t>(random.below(kMishaps.size())));
}

/// As make_memory(), for a two-phase task. A hungry task that knows its limit reports that itself
/// instead of being killed.
void make_stages(Behaviour& made, Random& random, const Odds& odds, const model::Request& asked,
                 Duration longest) {
  made.loads = random.between(Duration{0}, longest / 8);
  made.end_tells = random.one_in(4);
  const bool hungry = random.per_mille(odds.hunger);
  made.need = share(asked.memory, random.between(1050, 2600));
  const Stage stage = random.one_in(2) ? Stage::Load : Stage::Train;
  if (hungry) made.hungry_stage = stage;
}

void make_gpu_use(Behaviour& made, Random& random, const Odds& odds, const model::Request& asked) {
  // A task with a GPU of its own takes a part of it.
  const Bytes usual = asked.gpu_memory > Bytes{} ? asked.gpu_memory : gib(1);
  made.gpu_need = share(usual, random.between(300, 1000));
  made.gpu_after_share = random.one_in(6) ? 0 : random.between(100, 900);
  if (random.per_mille(34 * odds.hunger)) {
    made.gpu_need = share(usual, random.between(1100, 7000));
    // Early as a rule, where the others of its GPU may not have theirs yet.
    if (!random.one_in(8)) made.gpu_after_share = random.between(0, 100);
  }
  made.obeys_cap = random.one_in(6);
  made.makes_do = made.obeys_cap && random.one_in(2);
  if (random.one_in(6)) made.gpu_lingers = random.between(Duration{0}, Duration{1'500});
  if (random.per_mille(2 * odds.manners)) made.gpu_lingers = Duration{15'000};
}

}  // namespace

Bytes Behaviour::memory_after(Duration elapsed) const {
  const std::int64_t whole = std::max<std::int64_t>(1, runs.count());
  const std::int64_t done = std::clamp<std::int64_t>(elapsed.count() * 1000 / whole, 0, 1000);
  switch (curve) {
    case Curve::Flat:
      return memory_most;
    case Curve::Ramp:
      return share(memory_most, std::min<std::int64_t>(1000, 2 * done));
    case Curve::Late:
      return done < 700 ? share(memory_most, 50) : memory_most;
    case Curve::Spike:
      return done >= 400 && done < 600 ? memory_most : share(memory_most, 300);
  }
  return memory_most;
}

Behaviour make_behaviour(Random random, Random of_attempt, const Odds& odds,
                         const model::Shape& shape, Bytes promise, Duration longest) {
  Behaviour made;
  make_end(made, of_attempt, odds);
  make_memory(made, random, odds, shape.terms.request, promise);
  made.start_takes = random.one_in(3) ? Duration{0} : random.between(Duration{0}, Duration{30});
  const Duration usual{longest / 4};
  made.runs = random.one_in(20)  ? random.between(Duration{0}, Duration{2})
              : random.one_in(8) ? random.between(usual, longest)
                                 : random.between(Duration{50}, usual);
  made.says_started = !random.per_mille(odds.manners);
  if (!random.per_mille(2 * odds.manners)) {
    made.term_takes = random.between(Duration{0}, Duration{400});
  }
  if (random.per_mille(odds.manners)) {
    made.news_takes = random.between(Duration{1}, Duration{2500});
  }
  made.started_twice = random.per_mille(odds.manners);
  made.ended_twice = random.per_mille(odds.manners);
  if (random.per_mille(odds.manners)) {
    made.told_again = random.between(Duration{0}, Duration{9000});
  }
  if (shape.terms.two_phase) {
    make_stages(made, random, odds, shape.terms.request, longest);
    made.mishap = make_mishap(of_attempt, odds);
  }
  if (shape.terms.request.gpus > 0) make_gpu_use(made, random, odds, shape.terms.request);
  return made;
}

}  // namespace trainyard::sim
