#include "workers/machines.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "wire/frame.h"
#include "workers/router.h"

namespace trainyard::workers {
namespace {

int workers_of(const MachineEntry& machine) { return static_cast<int>(machine.nodes.size()); }

bool has_node(const MachineEntry& machine, int node) {
  return std::ranges::any_of(machine.nodes,
                             [node](const MachineNode& it) { return it.node == node; });
}

}  // namespace

int Admission::awaited() const {
  int awaited = options_.elsewhere;
  for (const MachineEntry& each : joined_) awaited -= workers_of(each);
  return awaited;
}

bool Admission::knows(MachineId id) const {
  return std::ranges::any_of(joined_, [id](const MachineEntry& it) { return it.id == id; });
}

std::string Admission::refusal(const MachineHello& hello) const {
  if (hello.topology != options_.topology) {
    return fmt::format("the topology of the run is {}, not {}", options_.topology, hello.topology);
  }
  // A machine that drops events would not wait for a worker that reads slowly, and one that blocks
  // drops none of them: nothing would bound what waits for that worker.
  if (hello.when_full != options_.when_full) {
    return fmt::format(
        "the policy of full queues in the run is '{}', not '{}' (when_full, --when-full)",
        options_.when_full, hello.when_full);
  }
  if (hello.machine.nodes.empty()) return "it brings no workers";
  std::vector<MachineEntry> there = joined_;
  there.insert(there.begin(), options_.own);
  for (const MachineEntry& each : there) {
    for (const MachineNode& it : hello.machine.nodes) {
      if (!has_node(each, it.node)) continue;
      return fmt::format(
          "the node id {} is taken by a worker of {}: give others in node_ids (--node-ids)",
          it.node, each.host);
    }
  }
  if (const int brought = workers_of(hello.machine); brought > awaited()) {
    return fmt::format("it brings {} {}, and the run waits for {} (workers_elsewhere, --elsewhere)",
                       brought, brought == 1 ? "worker" : "workers", awaited());
  }
  return {};
}

MachineWelcome Admission::ask(const MachineHello& hello) {
  if (!knows(hello.machine.id)) {
    if (std::string why = refusal(hello); !why.empty()) return {.error = std::move(why)};
    joined_.push_back(hello.machine);
  }
  MachineWelcome welcome{.machines = {options_.own},
                         .index = workers_of(options_.own),
                         .count = workers_of(options_.own) + options_.elsewhere,
                         .awaited = awaited()};
  bool is_before = true;
  for (const MachineEntry& each : joined_) {
    if (each.id == hello.machine.id) {
      is_before = false;
      continue;
    }
    if (is_before) welcome.index += workers_of(each);
    welcome.machines.push_back(each);
  }
  return welcome;
}

namespace {

/// Claims that no other machine received, after which there is none. One does not suffice: servers
/// of a cluster learn of another machine's subscription a moment later.
constexpr int kAsksWithoutHub = 2;
/// When a claim has not been answered for this time a note says what is waited for.
constexpr Duration kSilenceNote{1'000};
constexpr Duration kShowAliveEvery{2'000};
/// Number of signs of life in the time after which a silent machine is lost.
constexpr int kShowsInTime = 8;
/// Number of signs of life that did not come after which another machine may have begun the run.
constexpr int kShowsMissed = 2;

std::string seconds(Duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

Machines::Machines(sys::EventLoop& loop, std::unique_ptr<Bridge> bridge, Options options)
    : loop_(loop),
      bridge_(std::move(bridge)),
      options_(std::move(options)),
      admission_({.own = options_.own,
                  .topology = options_.topology,
                  .when_full = options_.when_full,
                  .elsewhere = options_.elsewhere}),
      asks_since_(sys::EventLoop::now()) {}

Machines::~Machines() {
  if (timer_) loop_.cancel(*timer_);
}

Duration Machines::show_every() const {
  return std::min(kShowAliveEvery, std::max(Duration(1), options_.lost_after / kShowsInTime));
}

void Machines::start() {
  bridge_->start(
      {.on_message = [this](std::string_view message) { take(message); },
       .on_no_hub = [this] { take_no_hub(); },
       .on_change = [this](bool is_up) { change(is_up); },
       .on_end = [this](const std::string& why) { broken(why); },
       .on_trouble = [this](const std::string& what) { options_.note("NATS: " + what); }});
  tick();
}

void Machines::set_router(Router& router) {
  router_ = &router;
  std::vector<Machine*> known;
  known.reserve(machines_.size());
  for (const auto& [id, machine] : machines_) known.push_back(machine.get());
  std::ranges::sort(known, std::greater(), &Machine::number);
  for (Machine* const each : known) {
    router.admit(*each);
    router.has_room(each->number());
  }
  tick();
}

Machine& Machines::add(const MachineEntry& entry) {
  const int number = --last_number_;
  auto machine = std::make_unique<Machine>(
      entry, *bridge_,
      Machine::Options{.own = options_.own.id,
                       .number = number,
                       .now = sys::EventLoop::now(),
                       .repeat_end_after = options_.repeat_end_after,
                       .untaken = [this, number] {
                         return router_ == nullptr ? 0 : router_->untaken_of(number);
                       }});
  Machine& it = *machine;
  machines_.emplace(entry.id, std::move(machine));
  if (end_) it.end(*end_, sys::EventLoop::now());
  return it;
}

void Machines::broken(const std::string& why, std::string_view cure) {
  if (std::exchange(is_broken_, true)) return;
  // Before its workers are ended, which would be reported as finished.
  if (router_ != nullptr && !std::exchange(leaves_, true)) {
    router_->say_to_machines(LeaveWord{.why = why});
  }
  options_.on_broken(fmt::format("{}{}", why, cure));
}

void Machines::unable(const std::string& why, std::string_view cure) {
  broken(fmt::format("NATS: the run '{}' cannot be {}: {}", options_.run,
                     joined_          ? "continued"
                     : options_.joins ? "joined"
                                      : "begun",
                     why),
         cure);
}

void Machines::stray(const std::string& what) {
  // Anyone who may publish on the servers can send anything, as often as they like.
  if (++strays_ > kStrayNotesMax) return;
  options_.note(fmt::format("NATS: {} came for run '{}' and is ignored{}", what, options_.run,
                            strays_ == kStrayNotesMax ? ", as are all that follow" : ""));
}

// --- what comes ---

void Machines::take(std::string_view message) {
  const auto datagram = read_datagram(message);
  if (!datagram) return stray("a message that is none of trainyard");
  if (datagram->version != wire::kProtocolVersion) {
    const std::string why = fmt::format("version {} of the protocol is spoken there, {} here",
                                        datagram->version, wire::kProtocolVersion);
    if (datagram->kind == Datagram::Kind::Hello && !options_.joins) refuse(datagram->from, why);
    // A machine that has begun the run speaks another version.
    if (datagram->kind == Datagram::Kind::Welcome && !joined_ && datagram->to == options_.own.id) {
      return unable(why);
    }
    return stray(fmt::format("a message of another program ({})", why));
  }
  switch (datagram->kind) {
    case Datagram::Kind::Hello:
      return take_hello(*datagram);
    case Datagram::Kind::Welcome:
      return take_welcome(*datagram);
    case Datagram::Kind::Piece:
      return take_piece(*datagram);
    case Datagram::Kind::End:
      return take_end(*datagram);
  }
}

void Machines::refuse(MachineId whom, const std::string& why) {
  bridge_->send(whom, datagram_text({.kind = Datagram::Kind::Welcome,
                                     .from = options_.own.id,
                                     .to = whom,
                                     .bytes = to_fields(MachineWelcome{.error = why})}));
}

void Machines::take_hello(const Datagram& datagram) {
  if (options_.joins || router_ == nullptr || datagram.from == options_.own.id) return;
  // Another machine may have the run now, which a refusal of this one must not disturb.
  if (is_broken_) return;
  const auto hello = read_machine_hello(datagram.bytes);
  if (!hello || hello->machine.id != datagram.from) return stray("a greeting that is none");
  if (hello->begins) return take_claim(datagram, *hello);
  // A machine asks again, and by then it is decided whose run this is.
  if (!joined_ || is_in_doubt()) return;
  // The machine has joined, and asks whether another one has begun the run since.
  if (datagram.to == options_.own.id) return;
  if (datagram.to != 0) {
    options_.note(fmt::format("{} has joined an earlier run '{}', and is refused",
                              hello->machine.host, options_.run));
    return refuse(datagram.from,
                  fmt::format("{} has started a new run of this name", options_.own.host));
  }
  if (leaves_) return refuse(datagram.from, "the run is at its end");
  const bool is_new = !admission_.knows(datagram.from);
  const MachineWelcome welcome = admission_.ask(*hello);
  if (!welcome.error.empty()) {
    options_.note(fmt::format("{} may not join: {}", hello->machine.host, welcome.error));
    return refuse(datagram.from, welcome.error);
  }
  bridge_->send(datagram.from, datagram_text({.kind = Datagram::Kind::Welcome,
                                              .from = options_.own.id,
                                              .to = datagram.from,
                                              .bytes = to_fields(welcome)}));
  if (!is_new) return;
  router_->say_to_machines(CameWord{.machine = hello->machine, .awaited = welcome.awaited});
  router_->expect(welcome.awaited);
  Machine& machine = add(hello->machine);
  router_->admit(machine);
  router_->has_room(machine.number());
  tick();
}

bool Machines::is_in_doubt() const {
  return in_doubt_at_ && sys::EventLoop::now() - *in_doubt_at_ < options_.doubt;
}

void Machines::take_claim(const Datagram& datagram, const MachineHello& hello) {
  const std::string& host = hello.machine.host;
  if (datagram.to == options_.own.id)
    return unable(fmt::format("{} has started a new run of this name", host));
  if (datagram.to != 0 && datagram.to != datagram.from) return;
  const bool was_away = datagram.to == datagram.from;
  if (hello.has_begun && !was_away) {
    // Both have begun the run, on servers of a cluster that did not reach each other then.
    if (joined_ && !is_in_doubt() && options_.own.id < datagram.from) ask(datagram.from);
    return;
  }
  // Two machines that claim the run must not refuse each other. The one with the smaller id, or
  // the one that has begun it, refuses the next claim of this machine.
  if (!joined_ && (was_away || datagram.from < options_.own.id)) return;
  if (was_away) return ask(datagram.from);
  in_doubt_at_ = sys::EventLoop::now();
  const bool is_another = std::exchange(refused_, datagram.from) != datagram.from;
  if (is_another && ++claims_ <= kStrayNotesMax) {
    options_.note(fmt::format("{} begins a run '{}', too, and is refused", host, options_.run));
  }
  refuse(datagram.from,
         fmt::format("{} has begun it already: give this one another name, or join it",
                     options_.own.host));
}

void Machines::take_no_hub() {
  if (!options_.joins && ++asks_without_hub_ >= kAsksWithoutHub) joined_ = true;
}

void Machines::take_welcome(const Datagram& datagram) {
  if (is_broken_ || datagram.to != options_.own.id) return;
  const bool has_joined = joined_ && options_.joins;
  if (has_joined) {
    // While messages come from the machine that began the run, this answers an earlier question.
    const Machine* const hub = silent_hub(sys::EventLoop::now());
    if (hub == nullptr || datagram.from == hub->id()) return;
  }
  const auto welcome = read_machine_welcome(datagram.bytes);
  if (!welcome) return stray("a welcome that is none");
  if (!welcome->error.empty()) {
    // The machine that refuses the claim was silent while it was made, and has lost the run.
    if (has_begun()) return ask(datagram.from);
    return unable(welcome->error, has_joined ? ": join it again" : "");
  }
  if (has_joined) return;
  if (!options_.joins) return stray("a welcome to a run that was begun here");
  joined_ = true;
  for (const MachineEntry& each : welcome->machines) add(each);
  options_.on_joined(*welcome);
}

void Machines::take_piece(const Datagram& datagram) {
  const auto found = machines_.find(datagram.from);
  // A machine that is not known yet sends its pieces again.
  if (datagram.to != options_.own.id || found == machines_.end() || router_ == nullptr) return;
  Machine& machine = *found->second;
  const Duration now = sys::EventLoop::now();
  const int number = machine.number();
  const std::string_view fresh = machine.take(datagram, now);
  router_->has_room(number);
  if (!fresh.empty()) router_->take(number, fresh);
  // The piece may have said that the machine leaves.
  const auto still = machines_.find(datagram.from);
  if (still != machines_.end()) tick_within(still->second->tick(now, show_every()));
}

void Machines::take_end(const Datagram& datagram) {
  const auto found = machines_.find(datagram.from);
  // A machine that is not known yet says it again.
  if (datagram.to != options_.own.id || found == machines_.end()) return;
  const auto end = read_machine_end(datagram.bytes);
  if (!end) return stray("an end that is none");
  const int number = found->second->number();
  found->second->take_end(sys::EventLoop::now());
  options_.on_end(*end);
  if (end->leaves) left(number, "");
}

void Machines::came(const CameWord& word) {
  if (machines_.contains(word.machine.id) || word.machine.id == options_.own.id) return;
  router_->expect(word.awaited);
  router_->admit(add(word.machine));
}

void Machines::left(int number, const std::string& why) {
  const auto found = std::ranges::find_if(
      machines_, [number](const auto& it) { return it.second->number() == number; });
  if (found == machines_.end()) return;
  // Its end is not to wait for us.
  found->second->tick(sys::EventLoop::now(), Duration(0));
  const bool is_hub = options_.joins && number == -1;
  const std::string name = found->second->name();
  // First: its workers have failed by that, and not the other way round.
  if (is_hub && !leaves_ && (!why.empty() || router_->is_anybody_here())) {
    broken(
        fmt::format("{} has begun the run, and is gone{}{}", name, why.empty() ? "" : ": ", why));
  }
  router_->forget_machine(number, why.empty() ? fmt::format("{} has left the run", name) : why);
  machines_.erase(found);
}

void Machines::change(bool is_up) {
  const Duration now = sys::EventLoop::now();
  if (is_up) {
    down_since_.reset();
    asks_since_ = now;
  } else if (!down_since_) {
    down_since_ = now;
    options_.note(fmt::format("NATS: the connection to {} is lost", bridge_->name()));
  }
  for (const auto& [id, machine] : machines_) machine->set_up(is_up, now);
  if (is_up && has_begun()) {
    in_doubt_at_ = now;
    ask(options_.own.id);
  }
  if (is_up && router_ != nullptr) {
    options_.note(fmt::format("NATS: connected again, to {}", bridge_->name()));
    std::vector<int> numbers;
    numbers.reserve(machines_.size());
    for (const auto& [id, machine] : machines_) numbers.push_back(machine->number());
    for (const int each : numbers) router_->has_room(each);
  }
  tick();
}

// --- what goes by itself ---

const Machine* Machines::silent_hub(Duration now) const {
  if (!options_.joins || leaves_) return nullptr;
  const auto hub =
      std::ranges::find_if(machines_, [](const auto& it) { return it.second->number() == -1; });
  if (hub == machines_.end()) return nullptr;
  const bool is_silent = now - hub->second->last_message_at() > kShowsMissed * show_every();
  return is_silent ? hub->second.get() : nullptr;
}

void Machines::ask(MachineId to) {
  asked_at_ = sys::EventLoop::now();
  bridge_->send_to_hub(
      datagram_text({.kind = Datagram::Kind::Hello,
                     .from = options_.own.id,
                     .to = to,
                     .bytes = to_fields(MachineHello{.machine = options_.own,
                                                     .topology = options_.topology,
                                                     .when_full = options_.when_full,
                                                     .begins = !options_.joins,
                                                     .has_begun = has_begun()})}));
}

void Machines::tick_within(Duration delay) {
  const Duration at = sys::EventLoop::now() + delay;
  if (timer_ && tick_at_ <= at) return;
  if (timer_) loop_.cancel(*timer_);
  tick_at_ = at;
  timer_ = loop_.after(std::max(Duration(1), delay), [this] {
    timer_.reset();
    tick();
  });
}

Duration Machines::ask_until_joined(Duration now) {
  if (down_since_) return show_every();
  const Duration waited = now - asks_since_;
  // The half only, so that machines which have come meanwhile still wait for the run.
  const Duration within = options_.joins ? options_.lost_after : options_.lost_after / 2;
  if (waited >= within) {
    joined_ = !options_.joins;
    if (options_.joins) {
      broken(fmt::format("NATS: nobody at {} has begun the run '{}' in {}", bridge_->name(),
                         options_.run, seconds(within)));
    }
    return show_every();
  }
  if (!options_.joins && waited >= kSilenceNote && !std::exchange(is_silence_noted_, true)) {
    options_.note(
        fmt::format("NATS: another process has begun the run '{}', or listens to it, and does not "
                    "answer; waiting for it, for {}",
                    options_.run, seconds(within)));
  }
  if (now - asked_at_ >= options_.ask_every) ask(0);
  return std::min(asked_at_ + options_.ask_every - now, within - waited);
}

void Machines::tick() {
  const Duration now = sys::EventLoop::now();
  if (is_broken_) return;
  if (down_since_ && now - *down_since_ >= options_.lost_after) {
    return broken(fmt::format("NATS: no server answers for {}; the last connection was to {}",
                              seconds(options_.lost_after), bridge_->name()));
  }
  Duration next = show_every();
  if (down_since_) next = std::min(next, options_.lost_after - (now - *down_since_));
  if (!joined_) {
    next = std::min(next, ask_until_joined(now));
    if (is_broken_) return;
  }
  // Servers of a cluster may have begun to reach each other, and another machine of this run.
  if (has_begun() && !leaves_ && !down_since_ && now - asked_at_ >= show_every()) ask(0);
  const Machine* const hub = silent_hub(now);
  if (hub != nullptr && !down_since_ && now - asked_at_ >= show_every()) ask(hub->id());
  std::vector<std::pair<int, std::string>> silent;
  for (const auto& [id, machine] : machines_) {
    next = std::min(next, machine->tick(now, show_every()));
    if (down_since_ || now - machine->last_message_at() < options_.lost_after) continue;
    silent.emplace_back(machine->number(),
                        fmt::format("{} has not been heard of for {}", machine->name(),
                                    seconds(options_.lost_after)));
  }
  if (router_ != nullptr) {
    for (const auto& [number, why] : silent) left(number, why);
  }
  tick_within(next);
}

bool Machines::is_any_responding(Duration within) const {
  if (router_ == nullptr) return true;
  const Duration now = sys::EventLoop::now();
  if (down_since_) return now - *down_since_ < within;
  return std::ranges::any_of(machines_, [&](const auto& it) {
    return router_->is_anybody_at(*it.second) && now - it.second->last_message_at() < within;
  });
}

void Machines::end(const MachineEnd& why) {
  if (is_broken_ || end_) return;
  end_ = why;
  for (const auto& [id, machine] : machines_) machine->end(why, sys::EventLoop::now());
  tick_within(options_.repeat_end_after);
}

bool Machines::leave(const std::string& why) {
  if (router_ == nullptr || is_broken_) return true;
  if (!machines_.empty() && !std::exchange(leaves_, true)) {
    router_->say_to_machines(LeaveWord{.why = why});
  }
  return bridge_->is_drained() && std::ranges::all_of(machines_, [this](const auto& it) {
           return it.second->is_drained() && router_->is_drained(it.second->number());
         });
}

void Machines::leave_at_once() {
  if (is_broken_ || !end_) return;
  end_->leaves = true;
  for (const auto& [id, machine] : machines_) machine->end(*end_, sys::EventLoop::now());
}

}  // namespace trainyard::workers
