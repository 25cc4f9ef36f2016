// A run in a task finds what the task's own yard was started with.
#include "model/set_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Environment = std::vector<std::string>;

/// The environment of a task for which the yard makes `now` of `before`.
Environment environment_of_task(const Environment& before, Environment now) {
  const std::vector<std::string_view> old_entries(before.begin(), before.end());
  const std::vector<std::string_view> new_entries(now.begin(), now.end());
  std::string mark = std::string(kSetVariables) + "=" + set_variables(old_entries, new_entries);
  now.push_back(std::move(mark));
  return now;
}

TEST(SetVariables, AreTakenOutAgainAndTheOldValuesComeBack) {
  const Environment task =
      environment_of_task({"HOME=/me", "OMP_NUM_THREADS=16", "SLURM_PROCID=0"},
                          {"HOME=/me", "OMP_NUM_THREADS=2", "RANK=1", "TRAINYARD_TASK_ID=lr=0.1"});
  EXPECT_THAT(without_set_variables(task),
              UnorderedElementsAre("HOME=/me", "OMP_NUM_THREADS=16", "SLURM_PROCID=0"));
}

TEST(SetVariables, StayAsTheTaskChangedThemUnlessTheyAreTrainyards) {
  Environment task = environment_of_task(
      {"PATH=/bin"}, {"PATH=/bin", "CUDA_VISIBLE_DEVICES=2", "RANK=1", "TRAINYARD_DEVICE=cuda:0"});
  for (std::string& entry : task) {
    if (entry.starts_with("CUDA_VISIBLE_DEVICES=")) entry = "CUDA_VISIBLE_DEVICES=0,1";
    if (entry.starts_with("TRAINYARD_DEVICE=")) entry = "TRAINYARD_DEVICE=cpu";
    if (entry.starts_with("PATH=")) entry = "PATH=/venv/bin:/bin";
  }
  EXPECT_THAT(without_set_variables(task),
              UnorderedElementsAre("PATH=/venv/bin:/bin", "CUDA_VISIBLE_DEVICES=0,1"));
}

TEST(SetVariables, ThatWereTakenOutComeBackUnlessTheTaskHasSetThem) {
  const Environment task = environment_of_task({"SLURM_PROCID=0", "PMI_RANK=3"}, {"A=1"});
  EXPECT_THAT(without_set_variables(task), UnorderedElementsAre("SLURM_PROCID=0", "PMI_RANK=3"));
  Environment changed = task;
  changed.emplace_back("PMI_RANK=7");
  EXPECT_THAT(without_set_variables(changed), UnorderedElementsAre("SLURM_PROCID=0", "PMI_RANK=7"));
}

TEST(SetVariables, MayHaveAnyValues) {
  const std::string odd = "a;b=c\n=7;X=1";
  const Environment before{"EMPTY=", "LINES=" + odd, "NUMBER=12=34"};
  const Environment task =
      environment_of_task(before, {"EMPTY=1", "LINES=", "NUMBER=;", "NEW=" + odd});
  EXPECT_THAT(without_set_variables(task),
              UnorderedElementsAre("EMPTY=", "LINES=" + odd, "NUMBER=12=34"));
}

TEST(SetVariables, OutsideOfTasksAreNone) {
  EXPECT_THAT(without_set_variables({"RANK=1", "B=2", "TRAINYARD_RANK=1"}),
              ElementsAre("RANK=1", "B=2", "TRAINYARD_RANK=1"));
}

TEST(SetVariables, ThatSomebodyWroteWronglyChangeNothing) {
  for (const char* const text : {"", "2;RANK=", "1;RANK", "1;RANK=xyz=", "1;RANK==99=1",
                                 "1;RANK==1=ab", "1;=1=", "1RANK=="}) {
    EXPECT_THAT(without_set_variables({"RANK=1", std::string("TRAINYARD_SET=") + text}),
                ElementsAre("RANK=1"))
        << text;
  }
}

TEST(SetVariables, AreNoLongerThanOneVariableMayBe) {
  const std::string before = "BIG=" + std::string(kSetVariablesMax, 'x');
  const std::vector<std::string_view> old_entries{before};
  EXPECT_EQ(set_variables(old_entries, {}), "1");
  EXPECT_THAT(without_set_variables({"TRAINYARD_SET=1"}), IsEmpty());
}

}  // namespace
}  // namespace trainyard::model
