// Events of other workers that wait until a step takes them. Not for users.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/json.h"
#include "trainyard/result.h"
#include "trainyard/step_options.h"
#include "trainyard/timeout.h"
#include "trainyard/worker.h"

namespace trainyard::detail {

/// Values and buffers that belong together.
struct Bundle {
  std::string json;  ///< An object.
  std::vector<Buffer> buffers;
};
/// The event that carries one, by a name that is only known when the program runs.
struct BundleEvent : Event<Bundle> {
  explicit BundleEvent(const std::string& text);
};

/// Any thread.
class Inbox {
 public:
  /// So many may wait; one more is an error where it came, which fails a pipeline.
  static constexpr std::size_t kWaitingMax = 10'000;

  Inbox();
  Inbox(Inbox&&) noexcept;
  Inbox& operator=(Inbox&&) noexcept;
  ~Inbox();

  /// Events of that name come in from now on. `keeps_last`: one takes the place of the one before.
  void listen(EventBus& bus, const std::string& event, bool keeps_last);
  /// They are sent by workers with that role: a wait ends where none of them can send any more.
  void expect_from(const Worker& worker, Role role);
  /// All that is there, in the order in which it came.
  std::vector<Bundle> take();
  /// Whether a worker that sends has begun again since the last call, where the last event is kept.
  /// It has nothing to send yet, and may wait for this one.
  bool take_new_sender();
  /// Waits until something is there. False: it was told to stop, or take_new_sender() is true. An
  /// error: nothing came in time, which counts from `since`, or nobody is left who could send it;
  /// it names the workers.
  [[nodiscard]] Result<bool> wait(
      Timeout within, const std::stop_token& stop,
      std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now());

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Emits it to the others.
void emit_bundle(EventBus& bus, const std::string& event, const Bundle& bundle, bool is_retained);

/// Milliseconds since 1970, to tell how old something is on another machine.
std::int64_t wall_clock_ms();

}  // namespace trainyard::detail
