// The part of the made-up machine that plays the processes of two-phase tasks: what they say, and
// when.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/status.h"
#include "sim/behaviour.h"
#include "sim/faults.h"
#include "sim/machine.h"

namespace trainyard::sim {
namespace {

constexpr int kSigsegv = 11;
/// From its last word to its end.
constexpr Duration kLeaving{20};

}  // namespace

MadeUpMachine::Process* MadeUpMachine::living(model::TaskIndex task, std::uint64_t number) {
  const auto found = processes_.find(task);
  const bool lives = found != processes_.end() && found->second.number == number;
  return lives ? &found->second : nullptr;
}

void MadeUpMachine::next(Instant when, const Process& process,
                         void (MadeUpMachine::*step)(model::TaskIndex task, std::uint64_t number)) {
  at(when, [this, task = process.key.task, number = process.number, step] {
    if (living(task, number) != nullptr) (this->*step)(task, number);
  });
}

void MadeUpMachine::say(const Process& process, model::Said said, std::string message) {
  tell(model::StageReported{.key = process.key, .said = said, .message = std::move(message)});
}

void MadeUpMachine::begin_loading(const Process& process) {
  // A process that is about to be killed for its memory is killed whatever it does.
  const auto* const kill = std::get_if<model::KilledBy>(&process.behaviour.end);
  if (kill != nullptr) end_at(now() + process.behaviour.runs, process, process.behaviour.end);
  say(process, model::Said::Loading);
  next(now() + process.behaviour.loads, process, &MadeUpMachine::end_loading);
}

void MadeUpMachine::end_loading(model::TaskIndex task, std::uint64_t number) {
  Process& process = *living(task, number);
  const Behaviour& behaviour = process.behaviour;
  if (behaviour.hungry_stage == Stage::Load && behaviour.need > process.promise) {
    world_.counts.count(Fault::LoadOutOfMemory);
    process.peak = std::max(process.peak, process.promise);
    say(process, model::Said::OutOfMemory, "MemoryError");
    return end_at(now() + kLeaving, process, model::ExitedWith{1});
  }
  switch (behaviour.mishap) {
    case Mishap::FailsToLoad:
      world_.counts.count(Fault::StageFails);
      say(process, model::Said::Failed, "ValueError: no such file");
      return end_at(now() + kLeaving, process, model::ExitedWith{1});
    case Mishap::Nonsense:
      world_.counts.count(Fault::Nonsense);
      // Both kinds: what is no word, and what is one at the wrong moment.
      return say(process, random_.one_in(2) ? model::Said::Nonsense : model::Said::Trained,
                 "gibberish");
    case Mishap::NeverTrains:
      world_.counts.count(Fault::NeverTrains);
      return end_at(now() + kLeaving, process, model::ExitedWith{0});
    case Mishap::DiesWaiting:
      end_at(now() + Duration{5}, process, model::KilledBy{.signal = kSigsegv});
      break;
    default:
      break;
  }
  process.waits = true;
  tell(model::StageReported{.key = process.key,
                            .said = model::Said::Loaded,
                            .capped_by = process.behaviour.obeys_cap ? "torch" : ""});
}

void MadeUpMachine::grant(const model::GrantDevice& command) {
  const auto found = processes_.find(command.key.task);
  if (found == processes_.end() || found->second.key != command.key) return;
  Process& process = found->second;
  if (!std::exchange(process.waits, false)) {
    world_.watcher.complain("a task is told to train that does not wait for it");
    return;
  }
  process.promise = command.promise.memory;
  give_gpus(process, command.site.gpus);
  process.gpu_memory_max = command.gpu_memory_max;
  if (process.behaviour.end_tells) say(process, model::Said::Training);
  next(now() + process.behaviour.runs, process, &MadeUpMachine::end_training);
}

/// One of several ranks said that it ran out of memory: all of them end, some of them when they get
/// TERM.
void MadeUpMachine::start_over(const Process& process) {
  world_.counts.count(Fault::RanksStartOver);
  if (!random_.one_in(4)) end_at(now() + kLeaving, process, model::ExitedWith{1});
}

void MadeUpMachine::end_training(model::TaskIndex task, std::uint64_t number) {
  Process& process = *living(task, number);
  const Behaviour& behaviour = process.behaviour;
  if (behaviour.hungry_stage == Stage::Train && behaviour.need > process.promise) {
    world_.counts.count(Fault::TrainOutOfMemory);
    say(process, model::Said::OutOfMemory, "CUDA out of memory");
    if (shape_of(task).terms.ranks > 0) return start_over(process);
    process.waits = true;
    // It did not have to wait for its device: it may as well leave, and has not trained then.
    if (behaviour.end_tells && random_.one_in(2)) {
      end_at(now() + (random_.one_in(2) ? kLeaving : Duration{0}), process, model::ExitedWith{0});
    }
    return;
  }
  if (behaviour.mishap == Mishap::FailsToTrain) {
    world_.counts.count(Fault::StageFails);
    say(process, model::Said::Failed, "RuntimeError: loss is nan");
    return end_at(now() + kLeaving, process, model::ExitedWith{1});
  }
  if (behaviour.end_tells) {
    world_.counts.count(Fault::EndTells);
    return end_at(now() + kLeaving, process, behaviour.end);
  }
  say(process, model::Said::Trained);
  if (behaviour.mishap == Mishap::Lingers) {
    world_.counts.count(Fault::Lingers);
    return;
  }
  end_at(now() + kLeaving, process, behaviour.end);
}

}  // namespace trainyard::sim
