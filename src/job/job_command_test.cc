// Commands with values: that the shell gets them as variables, and what no program can be given.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/launch.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A job with one task of these keys, and a matrix.
std::vector<std::string> of_task(std::string_view keys, std::string_view matrix = "{v: [x]}") {
  return mistakes_of(
      fmt::format("groups:\n- name: g\n  matrix: {}\n  tasks:\n  - {{{}}}\n", matrix, keys));
}

/// The command of a job with one task of these keys, and its variables for values.
struct Started {
  std::vector<std::string> arguments;
  std::vector<std::string> values;
};

Started started(std::string_view keys, std::string_view matrix = "{v: [x]}") {
  const model::Launch launch =
      job_of(fmt::format("groups:\n- name: g\n  matrix: {}\n  tasks:\n  - {{{}}}\n", matrix, keys))
          .launch({.task = {0}, .attempt = 1});
  Started result{.arguments = launch.arguments};
  for (const std::string& variable : launch.environment) {
    if (variable.starts_with("TRAINYARD_V")) result.values.push_back(variable);
  }
  return result;
}

TEST(JobCommand, GivesTheShellItsValuesAsVariablesOfTheYardsOwnNames) {
  const Started text = started(R"(id: a, command: "fit {PATH} '{v}' {task_dir} {PATH}")",
                               R"({v: ["$(id); '"], PATH: ["a\nb"]})");
  EXPECT_THAT(
      text.arguments,
      ElementsAre("/bin/bash", "-c",
                  R"(fit "$TRAINYARD_V1" ''"${TRAINYARD_V2}"'' "$TRAINYARD_V3" "$TRAINYARD_V1")"));
  EXPECT_THAT(text.values, ElementsAre("TRAINYARD_V1=a\nb", "TRAINYARD_V2=$(id); '",
                                       "TRAINYARD_V3=/job/runs/sweep/g/a"));
}

TEST(JobCommand, GivesAListItsValuesAsTheyAre) {
  const Started list = started(R"(command: [sh, -c, 'echo "$1"', sh, 'a{v}'])");
  EXPECT_THAT(list.arguments, ElementsAre("sh", "-c", "echo \"$1\"", "sh", "ax"));
  EXPECT_THAT(list.values, IsEmpty());
}

TEST(JobCommand, IsRefusedWhereAListHasAShellReadAValue) {
  for (const std::string_view list :
       {"[sh, -c, 'echo {v}']", "[env, A=1, /bin/bash, -ec, 'echo {v}', x]", "[sh, -c, '{v}']"}) {
    const std::vector<std::string> mistakes = of_task(fmt::format("command: {}", list));
    ASSERT_THAT(mistakes, SizeIs(1)) << list;
    EXPECT_THAT(
        mistakes.front(),
        EndsWith("group 'g': task 1: command: '{v}' cannot be used in the text that 'sh -c' "
                 "reads as a command; pass it as an argument: [sh, -c, '... \"$1\"', sh, "
                 "\"{v}\"]"));
  }
  EXPECT_THAT(of_task("command: [python3, train.py, -c, '{v}']"), IsEmpty());
  EXPECT_THAT(of_task("command: [sh, train.sh, '{v}']"), IsEmpty());
}

TEST(JobCommand, NeedsPlainValuesWhereBashEvaluatesThem) {
  EXPECT_THAT(of_task("id: a, command: 'n={v}; echo $((n))'", "{v: [1e-3]}"), IsEmpty());
  EXPECT_THAT(
      of_task("id: '{n}', command: 'n={v}; echo $((n))'", "{n: [1, 2], v: ['x[$(id)]']}"),
      ElementsAre("sweep.yaml:5:26: group 'g': command: the value 'x[$(id)]' of '{v}' must be "
                  "plain (letters, digits and _.+-%/=,:@), as the command has arithmetic, which "
                  "evaluates values; compute it in a script that gets the value as an argument"))
      << "once for all combinations";
  EXPECT_THAT(of_task("id: a, command: '[[ {v} == a ]]'", "{v: ['a b']}"), SizeIs(1));
  EXPECT_THAT(of_task("id: a, env: {N: '{v}'}, command: '[[ $N == a ]]'", "{v: ['a b']}"),
              SizeIs(1));
  EXPECT_THAT(of_task("id: a, command: [bash, -c, '((n = $1))', bash, '{v}']", "{v: ['a b']}"),
              SizeIs(1));
  EXPECT_THAT(of_task("id: a, command: 'echo {v}'", "{v: ['x[$(id)]']}"), IsEmpty());
  EXPECT_THAT(of_task("id: '{v}', command: '[[ a == {task_id} ]]'", "{v: ['a b']}"), SizeIs(1));
}

TEST(JobCommand, NeedsAnIdThatStartsNothingWhereBashEvaluatesAVariableThatContainsIt) {
  EXPECT_THAT(of_task("command: 'n=${TRAINYARD_TASK_ID#v=}; [[ $n -gt 3 ]]'", "{v: ['x[$(id)]']}"),
              ElementsAre("sweep.yaml:5:15: group 'g': command: the id 'v=x[$(id)]', which "
                          "TRAINYARD_TASK_ID contains, must have no '$' or '`', as the command has "
                          "'[[ ... ]]', which evaluates values; write '[ ... ]'"));
  for (const std::string_view variable :
       {"TRAINYARD_TASK_DIR", "TRAINYARD_CHECKPOINT_DIR", "TRAINYARD_RESULT"}) {
    const std::string id = "id: '{v}', command: ";
    EXPECT_THAT(of_task(fmt::format("{}'[[ -e ${} ]]'", id, variable), "{v: ['x[`id`]']}"),
                SizeIs(1));
    EXPECT_THAT(of_task(fmt::format("{}'[[ -e ${} ]]'", id, variable), "{v: ['a b']}"), IsEmpty());
    EXPECT_THAT(of_task(fmt::format("{}'[ -e ${} ]'", id, variable), "{v: ['x[`id`]']}"),
                IsEmpty());
  }
}

TEST(JobCommand, TakesNoNameOfAVariableWhereBashEvaluatesValues) {
  EXPECT_THAT(of_task("id: a, env: {OTHER: x}, command: 'n={v}; ((n))'", "{v: [1+OTHER]}"),
              ElementsAre("sweep.yaml:5:39: group 'g': command: the value '1+OTHER' of '{v}' has "
                          "the name of a variable, 'OTHER', and the command has arithmetic, which "
                          "evaluates values; compute it in a script that gets the value as an "
                          "argument"));
  EXPECT_THAT(of_task("id: a, command: 'n={v}; ((n))'", "{v: [TRAINYARD_V1]}"), SizeIs(1));
  EXPECT_THAT(of_task("id: a, command: 'n={v}; ((n))'", "{v: [OTHER]}"), IsEmpty());
}

TEST(JobCommand, IsRefusedWhereAValueWouldBeReadOnceMore) {
  EXPECT_THAT(of_task(R"(command: 'echo $(( {v} + 1 ))')"),
              ElementsAre("sweep.yaml:5:15: group 'g': task 1: command: '{v}' cannot be used in "
                          "arithmetic, which would read its value as a formula; convert it to a "
                          "number first: n=$(printf %d {v}) || exit; echo $((n + 1))"));
  EXPECT_THAT(
      of_task(R"(command: "sh -c 'echo {v}'")"),
      ElementsAre(
          "sweep.yaml:5:15: group 'g': task 1: command: '{v}' cannot be used in the text that 'sh "
          "-c' reads as a command; pass it as an argument: sh -c '... \"$1\"' sh {v}"));
  EXPECT_THAT(of_task(R"(command: ['echo $(( {v} + 1 ))'], env: {A: '${{U:-{v}}}'})"), IsEmpty());
}

TEST(JobCommand, IsRefusedWhereItsLastCommandRunsInTheBackground) {
  EXPECT_THAT(of_task("command: 'train > log &'"),
              ElementsAre("sweep.yaml:5:15: group 'g': task 1: command: the last command runs in "
                          "the background, so the task would end at once and stop it; remove '&' "
                          "or 'coproc', or end with 'wait $!'"));
  EXPECT_THAT(of_task("command: 'train > log & wait $!'"), IsEmpty());
  EXPECT_THAT(of_task("command: [train, '&']"), IsEmpty());
}

TEST(JobCommand, FailsWithAnyCommandOfAPipe) {
  const Started text = started("command: 'train {v} | tee log'");
  ASSERT_THAT(text.arguments, SizeIs(5));
  EXPECT_THAT(text.arguments, Contains("pipefail"));
  EXPECT_THAT(text.arguments.back(), EndsWith("EXIT; train \"$TRAINYARD_V1\" | tee log"));
}

TEST(JobCommand, RunsInTheShellOfItsKey) {
  const Started text = started("shell: sh, command: 'train {v} | tee log'");
  EXPECT_THAT(text.arguments, ElementsAre("/bin/sh", "-c", "train \"$TRAINYARD_V1\" | tee log"));
  EXPECT_THAT(text.values, ElementsAre("TRAINYARD_V1=x"));
  EXPECT_THAT(
      job_of("groups: [{name: g, shell: sh, tasks: [{command: 'f | grep -q x && t'}]}]").notes(),
      IsEmpty())
      << "no pipe fails with 141";
  EXPECT_THAT(started("shell: bash, command: train").arguments,
              ElementsAre("/bin/bash", "-c", "train"));
  EXPECT_THAT(started("shell: sh, command: [train, '{v}']").arguments, ElementsAre("train", "x"));
  EXPECT_THAT(of_task("shell: zsh, command: 'train {v}'"),
              ElementsAre(EndsWith("shell: must be bash or sh, not 'zsh'")));
}

TEST(JobCommand, RefusesOperatorsOfBashInATextForSh) {
  for (const std::string_view command : {"train &> log", "train &>> log", "train |& tee log"}) {
    EXPECT_THAT(of_task(fmt::format("shell: sh, command: '{}'", command)),
                ElementsAre(EndsWith("command: '&>', '&>>' and '|&' work only in bash; with "
                                     "'shell: sh', write '> log 2>&1', '>> log 2>&1' or "
                                     "'2>&1 |'")));
    EXPECT_THAT(of_task(fmt::format("command: '{}'", command)), IsEmpty());
  }
  EXPECT_THAT(of_task("shell: sh, command: 'train > log 2>&1'"), IsEmpty());
}

TEST(JobCommand, GetsAWarningWhereAPipeThatMayBeCutDecides) {
  const auto notes_of = [](std::string_view command) {
    return job_of(fmt::format("groups: [{{name: g, tasks: [{{command: '{}'}}]}}]", command))
        .notes();
  };
  EXPECT_THAT(
      notes_of("if sort f | grep -q x; then train; fi"),
      Contains(
          "group 'g': task 1: a pipe into 'head', 'grep -q', 'grep -m' or 'sed q' "
          "whose status is used may fail with 141 (SIGPIPE) under pipefail; write 'head -n 1 < "
          "<(sort file)'"));
  EXPECT_THAT(notes_of("sort f | head -n 1"), IsEmpty());
}

TEST(JobCommand, GetsAWarningWhereACommandInTheBackgroundIsKilled) {
  for (const std::string_view shell : {"sh", "bash"}) {
    const auto notes_of = [&](std::string_view command) {
      return job_of(fmt::format("groups: [{{name: g, shell: {}, tasks: [{{command: '{}'}}]}}]",
                                shell, command))
          .notes();
    };
    EXPECT_THAT(notes_of("train & echo started"),
                Contains("group 'g': task 1: a command in the background ('&') is killed when the "
                         "text ends; add 'wait $!' after it, or 'kill $!' if it need not finish"));
    EXPECT_THAT(notes_of("train & wait $!"), IsEmpty());
  }
}

TEST(JobCommand, GetsAWarningWhereWaitHidesAFailure) {
  const Job job = job_of("groups: [{name: g, tasks: [{command: 'train & wait'}]}]");
  EXPECT_THAT(job.notes(),
              Contains("group 'g': task 1: 'wait' alone succeeds also when a command in the "
                       "background failed; write 'wait $!', or 'wait \"$pid\" || exit' for each "
                       "of several"));
}

TEST(JobCommand, TakesAValueThatWouldEndItsHereDocument) {
  const Started text =
      started(R"(command: "cat <<EOF\n{v}\nEOF", id: x)", R"({v: ["a\nEOF\nid"]})");
  EXPECT_THAT(text.arguments, ElementsAre("/bin/bash", "-c", "cat <<EOF\n${TRAINYARD_V1}\nEOF"));
  EXPECT_THAT(text.values, ElementsAre("TRAINYARD_V1=a\nEOF\nid"));
}

TEST(JobCommand, TakesNoValueThatIsLongerThanAVariableMayBe) {
  const std::string longest((std::size_t{128} << 10U) - 18, 'a');
  EXPECT_THAT(of_task("command: 'x {v}', id: y", fmt::format("{{v: [{}]}}", longest)), IsEmpty());
  EXPECT_THAT(
      of_task("command: 'x {v}', id: y", fmt::format("{{v: [b, {}a]}}", longest)),
      ElementsAre("sweep.yaml:3:19: group 'g': 'v': has 131055 bytes, but one value of a program "
                  "can have at most 131054; write it to a file and use the name of the file here"));
}

TEST(JobCommand, HasNoWordThatIsLongerThanTheKernelTakes) {
  const std::string longest((std::size_t{128} << 10U) - 1, 'a');
  constexpr std::string_view kWhy =
      "has 131072 bytes, but a program can be given at most 131071 (128 KiB); write it to a file "
      "and use the name of the file here";
  EXPECT_THAT(of_task(fmt::format("id: y, command: [x, {}]", longest)), IsEmpty());
  EXPECT_THAT(of_task(fmt::format("id: y, command: [x, {}b]", longest)),
              ElementsAre(fmt::format("sweep.yaml:5:22: group 'g': command: word 2 "
                                      "('aaaaaaaaaaaaaaaaaaaa...') {}",
                                      kWhy)));
  const std::string half(std::size_t{64} << 10U, 'a');
  EXPECT_THAT(of_task("id: '{n}', command: [x, y, 'b{v}{v}']",
                      fmt::format("{{n: [1, 2], v: [{}]}}", half.substr(1))),
              IsEmpty())
      << "131072 bytes with the NUL at its end";
  EXPECT_THAT(
      of_task("id: '{n}', command: [x, y, '{v}{v}']", fmt::format("{{n: [1, 2], v: [{}]}}", half)),
      ElementsAre(fmt::format("sweep.yaml:5:26: group 'g': command: word 3 "
                              "('aaaaaaaaaaaaaaaaaaaa...') {}",
                              kWhy)))
      << "once for all combinations";
  EXPECT_THAT(of_task(fmt::format("id: y, command: 'x {}'", longest.substr(2))), IsEmpty());
  EXPECT_THAT(of_task(fmt::format("id: y, command: 'x {}'", longest.substr(1))),
              ElementsAre(fmt::format("sweep.yaml:5:22: group 'g': command: the text {}", kWhy)));
  EXPECT_THAT(of_task(fmt::format("id: y, command: x, env: {{A: {}}}", longest.substr(2))),
              IsEmpty());
  EXPECT_THAT(of_task(fmt::format("id: y, command: x, env: {{A: {}}}", longest.substr(1))),
              ElementsAre("sweep.yaml:5:34: group 'g': env: A has 131070 bytes, but a program can "
                          "be given at most 131069 (128 KiB); write it to a file and use the name "
                          "of the file here"));
}

TEST(JobCommand, HasNoNulNorHasWhatItIsGiven) {
  EXPECT_THAT(of_task(R"(command: [echo, "a\0b"], env: {X: "a\0b"}, working-directory: "x\0y")"),
              ElementsAre("sweep.yaml:5:22: group 'g': task 1: command: has the character \\0, "
                          "which cannot be passed to a program",
                          "sweep.yaml:5:40: group 'g': task 1: env: X: has the character \\0, "
                          "which cannot be passed to a program",
                          "sweep.yaml:5:68: group 'g': task 1: working-directory: has the "
                          "character \\0, which cannot be passed to a program"));
  EXPECT_THAT(of_task(R"(command: "echo a\0b", id: "{v}")"),
              ElementsAre("sweep.yaml:5:15: group 'g': task '{v}': command: has the character \\0, "
                          "which cannot be passed to a program"));
  EXPECT_THAT(of_task("command: x, id: y", R"({v: ["a\0b"], include: [{w: "\0"}]})"),
              ElementsAre("sweep.yaml:3:16: group 'g': 'v': has the character \\0, which cannot be "
                          "passed to a program",
                          "sweep.yaml:3:39: group 'g': 'w': has the character \\0, which cannot be "
                          "passed to a program"));
}

}  // namespace
}  // namespace trainyard::job
