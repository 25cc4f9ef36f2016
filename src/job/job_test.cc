// The result of reading a job file: groups, tasks, ids, requests and directories.
#include "job/job.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/test_job.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const model::Shape& shape_of(const Job& job, std::uint32_t task) {
  return job.plan().shape_of(model::TaskIndex{task});
}

TEST(Job, HasDefaultsForAllButTheCommand) {
  const Job job = job_of("groups: [{tasks: [{command: ./train}]}]");
  EXPECT_EQ(job.name(), "sweep");
  EXPECT_EQ(job.text(), "groups: [{tasks: [{command: ./train}]}]");
  EXPECT_EQ(job.paths().file, "/job/sweep.yaml");
  EXPECT_EQ(job.paths().directory, "/job");
  EXPECT_EQ(job.paths().run_directory, "/job/runs/sweep");
  ASSERT_EQ(job.plan().groups.size(), 1U);
  EXPECT_EQ(job.plan().groups[0].name, "group-1");
  EXPECT_THAT(job.plan().groups[0].needs, IsEmpty());
  EXPECT_EQ(job.plan().groups[0].parallel_max, 0);
  EXPECT_FALSE(job.plan().groups[0].fail_fast);
  EXPECT_THAT(ids_of(job), ElementsAre("group-1-1"));
  const model::Shape& shape = shape_of(job, 0);
  EXPECT_EQ(shape.terms.request.cpus, model::cpus(1));
  EXPECT_EQ(shape.terms.request.memory, gb(2));
  EXPECT_EQ(shape.terms.request.gpus, 0);
  EXPECT_EQ(shape.terms.request.gpu_memory, Bytes{0});
  EXPECT_EQ(shape.terms.time_limit, Duration{0});
  EXPECT_EQ(job.plan().tasks[0].first_attempt, 1U);
  EXPECT_FALSE(job.plan().tasks[0].finished_before());
}

TEST(Job, HasTasksOfTwoPhasesWhereTheGroupOrTheTaskSaysSo) {
  const Job job = job_of(R"(
groups:
  - name: g
    two-phase: true
    tasks:
      - {id: loads, command: a}
      - {id: plain, command: a, two-phase: false}
  - name: h
    tasks:
      - {id: plain, command: a}
      - {id: loads, command: a, two-phase: true}
)");
  std::vector<bool> two_phase;
  for (std::uint32_t task = 0; task < 4; ++task) {
    two_phase.push_back(job.launch({.task = {task}}).two_phase);
    EXPECT_EQ(job.plan().shape_of(model::TaskIndex{task}).terms.two_phase, two_phase.back());
  }
  EXPECT_THAT(two_phase, ElementsAre(true, false, false, true));
}

TEST(Job, MakesGroupsWaitForTheOneBefore) {
  const Job job = job_of(
      "groups:\n"
      "- {name: a, tasks: [{command: x}]}\n"
      "- {name: b, max-parallel: 3, fail-fast: true, tasks: [{command: x}]}\n"
      "- {name: c, needs: [], tasks: [{command: x}]}\n"
      "- {name: d, needs: [c, a, c], tasks: [{command: x}]}\n"
      "- {name: e, needs: b, tasks: [{command: x}]}\n");
  const auto& groups = job.plan().groups;
  EXPECT_THAT(groups[0].needs, IsEmpty());
  EXPECT_THAT(groups[1].needs, ElementsAre(model::GroupIndex{0}));
  EXPECT_EQ(groups[1].parallel_max, 3);
  EXPECT_TRUE(groups[1].fail_fast);
  EXPECT_THAT(groups[2].needs, IsEmpty());
  EXPECT_THAT(groups[3].needs, ElementsAre(model::GroupIndex{2}, model::GroupIndex{0}));
  EXPECT_THAT(groups[4].needs, ElementsAre(model::GroupIndex{1}));
}

TEST(Job, TriesOneTaskFirstWhereTheGroupOrTheFileSaysSo) {
  const auto tried_first = [](std::string_view file, std::string_view group) {
    const Job job =
        job_of(fmt::format("{}groups:\n- {{name: a, {}tasks: [{{command: x}}]}}\n", file, group));
    return job.plan().groups.at(0).try_first;
  };
  EXPECT_FALSE(tried_first("", ""));
  EXPECT_TRUE(tried_first("", "try-first: 1, "));
  EXPECT_TRUE(tried_first("try-first: 1\n", ""));
  EXPECT_FALSE(tried_first("try-first: 1\n", "try-first: 0, "));
}

TEST(Job, NamesTasksAfterTheirMatrix) {
  const Job job = job_of(
      "groups:\n"
      "- name: train\n"
      "  matrix: {bs: [32, 64], lr: [1e-3], seed: 0..1}\n"
      "  tasks: [{command: x}]\n");
  EXPECT_THAT(ids_of(job), ElementsAre("bs=32,lr=1e-3,seed=0", "bs=32,lr=1e-3,seed=1",
                                       "bs=64,lr=1e-3,seed=0", "bs=64,lr=1e-3,seed=1"));
  EXPECT_THAT(job.matrix_values({2}),
              ElementsAre(Pair("bs", "64"), Pair("lr", "1e-3"), Pair("seed", "0")));
  EXPECT_EQ(job.task_directory({2}), "/job/runs/sweep/train/bs=64,lr=1e-3,seed=0");
  EXPECT_EQ(job.find("train", "bs=64,lr=1e-3,seed=1"), model::TaskIndex{3});
  EXPECT_EQ(job.find("train", "bs=65"), std::nullopt);
  EXPECT_EQ(job.find("nobody", "bs=64,lr=1e-3,seed=1"), std::nullopt);
}

TEST(Job, TellsSeveralTasksOfAMatrixApart) {
  const Job job = job_of(
      "groups:\n"
      "- name: g\n"
      "  matrix: {s: [a, b]}\n"
      "  tasks: [{command: x}, {command: y}, {id: 'eval-{s}', command: z}]\n"
      "- name: h\n"
      "  tasks: [{command: x}, {id: last, command: y}]\n");
  EXPECT_THAT(ids_of(job), ElementsAre("task=1,s=a", "task=2,s=a", "eval-a", "task=1,s=b",
                                       "task=2,s=b", "eval-b", "h-1", "last"));
  EXPECT_EQ(job.group_of({5}), model::GroupIndex{0});
  EXPECT_EQ(job.group_of({6}), model::GroupIndex{1});
  EXPECT_EQ(job.find("h", "last"), model::TaskIndex{7});
  EXPECT_THAT(job.matrix_values({6}), IsEmpty());
}

TEST(Job, KeepsValuesAsTyped) {
  const Job job = job_of(
      "groups:\n"
      "- matrix: {v: [1e-3, 0.10, 007, \"0..2\", true, null, 1_000, 'a b']}\n"
      "  tasks: [{command: x}]\n");
  EXPECT_THAT(ids_of(job), ElementsAre("v=1e-3", "v=0.10", "v=007", "v=0..2", "v=true", "v=null",
                                       "v=1_000", "v=a b"));
}

TEST(Job, WritesTheSlashesOfValuesAsUnderscoresInIdsOnly) {
  const Job job = job_of(
      "groups:\n"
      "- matrix: {model: [meta/llama, /data/bert]}\n"
      "  tasks: [{command: x}, {id: '{model}', command: y}]\n");
  EXPECT_THAT(ids_of(job), ElementsAre("task=1,model=meta_llama", "meta_llama",
                                       "task=1,model=_data_bert", "_data_bert"));
  EXPECT_THAT(job.matrix_values({1}), ElementsAre(Pair("model", "meta/llama")));
}

TEST(Job, ReadsValuesFromTheLinesOfAFile) {
  const sys::TemporaryDirectory directory;
  directory.write("seeds.txt", "3\n\n  17 \r\n1e-3\n");
  const LoadOptions options{.job_file = "sweep.yaml", .current_directory = directory.path()};
  const std::string_view text =
      "groups: [{name: g, matrix: {seed: {file: seeds.txt}}, tasks: [{command: x}]}]";
  EXPECT_THAT(ids_of(job_of(text, options)), ElementsAre("seed=3", "seed=17", "seed=1e-3"));

  const auto mistake = [&](std::string_view lines) {
    directory.write("seeds.txt", lines);
    const auto mistakes = mistakes_of(text, options);
    return mistakes.empty() ? "none" : mistakes.front();
  };
  EXPECT_EQ(
      mistake("\n \n"),
      "sweep.yaml:1:42: group 'g': 'seed': seeds.txt: has no values: all its lines are empty");
  EXPECT_EQ(mistake("1\n2\n1\n"),
            "sweep.yaml:1:42: group 'g': 'seed': seeds.txt: duplicate value '1' in lines 1 and 3");
  EXPECT_THAT(mistake("1\n\x01\n"), HasSubstr("line 2: the control character 0x01 is not allowed"));
  std::filesystem::remove(directory.path() + "/seeds.txt");
  EXPECT_THAT(mistakes_of(text, options), ElementsAre(HasSubstr("seeds.txt: file not found")));
}

TEST(Job, GivesTasksTheirGroupsRequestsUnlessTheySayOtherwise) {
  const Job job = job_of(
      "groups:\n"
      "- memory: 1GB\n"
      "  cpus: 2\n"
      "  time-limit: 1:30:00\n"
      "  tasks:\n"
      "  - {id: a, command: x}\n"
      "  - {id: b, command: x, memory: 2.5GiB, cpus: 0.5, time-limit: 90s}\n"
      "  - {id: c, command: x}\n"
      "  - {id: d, command: x, memory: 0, cpus: 0, time-limit: 0}\n");
  EXPECT_EQ(shape_of(job, 0).terms.request,
            (model::Request{.memory = gb(1), .cpus = model::cpus(2)}));
  EXPECT_EQ(shape_of(job, 0).terms.time_limit, Duration(5'400'000));
  EXPECT_EQ(shape_of(job, 1).terms.request,
            (model::Request{.memory = mib(2560), .cpus = model::Cpus{500}}));
  EXPECT_EQ(shape_of(job, 1).terms.time_limit, Duration(90'000));
  EXPECT_EQ(shape_of(job, 3).terms.request, model::Request{});
  EXPECT_EQ(shape_of(job, 3).terms.time_limit, Duration(0));
  // Tasks with the same request are of one shape.
  EXPECT_EQ(job.plan().tasks[0].shape, job.plan().tasks[2].shape);
  EXPECT_EQ(job.plan().shapes.size(), 3U);
}

TEST(Job, FillsRequestsFromTheMatrix) {
  const Job job = job_of(
      "groups:\n"
      "- matrix: {size: [1, 2], seed: 0..2, include: [{size: 2, limit: 5m}, {size: 1, limit: "
      "1m}]}\n"
      "  memory: '{size}GB'\n"
      "  time-limit: '{limit}'\n"
      "  tasks: [{id: '{size}-{seed}', command: x, cpus: '{size}'}]\n");
  ASSERT_EQ(job.plan().tasks.size(), 6U);
  EXPECT_EQ(job.plan().shapes.size(), 2U);
  EXPECT_EQ(shape_of(job, 0).terms.request,
            (model::Request{.memory = gb(1), .cpus = model::cpus(1)}));
  EXPECT_EQ(shape_of(job, 0).terms.time_limit, Duration(60'000));
  EXPECT_EQ(shape_of(job, 5).terms.request,
            (model::Request{.memory = gb(2), .cpus = model::cpus(2)}));
  EXPECT_EQ(shape_of(job, 5).terms.time_limit, Duration(300'000));
}

TEST(Job, KeepsShapesOfDifferentGroupsApart) {
  const Job job = job_of("groups: [{tasks: [{command: x}]}, {tasks: [{command: x}]}]");
  ASSERT_EQ(job.plan().shapes.size(), 2U);
  EXPECT_EQ(job.plan().shapes[0].group, model::GroupIndex{0});
  EXPECT_EQ(job.plan().shapes[1].group, model::GroupIndex{1});
}

TEST(Job, PutsTheRunDirectoryWhereItIsAskedFor) {
  constexpr std::string_view kGroups = "groups: [{name: g, tasks: [{id: t, command: x}]}]";
  const auto directory = [&](std::string_view lines, const LoadOptions& options) {
    return job_of(std::string(lines) + std::string(kGroups), options).paths().run_directory;
  };
  const LoadOptions plain{.job_file = "jobs/s.yaml", .current_directory = "/home/me"};
  EXPECT_EQ(directory("", plain), "/home/me/jobs/runs/s");
  EXPECT_EQ(directory("name: mnist\n", plain), "/home/me/jobs/runs/mnist");
  EXPECT_EQ(directory("run-dir: ../out/\n", plain), "/home/me/out");
  EXPECT_EQ(directory("run-dir: /scratch/out\n", plain), "/scratch/out");
  EXPECT_EQ(directory("config: {workdir: data}\n", plain), "/home/me/jobs/data/runs/s");
  LoadOptions set = plain;
  set.settings = {"workdir=data"};
  EXPECT_EQ(directory("run-dir: out\n", set), "/home/me/data/out");
  set.run_directory = "here";
  EXPECT_EQ(directory("run-dir: out\n", set), "/home/me/here");
}

TEST(Job, IsCalledAsItsFileOrMuchTheSameIfThatMeansAnotherRunOrTasks) {
  const auto name_of = [](const std::string& file) {
    return job_of("groups: [{tasks: [{command: x}]}]",
                  {.job_file = file, .current_directory = "/home/me"})
        .name();
  };
  EXPECT_EQ(name_of("sweep.yaml"), "sweep");
  EXPECT_EQ(name_of("46.yaml"), "run-46");
  EXPECT_EQ(name_of("last.yaml"), "last-run");
  EXPECT_EQ(name_of("a*b?[c].yaml"), "a_b__c]");
  EXPECT_EQ(name_of(":x.yaml"), "run-:x");
  EXPECT_EQ(name_of("-x.yaml"), "job");
}

TEST(Job, KnowsARunDirectoryByOneNameOnly) {
  const sys::TemporaryDirectory place;
  const std::filesystem::path real = std::filesystem::canonical(place.path());
  std::filesystem::create_directory(real / "scratch");
  std::filesystem::create_directory_symlink(real / "scratch", real / "runs");
  const std::string expected = (real / "scratch/sweep").string();
  LoadOptions options{.job_file = "sweep.yaml", .current_directory = real.string()};
  constexpr std::string_view kOneTask = "groups: [{tasks: [{command: x}]}]";
  EXPECT_EQ(job_of(kOneTask, options).paths().run_directory, expected);
  for (const char* const name : {"runs/sweep", "scratch/sweep", "scratch/../runs/sweep/"}) {
    options.run_directory = name;
    EXPECT_EQ(job_of(kOneTask, options).paths().run_directory, expected) << name;
  }
}

TEST(Job, PutsRunsOfACommandNextToTheRunThatKeepsItsJobFile) {
  const sys::TemporaryDirectory place;
  const std::filesystem::path runs = std::filesystem::canonical(place.path()) / "runs";
  std::filesystem::create_directories(runs / "big-2");
  constexpr std::string_view kBig = "name: big\ngroups: [{tasks: [{command: x}]}]";
  LoadOptions options{.job_file = "trainyard.job.yaml",
                      .current_directory = (runs / "big-2").string()};
  EXPECT_EQ(job_of(kBig, options).paths().run_directory, (runs / "big-2/runs/big").string())
      << "no run is there";
  place.write("runs/big-2/journal.db", "");
  EXPECT_EQ(job_of(kBig, options).paths().run_directory, (runs / "big").string());
  EXPECT_EQ(job_of("name: big\nrun-dir: out\ngroups: [{tasks: [{command: x}]}]", options)
                .paths()
                .run_directory,
            (runs / "big-2/out").string());
  options.job_file = "sweep.yaml";
  EXPECT_EQ(job_of(kBig, options).paths().run_directory, (runs / "big-2/runs/big").string());
}

TEST(Job, PutsTasksStraightInTheRunDirectoryWithoutGrouping) {
  LoadOptions options = in_job_directory();
  options.settings = {"task.directory-grouping=false"};
  const Job job = job_of("groups: [{name: g, tasks: [{id: t, command: x}]}]", options);
  EXPECT_EQ(job.task_directory({0}), "/job/runs/sweep/t");
}

TEST(Job, IsReadFromAFileOrAPipe) {
  const sys::TemporaryDirectory directory;
  directory.write("s.yaml", "groups: [{tasks: [{command: x}]}]");
  const auto job =
      Job::load({.job_file = "s.yaml", .current_directory = directory.path()}, small_machine());
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->name(), "s");
  EXPECT_EQ(job->paths().directory, directory.path());
  EXPECT_EQ(job->capacity(), small_machine());
}

TEST(Job, SharesDefaultsByMergeKeys) {
  const Job job = job_of(
      "groups:\n"
      "- name: a\n"
      "  tasks:\n"
      "  - &t {id: a, command: x, memory: 3GB}\n"
      "  - {<<: *t, id: b}\n");
  EXPECT_THAT(ids_of(job), ElementsAre("a", "b"));
  EXPECT_EQ(shape_of(job, 1).terms.request.memory, gb(3));
}

TEST(Fingerprint, ChangesWithWhatIsComputedAndNotWithWhatIsPromised) {
  const auto print = [](std::string_view task, std::string_view before = "",
                        const std::string& run = "") {
    LoadOptions options = in_job_directory();
    options.run_directory = run;
    const Job job = job_of("groups:\n- name: g\n  tasks:\n" + std::string(before) + "  - {id: t, " +
                               std::string(task) + "}\n",
                           options);
    return job.fingerprint({static_cast<std::uint32_t>(job.plan().tasks.size()) - 1});
  };
  const std::uint64_t plain = print("command: 'x {task_dir}'");
  EXPECT_EQ(plain, print("command: 'x {task_dir}'"));
  EXPECT_EQ(plain, print("command: 'x {task_dir}'", "  - {id: other, command: y}\n"));
  EXPECT_EQ(plain, print("command: 'x {task_dir}'", "", "/elsewhere"));
  const std::vector<std::uint64_t> changed{
      print("command: 'y {task_dir}'"),
      print("command: [x, '{task_dir}']"),
      print("command: 'x {task_dir}', env: {A: 1}"),
      print("command: 'x {task_dir}', env: {A: 2}"),
      print("command: 'x {task_dir}', device: cpu"),
      print("command: 'x {task_dir}', working-directory: y"),
  };
  for (std::size_t i = 0; i < changed.size(); ++i) {
    EXPECT_NE(changed[i], plain) << i;
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(changed[i], changed[k]) << i << " " << k;
  }
  EXPECT_EQ(plain, print("command: 'x {task_dir}', memory: 1GB, cpus: 2"));
}

}  // namespace
}  // namespace trainyard::job
