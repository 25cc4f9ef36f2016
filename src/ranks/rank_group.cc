#include "ranks/rank_group.h"

#include <cerrno>
#include <cstddef>
#include <expected>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "ranks/parcel.h"
#include "ranks/rank_group_state.h"
#include "trainyard/buffer.h"
#include "trainyard/return_code.h"

namespace trainyard::ranks {
namespace {

Verdict aborted(std::string why) {
  return {.code = ReturnCode::TaskAborted, .why = std::move(why)};
}

constexpr const char* kStopped = "it was told to stop";

/// One execution, as its caller sees it.
class Call {
 public:
  Call(RankGroup::State& state, std::uint64_t request) : state_(state), request_(request) {}

  /// With the lock. An error: the task cannot be sent.
  Result<void> begin(RankGroup::State::Lock& lock, std::string_view task, const Parcel& parcel,
                     const RankContext& context, std::uint64_t id);
  /// Reads replies until the execution is answered.
  void wait(RankGroup::State::Lock& lock);
  RankGroup::Execution result(RankGroup::State::Lock& lock);

 private:
  /// False when nothing more will come.
  bool read(int rank);

  RankGroup::State& state_;
  std::uint64_t request_;
  std::vector<std::shared_ptr<RankChannel>> channels_;
  std::vector<std::optional<ReplyFrame>> replies_;
};

Result<void> Call::begin(RankGroup::State::Lock&, std::string_view task, const Parcel& parcel,
                         const RankContext& context, std::uint64_t id) {
  channels_ = state_.channels;
  replies_.resize(channels_.size());
  wire::ExecuteRequest request{.task = std::string(task), .payload = parcel.payload};
  wire::Frame frame{.kind = wire::FrameKind::Request,
                    .sequence = request_,
                    .buffers = parcel.raw,
                    .shared = parcel.shared};
  // Mostly all ranks know the same of the context, and what is encoded for one is for all.
  std::string changes;
  std::string bytes;
  std::vector<std::string> of_rank(channels_.size());
  struct Mirrors {
    ContextMirror own;
    ContextMirror sticky;
  };
  std::vector<Mirrors> mirrors;
  mirrors.reserve(channels_.size());
  for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
    mirrors.push_back({channels_[rank]->request_mirror, channels_[rank]->sticky_mirror});
    request.context = ContextAccess::changes(context, mirrors.back().own, mirrors.back().sticky);
    if (rank == 0 || request.context != changes) {
      changes = request.context;
      frame.fields = wire::to_fields(wire::RankRequest(request));
      auto encoded = wire::encode(frame, wire::kRankLimits);
      if (!encoded) return std::unexpected(std::move(encoded.error()));
      bytes = std::move(*encoded);
    }
    of_rank[rank] = bytes;
  }
  state_.executed.reset();
  state_.executing = true;
  state_.request = request_;
  state_.handle(ExecuteAsked{.id = id});
  state_.options.arenas->with_pool([&](link::ArenaPool& pool) {
    for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
      // Not before all of it could be encoded.
      channels_[rank]->request_mirror = std::move(mirrors[rank].own);
      channels_[rank]->sticky_mirror = std::move(mirrors[rank].sticky);
      channels_[rank]->reads = frame.shared;
      channels_[rank]->requests.send(of_rank[rank], frame, &pool);
    }
  });
  return {};
}

void Call::wait(RankGroup::State::Lock& lock) {
  std::vector<pollfd> waiting;
  waiting.reserve(channels_.size() + 1);
  for (const auto& channel : channels_) {
    waiting.push_back({.fd = channel->requests.descriptor(), .events = POLLIN, .revents = 0});
  }
  waiting.push_back({.fd = state_.caller_wake.get(), .events = POLLIN, .revents = 0});
  while (!state_.executed) {
    for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
      const bool more = channels_[rank]->requests.unsent() > 0;
      waiting[rank].events = static_cast<short>(more ? POLLIN | POLLOUT : POLLIN);
    }
    lock.unlock();
    const int ready = ::poll(waiting.data(), waiting.size(), -1);
    lock.lock();
    check(ready > 0 || errno == EINTR, "descriptors that can be waited for");
    if (ready < 0) continue;
    for (std::size_t rank = 0; rank < channels_.size() && !state_.executed; ++rank) {
      if ((waiting[rank].revents & POLLOUT) != 0) channels_[rank]->requests.write_some();
      const bool more = (waiting[rank].revents & ~POLLOUT) != 0;
      if (more && !read(static_cast<int>(rank))) waiting[rank].fd = -1;
    }
  }
  std::uint64_t count = 0;
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): it does not block.
  static_cast<void>(::read(state_.caller_wake.get(), &count, sizeof count));
  state_.executing = false;
  state_.changed.notify_all();
  // The group's thread waits for ranks that have not replied, before any other request.
  if (state_.group.phase() != Phase::Ready) {
    state_.post([&state = state_] { state.read_late_replies(); });
  }
}

bool Call::read(int rank) {
  RankChannel& channel = *channels_[static_cast<std::size_t>(rank)];
  const auto nonsense = [&](const std::string& what) {
    state_.handle(RankSpokeNonsense{.rank = rank, .what = what});
    return false;
  };
  if (const Result<void> some = channel.requests.read_some(); !some) {
    state_.handle(RankGone{.rank = rank, .why = some.error().message});
    return false;
  }
  while (true) {
    auto frame = channel.requests.next();
    if (!frame) return nonsense(frame.error().message);
    std::optional<wire::Frame>& whole = *frame;
    if (!whole) return true;
    auto reply = read_reply(channel, *std::move(whole), request_);
    if (!reply) return nonsense(reply.error().message);
    const Verdict verdict = verdict_of(reply->reply.outcome);
    replies_[static_cast<std::size_t>(rank)] = std::move(*reply);
    state_.give_back_read(channel);
    state_.handle(RankReplied{.rank = rank, .verdict = verdict});
  }
}

/// Its last copy tells the rank that the arena can be used again.
std::shared_ptr<detail::BufferMemory> leased(const std::weak_ptr<RankGroup::State>& state,
                                             const std::shared_ptr<RankChannel>& channel,
                                             std::uint64_t arena,
                                             const link::ArenaExchange::SharedView& view) {
  const std::shared_ptr<const void> lease(
      view.arena.get(),
      [state, channel = std::weak_ptr(channel), arena, mapped = view.arena](const void*) {
        const auto alive = state.lock();
        const auto to = channel.lock();
        if (alive == nullptr || to == nullptr) return;
        // A fork of the process has a copy of the buffer, and the rank's connection with it.
        if (alive->owner != sys::own_pid()) return;
        const std::scoped_lock lock(alive->mutex);
        RankGroup::State::release(*to, arena);
      });
  return std::make_shared<ForeignMemory>(view.bytes, lease);
}

RankGroup::Execution Call::result(RankGroup::State::Lock& lock) {
  RankGroup::Execution done;
  const RankGroup::State::Answer answer = state_.executed.value_or(RankGroup::State::Answer{});
  done.verdict = answer.verdict;
  done.again = answer.again;
  done.replies.resize(replies_.size());
  const std::weak_ptr<RankGroup::State> weak = state_.weak_from_this();
  lock.unlock();
  for (std::size_t rank = 0; rank < replies_.size(); ++rank) {
    std::optional<ReplyFrame>& reply = replies_[rank];
    if (!reply) continue;
    ReplyFrame& from = *reply;
    if (rank == 0) done.changes = from.reply.context;
    if (done.verdict.rank == static_cast<int>(rank)) done.traceback = from.reply.outcome.traceback;
    // All memories, so that they are given back whatever becomes of the reply.
    std::vector<std::shared_ptr<detail::BufferMemory>> memories;
    memories.reserve(from.views.size());
    for (std::size_t i = 0; i < from.views.size(); ++i) {
      memories.push_back(leased(weak, channels_[rank], from.frame.shared[i].arena, from.views[i]));
    }
    std::size_t next = 0;
    auto shareable =
        unpack(std::move(from.reply.payload), std::move(from.frame),
               [&](const wire::SharedBuffer&) -> Result<std::shared_ptr<detail::BufferMemory>> {
                 return memories.at(next++);
               });
    if (shareable) {
      shareable->set_outcome(verdict_of(from.reply.outcome).code, from.reply.outcome.message,
                             from.reply.outcome.traceback);
      done.replies[rank] = std::move(*shareable);
    } else if (done.verdict.code == ReturnCode::Ok) {
      done.verdict = {.code = ReturnCode::ExecutionResultError,
                      .why = fmt::format("rank {}: {}", rank, shareable.error().message),
                      .rank = static_cast<int>(rank)};
    }
  }
  lock.lock();
  return done;
}

/// Runs `stop` when it is asked for; never with the lock of the caller.
class StopsGroup {
 public:
  StopsGroup(RankGroup::State& state, const std::stop_token& token)
      : callback_(token, Call{state}) {}

 private:
  struct Call {
    RankGroup::State& state;
    void operator()() const {
      const std::scoped_lock lock(state.mutex);
      state.handle(StopAsked{kStopped});
    }
  };
  std::stop_callback<Call> callback_;
};

}  // namespace

RankGroup::RankGroup(Options options) : state_(std::make_shared<State>(std::move(options))) {}

RankGroup::~RankGroup() {
  close();
  state_->end_threads();
}

bool RankGroup::is_up() const {
  State::Lock lock(state_->mutex);
  // Waits for the unfinished rest of the execution before.
  state_->changed.wait(lock, [this] { return state_->group.phase() != Phase::Settling; });
  const Phase phase = state_->group.phase();
  return phase == Phase::Ready || phase == Phase::Executing;
}

RankGroup::Launched RankGroup::launch(const RankContext& context, const std::stop_token& stop) {
  if (stop.stop_requested()) return {.verdict = aborted(kStopped)};
  if (const Result<void> started = state_->start_threads(); !started) {
    return {.verdict = {.code = ReturnCode::LaunchFailed, .why = started.error().message}};
  }
  State::Lock lock(state_->mutex);
  state_->changed.wait(lock, [this] {
    return state_->closing > 0 || (state_->group.phase() == Phase::Down && state_->settled_down);
  });
  if (state_->closing > 0) return {.verdict = aborted("the group is closed")};
  state_->first_mirror.clear();
  state_->first_sticky.clear();
  state_->first_changes =
      ContextAccess::changes(context, state_->first_mirror, state_->first_sticky);
  state_->launched.reset();
  state_->launch_traceback.clear();
  state_->settled_down = false;
  state_->handle(LaunchAsked{});
  lock.unlock();
  std::optional<StopsGroup> stops(std::in_place, *state_, stop);
  lock.lock();
  state_->changed.wait(lock, [this] { return state_->launched.has_value(); });
  Launched done{.verdict = state_->launched.value_or(Verdict{}),
                .traceback = state_->launch_traceback};
  // Not with the lock: it waits for a stop that is being asked for just now.
  lock.unlock();
  stops.reset();
  return done;
}

RankGroup::Execution RankGroup::execute(std::uint64_t id, std::string_view task,
                                        const Shareable& input, const RankContext& context,
                                        const std::stop_token& stop) {
  const auto failed = [](ReturnCode code, std::string why) {
    Execution done;
    done.verdict = {.code = code, .why = std::move(why)};
    return done;
  };
  const Result<Parcel> parcel = pack(input, *state_->options.arenas);
  if (!parcel) return failed(ReturnCode::BadTaskData, parcel.error().message);
  State::Lock lock(state_->mutex);
  if (state_->group.phase() != Phase::Ready) {
    // It died just now. Nothing has begun, so it does no harm to begin anew.
    Execution done = failed(ReturnCode::RankDied, "the group is not up");
    done.not_begun = true;
    return done;
  }
  Call call(*state_, ++state_->requests);
  if (const Result<void> begun = call.begin(lock, task, *parcel, context, id); !begun) {
    return failed(ReturnCode::BadTaskData, begun.error().message);
  }
  lock.unlock();
  std::optional<StopsGroup> stops(std::in_place, *state_, stop);
  lock.lock();
  call.wait(lock);
  Execution done = call.result(lock);
  lock.unlock();
  stops.reset();
  return done;
}

RankGroup::Heard RankGroup::fire(wire::EventWord event, const RankContext& context,
                                 std::optional<int> except, const std::stop_token& stop) {
  State::Lock lock(state_->mutex);
  std::set<int> listening;
  for (std::size_t rank = 0; rank < state_->channels.size(); ++rank) {
    const auto& channel = state_->channels[rank];
    if (channel == nullptr || except == static_cast<int>(rank)) continue;
    if (wire::hears(channel->listens, event.name)) listening.insert(static_cast<int>(rank));
  }
  const std::uint64_t id = ++state_->last_event;
  State::Fired& fired = state_->fired[id];
  state_->handle(EventAsked{.id = id, .ranks = listening});
  if (!fired.over) {
    for (const int rank : listening) {
      const std::shared_ptr<RankChannel>& channel =
          state_->channels[static_cast<std::size_t>(rank)];
      ContextMirror mirror = channel->word_mirror;
      ContextMirror sticky = channel->sticky_mirror;
      event.context = ContextAccess::changes(context, mirror, sticky);
      if (const auto sent = state_->send_word(channel, wire::FrameKind::Order, id, event)) {
        channel->word_mirror = std::move(mirror);
        channel->sticky_mirror = std::move(sticky);
      } else {
        fired.errors.push_back(fmt::format("rank {}: {}", rank, sent.error().message));
        state_->handle(EventHeard{.id = id, .rank = rank});
      }
    }
  }
  const auto give_up = [state = state_, id] {
    const State::Lock locked(state->mutex);
    const auto found = state->fired.find(id);
    if (found == state->fired.end() || found->second.over) return;
    found->second.over = true;
    found->second.verdict = aborted(kStopped);
    state->changed.notify_all();
  };
  lock.unlock();
  std::optional<std::stop_callback<decltype(give_up)>> stops(std::in_place, stop, give_up);
  lock.lock();
  state_->wait_for_event(lock, fired);
  lock.unlock();
  stops.reset();
  lock.lock();
  const State::Fired over = std::move(state_->fired.extract(id).mapped());
  Heard heard{.verdict = over.verdict, .errors = over.errors, .changes = over.changes};
  if (heard.verdict.code == ReturnCode::Timeout) {
    heard.verdict.why = fmt::format("event '{}': {}", event.name, heard.verdict.why);
  }
  return heard;
}

void RankGroup::close() {
  State::Lock lock(state_->mutex);
  if (!state_->running) return;
  ++state_->closing;
  const auto is_down = [this] {
    return state_->group.phase() == Phase::Down && state_->settled_down;
  };
  while (!is_down() || state_->executing) {
    state_->handle(CloseAsked{});
    state_->changed.wait(lock, [&] {
      const Phase phase = state_->group.phase();
      return (is_down() && !state_->executing) || (phase != Phase::Down && phase != Phase::Ending);
    });
  }
  --state_->closing;
  state_->changed.notify_all();
}

}  // namespace trainyard::ranks
