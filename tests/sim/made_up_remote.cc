#include "sim/made_up_remote.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/match.h"
#include "run/remote_machine.h"
#include "sim/faults.h"
#include "sim/watcher.h"

namespace trainyard::sim {
namespace {

// As run/remote_machine.cc.
constexpr Duration kReachMax{30'000};
constexpr Duration kPulseMax{4'000};
constexpr Duration kSilenceMax{12'000};
constexpr int kPulsesOfALease = 6;
constexpr Duration kAgainMax{15'000};
constexpr Duration kAgainAfter{200};

}  // namespace

MadeUpRemote::MadeUpRemote(Options options, MadeUpAgent& agent, World world, Ears ears)
    : options_(std::move(options)),
      agent_(agent),
      world_(world),
      ears_(std::move(ears)),
      random_(options_.seed),
      there_(world_.agenda, random_.split()),
      back_(world_.agenda, random_.split()),
      reach_after_(kAgainAfter) {
  at(world_.agenda.now() + kPulseMax, [this] { pulse(); });
}

/// Steps of the yard, which does nothing while it is stopped, and then all of it in its order.
void MadeUpRemote::at(Instant when, Agenda::Step step) {
  world_.agenda.at(when, [this, step = std::move(step)]() mutable {
    const std::optional<Instant> until = ears_.stopped_until();
    if (!until && put_off_.empty()) return step();
    put_off_.push_back(std::move(step));
    if (put_off_.size() == 1) catch_up_at(*until + Duration{1});
  });
}

void MadeUpRemote::catch_up_at(Instant when) {
  world_.agenda.at(when, [this] {
    if (const auto until = ears_.stopped_until()) return catch_up_at(*until + Duration{1});
    for (Agenda::Step& step : std::exchange(put_off_, {})) step();
  });
}

void MadeUpRemote::reach() {
  if (left_) return;
  ++stream_;
  is_open_ = true;
  spoken_ = false;
  heard_at_ = world_.agenda.now();
  const YardWord opens{
      .what = Opens{.lease = options_.lease, .until = clock_ + options_.lease, .heard = heard_}};
  there_.send([this, opens, stream = stream_] {
    if (stream <= lost_up_to_) return;
    agent_.set_ear([this, stream](const AgentWord& word) { send_back(stream, word); });
    agent_.hear(opens);
  });
}

void MadeUpRemote::send_back(std::uint64_t stream, const AgentWord& word) {
  back_.send([this, stream, word] {
    at(world_.agenda.now(), [this, stream, word] {
      if (is_open_ && stream == stream_) hear(word);
    });
  });
}

/// A stream that has ended on this side may carry on what it has.
void MadeUpRemote::send(const YardWord& word) {
  there_.send([this, word, stream = stream_] {
    if (stream > lost_up_to_) agent_.hear(word);
  });
}

void MadeUpRemote::hear(const AgentWord& word) {
  spoken_ = true;
  heard_at_ = world_.agenda.now();
  if (word.number != 0) {
    if (word.number <= heard_) return;
    if (word.number != ++heard_) return world_.watcher.complain("a yard misses a word of an agent");
  }
  match(word.what, [this](const auto& it) { take(it); });
}

void MadeUpRemote::take(const Greets& greets) {
  const bool is_same = greets_ && greets_->instance == greets.instance;
  // Its attempts were reported as lost: it has nothing more to say of them.
  if (is_same && phase_ == Phase::Lost) return turn_away();
  // The attempts on the one before cannot be seen from there: its lease ends them.
  if (joined_ && greets.place != greets_->place) return turn_away();
  const bool knew_one = greets_.has_value();
  clock_ = greets.clock;
  reach_after_ = kAgainAfter;
  greets_ = greets;
  if (is_same) {
    lease_heard_ = world_.agenda.now();
    return answers_again();
  }
  if (knew_one) return another_answers();
  phase_ = Phase::Open;
  say({.what = Begins{}});
}

void MadeUpRemote::turn_away() {
  say_at_once({.what = Leaves{}});
  stream_ended();
}

void MadeUpRemote::answers_again() {
  phase_ = Phase::Open;
  unheard_.heard(greets_->heard);
  if (!unheard_.words().empty()) world_.counts.count(Fault::WordsSaidAgain);
  for (const YardWord& word : unheard_.words()) send(word);
  tell_until_when();
  if (!ready_ || !std::exchange(silent_, false)) return;
  if (!attempts_.empty()) world_.counts.count(Fault::MachineSilent);
  ears_.tell(model::KeeperSilent{.silent = false, .machine = *machine_});
}

void MadeUpRemote::another_answers() {
  phase_ = Phase::Open;
  heard_ = 0;
  unheard_ = {};
  ready_ = false;
  say({.what = Begins{}});
}

void MadeUpRemote::take(const Ready& /*ready*/) {
  ready_ = true;
  lose("its agent is gone");
  phase_ = Phase::Open;
  if (!machine_) {
    machine_ = ears_.next_number();
  } else {
    world_.counts.count(Fault::MachineJoinsAgain);
  }
  joined_ = true;
  lease_heard_ = world_.agenda.now();
  ears_.tell(model::MachineJoined{.machine = *machine_,
                                  .name = options_.name,
                                  .capacity = agent_.capacity(),
                                  .until = taken_away_at()});
}

std::optional<Instant> MadeUpRemote::taken_away_at() {
  if (options_.allocations == 0) return std::nullopt;
  --options_.allocations;
  const Instant until = world_.agenda.now() + options_.allocation;
  world_.agenda.at(until, [this] {
    world_.counts.count(Fault::MachineTakenAway);
    agent_.die(/*reboots=*/true);
  });
  return until;
}

void MadeUpRemote::take(const model::What& told) {
  if (!joined_ || !ready_) return;
  model::What what = told;
  if (take_in(what)) {
    if (const auto* const ended = std::get_if<model::AttemptEnded>(&what)) {
      attempts_.erase(ended->key);
    }
    ears_.tell(std::move(what));
  }
}

/// As what it is for the run; false: it is nothing to the run, and dropped.
bool MadeUpRemote::take_in(model::What& what) const {
  return match(
      what, [&](const model::AttemptStarted& it) { return runs(it.key); },
      [&](const model::AttemptEnded& it) { return runs(it.key); },
      [&](const model::StageReported& it) { return runs(it.key); },
      [&](const model::Progressed& it) { return runs(it.key); },
      [&](model::Sampled& it) {
        it.machine = *machine_;
        std::erase_if(it.tasks, [&](const model::TaskSample& each) { return !runs(each.key); });
        return true;
      },
      [&](model::GpusSampled& it) {
        it.machine = *machine_;
        std::erase_if(it.uses, [&](const model::GpuUse& each) { return !runs(each.key); });
        return true;
      },
      [&](model::KeeperSilent& it) {
        it.machine = *machine_;
        return true;
      },
      [](const auto&) { return false; });
}

void MadeUpRemote::take(const Heard& heard) {
  unheard_.heard(heard.up_to);
  clock_ = heard.clock;
  if (ready_) lease_heard_ = world_.agenda.now();
}

void MadeUpRemote::carry_out(const model::Command& command) {
  if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
    attempts_.insert(start->key);
  }
  say({.what = command});
}

void MadeUpRemote::stream_ended() {
  if (!std::exchange(is_open_, false)) return;
  if (random_.one_in(2)) {
    lost_up_to_ = stream_;
  } else {
    there_.send([this] { agent_.stream_ended(); });
  }
  if (phase_ == Phase::Open) phase_ = Phase::Cut;
  if (joined_ && !std::exchange(silent_, true)) {
    ears_.tell(model::KeeperSilent{.silent = true, .machine = *machine_});
  }
  at(world_.agenda.now() + reach_after_, [this] { reach(); });
  reach_after_ = std::min(reach_after_ * 2, kAgainMax);
}

/// Nothing runs there any more, and nothing is started in its place before that is reported.
void MadeUpRemote::lose(const std::string& why) {
  phase_ = Phase::Lost;
  if (!std::exchange(joined_, false)) return;
  world_.counts.count(Fault::MachineGone);
  if (!std::exchange(silent_, false)) {
    ears_.tell(model::KeeperSilent{.silent = true, .machine = *machine_});
  }
  for (const model::AttemptKey key : std::exchange(attempts_, {})) {
    ears_.tell(model::AttemptEnded{.key = key, .end = model::Vanished{why}});
  }
  ears_.tell(model::MachineGone{.machine = *machine_, .why = why});
}

void MadeUpRemote::pulse() {
  const Instant now = world_.agenda.now();
  const bool is_there = phase_ == Phase::Open && ready_;
  if (joined_ && !is_there && now - lease_heard_ > options_.lease + run::RemoteMachine::kEndMax) {
    lose("nothing was heard of it");
  }
  if (is_open_ && spoken_) tell_until_when();
  const Duration silence_max = std::clamp(options_.lease / 2, Duration{500}, kSilenceMax);
  if (is_open_ && now - heard_at_ > (spoken_ ? silence_max : kReachMax)) stream_ended();
  const Duration every = std::min(kPulseMax, options_.lease / kPulsesOfALease);
  at(now + every, [this] { pulse(); });
}

void MadeUpRemote::tell_until_when() {
  say_at_once({.what = Heard{.up_to = heard_, .clock = clock_ + options_.lease}});
}

void MadeUpRemote::say(YardWord word) {
  const YardWord& kept = unheard_.keep(std::move(word));
  if (is_open_ && spoken_) send(kept);
}

void MadeUpRemote::say_at_once(const YardWord& word) {
  if (is_open_) send(word);
}

void MadeUpRemote::split(Duration lasts) {
  world_.counts.count(Fault::NetworkSplit);
  there_.hold_until(world_.agenda.now() + lasts);
  back_.hold_until(world_.agenda.now() + lasts);
}

void MadeUpRemote::cut() {
  if (!is_open_) return;
  world_.counts.count(Fault::StreamCut);
  at(world_.agenda.now(), [this] { stream_ended(); });
}

void MadeUpRemote::leave_for_good() {
  left_ = true;
  cut();
}

}  // namespace trainyard::sim
