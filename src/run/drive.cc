#include "run/drive.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <utility>
#include <variant>

#include "base/match.h"
#include "model/event.h"
#include "model/status.h"

namespace trainyard::run {
namespace {

/// Time after which an uncommitted turn is offered again when nothing else happens.
constexpr Duration kOfferAgain{1000};

/// Commands that wait for the journal commit.
class Pending {
 public:
  void add(const model::Decision& decision) {
    std::ranges::copy(decision.commands, std::back_inserter(commands_));
  }

  void carry_out_all(Machine& machine) {
    for (const model::Command& command : commands_) machine.carry_out(command);
    commands_.clear();
  }

  /// Carries out the commands that stop running attempts. They need no commit: a stop leaves
  /// nothing behind that the journal does not know. Commands for attempts that have not started
  /// stay.
  void carry_out_stops(Machine& machine) {
    std::vector<model::AttemptKey> not_started;
    const auto has_started = [&not_started](model::AttemptKey key) {
      return std::ranges::find(not_started, key) == not_started.end();
    };
    std::vector<model::Command> kept;
    for (const model::Command& command : commands_) {
      const bool acts = match(
          command,
          [&](const model::StartAttempt& it) {
            not_started.push_back(it.key);
            return false;
          },
          [&](const model::SignalAttempt& it) { return has_started(it.key); },
          [&](const model::StopAttempt& it) { return has_started(it.key); },
          // The task would have to train the same again.
          [](const model::GrantDevice&) { return false; },
          // An answer reports only what is certain: that the decision is written.
          [](const model::Answer&) { return false; });
      if (acts) {
        machine.carry_out(command);
      } else {
        kept.push_back(command);
      }
    }
    commands_ = std::move(kept);
  }

  /// The attempts whose start, or whose device, still waits for the commit.
  [[nodiscard]] std::vector<model::AttemptKey> not_started() const {
    std::vector<model::AttemptKey> keys;
    for (const model::Command& command : commands_) {
      if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
        keys.push_back(start->key);
      } else if (const auto* const grant = std::get_if<model::GrantDevice>(&command)) {
        keys.push_back(grant->key);
      }
    }
    return keys;
  }

  /// Drops the starts on a machine that is gone. Returns the attempts that therefore never start.
  std::vector<model::AttemptKey> forget_what_begins_on(model::MachineIndex machine) {
    std::vector<model::AttemptKey> not_started;
    std::erase_if(commands_, [&](const model::Command& command) {
      const auto is_of_those = [&not_started](const auto& it) {
        return std::ranges::find(not_started, it.key) != not_started.end();
      };
      return match(
          command,
          [&](const model::StartAttempt& it) {
            if (it.site.machine == machine) not_started.push_back(it.key);
            return it.site.machine == machine;
          },
          [&](const model::GrantDevice& it) { return it.site.machine == machine; },
          [&](const model::SignalAttempt& it) { return is_of_those(it); },
          [&](const model::StopAttempt& it) { return is_of_those(it); },
          [](const model::Answer&) { return false; });
    });
    return not_started;
  }

 private:
  std::vector<model::Command> commands_;
};

bool starts_something(const model::Decision& decision) {
  return std::ranges::any_of(decision.commands, [](const model::Command& command) {
    return std::holds_alternative<model::StartAttempt>(command) ||
           std::holds_alternative<model::GrantDevice>(command);
  });
}

std::optional<Instant> sooner(std::optional<Instant> a, Instant b) {
  return a ? std::min(*a, b) : b;
}

}  // namespace

/// The turn that is made, until it is written down: it grows while that cannot be done.
class OpenTurn {
 public:
  explicit OpenTurn(WhileUnwritten unwritten) : unwritten_(std::move(unwritten)) {}

  /// Decides, and asks the machine whether the started tasks still have their resources. A refused
  /// start is decided again before any other event is considered, so that the state is as before
  /// the start.
  void decide(schedule::Scheduler& scheduler, Machine& machine, model::Event event) {
    const Instant at = event.at;
    for (int round = 1;; ++round) {
      model::Decision decision = scheduler.on(event);
      turn_.events.push_back(std::move(event));
      std::optional<model::ClaimRefused> refused;
      if (starts_something(decision)) {
        refused = machine.claim({.decided = decision,
                                 .left = [&scheduler, at] { return scheduler.headroom({}, at); },
                                 .at = at,
                                 .round = round});
      }
      if (refused) forget_starts(decision, refused->attempts);
      pending_.add(decision);
      turn_.decisions.push_back(std::move(decision));
      if (!refused) return;
      event = {.at = at, .what = *std::move(refused)};
    }
  }

  /// Call before the event of a lost machine is decided. Starts there that are not committed yet
  /// never reached the machine, so it has reported no end of them.
  void lose(schedule::Scheduler& scheduler, Machine& machine, Instant at,
            const model::MachineGone& gone) {
    for (const model::AttemptKey key : pending_.forget_what_begins_on(gone.machine)) {
      decide(scheduler, machine,
             {.at = at,
              .what = model::AttemptEnded{
                  .key = key, .end = model::Vanished{gone.why + ", before it was started"}}});
    }
  }

  Result<void> commit(journal::Recorder& recorder) {
    Result<void> written = recorder.commit(turn_);
    const bool was_written = !since_;
    if (written) {
      since_.reset();
    } else if (was_written) {
      since_ = now();
    }
    if (was_written == written.has_value() || !unwritten_.tell) return written;
    unwritten_.tell(written ? std::nullopt : std::optional(written.error()));
    return written;
  }

  /// Carries out the decision and shows it; then another turn begins.
  void act(Machine& machine, std::vector<Observer>& observers) {
    pending_.carry_out_all(machine);
    for (Observer& observer : observers) observer(turn_);
    turn_ = {};
  }

  /// Only what may be done before it is written down.
  void act_unwritten(Machine& machine) { pending_.carry_out_stops(machine); }

  [[nodiscard]] Instant offered_again_at() const { return now() + kOfferAgain; }

  /// True if the journal could not be written for too long, or the user asks for the end meanwhile.
  [[nodiscard]] bool is_given_up() const {
    return (since_ && now() - *since_ >= unwritten_.patience) || asks_for_the_end();
  }

  /// The tasks that have ended meanwhile would be lost otherwise. Starts that waited for the commit
  /// will never be carried out, so these tasks have not started.
  void commit_last(journal::Recorder& recorder) {
    if (!unwritten_.make_room) return;
    const std::vector<model::AttemptKey> not_started = pending_.not_started();
    for (model::Decision& decision : turn_.decisions) forget_starts(decision, not_started);
    unwritten_.make_room();
    static_cast<void>(recorder.commit(turn_));
  }

  /// Ends all running attempts: without a journal nothing would record their outcomes.
  void end_all(schedule::Scheduler& scheduler, Machine& machine) {
    if (!asks_for_the_end()) {
      pending_.add(scheduler.on({.at = now(), .what = model::InterruptAsked{}}));
    }
    pending_.carry_out_stops(machine);
  }

 private:
  [[nodiscard]] Instant now() const { return turn_.events.back().at; }
  [[nodiscard]] bool asks_for_the_end() const {
    return std::ranges::any_of(turn_.events, [](const model::Event& it) {
      return std::holds_alternative<model::InterruptAsked>(it.what);
    });
  }

  WhileUnwritten unwritten_;
  model::Turn turn_;
  Pending pending_;
  std::optional<Instant> since_;  ///< When it could first not be written.
};

Loop::Loop(schedule::Scheduler& scheduler, Machine& machine, journal::Recorder& recorder,
           std::vector<Observer>& observers, WhileUnwritten unwritten)
    : scheduler_(scheduler),
      machine_(machine),
      recorder_(recorder),
      observers_(observers),
      turn_(std::make_unique<OpenTurn>(std::move(unwritten))) {}
Loop::~Loop() = default;

std::optional<Result<void>> Loop::turn() {
  for (model::Event& event : machine_.wait(until_)) {
    const auto* const gone = std::get_if<model::MachineGone>(&event.what);
    if (gone != nullptr) turn_->lose(scheduler_, machine_, event.at, *gone);
    turn_->decide(scheduler_, machine_, std::move(event));
  }
  Result<void> written = turn_->commit(recorder_);
  until_ = scheduler_.wakeup();
  if (written) {
    machine_.is_written();
    turn_->act(machine_, observers_);
    if (scheduler_.idle() && !machine_.more_to_come()) return Result<void>();
  } else if (turn_->is_given_up()) {
    turn_->commit_last(recorder_);
    turn_->end_all(scheduler_, machine_);
    return std::unexpected(std::move(written.error()).in("the journal cannot be written"));
  } else {
    turn_->act_unwritten(machine_);
    until_ = sooner(until_, turn_->offered_again_at());
  }
  return std::nullopt;
}

Result<void> drive(schedule::Scheduler& scheduler, Machine& machine, journal::Recorder& recorder,
                   std::vector<Observer>& observers, WhileUnwritten unwritten) {
  Loop loop(scheduler, machine, recorder, observers, std::move(unwritten));
  while (true) {
    if (std::optional<Result<void>> end = loop.turn()) return *std::move(end);
  }
}

void forget_starts(model::Decision& decision, std::span<const model::AttemptKey> refused) {
  const auto is_refused = [refused](model::AttemptKey key) {
    return std::ranges::find(refused, key) != refused.end();
  };
  std::erase_if(decision.commands, [&](const model::Command& command) {
    const auto* const start = std::get_if<model::StartAttempt>(&command);
    const auto* const grant = std::get_if<model::GrantDevice>(&command);
    return (start != nullptr && is_refused(start->key)) ||
           (grant != nullptr && is_refused(grant->key));
  });
  std::erase_if(decision.changes, [&](const model::Change& change) {
    const auto* const task = std::get_if<model::TaskChanged>(&change);
    if (task == nullptr || !is_refused(task->key)) return false;
    return task->status == Status::Available || task->status == Status::Training;
  });
}

}  // namespace trainyard::run
