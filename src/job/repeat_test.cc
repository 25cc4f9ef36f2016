// Groups that run round after round: the name of a round, its directory, and its view of the round
// before.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/result.h"
#include "job/job.h"
#include "job/job_needs.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kFederated = R"(
groups:
- name: init
  tasks: [{command: ./init}]
- repeat: 4
  until: server.result.acc >= 0.9
  initial: {server: init, server.result.acc: 0, clients.dir: ""}
  groups:
  - name: clients
    matrix: {client: 0..1}
    tasks: [{command: [./client, "{round}", "{prev.server.dir}", "{prev.server.result.acc}", "{prev.clients.dir}"]}]
  - name: server
    tasks: [{id: average, command: [./average, "{needs.clients.dirs}", "{needs.init.dir}"], memory: "{round}GB"}]
    needs: [clients, init]
)";

using Groups = std::vector<const model::PlannedGroup*>;

Groups groups_of(const Job& job) {
  Groups groups;
  for (const model::PlannedGroup& group : job.plan().groups) groups.push_back(&group);
  return groups;
}

Job round_of(const Job& first, std::uint32_t round, const Groups& before) {
  auto job = first.later_round({.round = round, .batch = round + 1, .groups_before = before});
  check(job.has_value(), "a round without mistakes");
  return std::move(*job);
}

std::vector<std::string> shown(const Job& job) {
  std::vector<std::string> names;
  for (const model::PlannedGroup& group : job.plan().groups) names.push_back(group.shown());
  return names;
}

TEST(Repeat, StaysInItsCopyOfTheCode) {
  Job first = job_of(kFederated);
  first.work_in({.root = "/job", .path = "/job/runs/sweep/trainyard.code"});
  const Job next = round_of(first, 1, groups_of(first));
  EXPECT_EQ(next.launch({.task = {0}, .attempt = 1}).working_directory,
            "/job/runs/sweep/trainyard.code");
}

TEST(Repeat, BeginsWithWhatStandsBeforeItAndItsRound0) {
  const Job job = job_of(kFederated);
  EXPECT_THAT(shown(job), ElementsAre("init", "clients.0", "server.0"));
  EXPECT_THAT(ids_of(job), ElementsAre("init-1", "client=0", "client=1", "average"));
  EXPECT_EQ(job.task_directory({1}), "/job/runs/sweep/clients.0/client=0");
  EXPECT_THAT(job.matrix_values({1}), ElementsAre(Pair("round", "0"), Pair("client", "0")));
  EXPECT_THAT(job.matrix_values({0}), IsEmpty());
  EXPECT_FALSE(job.is_repeated({0}));
  EXPECT_TRUE(job.is_repeated({3}));
  ASSERT_TRUE(job.repeat());
  EXPECT_EQ(job.repeat()->rounds_max, 4U);
  EXPECT_EQ(job.repeat()->until, "server.result.acc >= 0.9");
}

TEST(Repeat, SaysInRound0WhatStandsForTheRoundBefore) {
  const Job job = job_of(kFederated);
  EXPECT_THAT(job.launch({.task = {2}, .attempt = 1}).arguments,
              ElementsAre("./client", "0", "/job/runs/sweep/init/init-1", "0", ""));
}

TEST(Repeat, SeesInALaterRoundTheOneBefore) {
  const Job first = job_of(kFederated);
  const Groups before = groups_of(first);
  const Job second = round_of(first, 1, before);
  EXPECT_THAT(shown(second), ElementsAre("clients.1", "server.1"));
  EXPECT_THAT(second.matrix_values({1}), ElementsAre(Pair("round", "1"), Pair("client", "1")));
  std::vector<std::string> asked;
  const ResultOf result_of = [&asked](const std::string& group, const std::string& id) {
    asked.push_back(group + "/" + id);
    return std::optional<std::string>(R"({"acc": 0.25})");
  };
  EXPECT_THAT(second.launch({.task = {1}, .attempt = 1}, {}, result_of).arguments,
              ElementsAre("./client", "1", "/job/runs/sweep/server.0/average", "0.25",
                          "/job/runs/sweep/clients.0/client=1"))
      << "and of its own group each task its own";
  EXPECT_THAT(asked, ElementsAre("server.0/average"));
  EXPECT_THAT(second.launch({.task = {2}, .attempt = 1}, {}, result_of).arguments,
              ElementsAre("./average", "/job/runs/sweep/clients.1/client=0",
                          "/job/runs/sweep/clients.1/client=1", "/job/runs/sweep/init/init-1"))
      << "what it needs is of its own round, or stands before the repeat";
  EXPECT_EQ(second.plan().shape_of({2}).terms.request.memory, gb(1)) << "{round} in a request";
}

TEST(Repeat, BeginsARoundWhenTheOneBeforeHasEnded) {
  const Job first = job_of(kFederated);
  EXPECT_THAT(first.plan().groups[1].needs, ElementsAre(model::GroupIndex{0}));
  EXPECT_THAT(first.plan().groups[2].needs,
              ElementsAre(model::GroupIndex{1}, model::GroupIndex{0}));
  const Groups before = groups_of(first);
  const Job second = round_of(first, 1, before);
  EXPECT_THAT(second.plan().groups[0].needs, IsEmpty());
  EXPECT_THAT(second.plan().groups[0].needs_earlier,
              ElementsAre(model::GroupIndex{1}, model::GroupIndex{2}));
  EXPECT_THAT(second.plan().groups[1].needs, ElementsAre(model::GroupIndex{0}));
  EXPECT_THAT(second.plan().groups[1].needs_earlier, ElementsAre(model::GroupIndex{0}));
}

TEST(Repeat, LiesBesideOtherRoundsWhereGroupsHaveNoDirectory) {
  const Job first = job_of(std::string(kFederated) + "config: {task: {directory-grouping: false}}");
  EXPECT_EQ(first.task_directory({0}), "/job/runs/sweep/init-1");
  EXPECT_EQ(first.task_directory({1}), "/job/runs/sweep/round-0/client=0");
  const Groups before = groups_of(first);
  const Job second = round_of(first, 1, before);
  EXPECT_EQ(second.task_directory({1}), "/job/runs/sweep/round-1/client=1");
  EXPECT_THAT(second.launch({.task = {0}, .attempt = 1}).arguments,
              Contains("/job/runs/sweep/round-0/average"));
}

TEST(Repeat, TellsATaskItsRoundAndGivesItASeedOfItsOwn) {
  const Job first = job_of(kFederated);
  const Groups before = groups_of(first);
  const Job second = round_of(first, 1, before);
  const auto variable = [](const Job& job, std::uint32_t task, std::string_view name) {
    for (const std::string& each : job.launch({.task = {task}, .attempt = 1}).environment) {
      if (each.starts_with(fmt::format("{}=", name))) return each.substr(name.size() + 1);
    }
    return std::string("none");
  };
  EXPECT_EQ(variable(first, 0, "TRAINYARD_ROUND"), "none");
  EXPECT_EQ(variable(first, 1, "TRAINYARD_ROUND"), "0");
  EXPECT_EQ(variable(second, 0, "TRAINYARD_ROUND"), "1");
  EXPECT_EQ(variable(second, 0, "TRAINYARD_GROUP"), "clients");
  EXPECT_NE(variable(first, 1, "TRAINYARD_SEED"), variable(second, 0, "TRAINYARD_SEED"));
}

TEST(Repeat, IsADifferentTaskWhereItsRoundStandsInIt) {
  const Job first = job_of(kFederated);
  const Groups before = groups_of(first);
  const Job second = round_of(first, 1, before);
  EXPECT_NE(first.fingerprint({1}), second.fingerprint({0}));
  EXPECT_EQ(first.fingerprint({3}), second.fingerprint({2})) << "memory is no other task";
}

TEST(Repeat, EndsByAResultThatIsComparedWithANumber) {
  const Job first = job_of(kFederated);
  const auto with = [&first](std::optional<std::string> result) {
    return first.until_holds([&result](const std::string&, const std::string&) { return result; });
  };
  EXPECT_EQ(with(R"({"acc": 0.9})").value(), true);
  EXPECT_EQ(with(R"({"acc": 0.89})").value(), false);
  EXPECT_EQ(with("{}").error().message,
            "until: 'server.result.acc >= 0.9': server.0/average left no 'acc' in its result");
  EXPECT_EQ(with(std::nullopt).error().message, with("{}").error().message);
  EXPECT_EQ(with(R"({"acc": null})").error().message, with("{}").error().message)
      << "NaN comes as null";
  EXPECT_EQ(with(R"({"acc": "high"})").error().message,
            "until: 'server.result.acc >= 0.9': server.0/average left 'acc' as 'high', which is "
            "not a number");
  EXPECT_FALSE(with(R"({"acc": "0.9"})").has_value()) << "a text is no number";
}

TEST(Repeat, ComparesInEachOfTheWays) {
  const auto holds = [](std::string_view sign) {
    const Job job =
        job_of(fmt::format("groups: [{{repeat: 2, until: s.result.n {} 2, groups: "
                           "[{{name: s, tasks: [{{command: x}}]}}]}}]",
                           sign));
    std::string held;
    for (const int number : {1, 2, 3}) {
      const auto result = job.until_holds([number](const std::string&, const std::string&) {
        return std::optional(fmt::format(R"({{"n": {}}})", number));
      });
      held += result.value() ? 'y' : 'n';
    }
    return held;
  };
  EXPECT_EQ(holds(">="), "nyy");
  EXPECT_EQ(holds("<="), "yyn");
  EXPECT_EQ(holds(">"), "nny");
  EXPECT_EQ(holds("<"), "ynn");
  EXPECT_EQ(holds("=="), "nyn");
  EXPECT_EQ(holds("!="), "yny");
}

TEST(Repeat, HasInALaterRoundAMistakeThatOnlyThisRoundMakes) {
  const Job first = job_of(
      "groups: [{repeat: 99, groups: [{name: g, memory: \"{round}GB\", tasks: [{command: x}]}]}]");
  const auto late = first.later_round({.round = 50, .batch = 51});
  ASSERT_FALSE(late.has_value());
  EXPECT_THAT(late.error().front().message, HasSubstr("can never run here: needs 50 GB"));
}

TEST(Repeat, KeepsItsNamesWhereSomethingElseIsSubmittedUnderThem) {
  const Job first = job_of(kFederated);
  LoadOptions options = in_job_directory();
  options.run_directory = "/job/runs/sweep";
  options.submission = {
      .number = 2, .configuration = &first.configuration(), .groups = groups_of(first)};
  const Job other = job_of(
      "groups: [{name: server.1, tasks: [{command: x}]}, {name: server, tasks: [{command: x}]}, "
      "{name: server.x, tasks: [{command: x}]}]",
      options);
  EXPECT_THAT(shown(other), ElementsAre("server.1 (2)", "server", "server.x"));
}

TEST(GroupNames, AreReadBackAsTheyAreWritten) {
  EXPECT_EQ(name_in_round("a.1", 20), "a.1.20");
  const auto read = read_name_in_round("a.1.20");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->group, "a.1");
  EXPECT_EQ(read->round, 20U);
  for (const char* const none :
       {"a", "a.", ".1", "a.01", "a.+1", "a.-1", "a.1x", "a.99999999999"}) {
    EXPECT_FALSE(read_name_in_round(none)) << none;
  }
}

}  // namespace
}  // namespace trainyard::job
