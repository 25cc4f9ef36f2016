// The tasks that a word selects.
#include "text/task_pattern.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Task {
  std::string group;
  std::string group_in_file;
  std::string id;
  std::vector<std::pair<std::string, std::string>> keys;
};

/// Two groups of a sweep, and a later submission to it under a name that was taken.
std::vector<Task> tasks() {
  return {
      {.group = "train",
       .group_in_file = "train",
       .id = "lr=0.001,seed=0",
       .keys = {{"lr", "0.001"}, {"seed", "0"}}},
      {.group = "train",
       .group_in_file = "train",
       .id = "lr=0.001,seed=10",
       .keys = {{"lr", "0.001"}, {"seed", "10"}}},
      {.group = "train",
       .group_in_file = "train",
       .id = "lr=0.1,seed=0",
       .keys = {{"lr", "0.1"}, {"seed", "0"}}},
      {.group = "eval", .group_in_file = "eval", .id = "all"},
      {.group = "eval", .group_in_file = "eval", .id = "data=[1,2]", .keys = {{"data", "[1,2]"}}},
      {.group = "train (2)", .group_in_file = "train", .id = "all"},
      {.group = "train (2)",
       .group_in_file = "train",
       .id = "lr=0.1,seed=0",
       .keys = {{"lr", "0.1"}, {"seed", "0"}}},
  };
}

TaskChoice::Meant meant_by(std::string_view text) {
  const Result<TaskPattern> pattern = TaskPattern::read(text);
  EXPECT_TRUE(pattern.has_value()) << text;
  const TaskChoice choice({*pattern}, [](const auto& look_at) {
    for (const Task& task : tasks()) {
      look_at({.group = task.group,
               .group_in_file = task.group_in_file,
               .id = task.id,
               .keys = task.keys});
    }
  });
  return choice.meant().front();
}

std::vector<std::size_t> places(std::string_view text) { return meant_by(text).tasks; }

TEST(TaskPattern, IsTheNameOfATaskBeforeItIsAnythingElse) {
  EXPECT_THAT(places("data=[1,2]"), ElementsAre(4));
  EXPECT_TRUE(meant_by("data=[1,2]").by_name);
  EXPECT_THAT(places("eval/all"), ElementsAre(3));
}

TEST(TaskPattern, IsAnIdInWhicheverGroup) {
  EXPECT_THAT(places("all"), ElementsAre(3, 5));
  EXPECT_TRUE(meant_by("all").by_name);
}

TEST(TaskPattern, MeansTheGroupThatIsCalledSoBeforeThoseTheirFilesCallSo) {
  EXPECT_THAT(places("train/lr=0.1,seed=0"), ElementsAre(2));
  EXPECT_THAT(places("train/all"), ElementsAre(5));
  EXPECT_THAT(places("train (2)/lr=0.1,seed=0"), ElementsAre(6));
}

TEST(TaskPattern, IsValuesOfTheMatrixInAnyOrderAndBesideOthers) {
  EXPECT_THAT(places("lr=0.001"), ElementsAre(0, 1));
  EXPECT_FALSE(meant_by("lr=0.001").by_name);
  EXPECT_THAT(places("seed=0"), ElementsAre(0, 2, 6));
  EXPECT_THAT(places("seed=0,lr=0.1"), ElementsAre(2, 6));
  EXPECT_THAT(places("train/seed=10"), ElementsAre(1));
  EXPECT_THAT(places("lr=0.1,nothing=0"), IsEmpty());
}

TEST(TaskPattern, ComparesNumbersAsNumbersAndTextsAsTexts) {
  EXPECT_THAT(places("lr=1e-3"), ElementsAre(0, 1));
  EXPECT_THAT(places("lr=1e-1,seed=0"), ElementsAre(2, 6));
  EXPECT_THAT(places("seed=1"), IsEmpty());
}

TEST(TaskPattern, MatchesAsAShellDoes) {
  EXPECT_THAT(places("*seed=0"), ElementsAre(0, 2, 6));
  EXPECT_THAT(places("lr=0.00*"), ElementsAre(0, 1));
  EXPECT_THAT(places("seed=1?"), ElementsAre(1));
  EXPECT_THAT(places("train*/all"), ElementsAre(5));
  EXPECT_THAT(places("*/all"), ElementsAre(3, 5));
  EXPECT_THAT(places("a[kl]l"), ElementsAre(3, 5));
  EXPECT_THAT(places("a[l"), IsEmpty());
}

TEST(TaskPattern, IsAllTasksOfAGroupThatIsNamedAlone) {
  EXPECT_THAT(places("eval"), ElementsAre(3, 4));
  EXPECT_THAT(places("eval/"), ElementsAre(3, 4));
  EXPECT_THAT(places("eval/*"), ElementsAre(3, 4));
  EXPECT_THAT(places("train (2)"), ElementsAre(5, 6));
}

TEST(TaskPattern, MeansNothingThatIsNotThere) {
  EXPECT_THAT(places("lr=0.2"), IsEmpty());
  EXPECT_THAT(places("eval/lr=0.1"), IsEmpty());
  EXPECT_THAT(places("eva"), IsEmpty());
}

TEST(TaskPattern, HasValuesWithSlashesAndCommas) {
  using Keys = std::vector<std::pair<std::string, std::string>>;
  const Keys of_path{{"data", "sets/a,b"}, {"lr", "0.1"}};
  const Keys of_name{{"data", "b"}, {"lr", "0.1"}};
  const std::vector<TaskNames> both{
      {.group = "g", .group_in_file = "g", .id = "data=sets_a,b,lr=0.1", .keys = of_path},
      {.group = "g", .group_in_file = "g", .id = "data=b,lr=0.1", .keys = of_name}};
  const auto chosen = [&both](std::string_view text) {
    const TaskChoice choice({TaskPattern::read(text).value()}, [&both](const auto& look_at) {
      for (const TaskNames& task : both) look_at(task);
    });
    return choice.chosen();
  };
  for (const std::string_view text :
       {"data=sets/a,b", "lr=0.1,data=sets/a,b", "g/data=sets/a,b,lr=1e-1", "data=sets/*"}) {
    EXPECT_THAT(chosen(text), ElementsAre(true, false)) << text;
  }
  for (const std::string_view text : {"h/data=sets/a,b", "data=sets/a", "data=a,b"}) {
    EXPECT_THAT(chosen(text), ElementsAre(false, false)) << text;
  }
  EXPECT_EQ(values_instead("data=sets/c", both), "; the values of data are sets/a,b, b");
  EXPECT_EQ(values_instead("g/data=sets/c", both), "; the values of data are sets/a,b, b");
}

TEST(TaskPattern, IsNotEmptyAndHasOneSlash) {
  for (const std::string_view text : {"", "/a", "a/b/c", "/"}) {
    const Result<TaskPattern> read = TaskPattern::read(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_THAT(read.error().message, HasSubstr("is not a valid name or pattern of tasks"));
  }
}

/// The choice among the tasks of one group.
TaskChoice choice_of(std::vector<TaskPattern> patterns, const std::vector<std::string>& ids) {
  return {std::move(patterns), [&ids](const auto& look_at) {
            for (const std::string& id : ids) {
              look_at({.group = "g", .group_in_file = "g", .id = id});
            }
          }};
}

TEST(TaskChoice, IsOfAllTasksWithoutAPattern) {
  EXPECT_THAT(choice_of({}, {"a", "b"}).chosen(), ElementsAre(true, true));
}

TEST(TaskChoice, FindsManyTasksByTheirNamesInOnePass) {
  constexpr int kTasks = 100'000;
  std::vector<TaskPattern> patterns;
  std::vector<std::string> ids;
  for (int i = 0; i < kTasks; ++i) {
    ids.push_back(fmt::format("seed={}", i));
    patterns.push_back(TaskPattern::read(fmt::format("seed={}", kTasks - 1 - i)).value());
  }
  const TaskChoice choice = choice_of(std::move(patterns), ids);
  EXPECT_THAT(choice.meant().front().tasks, ElementsAre(std::size_t{kTasks - 1}));
  EXPECT_THAT(choice.chosen(), Each(true));
}

TEST(TaskChoice, IsWhatAnyOfItsPatternsMeans) {
  const TaskChoice choice =
      choice_of({*TaskPattern::read("a"), *TaskPattern::read("c*")}, {"a", "b", "c1", "c2"});
  EXPECT_THAT(choice.chosen(), ElementsAre(true, false, true, true));
}

}  // namespace
}  // namespace trainyard::text
