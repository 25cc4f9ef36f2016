// Of the router: the last event of each topic that is to be kept, and who gets it.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "wire/frame.h"
#include "wire/worker.h"
#include "workers/arena_relay.h"
#include "workers/machine_words.h"
#include "workers/router.h"
#include "workers/router_peer.h"

namespace trainyard::workers {

Result<void> Router::retain(const RouterPeer& from, const wire::FramePrefix& prefix,
                            std::string_view frame) {
  const auto before = retained_.find(prefix.topic);
  const bool replaces = before != retained_.end();
  const std::uint64_t shared = wire::shared_bytes(frame, prefix);
  std::uint64_t others = retained_bytes_;
  std::uint64_t others_shared = retained_shared_;
  if (replaces) {
    others -= before->second.bytes.size();
    others_shared -= before->second.shared;
  }
  const bool is_too_much = frame.size() > kRetainedBytesMax - others;
  if (is_too_much || shared > kRetainedSharedMax - others_shared) {
    return std::unexpected(Error{fmt::format(
        "event '{}': retained events would exceed {}; retain fewer or smaller ones",
        routes_.find(prefix.topic)->name, is_too_much ? "256 MiB" : "16 GiB in shared memory")});
  }
  if (replaces) {
    for (std::size_t i = 0; i < before->second.prefix.shared; ++i) {
      arenas_.released(prefix.topic,
                       ArenaRelay::Arena{.sender = before->second.sender,
                                         .number = wire::arena_at(before->second.bytes,
                                                                  before->second.prefix, i)});
    }
  }
  retained_bytes_ = others + frame.size();
  retained_shared_ = others_shared + shared;
  retained_[prefix.topic] = {.bytes = std::string(frame),
                             .prefix = prefix,
                             .sender = end_of(from),
                             .node = wire::node_of(prefix.origin),
                             .shared = shared};
  return {};
}

void Router::forget_retained(ArenaRelay::End sender) {
  std::erase_if(retained_, [&](const auto& entry) {
    const Retained& last = entry.second;
    if (last.sender != sender || last.prefix.shared == 0) return false;
    retained_bytes_ -= last.bytes.size();
    retained_shared_ -= last.shared;
    return true;
  });
}

void Router::send_retained(RouterPeer& to, std::uint64_t topic) {
  const auto found = retained_.find(topic);
  if (found == retained_.end() || !routes_.hears(found->second.node, to.node)) return;
  const Retained& last = found->second;
  // Of one that lies in the memory of a worker that is gone nothing is left.
  for (std::size_t i = 0; i < last.prefix.shared; ++i) {
    const ArenaRelay::Arena arena{.sender = last.sender,
                                  .number = wire::arena_at(last.bytes, last.prefix, i)};
    if (!arenas_.named(arena, {end_of(to)})) return;
  }
  static_cast<void>(put(to, last.prefix, last.bytes, last.sender));
}

void Router::send_retained_alone(RouterPeer& to, std::uint64_t topic, const NeedWord& need) {
  const auto found = retained_.find(topic);
  if (found == retained_.end() || !routes_.hears(found->second.node, need.node)) return;
  const Retained& last = found->second;
  std::string frame = last.bytes;
  if (last.prefix.shared > 0) {
    auto whole = raw(last.sender, last.prefix, last.bytes);
    if (!whole) return;  // As above: what lay there is gone.
    frame = *std::move(whole);
  }
  if (to.told.insert(topic).second) say(to, *routes_.find(topic));
  // Not as an event, which could be dropped without the word that says for whom it is.
  to.outbox.add_word(only_frame(OnlyWord{.node = need.node, .name = need.name}) + frame);
  dirty_.insert(to.node);
}

}  // namespace trainyard::workers
