#include "sim/expected_courses.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "sim/play_run.h"

namespace trainyard::sim {
namespace {

/// Where nobody said anything of any task.
constexpr Duration kAssumed{60'000};
/// A task that keeps all of a GPU busy when it is alone there, in thousandths.
constexpr int kWholeGpu = 1000;

}  // namespace

Expected expected_of(const model::Plan& plan) {
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
    const model::Terms& terms = plan.shapes[task.shape.value].terms;
    const bool unknown = terms.train_expected == Duration{0};
    if (unknown) ++expected.unknown;
    expected.courses.push_back({.load = terms.load_expected,
                                .train = unknown ? expected.assumed : terms.train_expected,
                                .memory = terms.request.memory,
                                .gpu_share = terms.request.sharing.utilization,
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

}  // namespace trainyard::sim
