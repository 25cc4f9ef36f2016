// Keys of a matrix that change nothing of what tasks compute, and what counts as a use of one.
#include "job/unused_keys.h"

#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The warnings of a job with one group.
std::vector<std::string> warnings_of(std::string_view keys, std::string_view tasks) {
  return job_of(fmt::format("groups:\n- {{name: g, {}, tasks: [{}]}}\n", keys, tasks)).warnings();
}

constexpr std::string_view kSeeds = "matrix: {lr: [1e-3, 1e-2], seed: 0..4}";

TEST(UnusedKeys, AreWarnedOfWithTheTasksThatAreIdentical) {
  const Job job = job_of(fmt::format(
      "groups: [{{name: g, {}, tasks: [{{command: 'python3 train.py --lr {{lr}}'}}]}}]", kSeeds));
  EXPECT_THAT(
      job.warnings(),
      ElementsAre(
          "group 'g': matrix key 'seed' is not used in command, id "
          "or env: tasks that differ only in 'seed' are identical; write '{seed}' in the command"));
  EXPECT_THAT(job.notes(), Contains(job.warnings().front()));
  EXPECT_THAT(
      warnings_of(kSeeds, "{command: x}"),
      ElementsAre(
          HasSubstr("tasks that differ only in 'lr' are identical; write '{lr}' in the command"),
          HasSubstr(
              "tasks that differ only in 'seed' are identical; write '{seed}' in the command")));
  EXPECT_THAT(warnings_of("matrix: {seed: 0..4}", "{command: x}"),
              ElementsAre(EndsWith("'seed' is not used in command, id or env: its 5 tasks are "
                                   "identical; write '{seed}' in the command")));
}

TEST(UnusedKeys, NameThePlaceholderOfAnotherToolThatStandsForThem) {
  const auto of_command = [](std::string_view command) {
    return warnings_of("matrix: {lr: [1, 2]}", fmt::format("{{command: '{}'}}", command));
  };
  EXPECT_THAT(of_command("./t --lr {}"), ElementsAre(EndsWith("; write '{lr}' instead of '{}'")));
  EXPECT_THAT(of_command("./t ::: 1"), ElementsAre(EndsWith("; write '{lr}' instead of ':::'")));
  EXPECT_THAT(of_command("find . -exec ./t {} +"),
              ElementsAre(EndsWith("are identical; write '{lr}' in the command")));
}

TEST(UnusedKeys, AreNotTheOnlyWarningOfAMatrix) {
  EXPECT_THAT(
      warnings_of("matrix: {lr: [0.1 0.01, 1]}", "{command: './t {lr}'}"),
      ElementsAre("group 'g': matrix key 'lr': '0.1 0.01' is one value; write commas between "
                  "values, or quotes around this one"));
  for (const std::string_view values : {"['64 64', 1]", "[a 1, 1]", "[0.1, 0.01]"}) {
    EXPECT_THAT(warnings_of(fmt::format("matrix: {{lr: {}}}", values), "{command: './t {lr}'}"),
                IsEmpty())
        << values;
  }
}

TEST(UnusedKeys, AreInNoTextOfATask) {
  for (const std::string_view task :
       {"{command: './t {lr} {seed}'}", "{command: [t, '{lr}', '--seed={seed}']}",
        "{command: './t {lr}', env: {SEED: '{seed}'}}",
        "{command: './t {lr}', working-directory: 'data/{seed}'}",
        "{command: './t {lr}', id: 'lr{lr}-{seed}'}", "{command: './t {lr}', memory: '{seed}GB'}",
        "{command: './t {lr}', priority: '{seed}'}",
        "{command: './t {lr}', where: {machine: 'lab{seed}'}}"}) {
    EXPECT_THAT(warnings_of(kSeeds, task), IsEmpty()) << task;
  }
  EXPECT_THAT(
      warnings_of(fmt::format("{}, env: {{SEED: '{{seed}}'}}", kSeeds), "{command: './t {lr}'}"),
      IsEmpty());
}

TEST(UnusedKeys, AreUsedWhereATaskReadsItsIdOrItsSeed) {
  for (const std::string_view task :
       {"{command: './t --seed $TRAINYARD_SEED'}", "{command: [t, '{task_id}']}",
        "{command: './t', env: {SEEDED: TRAINYARD_SEED}}", "{command: './t $TRAINYARD_TASK_ID'}"}) {
    EXPECT_THAT(warnings_of(kSeeds, task), IsEmpty()) << task;
  }
  // An id that is written has the keys in it.
  EXPECT_THAT(warnings_of(kSeeds, "{id: 'a{lr}{seed}', command: './t {task_id}'}"), IsEmpty());
  EXPECT_THAT(warnings_of(kSeeds, "{command: './t {lr} {task_dir}'}"), SizeIs(1));
}

TEST(UnusedKeys, MayRepeatATaskAndMayBeOfAProgram) {
  for (const std::string_view key : {"repeat", "run", "trial"}) {
    EXPECT_THAT(warnings_of(fmt::format("matrix: {{{}: 1..3}}", key), "{command: x}"), IsEmpty());
  }
  EXPECT_THAT(warnings_of(fmt::format("two-phase: true, {}", kSeeds), "{command: x}"), IsEmpty());
  EXPECT_THAT(warnings_of(fmt::format("two-phase: false, {}", kSeeds), "{command: x}"), SizeIs(2));
}

TEST(UnusedKeys, AreThoseInWhichTasksDifferThatAreAlikeInAllElse) {
  // One value, or one for each value of a key that is used: no two tasks are identical.
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2], model: [resnet]}", "{command: './t {lr}'}"),
              IsEmpty());
  EXPECT_THAT(warnings_of("matrix: {include: [{lr: 1, note: slow}, {lr: 2, note: fast}]}",
                          "{command: './t {lr}'}"),
              IsEmpty());
  EXPECT_THAT(
      warnings_of("matrix: {lr: [1, 2], include: [{lr: 2, note: fast}]}", "{command: './t {lr}'}"),
      IsEmpty());
  EXPECT_THAT(
      warnings_of("matrix: {lr: [1, 2], seed: 0..4, exclude: [{lr: 1, seed: 0}, {lr: 2, seed: 0},"
                  " {lr: 2, seed: 1}]}",
                  "{command: './t {lr}'}"),
      ElementsAre(HasSubstr("tasks that differ only in 'seed' are identical")));
}

TEST(UnusedKeys, NameTheTaskWhereOthersOfTheGroupUseThem) {
  EXPECT_THAT(warnings_of("matrix: {seed: [1, 2]}", "{command: './a {seed}'}, {command: './b'}"),
              ElementsAre("group 'g': task 2: matrix key 'seed' is not used in command, id or env: "
                          "its 2 tasks are identical; write '{seed}' in the command"));
  EXPECT_THAT(warnings_of("matrix: {seed: [1, 2]}", "{command: './a'}, {command: './b'}"),
              ElementsAre("group 'g': matrix key 'seed' is not used in command, id or env: "
                          "tasks that differ only in 'seed' are identical; write '{seed}' in the "
                          "command"));
}

TEST(UnusedKeys, ThatMatchAGroupWithAnotherBelongToThatGroup) {
  const auto warnings = [](std::string_view train) {
    return job_of(
               fmt::format("groups:\n"
                           "- {{name: train, matrix: {{seed: [1, 2]}}, tasks: [{{command: {}}}]}}\n"
                           "- {{name: eval, needs: [{{group: train, match: matrix}}],\n"
                           "   tasks: [{{command: './test {{needs.train.dir}}'}}]}}\n",
                           train))
        .warnings();
  };
  EXPECT_THAT(warnings("'./t {seed}'"), IsEmpty());
  EXPECT_THAT(warnings("./t"), ElementsAre(HasSubstr("group 'train': matrix key 'seed' is not")));
}

TEST(UnusedKeys, AreToldWithTheirCureWhereAVariableOfTheShellIsWritten) {
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", "{command: './t --lr ${lr}'}"),
              ElementsAre("group 'g': matrix key 'lr' is not used in command, id or env: its 2 "
                          "tasks are identical; write '{lr}' instead of '${lr}'"));
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", "{command: './t lr=$lr'}"),
              ElementsAre(HasSubstr("; write '{lr}' instead of '$lr'")));
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", "{id: 'lr-{lr}', command: './t lr=${lr}'}"),
              ElementsAre("group 'g': '${lr}' is a variable of the shell, and not the matrix key "
                          "'lr'; write '{lr}'"));
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", "{command: [./t, '${lr}', '{lr}']}"), SizeIs(1));
}

TEST(UnusedKeys, AreToldWithTheirCureWhereTheirPlaceholderIsLiteralText) {
  for (const std::string_view written : {"{{lr}}", "{{ lr }}", "{ lr }", "{lr"}) {
    EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", fmt::format("{{command: './t {}'}}", written)),
                ElementsAre(EndsWith(fmt::format("; write '{{lr}}' instead of '{}'", written))));
  }
  EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", "{command: './t {lr-old'}"),
              ElementsAre(EndsWith("are identical; write '{lr}' in the command")));
}

TEST(UnusedKeys, AreNotMeantByAVariableThatHasAValue) {
  for (const std::string_view task :
       {"{command: 'lr={lr}; ./t ${lr}'}", "{command: 'export A=1 lr={lr}; ./t ${lr}'}",
        "{command: './t ${lr}', env: {lr: '{lr}'}}", "{command: './t {lr} ${lr:-1} $lrs'}",
        "{command: 'for lr in {lr} 3; do ./t ${lr}; done'}",
        "{command: 'echo {lr} | while read -r lr; do ./t ${lr}; done'}"}) {
    EXPECT_THAT(warnings_of("matrix: {lr: [1, 2]}", task), IsEmpty()) << task;
  }
}

TEST(UnusedKeys, AreCountedFromTheEleventh) {
  std::string keys;
  for (int key = 0; key < 12; ++key)
    keys += fmt::format("{}k{}: [1, 2]", key == 0 ? "" : ", ", key);
  const auto warnings = warnings_of(fmt::format("matrix: {{{}}}", keys), "{command: x}");
  ASSERT_THAT(warnings, SizeIs(kUnusedKeysShown + 1));
  EXPECT_EQ(warnings.back(), "and up to 2 more matrix keys");
}

}  // namespace
}  // namespace trainyard::job
