// The router, continued: the other machines of the run, each of which receives events, and sends
// those of its workers.
#include <algorithm>
#include <expected>

#include <fmt/format.h>

#include "base/match.h"
#include "workers/machine.h"
#include "workers/router.h"

namespace trainyard::workers {
namespace {

/// A machine that joins gets the machine that has begun the run as the first in the list.
constexpr int kHubNumber = -1;
/// A reply to a worker in an earlier life is none to this one: its life stands in the number of
/// the request.
constexpr unsigned kLifeShift = 40;
constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kLifeShift) - 1;

std::string word_frame(const MachineWord& word) {
  return word_text({.kind = wire::FrameKind::Report, .fields = to_fields(word)});
}

}  // namespace

// --- who is there ---

void Router::admit(Machine& machine) {
  const int number = machine.number();
  auto peer = std::make_unique<RouterPeer>(number, 1, sys::Descriptor(),
                                           outbox_for(machine.entry().nodes.front().node));
  RouterPeer& it = *peer;
  it.machine = &machine;
  it.since = sys::EventLoop::now();
  peers_[number] = std::move(peer);
  for (const MachineNode& each : machine.entry().nodes) roll_.add(each.node, each.roles);
  tell_roll();
  // Needs come first: once all are settled, a machine sends the events that are needed by then.
  for (const auto& [name, nodes] : needs_) {
    for (const int node : nodes) say_word(it, NeedWord{.node = node, .name = name});
  }
  tell_own_state(it);
}

void Router::tell_own_state(RouterPeer& to) {
  for (const auto& each : options_.nodes) {
    const int node = each.first;
    const Member& member = roll_.at(node);
    const auto tell = [&](const char* change) {
      say(to, wire::PeerWord{.node = node, .change = change, .roles = each.second});
    };
    if (member.settled_once) tell("settled");
    const auto ended = ended_.find(node);
    if (ended != ended_.end()) {
      say(to, ended->second);
    } else if (member.settled_once && member.presence < Presence::Settled) {
      tell("lost");
    }
  }
}

void Router::expect(int unknown) { roll_.expect(unknown); }

bool Router::is_anybody_here() const {
  return std::ranges::any_of(options_.nodes,
                             [this](const auto& it) { return roll_.counts(it.first); });
}

bool Router::has_all_gone() const {
  return std::ranges::all_of(peers_, [](const auto& it) { return it.second->machine != nullptr; });
}

bool Router::is_anybody_elsewhere() const {
  return std::ranges::any_of(roll_.members(), [this](const auto& it) {
    return !is_here(it.first) && roll_.counts(it.first);
  });
}

bool Router::is_anybody_at(const Machine& machine) const {
  return std::ranges::any_of(machine.entry().nodes,
                             [this](const MachineNode& it) { return roll_.counts(it.node); });
}

RouterPeer* Router::way_to(int node) {
  if (is_here(node) || options_.elsewhere == nullptr) return find(node);
  for (const auto& [number, peer] : peers_) {
    if (peer->machine != nullptr && peer->machine->has(node)) return peer.get();
  }
  return nullptr;
}

void Router::forget_machine(int number, const std::string& why) {
  const RouterPeer* const peer = find(number);
  if (peer == nullptr) return;
  const std::vector<MachineNode> nodes = peer->machine->entry().nodes;
  routes_.forget(number);
  marks_.erase(number);
  marks_heard_.erase(number);
  peers_.erase(number);
  opening_.erase(number);
  std::vector<int> failed;
  for (const MachineNode& each : nodes) {
    if (!roll_.counts(each.node)) continue;
    roll_.set(each.node, Presence::Failed);
    ended_[each.node] = {.node = each.node,
                         .change = "failed",
                         .outcome = "failed",
                         .why = why,
                         .roles = each.roles};
    tell_peers(each.node, ended_[each.node]);
    reply(meetings_.look(each.node));
    failed.push_back(each.node);
  }
  open_if_all_are_settled();
  reply(std::exchange(early_, {}));
  flush();
  for (const int node : failed) options_.elsewhere->on_failed(node, why);
}

// --- what comes ---

std::size_t Router::untaken_of(int number) {
  const RouterPeer* const peer = find(number);
  // The beginning of a frame is taken: the rest of it is waited for.
  return peer == nullptr || !peer->waits ? 0 : peer->bytes.size();
}

bool Router::is_drained(int number) {
  const RouterPeer* const peer = find(number);
  return peer == nullptr || (peer->outbox.empty() && peer->refusals.empty());
}

void Router::take(int number, std::string_view bytes) {
  RouterPeer* const peer = find(number);
  if (peer == nullptr) return;
  peer->bytes.append(bytes);
  if (const Result<void> taken = take_frames(*peer); !taken) {
    to_drop_.emplace_back(number, fmt::format("{} says what cannot be: {}", peer->machine->name(),
                                              taken.error().message));
  }
  send_releases();
  flush();
}

void Router::has_room(int number) {
  RouterPeer* const peer = find(number);
  if (peer == nullptr) return;
  flush(*peer);
  flush();
}

Result<void> Router::take_of_machine(RouterPeer& peer, const wire::FramePrefix& prefix,
                                     std::string_view frame) {
  const auto whole = wire::read_frame(prefix, frame);
  if (!whole) return std::unexpected(whole.error());
  switch (prefix.kind) {
    case wire::FrameKind::Report: {
      const auto word = read_machine_word(whole->fields);
      if (!word) return std::unexpected(word.error());
      return take_word(peer, *word);
    }
    case wire::FrameKind::Order: {
      const auto order = wire::read_worker_order(whole->fields);
      if (!order) return std::unexpected(order.error());
      return take_order(peer, *order);
    }
    case wire::FrameKind::Request:
      return take_request_there(peer, *whole);
    case wire::FrameKind::Reply:
      return take_reply_there(peer, *whole);
    default:
      return std::unexpected(Error{"a frame of a kind that a machine does not send"});
  }
}

Result<void> Router::take_word(RouterPeer& peer, const MachineWord& word) {
  return match(
      word,
      [&](const CameWord& it) -> Result<void> {
        if (peer.node != kHubNumber || !joins()) return std::unexpected(Error{"who has come"});
        options_.elsewhere->on_came(it);
        return {};
      },
      [&](const LeaveWord& it) -> Result<void> {
        to_drop_.emplace_back(peer.node, it.why);
        return {};
      },
      [&](const NeedWord& it) -> Result<void> { return take_need(peer, it); },
      [&](const LastWord& it) -> Result<void> {
        take_last(peer, it);
        return {};
      },
      [&](const MarkWord& it) -> Result<void> {
        marks_heard_[peer.node] = it.mark;
        reply(std::exchange(early_, {}));
        return {};
      },
      [&](const OnlyWord& it) -> Result<void> {
        peer.only = it;
        return {};
      },
      [&](const AckRequestWord& it) -> Result<void> { return take_ack_request(peer, it); },
      [&](const AckWord& it) -> Result<void> { return take_ack(peer, it); });
}

Result<void> Router::take_need(RouterPeer& peer, const NeedWord& word) {
  if (!peer.machine->has(word.node)) {
    return std::unexpected(Error{"what a worker wants that is not its own"});
  }
  peer.needing.clear();
  std::set<int>& nodes = peer.needs[word.name];
  if (!word.wanted) {
    nodes.erase(word.node);
    if (!nodes.empty()) return {};
    peer.needs.erase(word.name);
    routes_.want_not(peer.node, word.name);
    return {};
  }
  nodes.insert(word.node);
  if (const auto added = routes_.want(peer.node, word.name); !added) {
    return std::unexpected(added.error());
  }
  if (joins()) {
    RouterPeer* const hub = find(kHubNumber);
    if (hub == nullptr || hub == &peer) return {};
    // An event that a worker here retained before is in flight to where it is kept; one that it
    // retains from now on goes to both.
    say_word(*hub, LastWord{.of = peer.machine->id(), .node = word.node, .name = word.name});
    return {};
  }
  for (const std::uint64_t topic : routes_.topics_of(word.name)) {
    const auto last = retained_.find(topic);
    if (last == retained_.end()) continue;
    const RouterPeer* const from = way_to(last->second.node);
    // A third machine says itself when the events of its workers have gone there.
    const bool is_third = from != nullptr && from->machine != nullptr && from != &peer;
    if (!is_third) send_retained_alone(peer, topic, word);
  }
  return {};
}

Result<void> Router::take_ack_request(RouterPeer& peer, const AckRequestWord& word) {
  if (!is_here(word.node)) {
    return std::unexpected(Error{"what a worker of another machine has received"});
  }
  RouterPeer* const of = find(word.node);
  if (of == nullptr) {
    say_word(peer, AckWord{.node = word.node, .number = word.number});
    return {};
  }
  of->acks.push_back({.events_gone = of->outbox.events_gone() + of->outbox.events(),
                      .machine = peer.node,
                      .number = word.number});
  send_acks(*of);
  return {};
}

Result<void> Router::take_ack(RouterPeer& peer, const AckWord& word) {
  const auto credit = peer.credits.find(word.node);
  if (credit == peer.credits.end() || !credit->second.acknowledge(word.number)) {
    return std::unexpected(Error{"an acknowledgement that was not requested"});
  }
  return {};
}

void Router::send_acks(RouterPeer& of) {
  while (!of.acks.empty()) {
    const RouterPeer::Ack& next = of.acks.front();
    // Nothing of what waits for a worker that is gone will be received.
    if (!of.eof && next.events_gone > of.outbox.events_gone()) return;
    if (RouterPeer* const to = find(next.machine)) {
      say_word(*to, AckWord{.node = of.node, .number = next.number});
    }
    of.acks.pop_front();
  }
}

void Router::take_last(RouterPeer& peer, const LastWord& word) {
  const auto of = std::ranges::find_if(peers_, [&](const auto& it) {
    return it.second->machine != nullptr && it.second->machine->id() == word.of;
  });
  if (of == peers_.end()) return;
  for (const std::uint64_t topic : routes_.topics_of(word.name)) {
    const auto last = retained_.find(topic);
    if (last == retained_.end() || !peer.machine->has(last->second.node)) continue;
    send_retained_alone(*of->second, topic, {.node = word.node, .name = word.name});
  }
}

Result<void> Router::take_order(RouterPeer& peer, const wire::WorkerOrder& order) {
  return match(
      order, [&](const wire::TopicWord& it) -> Result<void> { return routes_.tell_topic(it); },
      [&](const wire::PeerWord& it) -> Result<void> { return take_peer_word(peer, it); },
      [&](const wire::LostWord& it) -> Result<void> {
        take_lost(peer, it);
        return {};
      },
      [](const wire::EndWord&) -> Result<void> {
        return std::unexpected(Error{"an end, which is for workers alone"});
      },
      [](const wire::RollWord&) -> Result<void> {
        return std::unexpected(Error{"a roll, which is for workers alone"});
      });
}

Result<void> Router::take_peer_word(RouterPeer& peer, const wire::PeerWord& word) {
  if (!peer.machine->has(word.node)) {
    return std::unexpected(Error{"what became of a worker that is not its own"});
  }
  const bool listens = word.change == "settled" || word.change == "again";
  Presence presence = Presence::Awaited;
  if (listens) presence = Presence::Settled;
  if (word.change == "finished") presence = Presence::Finished;
  if (word.change == "failed") presence = Presence::Failed;
  roll_.set(word.node, presence);
  if (presence == Presence::Finished || presence == Presence::Failed) ended_[word.node] = word;
  tell_peers(word.node, word);
  reply(listens ? meetings_.look() : meetings_.look(word.node));
  open_if_all_are_settled();
  // The run ends by that, which MachineEnd has said before unless that was lost.
  if (presence == Presence::Failed) {
    loop_.post(
        [this, node = word.node, why = word.why] { options_.elsewhere->on_failed(node, why); });
  }
  return {};
}

void Router::take_lost(RouterPeer& peer, const wire::LostWord& word) {
  const std::uint64_t topic = wire::topic_of(word.name);
  const std::optional<OnlyWord> only = std::exchange(peer.only, std::nullopt);
  if (routes_.find(topic) == nullptr) return;
  if (word.refused) {
    RouterPeer* const to = only ? find(only->node) : nullptr;
    if (to == nullptr) return;
    return say_refused(*to, {.topic = topic, .node = word.node, .is_full = word.why.empty()},
                       {.count = word.count, .why = word.why});
  }
  // A worker that receives events from no worker of that machine has lost nothing.
  const auto hears_any = [&](int node) {
    return std::ranges::any_of(peer.machine->entry().nodes,
                               [&](const MachineNode& it) { return routes_.hears(it.node, node); });
  };
  for (const int node : routes_.wanting(topic)) {
    RouterPeer* const to = find(node);
    if (to == nullptr || to->machine != nullptr || !hears_any(node)) continue;
    to->outbox.add_lost(topic, word.count);
    dirty_.insert(node);
  }
}

// --- what workers ask ---

void Router::ask_hub(const RouterPeer& peer, std::uint64_t sequence,
                     const wire::WorkerRequest& request) {
  RouterPeer* const hub = find(kHubNumber);
  if (hub == nullptr) return;  // The run ends.
  ++mark_;
  owes_mark_ = true;
  answer_when_all_held_has_gone();
  hub->add_word({.kind = wire::FrameKind::Request,
                 .topic = mark_,
                 .origin = static_cast<std::uint32_t>(peer.node),
                 .sequence = (std::uint64_t{peer.life} << kLifeShift) | sequence,
                 .fields = wire::to_fields(request)});
  dirty_.insert(kHubNumber);
}

Result<void> Router::take_request_there(RouterPeer& peer, const wire::Frame& frame) {
  const auto request = wire::read_worker_request(frame.fields);
  if (!request) return std::unexpected(request.error());
  const Asker asker{.node = static_cast<int>(frame.origin), .sequence = frame.sequence};
  if (joins() || !peer.machine->has(asker.node)) {
    return std::unexpected(Error{"a request of a worker that is not its own"});
  }
  marks_[peer.node] = frame.topic;
  const Duration now = sys::EventLoop::now();
  match(
      *request, [&](const wire::ReadyRequest& it) { reply(meetings_.ask(asker, it, now)); },
      [&](const wire::BarrierRequest& it) { reply(meetings_.ask(asker, it, now)); },
      [](const wire::StatusRequest&) {},
      [&](const wire::WithdrawRequest&) { reply(meetings_.withdraw(asker, now)); });
  watch_deadlines();
  return {};
}

void Router::reply_there(RouterPeer& to, const MeetingAnswer& answer) {
  // Refusals of its events go there first.
  tell_refusals(to);
  ReplyNote note{.met = answer.met};
  for (const auto& [number, mark] : marks_) {
    const RouterPeer* const other = find(number);
    if (other != nullptr && other != &to) note.marks.emplace_back(other->machine->id(), mark);
  }
  to.add_word({.kind = wire::FrameKind::Reply,
               .origin = static_cast<std::uint32_t>(answer.to.node),
               .sequence = answer.to.sequence,
               .fields = wire::to_fields(answer.reply),
               .buffers = {to_fields(note)}});
  dirty_.insert(to.node);
}

Result<void> Router::take_reply_there(RouterPeer& peer, const wire::Frame& frame) {
  auto answer = wire::read_worker_reply(frame.fields);
  const auto note =
      read_reply_note(frame.buffers.empty() ? std::string_view() : frame.buffers.front());
  if (!answer) return std::unexpected(answer.error());
  if (!note) return std::unexpected(note.error());
  const int node = static_cast<int>(frame.origin);
  const RouterPeer* const to = find(node);
  if (peer.node != kHubNumber || !is_here(node)) {
    return std::unexpected(Error{"a reply to a worker of another machine"});
  }
  if (to == nullptr || to->life != frame.sequence >> kLifeShift) return {};
  MeetingAnswer meeting{.to = {.node = node, .sequence = frame.sequence & kSequenceMask},
                        .reply = *std::move(answer),
                        .met = note->met};
  for (const auto& [id, mark] : note->marks) {
    for (const auto& [number, other] : peers_) {
      if (other->machine != nullptr && other->machine->id() == id) meeting.marks[number] = mark;
    }
  }
  reply({std::move(meeting)});
  return {};
}

bool Router::is_early(const MeetingAnswer& answer) const {
  if (!answer.met || options_.elsewhere == nullptr) return false;
  return std::ranges::any_of(joins() ? answer.marks : marks_, [this](const auto& it) {
    const auto heard = marks_heard_.find(it.first);
    return peers_.contains(it.first) && (heard == marks_heard_.end() || heard->second < it.second);
  });
}

// --- what goes ---

bool Router::reaches(const RouterPeer& peer, int from, const RouterPeer& to) const {
  if (to.machine == nullptr) return routes_.hears(from, to.node);
  // Each machine sends to all others itself.
  return peer.machine == nullptr &&
         std::ranges::any_of(to.machine->entry().nodes,
                             [&](const MachineNode& it) { return routes_.hears(from, it.node); });
}

void Router::find_receivers(RouterPeer& peer, const wire::FramePrefix& prefix) {
  receivers_.clear();
  if (peer.only) {
    RouterPeer* const to = find(peer.only->node);
    // A worker that listens once more, by a pattern, has had what was retained.
    const std::string& name = peer.only->name;
    const bool is_new = name.empty() || routes_.wants_first(peer.only->node, name, prefix.topic);
    const bool is_there = to != nullptr && !to->eof;
    if (is_there && is_new && end_of(*to) != prefix.origin) receivers_.push_back(to);
    return;
  }
  const int from = wire::node_of(prefix.origin);
  for (const int node : routes_.wanting(prefix.topic)) {
    RouterPeer* const to = find(node);
    if (to != nullptr && !to->eof && reaches(peer, from, *to)) receivers_.push_back(to);
  }
  const bool is_kept_there =
      (prefix.flags & wire::kRetainedFlag) != 0 && joins() && peer.machine == nullptr;
  RouterPeer* const hub = is_kept_there ? find(kHubNumber) : nullptr;
  if (hub != nullptr && std::ranges::find(receivers_, hub) == receivers_.end()) {
    receivers_.push_back(hub);
  }
}

const std::vector<int>& Router::needing(RouterPeer& to, std::uint64_t topic) const {
  const auto [entry, is_new] = to.needing.try_emplace(topic);
  if (is_new) {
    std::set<int> needing;
    for (const auto& [name, nodes] : to.needs) {
      if (Routes::matches(name, routes_.find(topic)->name)) {
        needing.insert(nodes.begin(), nodes.end());
      }
    }
    entry->second.assign(needing.begin(), needing.end());
  }
  return entry->second;
}

std::vector<int> Router::workers_behind(RouterPeer& to, std::uint64_t topic, int from) const {
  if (to.machine == nullptr) return {to.node};
  std::vector<int> hearing = needing(to, topic);
  std::erase_if(hearing, [&](int node) { return !routes_.hears(from, node); });
  // A retained event that nobody there wants yet goes there to be kept.
  if (hearing.empty()) hearing.push_back(to.machine->entry().nodes.front().node);
  return hearing;
}

std::vector<int> Router::workers_without_room(RouterPeer& to, std::uint64_t topic, int from) {
  if (to.outbox.full()) flush(to);
  if (to.outbox.full()) return workers_behind(to, topic, from);
  std::vector<int> without;
  for (const auto& [node, credit] : to.credits) {
    if (!credit.is_used_up() || !routes_.hears(from, node)) continue;
    if (std::ranges::binary_search(needing(to, topic), node)) without.push_back(node);
  }
  return without;
}

void Router::use_credit(RouterPeer& to, const wire::FramePrefix& prefix, std::size_t bytes) {
  if (options_.queue.when_full != WhenFull::Block) return;
  for (const int node : needing(to, prefix.topic)) {
    if (!routes_.hears(wire::node_of(prefix.origin), node)) continue;
    Credit& credit = to.credits.try_emplace(node, options_.queue).first->second;
    if (const auto number = credit.use(bytes)) {
      say_word(to, AckRequestWord{.node = node, .number = *number});
    }
  }
}

std::string Router::only_frame(const std::optional<OnlyWord>& only) {
  return only ? word_frame(*only) : std::string();
}

Result<std::string> Router::raw(ArenaRelay::End sender, const wire::FramePrefix& prefix,
                                std::string_view frame) {
  return raw_event(prefix, frame, [&](const wire::SharedBuffer& place) {
    return arenas_.bytes_of(sender, place);
  });
}

void Router::say_word(RouterPeer& to, const MachineWord& word) {
  to.outbox.add_word(word_frame(word));
  dirty_.insert(to.node);
}

void Router::say_mark(RouterPeer& to) {
  // Refusals before the mark count as part of what has come.
  tell_refusals(to);
  say_word(to, MarkWord{.mark = mark_});
}

void Router::say_to_machines(const MachineWord& word) {
  for (const auto& [number, peer] : peers_) {
    if (peer->machine != nullptr) say_word(*peer, word);
  }
  flush();
}

void Router::tell_need(int node, const std::string& name, bool wanted) {
  if (options_.elsewhere == nullptr) return;
  if (wanted) {
    needs_[name].insert(node);
  } else {
    const auto found = needs_.find(name);
    if (found == needs_.end() || found->second.erase(node) == 0) return;
    if (found->second.empty()) needs_.erase(found);
  }
  for (const auto& [number, peer] : peers_) {
    if (peer->machine == nullptr) continue;
    say_word(*peer, NeedWord{.node = node, .name = name, .wanted = wanted});
  }
}

void Router::forget_needs(int node) {
  std::vector<std::string> names;
  for (const auto& [name, nodes] : needs_) {
    if (nodes.contains(node)) names.push_back(name);
  }
  for (const std::string& each : names) tell_need(node, each, false);
}

}  // namespace trainyard::workers
