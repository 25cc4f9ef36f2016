// The words of ranks: replies without a caller that waits for them, and events.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <expected>

#include <fmt/format.h>

#include "base/check.h"
#include "base/match.h"
#include "pipeline/trouble.h"
#include "ranks/rank_group_state.h"
#include "trainyard/return_code.h"

namespace trainyard::ranks {
namespace {

/// Events that a rank does not read.
constexpr std::size_t kUnreadMax = std::size_t{8} << 20;
/// Maximum number of untaken events of ranks: each of their threads waits for the answer to one.
constexpr std::size_t kRisenMax = 4'096;

}  // namespace

Verdict verdict_of(const wire::RankOutcome& outcome) {
  const auto code = parse_return_code(outcome.code);
  if (!code) {
    return {.code = ReturnCode::CommunicationError,
            .why = fmt::format("it replied '{}', which nobody understands", outcome.code)};
  }
  return {.code = *code, .why = outcome.message};
}

Result<ReplyFrame> read_reply(RankChannel& channel, wire::Frame frame, std::uint64_t request) {
  if (frame.kind != wire::FrameKind::Reply || frame.sequence != request) {
    return std::unexpected(Error{"it replies to what it was not asked"});
  }
  auto reply = wire::read_rank_reply(frame.fields);
  if (!reply) return std::unexpected(std::move(reply.error()));
  ReplyFrame read{.reply = std::move(*reply), .frame = std::move(frame)};
  for (const wire::SharedBuffer& each : read.frame.shared) {
    auto view = channel.requests.arenas().view_of(each);
    if (!view) return std::unexpected(std::move(view.error()));
    read.views.push_back(std::move(*view));
  }
  return read;
}

// --- replies that no caller waits for ---

void RankGroup::State::watch_requests(int rank) {
  const auto channel = channels.at(static_cast<std::size_t>(rank));
  if (channel == nullptr || !machinery_->watched_requests.insert(rank).second) return;
  machinery_->loop.watch_readable(channel->requests.descriptor(),
                                  [this, rank] { read_requests(rank); });
}

void RankGroup::State::read_late_replies() {
  const Lock lock(mutex);
  const Phase phase = group.phase();
  if (phase != Phase::Settling && phase != Phase::Ending) return;
  for (int rank = 0; rank < options.group.ranks; ++rank) watch_requests(rank);
  for (const auto& channel : channels) {
    if (channel != nullptr && channel->requests.unsent() > 0) {
      post([this, channel] { flush_requests(channel); });
    }
  }
}

void RankGroup::State::unwatch_requests() {
  for (const int rank : std::exchange(machinery_->watched_requests, {})) {
    const auto channel = channels.at(static_cast<std::size_t>(rank));
    if (channel != nullptr) machinery_->loop.unwatch(channel->requests.descriptor());
  }
}

void RankGroup::State::read_requests(int rank) {
  const Lock lock(mutex);
  const std::shared_ptr<RankChannel> channel = channels.at(static_cast<std::size_t>(rank));
  // A caller reads them itself.
  if (channel == nullptr || !machinery_->watched_requests.contains(rank)) return;
  const auto over = [&](const GroupEvent& event) {
    machinery_->watched_requests.erase(rank);
    machinery_->loop.unwatch(channel->requests.descriptor());
    handle(event);
  };
  const auto nonsense = [&](const std::string& what) {
    over(RankSpokeNonsense{.rank = rank, .what = what});
  };
  if (const Result<void> read = channel->requests.read_some(); !read) {
    return over(RankGone{.rank = rank, .why = read.error().message});
  }
  while (machinery_->watched_requests.contains(rank)) {
    auto frame = channel->requests.next();
    if (!frame) return nonsense(frame.error().message);
    std::optional<wire::Frame>& whole = *frame;
    if (!whole) return;
    const bool first = group.phase() == Phase::Initialising;
    auto reply = read_reply(*channel, *std::move(whole), first ? 0 : request);
    if (!reply) return nonsense(reply.error().message);
    take_late_reply(rank, *channel, *reply, first);
  }
}

void RankGroup::State::take_late_reply(int rank, RankChannel& channel, const ReplyFrame& reply,
                                       bool first) {
  // No caller waits for this reply any more, so its buffers are released unread.
  for (const wire::SharedBuffer& each : reply.frame.shared) release(channel, each.arena);
  if (first) channel.listens = reply.reply.listens;
  if (first && launch_traceback.empty()) launch_traceback = reply.reply.outcome.traceback;
  give_back_read(channel);
  handle(RankReplied{.rank = rank, .verdict = verdict_of(reply.reply.outcome)});
}

/// It has replied, and reads no buffer of ours any more.
void RankGroup::State::give_back_read(RankChannel& channel) {
  options.arenas->with_pool([&](link::ArenaPool& pool) {
    for (const wire::SharedBuffer& each : std::exchange(channel.reads, {})) {
      const Result<void> known = channel.requests.arenas().released(each.arena, pool);
      check(known.has_value(), "an arena that it was sent");
    }
  });
}

void RankGroup::State::release(RankChannel& channel, std::uint64_t arena) {
  // Never too long.
  [[maybe_unused]] const Result<void> sent =
      channel.requests.send({.kind = wire::FrameKind::Release, .topic = arena});
}

// --- words ---

Result<void> RankGroup::State::send_word(const std::shared_ptr<RankChannel>& channel,
                                         wire::FrameKind kind, std::uint64_t sequence,
                                         const wire::RankWord& word) {
  Result<void> sent =
      channel->words.send({.kind = kind, .sequence = sequence, .fields = wire::to_fields(word)});
  if (!sent || channel->words.unsent() == 0) return sent;
  post([this, channel] { flush_words(channel); });
  return sent;
}

/// The rest of a request that did not go at once, when no caller waits for its reply.
void RankGroup::State::flush_requests(const std::shared_ptr<RankChannel>& channel) {
  const Lock lock(mutex);
  const bool ours = std::ranges::find(channels, channel) != channels.end();
  if (!ours || channel->requests.write_some()) return;
  machinery_->loop.when_writable(channel->requests.descriptor(),
                                 [this, channel] { flush_requests(channel); });
}

void RankGroup::State::flush_words(const std::shared_ptr<RankChannel>& channel) {
  const Lock lock(mutex);
  for (std::size_t rank = 0; rank < channels.size(); ++rank) {
    if (channels[rank] != channel || channel->words.write_some()) continue;
    if (channel->words.unsent() > kUnreadMax) {
      handle(RankGone{.rank = static_cast<int>(rank), .why = "it does not read its events"});
      return;
    }
    machinery_->loop.when_writable(channel->words.descriptor(),
                                   [this, channel] { flush_words(channel); });
  }
}

void RankGroup::State::read_words(int rank) {
  const Lock lock(mutex);
  const std::shared_ptr<RankChannel> channel = channels.at(static_cast<std::size_t>(rank));
  if (channel == nullptr) return;
  const auto over = [&](const GroupEvent& event) {
    machinery_->loop.unwatch(channel->words.descriptor());
    handle(event);
  };
  const auto nonsense = [&](const std::string& what) {
    over(RankSpokeNonsense{.rank = rank, .what = what});
  };
  if (const Result<void> read = channel->words.read_some(); !read) {
    return over(RankGone{.rank = rank, .why = read.error().message});
  }
  while (channels.at(static_cast<std::size_t>(rank)) == channel) {
    auto frame = channel->words.next();
    if (!frame) return nonsense(frame.error().message);
    const std::optional<wire::Frame>& whole = *frame;
    if (!whole) return;
    if (const Result<void> taken = take_word(rank, channel, *whole); !taken) {
      return nonsense(taken.error().message);
    }
  }
}

Result<void> RankGroup::State::take_word(int rank, const std::shared_ptr<RankChannel>& channel,
                                         const wire::Frame& frame) {
  if (frame.kind != wire::FrameKind::Report) {
    return std::unexpected(Error{"it says what is not for the parent"});
  }
  auto word = wire::read_rank_word(frame.fields);
  if (!word) return std::unexpected(std::move(word.error()));
  return match(
      *std::move(word),
      [&](wire::EventWord event) -> Result<void> {
        if (risen.size() >= kRisenMax) return std::unexpected(Error{"it fires too many events"});
        event.from_rank = rank;
        risen.push_back({.channel = channel,
                         .rank = rank,
                         .sequence = frame.sequence,
                         .event = std::move(event)});
        if (!event_thread_.joinable()) {
          event_thread_ = std::thread([held = shared_from_this()] { held->tell_events(); });
        }
        changed.notify_all();
        return {};
      },
      [&](wire::EventDone done) -> Result<void> {
        const auto event = fired.find(frame.sequence);
        if (event == fired.end()) return {};
        for (const std::string& each : done.errors) {
          event->second.errors.push_back(fmt::format("rank {}: {}", rank, each));
        }
        if (rank == 0) event->second.changes = std::move(done.context);
        handle(EventHeard{.id = frame.sequence, .rank = rank});
        return {};
      },
      [](const wire::StopWord&) -> Result<void> {
        return std::unexpected(Error{"it says what is not for the parent"});
      });
}

/// The thread for events: one at a time, in the order in which they came.
void RankGroup::State::tell_events() {
  Lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return quit || !risen.empty(); });
    if (quit) return;
    tell_one(lock);
  }
}

void RankGroup::State::tell_one(Lock& lock) {
  const Risen next = std::move(risen.front());
  risen.pop_front();
  lock.unlock();
  wire::EventDone done;
  try {
    done = options.on_event(next.rank, next.event);
  } catch (...) {
    done.errors.push_back(pipeline::full_text_of(std::current_exception()));
  }
  lock.lock();
  if (send_word(next.channel, wire::FrameKind::Order, next.sequence, done)) return;
  // The changes or errors are too long; that much can be said.
  const Result<void> said =
      send_word(next.channel, wire::FrameKind::Order, next.sequence,
                wire::EventDone{.errors = {"the answer of the parent is too long"}});
  check(said.has_value(), "a short word");
}

void RankGroup::State::wait_for_event(Lock& lock, const Fired& event) {
  const bool tells = event_thread_.get_id() == std::this_thread::get_id();
  while (!event.over) {
    changed.wait(lock, [&] { return event.over || (tells && !risen.empty()); });
    if (!event.over) tell_one(lock);
  }
}

}  // namespace trainyard::ranks
