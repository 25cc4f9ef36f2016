// The values of `keep`, and its mistakes.
#include "job/keep.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/result_value.h"
#include "job/test_job.h"
#include "model/plan.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<Keep> keep_in(std::string_view value) {
  return job_of(fmt::format("groups: [{{keep: {}, tasks: [{{command: x}}]}}]", value))
      .kept_groups()
      .front()
      .keep;
}

TEST(Keep, NamesHowManyAndByWhatWithTheSignOfResultsSort) {
  EXPECT_EQ(keep_in("{best: 3, by: acc}"), (Keep{.best = 3, .key = "acc", .better = Better::More}));
  EXPECT_EQ(keep_in("{best: 1, by: -acc}"),
            (Keep{.best = 1, .key = "acc", .better = Better::More}));
  EXPECT_EQ(keep_in("{by: val_loss, best: 2}"),
            (Keep{.best = 2, .key = "val_loss", .better = Better::Less}));
  EXPECT_EQ(keep_in("{best: 3, by: +loss}"),
            (Keep{.best = 3, .key = "loss", .better = Better::Less}));
  EXPECT_EQ(keep_in("{best: 3, by: -reward}"),
            (Keep{.best = 3, .key = "reward", .better = Better::More}));
  EXPECT_EQ(keep_in("{best: 3, by: '+wall seconds'}"),
            (Keep{.best = 3, .key = "wall seconds", .better = Better::Less}));
  EXPECT_EQ(to_text(Keep{.best = 3, .key = "acc", .better = Better::More}),
            "the best 3 by acc (the largest)");
  EXPECT_EQ(to_text(Keep{.best = 1, .key = "loss", .better = Better::Less}),
            "the best 1 by loss (the smallest)");
  EXPECT_FALSE(job_of("groups: [{tasks: [{command: x}]}]").kept_groups().front().keep);
}

TEST(Keep, SaysWhatIsWrongWithItAndWhatWouldBeRight) {
  const auto wrong = [](std::string_view value, std::string_view message) {
    EXPECT_THAT(in_group(fmt::format("keep: {}", value)), ElementsAre(HasSubstr(message))) << value;
  };
  EXPECT_THAT(in_group("keep: {best: 0, by: acc}"),
              ElementsAre("sweep.yaml:4:18: group 'train': keep: best: '0' is not a whole number "
                          "from 1 to 1000000"));
  wrong("{best: -1, by: acc}", "keep: best: '-1' is not a whole number from 1");
  wrong("{best: few, by: acc}", "keep: best: 'few' is not a whole number from 1");
  wrong("{best: 1000001, by: acc}", "keep: best: '1000001' is not a whole number from 1");
  wrong("{best: [3], by: acc}", "keep: best");
  wrong("{best: 3}", "'keep' has no 'by', the key to compare, as in {best: 3, by: acc}");
  wrong("{by: acc}", "'keep' has no 'best', the number of tasks to keep, as in {best: 3, by: acc}");
  wrong("{best: 3, by: acc, bi: 2}", "keep: unknown key 'bi' (did you mean 'by'?)");
  wrong("3",
        "'keep' must be the number of tasks to keep and the key to compare, as in {best: 3, by: "
        "acc}");
  wrong("[3, acc]", "'keep' must be the number of tasks");
  wrong("{best: 3, by: ''}", "keep: by: must be a key of the results");
  wrong("{best: 3, by: '-'}", "keep: by: must be a key of the results");
  wrong("{best: 3, by: {acc: 1}}", "keep: by");
}

TEST(Keep, DoesNotGuessWhichAreTheBest) {
  EXPECT_THAT(in_group("keep: {best: 3, by: reward}"),
              ElementsAre("sweep.yaml:4:25: group 'train': keep: by: must say whether a larger "
                          "'reward' is better: write '-reward' if the largest is best, as in "
                          "'results --sort -reward', or '+reward' if the smallest is"));
  EXPECT_THAT(in_group("keep: {best: 3, by: -loss}"),
              ElementsAre(HasSubstr("keep: by: '-loss' would keep the largest, and of 'loss' the "
                                    "smallest are the best: write 'loss'")));
  EXPECT_THAT(in_group("keep: {best: 3, by: +acc}"),
              ElementsAre(HasSubstr("'+acc' would keep the smallest, and of 'acc' the largest")));
}

TEST(Keep, BelongsToAGroup) {
  EXPECT_THAT(mistakes_of("groups: [{tasks: [{command: x, keep: {best: 1, by: acc}}]}]"),
              ElementsAre(HasSubstr("'keep' belongs to the group")));
  EXPECT_THAT(mistakes_of("keep: {best: 1, by: acc}\ngroups: [{tasks: [{command: x}]}]"),
              ElementsAre(HasSubstr("'keep' belongs to a group, under 'groups'")));
}

TEST(Keep, KnowsWhichGroupsAreForTheRoundsOfARepeat) {
  const Job job = job_of(
      "groups: [{name: data, tasks: [{command: x}]}, {name: beside, tasks: [{command: x}]}, "
      "{name: first, keep: {best: 1, by: acc}, tasks: [{command: x}]}, {repeat: 3, "
      "initial: {server: first}, groups: [{name: clients, needs: [data], tasks: [{command: 'x "
      "{prev.server.dir}'}]}, {name: server, keep: {best: 2, by: loss}, tasks: [{command: x}]}]}]");
  const auto groups = job.kept_groups();
  ASSERT_EQ(groups.size(), 5U);
  EXPECT_TRUE(groups[0].is_for_rounds);
  EXPECT_FALSE(groups[1].is_for_rounds);
  EXPECT_TRUE(groups[2].is_for_rounds) << "it stands for the round before the first";
  EXPECT_EQ(groups[4], (KeptGroup{.name = "server",
                                  .keep = Keep{.best = 2, .key = "loss", .better = Better::Less},
                                  .round = 0,
                                  .is_for_rounds = false}));
  std::vector<const model::PlannedGroup*> before;
  for (const model::PlannedGroup& group : job.plan().groups) before.push_back(&group);
  const auto next = job.later_round({.round = 1, .batch = 2, .groups_before = before});
  ASSERT_TRUE(next.has_value());
  ASSERT_EQ(next->kept_groups().size(), 2U);
  EXPECT_EQ(next->kept_groups()[1].name, "server");
  EXPECT_EQ(next->kept_groups()[1].round, 1U);
  EXPECT_EQ(next->kept_groups()[1].keep, groups[4].keep);
}

TEST(Keep, RefusesATaskWhoseDirectoryWouldHoldThoseOfRounds) {
  const std::string text =
      "config: {task.directory-grouping: false}\ngroups: [{keep: {best: 1, by: acc}, tasks: [{id: "
      "round-1, command: x}]}, {repeat: 2, groups: [{name: a, tasks: [{id: round-2, command: "
      "x}]}]}]";
  EXPECT_THAT(mistakes_of(text), ElementsAre(HasSubstr("the id 'round-1' is reserved")));
}

TEST(Keep, ReadsANumberOfAResult) {
  EXPECT_EQ(number_in_result(R"({"acc": 0.5})", "acc"), 0.5);
  EXPECT_EQ(number_in_result(R"({"acc": -1e-3})", "acc"), -0.001);
  EXPECT_EQ(number_in_result(R"({"acc": "0.99"})", "acc"), std::nullopt) << "a text is none";
  for (const std::string none : {R"({"acc": null})", R"({"acc": "nan"})", R"({"acc": true})",
                                 R"({"acc": [1]})", R"({"loss": 1})", "[1]", "", "{"}) {
    EXPECT_EQ(number_in_result(none, "acc"), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace trainyard::job
