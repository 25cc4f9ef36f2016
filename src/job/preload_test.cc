// `preload`: the valid commands, and the start of their tasks.
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kPreloads =
    "groups:\n- name: g\n  matrix: {{v: [a b]}}\n  preload: {}\n  tasks: [{{id: x, {}}}]\n";

std::string job_that_preloads(std::string_view task,
                              std::string_view modules = "[numpy, my.data]") {
  return fmt::format(kPreloads, modules, task);
}

model::Launch preload_launch(std::string_view task) {
  return job_of(job_that_preloads(task)).launch({.task = {0}, .attempt = 1});
}

std::string why_not(std::string_view command) {
  const std::vector<std::string> mistakes =
      mistakes_of(job_that_preloads(fmt::format("command: {}", command)));
  return mistakes.empty() ? "" : mistakes.front();
}

TEST(Preload, NamesTheModulesAndWhatOfACommandIsTheInterpreters) {
  const model::Launch launch =
      preload_launch("command: [/opt/venv/bin/python3.12, -u, -W, error, tools/fit.py, '{v}']");
  EXPECT_THAT(launch.preload.modules, ElementsAre("numpy", "my.data"));
  EXPECT_EQ(launch.preload.interpreter, 4U);
  EXPECT_EQ(launch.preload.path, "/job/tools");
  EXPECT_EQ(launch.preload.log_path, "/job/runs/sweep/trainyard.preload.log");
  EXPECT_THAT(launch.arguments,
              ElementsAre("/opt/venv/bin/python3.12", "-u", "-W", "error", "tools/fit.py", "a b"));
}

TEST(Preload, ReadsACommandForTheShellThatIsNothingButWords) {
  const model::Launch launch =
      preload_launch(R"(command: "python3  fit.py --v {v} \"x \\\"y\\\" \\$\" 'a  b'\\ c \"\"\n")");
  EXPECT_THAT(launch.arguments,
              ElementsAre("python3", "fit.py", "--v", "a b", "x \"y\" $", "a  b c", ""));
  EXPECT_EQ(launch.preload.interpreter, 1U);
  EXPECT_EQ(launch.preload.path, "/job");
}

TEST(Preload, ReadsNoValueAsAPartOfTheCommand) {
  const model::Launch launch =
      job_of(
          R"(groups: [{name: g, matrix: {v: ["$(id) 'x' \"\\n\n;"]}, preload: numpy, tasks: [{id: x,
              command: "python3 fit.py {v} '{v}' {v}b"}]}])")
          .launch({.task = {0}, .attempt = 1});
  const std::string value = "$(id) 'x' \"\\n\n;";
  EXPECT_THAT(launch.preload.modules, ElementsAre("numpy"));
  EXPECT_THAT(launch.arguments, ElementsAre("python3", "fit.py", value, value, value + "b"));
  EXPECT_THAT(launch.environment, Not(Contains(StartsWith("TRAINYARD_V"))));
}

TEST(Preload, IsLeftOutWhereAValueMakesTheCommandNoPythons) {
  const model::Launch launch = job_of(
                                   "groups: [{name: g, matrix: {p: [./run]}, preload: numpy, "
                                   "tasks: [{id: x, command: '{p} a'}]}]")
                                   .launch({.task = {0}, .attempt = 1});
  EXPECT_THAT(launch.preload.modules, IsEmpty());
  EXPECT_THAT(launch.arguments, ElementsAre("/bin/bash", "-c", "\"$TRAINYARD_V1\" a"));
  EXPECT_THAT(launch.environment, Contains("TRAINYARD_V1=./run"));
}

TEST(Preload, ReadsDoubleQuotesAsTheShellDoes) {
  const model::Launch launch =
      preload_launch(R"(command: "python3 fit.py \"a\\\nb\" \"c!\" \"d\ne\"")");
  EXPECT_THAT(launch.arguments, ElementsAre("python3", "fit.py", "ab", "c!", "d\ne"));
}

TEST(Preload, LooksForImportsWhereTheScriptWould) {
  EXPECT_EQ(preload_launch("command: [python, -m, fit], working-directory: sub").preload.path,
            "/job/sub");
  EXPECT_EQ(preload_launch("command: [python, ../fit.py], working-directory: sub").preload.path,
            "/job");
  EXPECT_EQ(preload_launch("command: [python, /a/b/fit.py]").preload.path, "/a/b");
  EXPECT_EQ(preload_launch("command: [python, -c, 'import fit']").preload.path, "");
}

TEST(Preload, ImportsWithTheVariablesThatAllTasksHave) {
  const model::Launch launch =
      job_of(
          "groups:\n- name: g\n  preload: numpy\n  env: {A: 1, B: '{task_id}'}\n  cpus: 2\n"
          "  tasks: [{id: x, command: [python, x.py], env: {C: 3}}]\n")
          .launch({.task = {0}, .attempt = 1});
  EXPECT_THAT(launch.preload.modules, ElementsAre("numpy"));
  EXPECT_THAT(launch.preload.environment,
              ElementsAre("OMP_NUM_THREADS=2", "OPENBLAS_NUM_THREADS=2", "MKL_NUM_THREADS=2",
                          "PYTHONUNBUFFERED=1", "TRAINYARD_RUN_DIR=/job/runs/sweep", "A=1"));
  EXPECT_THAT(launch.environment, Contains("B=x"));
}

TEST(Preload, IsNothingWhereItWasNotSaid) {
  const model::Launch launch = job_of("groups: [{tasks: [{command: python3 fit.py}]}]").launch({});
  EXPECT_THAT(launch.preload.modules, IsEmpty());
  EXPECT_THAT(launch.preload.log_path, IsEmpty());
  EXPECT_THAT(launch.arguments, ElementsAre("/bin/bash", "-c", "python3 fit.py"));
}

TEST(Preload, RefusesCommandsThatAreNotAPythonScripts) {
  EXPECT_EQ(why_not("./fit.sh"),
            "sweep.yaml:5:28: group 'g': 'preload' needs a command like 'python3 train.py', and "
            "this one does not start with a Python");
  EXPECT_THAT(why_not("python3 fit.py | tee out"), HasSubstr("this one has a '|', which is for"));
  EXPECT_THAT(why_not("'python3 fit.py \"$HOME\"'"), HasSubstr("has a '$', which is for the"));
  EXPECT_THAT(why_not("\"python3 a.py\\npython3 b.py\""), HasSubstr("has several lines"));
  EXPECT_THAT(why_not("\"python3 'a.py\""), HasSubstr("has a ' without end"));
  EXPECT_THAT(why_not("A=1 python3 a.py"), HasSubstr("does not start with a Python"));
  EXPECT_THAT(why_not("[python3, -u]"), HasSubstr("has no script"));
  EXPECT_THAT(why_not("[python3, -m]"), HasSubstr("has no script"));
  EXPECT_THAT(why_not("[python3, '-']"), HasSubstr("reads its script from standard input"));
  for (const std::string_view odd : {"-um", "-mfit", "-cprint()", "--", "--help"}) {
    EXPECT_THAT(why_not(fmt::format("[python3, '{}', fit]", odd)),
                HasSubstr(fmt::format("has '{}'; give each option of Python by itself", odd)));
  }
  EXPECT_EQ(why_not("[python3, -Wmodule, -uXdev, -X, dev, -bu, fit.py]"), "");
  EXPECT_EQ(why_not("[python3, '{v}.py']"), "");
}

TEST(Preload, RefusesWhatIsNoNameOfAModule) {
  for (const std::string_view name : {"my-data", "a..b", "1a", "''", "a.py/x"}) {
    EXPECT_THAT(mistakes_of(job_that_preloads("command: [python3, x.py]", name)),
                ElementsAre(HasSubstr("is not a valid name of a Python module")))
        << name;
  }
  EXPECT_THAT(mistakes_of(job_that_preloads("command: [python3, x.py]", "[[a]]")),
              ElementsAre(HasSubstr("'preload' must be names of Python modules")));
  EXPECT_THAT(mistakes_of("groups: [{tasks: [{command: python3 x.py, preload: numpy}]}]"),
              ElementsAre(HasSubstr("'preload' belongs to the group")));
}

}  // namespace
}  // namespace trainyard::job
