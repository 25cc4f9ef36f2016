#include "run/drive.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/turn.h"
#include "run/machine.h"
#include "schedule/scheduler.h"

namespace trainyard {
namespace {

/// How often an uncommitted turn is offered again when nothing else happens.
constexpr Duration kOfferAgain{1000};

/// What was decided and not carried out yet, because it is not written down yet.
class Pending {
 public:
  void add(const Decision& decision) {
    std::ranges::copy(decision.commands, std::back_inserter(commands_));
  }

  void carry_out_all(Machine& machine) {
    for (const Command& command : commands_) machine.carry_out(command);
    commands_.clear();
  }

  /// What runs can be told to end before that is written down: it leaves nothing behind that the
  /// journal does not know. What has not been started stays here, with all that concerns it.
  void carry_out_stops(Machine& machine) {
    std::vector<AttemptKey> not_started;
    const auto has_started = [&not_started](AttemptKey key) {
      return std::ranges::find(not_started, key) == not_started.end();
    };
    std::vector<Command> kept;
    for (const Command& command : commands_) {
      const bool acts = match(
          command,
          [&](const StartAttempt& it) {
            not_started.push_back(it.key);
            return false;
          },
          [&](const SignalAttempt& it) { return has_started(it.key); },
          [&](const StopAttempt& it) { return has_started(it.key); },
          // What it trains it would have to train again.
          [](const GrantDevice&) { return false; },
          // Who asked is told what is certain: that it is written down.
          [](const AnswerKill&) { return false; });
      if (acts) {
        machine.carry_out(command);
      } else {
        kept.push_back(command);
      }
    }
    commands_ = std::move(kept);
  }

 private:
  std::vector<Command> commands_;
};

bool asks_for_the_end(const std::vector<Event>& events) {
  return std::ranges::any_of(
      events, [](const Event& it) { return std::holds_alternative<InterruptAsked>(it.what); });
}

std::optional<Instant> sooner(std::optional<Instant> a, Instant b) {
  return a ? std::min(*a, b) : b;
}

}  // namespace

Result<void> drive(Scheduler& scheduler, Machine& machine, Recorder& recorder,
                   std::vector<Observer>& observers, WhileUnwritten unwritten) {
  const FirstLook first = machine.look();

  Turn turn;
  if (first.gpus) {
    turn.events.push_back({.at = first.at, .what = *first.gpus});
    turn.decisions.emplace_back();
  }
  turn.events.push_back({.at = first.at, .what = first.machine});
  turn.decisions.push_back(
      scheduler.begin(first.at, first.machine, first.gpus.value_or(GpusSampled{})));
  Pending pending;
  pending.add(turn.decisions.back());
  std::optional<Instant> unwritten_since;
  while (true) {
    const Instant now = turn.events.back().at;
    Result<void> written = recorder.commit(turn);
    std::optional<Instant> until = scheduler.wakeup();
    if (written) {
      if (unwritten_since && unwritten.tell) unwritten.tell(std::nullopt);
      unwritten_since.reset();
      pending.carry_out_all(machine);
      for (Observer& observer : observers) observer(turn);
      turn = {};
      if (scheduler.ended()) return {};
    } else {
      if (!unwritten_since && unwritten.tell) unwritten.tell(written.error());
      if (!unwritten_since) unwritten_since = now;
      const bool too_long = now - *unwritten_since >= unwritten.patience;
      const bool asked = asks_for_the_end(turn.events);
      if (too_long || asked) {
        // What runs would go on without anybody who writes down what becomes of it.
        if (!asked) pending.add(scheduler.on({.at = now, .what = InterruptAsked{}}));
        pending.carry_out_stops(machine);
        return std::unexpected(std::move(written.error()).in("the journal cannot be written"));
      }
      pending.carry_out_stops(machine);
      until = sooner(until, now + kOfferAgain);
    }
    for (Event& event : machine.wait(until)) {
      turn.decisions.push_back(scheduler.on(event));
      pending.add(turn.decisions.back());
      turn.events.push_back(std::move(event));
    }
  }
}

}  // namespace trainyard
