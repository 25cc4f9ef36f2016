// The machine of sim/many_yards.h and the yards that are played on it. Private to that.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "run/drive.h"
#include "run/machine.h"
#include "run/shared_ledger.h"
#include "schedule/scheduler.h"
#include "sim/many_yards.h"
#include "sim/random.h"

namespace trainyard::sim {

inline constexpr std::size_t kYards = 3;
constexpr Bytes kHostMemory = gb(64);
constexpr model::Cpus kHostCpus = model::cpus(8);
constexpr std::array<const char*, 3> kUuids{"GPU-0", "GPU-1", "GPU-2"};
constexpr Bytes kCardMemory = gb(10);
constexpr Duration kTaskLongest{60'000};
constexpr Duration kBetweenReadings{2'000};
constexpr Duration kBetweenLooks{500};
constexpr std::int64_t kBegan = 1'764'122'400;
/// All tasks one by one, and each wait for its turn.
constexpr Instant kFarTooLate{Duration{40'000'000}};
/// A waiting user is let through once others have had their turns of 15 minutes, one on GPUs and
/// one on the host, and their running tasks have ended; a stopped yard may hold its resources for
/// two minutes.
constexpr Duration kWaitMax{2'100'000};
/// After this time no yard gives way to a user whose only run waits and is stopped.
constexpr Duration kLongStop{2'400'000};

class NoJournal final : public journal::Recorder {
 public:
  Result<void> commit(const model::Turn& /*turn*/) override { return {}; }
};

/// A task as requested, and its behaviour.
struct Asked {
  model::Request request;
  Duration takes{0};
  Duration late{0};  ///< The time when it takes its memory.
};

struct RunningProcess {
  std::size_t yard = 0;
  std::uint64_t life = 0;  ///< The life of its yard.
  model::AttemptKey key;
  model::Request promise;
  std::vector<std::size_t> cards;  ///< Cards of the machine.
  Instant takes_at;
  Instant ends_at;
};

class SharedWorld;

/// One yard, from its start to its end or its death.
class PlayedYard final : public run::Machine {
 public:
  PlayedYard(SharedWorld& world, std::size_t index, std::uint64_t life, std::vector<Asked> tasks);

  void carry_out(const model::Command& command) override;
  std::optional<model::ClaimRefused> claim(const run::Claim& claim) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override;

  void read_machine();
  void look_at_others();
  /// True when it is over.
  bool turn();
  void see(const model::Turn& turn);

  [[nodiscard]] bool is_ready(Instant now) const {
    const std::optional<Instant> until = scheduler_.wakeup();
    return !inbox_.empty() || (until && *until <= now);
  }
  [[nodiscard]] std::optional<Instant> wakeup() const { return scheduler_.wakeup(); }
  [[nodiscard]] std::vector<Asked> left() const;
  [[nodiscard]] bool wants() const { return wants_since_.has_value(); }

  std::string ticket;
  std::uint64_t life;
  std::vector<std::size_t> cards;  ///< Cards of the machine, by its own GPU index.
  bool busy = false;               ///< In the middle of a turn.
  bool stopped = false;
  bool dead = false;

  void tell(model::What what);

 private:
  friend class SharedWorld;
  SharedWorld& world_;
  std::size_t index_;
  std::vector<Asked> tasks_;
  std::vector<bool> ended_;
  NoJournal recorder_;
  schedule::Scheduler scheduler_;
  std::vector<run::Observer> observers_;
  std::unique_ptr<run::SharedLedger> ledger_;
  std::unique_ptr<run::Loop> loop_;
  std::vector<model::Event> inbox_;
  std::map<model::ShapeIndex, model::Reason> reasons_;
  std::optional<Instant> wants_since_;
};

class SharedWorld {
 public:
  explicit SharedWorld(std::uint64_t seed);

  ManyYardsOutcome play();

  // Actions of yards.
  void start(PlayedYard& yard, const model::AttemptKey& key, const model::Request& promise,
             const std::vector<model::GpuIndex>& gpus);
  void stop(PlayedYard& yard, const model::AttemptKey& key);
  [[nodiscard]] model::Sampled read_host(const PlayedYard& yard) const;
  [[nodiscard]] model::GpusSampled read_cards(const PlayedYard& yard) const;
  run::SharedLedger::Board board_of(PlayedYard& yard);
  void complain(std::string what) {
    if (!outcome_.broken) outcome_.broken = std::move(what);
  }
  [[nodiscard]] Instant now() const { return now_; }
  ManyYardsOutcome& outcome() { return outcome_; }

 private:
  struct File {
    std::size_t yard = 0;
    std::uint64_t life = 0;
    model::Promises promises;
  };
  using Deed = std::move_only_function<void()>;

  void at(Duration later, Deed deed) {
    agenda_.emplace(std::pair{now_ + later, ++deeds_}, std::move(deed));
  }
  std::vector<Asked> make_tasks(std::size_t yard);
  void begin(std::size_t index, std::vector<Asked> tasks);
  void plan_readings(std::size_t index, std::uint64_t life);
  void make_trouble();
  void kill(std::size_t index);
  void stop_for_a_while(std::size_t index, Duration lasts);
  void stop_for_long_when_it_waits();
  bool step(std::size_t without);
  void take_turn(std::size_t index);
  void let_others_in(PlayedYard& yard);
  void end(std::size_t place);
  void check_promises();
  void check_waits();
  PlayedYard* yard_of(std::size_t index, std::uint64_t life) {
    PlayedYard* const yard = yards_.at(index).get();
    return yard != nullptr && yard->life == life && !yard->dead ? yard : nullptr;
  }

  Random random_;
  Instant now_;
  Instant refuses_until_;  ///< The machine is too short of something to start tasks.
  std::uint64_t deeds_ = 0;
  std::uint64_t lives_ = 0;
  int depth_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, Deed> agenda_;
  std::array<std::unique_ptr<PlayedYard>, kYards> yards_;
  std::vector<std::unique_ptr<PlayedYard>> graves_;
  std::map<std::string, File> files_;  ///< By ticket.
  std::vector<RunningProcess> processes_;
  ManyYardsOutcome outcome_;
};

/// The capacity for a yard, by the cards of the machine that it sees.
model::Capacity capacity_of(const std::vector<std::size_t>& cards);
/// The last yard sees some of the cards alone, and not in their order, as in a container.
std::vector<std::size_t> cards_of(std::size_t yard);

}  // namespace trainyard::sim
