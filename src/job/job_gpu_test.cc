// GPUs in a job file: the request, the mistakes, and the environment of a task.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "job/job.h"
#include "job/learned.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "sys/test_directory.h"
#include "text/mistake.h"

namespace trainyard::job {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kBusOrder = "CUDA_DEVICE_ORDER=PCI_BUS_ID";

model::Capacity with_two_gpus() {
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .uuid = "GPU-a", .memory = gb(8), .cuda_number = 0},
                  {.number = 1, .uuid = "GPU-b", .memory = gb(8), .cuda_number = 1}};
  return machine;
}

/// The request of the only task of a group that wants this.
model::Request request_of(std::string_view wants) {
  const Job job =
      job_of(fmt::format("groups:\n- name: a\n  {}\n  tasks: [{{command: x}}]\n", wants),
             in_job_directory(), with_two_gpus());
  return job.plan().shapes.at(0).terms.request;
}

TEST(JobGpus, AreAskedForByNumberOrByMemoryOrByBoth) {
  EXPECT_EQ(request_of("gpus: 1").gpus, 1);
  EXPECT_EQ(request_of("gpus: 1").gpu_memory, Bytes{});
  EXPECT_EQ(request_of("gpu-memory: 3GB").gpus, 1);
  EXPECT_EQ(request_of("gpu-memory: 3GB").gpu_memory, gb(3));
  EXPECT_EQ(request_of("gpus: 2\n  gpu-memory: 3GB").gpus, 2);
  EXPECT_EQ(request_of("gpus: 2\n  gpu-memory: 3GB").gpu_memory, gb(3));
  EXPECT_EQ(request_of("device: cpu").gpus, 0);
  EXPECT_EQ(request_of("device: cuda:1").gpus, 1);
  EXPECT_EQ(request_of("device: cuda:1").gpu, model::GpuIndex{1});
  EXPECT_EQ(request_of("device: cuda:1").gpu_memory, gb(2));
  EXPECT_EQ(request_of("device: cuda:1\n  gpus: 1").gpu_memory, Bytes{});
  EXPECT_EQ(request_of("gpu-memory: auto").gpus, 1);
  EXPECT_EQ(request_of("gpu-memory: auto").gpu_memory, Bytes{});
}

/// The terms of the only task of a group that wants this.
model::Terms terms_of(std::string_view wants) {
  const Job job = job_of(fmt::format("groups:\n- name: a\n  matrix: {{m: [2GB]}}\n  {}\n"
                                     "  tasks: [{{id: b, command: x}}]\n",
                                     wants),
                         in_job_directory(), with_two_gpus());
  return job.plan().shapes.at(0).terms;
}

TEST(JobMemory, MayGrowFromAnAmountOn) {
  const model::Terms grows = terms_of("memory: at least 1GB\n  gpu-memory: At least 4 GB");
  EXPECT_EQ(grows.request.memory, gb(1));
  EXPECT_EQ(grows.memory_least, gb(1));
  EXPECT_TRUE(grows.learns_memory);
  EXPECT_EQ(grows.request.gpus, 1);
  EXPECT_EQ(grows.request.gpu_memory, gb(4));
  EXPECT_EQ(grows.gpu_memory_least, gb(4));
  EXPECT_TRUE(grows.learns_gpu_memory);
  EXPECT_EQ(terms_of("gpu-memory: \"at least {m}\"").gpu_memory_least, gb(2));
  const model::Terms fixed = terms_of("memory: 1GB\n  gpu-memory: 4GB");
  EXPECT_FALSE(fixed.learns_memory);
  EXPECT_FALSE(fixed.learns_gpu_memory);
  EXPECT_EQ(fixed.memory_least, Bytes{});
  EXPECT_EQ(fixed.gpu_memory_least, Bytes{});
  EXPECT_EQ(terms_of("gpu-memory: auto").gpu_memory_least, Bytes{});
  EXPECT_EQ(terms_of("cpus: 1").memory_least, Bytes{}) << "what nobody wrote is no floor";
}

TEST(JobMemory, ThatMayGrowIsWrittenInOneWay) {
  const auto wrong = [](std::string_view wants) {
    return mistakes_of(fmt::format("groups:\n- name: a\n  {}\n  tasks: [{{command: x}}]\n", wants));
  };
  EXPECT_THAT(wrong("gpu-memory: 4GB+"),
              ElementsAre("sweep.yaml:3:15: group 'a': gpu-memory: '4GB+' is not a valid amount of "
                          "memory; for one that may grow, write 'at least 4GB'"));
  EXPECT_THAT(wrong("memory: '>= 4GB'"),
              ElementsAre("sweep.yaml:3:11: group 'a': memory: '>= 4GB' is not a valid amount of "
                          "memory; for one that may grow, write 'at least 4GB'"));
  EXPECT_THAT(wrong("memory: at least 0"), ElementsAre(HasSubstr("'at least 0' has no effect")));
  EXPECT_THAT(wrong("memory: at least"), ElementsAre(HasSubstr("memory: 'at least'")));
  EXPECT_THAT(wrong("memory: at least 8gb"), ElementsAre(HasSubstr("'8gb'")));
  EXPECT_THAT(wrong("memory: auto"), ElementsAre(HasSubstr("'auto'")));
  EXPECT_THAT(wrong("memory: at least 1GB\n  memory-limit: hard"),
              ElementsAre(HasSubstr("'hard' cannot be combined with 'memory: at least ...'")));
}

TEST(JobGpus, ThatAreNotHereAreANoteWhereTheJobIsOnlyLookedAt) {
  LoadOptions options = in_job_directory();
  options.only_shown = true;
  const Job job = job_of(
      "groups:\n- name: a\n  gpu-memory: 9GB\n  tasks: [{command: x}, {command: y, memory: "
      "64GB}]\n",
      options);
  EXPECT_THAT(job.notes(),
              ElementsAre("sweep.yaml:3:15: group 'a': task 'a-1' can never run here: needs a GPU, "
                          "this machine has none",
                          HasSubstr("task 'a-2' can never run here: needs 64 GB of memory"),
                          HasSubstr("task 'a-2' can never run here: needs a GPU")));
  EXPECT_TRUE(job.lacks_gpu());
  EXPECT_EQ(job.plan().tasks.size(), 2);
}

TEST(JobGpus, ThatAreLackingAreToldFromOtherThingsByAFlag) {
  const auto lacks_gpu = [](std::string_view wants, bool only_shown) {
    LoadOptions options = in_job_directory();
    options.only_shown = only_shown;
    const auto job =
        Job::parse(fmt::format("groups:\n- name: GPU\n  {}\n  tasks: [{{command: x}}]\n", wants),
                   options, small_machine());
    return job ? job->lacks_gpu() : std::ranges::any_of(job.error(), &text::Mistake::lacks_gpu);
  };
  for (const bool only_shown : {false, true}) {
    EXPECT_TRUE(lacks_gpu("gpus: 1", only_shown));
    EXPECT_TRUE(lacks_gpu("gpu-memory: 9GB", only_shown));
    EXPECT_FALSE(lacks_gpu("memory: 64GB", only_shown)) << "a group's name says nothing";
    EXPECT_TRUE(lacks_gpu("gpus: 1\n  memory: 64GB\n  cpus: 99", only_shown))
        << "each mistake has its cure";
    EXPECT_FALSE(lacks_gpu("memory: 1GB", only_shown));
  }
}

TEST(JobDisk, OfMoreThanThereIsInAllIsAMistakeAtItsPlace) {
  constexpr std::string_view kTwoGroups =
      "name: sweep\n"
      "groups:\n"
      "- {name: a, disk: 1TB, tasks: [{command: x}]}\n"
      "- {name: b, matrix: {d: [1, 2]}, tasks: [{disk: '{d}TB', command: x}]}\n";
  LoadOptions options = in_job_directory();
  EXPECT_THAT(mistakes_of(kTwoGroups, options), IsEmpty()) << "the job is compared with no disk";
  std::string asked;
  options.disk_size = [&asked](const std::string& directory) {
    asked = directory;
    return std::optional(gb(1000));
  };
  const std::string why =
      "sweep.yaml:4:49: group 'b': task 'd=2' can never run here: needs 2 TB of disk, the disk of "
      "the run directory has 1 TB in total; request less, or put the run directory on a larger "
      "disk";
  EXPECT_THAT(mistakes_of(kTwoGroups, options), ElementsAre(why));
  EXPECT_EQ(asked, "/job/runs/sweep");
  options.only_shown = true;
  EXPECT_THAT(job_of(kTwoGroups, options).notes(), ElementsAre(why));
  options.disk_size = [](const std::string&) { return std::nullopt; };
  EXPECT_THAT(job_of(kTwoGroups, options).notes(), IsEmpty());
}

TEST(JobGpus, ThatWaitForCpusNobodyAskedForAreNamed) {
  const auto notes_of = [](std::string_view wants, std::string_view memory = "100MB") {
    return job_of(fmt::format("groups:\n- name: a\n  matrix: {{n: 0..19}}\n  memory: {}\n  {}\n"
                              "  tasks: [{{command: 'x {{n}}'}}]\n",
                              memory, wants),
                  in_job_directory(), with_two_gpus())
        .notes();
  };
  EXPECT_THAT(notes_of("gpu-memory: 100MB"),
              ElementsAre("group 'a': the GPUs have room for 20 of its tasks at once, the CPUs for "
                          "16: with 'cpus: 0.2' all of them run"));
  EXPECT_THAT(
      notes_of("gpu-memory: 100MB", "1GB"),
      ElementsAre("group 'a': the GPUs and the memory have room for 18 of its tasks at once, "
                  "the CPUs for 16: with 'cpus: 0.22' all of them run"));
  EXPECT_THAT(notes_of("gpu-memory: 100MB", "2GB"), IsEmpty()) << "the memory has room for 9";
  EXPECT_THAT(notes_of("gpu-memory: 1GB"), IsEmpty()) << "each has its part of the CPUs";
  EXPECT_THAT(notes_of("gpu-memory: 100MB\n  cpus: 1"), IsEmpty()) << "somebody has said so";
  EXPECT_THAT(notes_of("gpus: 1"), IsEmpty());
}

/// The CPUs of a task with these keys, on a machine with four CPUs and two GPUs.
double cpus_with(std::string_view keys, const LoadOptions& options = in_job_directory()) {
  const Job job = job_of(
      fmt::format("groups:\n- name: a\n  memory: 1GB\n  {}\n  tasks: [{{command: x}}]\n", keys),
      options, with_two_gpus());
  return model::as_number(job.plan().shapes.at(0).terms.request.cpus);
}

TEST(JobGpus, HaveThePartOfTheCpusOfEachTaskThatFitsOnThem) {
  // A tenth of 8 GB stays free.
  EXPECT_EQ(cpus_with("gpu-memory: 2GB"), 0.66) << "three on each GPU, six share four CPUs";
  EXPECT_EQ(cpus_with("gpu-memory: 3GB"), 1);
  EXPECT_EQ(cpus_with("gpu-memory: 100MB"), 0.25) << "no less than that";
  EXPECT_EQ(cpus_with("gpus: 1"), 2);
  EXPECT_EQ(cpus_with("gpus: 2"), 4);
  EXPECT_EQ(cpus_with("gpu-memory: 3GB\n  max-per-gpu: 1"), 2);
  EXPECT_EQ(cpus_with("gpu-memory: 7GB\n  device: cuda:1"), 2) << "as much as its GPU is of all";
  EXPECT_EQ(cpus_with("gpu-memory: 3GB\n  ranks: 2"), 2) << "of all its processes";
}

TEST(JobGpus, HaveTheCpusThatAreWrittenAndOneForEachProcessWhereTheirNumberIsNotKnown) {
  EXPECT_EQ(cpus_with("gpu-memory: 2GB\n  cpus: 3"), 3);
  EXPECT_EQ(cpus_with("gpus: 1\n  cpus: 0"), 0);
  EXPECT_EQ(cpus_with("gpu-memory: auto"), 1) << "how many share a GPU is learned while they run";
  EXPECT_EQ(cpus_with("device: cpu"), 1);
}

TEST(JobGpus, HaveNoMoreCpusThanTheirPartOfTheSmallestMachineThatMayRunTheTask) {
  model::Capacity large = with_two_gpus();
  large.cpus = model::cpus(64);
  LoadOptions options = in_job_directory();
  options.machines = {{.name = "large", .capacity = large},
                      {.name = "small", .capacity = with_two_gpus()},
                      {.name = "without", .capacity = small_machine()}};
  EXPECT_EQ(cpus_with("gpus: 1", options), 2);
  EXPECT_EQ(cpus_with("gpus: 1\n  where: {machine: large}", options), 32);
}

TEST(JobGpus, AreWhatATaskSeesInItsEnvironment) {
  const auto environment = [](std::string_view wants, const std::vector<std::size_t>& places) {
    const Job job =
        job_of(fmt::format("groups:\n- name: a\n  {}\n  tasks: [{{command: x}}]\n", wants),
               in_job_directory(), with_two_gpus());
    std::vector<model::Gpu> gpus;
    for (const std::size_t place : places) gpus.push_back(with_two_gpus().gpus.at(place));
    return job.launch({.task = {0}}, {.gpus = gpus}).environment;
  };
  EXPECT_THAT(environment("gpus: 1", {1}),
              AllOf(Contains("CUDA_VISIBLE_DEVICES=1"), Contains(kBusOrder)));
  EXPECT_THAT(environment("gpus: 2", {0, 1}),
              AllOf(Contains("CUDA_VISIBLE_DEVICES=0,1"), Contains(kBusOrder)));
  EXPECT_THAT(environment("cpus: 1", {}), Contains("CUDA_VISIBLE_DEVICES=-1"));
  EXPECT_THAT(environment("gpus: 1\n  two-phase: true", {}),
              AllOf(Contains("CUDA_VISIBLE_DEVICES=0,1"), Contains(kBusOrder)));
  EXPECT_THAT(environment("gpus: 1\n  env: {CUDA_VISIBLE_DEVICES: 7}", {1}),
              AllOf(Contains("CUDA_VISIBLE_DEVICES=7"), Not(Contains(kBusOrder))));
  EXPECT_THAT(environment("gpu-memory: 2GB", {1}), Contains("TF_FORCE_GPU_ALLOW_GROWTH=true"));
  EXPECT_THAT(environment("gpus: 1", {1}), Not(Contains(HasSubstr("TF_FORCE"))));
}

TEST(JobGpus, ThatATaskChoosesItselfAreWarnedOf) {
  const auto warnings = [](std::string_view group, std::string_view tasks) {
    const Job job = job_of(fmt::format("groups: [{{name: a, {}, tasks: [{}]}}]\n", group, tasks),
                           in_job_directory(), with_two_gpus());
    for (const std::string& warning : job.warnings()) EXPECT_THAT(job.notes(), Contains(warning));
    return job.warnings();
  };
  const std::string of_cuda =
      "group 'a': env sets CUDA_VISIBLE_DEVICES, so tasks run on the GPUs that it names, and not "
      "on "
      "those that are reserved for them; remove it";
  const std::string_view chooses = "env: {CUDA_VISIBLE_DEVICES: '1'}";
  for (const std::string_view wants : {"gpus: 1", "gpu-memory: 2GB", "device: 'cuda:1'"}) {
    EXPECT_THAT(warnings(fmt::format("{}, {}", wants, chooses), "{command: x}, {command: y}"),
                ElementsAre(of_cuda));
  }
  EXPECT_THAT(warnings("gpus: 1", fmt::format("{{command: x}}, {{command: y, {}}}", chooses)),
              ElementsAre(of_cuda));
  EXPECT_THAT(warnings("gpus: 1, env: {HIP_VISIBLE_DEVICES: 1}", "{command: x}"),
              ElementsAre(HasSubstr("env sets HIP_VISIBLE_DEVICES, so")));
  EXPECT_THAT(warnings("gpus: 1, env: {CUDA_DEVICE_ORDER: FASTEST_FIRST}", "{command: x}"),
              IsEmpty());
  EXPECT_THAT(
      warnings("cpus: 1", fmt::format("{{command: x, gpus: 1}}, {{command: y, {}}}", chooses)),
      IsEmpty())
      << "it has no GPUs";
  EXPECT_THAT(warnings(fmt::format("gpus: 1, two-phase: true, {}", chooses), "{command: x}"),
              IsEmpty());
}

TEST(JobGpus, AreNamedByUuidWhereCudaCountsOthers) {
  const auto environment = [](std::string_view keys, const model::Capacity& machine,
                              bool gpus_answer) {
    const Job job = job_of(
        fmt::format("groups:\n- name: a\n  gpus: 1\n  {}\n  tasks: [{{command: x}}]\n", keys),
        in_job_directory(), machine);
    return job.launch({.task = {0}}, {.gpus = {machine.gpus.at(1)}, .gpus_answer = gpus_answer})
        .environment;
  };
  const auto by_uuid = AllOf(Contains("CUDA_VISIBLE_DEVICES=GPU-b"), Not(Contains(kBusOrder)));
  EXPECT_THAT(environment("cpus: 1", with_two_gpus(), true), Contains("CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(environment("cpus: 1", with_two_gpus(), false), by_uuid) << "one has failed since";
  model::Capacity unnumbered = with_two_gpus();
  for (model::Gpu& gpu : unnumbered.gpus) gpu.cuda_number.reset();
  EXPECT_THAT(environment("cpus: 1", unnumbered, true), by_uuid);
  EXPECT_THAT(environment("env: {CUDA_DEVICE_ORDER: FASTEST_FIRST}", with_two_gpus(), true),
              AllOf(by_uuid, Contains("CUDA_DEVICE_ORDER=FASTEST_FIRST")));
  EXPECT_THAT(environment("env: {CUDA_DEVICE_ORDER: PCI_BUS_ID}", with_two_gpus(), true),
              Contains("CUDA_VISIBLE_DEVICES=1"));
}

TEST(JobGpus, ThatAreLateAreSeenByWhoGetsThemAndNotByTwoPhaseTasks) {
  model::Capacity machine = with_two_gpus();
  machine.gpus[0].cuda_number.reset();
  machine.gpus[1] = {.number = 1, .late = true};
  const auto environment = [&](std::string_view wants, const std::vector<model::Gpu>& gpus) {
    const Job job = job_of(
        fmt::format("groups:\n- name: a\n  gpus: 1\n  {}\n  tasks: [{{command: x}}]\n", wants),
        in_job_directory(), machine);
    return job.launch({.task = {0}}, {.gpus = gpus}).environment;
  };
  EXPECT_THAT(environment("two-phase: true", {}), Contains("CUDA_VISIBLE_DEVICES=GPU-a"));
  EXPECT_THAT(environment("cpus: 1", {{.number = 1, .uuid = "GPU-late", .late = true}}),
              Contains("CUDA_VISIBLE_DEVICES=GPU-late"));
}

TEST(JobGpus, ThatAreLateMayBeLargeEnoughButForTwoPhaseTasks) {
  model::Capacity machine = with_two_gpus();
  machine.gpus[1] = {.number = 1, .late = true};
  const auto text = [](std::string_view wants) {
    return fmt::format("groups:\n- name: a\n  gpu-memory: 500GB\n  {}\n  tasks: [{{command: x}}]\n",
                       wants);
  };
  EXPECT_THAT(job_of(text("cpus: 1"), in_job_directory(), machine).plan().tasks.size(), 1);
  LoadOptions looked_at = in_job_directory();
  looked_at.only_shown = true;
  EXPECT_THAT(job_of(text("two-phase: true"), looked_at, machine).notes(),
              Contains(AllOf(HasSubstr("can never run here: needs 500 GB of memory on a GPU"),
                             HasSubstr("; GPU 1 does not respond, and a two-phase task can use "
                                       "only GPUs that respond when it starts; "))));
}

TEST(JobGpus, BeginWithWhatEarlierRunsHaveMeasuredOfSharing) {
  Learned learned;
  const LearnedFrom from{.run = "runs/sweep", .host = "lab1", .gpu = "NVIDIA H100"};
  learned.add("g", "a", {.memory = gb(1), .train = Duration{60'000}}, from);
  learned.set_sharing("g",
                      {.to_a_gpu = 2, .factor = 1.6, .tasks = 9, .to_a_gpu_max = 3, .from = from});
  const Job job = taught_job(
      "groups:\n"
      "- name: g\n"
      "  tasks:\n"
      "  - {id: a, gpu-memory: 1GB, command: x}\n"
      "  - {id: whole, gpus: 1, command: x}\n"
      "  - {id: told, gpu-memory: 1GB, gpu-utilization: 30%, command: x}\n"
      "  - {id: b, gpu-memory: 2GB, command: x}\n",
      learned.to_json(), {{.number = 0, .name = "NVIDIA H100", .memory = gb(8)}});
  const auto measured = [](std::uint32_t shape) {
    return model::SharingMeasured{
        .shape = {shape}, .to_a_gpu = 2, .factor = 1.6, .tasks = 9, .to_a_gpu_max = 3};
  };
  EXPECT_THAT(job.plan().sharing, ElementsAre(measured(0), measured(3)));
  EXPECT_THAT(job.gpu_shares(), ElementsAre(625));
  EXPECT_THAT(job.notes(), Contains(HasSubstr("at most 3 per GPU")));
}

TEST(JobGpus, BeginWithALimitOfSharingAloneWhereNothingElseIsKnown) {
  Learned learned;
  const LearnedFrom from{.run = "runs/sweep", .host = "lab1", .gpu = "NVIDIA H100"};
  learned.add("g", "a", {.memory = gb(1), .train = Duration{60'000}}, from);
  learned.set_sharing("g", {.to_a_gpu_max = 2, .from = from});
  const Job job =
      taught_job("groups: [{name: g, gpu-memory: 1GB, tasks: [{id: a, command: x}]}]\n",
                 learned.to_json(), {{.number = 0, .name = "NVIDIA H100", .memory = gb(8)}});
  EXPECT_THAT(job.plan().sharing,
              ElementsAre(model::SharingMeasured{.shape = {0}, .to_a_gpu_max = 2}));
  EXPECT_THAT(job.gpu_shares(), ElementsAre(0)) << "nobody knows what it costs";
  EXPECT_THAT(job.notes(), Contains(HasSubstr("at most 2 per GPU")));
}

/// A job of one task on a GPU that it shares, in a directory with a Python that has this torch.
class CappedJob : public ::testing::Test {
 protected:
  CappedJob() {
    namespace fs = std::filesystem;
    const fs::path packages = fs::path(at("venv/lib/python3.11/site-packages/torch"));
    fs::create_directories(packages);
    fs::create_directories(at("venv/bin"));
    directory_.write("venv/pyvenv.cfg", "home = /usr/bin\n");
    directory_.write("venv/bin/python", "");
    fs::permissions(at("venv/bin/python"), fs::perms::owner_all);
    directory_.write("venv/lib/python3.11/site-packages/torch/version.py",
                     "__version__ = '2.10.0'\n");
  }
  [[nodiscard]] std::string at(std::string_view name) const { return directory_ / name; }
  /// VENV stands for its virtual environment.
  [[nodiscard]] model::Launch launch(std::string wants, Bytes most = gb(4),
                                     std::vector<std::string> environment = {}) const {
    for (std::size_t found = 0; (found = wants.find("VENV")) != std::string::npos;) {
      wants.replace(found, 4, at("venv"));
    }
    model::Capacity machine = with_two_gpus();
    LoadOptions options = in_job_directory();
    options.environment = std::move(environment);
    const Job job = job_of(fmt::format("groups:\n- name: a\n  gpu-memory: 1GB\n  {}\n", wants),
                           options, machine);
    return job.launch({.task = {0}}, {.gpus = {machine.gpus[0]}, .memory_max = most});
  }

 private:
  sys::TemporaryDirectory directory_;
};

TEST_F(CappedJob, IsToldInTheWordsOfItsFramework) {
  const model::Launch capped = launch("tasks: [{command: VENV/bin/python fit.py}]");
  EXPECT_EQ(capped.capped_by, "torch 2.10.0");
  EXPECT_THAT(capped.environment,
              Contains("PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.4375"));
  EXPECT_EQ(launch("tasks: [{command: [VENV/bin/python, fit.py]}]").capped_by, "torch 2.10.0");
  EXPECT_EQ(launch("tasks: [{command: python fit.py}]\n  env: {PATH: VENV/bin}").capped_by,
            "torch 2.10.0");
  EXPECT_EQ(
      launch("tasks: [{command: python fit.py}]", gb(4), {"PATH=" + at("venv/bin")}).capped_by,
      "torch 2.10.0");
}

TEST_F(CappedJob, KeepsWhatIsSaidOfItsAllocator) {
  const std::string wants =
      "tasks: [{command: VENV/bin/python fit.py}]\n"
      "  env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}";
  std::vector<std::string> said;
  for (const std::string& variable : launch(wants).environment) {
    if (variable.starts_with("PYTORCH")) said.push_back(variable);
  }
  EXPECT_THAT(said, ElementsAre("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,"
                                "per_process_memory_fraction:0.4375"));
  EXPECT_THAT(launch("tasks: [{command: VENV/bin/python fit.py}]", gb(4),
                     {"PYTORCH_ALLOC_CONF=max_split_size_mb:64"})
                  .environment,
              Contains("PYTORCH_ALLOC_CONF=max_split_size_mb:64,"
                       "per_process_memory_fraction:0.4375"));
}

TEST_F(CappedJob, IsToldNothingWhereNothingIsToBeSaid) {
  EXPECT_EQ(launch("tasks: [{command: VENV/bin/python fit.py}]", Bytes{0}).capped_by, "");
  const model::Launch unknown = launch("tasks: [{command: cd x && VENV/bin/python fit.py}]");
  EXPECT_EQ(unknown.capped_by, "");
  EXPECT_THAT(unknown.environment, Not(Contains(HasSubstr("PYTORCH"))));
}

TEST(JobMistakes, TellThatAHardLimitOfAGpuNeedsANumber) {
  const char* const expected =
      "sweep.yaml:4:23: group 'train': gpu-memory-limit: 'hard' needs 'gpu-memory', the amount";
  EXPECT_THAT(in_group("gpu-memory-limit: hard"), ElementsAre(expected));
  EXPECT_THAT(
      in_group("gpu-memory: at least 1GB\ngpu-memory-limit: hard"),
      ElementsAre(
          HasSubstr("can never run here"),
          HasSubstr(
              "'hard' cannot be combined with a 'gpu-memory' that may grow ('at least', 'auto')")));
  EXPECT_THAT(in_group("gpu-memory-limit: firm"),
              ElementsAre("sweep.yaml:4:23: group 'train': gpu-memory-limit: must be none, soft or "
                          "hard, not 'firm'; 'gpu-memory' sets the amount"));
}

TEST(JobGpus, OfAmdAreNamedToHip) {
  model::Capacity machine = with_two_gpus();
  for (model::Gpu& gpu : machine.gpus) gpu.maker = model::GpuMaker::Amd;
  const Job job =
      job_of("groups: [{name: a, gpus: 1, tasks: [{command: x}]}]", in_job_directory(), machine);
  EXPECT_THAT(job.launch({.task = {0}}, {.gpus = {machine.gpus[1]}}).environment,
              Contains("HIP_VISIBLE_DEVICES=GPU-b"));
}

TEST(JobMistakes, TellThatThereIsNoGpu) {
  EXPECT_THAT(
      in_group("gpus: 1"),
      ElementsAre("sweep.yaml:4:11: group 'train': task 'train-1' can never run here: needs "
                  "a GPU, this machine has none"));
  EXPECT_THAT(
      in_group("gpu-memory: 2GB"),
      ElementsAre("sweep.yaml:4:17: group 'train': task 'train-1' can never run here: needs "
                  "a GPU, this machine has none"));
  EXPECT_THAT(
      in_group("device: cuda:1"),
      ElementsAre("sweep.yaml:4:13: group 'train': task 'train-1' can never run here: needs "
                  "a GPU, this machine has none"));
  EXPECT_THAT(in_group("gpus: 0\ngpu-memory: 0\ndevice: cpu"), IsEmpty());
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- name: a\n"
                          "  gpus: '0'\n"
                          "  tasks: [{command: x, gpu-memory: 2GB}, {command: x, gpus: 2}]\n"),
              ElementsAre(HasSubstr("sweep.yaml:4:36: group 'a': task 'a-1' can never run here"),
                          HasSubstr("sweep.yaml:4:61: group 'a': task 'a-2' can never run here")));
}

TEST(JobMistakes, TellAllThatTheMachineHasTooLittleOf) {
  EXPECT_THAT(
      in_group("memory: 64GB\ncpus: 6\ngpus: 1"),
      ElementsAre(
          "sweep.yaml:4:13: group 'train': task 'train-1' can never run here: needs 64 GB "
          "of memory, this machine has 18 GB available (20 GB less 2 GB kept free); request "
          "at most 18GB (if no other process uses any); 'run --on HOST' uses another "
          "machine",
          "sweep.yaml:5:11: group 'train': task 'train-1' can never run here: needs 6 "
          "CPUs, this machine has 4; request at most 4; 'run --on HOST' uses another "
          "machine",
          "sweep.yaml:6:11: group 'train': task 'train-1' can never run here: needs a GPU, "
          "this machine has none"));
}

TEST(JobMistakes, TellWhatTheGpusCannotGive) {
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .memory = gb(8)}, {.number = 1, .memory = gb(8)}};
  const auto with = [&](std::string_view wants) {
    const std::string text =
        fmt::format("groups:\n- name: a\n  {}\n  tasks: [{{command: x}}]\n", wants);
    const auto job = Job::parse(text, in_job_directory(), machine);
    return job ? std::string() : text::to_text(job.error().front());
  };
  EXPECT_EQ(with("gpus: 2"), "");
  EXPECT_EQ(with("gpu-memory: auto"), "");
  EXPECT_EQ(with("gpus: 3"),
            "sweep.yaml:3:9: group 'a': task 'a-1' can never run here: needs 3 GPUs, this machine "
            "has 2; request at most 2; 'run --on HOST' uses another machine");
  EXPECT_EQ(with("gpu-memory: 7.5GB"),
            "sweep.yaml:3:15: group 'a': task 'a-1' can never run here: needs 7.5 GB of memory on "
            "a GPU, the largest here has 7.2 GB available after what is kept free; request at most "
            "7.2GB (if no other process uses any); 'run --on HOST' uses another machine");
  EXPECT_THAT(
      with("gpus: 2\n  gpu-memory: 90GB"),
      StartsWith("sweep.yaml:4:15: group 'a': task 'a-1' can never run here: needs 90 GB of "
                 "memory on a GPU"));
  EXPECT_THAT(with("gpu-memory: 2GB\n  gpus: 3"),
              StartsWith("sweep.yaml:4:9: group 'a': task 'a-1' can never run here: needs 3 GPUs"));
  EXPECT_THAT(
      with("device: cuda:1\n  gpu-memory: 90GB"),
      StartsWith("sweep.yaml:4:15: group 'a': task 'a-1' can never run here: needs 90 GB of "
                 "memory on a GPU, the requested GPU has"));
  EXPECT_THAT(with("gpu-memory: 2GB\n  device: cuda:2"),
              StartsWith("sweep.yaml:4:11: group 'a': task 'a-1' can never run here: needs "
                         "'cuda:2'"));
  EXPECT_EQ(with("device: cuda:2"),
            "sweep.yaml:3:11: group 'a': task 'a-1' can never run here: needs 'cuda:2', this "
            "machine has 2 GPUs ('cuda:0' to 'cuda:1')");
  for (model::Gpu& gpu : machine.gpus) gpu.slice = 0;
  EXPECT_THAT(with("gpus: 1\n  two-phase: true"),
              StartsWith("sweep.yaml:4:14: group 'a': task 'a-1' can never run here: a two-phase "
                         "task sees all GPUs"));
  for (model::Gpu& gpu : machine.gpus) gpu.slice.reset();
  EXPECT_EQ(with("device: cuda:0\n  gpus: 2"),
            "sweep.yaml:3:11: group 'a': device: names one GPU, but 2 are requested");
  EXPECT_EQ(with("device: cpu\n  gpus: 1"),
            "sweep.yaml:3:11: group 'a': device: 'cpu' cannot be combined with a request for GPUs");
  EXPECT_EQ(with("device: gpu:0"),
            "sweep.yaml:3:11: group 'a': device: 'gpu:0' is not a valid device; use cpu, cuda (any "
            "GPU) or cuda:<index>");
  EXPECT_EQ(with("gpu-memory: 4"),
            "sweep.yaml:3:15: group 'a': gpu-memory: '4' has no unit and would be 4 bytes (did you "
            "mean '4GB' or '4MB'?)");
}

}  // namespace
}  // namespace trainyard::job
