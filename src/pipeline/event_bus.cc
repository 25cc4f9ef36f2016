#include "trainyard/event_bus.h"

#include <array>
#include <condition_variable>

#include <nlohmann/json.hpp>

#include "pipeline/bus_state.h"
#include "pipeline/worker_pool.h"

namespace trainyard {

Subscription::Subscription(std::weak_ptr<detail::BusState> bus,
                           std::shared_ptr<detail::Listener> listener)
    : bus_(std::move(bus)), listener_(std::move(listener)) {}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  off();
  bus_ = std::move(other.bus_);
  listener_ = std::move(other.listener_);
  return *this;
}

Subscription::~Subscription() { off(); }

void Subscription::off() {
  const auto listener = std::exchange(listener_, nullptr);
  const auto bus = std::exchange(bus_, {}).lock();
  if (bus && listener) bus->off(*listener);
}

void Subscription::detach() {
  listener_.reset();
  bus_.reset();
}

std::string_view to_text(NoEvent why) {
  static constexpr std::array<std::string_view, 4> kWords{"deadline", "stopped", "bus stopped",
                                                          "failed"};
  return kWords.at(static_cast<std::size_t>(why));
}

struct detail::BusWaiter::State {
  std::weak_ptr<detail::BusState> bus;
  std::string event;
  std::mutex mutex;
  std::condition_variable changed;
  bool came = false;
};

detail::BusWaiter::BusWaiter(std::weak_ptr<detail::BusState> bus, std::string_view event)
    : state_(std::make_shared<State>()) {
  state_->bus = std::move(bus);
  state_->event = event;
}

void detail::BusWaiter::came() const {
  const std::scoped_lock lock(state_->mutex);
  state_->came = true;
  state_->changed.notify_all();
}

std::expected<void, NoEvent> detail::BusWaiter::wait(Timeout at_most,
                                                     const std::stop_token& stop) const {
  std::unique_lock lock(state_->mutex);
  if (state_->came) return {};
  lock.unlock();
  const auto bus = state_->bus.lock();
  if (!bus) return std::unexpected(NoEvent::BusStopped);
  const auto others = bus->remote();
  if (others) others->will_wait();
  const std::stop_token ended = bus->ended();
  const std::stop_token failed = bus->waits_cut_short();
  const pipeline::WorkerPool::Blocked blocked;
  const auto wake = [this] {
    const std::scoped_lock locked(state_->mutex);
    state_->changed.notify_all();
  };
  const std::stop_callback at_stop(stop, wake);
  const std::stop_callback at_end(ended, wake);
  const std::stop_callback at_failure(failed, wake);
  const auto since = std::chrono::steady_clock::now();
  const auto until = since + at_most.time();
  lock.lock();
  state_->changed.wait_until(lock, until, [&] {
    return state_->came || stop.stop_requested() || ended.stop_requested() ||
           failed.stop_requested();
  });
  const bool came = state_->came;
  lock.unlock();  // Before the callbacks go, which take it.
  if (others && !state_->event.empty()) {
    others->waited(state_->event, std::chrono::steady_clock::now() - since, came);
  }
  if (came) return {};
  // A failure stops the pipeline's ending(), too.
  if (failed.stop_requested()) return std::unexpected(NoEvent::Failed);
  if (stop.stop_requested()) return std::unexpected(NoEvent::Stopped);
  if (ended.stop_requested()) return std::unexpected(NoEvent::BusStopped);
  return std::unexpected(NoEvent::Deadline);
}

EventBus::EventBus(OnError on_error)
    : state_(std::make_shared<detail::BusState>(std::move(on_error))) {}

EventBus::~EventBus() {
  const detail::BusState::WhileItFails fails(*state_);
  stop(std::chrono::seconds(1));
  end();
}

void EventBus::end() { state_->end(); }

Subscription EventBus::add(detail::EventName name, Carries carries, Call call, EventQueue* queue,
                           bool once) {
  auto listener = std::make_shared<detail::Listener>();
  listener->event = name.text;
  listener->type = carries.type;
  listener->codec = carries.codec;
  listener->call = std::move(call);
  listener->queue = queue;
  listener->once = once;
  state_->add(listener);
  return {state_, std::move(listener)};
}

Subscription EventBus::on(std::string_view event, JsonListener listener) {
  return add(event, {.type = &detail::kPayloadType<Json>, .codec = &detail::kJsonCodec},
             caller<Json>(std::move(listener)), nullptr, false);
}

Subscription EventBus::on(std::string_view event, EventQueue& queue, JsonListener listener) {
  return add(event, {.type = &detail::kPayloadType<Json>, .codec = &detail::kJsonCodec},
             caller<Json>(std::move(listener)), &queue, false);
}

Subscription EventBus::once(std::string_view event, JsonListener listener) {
  return add(event, {.type = &detail::kPayloadType<Json>, .codec = &detail::kJsonCodec},
             caller<Json>(std::move(listener)), nullptr, true);
}

Subscription EventBus::once(std::string_view event, EventQueue& queue, JsonListener listener) {
  return add(event, {.type = &detail::kPayloadType<Json>, .codec = &detail::kJsonCodec},
             caller<Json>(std::move(listener)), &queue, true);
}

Subscription EventBus::on(std::string_view pattern, PatternListener listener) {
  auto heard = std::make_shared<detail::Listener>();
  heard->event = pattern;
  heard->type = &detail::kPayloadType<detail::NamedJson>;
  heard->codec = &detail::kJsonCodec;
  heard->is_pattern = true;
  heard->call = [listener = std::move(listener)](const void* payload) {
    const auto& named = *static_cast<const detail::NamedJson*>(payload);
    listener(named.name, *named.payload);
  };
  state_->add(heard);
  return {state_, std::move(heard)};
}

Expectation<Json> EventBus::expect(std::string_view event) {
  Expectation<Json> pending(state_, event);
  pending.listener_ =
      once(event, [waiter = pending.waiter_, value = pending.value_](const Json& payload) {
        value->emplace(payload);
        waiter.came();
      });
  return pending;
}

std::expected<Json, NoEvent> EventBus::wait_for(std::string_view event, Timeout at_most,
                                                const std::stop_token& stop) {
  return expect(event).wait(at_most, stop);
}

std::expected<Json, NoEvent> EventBus::wait_for(std::string_view event,
                                                const std::stop_token& stop) {
  return expect(event).wait(stop);
}

std::size_t EventBus::emit(std::string_view event, const Json& payload) {
  return emit(event, payload, {.others = false});
}

std::size_t EventBus::emit(std::string_view event, const Json& payload, Reach reach) {
  return emit(event, {.type = &detail::kPayloadType<Json>, .codec = &detail::kJsonCodec}, &payload,
              reach);
}

std::size_t EventBus::emit(detail::EventName name, Carries carries, const void* payload,
                           Reach reach) {
  return state_->emit(
      {.name = name, .type = *carries.type, .codec = carries.codec, .payload = payload}, reach);
}

std::size_t EventBus::off(std::string_view pattern) { return state_->off(pattern); }

EventQueue& EventBus::make_queue(std::size_t events_max) { return state_->make_queue(events_max); }

std::size_t EventBus::stop(Timeout drain_at_most) { return state_->stop(drain_at_most); }

}  // namespace trainyard
