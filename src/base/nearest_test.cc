// The nearest right word, one rule a test.
#include "base/nearest.h"

#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 5> kKeys{"max-parallel", "matrix", "memory", "needs", "id"};

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("max-paralel", kKeys), "max-parallel");
  EXPECT_EQ(nearest("max_parallel", kKeys), "max-parallel");
  EXPECT_EQ(nearest("memroy", kKeys), "memory");
  EXPECT_EQ(nearest("need", kKeys), "needs");
}

TEST(Nearest, DoesNotCountTheDashesOfAnOptionAsLetters) {
  constexpr std::array<std::string_view, 2> kOptions{"--help", "--memory"};
  EXPECT_EQ(nearest("--keep", kOptions), std::nullopt) << "two of four letters are others";
  EXPECT_EQ(nearest("--hepl", kOptions), "--help");
  EXPECT_EQ(nearest("--memmroy", kOptions), "--memory");
}

TEST(Nearest, CountsASwapOfNeighboursOnce) { EXPECT_EQ(nearest("di", kKeys), "id"); }

TEST(Nearest, TakesACapitalForItsSmallLetter) {
  constexpr std::array<std::string_view, 2> kNames{"seed", "lr"};
  EXPECT_EQ(nearest("LR", kNames), "lr");
  EXPECT_EQ(nearest("Sede", kNames), "seed");
}

TEST(Nearest, NeverTakesAGpuForACpu) {
  constexpr std::array<std::string_view, 4> kDevices{"gpu-memory", "gpu-utilization", "cpus",
                                                     "memory"};
  EXPECT_EQ(nearest("cpu-utilization", kDevices), std::nullopt);
  EXPECT_EQ(nearest("gpu-utilisation", kDevices), "gpu-utilization");
  EXPECT_EQ(nearest("--gpus", std::array<std::string_view, 1>{"--cpus"}), std::nullopt);
  EXPECT_EQ(nearest("cpu-memory", kDevices), "memory");
}

TEST(Nearest, KnowsWhatOtherToolsCallIt) {
  constexpr std::array<std::string_view, 6> kOptions{"--name", "--time-limit", "--memory",
                                                     "--cpus", "--retries",    "--retry-on"};
  EXPECT_EQ(nearest("--time", kOptions), "--time-limit") << "and not --name, which is nearer";
  EXPECT_EQ(nearest("--timeout", kOptions), "--time-limit");
  EXPECT_EQ(nearest("--mem", kOptions), "--memory");
  for (const char* const word :
       {"--retry", "--nretry", "--max-retries", "--max_retries", "--requeue"}) {
    EXPECT_EQ(nearest(word, kOptions), "--retries") << word << ", also where --retry-on is nearer";
  }
  EXPECT_EQ(nearest("mem", kKeys), "memory");
  for (const char* const word :
       {"depends-on", "depends_on", "depends", "dependency", "dependencies", "deps", "after"}) {
    EXPECT_EQ(nearest(word, kKeys), "needs") << word;
  }
  EXPECT_EQ(nearest("parallel", kKeys), "max-parallel");
  EXPECT_EQ(nearest("params", kKeys), "matrix");
  EXPECT_EQ(nearest("parameters", kKeys), "matrix");
  constexpr std::array<std::string_view, 4> kOfTask{"env", "id", "gpus", "gpu-memory"};
  EXPECT_EQ(nearest("vram", kOfTask), "gpu-memory");
  EXPECT_EQ(nearest("gpu_mem", kOfTask), "gpu-memory");
  EXPECT_EQ(nearest("env-vars", kOfTask), "env");
  EXPECT_EQ(nearest("num_gpus", kOfTask), "gpus");
  constexpr std::array<std::string_view, 9> kOfJob{"id",      "if",           "cpus",
                                                   "gpus",    "memory-limit", "working-directory",
                                                   "command", "tasks",        "groups"};
  for (const char* const word :
       {"cores", "threads", "num_cpus", "ncpus", "cpus_per_task", "num_threads"}) {
    EXPECT_EQ(nearest(word, kOfJob), "cpus") << word;
  }
  for (const char* const word : {"gpu", "ngpus", "num_gpus"}) {
    EXPECT_EQ(nearest(word, kOfJob), "gpus") << word << ", also where cpus is as near";
  }
  for (const char* const word : {"dir", "directory", "working_dir", "workdir", "cwd"}) {
    EXPECT_EQ(nearest(word, kOfJob), "working-directory") << word << ", also where id is nearer";
  }
  for (const char* const word : {"script", "run", "entrypoint", "cmd"}) {
    EXPECT_EQ(nearest(word, kOfJob), "command") << word;
  }
  for (const char* const word : {"jobs", "steps", "task"})
    EXPECT_EQ(nearest(word, kOfJob), "tasks") << word;
  EXPECT_EQ(nearest("when", kOfJob), "if");
  for (const char* const word : {"mem_limit", "mem_mb", "mem_gb", "mem_per_cpu", "ram"}) {
    EXPECT_EQ(nearest(word, kKeys), "memory") << word << ", whose amount other tools set with it";
  }
  for (const char* const word :
       {"timeout_s", "timeout_sec", "timeout_seconds", "runtime", "max_time"}) {
    EXPECT_EQ(nearest(word, kOptions), "--time-limit") << word;
  }
  EXPECT_EQ(nearest("num_retries", kOptions), "--retries");
  EXPECT_EQ(nearest("requires", kKeys), "needs");
  for (const char* const word : {"grid", "sweep", "hyperparameters", "seeds"}) {
    EXPECT_EQ(nearest(word, kKeys), "matrix") << word;
  }
  for (const char* const word : {"concurrency", "parallelism"}) {
    EXPECT_EQ(nearest(word, kKeys), "max-parallel") << word;
  }
  for (const char* const word : {"environment", "environment_variables", "envs"}) {
    EXPECT_EQ(nearest(word, kOfTask), "env") << word;
  }
  constexpr std::array<std::string_view, 5> kCommands{"status", "kill", "logs", "clean", "up"};
  EXPECT_EQ(nearest("queue", kCommands), "status");
  EXPECT_EQ(nearest("jobs", kCommands), "status") << "tasks is a key of a job file";
  EXPECT_EQ(nearest("stop", kCommands), "kill");
  for (const char* const word : {"rm", "gc"}) EXPECT_EQ(nearest(word, kCommands), "clean") << word;
  EXPECT_EQ(nearest("show", kCommands), "status");
  constexpr std::array<std::string_view, 4> kOthers{"run", "retry", "results", "devices"};
  EXPECT_EQ(nearest("start", kOthers), "run");
  EXPECT_EQ(nearest("rerun", kOthers), "retry") << "and not run, which is nearer";
  EXPECT_EQ(nearest("report", kOthers), "results");
  for (const char* const word : {"gpu", "gpus"}) EXPECT_EQ(nearest(word, kOthers), "devices");
  constexpr std::array<std::string_view, 2> kOfLearned{"show", "forget"};
  EXPECT_EQ(nearest("clear", kOfLearned), "forget");
  constexpr std::array<std::string_view, 2> kOfGroup{"fail-fast", "tasks"};
  EXPECT_EQ(nearest("halt", kOfGroup), "fail-fast");
  constexpr std::array<std::string_view, 2> kOfSetup{"config", "help"};
  EXPECT_EQ(nearest("man", kOfSetup), "help");
  constexpr std::array<std::string_view, 2> kOfRun{"--detach", "--resume"};
  EXPECT_EQ(nearest("--background", kOfRun), "--detach");
  EXPECT_EQ(nearest("--continue", kOfRun), "--resume");
  constexpr std::array<std::string_view, 11> kAll{"run",     "submit", "retry",   "status",
                                                  "results", "kill",   "hold",    "release",
                                                  "update",  "config", "machines"};
  for (const auto& [word, ours] : std::initializer_list<std::pair<const char*, const char*>>{
           {"top", "status"},       {"watch", "status"},    {"squeue", "status"},
           {"sacct", "status"},     {"pause", "hold"},      {"suspend", "hold"},
           {"unpause", "release"},  {"unhold", "release"},  {"restart", "retry"},
           {"requeue", "retry"},    {"sbatch", "submit"},   {"srun", "run"},
           {"scancel", "kill"},     {"scontrol", "update"}, {"set", "update"},
           {"sinfo", "machines"},   {"export", "results"},  {"best", "results"},
           {"dashboard", "status"}, {"init", "config"}}) {
    EXPECT_EQ(nearest(word, kAll), ours) << word;
  }
  constexpr std::array<std::string_view, 12> kRunOptions{
      "--new", "--matrix",   "--where",   "--run-dir",   "--name", "--resume",
      "--set", "--retry-on", "--dry-run", "--each-line", "--on",   "--cpus"};
  for (const auto& [word, ours] :
       std::initializer_list<std::pair<const char*, const char*>>{{"--force", "--new"},
                                                                  {"--overwrite", "--new"},
                                                                  {"--array", "--matrix"},
                                                                  {"--seed", "--matrix"},
                                                                  {"--partition", "--where"},
                                                                  {"--output-dir", "--run-dir"},
                                                                  {"--results", "--run-dir"},
                                                                  {"-J", "--name"},
                                                                  {"--restart", "--new"},
                                                                  {"--seeds", "--matrix"},
                                                                  {"--multirun", "--matrix"},
                                                                  {"--foreach", "--matrix"},
                                                                  {"-m", "--matrix"},
                                                                  {"-N", "--on"},
                                                                  {"-c", "--cpus"},
                                                                  {"--test", "--dry-run"},
                                                                  {"-a", "--each-line"}}) {
    EXPECT_EQ(nearest(word, kRunOptions), ours) << word;
  }
  constexpr std::array<std::string_view, 2> kOfRanks{"--ranks", "--logs"};
  EXPECT_EQ(nearest("--np", kOfRanks), "--ranks");
  EXPECT_EQ(nearest("ntasks", kOfRanks), "--ranks");
  EXPECT_EQ(nearest("timeout", kKeys), std::nullopt) << "there is nothing of this kind";
  EXPECT_EQ(called_otherwise("depends_on", kKeys), "needs");
  EXPECT_EQ(called_otherwise("need", kKeys), std::nullopt) << "a spelling mistake";
}

TEST(Nearest, FindsANameAmongOthersHoweverItIsTyped) {
  for (const char* const word : {"-j", "max-procs", "--max-procs", "max_procs", "--max_procs"}) {
    EXPECT_TRUE(is_among(word, "-j max-procs")) << word;
  }
  for (const char* const word : {"", "j", "max", "-j max-procs"}) {
    EXPECT_FALSE(is_among(word, "-j max-procs")) << word;
  }
}

TEST(Nearest, LeadsFromOptionsOfSlurmToThoseOfRun) {
  constexpr std::array<std::string_view, 6> kOfRun{"--on",   "--needs",       "--priority",
                                                   "--name", "--start-after", "--gpus"};
  EXPECT_EQ(nearest("--nodes", kOfRun), "--on") << "and not --needs, which is nearer";
  EXPECT_EQ(nearest("--nice", kOfRun), "--priority") << "and not --name, which is nearer";
  EXPECT_EQ(nearest("--begin", kOfRun), "--start-after");
  EXPECT_EQ(nearest("--gpus-per-task", kOfRun), "--gpus");
}

TEST(Nearest, LeadsFromWatchToFollowWhereACommandHasOnlyThis) {
  constexpr std::array<std::string_view, 2> kOfLogs{"--follow", "--rank"};
  constexpr std::array<std::string_view, 2> kOfStatus{"--watch", "--all"};
  for (const char* const word : {"--watch", "-w"}) EXPECT_EQ(nearest(word, kOfLogs), "--follow");
  for (const char* const word : {"--follow", "-f"}) EXPECT_EQ(nearest(word, kOfStatus), "--watch");
}

TEST(Nearest, SaysNothingWhenNoWordIsNear) {
  EXPECT_EQ(nearest("colour", kKeys), std::nullopt);
  EXPECT_EQ(nearest("", kKeys), std::nullopt);
  constexpr std::array<std::string_view, 2> kShort{"b", "ca"};
  EXPECT_EQ(nearest("a", kShort), "ca") << "and not b, which is no mistyped a";
  EXPECT_EQ(nearest(std::string(65, 'm'), kKeys), std::nullopt);
}

}  // namespace
}  // namespace trainyard
