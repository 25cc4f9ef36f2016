#include "trainyard/detail/inbox.h"

#include <algorithm>
#include <condition_variable>
#include <expected>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "pipeline/bus_remote.h"
#include "pipeline/bus_state.h"
#include "trainyard/detail/codec.h"
#include "workers/routes.h"
#include "workers/worker_state.h"

namespace trainyard::detail {
namespace {

void encode_bundle(const void* payload, RemotePayload& to) {
  const auto& bundle = *static_cast<const Bundle*>(payload);
  to.json = bundle.json;
  to.buffers = bundle.buffers;
}

void decode_bundle(const RemotePayload& from, const Deliver& deliver) {
  const Bundle bundle{.json = from.json, .buffers = from.buffers};
  deliver(&bundle);
}

constexpr Codec kBundleCodec{.type = "bundle",
                             .payload = &kPayloadType<Bundle>,
                             .encode = &encode_bundle,
                             .decode = &decode_bundle};

}  // namespace

BundleEvent::BundleEvent(const std::string& text) : Event<Bundle>(text.c_str(), &kBundleCodec) {}

struct Inbox::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Bundle> waiting;
  std::vector<Subscription> subscriptions;
  std::weak_ptr<BusState> bus;  ///< Sends its events here.
  std::string event;
  std::weak_ptr<workers::WorkerState> worker;  ///< This worker; none: the senders are not known.
  Role role;                                   ///< Role of the senders.
  std::uint64_t changes = 0;                   ///< Number of changes of the possible senders.
  bool keeps_last = false;
  bool has_new_sender = false;  ///< One has begun again; where the last event is kept.
  std::shared_ptr<const workers::WorkerState::Watcher> watcher;

  [[nodiscard]] workers::Senders senders() const {
    const auto here = worker.lock();
    return here ? here->senders(role) : workers::Senders{};
  }
};

namespace {

std::string late(const workers::Senders& senders, Role role, Timeout within) {
  return fmt::format("nothing new has come in {:g} s of {}",
                     std::chrono::duration<double>(within.time()).count(),
                     senders.left.empty() ? fmt::format("a worker with the role '{}'", role.name)
                                          : workers::listed(senders.left));
}

}  // namespace

Inbox::Inbox() : state_(std::make_shared<State>()) {}
Inbox::Inbox(Inbox&&) noexcept = default;
Inbox& Inbox::operator=(Inbox&&) noexcept = default;
Inbox::~Inbox() = default;

void Inbox::listen(EventBus& bus, const std::string& event, bool keeps_last) {
  const std::weak_ptr<State> weak = state_;
  state_->bus = BusAccess::state_of(bus);
  state_->event = event;
  state_->keeps_last = keeps_last;
  state_->subscriptions.push_back(bus.on(BundleEvent(event), [weak,
                                                              keeps_last](const Bundle& bundle) {
    const auto state = weak.lock();
    if (!state) return;
    {
      const std::scoped_lock lock(state->mutex);
      if (keeps_last) state->waiting.clear();
      if (state->waiting.size() >= kWaitingMax) {
        throw std::runtime_error(fmt::format("more than {} of them wait to be taken", kWaitingMax));
      }
      state->waiting.push_back(bundle);
    }
    state->changed.notify_all();
  }));
}

bool Inbox::take_new_sender() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->has_new_sender, false);
}

std::vector<Bundle> Inbox::take() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->waiting, {});
}

void Inbox::expect_from(const Worker& worker, Role role) {
  workers::WorkerState& here = workers::WorkerState::of(worker);
  state_->worker = here.weak_from_this();
  state_->role = role;
  const std::weak_ptr<State> weak = state_;
  const auto watch = [weak](const PeerChange* change) {
    const auto state = weak.lock();
    if (!state) return;
    const bool is_new_sender =
        state->keeps_last && change != nullptr && change->what == PeerChange::What::Again &&
        std::ranges::find(change->roles, state->role.name) != change->roles.end();
    {
      const std::scoped_lock lock(state->mutex);
      ++state->changes;
      state->has_new_sender = state->has_new_sender || is_new_sender;
    }
    state->changed.notify_all();
  };
  state_->watcher = std::make_shared<const workers::WorkerState::Watcher>(watch);
  here.watch_senders(state_->watcher);
}

Result<bool> Inbox::wait(Timeout within, const std::stop_token& stop,
                         std::chrono::steady_clock::time_point since) {
  // Before the lock and after it: it is called at once where that was asked for before.
  const std::stop_callback at_stop(stop, [this] {
    const std::scoped_lock locked(state_->mutex);
    state_->changed.notify_all();
  });
  const auto began = std::chrono::steady_clock::now();
  const auto until = since + within.time();
  Result<bool> outcome = false;
  std::unique_lock lock(state_->mutex);
  const auto is_over = [&] {
    return !state_->waiting.empty() || state_->has_new_sender || stop.stop_requested();
  };
  while (!is_over()) {
    const std::uint64_t seen = state_->changes;
    lock.unlock();
    // With the lock it would wait for a thread that stops this one and has that of the worker.
    const workers::Senders senders = state_->senders();
    lock.lock();
    // Their events came before their end, and the end may be followed, which is a stop.
    if (is_over()) break;
    if (!senders.why_none.empty()) {
      outcome = std::unexpected(Error{senders.why_none});
      break;
    }
    if (std::chrono::steady_clock::now() >= until) {
      outcome = std::unexpected(Error{late(senders, state_->role, within)});
      break;
    }
    state_->changed.wait_until(lock, until, [&] { return is_over() || state_->changes != seen; });
  }
  const bool there = !state_->waiting.empty();
  if (there) outcome = true;
  lock.unlock();
  const auto bus = state_->bus.lock();
  const auto others = bus ? bus->remote() : nullptr;
  if (others) others->waited(state_->event, std::chrono::steady_clock::now() - began, there);
  return outcome;
}

void emit_bundle(EventBus& bus, const std::string& event, const Bundle& bundle, bool is_retained) {
  BusAccess::state_of(bus)->emit({.name = EventName(event),
                                  .type = kPayloadType<Bundle>,
                                  .codec = &kBundleCodec,
                                  .payload = &bundle},
                                 {.here = false, .others = true, .retained = is_retained});
}

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace trainyard::detail
