#include "workers/router.h"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <variant>

#include <sys/socket.h>
#include <sys/types.h>

#include "base/match.h"
#include "sys/passing.h"
#include "workers/machine.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{256} << 10;
/// Bytes of words and answers, not counting events.
constexpr std::size_t kUnreadMax = std::size_t{16} << 20;
/// While a worker has more unread bytes, its refusals are collected, and come in one message later.
constexpr std::size_t kLittle = std::size_t{64} << 10;

int hub_of(const Router::Options& options) {
  if (options.elsewhere != nullptr) return options.elsewhere->first_node;
  return options.nodes.empty() ? 0 : options.nodes.begin()->first;
}

}  // namespace

Router::Router(sys::EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      routes_(options_.topology, hub_of(options_)),
      meetings_(roll_),
      read_buffer_(kReadAtOnce) {
  for (const auto& [node, roles] : options_.nodes) roll_.add(node, roles);
  if (options_.elsewhere != nullptr) roll_.expect(options_.elsewhere->unknown);
  roll_word_ = roll_text();
}

Router::~Router() {
  if (timer_) loop_.cancel(*timer_);
  for (const auto& [node, peer] : peers_) {
    if (peer->machine == nullptr) loop_.unwatch(peer->socket.get());
  }
}

ArenaRelay::End Router::end_of(const RouterPeer& peer) {
  return wire::origin_of(peer.node, peer.life);
}

RouterPeer* Router::find(int node) {
  const auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : found->second.get();
}

void Router::admit(int node, std::uint32_t life, sys::Descriptor socket) {
  auto peer = std::make_unique<RouterPeer>(node, life, std::move(socket), outbox_for(node));
  RouterPeer& it = *peer;
  it.since = sys::EventLoop::now();
  peers_[node] = std::move(peer);
  roll_.set(node, Presence::Joined);
  it.outbox.add_word(roll_word_);
  dirty_.insert(node);
  // Who has ended before it came is known to it, too.
  for (const auto& [ended, word] : ended_) {
    if (ended != node && routes_.hears(ended, node)) say(it, word);
  }
  loop_.watch_readable(it.socket.get(), [this, node] {
    if (RouterPeer* const there = find(node)) read(*there);
  });
  flush();
}

// --- what comes ---

void Router::read(RouterPeer& peer) {
  std::vector<sys::Descriptor> descriptors;
  const ssize_t count =
      sys::receive_with(peer.socket.get(), read_buffer_, descriptors, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return at_its_end(peer);
  ++peer.reads;
  peer.bytes.append(read_buffer_.data(), static_cast<std::size_t>(count));
  Result<void> taken;
  for (sys::Descriptor& each : descriptors) {
    if (taken) taken = arenas_.take(end_of(peer), std::move(each));
  }
  if (taken) taken = take_frames(peer);
  if (!taken) return drop(peer.node, taken.error().message);
  send_releases();
  flush();
}

Result<void> Router::take_frames(RouterPeer& peer) {
  while (!peer.waits) {
    const std::string_view rest = std::string_view(peer.bytes).substr(peer.taken);
    auto prefix = wire::read_prefix(rest, wire::kWorkerLimits);
    if (!prefix) return std::unexpected(std::move(prefix.error()));
    const std::optional<wire::FramePrefix>& begun = *prefix;
    if (!begun || rest.size() < begun->bytes()) break;
    const std::size_t bytes = begun->bytes();
    if (Result<void> taken = take(peer, *begun, rest.substr(0, bytes)); !taken) return taken;
    if (peer.waits) break;  // The frame is taken again when there is room.
    peer.taken += bytes;
    peer.held_left -= std::min(peer.held_left, bytes);
  }
  if (peer.taken == peer.bytes.size()) {
    peer.bytes.clear();
  } else if (peer.taken > 0) {
    peer.bytes.erase(0, peer.taken);
  }
  peer.taken = 0;
  return {};
}

Result<void> Router::take(RouterPeer& peer, const wire::FramePrefix& prefix,
                          std::string_view frame) {
  if (prefix.kind == wire::FrameKind::Event) return take_event(peer, prefix, frame);
  if (peer.machine != nullptr) return take_of_machine(peer, prefix, frame);
  if (prefix.kind == wire::FrameKind::Release) {
    arenas_.released(end_of(peer), prefix.topic);
    return {};
  }
  auto whole = wire::read_frame(prefix, frame);
  if (!whole) return std::unexpected(std::move(whole.error()));
  if (prefix.kind == wire::FrameKind::Report) {
    const auto report = wire::read_worker_report(whole->fields);
    if (!report) return std::unexpected(report.error());
    return take_report(peer, *report);
  }
  if (prefix.kind == wire::FrameKind::Request) {
    const auto request = wire::read_worker_request(whole->fields);
    if (request) return take_request(peer, prefix.sequence, *request);
    // The sender of the request receives the error.
    reply({{.to = {.node = peer.node, .sequence = prefix.sequence},
            .reply = {.error = request.error().message}}});
    return {};
  }
  return std::unexpected(Error{"a frame of a kind that a worker does not send"});
}

Result<void> Router::take_event(RouterPeer& peer, const wire::FramePrefix& prefix,
                                std::string_view frame) {
  // A retained event comes from where it is kept, whichever worker sent it.
  const bool is_its_own = peer.machine != nullptr
                              ? peer.only || peer.machine->has(wire::node_of(prefix.origin))
                              : prefix.origin == wire::origin_of(peer.node, peer.life);
  if (!is_its_own) {
    return std::unexpected(Error{"an event that is said to be another worker's"});
  }
  if (routes_.find(prefix.topic) == nullptr) {
    return std::unexpected(Error{"an event whose name was not told"});
  }
  if (!open_) {
    const bool has_room =
        peer.held.empty() || peer.held.size() + frame.size() <= options_.queue.bytes_max;
    if (!has_room && !ending_) {
      pause(peer);
      return {};
    }
    const std::string only = only_frame(std::exchange(peer.only, std::nullopt));
    if (has_room) peer.held.append(only).append(frame);
    return {};
  }
  find_receivers(peer, prefix);
  // The machine that sends an event has looked at the credit of its receivers.
  if (options_.queue.when_full == WhenFull::Block && peer.machine == nullptr) {
    std::map<int, std::vector<int>> full;
    for (RouterPeer* const to : receivers_) {
      auto workers = workers_without_room(*to, prefix.topic, wire::node_of(prefix.origin));
      if (!workers.empty()) full[to->node] = std::move(workers);
    }
    if (ending_) {
      std::erase_if(receivers_, [&](const RouterPeer* to) { return full.contains(to->node); });
    } else if (!full.empty()) {
      peer.waits_for = std::move(full);
      pause(peer);
      return {};
    }
  }
  ++peer.counts.events_in;
  peer.counts.bytes_in += frame.size();
  // The machine that has begun the run keeps it, and nothing that it has of itself.
  const bool is_retained = (prefix.flags & wire::kRetainedFlag) != 0 && !joins() && !peer.only;
  if (prefix.shared > 0) {
    if (Result<void> known = name_arenas(peer, prefix, frame, receivers_, is_retained); !known) {
      return known;
    }
  }
  relay(&peer, prefix, frame, receivers_);
  peer.only.reset();
  return is_retained ? retain(peer, prefix, frame) : Result<void>();
}

void Router::pause(RouterPeer& peer) {
  peer.waits = true;
  peer.waits_since = sys::EventLoop::now();
  peer.waited_for = peer.full_workers();
  if (peer.machine != nullptr) return;  // Its stream has no room then.
  // This also ends the watch for room to write.
  loop_.unwatch(peer.socket.get());
  if (std::exchange(peer.writing, false) && !peer.eof) flush(peer);
}

Result<void> Router::take_report(RouterPeer& peer, const wire::WorkerReport& report) {
  return match(
      report, [&](const wire::TopicWord& it) -> Result<void> { return routes_.tell_topic(it); },
      [&](const wire::WantWord& it) -> Result<void> { return take_want(peer, it); },
      [&](const wire::SettledWord&) -> Result<void> {
        const bool again = roll_.at(peer.node).settled_once;
        roll_.set(peer.node, Presence::Settled);
        tell_peers(peer.node, {.node = peer.node,
                               .change = again ? "again" : "settled",
                               .roles = roll_.at(peer.node).roles});
        reply(meetings_.look());
        open_if_all_are_settled();
        return {};
      },
      [&](const wire::BeginWord&) -> Result<void> {
        options_.on_begin(peer.node);
        return {};
      },
      [&](const wire::FinishWord& it) -> Result<void> {
        options_.on_finish(peer.node, it);
        return {};
      },
      [&](const wire::WaitedWord& it) -> Result<void> {
        const Duration now = sys::EventLoop::now();
        Wait wait{.name = it.name, .from = now - Duration(it.ms), .to = now};
        if (it.from) wait.whom.push_back(*it.from);
        tell_wait(peer.node, wait);
        return {};
      });
}

Result<void> Router::take_want(RouterPeer& peer, const wire::WantWord& word) {
  if (!word.wanted) {
    routes_.want_not(peer.node, word.name);
    tell_need(peer.node, word.name, false);
    return {};
  }
  auto added = routes_.want(peer.node, word.name);
  if (!added) return std::unexpected(std::move(added.error()));
  tell_need(peer.node, word.name, true);
  for (const std::uint64_t topic : *added) send_retained(peer, topic);
  return {};
}

Result<void> Router::take_request(RouterPeer& peer, std::uint64_t sequence,
                                  const wire::WorkerRequest& asked) {
  const Asker asker{.node = peer.node, .sequence = sequence};
  const Duration now = sys::EventLoop::now();
  const auto request = still_asked(asked, now);
  if (!request) return {};
  if (joins() && !std::holds_alternative<wire::StatusRequest>(*request)) {
    ask_hub(peer, sequence, *request);
    return {};
  }
  match(
      *request, [&](const wire::ReadyRequest& it) { reply(meetings_.ask(asker, it, now)); },
      [&](const wire::BarrierRequest& it) { reply(meetings_.ask(asker, it, now)); },
      [&](const wire::StatusRequest&) { reply({{.to = asker, .reply = {.status = status()}}}); },
      [&](const wire::WithdrawRequest&) { reply(meetings_.withdraw(asker, now)); });
  watch_deadlines();
  return {};
}

// --- what goes ---

Result<void> Router::name_arenas(const RouterPeer& from, const wire::FramePrefix& prefix,
                                 std::string_view frame, const std::vector<RouterPeer*>& receivers,
                                 bool is_retained) {
  std::vector<ArenaRelay::End> ends;
  ends.reserve(receivers.size() + 1);
  for (const RouterPeer* const to : receivers) {
    // Another machine gets a copy.
    if (to->machine == nullptr) ends.push_back(end_of(*to));
  }
  if (is_retained) ends.push_back(ArenaRelay::kRetained);
  for (std::size_t i = 0; i < prefix.shared; ++i) {
    const ArenaRelay::Arena arena{.sender = end_of(from),
                                  .number = wire::arena_at(frame, prefix, i)};
    if (Result<void> known = arenas_.named(arena, ends); !known) return known;
  }
  return {};
}

void Router::relay(RouterPeer* from, const wire::FramePrefix& prefix, std::string_view frame,
                   const std::vector<RouterPeer*>& receivers) {
  for (RouterPeer* const to : receivers) {
    if (make_room(from, *to, prefix)) {
      if (const Result<void> done = put(*to, prefix, frame, end_of(*from)); !done) {
        refuse(*from, *to, prefix, done.error().message);
      }
    } else {
      release_arenas(end_of(*to), end_of(*from), prefix, frame);
    }
  }
}

void Router::release_arenas(ArenaRelay::End holder, ArenaRelay::End sender,
                            const wire::FramePrefix& prefix, std::string_view frame) {
  for (std::size_t i = 0; i < prefix.shared; ++i) {
    arenas_.released(
        holder, ArenaRelay::Arena{.sender = sender, .number = wire::arena_at(frame, prefix, i)});
  }
}

bool Router::make_room(RouterPeer* from, RouterPeer& to, const wire::FramePrefix& prefix) {
  // With Block nothing comes here for which there is no room, here or on the machine that sends it.
  if (options_.queue.when_full == WhenFull::Block || !to.outbox.full()) return true;
  flush(to);
  if (options_.queue.when_full == WhenFull::Fail && to.outbox.full()) {
    ++to.counts.refused;
    refuse(*from, to, prefix, {});
    return false;
  }
  while (to.outbox.full()) {
    const Outbox::DroppedEvents dropped = to.outbox.drop_oldest();
    if (dropped.events.empty()) return true;
    for (const auto& [topic, count] : dropped.events) to.counts.dropped += count;
    for (const std::uint64_t alias : dropped.aliases) arenas_.released(end_of(to), alias);
    for (const std::uint64_t alias : dropped.unsent) arenas_.forget_alias(end_of(to), alias);
  }
  return true;
}

Result<void> Router::put(RouterPeer& to, const wire::FramePrefix& prefix, std::string_view frame,
                         ArenaRelay::End sender) {
  if (to.machine != nullptr && prefix.shared > 0) {
    const auto whole = raw(sender, prefix, frame);
    if (!whole) return std::unexpected(whole.error());
    wire::FramePrefix fresh = prefix;
    fresh.shared = 0;
    return put(to, fresh, *whole, sender);
  }
  if (to.told.insert(prefix.topic).second) say(to, *routes_.find(prefix.topic));
  const bool has_credit =
      options_.queue.when_full == WhenFull::Block && !is_here(wire::node_of(prefix.origin));
  to.outbox.add_event(frame, prefix.topic,
                      has_credit ? Outbox::BoundBy::Sender : Outbox::BoundBy::This);
  for (std::size_t i = 0; i < prefix.shared; ++i) {
    const ArenaRelay::Alias alias =
        arenas_.alias({.sender = sender, .number = wire::arena_at(frame, prefix, i)}, end_of(to));
    to.outbox.add_share(alias.number, alias.descriptor);
    const auto [bytes, at] = to.outbox.back();
    wire::set_arena_at(*bytes, at, prefix, i, alias.number);
  }
  ++to.counts.events_out;
  to.counts.bytes_out += frame.size();
  to.counts.waiting_most = std::max(to.counts.waiting_most, to.outbox.events());
  dirty_.insert(to.node);
  if (to.machine != nullptr) use_credit(to, prefix, frame.size());
  return {};
}

void Router::send_releases() {
  for (const ArenaRelay::Arena& arena : arenas_.take_releases()) {
    RouterPeer* const to = find(wire::node_of(static_cast<std::uint32_t>(arena.sender)));
    if (to == nullptr || end_of(*to) != arena.sender) continue;
    to->add_word({.kind = wire::FrameKind::Release, .topic = arena.number});
    dirty_.insert(to->node);
  }
}

void Router::say(RouterPeer& to, const wire::WorkerOrder& order) {
  to.add_word({.kind = wire::FrameKind::Order, .fields = wire::to_fields(order)});
  dirty_.insert(to.node);
}

Outbox Router::outbox_for(int node) {
  return {options_.queue, [this, node](const Outbox::Losses& losses) {
            std::string words;
            for (const auto& [topic, count] : losses) {
              const wire::WorkerOrder order =
                  wire::LostWord{.name = routes_.find(topic)->name, .node = node, .count = count};
              words +=
                  word_text({.kind = wire::FrameKind::Order, .fields = wire::to_fields(order)});
            }
            return words;
          }};
}

void Router::refuse(RouterPeer& from, RouterPeer& to, const wire::FramePrefix& prefix,
                    const std::string& why) {
  const int emitter = wire::node_of(prefix.origin);
  RouterPeer::Refusal refusal{.topic = prefix.topic, .is_full = why.empty()};
  if (from.machine != nullptr) refusal.only = emitter;
  const bool is_too_large = !why.empty() && (prefix.flags & wire::kRetainedFlag) != 0;
  for (const int node : workers_behind(to, prefix.topic, emitter)) {
    refusal.node = node;
    if (is_too_large) note_unreached(prefix, node, why);
    say_refused(from, refusal, {.count = 1, .why = why});
  }
}

void Router::say_refused(RouterPeer& to, const RouterPeer::Refusal& what,
                         const RouterPeer::RefusedEvents& events) {
  RouterPeer::RefusedEvents& all = to.refusals[what];
  all.count += events.count;
  all.why = events.why;
  dirty_.insert(to.node);
}

void Router::tell_refusals(RouterPeer& to) {
  for (const auto& [what, events] : std::exchange(to.refusals, {})) {
    if (what.only) say_word(to, OnlyWord{.node = *what.only});
    say(to, wire::LostWord{.name = routes_.find(what.topic)->name,
                           .node = what.node,
                           .count = events.count,
                           .refused = true,
                           .why = events.why});
  }
}

void Router::reply(const Meetings::Answers& answers) {
  for (const MeetingAnswer& answer : answers) {
    RouterPeer* const to = way_to(answer.to.node);
    if (to == nullptr) continue;
    if (is_opening() && answer.reply.error.empty() && (answer.met || opens_)) {
      deferred_.push_back(answer);
      continue;
    }
    if (to->machine != nullptr) {
      reply_there(*to, answer);
      continue;
    }
    if (is_early(answer)) {
      early_.push_back(answer);
      continue;
    }
    if (answer.waited) tell_wait(to->node, *answer.waited);
    // Refusals of its events until then go first.
    tell_refusals(*to);
    to->add_word({.kind = wire::FrameKind::Reply,
                  .sequence = answer.to.sequence,
                  .fields = wire::to_fields(answer.reply)});
    dirty_.insert(to->node);
    // A large event, or much that was retained, is no fault of who reads it.
    if (to->outbox.bytes() > kUnreadMax && to->outbox.word_bytes() > kUnreadMax) {
      to_drop_.emplace_back(to->node, "it does not read what it has asked for");
    }
  }
}

void Router::tell_peers(int of, const wire::PeerWord& word) {
  for (const auto& [node, peer] : peers_) {
    // Each machine reports its own workers to all others.
    const bool hears = peer->machine != nullptr ? is_here(of) : routes_.hears(of, node);
    if (node != of && hears) say(*peer, word);
  }
}

std::string Router::roll_text() const {
  wire::RollWord roll{.topology = std::string(to_text(options_.topology)),
                      .hub = hub_of(options_),
                      .awaited = roll_.unknown()};
  for (const auto& [node, member] : roll_.members()) {
    roll.workers.push_back({.node = node, .roles = member.roles});
  }
  return word_text({.kind = wire::FrameKind::Order, .fields = wire::to_fields(roll)});
}

void Router::tell_roll() {
  roll_word_ = roll_text();
  for (const auto& [node, peer] : peers_) {
    if (peer->machine != nullptr) continue;
    peer->outbox.add_word(roll_word_);
    dirty_.insert(node);
  }
}

void Router::flush() {
  // Writing may let others go on, which fill the queues again.
  flush_dirty();
  go_on_reading_from_those_that_waited();
  for (const auto& [node, why] : std::exchange(to_drop_, {})) drop(node, why);
}

void Router::flush_dirty() {
  // Sending to a worker may make acknowledgements due, which go to other machines.
  while (!dirty_.empty()) {
    for (const int node : std::exchange(dirty_, {})) {
      if (RouterPeer* const peer = find(node)) flush(*peer);
    }
  }
}

bool Router::send_some(RouterPeer& peer) {
  if (peer.machine == nullptr) return peer.outbox.send_some(peer.socket.get());
  peer.machine->send_from(peer.outbox, sys::EventLoop::now());
  return true;
}

void Router::flush(RouterPeer& peer) {
  if (peer.eof || peer.writing || !send_some(peer)) return;
  // After the send: once the queue has drained, nothing else may flush it again.
  if (!peer.refusals.empty() && peer.outbox.bytes() < kLittle) {
    tell_refusals(peer);
    if (!send_some(peer)) return;
  }
  send_acks(peer);
  // The link to a machine says itself when it has room.
  if (peer.machine != nullptr || peer.outbox.empty()) return;
  peer.writing = true;
  loop_.when_writable(peer.socket.get(), [this, node = peer.node] {
    RouterPeer* const there = find(node);
    if (there == nullptr) return;
    there->writing = false;
    flush(*there);
    flush();
  });
}

}  // namespace trainyard::workers
