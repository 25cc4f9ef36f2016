// The router, continued: the last event of each topic that is to be kept, and who gets it.
#include <expected>

#include <fmt/format.h>

#include "base/check.h"
#include "workers/router.h"

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
    release_arenas(ArenaRelay::kRetained, end_of(from), prefix, frame);
    return std::unexpected(Error{fmt::format(
        "event '{}': retained events would exceed {}; retain fewer or smaller ones",
        routes_.find(prefix.topic)->name, is_too_much ? "256 MiB" : "16 GiB in shared memory")});
  }
  if (replaces) {
    const Retained& last = before->second;
    release_arenas(ArenaRelay::kRetained, last.sender, last.prefix, last.bytes);
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

void Router::send_retained(RouterPeer& to, std::uint64_t topic) {
  const auto found = retained_.find(topic);
  if (found == retained_.end() || !is_retained_for(found->second.node, to.node)) return;
  const Retained& last = found->second;
  if (last.sender == end_of(to)) return;
  for (std::size_t i = 0; i < last.prefix.shared; ++i) {
    const ArenaRelay::Arena arena{.sender = last.sender,
                                  .number = wire::arena_at(last.bytes, last.prefix, i)};
    check(arenas_.named(arena, {end_of(to)}).has_value(), "arenas of retained events are kept");
  }
  static_cast<void>(put(to, last.prefix, last.bytes, last.sender));
}

void Router::note_unreached(const wire::FramePrefix& prefix, int node, const std::string& why) {
  if (!unreached_.emplace(prefix.topic, node).second) return;
  options_.note(fmt::format("the retained event '{}' of worker {} did not reach worker {}: {}",
                            routes_.find(prefix.topic)->name, wire::node_of(prefix.origin), node,
                            why));
}

void Router::send_retained_alone(RouterPeer& to, std::uint64_t topic, const NeedWord& need) {
  const auto found = retained_.find(topic);
  // Its machine knows in which life it retained what is its own.
  if (found == retained_.end() || !is_retained_for(found->second.node, need.node)) return;
  const Retained& last = found->second;
  std::string frame = last.bytes;
  if (last.prefix.shared > 0) {
    auto whole = raw(last.sender, last.prefix, last.bytes);
    if (!whole) {
      const std::string& why = whole.error().message;
      note_unreached(last.prefix, need.node, why);
      if (RouterPeer* const from = find(last.node)) {
        say_refused(*from, {.topic = topic, .node = need.node}, {.count = 1, .why = why});
      }
      return;
    }
    frame = *std::move(whole);
  }
  if (to.told.insert(topic).second) say(to, *routes_.find(topic));
  // Not as an event, which could be dropped without the word that says for whom it is.
  to.outbox.add_word(only_frame(OnlyWord{.node = need.node, .name = need.name}) + frame);
  dirty_.insert(to.node);
}

}  // namespace trainyard::workers
