// When a round of a repeat is over.
#include "job/rounds.h"

#include <memory>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::job {
namespace {

using model::Verdict;

constexpr std::string_view kTwoOfARound =
    "groups: [{name: init, tasks: [{command: x}]}, "
    "{repeat: 3, groups: [{name: g, tasks: [{command: x}, {command: y}]}]}]";

/// A run, with calls that report its tasks.
struct Told {
  explicit Told(std::string_view text) : jobs(job_of(text)) {}

  void add(std::uint32_t number, std::vector<Verdict> before = {}) {
    auto plan = std::make_shared<model::Plan>(jobs.at(number - 1).plan());
    for (std::size_t i = 0; i < before.size(); ++i) plan->tasks[i].before = before[i];
    rounds.see({.events = {{.what = model::BatchAdded{.number = number, .plan = std::move(plan)}}},
                .decisions = {{}}},
               jobs);
  }
  void add_round(std::uint32_t round) {
    auto job = jobs.first().later_round(
        {.round = round, .batch = jobs.count() + 1, .groups_before = jobs.groups()});
    jobs.add(std::move(job.value()), {});
    add(jobs.count());
  }
  void end(std::uint32_t task, Verdict verdict) {
    rounds.see({.events = {{.what = model::TimePassed{}}},
                .decisions = {{.changes = {model::TaskChanged{.key = {.task = {task}, .attempt = 1},
                                                              .verdict = verdict}}}}},
               jobs);
  }

  Jobs jobs;
  Rounds rounds;
};

TEST(Rounds, AreOverWhenAllOfTheirTasksHaveFinished) {
  Told run(kTwoOfARound);
  EXPECT_FALSE(run.rounds.is_over()) << "nothing has begun";
  run.add(1);
  run.end(1, Verdict::Finished);
  EXPECT_FALSE(run.rounds.is_over());
  run.end(2, Verdict::NotNeeded);
  EXPECT_TRUE(run.rounds.is_over()) << "what stands before the repeat does not count";
  EXPECT_EQ(run.rounds.round(), 0U);
  run.add_round(1);
  EXPECT_FALSE(run.rounds.is_over());
  EXPECT_EQ(run.rounds.round(), 1U);
  run.end(3, Verdict::Finished);
  run.end(4, Verdict::Finished);
  EXPECT_TRUE(run.rounds.is_over());
}

TEST(Jobs, KnowTheBatchOfATaskAndItsPlaceThere) {
  Told run(kTwoOfARound);
  run.add(1);
  run.add_round(1);
  EXPECT_EQ(run.jobs.place_of({2}).batch, 1U);
  EXPECT_EQ(run.jobs.place_of({2}).in_batch, model::TaskIndex{2});
  EXPECT_EQ(run.jobs.place_of({4}).batch, 2U);
  EXPECT_EQ(run.jobs.place_of({4}).in_batch, model::TaskIndex{1});
}

TEST(Rounds, AreNotOverAfterAFailureUntilItIsMadeGood) {
  for (const Verdict bad :
       {Verdict::Failed, Verdict::Skipped, Verdict::Stopped, Verdict::NotSelected}) {
    Told run(kTwoOfARound);
    run.add(1);
    run.end(1, Verdict::Finished);
    run.end(2, bad);
    EXPECT_FALSE(run.rounds.is_over()) << to_text(bad);
    run.end(2, Verdict::None);
    run.end(2, Verdict::Finished);
    EXPECT_TRUE(run.rounds.is_over()) << to_text(bad);
  }
}

TEST(Rounds, BeginAgainWhenOneOfTheirTasksDoes) {
  Told run(kTwoOfARound);
  run.add(1, {Verdict::None, Verdict::Finished, Verdict::Finished});
  EXPECT_TRUE(run.rounds.is_over()) << "a run that was resumed between two rounds";
  run.end(1, Verdict::None);
  EXPECT_FALSE(run.rounds.is_over());
}

TEST(Rounds, DoNotWaitForWhatIsSubmitted) {
  Told run(kTwoOfARound);
  run.add(1);
  LoadOptions options = in_job_directory();
  options.submission = {
      .number = 2, .configuration = &run.jobs.first().configuration(), .groups = run.jobs.groups()};
  run.jobs.add(job_of("groups: [{name: other, tasks: [{command: x}]}]", options), {});
  run.add(2);
  run.end(1, Verdict::Finished);
  run.end(2, Verdict::Finished);
  EXPECT_TRUE(run.rounds.is_over());
  run.end(3, Verdict::Failed);
  EXPECT_TRUE(run.rounds.is_over());
  run.add_round(1);
  run.end(4, Verdict::Finished);
  EXPECT_FALSE(run.rounds.is_over());
  run.end(5, Verdict::Finished);
  EXPECT_TRUE(run.rounds.is_over()) << "its tasks are counted behind those that were submitted";
}

TEST(Rounds, AreNoneWhereNothingIsRepeated) {
  Told run("groups: [{name: g, tasks: [{command: x}]}]");
  run.add(1);
  run.end(0, Verdict::Finished);
  EXPECT_FALSE(run.rounds.is_over());
}

}  // namespace
}  // namespace trainyard::job
