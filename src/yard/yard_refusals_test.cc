// What a yard refuses to run, and how it says so.
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "trainyard/trainyard.h"
#include "yard/test_yard.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(refusal(twice), "group 'twice': two tasks have the id 'a'");
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
            "group 'odd': task 'a': 'gpu0' is no device; there are cpu, cuda (any GPU) and "
            "cuda:<index>");
  TaskGroup both("both");
  both.add<Wishes>(TaskOptions{.id = "a", .gpus = 1, .device = "cpu"});
  EXPECT_EQ(refusal(both), "group 'both': task 'a': 'cpu' is wanted, and a GPU is asked for");
  TaskGroup several("several");
  several.add<Wishes>(TaskOptions{.id = "a", .gpus = 2, .device = "cuda:1"});
  EXPECT_EQ(refusal(several), "group 'several': task 'a': one GPU is named, and 2 are asked for");
  Config wrong;
  EXPECT_THAT(wrong.set("scheduler.max-proces", "4").error().message,
              HasSubstr("did you mean 'scheduler.max-process'"));
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
}  // namespace trainyard
