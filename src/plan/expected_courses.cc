#include "plan/expected_courses.h"

#include <cstdint>

#include "base/result.h"
#include "model/ids.h"

namespace trainyard::plan {
namespace {

/// Where nobody said anything of any task.
constexpr Duration kAssumed{60'000};
/// A task that keeps all of a GPU busy when it is alone there, in thousandths.
constexpr int kWholeGpu = 1000;

}  // namespace

Expected expected_of(const model::Plan& plan, const MeasuredShares& measured) {
  Expected expected;
  Duration sum{0};
  std::int64_t known = 0;
  for (const model::PlannedTask& task : plan.tasks) {
    const model::Terms& terms = plan.shapes[task.shape.value].terms;
    if (terms.train_expected == Duration{0}) continue;
    sum += terms.train_expected;
    ++known;
  }
  expected.assumed = known > 0 ? sum / known : kAssumed;
  for (const model::PlannedTask& task : plan.tasks) {
    const model::Shape& shape = plan.shapes[task.shape.value];
    const model::Terms& terms = shape.terms;
    const int written = terms.request.sharing.utilization;
    const bool counts =
        written == 0 && terms.request.gpus > 0 && shape.group.value < measured.size();
    const bool unknown = terms.train_expected == Duration{0};
    if (unknown) ++expected.unknown;
    expected.courses.push_back({.load = terms.load_expected,
                                .train = unknown ? expected.assumed : terms.train_expected,
                                .memory = terms.request.memory,
                                .gpu_share = counts ? measured[shape.group.value] : written,
                                .gpu_memory = terms.request.gpu_memory});
  }
  return expected;
}

std::vector<Course> at_the_worst(const model::Plan& plan, std::vector<Course> courses) {
  for (std::size_t task = 0; task < courses.size(); ++task) {
    const model::Request& request =
        plan.shape_of(model::TaskIndex{static_cast<std::uint32_t>(task)}).terms.request;
    if (request.gpus > 0 && courses[task].gpu_share == 0) courses[task].gpu_share = kWholeGpu;
  }
  return courses;
}

std::optional<RunForecast> forecast_run(const model::Plan& plan, model::Policy policy,
                                        const model::Capacity& capacity,
                                        const MeasuredShares& measured) {
  constexpr std::size_t kTasksMax = 2'000;
  constexpr std::size_t kLookedAheadMax = 50;
  if (plan.tasks.size() > kTasksMax) return std::nullopt;
  const Expected expected = expected_of(plan, measured);
  if (expected.unknown > 0 || expected.courses.empty()) return std::nullopt;
  policy.auto_adjust = false;
  policy.gpu_settle_max = {};
  // To search for the best order is the run's own work, and takes longer than to play one.
  policy.looks_ahead = policy.looks_ahead && plan.tasks.size() <= kLookedAheadMax;
  // The one machine stands for each that a task may be waiting for by name.
  model::Plan played = plan;
  for (model::Shape& shape : played.shapes) shape.terms.request.where = {};
  const auto length = [&](const std::vector<Course>& courses) -> std::optional<Duration> {
    const Result<PlayedRun> run =
        play_run(played, policy, {{.name = "this machine", .capacity = capacity}}, courses);
    if (!run) return std::nullopt;
    return run->ended - Instant{};
  };
  const std::optional<Duration> free = length(expected.courses);
  if (!free) return std::nullopt;
  const std::optional<Duration> worst = length(at_the_worst(plan, expected.courses));
  return RunForecast{.free = *free, .at_the_worst = worst.value_or(*free)};
}

}  // namespace trainyard::plan
