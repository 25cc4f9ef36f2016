// How long the steps of a pipeline take (DI-engine `StepTimer`):
//
//   trainyard::StepTimer timer({.every = 100});
//   timer.watch(loop);
//   loop.run();
//   std::cout << timer.table();
//
//   step            calls    mean     p50     p95  share
//   collect         1,000  0.41 ms  0.40 ms  0.52 ms   12 %
//   learn           1,000  2.90 ms  2.88 ms  3.31 ms   85 %
//
// A call is both halves of a step, without what runs between them; a step that calls nested ones,
// or has parts, takes what they take, too. Percentiles are off by 5 % at most. It must outlive the
// pipeline's last run. Any thread may ask; it costs each half of a step some 0.1 us.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ratio>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/context.h"
#include "trainyard/pipeline.h"

namespace trainyard {

class EventBus;

struct StepTimerOptions {
  /// Emits the means since the last time as `kMetrics` ("learn ms") after every so many iterations,
  /// on the thread that runs the pipeline, when no step runs. 0: never.
  std::uint64_t every = 0;
  /// The time, for tests. Empty: the steady clock.
  std::function<std::chrono::nanoseconds()> now = {};
};

class StepTimer {
 public:
  explicit StepTimer(StepTimerOptions options = {});
  ~StepTimer();

  /// All steps of this pipeline, those that are added later, too.
  template <ContextType C>
  void watch(Pipeline<C>& loop) {
    loop.wrap([this](const StepCall& call, C&, const Next& next) {
      begin(call);
      const auto began = now();
      next();
      add(call, now() - began);
    });
    loop.after_iteration(
        [this, &bus = loop.events()](const C& context) { end_iteration(context.total_step, bus); });
  }

  struct Times {
    std::string step;
    bool is_part = false;  ///< Of a group, or nested: another's time holds its.
    std::uint64_t calls = 0;
    std::chrono::duration<double, std::milli> mean{};
    std::chrono::duration<double, std::milli> p50{};
    std::chrono::duration<double, std::milli> p95{};
    std::chrono::duration<double, std::milli> total{};
  };
  /// In the order in which they were first called.
  [[nodiscard]] std::vector<Times> times() const;
  /// The same for people, with a line for each step. The share is that of all steps that are no
  /// part of another.
  [[nodiscard]] std::string table() const;

 private:
  struct State;
  [[nodiscard]] std::chrono::nanoseconds now() const;
  void begin(const StepCall& call);
  void add(const StepCall& call, std::chrono::nanoseconds took);
  void end_iteration(std::uint64_t total_step, EventBus& bus);

  std::unique_ptr<State> state_;
};

}  // namespace trainyard
