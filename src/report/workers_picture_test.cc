// The picture of the workers of a task and the table next to it: their content, their escaping, and
// their size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/workers_section.h"

namespace trainyard::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using wire::WaitKind;

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

wire::ParallelRecord some_record() {
  return {.span_ms = 10'000,
          .ended = true,
          .workers = {
              {.node = 0,
               .roles = {"learner"},
               .lives = {{.from_ms = 0, .came_ms = 100, .to_ms = 10'000, .outcome = "finished"}},
               .waits = {{.kind = WaitKind::Event,
                          .name = "exchange.collector",
                          .whom = {1},
                          .from_ms = 2'000,
                          .to_ms = 5'000,
                          .waited_ms = 3'000}},
               .totals = {{.kind = WaitKind::Event,
                           .name = "exchange.collector",
                           .whom = {1},
                           .waited_ms = 3'000,
                           .count = 1}}},
              {.node = 1,
               .roles = {"collector"},
               .lives = {{.from_ms = 0, .came_ms = 100, .to_ms = 4'000, .outcome = "lost"},
                         {.number = 2, .from_ms = 4'200, .came_ms = 4'300}},
               .waits = {{.kind = WaitKind::Barrier,
                          .name = "epoch",
                          .whom = {0, 7},
                          .from_ms = 6'000,
                          .to_ms = 8'000,
                          .waited_ms = 1'000,
                          .count = 4}},
               .totals = {{.kind = WaitKind::Barrier,
                           .name = "epoch",
                           .whom = {0, 7},
                           .waited_ms = 4'000,
                           .count = 4}}}}};
}

TEST(WorkersPicture, HasARowForEachWorkerWithItsLivesAndWaits) {
  const std::string svg = workers_svg(some_record());
  EXPECT_THAT(svg, HasSubstr(">worker 0 (learner)</text>"));
  EXPECT_THAT(svg, HasSubstr("worker 0 (learner): finished after 10.0 s, from 0 ms to 10.0 s"));
  EXPECT_THAT(svg, HasSubstr("worker 1 (collector): lost after 4.0 s, from 0 ms to 4.0 s"));
  EXPECT_THAT(svg, HasSubstr("worker 1 (collector), life 2: running after 5.8 s"));
  EXPECT_THAT(svg, HasSubstr("worker 0 (learner) waited 3.0 s for the event &#39;exchange.collector"
                             "&#39; for worker 1 (collector), from 2.0 s to 5.0 s"));
  EXPECT_THAT(svg,
              HasSubstr("worker 1 (collector) waited 1.0 s at the barrier &#39;epoch&#39; for "
                        "worker 0 (learner), worker 7, from 6.0 s to 8.0 s (4 waits together)"));
  // Half of that time.
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.50\""));
  EXPECT_EQ(times(svg, "class=\"bad\""), 1U) << "the end of the life that was lost";
}

TEST(WorkersPicture, SaysInATableWhoWaitedForWhomInAll) {
  const std::string text = workers_section("dqn-0", some_record());
  EXPECT_THAT(text, HasSubstr("<h2>Workers of dqn-0</h2>"));
  const auto first =
      text.find("<tr><td>worker 1 (collector)</td><td>worker 0 (learner), worker 7</td>");
  const auto second = text.find("<tr><td>worker 0 (learner)</td><td>worker 1 (collector)</td>");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second) << "who waited longest stands first";
  EXPECT_THAT(text, HasSubstr("<td class=\"n\">4.0 s</td><td class=\"n\">4</td>"));
}

TEST(WorkersPicture, LetsNothingOfAFileIntoThePage) {
  wire::ParallelRecord record = some_record();
  record.workers[0].roles = {"<script>"};
  record.workers[0].lives[0].outcome = "\"><b>";
  record.workers[0].waits[0].name = "</title><script>";
  record.workers[0].totals[0].name = "<script>";
  const std::string text = workers_section("<i>", record);
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("<b>")));
  EXPECT_THAT(text, Not(HasSubstr("<i></h2>")));
}

TEST(WorkersPicture, OfARunWithoutAnythingOrWithNonsenseIsDrawn) {
  EXPECT_THAT(workers_svg({}), HasSubstr("</svg>"));
  const std::string text = workers_section(
      "t", {.span_ms = 5,
            .workers = {{.node = 0,
                         .lives = {{.from_ms = 900, .came_ms = 2}},
                         .waits = {{.from_ms = 70, .to_ms = 70, .waited_ms = 99'999}}}}});
  EXPECT_THAT(text, HasSubstr("</svg>"));
  EXPECT_THAT(text, Not(HasSubstr("width=\"-")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(WorkersPicture, HasABoundHoweverMuchThereIs) {
  wire::ParallelRecord record{.span_ms = 1'000'000};
  for (int node = 0; node < 1'000; ++node) {
    wire::WorkerRecord& worker = record.workers.emplace_back(wire::WorkerRecord{.node = node});
    for (std::int64_t i = 0; i < 300; ++i) {
      worker.waits.push_back(
          {.whom = {1}, .from_ms = i * 3'000, .to_ms = (i * 3'000) + 9, .waited_ms = 9});
    }
  }
  const std::string text = workers_section("t", record);
  EXPECT_LE(times(text, " waited "), kWaitsDrawnMax);
  EXPECT_THAT(text, HasSubstr("200 workers are drawn, of 1,000."));
  EXPECT_LT(text.size(), std::size_t{2} << 20);
}

TEST(WorkersPicture, JoinsNeighboursAndSaysOfThemWhatTheLongestWaitedFor) {
  const std::vector<wire::WorkerWait> waits{
      {.kind = WaitKind::Room, .whom = {1}, .from_ms = 0, .to_ms = 10, .waited_ms = 10},
      {.kind = WaitKind::Event,
       .name = "go",
       .whom = {2},
       .from_ms = 20,
       .to_ms = 90,
       .waited_ms = 70},
      {.kind = WaitKind::Room, .whom = {1}, .from_ms = 600, .to_ms = 700, .waited_ms = 100}};
  EXPECT_EQ(drawn_waits(waits, 1'000, 3), waits);
  EXPECT_EQ(drawn_waits(waits, 1'000, 2), (std::vector<wire::WorkerWait>{{.kind = WaitKind::Event,
                                                                          .name = "go",
                                                                          .whom = {2},
                                                                          .from_ms = 0,
                                                                          .to_ms = 90,
                                                                          .waited_ms = 80,
                                                                          .count = 2},
                                                                         waits[2]}));
}

}  // namespace
}  // namespace trainyard::report
