// A task may go if it has finished, is not one of the best, and is needed by no task.
#include "job/best_kept.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/score.h"

namespace trainyard::job {
namespace {

using model::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A batch, put together group by group; groups and tasks are numbered from 0 in it.
struct KeptBatch {
  KeptBatch& group(std::string name, std::uint32_t tasks, std::vector<std::uint32_t> needs = {}) {
    const auto number = static_cast<std::uint32_t>(plan.groups.size());
    plan.groups.push_back({.name = name});
    for (const std::uint32_t need : needs) plan.groups.back().needs.push_back({need});
    plan.shapes.push_back({.group = {number}});
    for (std::uint32_t i = 0; i < tasks; ++i) plan.tasks.push_back({.shape = {number}});
    groups.push_back({.name = std::move(name)});
    return *this;
  }
  KeptBatch& keep(int best, Better better = Better::More) {
    groups.back().keep = Keep{.best = best, .key = "acc", .better = better};
    return *this;
  }
  KeptBatch& in_round(std::uint32_t round) {
    groups.back().round = round;
    return *this;
  }
  KeptBatch& for_rounds() {
    groups.back().is_for_rounds = true;
    return *this;
  }
  KeptBatch& needs_earlier(std::uint32_t group) {
    plan.groups.back().needs_earlier.push_back({group});
    return *this;
  }
  KeptBatch& task_needs(std::uint32_t task, std::uint32_t needed) {
    plan.task_needs.push_back({.task = {task}, .needed = {needed}});
    return *this;
  }
  KeptBatch& before(std::uint32_t task, Verdict verdict) {
    plan.tasks[task].before = verdict;
    return *this;
  }

  model::Plan plan;
  std::vector<KeptGroup> groups;
};

/// A run, with calls that report its tasks.
struct KeptRun {
  KeptRun& add(const KeptBatch& batch) {
    kept.add(batch.plan, batch.groups);
    return *this;
  }
  /// The tasks that may go after this task has finished.
  std::vector<std::uint32_t> finish(std::uint32_t task, std::optional<double> number = {}) {
    kept.change({task}, Verdict::Finished, number);
    return take();
  }
  std::vector<std::uint32_t> end(std::uint32_t task, Verdict verdict) {
    kept.change({task}, verdict, std::nullopt);
    return take();
  }
  std::vector<std::uint32_t> take() {
    std::vector<std::uint32_t> tasks;
    for (const model::TaskIndex task : kept.take()) tasks.push_back(task.value);
    return tasks;
  }
  BestKept kept;
};

TEST(BestKept, GivesOutWhoIsNotAmongTheBestAsSoonAsThatIsKnown) {
  KeptRun run;
  run.add(KeptBatch().group("train", 6).keep(2));
  EXPECT_THAT(run.finish(0, 0.5), IsEmpty());
  EXPECT_THAT(run.finish(1, 0.7), IsEmpty());
  EXPECT_THAT(run.finish(2, 0.6), ElementsAre(0));
  EXPECT_THAT(run.finish(3, 0.1), ElementsAre(3));
  EXPECT_THAT(run.finish(4, -0.1), ElementsAre(4));
  EXPECT_THAT(run.take(), IsEmpty()) << "each once";
  EXPECT_THAT(run.finish(5, 0.9), ElementsAre(2));
  const auto told = run.kept.told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].name, "train");
  EXPECT_EQ(told[0].finished, 6U);
  EXPECT_EQ(told[0].worse, 4U);
  EXPECT_EQ(told[0].given, 4U);
  EXPECT_EQ(told[0].without, 0U);
}

TEST(BestKept, TakesTheSmallestForTheBestWhereLessIsBetter) {
  KeptRun run;
  run.add(KeptBatch().group("train", 3).keep(1, Better::Less));
  EXPECT_THAT(run.finish(0, -3), IsEmpty());
  EXPECT_THAT(run.finish(1, 2), ElementsAre(1));
  EXPECT_THAT(run.finish(2, -4), ElementsAre(0));
}

TEST(BestKept, KeepsOfEqualOnesThoseThatStandFirstWhateverCameFirst) {
  for (const bool forwards : {true, false}) {
    std::vector<std::uint32_t> order{0, 1, 2, 3};
    if (!forwards) std::ranges::reverse(order);
    KeptRun run;
    run.add(KeptBatch().group("train", 4).keep(2));
    std::vector<std::uint32_t> gone;
    for (const std::uint32_t task : order) {
      for (const std::uint32_t each : run.finish(task, 0.5)) gone.push_back(each);
    }
    std::ranges::sort(gone);
    EXPECT_THAT(gone, ElementsAre(2, 3)) << forwards;
  }
}

TEST(BestKept, LeavesAloneWhoHasNoNumberAndWhoHasNotFinished) {
  KeptRun run;
  run.add(KeptBatch().group("train", 8).keep(1));
  EXPECT_THAT(run.finish(0), IsEmpty());
  EXPECT_THAT(run.finish(1, std::numeric_limits<double>::quiet_NaN()), IsEmpty());
  EXPECT_THAT(run.finish(2, 0.5), IsEmpty()) << "who has none takes no place of the best";
  for (const auto& [task, verdict] :
       {std::pair{3U, Verdict::Failed}, {4U, Verdict::Skipped}, {5U, Verdict::Stopped}}) {
    EXPECT_THAT(run.end(task, verdict), IsEmpty());
  }
  EXPECT_THAT(run.finish(6, 0.4), ElementsAre(6));
  const auto told = run.kept.told();
  EXPECT_EQ(told[0].finished, 4U);
  EXPECT_EQ(told[0].worse, 1U);
  EXPECT_EQ(told[0].without, 2U);
  EXPECT_THAT(told[0].unknown, ElementsAre(model::TaskIndex{0}, model::TaskIndex{1}));
}

TEST(BestKept, RanksATaskThatIsTriedAgainWhenItHasFinished) {
  KeptRun run;
  run.add(KeptBatch().group("train", 3).keep(1));
  EXPECT_THAT(run.end(0, Verdict::Failed), IsEmpty());
  EXPECT_THAT(run.finish(1, 0.5), IsEmpty());
  EXPECT_THAT(run.end(0, Verdict::None), IsEmpty());
  EXPECT_THAT(run.finish(0, 0.9), ElementsAre(1));
  EXPECT_THAT(run.end(0, Verdict::None), IsEmpty()) << "and one of the best that begins anew";
  EXPECT_THAT(run.finish(2, 0.1), IsEmpty());
  EXPECT_THAT(run.finish(0, 0.2), ElementsAre(2));
}

TEST(BestKept, WaitsForAllOfAGroupThatNeedsAllOfIt) {
  KeptRun run;
  run.add(KeptBatch().group("train", 3).keep(1).group("mean", 2, {0}).group("other", 1));
  run.finish(0, 0.1);
  run.finish(1, 0.2);
  EXPECT_THAT(run.finish(2, 0.3), IsEmpty());
  EXPECT_THAT(run.finish(3), IsEmpty());
  EXPECT_THAT(run.end(4, Verdict::Failed), IsEmpty()) << "it may be tried again";
  EXPECT_EQ(run.kept.told()[0].worse, 2U);
  EXPECT_EQ(run.kept.told()[0].given, 0U);
  EXPECT_THAT(run.end(4, Verdict::None), IsEmpty());
  EXPECT_THAT(run.finish(4), ElementsAre(0, 1));
}

TEST(BestKept, WaitsForTheTasksOfItsOwnCell) {
  KeptRun run;
  run.add(KeptBatch()
              .group("train", 3)
              .keep(1)
              .group("eval", 6)
              .task_needs(3, 0)
              .task_needs(4, 0)
              .task_needs(5, 1)
              .task_needs(6, 2));
  run.finish(0, 0.1);
  EXPECT_THAT(run.finish(1, 0.2), IsEmpty());
  EXPECT_THAT(run.finish(3), IsEmpty());
  EXPECT_THAT(run.end(4, Verdict::Skipped), IsEmpty());
  EXPECT_THAT(run.end(4, Verdict::NotNeeded), ElementsAre(0)) << "whatever the other cells do";
  EXPECT_THAT(run.finish(5), IsEmpty()) << "it was of the best when it was read";
  EXPECT_THAT(run.finish(2, 0.3), ElementsAre(1));
}

TEST(BestKept, WaitsForWhatIsSubmittedMeanwhile) {
  KeptRun run;
  run.add(KeptBatch().group("first", 2)).add(KeptBatch().group("train", 2).keep(1));
  EXPECT_EQ(run.kept.keep_of({1}), nullptr);
  ASSERT_NE(run.kept.keep_of({2}), nullptr);
  run.add(KeptBatch().group("eval", 1).needs_earlier(1).needs_earlier(0));
  EXPECT_THAT(run.finish(0, 0.9), IsEmpty()) << "of a group that keeps everything";
  run.finish(2, 0.1);
  EXPECT_THAT(run.finish(3, 0.2), IsEmpty());
  EXPECT_THAT(run.finish(4), ElementsAre(2));
}

TEST(BestKept, RanksTheRoundsOfARepeatTogetherAndWaitsForTheNextOne) {
  const auto round = [](std::uint32_t number) {
    return KeptBatch()
        .group("clients", 1)
        .in_round(number)
        .group("server", 1, {0})
        .keep(1)
        .in_round(number);
  };
  KeptRun run;
  run.add(round(0));
  run.finish(0);
  EXPECT_THAT(run.finish(1, 0.1), IsEmpty());
  run.add(round(1));
  run.finish(2);
  EXPECT_THAT(run.finish(3, 0.2), ElementsAre(1)) << "round 1 has seen it";
  run.add(round(2));
  run.finish(4);
  EXPECT_THAT(run.finish(5, 0.1), IsEmpty()) << "the next round begins with it";
  EXPECT_EQ(run.kept.told().size(), 1U);
  EXPECT_EQ(run.kept.told()[0].finished, 3U);
  run.add(round(3));
  run.finish(6);
  EXPECT_THAT(run.finish(7, 0.15), ElementsAre(5));
  run.kept.no_more_rounds();
  EXPECT_THAT(run.take(), ElementsAre(7)) << "no round begins with it";
}

TEST(BestKept, KeepsForARepeatWhatAllOfItsRoundsMayRead) {
  KeptRun run;
  run.add(KeptBatch().group("data", 2).keep(1).for_rounds().group("step", 1, {0}).in_round(0));
  run.finish(0, 0.1);
  run.finish(1, 0.2);
  EXPECT_THAT(run.finish(2), IsEmpty());
  run.kept.no_more_rounds();
  EXPECT_THAT(run.take(), ElementsAre(0));
}

TEST(BestKept, GoesOnWithWhatHadFinishedBefore) {
  KeptRun run;
  run.add(KeptBatch()
              .group("train", 3)
              .keep(1)
              .before(0, Verdict::Finished)
              .before(1, Verdict::Finished)
              .before(2, Verdict::Failed)
              .group("eval", 2)
              .task_needs(3, 0)
              .task_needs(4, 1)
              .before(3, Verdict::Finished));
  EXPECT_THAT(run.finish(0, 0.1), IsEmpty());
  EXPECT_THAT(run.finish(1, 0.2), ElementsAre(0));
  EXPECT_THAT(run.finish(2, 0.3), IsEmpty()) << "what needs it has not finished";
  EXPECT_THAT(run.finish(4), ElementsAre(1));
}

}  // namespace
}  // namespace trainyard::job
