#include "sim/made_up_agent.h"

#include <algorithm>
#include <variant>

#include "base/bytes.h"
#include "base/match.h"
#include "sim/agenda.h"
#include "sim/faults.h"
#include "sim/watcher.h"

namespace trainyard::sim {
namespace {

/// As run/agent_server.cc: the next reading says it anew.
bool is_said_anew(const model::What& what) {
  return std::holds_alternative<model::Sampled>(what) ||
         std::holds_alternative<model::GpusSampled>(what) ||
         std::holds_alternative<model::Progressed>(what);
}

}  // namespace

MadeUpAgent::MadeUpAgent(Options options, World world)
    : options_(std::move(options)),
      world_(world),
      random_(options_.seed ^ (options_.number << 48U)) {
  machine_ = std::make_unique<MadeUpMachine>(
      options_.seed, options_.workload, world_,
      Part{.number = options_.number,
           .agent = [this](model::What what) { tell(std::move(what)); }});
}

void MadeUpAgent::hear(const YardWord& word) {
  if (!lives_ && !std::holds_alternative<Opens>(word.what)) return;
  if (word.number != 0) {
    if (word.number <= heard_) return;
    if (word.number != ++heard_) world_.watcher.complain("an agent misses a word of its yard");
  }
  match(word.what, [this](const auto& it) { take(it); });
}

void MadeUpAgent::take(const Opens& opens) {
  if (!lives_) begin();
  has_stream_ = true;
  unheard_.heard(opens.heard);
  run_until(ready_ ? opens.until : world_.agenda.now() + opens.lease);
  ear_(
      {.what = Greets{
           .instance = instance_, .place = place_, .heard = heard_, .clock = world_.agenda.now()}});
  if (!unheard_.words().empty()) world_.counts.count(Fault::WordsSaidAgain);
  for (const AgentWord& word : unheard_.words()) ear_(word);
}

void MadeUpAgent::begin() {
  lives_ = true;
  begins_ = false;
  ready_ = false;
  ending_ = false;
  held_.clear();
  ++instance_;
  heard_ = 0;
  runs_until_ = {};
  unheard_ = {};
  attempts_.clear();
}

/// Before it is ready nothing of what was left runs.
void MadeUpAgent::take(const Begins& /*begins*/) {
  begins_ = true;
  machine_->end_all(Duration{20});
  when_nothing_runs([this, instance = instance_] {
    if (lives_ && instance == instance_) become_ready();
  });
}

void MadeUpAgent::become_ready() {
  machine_->begin_anew();
  if (options_.changes && instance_ > 1 && random_.one_in(2)) {
    model::Capacity& capacity = options_.workload.capacity;
    capacity.memory = Bytes{capacity.memory.count / 10 * random_.between(5, 10)};
    capacity.cpus = {std::max<std::int64_t>(1'000, capacity.cpus.milli - 1'000)};
  }
  ready_ = true;
  say({.what = Ready{}});
  machine_->look_first();
  for (const model::Command& command : std::exchange(held_, {})) take(command);
  if (world_.agenda.now() > runs_until_) end_of_lease();
}

void MadeUpAgent::when_nothing_runs(Agenda::Step then) {
  if (machine_->processes() == 0) return then();
  world_.agenda.at(world_.agenda.now() + Duration{5}, [this, then = std::move(then)]() mutable {
    when_nothing_runs(std::move(then));
  });
}

void MadeUpAgent::take(const model::Command& command) {
  // It takes no commands while it ends what was left.
  if (begins_ && !ready_) return held_.push_back(command);
  if (!ready_) return world_.watcher.complain("a command comes to an agent that was told no run");
  if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
    attempts_.insert(start->key);
    // A start that comes when the lease is over is never carried out, and reported as vanished.
    if (ending_ || world_.agenda.now() > runs_until_) return;
    options_.about_to_start(start->key.task);
  }
  if (!ending_) machine_->ask(command);
}

/// The yard counted this time from an earlier reading of this clock.
void MadeUpAgent::take(const Heard& heard) {
  unheard_.heard(heard.up_to);
  run_until(heard.clock);
  if (has_stream_) ear_({.what = Heard{.up_to = heard_, .clock = world_.agenda.now()}});
}

void MadeUpAgent::take(const Leaves& /*leaves*/) { die(false); }

/// A word that has overtaken a later one takes nothing back, and none begins again what is over.
void MadeUpAgent::run_until(Instant moment) {
  if (moment <= runs_until_ || ending_) return;
  runs_until_ = moment;
  world_.agenda.at(moment + Duration{1}, [this, instance = instance_] {
    const bool is_over = world_.agenda.now() > runs_until_;
    if (lives_ && instance == instance_ && ready_ && !ending_ && is_over) end_of_lease();
  });
}

void MadeUpAgent::end_of_lease() {
  if (machine_->processes() > 0) world_.counts.count(Fault::LeaseOver);
  ending_ = true;
  machine_->end_all(kEndMax);
  when_nothing_runs([this, instance = instance_] {
    if (lives_ && instance == instance_) go();
  });
}

/// For the end of its keeper it has the ends of all attempts.
void MadeUpAgent::go() {
  for (const model::AttemptKey& key : attempts_) {
    say({.what = model::What(
             model::AttemptEnded{.key = key, .end = model::Vanished{"the run was not heard of"}})});
  }
  lives_ = false;
  has_stream_ = false;
}

void MadeUpAgent::die(bool reboots) {
  if (!lives_) return;
  world_.counts.count(reboots ? Fault::MachineReboots : Fault::AgentDies);
  lives_ = false;
  ready_ = false;
  has_stream_ = false;
  if (reboots) ++place_;
  machine_->end_all(reboots ? Duration{0} : kEndMax);
}

void MadeUpAgent::tell(model::What what) {
  if (!lives_ || !ready_ || ending_) return;
  // An event between the agent and itself.
  if (std::holds_alternative<model::InterruptAsked>(what)) return;
  if (!has_stream_ && is_said_anew(what)) return;
  if (const auto* const ended = std::get_if<model::AttemptEnded>(&what))
    attempts_.erase(ended->key);
  say({.what = std::move(what)});
}

void MadeUpAgent::say(AgentWord word) {
  const AgentWord& kept = unheard_.keep(std::move(word));
  if (has_stream_) ear_(kept);
}

}  // namespace trainyard::sim
