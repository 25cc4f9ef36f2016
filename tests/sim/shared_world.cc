#include "sim/shared_world.h"

namespace trainyard::sim {

SharedWorld::SharedWorld(std::uint64_t seed) : random_(seed) {
  for (std::size_t i = 0; i < kYards; ++i) {
    at(random_.between(Duration{0}, Duration{5'000}), [this, i] { begin(i, make_tasks(i)); });
  }
  const auto troubles = random_.below(5);
  for (std::uint64_t i = 0; i < troubles; ++i) {
    at(random_.between(Duration{5'000}, Duration{400'000}), [this] { make_trouble(); });
  }
  // Dice of its own: what else happens stays what it was until then.
  Random spans(seed ^ 0x4EF05EULL);
  for (std::uint64_t i = 0, count = spans.below(3); i < count; ++i) {
    const Duration lasts = spans.between(Duration{500}, Duration{60'000});
    at(spans.between(Duration{0}, Duration{120'000}),
       [this, lasts] { refuses_until_ = std::max(refuses_until_, now_ + lasts); });
  }
  if (spans.one_in(3)) at(Duration{5'000}, [this] { stop_for_long_when_it_waits(); });
}

ManyYardsOutcome SharedWorld::play() {
  while (!outcome_.broken && step(kYards)) {
    if (now_ > kFarTooLate) complain("not all of it ends");
  }
  return std::move(outcome_);
}

std::vector<Asked> SharedWorld::make_tasks(std::size_t yard) {
  const auto cards = static_cast<std::int64_t>(cards_of(yard).size());
  const auto kinds = random_.between(1, 4);
  std::vector<Asked> tasks;
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    model::Request request{.memory = random_.between(gb(1), gb(24)),
                           .cpus = {random_.between(0, 8) * 500}};
    switch (random_.below(5)) {
      case 0:
      case 1:
        request.gpus = 1;
        request.gpu_memory = random_.between(gb(2), gb(8));
        if (random_.one_in(3)) request.sharing.max_per_gpu = 2;
        break;
      case 2:
        request.gpus = 1;
        break;
      case 3:
        request.gpus = static_cast<int>(random_.between(1, cards));
        break;
      default:
        break;
    }
    const auto count = random_.between(1, 8);
    for (std::int64_t i = 0; i < count; ++i) {
      const Duration takes = random_.between(Duration{500}, kTaskLongest);
      tasks.push_back(
          {.request = request, .takes = takes, .late = random_.between(Duration{0}, takes)});
    }
  }
  return tasks;
}

void SharedWorld::begin(std::size_t index, std::vector<Asked> tasks) {
  if (tasks.empty() || yards_.at(index) != nullptr) return;
  const std::uint64_t life = ++lives_;
  // Its board is asked while it is being made.
  yards_.at(index) = std::make_unique<PlayedYard>(*this, index, life, std::move(tasks));
  plan_readings(index, life);
}

void SharedWorld::plan_readings(std::size_t index, std::uint64_t life) {
  const auto again = [this, index, life](Duration between, auto&& self, auto look) -> void {
    at(between, [this, index, life, between, self, look] {
      PlayedYard* const yard = yard_of(index, life);
      if (yard == nullptr) return;
      if (!yard->stopped && !yard->busy) look(*yard);
      self(between, self, look);
    });
  };
  again(kBetweenReadings, again, [](PlayedYard& yard) { yard.read_machine(); });
  again(kBetweenLooks, again, [](PlayedYard& yard) { yard.look_at_others(); });
}

run::SharedLedger::Board SharedWorld::board_of(PlayedYard& yard) {
  return {.write =
              [this, &yard](const model::Promises& promises) {
                // Before it is there to be read, and after that.
                let_others_in(yard);
                if (yard.dead) return;
                files_[yard.ticket] = {
                    .yard = yard.index_, .life = yard.life, .promises = promises};
                let_others_in(yard);
              },
          .read =
              [this, &yard] {
                let_others_in(yard);
                std::vector<model::Neighbour> others;
                for (const auto& [ticket, file] : files_) {
                  if (ticket == yard.ticket) continue;
                  // The first two are of one user.
                  const bool same = (file.yard < 2) == (yard.index_ < 2);
                  others.push_back(
                      {.user = file.yard < 2 ? 1U : 2U, .is_ours = same, .its = file.promises});
                }
                return others;
              },
          .pause = [this, &yard] { let_others_in(yard); },
          .unix_s = [this] { return kBegan + (now_.since_start.count() / 1'000); },
          .note = [this](const std::string& text) { complain(text); }};
}

/// In the middle of a claim.
void SharedWorld::let_others_in(PlayedYard& yard) {
  constexpr int kDeepest = 3;
  if (!yard.busy || yard.dead || depth_ >= kDeepest || outcome_.broken) return;
  ++depth_;
  if (random_.one_in(2)) {
    for (std::size_t i = 0; i < kYards; ++i) {
      PlayedYard* const other = yards_.at(i).get();
      const bool goes = other != nullptr && !other->busy && !other->stopped && !other->dead;
      if (!goes || random_.one_in(2)) continue;
      // It may be told of what is on the board just now.
      if (random_.one_in(2)) other->read_machine();
      if (!other->is_ready(now_)) continue;
      ++outcome_.in_between;
      take_turn(i);
    }
  }
  if (random_.one_in(400)) {
    ++outcome_.stops_in_a_claim;
    const Instant until = now_ + random_.between(Duration{100}, Duration{60'000});
    yard.stopped = true;
    while (!outcome_.broken && now_ < until && step(yard.index_)) {
    }
    yard.stopped = false;
  }
  --depth_;
}

void SharedWorld::take_turn(std::size_t index) {
  PlayedYard& yard = *yards_.at(index);
  yard.busy = true;
  const bool over = yard.turn();
  yard.busy = false;
  if (!over && !yard.dead) return;
  if (over && !yard.dead) files_.erase(yard.ticket);
  yard.dead = true;
  graves_.push_back(std::move(yards_.at(index)));
}

/// One step after the other: a yard that is ready, or else the next step in time.
bool SharedWorld::step(std::size_t without) {
  std::vector<std::size_t> ready;
  std::optional<Instant> next;
  for (std::size_t i = 0; i < kYards; ++i) {
    PlayedYard* const yard = yards_.at(i).get();
    if (yard == nullptr || yard->busy || yard->stopped || yard->dead || i == without) continue;
    if (yard->is_ready(now_)) ready.push_back(i);
    if (const auto until = yard->wakeup()) next = std::min(next.value_or(*until), *until);
  }
  if (!ready.empty()) {
    take_turn(ready[random_.below(ready.size())]);
    return true;
  }
  if (agenda_.empty() && !next) return false;
  if (next && (agenda_.empty() || *next < agenda_.begin()->first.first)) {
    now_ = std::max(now_, *next);
    return true;
  }
  auto first = agenda_.extract(agenda_.begin());
  now_ = std::max(now_, first.key().first);
  first.mapped()();
  check_waits();
  return true;
}

void SharedWorld::start(PlayedYard& yard, const model::AttemptKey& key,
                        const model::Request& promise, const std::vector<model::GpuIndex>& gpus) {
  if (now_ < refuses_until_) {
    ++outcome_.starts_refused;
    return yard.tell(model::AttemptEnded{
        .key = key,
        .end = model::NotStarted{.why = "no space left on device", .of_machine = true}});
  }
  const Asked& asked = yard.tasks_[key.task.value];
  RunningProcess process{.yard = yard.index_,
                         .life = yard.life,
                         .key = key,
                         .promise = promise,
                         .takes_at = now_ + asked.late,
                         .ends_at = now_ + asked.takes};
  for (const model::GpuIndex gpu : gpus) process.cards.push_back(yard.cards.at(gpu.value));
  processes_.push_back(std::move(process));
  check_promises();
  yard.tell(model::AttemptStarted{.key = key, .pid = 1, .began = now_});
  at(asked.takes, [this, life = yard.life, key] {
    const auto found = std::ranges::find_if(
        processes_, [&](const RunningProcess& it) { return it.life == life && it.key == key; });
    if (found != processes_.end()) end(static_cast<std::size_t>(found - processes_.begin()));
  });
}

void SharedWorld::stop(PlayedYard& yard, const model::AttemptKey& key) {
  complain(
      fmt::format("yard {} ends task {}, which keeps to its promise", yard.index_, key.task.value));
}

void SharedWorld::end(std::size_t place) {
  const RunningProcess process = processes_.at(place);
  processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(place));
  if (PlayedYard* const yard = yard_of(process.yard, process.life)) {
    yard->tell(model::AttemptEnded{.key = process.key, .end = model::ExitedWith{0}});
    return;
  }
  // Its keeper holds the lock until the last of them is gone.
  const bool last = std::ranges::none_of(
      processes_, [&](const RunningProcess& it) { return it.life == process.life; });
  if (last) std::erase_if(files_, [&](const auto& it) { return it.second.life == process.life; });
}

void SharedWorld::make_trouble() {
  const std::size_t index = random_.below(kYards);
  if (yards_.at(index) == nullptr || yards_.at(index)->dead) return;
  if (random_.one_in(2)) return kill(index);
  if (!yards_.at(index)->busy)
    stop_for_a_while(index, random_.between(Duration{500}, kTaskLongest));
}

/// Its tasks end within their grace; then its lock is gone. It may be started anew.
void SharedWorld::kill(std::size_t index) {
  ++outcome_.kills;
  PlayedYard& yard = *yards_.at(index);
  yard.dead = true;
  const std::uint64_t life = yard.life;
  std::vector<Asked> left = yard.left();
  bool any = false;
  for (const RunningProcess& process : processes_) {
    if (process.life != life) continue;
    any = true;
    at(random_.between(Duration{0}, Duration{10'000}), [this, life, key = process.key] {
      const auto found = std::ranges::find_if(
          processes_, [&](const RunningProcess& it) { return it.life == life && it.key == key; });
      if (found != processes_.end()) end(static_cast<std::size_t>(found - processes_.begin()));
    });
  }
  if (!any) files_.erase(yard.ticket);
  // A yard in the middle of a turn is removed when that returns; nothing of it has an effect.
  if (!yard.busy) graves_.push_back(std::move(yards_.at(index)));
  if (random_.one_in(4)) return;
  at(random_.between(Duration{11'000}, Duration{60'000}),
     [this, index, tasks = std::move(left)] { begin(index, tasks); });
}

/// The last yard is the only one of its user: nothing that this user starts gives it another turn.
void SharedWorld::stop_for_long_when_it_waits() {
  PlayedYard* const yard = yards_.back().get();
  if (yard == nullptr || yard->dead) return;
  const bool runs_something = std::ranges::any_of(
      processes_, [&](const RunningProcess& it) { return it.life == yard->life; });
  const bool only_waits = yard->wants() && !runs_something && yard->inbox_.empty();
  if (!only_waits || yard->busy || yard->stopped) {
    return at(kBetweenLooks, [this] { stop_for_long_when_it_waits(); });
  }
  ++outcome_.long_stops;
  yard->stopped = true;
  at(kLongStop, [this, life = yard->life] {
    PlayedYard* const it = yard_of(kYards - 1, life);
    if (it == nullptr) return;
    it->stopped = false;
    it->wants_since_ = now_;
  });
}

void SharedWorld::stop_for_a_while(std::size_t index, Duration lasts) {
  ++outcome_.stops;
  PlayedYard& yard = *yards_.at(index);
  yard.stopped = true;
  at(lasts, [this, index, life = yard.life] {
    if (PlayedYard* const it = yard_of(index, life)) it->stopped = false;
  });
}

}  // namespace trainyard::sim
