// Who listens to what: the part of an event bus that its subscriptions share. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "pipeline/bus_remote.h"
#include "pipeline/event_queue.h"
#include "pipeline/retained_events.h"
#include "trainyard/detail/codec.h"
#include "trainyard/event_bus.h"

namespace trainyard::detail {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what is written often lies apart
struct Listener {
  std::string event;
  const PayloadType* type = nullptr;
  const Codec* codec = nullptr;  ///< Others hear of it, too.
  std::move_only_function<void(const void*)> call;
  EventQueue* queue = nullptr;  ///< None: it is called at once.
  bool once = false;
  bool is_pattern = false;    ///< Called with a NamedJson for each name that matches.
  pipeline::LateEvents late;  ///< Events retained before it began to listen.

  std::atomic<bool> claimed = false;  ///< Of a once: somebody has its event.
  /// How many threads that emit are in it, and kOff when it is taken off. Written with each call,
  /// so not beside what others read meanwhile.
  alignas(64) std::atomic<std::uint32_t> calls = 0;
  /// State of `call`, which is freed when the listener is taken off. The listener itself may be kept
  /// for longer by other threads.
  enum class Holds : std::uint8_t { Something, Going, Nothing };
  std::atomic<Holds> holds = Holds::Something;
  static constexpr std::uint32_t kOff = 1U << 31U;
};

class BusState {
 public:
  explicit BusState(EventBus::OnError on_error);

  void add(const std::shared_ptr<Listener>& listener);
  /// When it returns, no call of the listener goes on, unless this thread is in a listener: it
  /// would wait for itself, or for one that waits for it.
  void off(Listener& listener);
  std::size_t off(std::string_view pattern);
  /// An emitted event, of this process or another.
  struct Emission {
    EventName name;
    const PayloadType& type;
    const Codec* codec;
    const void* payload;
  };
  std::size_t emit(const Emission& emission, Reach reach);
  /// Calls the listeners here for an event that no code of the user emits. Unlike emit(), no error
  /// after the bus has stopped.
  void notify(const Emission& emission);
  /// Delivers an event of another process. An event without a listener here is dropped, or kept if
  /// it is retained.
  void deliver_remote(std::string_view name, std::string_view type, const RemotePayload& payload,
                      bool is_retained);

  /// Connects the bus to other processes, and requests the events of its present listeners.
  void connect(const std::shared_ptr<BusRemote>& remote);
  /// None when there are no others.
  [[nodiscard]] std::shared_ptr<BusRemote> remote();
  void tell(std::string_view event, const std::exception_ptr& error) const;
  void tell(std::string_view event, const std::string& text) const;

  EventQueue& make_queue(std::size_t events_max);
  /// While an exception is on its way out of this thread: a listener that is waited for may be one
  /// that emits to a worker that reads nothing, and the exception must not wait for that worker.
  class WhileItFails {
   public:
    explicit WhileItFails(BusState& bus);
    WhileItFails(const WhileItFails&) = delete;
    WhileItFails& operator=(const WhileItFails&) = delete;
    ~WhileItFails();

   private:
    std::shared_ptr<BusRemote> others_;
  };
  std::size_t stop(Timeout drain_at_most);
  /// The threads of its queues end, when they are out of their listeners; nobody listens any more.
  /// Not in a listener.
  void end();
  [[nodiscard]] std::stop_token ended() const { return ended_.get_token(); }
  /// This thread calls a listener of remote events, of whatever bus: for what came, or as it emits.
  /// Those of queues have threads of their own.
  static bool is_in_a_remote_listener();

  /// Between these two nobody waits for an event: who does is woken. They nest.
  void cut_waits_short();
  void let_waits_be();
  [[nodiscard]] std::stop_token waits_cut_short();

 private:
  /// All that listen to one name.
  struct Channel {
    std::string name;
    std::vector<std::shared_ptr<Listener>> listeners;
  };
  /// The last event that a thread emitted, and its listeners: the thread need not search again
  /// while listeners stay the same. Of any bus.
  struct Recent {
    std::uint64_t bus = 0;
    std::uint64_t changes = 0;
    std::uint64_t hash = 0;
    std::shared_ptr<const Channel> channel;
    int emissions = 0;  ///< Of this thread that go on and may use it: a listener may emit, too.
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const EventName& name) const { return name.hash; }
    std::size_t operator()(const std::string& name) const { return EventName(name).hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const EventName& one, const std::string& other) const {
      return one.text == other;
    }
    bool operator()(const std::string& one, const EventName& other) const {
      return one == other.text;
    }
    bool operator()(const std::string& one, const std::string& other) const { return one == other; }
  };
  /// Nobody who emits from now on calls it.
  void remove(const Listener& listener);
  /// With the lock: it is there.
  void insert(std::shared_ptr<Listener> listener);
  /// With the lock: whether it was there, and what it leaves, which goes without the lock.
  bool take_out(const Listener& listener, std::shared_ptr<const void>& left);
  /// Who listens now; nothing when nobody does. Keep `held` until the emission is over.
  const Channel* listeners_of(const EventName& name, Recent& recent,
                              std::shared_ptr<const Channel>& held);
  static Recent& recent_of_this_thread(const EventName& name);
  void replace(const std::string& name, std::shared_ptr<const Channel>& before,
               std::shared_ptr<Channel> after);
  bool deliver(Listener& listener, const PayloadType& type, const void* payload);
  /// This thread is.
  static bool is_in_a_listener();
  std::size_t emit_here(const Emission& emission);
  void emit_to_patterns(const Emission& emission);
  void emit_to_others(const Emission& emission, Reach reach);
  std::size_t emit_retained_here(const Emission& emission);
  /// Delivers the events that `listener` has not received yet, on the thread that has added it.
  void hear_late(Listener& listener);
  /// With the lock.
  [[nodiscard]] bool is_heard(const std::string& name) const;
  [[nodiscard]] std::vector<std::shared_ptr<Listener>> patterns_matching(
      const std::string& name) const;
  void call_patterns(std::string_view name, const nlohmann::json& payload);
  void call_patterns(std::string_view name, const nlohmann::json& payload,
                     const std::vector<std::shared_ptr<Listener>>& patterns) const;
  /// Calls the listener, unless it was removed. Reports its exceptions.
  void call_here(Listener& listener, const void* payload) const;
  void call(Listener& listener, const void* payload) const;

  const EventBus::OnError on_error_;
  std::stop_source ended_;
  std::stop_source cut_short_;  ///< Guarded; a new one after each time.
  int cuts_ = 0;                ///< Guarded.
  const std::uint64_t id_;      ///< Of no other bus of this process, ever.
  std::atomic<std::uint64_t> changes_ = 1;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  /// Each is made anew when it changes: whoever emits goes on with the one he has.
  std::unordered_map<std::string, std::shared_ptr<const Channel>, Hash, Equal> channels_;
  std::vector<std::unique_ptr<EventQueue>> queues_;
  std::vector<std::shared_ptr<Listener>> patterns_;  ///< Guarded.
  std::atomic<bool> any_patterns_ = false;
  pipeline::RetainedEvents retained_;  ///< Guarded.
  std::shared_ptr<BusRemote> remote_;  ///< Guarded.
};

/// The argument of a listener to a pattern.
struct NamedJson {
  std::string_view name;
  const nlohmann::json* payload;
};

}  // namespace trainyard::detail

namespace trainyard {

/// For as long as it lives, nobody waits for an event of a bus: a step has failed, and those beside
/// it are to end. Any thread.
class WaitsCutShort {
 public:
  explicit WaitsCutShort(EventBus& bus) : bus_(bus.state_) {}
  WaitsCutShort(const WaitsCutShort&) = delete;
  WaitsCutShort& operator=(const WaitsCutShort&) = delete;
  ~WaitsCutShort() {
    if (begun_) bus_->let_waits_be();
  }

  /// From now on. Again: no effect.
  void begin() {
    if (!begun_.exchange(true)) bus_->cut_waits_short();
  }

 private:
  std::shared_ptr<detail::BusState> bus_;
  std::atomic<bool> begun_ = false;
};

}  // namespace trainyard
