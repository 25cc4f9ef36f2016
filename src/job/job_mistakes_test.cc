// Every mistake that a job file can have, with its exact words and place.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "run/run_directory.h"
#include "sys/test_directory.h"
#include "text/mistake.h"
#include "text/text_file.h"

namespace trainyard::job {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A job with one task of these keys.
std::vector<std::string> in_task(std::string_view keys, std::string_view matrix = "") {
  return mistakes_of(fmt::format("groups:\n- name: train\n{}  tasks:\n  - {{{}}}\n", matrix, keys));
}

TEST(JobMistakes, NameTheNearestKey) {
  EXPECT_THAT(
      mistakes_of("name: a\n"
                  "groups:\n"
                  "  - name: train\n"
                  "    max-paralel: 2\n"
                  "    tasks:\n"
                  "      - comand: ./train\n"
                  "      - {id: x, command: ./train, memry: 1GB}\n"
                  "run_dir: x\n"
                  "colour: red\n"),
      ElementsAre(
          "sweep.yaml:4:5: group 'train': unknown key 'max-paralel' (did you mean 'max-parallel'?)",
          "sweep.yaml:6:9: group 'train': task 1: unknown key 'comand' (did you mean 'command'?)",
          "sweep.yaml:7:35: group 'train': task 'x': unknown key 'memry' (did you mean 'memory'?)",
          "sweep.yaml:8:1: unknown key 'run_dir' (did you mean 'run-dir'?)",
          "sweep.yaml:9:1: unknown key 'colour'; remove it"));
}

TEST(JobMistakes, HaveNoMistakeInThePlaceholdersOfAMisspeltMatrix) {
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- name: train\n"
                          "  matirx: {lr: [0.1], include: [{lr: 1, seed: 2}]}\n"
                          "  tasks: [{id: 'a{lr}', command: './t {lr} {seed} {other}'}]\n"),
              ElementsAre("sweep.yaml:3:3: group 'train': unknown key 'matirx' (did you mean "
                          "'matrix'?)",
                          HasSubstr("unknown placeholder '{other}'")));
}

TEST(JobMistakes, HaveNoMistakeInThePlaceholdersOfAMistakenMatrix) {
  const auto of_matrix = [](const std::string& matrix) {
    return mistakes_of("groups:\n- name: a\n  matrix: " + matrix +
                       "\n  tasks: [{command: './t {lr} {seed}'}]\n");
  };
  for (const std::string matrix :
       {"[lr, seed]", "lr=0.1 seed=1", "[{lr: [1]}, {seed: [1]}]", "[lr=0.1, seed=1]"}) {
    EXPECT_THAT(of_matrix(matrix),
                ElementsAre("sweep.yaml:3:11: group 'a': 'matrix' must be keys with their values, "
                            "as in {lr: [1e-3, 1e-4], seed: 0..4}"))
        << matrix;
  }
  EXPECT_THAT(
      of_matrix("{lr=0.1, seed=0..3}"),
      ElementsAre("sweep.yaml:3:12: group 'a': 'lr=0.1': write 'lr: ' instead of 'lr='",
                  "sweep.yaml:3:20: group 'a': 'seed=0..3': write 'seed: ' instead of 'seed='"));
}

TEST(JobMistakes, SayWhereAKeyBelongs) {
  EXPECT_THAT(mistakes_of("tasks: []\nmatrix: {}\ncommand: x\ngroups:\n- tasks: [{command: a}]\n"),
              ElementsAre("sweep.yaml:1:1: 'tasks' belongs to a group, under 'groups'",
                          "sweep.yaml:2:1: 'matrix' belongs to a group, under 'groups'",
                          "sweep.yaml:3:1: 'command' belongs to a task, under 'tasks' of a group"));
  EXPECT_THAT(mistakes_of("cpus: 2\nenv: {}\nthreads: 2\ngroups:\n- tasks: [{command: a}]\n"),
              ElementsAre("sweep.yaml:1:1: 'cpus' belongs to a group, under 'groups'",
                          "sweep.yaml:2:1: 'env' belongs to a group, under 'groups'",
                          "sweep.yaml:3:1: unknown key 'threads' (did you mean 'cpus'?); "
                          "'cpus' belongs to a group, under 'groups'"));
  EXPECT_THAT(
      in_group("command: x\nid: y"),
      ElementsAre("sweep.yaml:4:5: group 'train': 'command' belongs to a task, under 'tasks'",
                  "sweep.yaml:5:5: group 'train': 'id' belongs to a task, under 'tasks'; a "
                  "group has a 'name'"));
  EXPECT_THAT(
      in_group("run-dir: x\nmachine: lab1\nOMP_NUM_THREADS: 1"),
      ElementsAre("sweep.yaml:4:5: group 'train': 'run-dir' belongs to the top level of the job "
                  "file",
                  "sweep.yaml:5:5: group 'train': unknown key 'machine'; write it as in 'where: "
                  "{machine: lab1}'",
                  "sweep.yaml:6:5: group 'train': unknown key 'OMP_NUM_THREADS'; write a variable "
                  "under 'env'"));
  EXPECT_THAT(in_task("command: x, notify: y, host: lab1, TIME_LIMIT: 1h"),
              ElementsAre(HasSubstr("'notify' belongs to the top level of the job file"),
                          HasSubstr("unknown key 'host'; write it as in 'where: {machine: lab1}'"),
                          HasSubstr("unknown key 'TIME_LIMIT' (did you mean 'time-limit'?)")));
  EXPECT_THAT(mistakes_of("defaults: {cpus: 1}\ngroups: [{tasks: [{command: a}]}]\n"),
              ElementsAre("sweep.yaml:1:1: unknown key 'defaults'; write its keys in each group, "
                          "where they apply to all its tasks"));
  EXPECT_THAT(in_task("cmd: x"), Contains(HasSubstr("'cmd' (did you mean 'command'?)")));
  EXPECT_THAT(in_task("command: x, mem: 1GB, environment: {}"),
              ElementsAre(HasSubstr("unknown key 'mem' (did you mean 'memory'?)"),
                          HasSubstr("unknown key 'environment' (did you mean 'env'?)")));
  EXPECT_THAT(in_group("mem: 1GB\nenvironment: {}"),
              ElementsAre(HasSubstr("unknown key 'mem' (did you mean 'memory'?)"),
                          HasSubstr("unknown key 'environment' (did you mean 'env'?)")));
  EXPECT_THAT(in_group("timeout: 3h\ncwd: x"),
              ElementsAre(HasSubstr("unknown key 'timeout' (did you mean 'time-limit'?)"),
                          HasSubstr("unknown key 'cwd' (did you mean 'working-directory'?)")));
  EXPECT_THAT(
      in_task("command: x, name: y, matrix: {}, needs: [], max-parallel: 1, fail-fast: 1"),
      ElementsAre(
          "sweep.yaml:4:18: group 'train': task 1: unknown key 'name' (did you mean 'id'?)",
          "sweep.yaml:4:27: group 'train': task 1: 'matrix' belongs to the group and applies to "
          "all its tasks",
          "sweep.yaml:4:39: group 'train': task 1: 'needs' belongs to a group: put this task into "
          "a group of its own after the group that it needs ('needs: [{group: GROUP, match: "
          "matrix}]' there pairs tasks with the same matrix values)",
          "sweep.yaml:4:50: group 'train': task 1: 'max-parallel' belongs to the "
          "group",
          "sweep.yaml:4:67: group 'train': task 1: 'fail-fast' belongs to the group"));
}

TEST(JobMistakes, ShowHowASettingIsWrittenUnderConfig) {
  EXPECT_THAT(
      mistakes_of("scheduler: {max-process: 4}\nmax-process: 4\ngpu-priority.reverse: true\n"
                  "task: {command: x}\nmail: x\ngroups: [{tasks: [{command: a}]}]\n"),
      ElementsAre("sweep.yaml:1:1: unknown key 'scheduler'; write it as in 'config: {scheduler: "
                  "...}'",
                  "sweep.yaml:2:1: unknown key 'max-process'; write it as in 'config: "
                  "{scheduler.max-process: ...}'",
                  "sweep.yaml:3:1: unknown key 'gpu-priority.reverse'; write it as in 'config: "
                  "{gpu-priority.reverse: ...}'",
                  "sweep.yaml:4:1: unknown key 'task' (did you mean 'tasks'?); 'tasks' belongs to "
                  "a group, under 'groups'",
                  "sweep.yaml:5:1: unknown key 'mail'; remove it; the settings under 'smtp' send "
                  "mail"));
}

TEST(JobMistakes, TakeNoWordOfOtherToolsForAParameter) {
  EXPECT_THAT(in_group("venv: .venv\nstdout: x.log\nseeds: 3\ngpu_type: a100\nqos: high"),
              ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'venv'; activate it in the "
                          "command, as in '. .venv/bin/activate && python3 train.py'",
                          "sweep.yaml:5:5: group 'train': unknown key 'stdout'; 'trainyard logs' "
                          "shows the output of a task; remove this key",
                          "sweep.yaml:6:5: group 'train': unknown key 'seeds'; write it in a "
                          "group, as in 'matrix: {seed: [0, 1, 2]}'",
                          "sweep.yaml:7:5: group 'train': unknown key 'gpu_type'; write it as in "
                          "'where: {gpu: H100}'",
                          "sweep.yaml:8:5: group 'train': unknown key 'qos'; remove it; 'trainyard "
                          "run --slurm' takes options of Slurm"));
  for (const char* const word :
       {"output", "log", "image", "conda", "modules", "account", "description", "args", "count",
        "resources", "apiVersion", "kind", "services", "gres", "ntasks"}) {
    EXPECT_THAT(in_task(fmt::format("command: x, {}: y", word)),
                ElementsAre(Not(HasSubstr("matrix"))))
        << word;
  }
}

TEST(JobMistakes, TakeOnlyAKeyWithItsValuesOrItsPlaceholderForAParameter) {
  const std::string cure = "; to use it as a parameter, write it under 'matrix' of the group";
  EXPECT_THAT(in_group("lr: [0.1, 0.2]\ndocker: {image: x}\nqueue: fast\nlr2: 1"),
              ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'lr'" + cure,
                          "sweep.yaml:5:5: group 'train': unknown key 'docker'; remove it",
                          "sweep.yaml:6:5: group 'train': unknown key 'queue'; remove it",
                          "sweep.yaml:7:5: group 'train': unknown key 'lr2'; remove it"));
  EXPECT_THAT(mistakes_of("cmd: [x]\ngroups: [{tasks: [{command: x}]}]\n"),
              ElementsAre("sweep.yaml:1:1: unknown key 'cmd' (did you mean 'command'?); 'command' "
                          "belongs to a task, under 'tasks' of a group"));
  EXPECT_THAT(in_task("command: './t {lr}', lr: 1"), Contains(HasSubstr("'lr'" + cure)));
  EXPECT_THAT(mistakes_of("version: 2\nsettings: {}\ngroups: [{tasks: [{command: x}]}]\n"),
              ElementsAre("sweep.yaml:1:1: unknown key 'version'; remove it",
                          "sweep.yaml:2:1: unknown key 'settings' (did you mean 'config'?)"));
  EXPECT_THAT(in_group("cpu-memory: 1GB\nlimits: {gpus: 1}\nworkdir: x"),
              ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'cpu-memory' (did you mean "
                          "'memory'?)",
                          "sweep.yaml:5:5: group 'train': unknown key 'limits'; write it as in "
                          "'config: {limits: ...}' at the top level of the job file",
                          "sweep.yaml:6:5: group 'train': unknown key 'workdir' (did you mean "
                          "'working-directory'?)"));
}

TEST(JobMistakes, NameTheToolWhoseFileItIs) {
  EXPECT_THAT(
      mistakes_of("program: train.py\nmethod: bayes\nmetric: {name: loss, goal: minimize}\n"
                  "parameters:\n  lr: {values: [0.1, 0.01]}\n"),
      ElementsAre("sweep.yaml:1:1: this is a W&B sweep, not a job file; in a group, write its "
                  "parameters as 'matrix: {lr: [0.1, 0.01]}', and its program as 'tasks: "
                  "[{command: \"python3 train.py --lr {lr}\"}]'"));
  EXPECT_THAT(mistakes_of("study_name: a\ndirection: minimize\nlr: [0.1]\n"),
              ElementsAre("sweep.yaml:1:1: this is an Optuna study, not a job file; trainyard does "
                          "not search: list the values to try in a group, as in 'matrix: {lr: "
                          "[0.1, 0.01]}'"));
  EXPECT_THAT(mistakes_of("defaults:\n- model: small\nlr: 0.1\n"),
              ElementsAre("sweep.yaml:1:1: this is a Hydra configuration, not a job file; run its "
                          "program: trainyard run --matrix lr=0.1,0.01 -- python3 train.py "
                          "'lr={lr}'"));
  EXPECT_THAT(mistakes_of("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {}\n"),
              ElementsAre("sweep.yaml:1:1: this is a Kubernetes manifest, not a job file; in a "
                          "group, write the command of its container as 'tasks: [{command: "
                          "\"python3 train.py\"}]'"));
  EXPECT_THAT(in_group("image: x"),
              ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'image'; remove it"));
  EXPECT_THAT(mistakes_of("method: x\ndefaults: {}\ngroups: [{tasks: [{command: x}]}]\n"),
              ElementsAre(HasSubstr("unknown key 'method'"), HasSubstr("unknown key 'defaults'")));
}

TEST(JobMistakes, ShowWhereMatchBelongs) {
  const std::string belongs = "'match' belongs to 'needs', as in [{group: GROUP, match: matrix}]";
  EXPECT_THAT(in_group("match: matrix"), ElementsAre("sweep.yaml:4:5: group 'train': " + belongs));
  EXPECT_THAT(in_task("command: x, match: matrix"),
              ElementsAre("sweep.yaml:4:18: group 'train': task 1: " + belongs));
}

TEST(JobMistakes, NameAKeyThatOtherToolsCallOtherwiseAlsoWhereItIsMisplaced) {
  EXPECT_THAT(in_group("retry: 2"),
              ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'retry' (did you mean "
                          "'retries'?)"));
  for (const char* const value : {"0", "1", "two"}) {
    EXPECT_THAT(in_group(fmt::format("gpu: {}", value)),
                ElementsAre("sweep.yaml:4:5: group 'train': unknown key 'gpu' (did you mean "
                            "'gpus'?)"));
  }
  EXPECT_THAT(in_task("command: x, max-retries: 2, num_gpus: 1"),
              ElementsAre("sweep.yaml:4:18: group 'train': task 1: unknown key 'max-retries' (did "
                          "you mean 'retries'?)",
                          "sweep.yaml:4:34: group 'train': task 1: unknown key 'num_gpus' (did you "
                          "mean 'gpus'?)"));
  EXPECT_THAT(
      in_task("command: x, cores: 2, dir: y"),
      ElementsAre("sweep.yaml:4:18: group 'train': task 1: unknown key 'cores' (did you mean "
                  "'cpus'?)",
                  "sweep.yaml:4:28: group 'train': task 1: unknown key 'dir' (did you mean "
                  "'working-directory'?)"));
  EXPECT_THAT(in_task("command: x, depends_on: [a], parallel: 2"),
              ElementsAre("sweep.yaml:4:18: group 'train': task 1: unknown key 'depends_on' (did "
                          "you mean 'needs'?); "
                          "'needs' belongs to a group: put this task into a group of its own after "
                          "the group that it needs ('needs: [{group: GROUP, match: matrix}]' there "
                          "pairs tasks with the same matrix values)",
                          "sweep.yaml:4:35: group 'train': task 1: unknown key 'parallel' (did you "
                          "mean 'max-parallel'?); "
                          "'max-parallel' belongs to the group"));
}

TEST(JobMistakes, SayWhatAJobFileIs) {
  EXPECT_THAT(mistakes_of(""), ElementsAre("sweep.yaml: is empty; a job file needs 'groups'"));
  EXPECT_THAT(mistakes_of("[]"),
              ElementsAre("sweep.yaml:1:1: a job file must have the key 'groups:', with the list "
                          "of groups below it"));
  EXPECT_THAT(mistakes_of("name: x"), ElementsAre("sweep.yaml:1:1: has no 'groups'"));
  EXPECT_THAT(mistakes_of("group: []"),
              ElementsAre("sweep.yaml:1:1: unknown key 'group' (did you mean 'groups'?)"));
  EXPECT_THAT(mistakes_of("tasks: [{command: x}]"),
              ElementsAre("sweep.yaml:1:1: 'tasks' belongs to a group, under 'groups'"));
  EXPECT_THAT(mistakes_of("groups: []"), ElementsAre("sweep.yaml:1:9: 'groups' is empty"));
  EXPECT_THAT(mistakes_of("groups: {}"),
              ElementsAre("sweep.yaml:1:9: 'groups' must be a list of groups, each with 'tasks'; "
                          "begin each group with '- name:'"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, tasks: []}]"),
              ElementsAre("sweep.yaml:1:27: group 'a': 'tasks' is empty"));
  EXPECT_THAT(
      mistakes_of("groups: [train]"),
      ElementsAre("sweep.yaml:1:10: group-1: a group must be keys with values: name, tasks, ..."));
  EXPECT_THAT(mistakes_of("groups: [{name: a}]"),
              ElementsAre("sweep.yaml:1:10: group 'a': has no 'tasks'"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, tasks: {command: x}}]"),
              ElementsAre("sweep.yaml:1:27: group 'a': 'tasks' must be a list, each with a "
                          "'command', as in [{command: ./train}]"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, tasks: [./train]}]"),
              ElementsAre("sweep.yaml:1:28: group 'a': task 1: a task must have keys: write '- "
                          "command: ./train'"));
  EXPECT_THAT(mistakes_of("groups:\n- name: a\n  tasks:\n  - python3 fit.py\n"),
              ElementsAre("sweep.yaml:4:5: group 'a': task 1: a task must have keys: write '- "
                          "command: python3 fit.py'"));
}

TEST(JobMistakes, SayWhichNamesAreSafe) {
  EXPECT_THAT(
      mistakes_of("name: a/b\ngroups: [{name: .., tasks: [{command: x}]}]"),
      ElementsAre("sweep.yaml:1:7: the name 'a/b' has a '/'; it must be a valid directory name",
                  "sweep.yaml:2:17: the group name '..' stands for an existing directory; it must "
                  "be a valid directory name"));
  const auto name = [](std::string_view text) {
    return mistakes_of(
        fmt::format("name: {}\ngroups: [{{name: 5, tasks: [{{command: x}}]}}]", text));
  };
  EXPECT_THAT(name("5"), ElementsAre("sweep.yaml:1:7: the name '5' means the run with this number; "
                                     "choose a name with a letter, such as 'run-5'"));
  EXPECT_THAT(name("last"), ElementsAre("sweep.yaml:1:7: the name 'last' means the last run; "
                                        "choose another, such as 'last-run'"));
  EXPECT_THAT(name("':x'"), ElementsAre("sweep.yaml:1:7: the name ':x' starts with ':', as states "
                                        "of tasks do; choose another"));
  EXPECT_THAT(name("a@last"), IsEmpty());
  for (const char* const pattern : {"net*", "'net?'", "'net[1]'"}) {
    EXPECT_THAT(name(pattern), ElementsAre(HasSubstr("' is a pattern of tasks; choose one without "
                                                     "'*', '?' and '['")))
        << pattern;
  }
  EXPECT_THAT(name("5a"), IsEmpty());
  EXPECT_THAT(name("last-5"), IsEmpty());
  EXPECT_THAT(name("a@5"), IsEmpty());
  EXPECT_THAT(mistakes_of("groups: [{name: train/x, tasks: []}]"),
              ElementsAre("sweep.yaml:1:17: the group name 'train/x' has a '/'; it must be a valid "
                          "directory name",
                          "sweep.yaml:1:33: group 'train/x': 'tasks' is empty"));
  EXPECT_THAT(mistakes_of("groups: [{name: reports, tasks: [{command: x}]}]"),
              ElementsAre("sweep.yaml:1:17: group 'reports': the name 'reports' is reserved: "
                          "trainyard uses it in the run directory"));
  const auto id = [](const std::string& text) { return in_task("command: x, id: " + text); };
  EXPECT_THAT(id("a/b"), ElementsAre("sweep.yaml:4:22: group 'train': the id 'a/b' has a '/'; it "
                                     "must be a valid directory name"));
  EXPECT_THAT(in_task("command: x, id: 'a/{m}'", "  matrix: {m: [b]}\n"),
              ElementsAre(HasSubstr("the id 'a/b' has a '/'")));
  EXPECT_THAT(id("\"\""), ElementsAre(HasSubstr("the id '' is empty")));
  EXPECT_THAT(id("."), ElementsAre(HasSubstr("the id '.' stands for an existing directory")));
  EXPECT_THAT(id("-x"),
              ElementsAre(HasSubstr("starts with '-', which commands read as an option")));
  EXPECT_THAT(id("\"a\\nb\""), ElementsAre(HasSubstr("has a control character")));
  EXPECT_THAT(id("\"a\\u202Eb\""), ElementsAre(HasSubstr("has a control character")));
  EXPECT_THAT(id("\"a\\u200Bb\""),
              ElementsAre(HasSubstr("has the character U+200B, which cannot be seen")));
  EXPECT_THAT(id("\"\\uFEFFa\""),
              ElementsAre(HasSubstr("has the character U+FEFF, which cannot be seen")));
  EXPECT_THAT(id("\"\\u65E5\\u672C \\u2764\\uFE0F\""), IsEmpty());
  EXPECT_THAT(id("\" a\""), ElementsAre(HasSubstr("starts or ends with a space")));
  EXPECT_THAT(id(std::string(201, 'x')),
              ElementsAre(HasSubstr("has 201 bytes, but at most 200 are allowed")));
  EXPECT_THAT(id(std::string(200, 'x')), IsEmpty());
}

TEST(JobMistakes, SayWhatIsWrongWithAnUnsafeDefaultId) {
  const std::string longest(200, 'x');
  EXPECT_THAT(in_task("command: x", fmt::format("  matrix: {{data: [{}]}}\n", longest)),
              ElementsAre(fmt::format("sweep.yaml:5:5: group 'train': the id 'data={}' has 205 "
                                      "bytes, but at most 200 are allowed; it must be a valid "
                                      "directory name; give the task an 'id'",
                                      longest)));
}

TEST(JobMistakes, SayWhatAValueShouldBe) {
  EXPECT_THAT(in_group("memory: auto"),
              ElementsAre("sweep.yaml:4:13: group 'train': memory: 'auto' is not a valid size; "
                          "leave it out to use the learned estimate"));
  EXPECT_THAT(
      in_group("memory: 8gb\n"
               "cpus: two\n"
               "time-limit: 90\n"
               "max-parallel: -1\n"
               "fail-fast: yes\n"
               "try-first: 2\n"
               "env: [A]\n"
               "working-directory: [x]\n"
               "needs: {a: b}\n"),
      ElementsAre(
          "sweep.yaml:4:13: group 'train': memory: '8gb' is in bits: write '8GB'",
          "sweep.yaml:5:11: group 'train': cpus: 'two' is not a number of CPUs, as in 4 or 0.5",
          "sweep.yaml:6:17: group 'train': time-limit: '90' has no unit (did you mean '90s' or "
          "'90m'?)",
          "sweep.yaml:7:19: group 'train': max-parallel: '-1' is not a whole number of 0 or "
          "more",
          "sweep.yaml:8:16: group 'train': fail-fast: must be true or false, not 'yes' (did you "
          "mean 'true'?)",
          "sweep.yaml:9:16: group 'train': try-first: must be 0 or 1, not '2'",
          "sweep.yaml:10:10: group 'train': 'env' must be names with values, as in "
          "{CUDA_LAUNCH_BLOCKING: 1}",
          "sweep.yaml:11:24: group 'train': 'working-directory' must be a single value, not a list",
          "sweep.yaml:12:12: group 'train': 'needs' must be names of groups, as in [prepare, "
          "train], or tasks with the same matrix values, as in [{group: train, match: matrix}]",
          "sweep.yaml:12:13: group 'train': unknown key 'a'; the known keys are group, match"));
  EXPECT_THAT(in_group("memory: 500"),
              ElementsAre("sweep.yaml:4:13: group 'train': memory: '500' has no unit and would be "
                          "500 bytes (did you mean '500GB' or '500MB'?)"));
  EXPECT_THAT(in_group("memory:"), ElementsAre(HasSubstr("group 'train': 'memory' has no value")));
  EXPECT_THAT(
      in_group("start-after: 22:00"),
      ElementsAre(StartsWith("sweep.yaml:4:18: group 'train': start-after: '22:00' may mean "
                             "22m or a time of day; write '22m', or ")));
}

TEST(JobMistakes, SayWhatACommandIs) {
  EXPECT_THAT(in_task("command: ''"),
              ElementsAre("sweep.yaml:4:15: group 'train': task 1: 'command' is empty"));
  EXPECT_THAT(in_task("command: []"),
              ElementsAre("sweep.yaml:4:15: group 'train': task 1: 'command' is empty"));
  EXPECT_THAT(in_task("command: {a: b}"), ElementsAre(HasSubstr("'command' must be text")));
  EXPECT_THAT(in_task("command: ['', x]"),
              ElementsAre(HasSubstr("the program of 'command' is empty")));
  EXPECT_THAT(
      in_task("command: [a, [b]]"),
      ElementsAre(
          "sweep.yaml:4:19: group 'train': task 1: 'command: item 2' must be a single value, not a "
          "list"));
  EXPECT_THAT(in_task("command: [a, {lr}]", "  matrix: {lr: [1]}\n"),
              ElementsAre("sweep.yaml:5:19: group 'train': task 1: 'command: item 2' must be "
                          "a single value; text that starts with a placeholder needs quotes: "
                          "\"{lr}\""));
}

TEST(JobMistakes, SayWhatAnEnvironmentIs) {
  EXPECT_THAT(
      in_task("command: x, env: {A-B: 1, TRAINYARD_GROUP: x, C: , D: [1], '': 2, E: '{q}'}"),
      ElementsAre(
          "sweep.yaml:4:24: group 'train': task 1: env: 'A-B' is not a valid variable name",
          "sweep.yaml:4:32: group 'train': task 1: env: 'TRAINYARD_GROUP' is set by trainyard; "
          "choose another name",
          "sweep.yaml:4:52: group 'train': task 1: env: 'C' has no value; write \"\" "
          "for an empty one",
          "sweep.yaml:4:60: group 'train': task 1: env: 'D' must be a single value, not a list",
          "sweep.yaml:4:65: group 'train': task 1: env: '' is not a valid variable name",
          "sweep.yaml:4:75: group 'train': task 1: env: E: unknown placeholder '{q}'; add 'q' to "
          "the matrix, or write '{{q}}' for literal text"));
}

TEST(JobMistakes, SayWhichPlaceholderWasMeant) {
  EXPECT_THAT(
      in_task("command: 'train --lr {rl} {tsak_dir}', memory: '{mem}', id: '{task_id}'",
              "  matrix: {lr: [1]}\n"),
      ElementsAre(
          "sweep.yaml:5:15: group 'train': task '{task_id}': command: unknown placeholder '{rl}' "
          "(did you mean '{lr}'?)",
          "sweep.yaml:5:15: group 'train': task '{task_id}': command: unknown placeholder "
          "'{tsak_dir}' (did you mean '{task_dir}'?)",
          "sweep.yaml:5:53: group 'train': task '{task_id}': memory: unknown placeholder '{mem}'; "
          "add 'mem' to the matrix (keys: lr), or write '{{mem}}' for literal text",
          "sweep.yaml:5:66: group 'train': task '{task_id}': id: '{task_id}' cannot be a part "
          "of the id"));
  EXPECT_THAT(mistakes_of("run-dir: 'a/{lr}'\ngroups: [{tasks: [{command: x}]}]"),
              ElementsAre("sweep.yaml:1:10: run-dir: unknown placeholder '{lr}'; for literal text, "
                          "write '{{lr}}'"));
}

TEST(JobMistakes, NameTheCombinationThatLacksAValue) {
  EXPECT_THAT(in_task("command: 'x {b}'", "  matrix: {a: [1, 2, 3], include: [{a: 2, b: x}]}\n"),
              ElementsAre("sweep.yaml:5:15: group 'train': '{b}' has no value in the combination "
                          "a=1"));
}

TEST(JobMistakes, NameTheCombinationWhoseValueIsWrong) {
  EXPECT_THAT(in_task("command: x, memory: '{mem}'", "  matrix: {mem: [1GB, 2gb], s: 0..5}\n"),
              ElementsAre("sweep.yaml:5:26: group 'train': memory: '2gb' is in bits: write "
                          "'2GB' (in the combination mem=2gb,s=0)"));
}

TEST(JobMistakes, SayWhatAMatrixIs) {
  const auto matrix = [](std::string_view text) {
    return in_task("command: x", fmt::format("  matrix: {}\n", text));
  };
  EXPECT_THAT(matrix("[1]"),
              ElementsAre("sweep.yaml:3:11: group 'train': 'matrix' must be keys with their "
                          "values, as in {lr: [1e-3, 1e-4], seed: 0..4}"));
  EXPECT_THAT(matrix("{lr: 1e-3}"),
              ElementsAre("sweep.yaml:3:16: group 'train': 'lr' must be a list as in [1e-3, 1e-4], "
                          "a range as in 0..99, or the lines of a file as in {file: seeds.txt}"));
  EXPECT_THAT(matrix("{s: '0..3'}"),
              ElementsAre("sweep.yaml:3:15: group 'train': 's' must be a range without quotes: "
                          "0..3"));
  EXPECT_THAT(matrix("{lr: {files: x}}"), ElementsAre(HasSubstr("'lr' must be a list as in")));
  EXPECT_THAT(matrix("{lr: []}"), ElementsAre(HasSubstr("'lr' has no values")));
  EXPECT_THAT(matrix("{lr: [1, 2, 1]}"),
              ElementsAre("sweep.yaml:3:23: group 'train': 'lr': duplicate value '1'"));
  EXPECT_THAT(matrix("{lr: [0..3, 2]}"), ElementsAre(HasSubstr("duplicate value '2'")));
  EXPECT_THAT(matrix("{lr: [{a: 1}, ]}"),
              ElementsAre("sweep.yaml:3:17: group 'train': 'lr': a value of a matrix must be a "
                          "single number or text"));
  EXPECT_THAT(matrix("{s: [1, 2], exclud: [{s: 1}], inlcude: [{s: 3}]}"),
              ElementsAre("sweep.yaml:3:23: group 'train': 'exclud' has combinations for values "
                          "(did you mean 'exclude'?)",
                          "sweep.yaml:3:41: group 'train': 'inlcude' has combinations for values "
                          "(did you mean 'include'?)"));
  EXPECT_THAT(matrix("{s: 0..}"),
              ElementsAre(HasSubstr("'s': '0..' is not a valid range; write it as in")));
  EXPECT_THAT(matrix("{s: [0...3]}"), ElementsAre(HasSubstr("'s': '0...3' is not a valid range")));
  EXPECT_THAT(matrix("{a b: [1]}"),
              ElementsAre("sweep.yaml:3:12: group 'train': the matrix key 'a b' is not a valid "
                          "name; use letters, digits, '_' and '-', and start with a letter"));
  EXPECT_THAT(matrix("{task_dir: [1]}"),
              ElementsAre("sweep.yaml:3:12: group 'train': the matrix key 'task_dir' is the name "
                          "of a built-in placeholder; choose another name"));
  EXPECT_THAT(matrix("{lr: [1], exclude: [{rl: 1}]}"),
              ElementsAre("sweep.yaml:3:32: group 'train': exclude: the matrix has no key 'rl' "
                          "(did you mean 'lr'?)"));
  EXPECT_THAT(matrix("{lr: [1], exclude: {lr: 1}}"),
              ElementsAre("sweep.yaml:3:30: group 'train': 'exclude' must be a list of "
                          "combinations, as in [{lr: 1e-3, seed: 0}]"));
  EXPECT_THAT(matrix("{lr: [1], include: [5]}"),
              ElementsAre("sweep.yaml:3:31: group 'train': an entry of 'include' must be a "
                          "combination, as in {lr: 1e-3, seed: 0}"));
  EXPECT_THAT(
      matrix("{lr: [1], exclude: [{lr: 1}]}"),
      ElementsAre("sweep.yaml:3:11: group 'train': the matrix is empty: no combination is left"));
  EXPECT_THAT(matrix("{a: 0..9999, b: 0..9999}"),
              ElementsAre("sweep.yaml:3:11: group 'train': the matrix makes more than 1000000 "
                          "combinations"));
}

TEST(JobMistakes, DoNotFollowFromABrokenMatrix) {
  EXPECT_THAT(in_task("command: 'x {lr} {more}', id: '{seed}'",
                      "  matrix: {lr: 5, seed: [1], include: [{more: 1}]}\n"),
              ElementsAre(HasSubstr("'lr' must be a list")));
}

TEST(JobMistakes, NameBothPlacesOfTwins) {
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- name: a\n"
                          "  tasks: [{command: x}]\n"
                          "- name: a\n"
                          "  tasks:\n"
                          "  - {id: x, command: x}\n"
                          "  - {id: y, command: x}\n"),
              ElementsAre("sweep.yaml:4:9: duplicate group name 'a'; the first is in line 2"));
  EXPECT_THAT(
      mistakes_of("groups:\n"
                  "- name: a\n"
                  "  tasks:\n"
                  "  - {id: x, command: x}\n"
                  "  - {id: y, command: x}\n"
                  "  - {id: x, command: x}\n"),
      ElementsAre("sweep.yaml:6:10: group 'a': duplicate id 'x'; the first is at sweep.yaml:4:10"));
  EXPECT_THAT(in_task("command: x, id: same", "  matrix: {a: 0..9}\n"),
              ElementsAre("sweep.yaml:5:22: group 'train': the id 'same' is the same for several "
                          "combinations of the matrix; add placeholders that make it unique"));
  EXPECT_THAT(in_task("command: x, id: 'a{a}'", "  matrix: {a: 0..9, b: [1, 2]}\n"),
              ElementsAre(HasSubstr("is the same for several combinations")));
  EXPECT_THAT(in_task("command: x", "  matrix: {model: [meta/llama, meta_llama]}\n"),
              ElementsAre(HasSubstr("the id 'model=meta_llama' is the same for several")));
}

TEST(JobMistakes, AllowTheSameIdInTwoGroupsUnlessToldOtherwise) {
  constexpr std::string_view kText =
      "groups:\n"
      "- {name: a, tasks: [{id: x, command: x}]}\n"
      "- {name: b, tasks: [{id: x, command: x}]}\n";
  EXPECT_THAT(mistakes_of(kText), IsEmpty());
  LoadOptions options = in_job_directory();
  options.settings = {"task.allow-duplicate-id=false"};
  EXPECT_THAT(mistakes_of(kText, options),
              ElementsAre("sweep.yaml:3:26: group 'b': the id 'x' is also in group 'a' at "
                          "sweep.yaml:2:26, and task.allow-duplicate-id is false"));
  options.settings = {"task.directory-grouping=false"};
  EXPECT_THAT(mistakes_of(kText, options),
              ElementsAre("sweep.yaml:3:26: group 'b': the id 'x' is also in group 'a' at "
                          "sweep.yaml:2:26, and without task.directory-grouping they would share a "
                          "directory"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, tasks: [{id: reports, command: x}]}]", options),
              ElementsAre(HasSubstr("the id 'reports' is reserved")));
}

TEST(JobMistakes, NameAnUnknownGroupAndACircle) {
  EXPECT_THAT(
      mistakes_of("groups:\n"
                  "- {name: prepare, tasks: [{command: x}]}\n"
                  "- {name: train, needs: [prepair, zz], tasks: [{command: x}]}\n"),
      ElementsAre("sweep.yaml:3:25: group 'train': needs: group 'prepair' not found (did "
                  "you mean 'prepare'?)",
                  "sweep.yaml:3:34: group 'train': needs: group 'zz' not found; other groups: "
                  "prepare"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, needs: zz, tasks: [{command: x}]}]"),
              ElementsAre(HasSubstr("needs: group 'zz' not found; 'a' is the only group")));
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- {name: a, needs: c, tasks: [{command: x}]}\n"
                          "- {name: b, tasks: [{command: x}]}\n"
                          "- {name: c, needs: [b], tasks: [{command: x}]}\n"),
              ElementsAre("sweep.yaml:2:20: group 'a': cycle in 'needs': 'a' needs 'c', 'c' needs "
                          "'b', 'b' needs 'a' (the group before it)"));
  EXPECT_THAT(mistakes_of("groups: [{name: a, needs: [a], tasks: [{command: x}]}]"),
              ElementsAre("sweep.yaml:1:28: group 'a': cycle in 'needs': 'a' needs 'a'"));
}

TEST(JobMistakes, NameEveryCircle) {
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- {name: a, needs: a, tasks: [{command: x}]}\n"
                          "- {name: b, needs: [f, d], tasks: [{command: x}]}\n"
                          "- {name: c, needs: [b], tasks: [{command: x}]}\n"
                          "- {name: d, needs: [a, c], tasks: [{command: x}]}\n"
                          "- {name: e, needs: [b], tasks: [{command: x}]}\n"
                          "- {name: f, needs: [], tasks: [{command: x}]}\n"),
              ElementsAre("sweep.yaml:2:20: group 'a': cycle in 'needs': 'a' needs 'a'",
                          "sweep.yaml:3:24: group 'b': cycle in 'needs': 'b' needs 'd', 'd' needs "
                          "'c', 'c' needs 'b'"));
}

TEST(JobMistakes, TellWhatTheMachineCanNeverHold) {
  EXPECT_THAT(
      in_task("id: big, command: x, memory: 64GB"),
      ElementsAre("sweep.yaml:4:35: group 'train': task 'big' can never run here: needs 64 GB of "
                  "memory, this machine has 18 GB available (20 GB less 2 GB kept free); request "
                  "at most 18GB (if no other process uses any); 'run --on HOST' uses another "
                  "machine"));
  EXPECT_THAT(
      in_group("cpus: 6"),
      ElementsAre("sweep.yaml:4:11: group 'train': task 'train-1' can never run here: needs 6 "
                  "CPUs, this machine has 4; request at most 4; 'run --on HOST' uses another "
                  "machine"));
  EXPECT_THAT(in_task("command: x, memory: '{m}'", "  matrix: {m: [1GB, 18GB, 19GB]}\n"),
              ElementsAre(HasSubstr("task 'm=19GB' can never run here: needs 19 GB")));
  EXPECT_THAT(in_task("command: x, memory: 64GB, cpus: '{c}'", "  matrix: {c: [1, 2, 3]}\n"),
              ElementsAre(HasSubstr("task 'c=1' can never run here: needs 64 GB")))
      << "one mistake, though the tasks differ in their CPUs";
}

TEST(JobMistakes, CallThePlannedMachineByItsText) {
  LoadOptions options = in_job_directory();
  options.machine_text = "the planned machine (4 CPUs)";
  EXPECT_THAT(mistakes_of("groups: [{name: a, cpus: 6, tasks: [{id: b, command: x}]}]\n", options),
              ElementsAre("sweep.yaml:1:26: group 'a': task 'b' can never run here: needs 6 CPUs, "
                          "the planned machine (4 CPUs) has 4; request at most 4"));
  EXPECT_THAT(
      mistakes_of("groups: [{name: a, memory: 19GB, tasks: [{id: b, command: x}]}]\n", options),
      ElementsAre("sweep.yaml:1:28: group 'a': task 'b' can never run here: needs 19 GB of "
                  "memory, the planned machine (4 CPUs) has 18 GB available (20 GB less 2 "
                  "GB kept free); request at most 18GB"));
  options.settings = {"remain-limit.memory=99TB"};
  EXPECT_THAT(mistakes_of("groups: [{name: a, tasks: [{command: x}]}]\n", options),
              ElementsAre("--set remain-limit.memory=99TB: remain-limit.memory: '99TB' leaves no "
                          "memory for tasks; the planned machine (4 CPUs) has 20 GB"));
}

TEST(JobMistakes, OfACommandNameItsOptions) {
  LoadOptions options = in_job_directory();
  options.line_names = {"the command", "--gpus", "--memory"};
  const std::string text = "groups: [{name: fit, tasks: [{command: x}],\n";
  EXPECT_THAT(
      mistakes_of(text + "gpus: 1,\nmemory: 1GB}]\n", options),
      ElementsAre(StartsWith("--gpus: task 'fit-1' can never run here: needs a GPU, this machine "
                             "has none")));
  EXPECT_THAT(
      mistakes_of(text + "gpus: 0,\nmemory: 900GB}]\n", options),
      ElementsAre(AllOf(StartsWith("--memory: task 'fit-1' can never run here"),
                        HasSubstr("; request at most 18GB"), HasSubstr("; 'run --on HOST' "))));
  EXPECT_THAT(mistakes_of(text + "gpus: 0,\nmemory: 8gb}]\n", options),
              ElementsAre("--memory: '8gb' is in bits: write '8GB'"));
  const auto with_one = [&options, &text](const std::string& option, const std::string& value) {
    options.line_names = {"the command", "--" + option};
    return mistakes_of(fmt::format("{}{}: {}}}]\n", text, option, value), options);
  };
  EXPECT_THAT(with_one("ranks", "16"), ElementsAre(StartsWith("--ranks: task 'fit-1' can never run "
                                                              "here: needs 16 CPUs, ")));
  EXPECT_THAT(with_one("workers", "16"),
              ElementsAre(StartsWith("--workers: task 'fit-1' can never run here: needs 16 CPUs")));
  EXPECT_THAT(with_one("device", "cuda"),
              ElementsAre(StartsWith("--device: task 'fit-1' can never run here: needs a GPU, ")));
  EXPECT_THAT(with_one("if", "failure"),
              ElementsAre("--if: failure() cannot be used without --needs"));
  EXPECT_THAT(with_one("memory-limit", "firm"),
              ElementsAre("--memory-limit: must be hard or none, not 'firm'; --memory sets the "
                          "amount"));
  EXPECT_THAT(with_one("memory-limit", "hard"),
              ElementsAre("--memory-limit: 'hard' needs --memory, the amount"));
  EXPECT_THAT(with_one("retry-on", "oom"),
              ElementsAre("--retry-on: must be time-limit, not 'oom'; --oom-retries sets the "
                          "retries after running out of memory"));
  EXPECT_THAT(with_one("gpu-memory: 1GB, gpus", "0"),
              Contains(HasSubstr("0 cannot be combined with --gpu-memory; to train on the CPUs, "
                                 "write '--device cpu'")));
}

TEST(JobMistakes, OfACommandLeaveTypedNamesAndValuesThatAreNamesOfOptions) {
  LoadOptions options = in_job_directory();
  options.line_names = {"the command", "--cpus"};
  EXPECT_THAT(mistakes_of("groups: [{name: memory, tasks: [{id: memory, command: x}],\n"
                          "cpus: 9999}]\n",
                          options),
              ElementsAre(StartsWith("--cpus: task 'memory' can never run here")));
  options.line_names = {"the command", "--device"};
  EXPECT_THAT(
      mistakes_of("groups: [{name: fit, tasks: [{command: x}],\ndevice: memory}]\n", options),
      ElementsAre(StartsWith("--device: 'memory' is not a valid device")));
  options.line_names = {"the command", "--matrix"};
  EXPECT_THAT(
      mistakes_of("groups: [{name: fit, tasks: [{command: x}],\nmatrix: {memory: [1, 1]}}]\n",
                  options),
      ElementsAre(StartsWith("--matrix: 'memory': duplicate value")));
}

TEST(JobMistakes, BlameTheLimitThatLeavesNoMemory) {
  constexpr std::string_view kGroups = "groups: [{name: a, tasks: [{command: x}, {command: y}]}]\n";
  LoadOptions options = in_job_directory();
  options.settings = {"remain-limit.memory=99TB"};
  EXPECT_THAT(mistakes_of(kGroups, options),
              ElementsAre("--set remain-limit.memory=99TB: remain-limit.memory: '99TB' leaves no "
                          "memory for tasks; this machine has 20 GB"));
  EXPECT_THAT(mistakes_of(fmt::format("config: {{remain-limit: {{memory: 20GB}}}}\n{}", kGroups)),
              ElementsAre("sweep.yaml:1:33: remain-limit.memory: '20GB' leaves no memory for "
                          "tasks; this machine has 20 GB"));
  options.settings = {"remain-limit.memory=18GB"};
  EXPECT_THAT(mistakes_of(kGroups, options), IsEmpty());
}

TEST(JobMistakes, ReachIntoTheConfiguration) {
  EXPECT_THAT(mistakes_of("config: {scheduler: {max-proces: 1}}\n"
                          "groups: [{name: a, colour: x, tasks: [{command: x}]}]"),
              ElementsAre("sweep.yaml:1:22: unknown key 'scheduler.max-proces' (did you mean "
                          "'scheduler.max-process'?)",
                          "sweep.yaml:2:20: group 'a': unknown key 'colour'; remove it"));
}

TEST(JobMistakes, AreAllToldAtOnce) {
  EXPECT_THAT(mistakes_of("name: a/b\n"
                          "config: {smtp.enable: on}\n"
                          "groups:\n"
                          "- name: g\n"
                          "  needs: h\n"
                          "  gpus: 1\n"
                          "  matrix: {s: [1, 2], include: [{s: 1, t: x}]}\n"
                          "  tasks:\n"
                          "  - {id: x, command: 'a {t}', cpus: 90}\n"
                          "  - {id: y, command: b, colour: c}\n"),
              ElementsAre(HasSubstr(":1:7: the name 'a/b'"), HasSubstr(":2:23: smtp.enable: "),
                          HasSubstr(":5:10: group 'g': needs: group 'h' not found"),
                          HasSubstr(":6:9: group 'g': task 'x' can never run here: needs a GPU"),
                          HasSubstr(":6:9: group 'g': task 'y' can never run here: needs a GPU"),
                          HasSubstr(":9:22: group 'g': '{t}' has no value"),
                          HasSubstr(":9:37: group 'g': task 'x' can never run here: needs 90 CPUs"),
                          HasSubstr(":10:10: group 'g': the id 'y' is the same"),
                          HasSubstr(":10:25: group 'g': task 'y': unknown key 'colour'")));
}

TEST(JobMistakes, HaveABound) {
  std::string text = "groups:\n- name: a\n  tasks:\n";
  for (int i = 0; i < 500; ++i) text += "  - {command: x, colour: y}\n";
  const auto mistakes = mistakes_of(text);
  ASSERT_EQ(mistakes.size(), text::MistakeList::kShownMax + 1);
  EXPECT_EQ(mistakes.back(), "sweep.yaml: and 400 more mistakes");
}

TEST(JobMistakes, TellOfTooManyTasks) {
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- {name: a, tasks: [{command: x}]}\n"
                          "- {name: b, matrix: {x: 1..1000000}, tasks: [{command: x}]}\n"),
              ElementsAre("sweep.yaml:3:3: group 'b': the job has more than 1000000 tasks"));
}

TEST(JobMistakes, AreToldOfWhatEndsATask) {
  EXPECT_THAT(in_group("signal: USR1@60\ntime-limit: 1min"),
              ElementsAre("sweep.yaml:4:13: group 'train': signal: 1m before the time limit is "
                          "too early; 'time-limit' is 1m"));
  EXPECT_THAT(in_group("signal: KILL"),
              ElementsAre(HasSubstr("SIGKILL cannot be caught; use another signal")));
  EXPECT_THAT(
      in_group("memory-limit: hard"),
      ElementsAre(
          "sweep.yaml:4:19: group 'train': memory-limit: 'hard' needs 'memory', the amount"));
  EXPECT_THAT(in_group("memory-limit: soft\nmemory: 1GB"),
              ElementsAre(HasSubstr("must be hard or none, not 'soft'")));
  EXPECT_THAT(in_group("signal: USR1@60\ntime-limit: 2min\nmemory-limit: hard\nmemory: 1GB"),
              IsEmpty());
}

TEST(JobMistakes, AreToldForAFileThatCannotBeRead) {
  const auto load = [](const std::string& file) {
    const auto job = Job::load({.job_file = file, .current_directory = "/tmp"}, small_machine());
    return job ? std::string("good") : text::to_text(job.error().front());
  };
  EXPECT_EQ(load("no-such-sweep.yaml"), "no-such-sweep.yaml: file not found");
  EXPECT_EQ(load("/proc"), "/proc: is a directory");
  EXPECT_EQ(load("/dev/zero"), "/dev/zero: is not a regular file");
  const sys::TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(load(pipe), pipe + ": is a pipe, not a regular file");
  directory.write("large.yaml", std::string(text::kTextFileMax + 1, ' '));
  const std::string large = directory.path() + "/large.yaml";
  EXPECT_EQ(load(large), large + ": is larger than 16 MiB");
  directory.write("job.yaml", "groups: [{name: g, tasks: [{id: t, command: x}]}]");
  const std::string link = directory.path() + "/link.yaml";
  std::filesystem::create_symlink(directory.path() + "/job.yaml", link);
  EXPECT_EQ(load(link), "good") << "the user has named it";
  const std::string kept = run::kept_job_path(directory.path());
  std::filesystem::create_symlink(directory.path() + "/job.yaml", kept);
  EXPECT_EQ(load(kept), kept + ": is a symbolic link, not a regular file");
  std::filesystem::remove(kept);
  std::filesystem::create_hard_link(directory.path() + "/job.yaml", kept);
  EXPECT_EQ(load(kept), kept +
                            ": has 2 names (hard links); if it is the right file, replace it "
                            "with a copy");
  EXPECT_EQ(load(directory.path() + "/job.yaml"), "good") << "the user has named it";
}

TEST(JobMistakes, AreToldToOneWhoLooksForTheRunsOfAFileThatIsNoYaml) {
  const sys::TemporaryDirectory directory;
  directory.write("fit.yaml", "name: 'fit\n");
  const auto runs = Job::runs_of({.job_file = "fit.yaml", .current_directory = directory.path()});
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().message, "fit.yaml:1:7: not valid YAML: this quote is not closed");
  directory.write("fit.yaml", "");
  const auto empty = Job::runs_of({.job_file = "fit.yaml", .current_directory = directory.path()});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "fit.yaml: is empty; a job file needs 'groups'");
}

}  // namespace
}  // namespace trainyard::job
