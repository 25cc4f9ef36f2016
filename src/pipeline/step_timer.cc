#include "trainyard/step_timer.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "pipeline/durations.h"
#include "trainyard/event_bus.h"
#include "trainyard/metrics.h"
#include "trainyard/pipeline_base.h"

namespace trainyard {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct OfStep {
  std::string step;
  pipeline::Durations calls;
  // At the last metrics.
  std::uint64_t calls_told = 0;
  std::chrono::nanoseconds total_told{};
  bool is_part = false;
  /// Calls of this iteration whose way back may still come, the last one first.
  std::vector<std::chrono::nanoseconds> begun;

  void add(Phase phase, std::chrono::nanoseconds took) {
    if (phase == Phase::Forward) return begun.push_back(took);
    const bool known = !begun.empty();
    calls.add(took + (known ? begun.back() : std::chrono::nanoseconds{}));
    if (known) begun.pop_back();
  }

  void end_calls() {
    for (const auto took : begun) calls.add(took);
    begun.clear();
  }
};

std::string with_unit(Milliseconds time) {
  const double ms = time.count();
  if (ms >= 1000) return fmt::format("{:.3g} s", ms / 1000);
  if (ms >= 1) return fmt::format("{:.3g} ms", ms);
  return fmt::format("{:.3g} us", ms * 1000);
}

}  // namespace

struct StepTimer::State {
  explicit State(StepTimerOptions given) : options(std::move(given)) {}

  OfStep& of(std::string_view step) {
    const auto known = std::ranges::find(steps, step, [](const auto& it) { return it->step; });
    if (known != steps.end()) return **known;
    steps.push_back(std::make_unique<OfStep>());
    steps.back()->step = step;
    return *steps.back();
  }

  const StepTimerOptions options;
  std::mutex mutex;
  std::vector<std::unique_ptr<OfStep>> steps;  ///< Guarded.
  std::uint64_t untold = 0;                    ///< Guarded: iterations since the last metrics.
};

StepTimer::StepTimer(StepTimerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

StepTimer::~StepTimer() = default;

std::chrono::nanoseconds StepTimer::now() const {
  if (state_->options.now) return state_->options.now();
  return std::chrono::steady_clock::now().time_since_epoch();
}

void StepTimer::begin(const StepCall& call) {
  const std::scoped_lock lock(state_->mutex);
  state_->of(call.step).is_part = call.is_part;  // Its place in the order: before its parts.
}

void StepTimer::end_iteration(std::uint64_t total_step, EventBus& bus) {
  Metrics means{.total_step = total_step};
  {
    const std::scoped_lock lock(state_->mutex);
    for (const auto& step : state_->steps) step->end_calls();
    const std::uint64_t every = state_->options.every;
    if (every == 0 || ++state_->untold < every) return;
    state_->untold = 0;
    for (const auto& step : state_->steps) {
      const auto calls = step->calls.count() - step->calls_told;
      if (calls == 0) continue;
      const Milliseconds took = step->calls.total() - step->total_told;
      means.values[step->step + " ms"] = took.count() / static_cast<double>(calls);
      step->calls_told = step->calls.count();
      step->total_told = step->calls.total();
    }
  }
  bus.emit(kMetrics, means);
}

void StepTimer::add(const StepCall& call, std::chrono::nanoseconds took) {
  const std::scoped_lock lock(state_->mutex);
  state_->of(call.step).add(call.phase, took);
}

std::vector<StepTimer::Times> StepTimer::times() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<Times> all;
  for (const auto& step : state_->steps) {
    pipeline::Durations calls = step->calls;
    for (const auto took : step->begun) calls.add(took);
    all.push_back({.step = step->step,
                   .is_part = step->is_part,
                   .calls = calls.count(),
                   .mean = calls.mean(),
                   .p50 = calls.percentile(50),
                   .p95 = calls.percentile(95),
                   .total = calls.total()});
  }
  return all;
}

std::string StepTimer::table() const {
  const std::vector<Times> all = times();
  Milliseconds whole{};
  std::size_t width = 4;
  for (const Times& step : all) {
    if (!step.is_part) whole += step.total;
    width = std::max(width, step.step.size());
  }
  std::string text = fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}  share\n", "step", width,
                                 "calls", "mean", "p50", "p95");
  for (const Times& step : all) {
    const double share = whole.count() > 0 ? 100 * step.total / whole : 0;
    text += fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}  {:>3.0f} %\n", step.step, width,
                        step.calls, with_unit(step.mean), with_unit(step.p50), with_unit(step.p95),
                        share);
  }
  return text;
}

}  // namespace trainyard
