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
// or has parts, takes what they take. Percentiles are off by 5 % at most. It must outlive the
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
  /// Emits the means since the last time as `metrics` ("learn ms") every so many iterations; 0:
  /// never.
  std::uint64_t every = 0;
  /// The time, for tests. Empty: the steady clock.
  std::function<std::chrono::nanoseconds()> now;
};

class StepTimer {
 public:
  explicit StepTimer(StepTimerOptions options = {});
  ~StepTimer();

  /// All steps of this pipeline, those that are added later, too.
  template <ContextType C>
  void watch(Pipeline<C>& loop) {
    loop.wrap([this, &bus = loop.events()](const StepCall& call, C& context, const Next& next) {
      begin(call, context.total_step, bus);
      const auto began = now();
      next();
      add(call, now() - began);
    });
  }

  struct Times {
    std::string step;
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
  void begin(const StepCall& call, std::uint64_t total_step, EventBus& bus);
  void add(const StepCall& call, std::chrono::nanoseconds took);

  std::unique_ptr<State> state_;
};

}  // namespace trainyard
