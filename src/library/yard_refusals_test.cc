// Tasks and groups that a yard refuses to run, and the messages.
#include <chrono>
#include <cmath>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "library/test_yard.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(YardTest, FailsAndDoesNotEndTheProgramWhereItsFilesReachTheLimitOfTheirSize) {
  const pid_t program = ::fork();
  if (program == 0) {
    const rlimit few{.rlim_cur = 3, .rlim_max = 3};
    ::setrlimit(RLIMIT_FSIZE, &few);
    TaskGroup group("g");
    group.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
    Yard yard(config(), options());
    ::_exit(yard.run(group) ? 8 : 7);
  }
  int status = 0;
  ::waitpid(program, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(YardTest, RefusesWhatCannotBeRun) {
  const auto refusal = [&](TaskGroup& group) {
    Yard yard(config(), options());
    const Result<RunSummary> done = yard.run(group);
    return done ? std::string("(it was run)") : done.error().message;
  };
  const auto fine = [](Made&, const Device&) { return Json::object(); };
  TaskGroup twice("twice");
  twice.add<Made>("a", fine);
  twice.add<Made>("a", fine);
  EXPECT_EQ(refusal(twice), "group 'twice': duplicate id 'a'");
  TaskGroup unsafe("unsafe");
  unsafe.add<Made>("a/b", fine);
  EXPECT_EQ(refusal(unsafe), "group 'unsafe': the id of a task 'a/b' has a '/'");
  struct Huge : Task {
    Huge() : Task({.id = "huge", .memory = 100'000_GB}) {}
    Json train(const Device&) override { return {}; }
  };
  TaskGroup huge("huge");
  huge.add<Huge>();
  EXPECT_THAT(refusal(huge),
              HasSubstr("task 'huge' can never run here: it needs 100 TB of memory"));
  struct Wishes : Task {
    explicit Wishes(TaskOptions options) : Task(std::move(options)) {}
    Json train(const Device& device) override { return {{"device", device.name}}; }
  };
  TaskGroup gpu("gpu", {.gpu_memory = 1_GB});
  gpu.add<Wishes>(TaskOptions{.id = "a"});
  EXPECT_THAT(
      refusal(gpu),
      HasSubstr("group 'gpu': task 'a' can never run here: it needs a GPU, this machine has none"));
  TaskGroup wish("wish", {.device = "cuda:1"});
  wish.add<Wishes>(TaskOptions{.id = "a", .device = "cpu"});
  EXPECT_EQ(refusal(wish), "(it was run)");
  EXPECT_EQ(wish.find("a")->result(), (Json{{"device", "cpu"}})) << "the task's word counts";
  TaskGroup odd("odd");
  odd.add<Wishes>(TaskOptions{.id = "a", .device = "gpu0"});
  EXPECT_EQ(refusal(odd),
            "group 'odd': task 'a': device: 'gpu0' is not a valid device; use cpu, cuda (any GPU) "
            "or cuda:<index>");
  TaskGroup both("both");
  both.add<Wishes>(TaskOptions{.id = "a", .gpus = 1, .device = "cpu"});
  EXPECT_EQ(refusal(both),
            "group 'both': task 'a': device: 'cpu' cannot be combined with a request for GPUs");
  TaskGroup several("several");
  several.add<Wishes>(TaskOptions{.id = "a", .gpus = 2, .device = "cuda:1"});
  EXPECT_EQ(refusal(several),
            "group 'several': task 'a': device: names one GPU, but 2 are requested");
  Config mails;
  ASSERT_FALSE(mails.set("smtp.enable", "true"));
  EXPECT_THAT(mails.set("smtp.enable", "true").error().message,
              HasSubstr("reports are mailed by 'trainyard run', not by a program"));
  Config wrong;
  EXPECT_THAT(wrong.set("scheduler.max-proces", "4").error().message,
              HasSubstr("did you mean 'scheduler.max-process'"));
}

struct Asking : Task {
  explicit Asking(TaskOptions options) : Task(std::move(options)) {}
  Json train(const Device&) override { return Json::object(); }
};

TEST_F(YardTest, RefusesOptionsByTheRulesOfAJobFile) {
  const auto refusal = [this](TaskOptions asks, GroupOptions options = {}) {
    asks.id = "a";
    TaskGroup group("g", {}, options);
    group.add<Asking>(asks);
    Yard yard(config(), this->options());
    yard.add(group);
    const Result<void> checked = yard.check();
    return checked ? std::string("(it is right)") : checked.error().message;
  };
  const std::string task = "group 'g': task 'a': ";
  EXPECT_THAT(refusal({.memory = Bytes{-5}}), StartsWith(task + "memory: "));
  EXPECT_THAT(refusal({.memory = Bytes{4}}), StartsWith(task + "memory: ")) << "no 4 bytes";
  EXPECT_THAT(refusal({.cpus = std::nan("")}), StartsWith(task + "cpus: "));
  EXPECT_THAT(refusal({.cpus = -1}), StartsWith(task + "cpus: "));
  EXPECT_THAT(refusal({.gpus = -1}), StartsWith(task + "gpus: "));
  EXPECT_THAT(refusal({.device = "gpu0"}),
              StartsWith(task + "device: 'gpu0' is not a valid device"));
  EXPECT_THAT(refusal({.memory_hard = true}),
              StartsWith(task + "memory-limit: 'hard' needs 'memory', the amount"));
  EXPECT_THAT(refusal({.signal = "KILL@5"}), StartsWith(task + "signal: SIGKILL cannot be caught"));
  EXPECT_THAT(refusal({.signal = "USR1@120", .time_limit = std::chrono::seconds(60)}),
              StartsWith(task + "signal: 2m before the time limit is too early"));
  EXPECT_THAT(refusal({.time_limit = std::chrono::milliseconds(-1)}),
              StartsWith(task + "time-limit: "));
  EXPECT_THAT(refusal({.start_after = std::chrono::milliseconds(-1)}),
              StartsWith(task + "start-after: "));
  EXPECT_THAT(refusal({.retries = 300}), StartsWith(task + "retries: "));
  EXPECT_EQ(refusal({}, {.parallel_max = -1}),
            "group 'g': parallel_max: -1 is not a valid number of tasks; 0 is as many as there is "
            "room for");
  EXPECT_EQ(refusal({.environment = {{"A=B", "1"}}}),
            task + "environment: 'A=B' is not a valid variable name");
  EXPECT_EQ(refusal({.environment = {{"TRAINYARD_TOKEN", "1"}}}),
            task + "environment: 'TRAINYARD_TOKEN' is set by trainyard; choose another name");
  EXPECT_EQ(refusal({.environment = {{"A", std::string("x\0y", 3)}}}),
            task + "environment: 'A' has a value with a NUL in it");
  EXPECT_EQ(refusal({.environment = {{"A", std::string(200'000, 'x')}}}),
            task + "environment: 'A' has more than 128 KiB");
  EXPECT_EQ(refusal({.memory = 1_MB, .cpus = 1.0 / 3}), "(it is right)");
  EXPECT_EQ(refusal({.memory = 1_GB, .memory_hard = true, .retries = 2}), "(it is right)");
  EXPECT_EQ(refusal({.memory_at_least = 1_MB}), "(it is right)");
  EXPECT_EQ(refusal({.memory = 1_GB, .memory_at_least = 1_GB}),
            task + "memory: cannot be combined with memory_at_least");
  EXPECT_EQ(refusal({.gpu_memory = 1_GB, .gpu_memory_at_least = 1_GB}),
            task + "gpu_memory: cannot be combined with gpu_memory_at_least");
  EXPECT_THAT(
      refusal({.memory_at_least = 1_GB, .memory_hard = true}),
      StartsWith(task + "memory-limit: 'hard' cannot be combined with 'memory: at least ...'"));
}

TEST_F(YardTest, TellsWhatIsWrongWithALaterGroupBeforeAnythingRuns) {
  TaskGroup fine("fine");
  auto& first = fine.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  TaskGroup wrong("wrong");
  wrong.add<Asking>(TaskOptions{.id = "b", .retries = -1});
  Yard yard(config(), options());
  yard.add(fine);
  yard.add(wrong);
  const Result<RunSummary> done = yard.run();
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, StartsWith("group 'wrong': task 'b': retries: "));
  EXPECT_EQ(first.status(), Status::Init) << "nothing has run";
}

TEST_F(YardTest, RefusesAGroupOfWhichAnotherOneHasTheName) {
  TaskGroup one("twins");
  TaskGroup other("twins");
  one.add<Asking>(TaskOptions{.id = "a"});
  other.add<Asking>(TaskOptions{.id = "b"});
  Yard yard(config(), options());
  yard.add(one);
  yard.add(other);
  EXPECT_EQ(yard.check().error().message, "duplicate group 'twins'");
}

TEST_F(YardTest, RunsAGroupThatWasRefusedWhenTheCauseIsGone) {
  Yard yard(config(), options());
  TaskGroup group("g");
  group.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  {
    const std::jthread other([](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
    });
    yard.add(group);
    ASSERT_FALSE(yard.run().has_value());
  }
  const Result<RunSummary> done = yard.run();
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->finished, 1);
}

TEST_F(YardTest, LosesNoSummaryOfGroupsBeforeOneThatWasRefused) {
  YardOptions its = options();
  std::optional<std::jthread> other;
  its.on_status = [&other](const Task& task) {
    if (task.id() != "a" || task.outcome() == TaskOutcome::None) return;
    other.emplace([](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
    });
  };
  const auto fine = [](Made&, const Device&) { return Json::object(); };
  TaskGroup first("first");
  first.add<Made>("a", fine);
  TaskGroup second("second");
  second.add<Made>("b", fine);
  TaskGroup third("third");
  third.add<Made>("c", fine);
  Yard yard(config(), its);
  for (TaskGroup* const group : {&first, &second, &third}) yard.add(*group);
  EXPECT_THAT(yard.run().error().message, StartsWith("group 'second': "));
  EXPECT_TRUE(first.finished());
  other.reset();
  EXPECT_EQ(yard.run().value().finished, 3);
}

TEST_F(YardTest, RefusesAnIdThatAnotherGroupHasWhereItIsToldTo) {
  Config strict = config();
  ASSERT_TRUE(strict.set("task.allow-duplicate-id", "false"));
  Yard yard(strict, options());
  const auto fine = [](Made&, const Device&) { return Json::object(); };
  TaskGroup first("first");
  first.add<Made>("a", fine);
  TaskGroup second("second");
  second.add<Made>("b", fine);
  second.add<Made>("a", fine);
  EXPECT_TRUE(yard.run(first));
  EXPECT_EQ(yard.run(second).error().message,
            "group 'second': the id 'a' is also in group 'first', and task.allow-duplicate-id is "
            "false");
}

TEST_F(YardTest, RefusesToForkBesideOtherThreadsAndNamesThemUnlessItIsTold) {
  const std::jthread other([](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "my-pool");
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made&, const Device&) { return Json{{"ok", 1}}; });
  Yard strict(config(), options());
  std::string why;
  do {
    TaskGroup refused("refused");
    refused.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
    Yard yard(config(), options());
    why = yard.run(refused).error().message;
  } while (!why.contains("my-pool"));  // Until it has its name.
  EXPECT_THAT(why, HasSubstr("'my-pool'"));
  EXPECT_THAT(why, HasSubstr("OMP_NUM_THREADS=1"));
  EXPECT_THAT(why, HasSubstr("Fork::AnyThreads"));
  Yard bold(config(), options(Fork::AnyThreads));
  EXPECT_EQ(bold.run(group).value().finished, 1);
  EXPECT_EQ(task.result(), (Json{{"ok", 1}}));
}

}  // namespace
}  // namespace trainyard::library
