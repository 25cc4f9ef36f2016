// The positions of attempts in the picture, and the parts of the picture.
#include "report/timeline.h"

#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/status.h"

namespace trainyard::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

journal::AttemptRow attempt(std::uint32_t task, int from_ms, std::optional<int> to_ms,
                            model::Failure failure = model::Failure::None) {
  journal::AttemptRow row{
      .key = {.task = {task}}, .started = Instant{Duration{from_ms}}, .failure = failure};
  if (to_ms) row.ended = Instant{Duration{*to_ms}};
  return row;
}

bool never_stopped(model::AttemptKey) { return false; }

Timeline timeline_of(const std::vector<journal::AttemptRow>& attempts) {
  return lay_out(attempts, {.now = Instant{Duration{10'000}}, .was_stopped = never_stopped});
}

std::vector<std::tuple<std::uint32_t, int>> lanes_of(const Timeline& timeline) {
  std::vector<std::tuple<std::uint32_t, int>> lanes;
  lanes.reserve(timeline.bars.size());
  for (const Bar& bar : timeline.bars) lanes.emplace_back(bar.key.task.value, bar.lane);
  return lanes;
}

TEST(Timeline, PutsWhatRanSideBySideInLanesOfItsOwn) {
  const Timeline timeline = timeline_of({attempt(2, 1500, 3000), attempt(0, 1000, 2000),
                                         attempt(1, 1000, 1200), attempt(3, 2000, std::nullopt)});
  EXPECT_EQ(timeline.lanes, 2);
  EXPECT_EQ(timeline.start, Instant{Duration{1000}});
  EXPECT_EQ(timeline.span, Duration{9000});
  EXPECT_THAT(lanes_of(timeline), ElementsAre(std::tuple(0U, 0), std::tuple(3U, 0),
                                              std::tuple(1U, 1), std::tuple(2U, 1)));
}

TEST(Timeline, KeepsTheLanesOfEachMachineTogether) {
  std::vector<journal::AttemptRow> attempts{attempt(0, 0, 3000), attempt(1, 0, 2000),
                                            attempt(2, 500, 3000), attempt(3, 2500, 3000)};
  attempts[0].machine = "lab1";
  attempts[1].machine = "lab2";
  attempts[2].machine = "lab1";
  attempts[3].machine = "lab2";
  const Timeline timeline =
      lay_out(attempts,
              {.now = Instant{Duration{10'000}}, .was_stopped = never_stopped, .by_machine = true});
  EXPECT_EQ(timeline.lanes, 3);
  EXPECT_THAT(lanes_of(timeline), ElementsAre(std::tuple(0U, 0), std::tuple(2U, 1),
                                              std::tuple(1U, 2), std::tuple(3U, 2)));
  EXPECT_THAT(timeline_svg(timeline, {}, [](model::TaskIndex) { return std::string("a"); }),
              HasSubstr("<title>a: finished after 3.0 s, 0 s to 3 s, on lab1</title>"));
}

TEST(Timeline, ColoursAnAttemptByItsEnd) {
  const std::vector<journal::AttemptRow> attempts{
      attempt(0, 0, 1), attempt(1, 1, 2, model::Failure::OutOfMemory),
      attempt(2, 2, 3, model::Failure::Exit), attempt(3, 3, 4, model::Failure::Killed),
      attempt(4, 4, std::nullopt)};
  const Timeline timeline =
      lay_out(attempts, {.now = Instant{Duration{5}}, .was_stopped = [](model::AttemptKey key) {
                           return key.task == model::TaskIndex{3};
                         }});
  std::vector<Outcome> outcomes;
  outcomes.reserve(timeline.bars.size());
  for (const Bar& bar : timeline.bars) outcomes.push_back(bar.outcome);
  EXPECT_THAT(outcomes, ElementsAre(Outcome::Finished, Outcome::OutOfMemory, Outcome::Failed,
                                    Outcome::Stopped, Outcome::Running));
}

TEST(Timeline, DrawsNothingOfNothing) {
  const Timeline timeline = timeline_of({});
  EXPECT_THAT(timeline.bars, IsEmpty());
  EXPECT_EQ(timeline.lanes, 0);
}

TEST(Timeline, DrawsABoundedNumberOfBarsAndLosesNoAttempt) {
  std::vector<journal::AttemptRow> attempts;
  attempts.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) {
    const int start = i / 8 * 10;
    attempts.push_back(attempt(static_cast<std::uint32_t>(i), start, start + 10,
                               i % 1000 == 0 ? model::Failure::Exit : model::Failure::None));
  }
  const Timeline timeline = timeline_of(attempts);
  EXPECT_TRUE(timeline.merged);
  EXPECT_EQ(timeline.lanes, 8);
  EXPECT_LE(timeline.bars.size(), Timeline::kBarsMax);
  EXPECT_GT(timeline.bars.size(), Timeline::kBarsMax / 2);
  int all = 0;
  int failed = 0;
  for (const Bar& bar : timeline.bars) {
    all += bar.attempts;
    failed += bar.failed;
  }
  EXPECT_EQ(all, 100'000);
  EXPECT_EQ(failed, 100);
}

TEST(Timeline, DrawsABoundedNumberOfLanes) {
  std::vector<journal::AttemptRow> attempts;
  attempts.reserve(100'000);
  for (std::uint32_t i = 0; i < 5000; ++i) attempts.push_back(attempt(i, 0, 1000));
  const Timeline timeline = timeline_of(attempts);
  EXPECT_EQ(timeline.lanes, Timeline::kLanesMax);
  EXPECT_EQ(timeline.left_out, 5000 - Timeline::kLanesMax);
}

TEST(Timeline, IsDrawnWithTitlesAndMemory) {
  const std::vector<journal::SampleRow> samples{
      {.at = Instant{Duration{0}}, .memory_available = gb(9), .memory_of_tasks = mb(100)},
      {.at = Instant{Duration{1000}}, .memory_available = gb(3), .memory_of_tasks = mb(400)},
      {.at = Instant{Duration{90'000}}, .memory_available = gb(1), .memory_of_tasks = gb(40)}};
  const Timeline timeline =
      timeline_of({attempt(0, 0, 1500), attempt(1, 0, 2000, model::Failure::OutOfMemory)});
  const std::string svg = timeline_svg(timeline, samples, [](model::TaskIndex task) {
    return fmt::format("lr=<{}>,seed=7", task.value);
  });
  EXPECT_THAT(svg,
              HasSubstr("<title>lr=&lt;0&gt;,seed=7: finished after 1.5 s, 0 s to 1.5 s</title>"));
  EXPECT_THAT(svg, HasSubstr("out of memory after 2.0 s"));
  EXPECT_THAT(svg, HasSubstr(">&lt;0&gt; · 7</text>"));
  // A sample after the last attempt is not in the picture.
  EXPECT_THAT(svg, HasSubstr("memory of all tasks, at most 400 MB; least free 3 GB"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Timeline, IsDrawnForAnAttemptThatTookNoTime) {
  const std::string svg = timeline_svg(timeline_of({attempt(0, 5, 5)}), {},
                                       [](model::TaskIndex) { return std::string("a"); });
  EXPECT_THAT(svg, HasSubstr("width=\"1.2\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace trainyard::report
