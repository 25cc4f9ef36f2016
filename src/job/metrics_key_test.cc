// The mistakes of a pattern for metrics, with their words and places.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/task_keys.h"
#include "job/test_job.h"
#include "model/ids.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MetricsKey, SaysWhatAPatternLacks) {
  EXPECT_THAT(mistakes_of("groups:\n- tasks:\n  - {command: x, metrics: 'loss=([0-9.]+'}\n"),
              ElementsAre("sweep.yaml:3:27: group 'group-1': task 1: metrics: not a valid regular "
                          "expression (RE2): missing ')': loss=([0-9.]+"));
  EXPECT_THAT(in_group("metrics: loss"),
              ElementsAre("sweep.yaml:4:14: group 'train': metrics: the pattern has no named group "
                          "for a number; write one as in 'loss[=:] ?(?P<loss>[0-9.e+-]*[0-9])'"));
  EXPECT_THAT(mistakes_of("groups:\n- {metrics: [a], tasks: [command: x]}\n"),
              ElementsAre(HasSubstr("group 'group-1': 'metrics' must be")));
}

TEST(MetricsKey, HasBracesOfItsOwnAndNoPlaceholders) {
  const Job job =
      job_of("groups:\n- {matrix: {lr: [1]}, metrics: '(?P<a>x{2}){lr}{{', tasks: [command: x]}\n");
  EXPECT_EQ(job.said_value(model::TaskIndex{0}, TaskKey::Metrics)->text, "(?P<a>x{2}){lr}{{");
}

}  // namespace
}  // namespace trainyard::job
