// The router, continued: peers that come and go, and those that wait for them.
#include <algorithm>
#include <variant>

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "sys/passing.h"
#include "wire/control.h"
#include "wire/field_reader.h"
#include "wire/parallel_record.h"
#include "workers/machine.h"
#include "workers/router.h"

namespace trainyard::workers {

std::string word_text(const wire::Frame& word) {
  return wire::encode(word, wire::kWorkerLimits).value_or(std::string());
}

void RouterPeer::add_word(const wire::Frame& word) { outbox.add_word(word_text(word)); }

bool RouterPeer::has_room_for(const std::vector<int>& workers) const {
  return outbox.has_room() && std::ranges::none_of(workers, [this](int worker) {
           const auto credit = credits.find(worker);
           return credit != credits.end() && !credit->second.has_room();
         });
}

std::vector<int> RouterPeer::full_workers() const {
  std::vector<int> all;
  for (const auto& [number, workers] : waits_for) {
    all.insert(all.end(), workers.begin(), workers.end());
  }
  std::ranges::sort(all);
  return all;
}

namespace {

/// Counts of events and bytes from it and to it.
void add_counts(nlohmann::json& to, const RouterPeer& peer) {
  to["events_in"] = peer.counts.events_in;
  to["bytes_in"] = peer.counts.bytes_in;
  to["events_out"] = peer.counts.events_out;
  to["bytes_out"] = peer.counts.bytes_out;
  to["dropped"] = peer.counts.dropped;
  to["refused"] = peer.counts.refused;
  to["queued_events"] = peer.outbox.events();
  to["queued_bytes"] = peer.outbox.bytes();
}

nlohmann::json machine_status(const RouterPeer& peer, Duration now) {
  std::vector<int> nodes;
  for (const MachineNode& each : peer.machine->entry().nodes) nodes.push_back(each.node);
  nlohmann::json one{{"host", peer.machine->entry().host},
                     {"nodes", std::move(nodes)},
                     {"heard_ms", (now - peer.machine->last_message_at()).count()}};
  add_counts(one, peer);
  return one;
}

/// `whom` without the worker itself: the last worker to arrive at a meeting is one of those that
/// the others wait for, but does not wait for itself.
std::vector<int> others_than(int node, std::vector<int> whom) {
  std::erase(whom, node);
  return whom;
}

Wait wait_of(int node, const MeetingWait& wait) {
  return {.kind = wait.kind,
          .name = wait.name,
          .whom = others_than(node, wait.whom),
          .from = wait.since,
          .to = sys::EventLoop::now()};
}

Wait wait_for_room(const RouterPeer& peer) {
  return {.kind = wire::WaitKind::Room,
          .whom = others_than(peer.node, peer.waited_for),
          .from = peer.waits_since,
          .to = sys::EventLoop::now()};
}

}  // namespace

void Router::open_if_all_are_settled() {
  if (opens_ || !roll_.is_open()) return;
  opens_ = true;
  // When nobody's frames are being taken.
  loop_.post([this] {
    open_ = true;
    for (const auto& [node, peer] : peers_) {
      // Frames that were held back are read now, before the bytes that arrived after them.
      peer->held_left = peer->held.size();
      peer->bytes.insert(0, std::exchange(peer->held, {}));
      to_go_on_.insert(node);
      opening_.insert(node);
    }
    flush();
  });
}

void Router::answer_when_all_held_has_gone() {
  if (is_opening() || (!owes_mark_ && deferred_.empty())) return;
  for (const auto& [node, peer] : peers_) {
    if (owes_mark_ && peer->machine != nullptr) say_mark(*peer);
  }
  owes_mark_ = false;
  reply(std::exchange(deferred_, {}));
}

void Router::go_on_reading_from_those_that_waited() {
  for (const auto& [node, peer] : peers_) {
    if (!peer->waits || !(open_ || ending_)) continue;
    std::erase_if(peer->waits_for, [this](const auto& full) {
      const RouterPeer* const other = find(full.first);
      return other == nullptr || other->eof || other->has_room_for(full.second);
    });
    if (peer->waits_for.empty()) to_go_on_.insert(node);
  }
  while (!to_go_on_.empty()) {
    const int node = *to_go_on_.begin();
    to_go_on_.erase(to_go_on_.begin());
    RouterPeer* const peer = find(node);
    if (peer == nullptr) continue;
    if (peer->waits && !peer->waited_for.empty()) {
      tell_wait(node, wait_for_room(*peer));
      peer->waited_for.clear();
    }
    if (std::exchange(peer->waits, false) && !peer->eof && peer->machine == nullptr) {
      loop_.watch_readable(peer->socket.get(), [this, node] {
        if (RouterPeer* const there = find(node)) read(*there);
      });
    }
    if (Result<void> taken = take_frames(*peer); !taken) {
      to_drop_.emplace_back(node, taken.error().message);
      continue;
    }
    if (peer->held_left == 0) opening_.erase(node);
    if (peer->machine != nullptr) peer->machine->show_room(sys::EventLoop::now());
    end_if_all_has_gone(node);
  }
  answer_when_all_held_has_gone();
  send_releases();
  flush_dirty();
}

void Router::tell_wait(int node, const MeetingWait& wait) { tell_wait(node, wait_of(node, wait)); }

void Router::tell_wait(int node, const Wait& wait) {
  if (options_.on_wait) options_.on_wait(node, wait);
}

std::vector<std::pair<int, Wait>> Router::open_waits() const {
  std::vector<std::pair<int, Wait>> open;
  for (const auto& [node, wait] : meetings_.open_waits()) {
    if (is_here(node)) open.emplace_back(node, wait_of(node, wait));
  }
  for (const auto& [node, peer] : peers_) {
    if (peer->waits && !peer->waited_for.empty()) open.emplace_back(node, wait_for_room(*peer));
  }
  return open;
}

void Router::drop(int node, const std::string& why) {
  const auto found = peers_.find(node);
  if (found == peers_.end()) return;
  RouterPeer& peer = *found->second;
  if (peer.machine != nullptr) return options_.elsewhere->on_left(node, why);
  if (!why.empty()) {
    options_.on_refused(node, why);
    peer.add_word({.kind = wire::FrameKind::Failure, .fields = wire::failure_fields(why)});
    peer.outbox.send_some(peer.socket.get());
  }
  for (const auto& [whose, wait] : open_waits()) {
    if (whose == node) tell_wait(node, wait);
  }
  loop_.unwatch(peer.socket.get());
  arenas_.forget(end_of(peer));
  routes_.forget(node);
  forget_needs(node);
  peer.eof = true;
  send_acks(peer);
  peers_.erase(found);
  opening_.erase(node);
  reply(meetings_.disconnect(node));
  send_releases();
  flush();
}

void Router::has_ended(int node, Presence presence, const std::string& outcome,
                       const std::string& why) {
  roll_.set(node, presence);
  std::string_view change = "failed";
  if (presence == Presence::Finished) change = "finished";
  if (presence == Presence::Awaited) change = "lost";
  const wire::PeerWord word{.node = node,
                            .change = std::string(change),
                            .outcome = outcome,
                            .why = why,
                            .roles = roll_.at(node).roles};
  RouterPeer* const peer = find(node);
  if (peer != nullptr && presence == Presence::Finished) {
    // All that it sent goes first.
    const Result<void> rest = read_rest(*peer);
    if (!rest) options_.on_refused(node, rest.error().message);
    peer->end = word;
    reply(meetings_.look(node));
    open_if_all_are_settled();
    end_if_all_has_gone(node);
    return flush();
  }
  drop(node, {});
  if (presence != Presence::Awaited) ended_[node] = word;
  tell_peers(node, word);
  reply(meetings_.look(node));
  open_if_all_are_settled();
  flush();
}

void Router::at_its_end(RouterPeer& peer) {
  peer.eof = true;
  peer.writing = false;
  loop_.unwatch(peer.socket.get());
  routes_.forget(peer.node);
  send_acks(peer);
  if (!peer.is_pending() && !peer.end) return drop(peer.node, {});
  flush();
}

Result<void> Router::read_rest(RouterPeer& peer) {
  while (!peer.eof) {
    std::vector<sys::Descriptor> descriptors;
    const auto count =
        sys::receive_with(peer.socket.get(), read_buffer_, descriptors, MSG_DONTWAIT);
    for (sys::Descriptor& each : descriptors) {
      if (Result<void> taken = arenas_.take(end_of(peer), std::move(each)); !taken) return taken;
    }
    if (count <= 0) break;
    peer.bytes.append(read_buffer_.data(), static_cast<std::size_t>(count));
  }
  if (!peer.eof) {
    peer.eof = true;
    peer.writing = false;
    loop_.unwatch(peer.socket.get());
    routes_.forget(peer.node);
    send_acks(peer);
  }
  return take_frames(peer);
}

void Router::end_if_all_has_gone(int node) {
  RouterPeer* const peer = find(node);
  if (peer == nullptr || !peer->end || peer->is_pending()) return;
  const wire::PeerWord word = *peer->end;
  drop(node, {});
  ended_[node] = word;
  tell_peers(node, word);
}

void Router::catch_up(int node) {
  // Its end is in there, too: it is gone then.
  while (RouterPeer* const peer = find(node)) {
    const std::uint64_t before = peer->reads;
    read(*peer);
    const RouterPeer* const still = find(node);
    if (still != nullptr && still->reads == before) return look_ahead(*still);
  }
}

void Router::look_ahead(const RouterPeer& peer) {
  std::string_view rest = peer.bytes;
  while (true) {
    const auto read = wire::read_prefix(rest, wire::kWorkerLimits);
    // A violation of the protocol is found when it is taken.
    if (!read) return;
    const std::optional<wire::FramePrefix>& prefix = *read;
    if (!prefix || rest.size() < prefix->bytes()) return;
    const std::string_view frame = rest.substr(0, prefix->bytes());
    rest.remove_prefix(frame.size());
    if (prefix->kind != wire::FrameKind::Report) continue;
    const auto whole = wire::read_frame(*prefix, frame);
    if (!whole) return;
    const auto report = wire::read_worker_report(whole->fields);
    if (!report) return;
    if (std::holds_alternative<wire::BeginWord>(*report)) options_.on_begin(peer.node);
    const auto* const finish = std::get_if<wire::FinishWord>(&*report);
    if (finish != nullptr) options_.on_finish(peer.node, *finish);
  }
}

void Router::end_all(const wire::EndWord& word) {
  ending_ = true;
  for (const auto& [node, peer] : peers_) {
    peer->waits_for.clear();
    if (peer->machine == nullptr) say(*peer, word);
  }
  flush();
}

void Router::watch_deadlines() {
  const auto timer = std::exchange(timer_, std::nullopt);
  if (timer) loop_.cancel(*timer);
  const auto next = meetings_.next_deadline();
  if (!next) return;
  const Duration left = std::max(Duration(0), *next - sys::EventLoop::now());
  timer_ = loop_.after(left, [this] {
    timer_.reset();
    reply(meetings_.overdue(sys::EventLoop::now()));
    watch_deadlines();
    flush();
  });
}

std::string Router::status() const {
  nlohmann::json workers = nlohmann::json::array();
  const Duration now = sys::EventLoop::now();
  for (const auto& [node, member] : roll_.members()) {
    nlohmann::json one{{"node", node},
                       {"roles", member.roles},
                       {"presence", std::string(to_text(member.presence))}};
    const auto found = peers_.find(node);
    if (found != peers_.end()) {
      const RouterPeer& peer = *found->second;
      one["life"] = peer.life;
      one["connected_ms"] = (now - peer.since).count();
      add_counts(one, peer);
      one["queued_most"] = peer.counts.waiting_most;
      one["waits_for"] = peer.full_workers();
    }
    workers.push_back(std::move(one));
  }
  nlohmann::json machines = nlohmann::json::array();
  for (const auto& [node, peer] : peers_) {
    if (peer->machine != nullptr) machines.push_back(machine_status(*peer, now));
  }
  nlohmann::json barriers = nlohmann::json::array();
  for (const Meetings::Waiting& each : meetings_.waiting()) {
    barriers.push_back(
        {{"name", each.barrier}, {"arrived", each.arrived}, {"missing", each.missing}});
  }
  return wire::fields_text({{"topology", std::string(to_text(options_.topology))},
                            {"open", open_},
                            {"workers", std::move(workers)},
                            {"machines", std::move(machines)},
                            {"barriers", std::move(barriers)}});
}

}  // namespace trainyard::workers
