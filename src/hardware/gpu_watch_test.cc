#include "hardware/gpu_watch.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "hardware/fake_gpus.h"
#include "model/resources.h"
#include "sys/test_wait.h"

namespace trainyard::hardware {
namespace {

GpuSources fake(std::vector<std::string> environment = {}) {
  return {.nvml = TRAINYARD_FAKE_NVML_LIBRARY,
          .sys = "/there/is/nothing",
          .environment = std::move(environment),
          .restart_pause = Duration(20)};
}

std::vector<std::string> uuids(const GpuList& list) {
  std::vector<std::string> texts;
  for (const model::Gpu& gpu : list.gpus) texts.push_back(gpu.uuid);
  return texts;
}

using Texts = std::vector<std::string>;

class GpuWatchTest : public testing::Test {
 protected:
  FakeGpus gpus_;
};

TEST_F(GpuWatchTest, ListsWhatTheDriverShows) {
  gpus_.show_two();
  const auto watch = GpuWatch::start(fake());
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->list().none_reason, "");
  ASSERT_EQ(watch->list().gpus.size(), 2U);
  const model::Gpu expected{.number = 1,
                            .uuid = "GPU-bbbb",
                            .name = "Fake B",
                            .pci = "00000000:02:00.0",
                            .memory = gb(8),
                            .speed = 3'000'000,
                            .cuda_number = 1};
  EXPECT_EQ(watch->list().gpus[1], expected);
}

TEST_F(GpuWatchTest, SaysWhyThereIsNone) {
  const auto none_reason = [](const GpuSources& sources) {
    const auto watch = GpuWatch::start(sources);
    EXPECT_TRUE(watch && watch->list().gpus.empty());
    EXPECT_EQ(watch->pid(), 0);
    return watch ? watch->list().none_reason : "";
  };
  EXPECT_EQ(none_reason(fake()), "NVIDIA's driver shows no GPU");
  gpus_.show(R"({"init": 18})");
  EXPECT_EQ(none_reason(fake()), "NVIDIA's driver fails: Driver/library version mismatch");
  gpus_.show(R"({"devices": [{"crash": true}]})");
  EXPECT_EQ(none_reason(fake()), "the driver crashes programs that query it");
  GpuSources missing = fake();
  missing.nvml = "libthere-is-no-such-library.so.1";
  EXPECT_EQ(none_reason(missing), "no NVIDIA driver is installed");
}

TEST_F(GpuWatchTest, HasOnlyThoseThatTheEnvironmentLeaves) {
  gpus_.show_two();
  const auto listed = [](const std::string& value) {
    const auto watch = GpuWatch::start(fake({"CUDA_VISIBLE_DEVICES=" + value}));
    return watch ? uuids(watch->list()) : Texts{"no watch"};
  };
  EXPECT_EQ(listed("1"), Texts{"GPU-bbbb"});
  EXPECT_EQ(listed("1, 0"), (Texts{"GPU-bbbb", "GPU-aaaa"}));
  EXPECT_EQ(listed("GPU-b"), Texts{"GPU-bbbb"});
  EXPECT_EQ(listed("0,7,1"), Texts{"GPU-aaaa"});
  EXPECT_EQ(listed("-1"), Texts{});
  EXPECT_EQ(listed(""), Texts{});
  const auto watch = GpuWatch::start(fake({"CUDA_VISIBLE_DEVICES=1"}));
  EXPECT_EQ(watch->list().notes, Texts{"CUDA_VISIBLE_DEVICES leaves 1 of 2 GPUs"});
  EXPECT_EQ(watch->list().gpus[0].number, 1);
  const auto hidden = GpuWatch::start(fake({"CUDA_VISIBLE_DEVICES="}));
  EXPECT_EQ(hidden->list().none_reason, "CUDA_VISIBLE_DEVICES hides all of them");
}

TEST_F(GpuWatchTest, HasOnlyThoseThatItsUserNames) {
  gpus_.show_two();
  const auto listed = [](Texts only, std::vector<std::string> environment = {}) {
    GpuSources sources = fake(std::move(environment));
    sources.only = std::move(only);
    const auto watch = GpuWatch::start(sources);
    return watch ? uuids(watch->list()) : Texts{"no watch"};
  };
  EXPECT_EQ(listed({"1"}), Texts{"GPU-bbbb"});
  EXPECT_EQ(listed({"7", "0"}), Texts{"GPU-aaaa"});
  EXPECT_EQ(listed({}), Texts{});
  EXPECT_EQ(listed({"0", "1"}, {"CUDA_VISIBLE_DEVICES=1"}), Texts{"GPU-bbbb"})
      << "what the environment hides stays hidden";
}

TEST_F(GpuWatchTest, ListsSlicesInThePlaceOfTheirCard) {
  gpus_.show(R"({"devices": [{"uuid": "GPU-aaaa", "name": "Fake", "pci": "00000000:01:00.0",
    "memory": 80000000000, "mig": [
      {"uuid": "MIG-1111", "name": "Fake MIG 1g.10gb", "memory": 10000000000},
      {"uuid": "MIG-2222", "name": "Fake MIG 2g.20gb", "memory": 20000000000}]}]})");
  auto watch = GpuWatch::start(fake());
  ASSERT_TRUE(watch);
  EXPECT_EQ(uuids(watch->list()), (Texts{"MIG-1111", "MIG-2222"}));
  EXPECT_EQ(watch->list().gpus[1].label(), "0:1");
  EXPECT_EQ(watch->list().gpus[1].memory, gb(20));
  EXPECT_EQ(watch->list().gpus[1].number, 0);
  EXPECT_EQ(watch->look_now().size(), 2U);
}

TEST_F(GpuWatchTest, KnowsTheNumbersOfCudaWhereAllAnswerAndNoneIsSplit) {
  const auto numbers = [](std::vector<std::string> environment = {}) {
    const auto watch = GpuWatch::start(fake(std::move(environment)));
    std::vector<std::optional<int>> found;
    for (const model::Gpu& gpu : watch->list().gpus) found.push_back(gpu.cuda_number);
    return found;
  };
  using Numbers = std::vector<std::optional<int>>;
  gpus_.show_two();
  EXPECT_EQ(numbers(), (Numbers{0, 1}));
  EXPECT_EQ(numbers({"CUDA_VISIBLE_DEVICES=1,0"}), (Numbers{1, 0}));
  EXPECT_EQ(numbers({"CUDA_VISIBLE_DEVICES=1"}), (Numbers{1})) << "those of the whole machine";
  gpus_.show_two(R"(, "lost": true)");
  EXPECT_EQ(numbers(), (Numbers{std::nullopt, std::nullopt}));
  gpus_.show_two(R"(, "mig": [{"uuid": "MIG-1111", "name": "Fake MIG", "memory": 4000000000}])");
  EXPECT_EQ(numbers(), (Numbers{std::nullopt, std::nullopt}));
  EXPECT_EQ(numbers({"CUDA_VISIBLE_DEVICES=GPU-bbbb"}), (Numbers{std::nullopt}))
      << "the split one is hidden from tasks alone";
}

TEST_F(GpuWatchTest, SeesWhoHasWhat) {
  gpus_.show_two(FakeGpus::used_by(::getpid(), 3'000'000'000) +
                 R"(, "reserved": 500000000, "utilization": 40)");
  auto watch = GpuWatch::start(fake());
  ASSERT_TRUE(watch);
  const std::vector<GpuState> states = watch->look_now();
  ASSERT_EQ(states.size(), 2U);
  EXPECT_TRUE(states[0].present && states[0].processes_known);
  EXPECT_EQ(states[0].used, mb(3500));
  EXPECT_EQ(states[0].utilization, 0.4);
  ASSERT_EQ(states[0].processes.size(), 1U);
  EXPECT_EQ(states[0].processes[0].pid, ::getpid());
  EXPECT_EQ(states[0].processes[0].memory, gb(3));
  EXPECT_EQ(states[1].used, Bytes{});
}

TEST_F(GpuWatchTest, KnowsWhoOnlyDraws) {
  gpus_.show_two(fmt::format(R"(, "processes": [{{"pid": {}, "memory": 300000000, "draws": true}},
                                               {{"pid": {}, "memory": 200000000}}])",
                             ::getpid(), ::getppid()));
  auto watch = GpuWatch::start(fake());
  ASSERT_TRUE(watch);
  std::map<std::int64_t, bool> draws;
  const std::vector<GpuState> states = watch->look_now();
  for (const GpuProcess& process : states[0].processes) {
    draws[process.pid] = process.draws;
  }
  EXPECT_EQ(draws, (std::map<std::int64_t, bool>{{::getpid(), true}, {::getppid(), false}}));
}

TEST_F(GpuWatchTest, KnowsWhenTheDriverDoesNotSayWhoHasWhat) {
  gpus_.show_two(FakeGpus::used_by(::getpid(), 3'000'000'000) + R"(, "hides_processes": true)",
                 FakeGpus::used_by(::getpid(), 3'000'000'000) + R"(, "hides_memory": true)");
  auto watch = GpuWatch::start(fake());
  const std::vector<GpuState> states = watch->look_now();
  ASSERT_EQ(states.size(), 2U);
  EXPECT_FALSE(states[0].processes_known);
  EXPECT_FALSE(states[1].processes_known);
  EXPECT_EQ(states[0].used, gb(3));
}

TEST_F(GpuWatchTest, KnowsNoUtilizationThatTheDriverDoesNotTell) {
  gpus_.show(R"({"devices": [
    {"uuid": "GPU-aaaa", "name": "Fake A", "pci": "00000000:01:00.0", "memory": 8000000000,
     "utilization": 40, "hides_utilization": true, "reserved": 500000000},
    {"uuid": "GPU-bbbb", "name": "Fake B", "pci": "00000000:02:00.0", "memory": 8000000000,
     "mig": [{"uuid": "MIG-1111", "name": "Fake MIG", "memory": 4000000000, "utilization": 40}]}]})");
  auto watch = GpuWatch::start(fake());
  ASSERT_TRUE(watch);
  const std::vector<GpuState> states = watch->look_now();
  ASSERT_EQ(states.size(), 2U);
  for (const GpuState& state : states) {
    EXPECT_TRUE(state.present && state.processes_known);
    EXPECT_EQ(state.utilization, std::nullopt);
  }
  EXPECT_EQ(states[0].used, mb(500));
}

TEST_F(GpuWatchTest, DoesNotTakeMemoryOfADeadProcessForThatOfHiddenOnes) {
  gpus_.show_two(FakeGpus::used_by(::getpid(), 3'000'000'000));
  auto watch = GpuWatch::start(fake());
  EXPECT_EQ(watch->look_now()[0].processes.size(), 1U);
  gpus_.show_two(R"(, "reserved": 3000000000)");
  const std::vector<GpuState> states = watch->look_now();
  EXPECT_EQ(states[0].used, gb(3));
  EXPECT_TRUE(states[0].processes_known);
}

TEST_F(GpuWatchTest, SeesManyProcesses) {
  std::string processes;
  for (int i = 0; i < 300; ++i) {
    processes += fmt::format(R"({}{{"pid": {}, "memory": 1000000}})", i == 0 ? "" : ",",
                             i == 0 ? ::getpid() : 1);
  }
  gpus_.show_two(fmt::format(R"(, "processes": [{}])", processes));
  auto watch = GpuWatch::start(fake());
  const std::vector<GpuState> states = watch->look_now();
  EXPECT_EQ(states[0].processes.size(), 2U);
  EXPECT_TRUE(states[0].processes_known);
}

TEST_F(GpuWatchTest, TellsWhenAGpuFallsOffTheBusAndComesBack) {
  gpus_.show_two();
  auto watch = GpuWatch::start(fake());
  EXPECT_TRUE(watch->look_now()[1].present);
  gpus_.show_two({}, R"(, "lost": true)");
  std::vector<GpuState> states = watch->look_now();
  EXPECT_TRUE(states[0].present);
  EXPECT_FALSE(states[1].present);
  gpus_.show_two();
  while (!watch->look_now()[1].present) {
  }
}

TEST_F(GpuWatchTest, ListsOneThatDoesNotAnswerBehindTheOthersAndFindsItLater) {
  gpus_.show_two(R"(, "lost": true)");
  auto watch = GpuWatch::start(fake());
  EXPECT_EQ(uuids(watch->list()), (Texts{"GPU-bbbb", ""}));
  EXPECT_EQ(watch->list().gpus[1], (model::Gpu{.number = 0, .late = true}));
  EXPECT_EQ(
      watch->list().notes,
      Texts{"GPU 0 DOES NOT ANSWER though the driver counts it: tasks use it once it answers"});
  EXPECT_FALSE(watch->look_now()[1].present);
  gpus_.show_two();
  std::vector<GpuState> states = watch->look_now();
  while (!states[1].present) states = watch->look_now();
  const model::Gpu expected{.number = 0,
                            .uuid = "GPU-aaaa",
                            .name = "Fake A",
                            .pci = "00000000:01:00.0",
                            .memory = gb(8),
                            .speed = 1'500'000,
                            .late = true};
  EXPECT_EQ(states[1].found, expected);
  EXPECT_EQ(states[0].found, std::nullopt);
}

TEST_F(GpuWatchTest, ListsThoseThatDoNotAnswerWhereNoneDoes) {
  gpus_.show_two(R"(, "lost": true)", R"(, "lost": true)");
  auto watch = GpuWatch::start(fake());
  EXPECT_EQ(watch->list().none_reason, "");
  ASSERT_EQ(watch->list().gpus.size(), 2U);
  EXPECT_TRUE(watch->list().gpus[0].late && watch->list().gpus[1].late);
  gpus_.show_two();
  std::vector<GpuState> states = watch->look_now();
  while (!states[0].present) states = watch->look_now();
  ASSERT_TRUE(states[1].found);
  EXPECT_EQ(states[1].found->uuid, "GPU-bbbb");
}

TEST_F(GpuWatchTest, FindsAGpuByItsUuidWhenItComesBackWithAnotherNumber) {
  gpus_.show_two(FakeGpus::used_by(::getpid(), 1'000'000'000));
  auto watch = GpuWatch::start(fake());
  gpus_.show_two(R"(, "lost": true)");
  EXPECT_FALSE(watch->look_now()[0].present);
  gpus_.show(R"({"devices": [{"uuid": "GPU-bbbb", "name": "Fake B", "pci": "00000000:02:00.0",
      "memory": 8000000000, "reserved": 2000000000}, {"uuid": "GPU-aaaa", "name": "Fake A",
      "pci": "00000000:01:00.0", "memory": 8000000000, "reserved": 1000000000, "lost": true}]})");
  while (watch->look_now()[1].used != gb(2)) {
  }
  EXPECT_FALSE(watch->look_now()[0].present);
  gpus_.show(R"({"devices": [{"uuid": "GPU-bbbb", "name": "Fake B", "pci": "00000000:02:00.0",
      "memory": 8000000000, "reserved": 2000000000}, {"uuid": "GPU-aaaa", "name": "Fake A",
      "pci": "00000000:01:00.0", "memory": 8000000000, "reserved": 1000000000}]})");
  std::vector<GpuState> states = watch->look_now();
  while (!states[0].present) states = watch->look_now();
  EXPECT_EQ(states[0].used, gb(1));
  EXPECT_EQ(states[1].used, gb(2));
}

TEST_F(GpuWatchTest, LosesASliceThatVanishesAndNoOtherOfItsCard) {
  const std::string card = R"({"devices": [{"uuid": "GPU-aaaa", "name": "Fake A",
      "pci": "00000000:01:00.0", "memory": 8000000000, "mig": [
      {"uuid": "MIG-1", "name": "MIG", "memory": 4000000000})";
  gpus_.show(card + R"(, {"uuid": "MIG-2", "name": "MIG", "memory": 4000000000}]}]})");
  auto watch = GpuWatch::start(fake());
  ASSERT_EQ(watch->look_now().size(), 2);
  gpus_.show(card + "]}]}");
  const std::vector<GpuState> states = watch->look_now();
  EXPECT_TRUE(states[0].present);
  EXPECT_FALSE(states[1].present);
}

TEST_F(GpuWatchTest, AnswersInTheLoop) {
  gpus_.show_two(FakeGpus::used_by(::getpid(), 1'000'000'000));
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake());
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  watch->ask();
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_EQ(heard[0][0].used, gb(1));
  loop.run_once(Duration{0});
  EXPECT_EQ(heard.size(), 1U);
  watch->ask();
  while (heard.size() < 2) loop.run_once(std::nullopt);
}

TEST_F(GpuWatchTest, SaysThatAllAreGoneWhenTheDriverCrashes) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake());
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  gpus_.show_two(R"(, "crash": true)");
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_FALSE(heard[0][0].present);
  EXPECT_FALSE(heard[0][1].present);
  // Nobody waits for one that is dead, and whoever asks is told again.
  watch->ask();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_FALSE(heard[1][0].present);
}

/// Asks until all of them answer, as a run does from time to time.
void ask_until_all_answer(GpuWatch& watch, sys::EventLoop& loop,
                          const std::vector<std::vector<GpuState>>& heard) {
  const auto all_answer = [&heard] {
    return !heard.empty() && std::ranges::all_of(heard.back(), &GpuState::present);
  };
  ASSERT_TRUE(sys::eventually([&] {
    watch.ask();
    loop.run_once(Duration{10});
    return all_answer();
  }));
}

TEST_F(GpuWatchTest, AsksAnewWhenTheDriverThatCrashedAnswersAgain) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake({"CUDA_VISIBLE_DEVICES=1,0"}));
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  gpus_.show_two(R"(, "crash": true)");
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_FALSE(heard.back()[0].present);
  gpus_.show_two(FakeGpus::used_by(::getpid(), 3'000'000'000));
  ask_until_all_answer(*watch, loop, heard);
  // In the order that they had.
  EXPECT_EQ(heard.back()[0].used, Bytes{});
  EXPECT_EQ(heard.back()[1].used, gb(3));
}

TEST_F(GpuWatchTest, KnowsThemByTheirUuidsWhenItAsksAnew) {
  gpus_.show_two({}, R"(, "lost": true)");
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake());
  ASSERT_EQ(uuids(watch->list()), (Texts{"GPU-aaaa", ""}));
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  gpus_.show_two(R"(, "crash": true)");
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  // The first is late now, and the one that was late is there.
  gpus_.show_two(R"(, "lost": true)", FakeGpus::used_by(::getpid(), 2'000'000'000));
  ASSERT_TRUE(sys::eventually([&] {
    watch->ask();
    loop.run_once(Duration{10});
    return heard.back()[1].present;
  }));
  EXPECT_FALSE(heard.back()[0].present);
  EXPECT_EQ(heard.back()[1].used, gb(2));
  ASSERT_TRUE(heard.back()[1].found);
  EXPECT_EQ(heard.back()[1].found->uuid, "GPU-bbbb");
  EXPECT_TRUE(heard.back()[1].found->late);
  gpus_.show_two(FakeGpus::used_by(::getpid(), 1'000'000'000));
  ask_until_all_answer(*watch, loop, heard);
  EXPECT_EQ(heard.back()[0].used, gb(1));
  EXPECT_EQ(heard.back()[0].found, std::nullopt);
}

TEST_F(GpuWatchTest, AsksAnewWhenWhoeverAskedTheDriverWasKilled) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake());
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  const auto children = fmt::format("/proc/{0}/task/{0}/children", watch->pid());
  std::int64_t asker = 0;
  std::ifstream(children) >> asker;
  ASSERT_GT(asker, 0);
  ASSERT_EQ(::kill(static_cast<pid_t>(asker), SIGKILL), 0);
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_FALSE(heard.back()[0].present);
  ask_until_all_answer(*watch, loop, heard);
}

TEST_F(GpuWatchTest, AsksAnewWhenTheDriverHangsForLong) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake(), {.look = Duration{100}, .late = Duration{100}});
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  gpus_.show_two(R"(, "hang_s": 1000)");
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_FALSE(heard.back()[0].present);
  gpus_.show_two();
  ask_until_all_answer(*watch, loop, heard);
}

TEST_F(GpuWatchTest, HearsALateAnswerOfWhoeverAskedFirst) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake(), {.look = Duration{1}, .late = sys::kLongEnough});
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  gpus_.show_two(R"(, "hang_s": 0.2)");
  watch->ask();
  while (heard.empty()) loop.run_once(std::nullopt);
  EXPECT_FALSE(heard.back()[0].present);
  ASSERT_TRUE(sys::eventually([&] {
    loop.run_once(Duration{10});
    return heard.back()[0].present;
  }));
}

TEST_F(GpuWatchTest, SaysThatAllAreGoneForGoodWhereNobodyCanAskAnyMore) {
  gpus_.show_two();
  sys::EventLoop loop;  // Outlives the watch.
  auto watch = GpuWatch::start(fake());
  std::vector<std::vector<GpuState>> heard;
  watch->listen(loop, [&](const std::vector<GpuState>& states) { heard.push_back(states); });
  ASSERT_EQ(::kill(static_cast<pid_t>(watch->pid()), SIGKILL), 0);
  while (heard.empty()) loop.run_once(std::nullopt);
  for (int i = 0; i < 3; ++i) {
    watch->ask();
    EXPECT_FALSE(heard.back()[0].present);
  }
}

TEST_F(GpuWatchTest, EndsWithItsOwner) {
  gpus_.show_two();
  std::int64_t pid = 0;
  {
    const auto watch = GpuWatch::start(fake());
    pid = watch->pid();
    EXPECT_EQ(::kill(static_cast<pid_t>(pid), 0), 0);
  }
  EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0);
}

}  // namespace
}  // namespace trainyard::hardware
