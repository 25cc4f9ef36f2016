// Callbacks to a program from its running tasks, and commands of the program to them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "library/test_yard.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json for_ever(Made&, const Device&) {
  while (true) ::pause();
}

TEST_F(YardTest, TellsOfEachStatusAndHowFarATaskIs) {
  YardOptions its = options();
  std::vector<std::string> told;
  std::vector<Json> far;
  its.on_status = [&told](const Task& task) {
    told.push_back(fmt::format("{} {}", to_text(task.status()), to_text(task.outcome())));
    if (told.size() != 1) return;
    try {
      throw std::out_of_range("row 7");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("a bug of the program"));
    }
  };
  its.on_progress = [&far](const Task& task, std::optional<double> fraction, const Json& values) {
    far.push_back({{"id", task.id()}, {"fraction", fraction.value_or(-1)}, {"values", values}});
  };
  TaskGroup group("g");
  group.add<Made>("a", [](Made& task, const Device&) {
    // The next report has no fraction and no values: it hides neither.
    task.progress(0.25, {{"loss", 0.25}});
    task.progress(0.5);
    task.progress(1.5);
    return Json::object();
  });
  Yard yard(config(), its);
  ASSERT_EQ(yard.run(group).value().finished, 1);
  EXPECT_THAT(told, ElementsAre("AVAILABLE WAITING", "LOADING WAITING", "WAITING WAITING",
                                "TRAINING WAITING", "FINISHED WAITING", "EXITED FINISHED"));
  EXPECT_THAT(far, ElementsAre(Json{{"id", "a"}, {"fraction", 0.5}, {"values", {{"loss", 0.25}}}}));
  EXPECT_THAT(notes, ElementsAre(AllOf(StartsWith("on_status: "),
                                       EndsWith(": a bug of the program\n"
                                                "because of std::out_of_range: row 7"))));
}

TEST_F(YardTest, CancelsATaskThatRunsOrWaits) {
  YardOptions its = options();
  TaskGroup group("g", {}, {.parallel_max = 1});
  auto& first = group.add<Made>("first", for_ever);
  auto& second = group.add<Made>("second", for_ever);
  auto& third = group.add<Made>("third", [](Made&, const Device&) { return Json::object(); });
  Yard* running = nullptr;
  its.on_status = [&](const Task& task) {
    if (&task != &first || task.status() != Status::Training) return;
    EXPECT_TRUE(running->cancel(second));
    EXPECT_TRUE(running->cancel(first));
  };
  Yard yard(config(), its);
  running = &yard;
  EXPECT_FALSE(yard.cancel(first)) << "it is not being run";
  const RunSummary done = yard.run(group).value();
  EXPECT_EQ(first.outcome(), TaskOutcome::Killed);
  EXPECT_EQ(second.outcome(), TaskOutcome::Skipped);
  EXPECT_EQ(third.outcome(), TaskOutcome::Finished);
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(done.skipped, 1);
  EXPECT_TRUE(group.finished());
  EXPECT_EQ(group.numbers().skipped, 1);
  EXPECT_FALSE(yard.cancel(third)) << "it has ended";
}

TEST_F(YardTest, DoesNotRunAGroupInsideOfAnother) {
  YardOptions its = options();
  TaskGroup inner("inner");
  inner.add<Made>("a", for_ever);
  Yard* running = nullptr;
  std::vector<std::string> why;
  its.on_status = [&](const Task& task) {
    if (task.outcome() == TaskOutcome::None) return;
    why.push_back(running->run(inner).error().message);
  };
  TaskGroup outer("outer");
  outer.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  Yard yard(config(), its);
  running = &yard;
  EXPECT_EQ(yard.run(outer).value().finished, 1);
  EXPECT_THAT(why, ElementsAre("run() was called from a callback while tasks run"));
}

TEST_F(YardTest, StopsWhenItIsToldTo) {
  std::stop_source stop;
  YardOptions its = options();
  its.stop = stop.get_token();
  its.on_status = [&stop](const Task& task) {
    if (task.status() == Status::Training) stop.request_stop();
  };
  TaskGroup group("g", {}, {.parallel_max = 1});
  auto& first = group.add<Made>("first", for_ever);
  auto& second = group.add<Made>("second", for_ever);
  TaskGroup later("later");
  auto& never = later.add<Made>("never", for_ever);
  Yard yard(config(), its);
  yard.add(group);
  yard.add(later);
  const RunSummary done = yard.run().value();
  EXPECT_EQ(done.stopped, 2);
  EXPECT_EQ(first.outcome(), TaskOutcome::Stopped);
  EXPECT_EQ(second.outcome(), TaskOutcome::Stopped);
  EXPECT_EQ(never.outcome(), TaskOutcome::None);
  EXPECT_EQ(yard.run().error().message, "group 'later': the yard was asked to stop");
}

TEST_F(YardTest, IsStoppedFromAnotherThread) {
  std::stop_source stop;
  YardOptions its = options(Fork::AnyThreads);
  its.stop = stop.get_token();
  std::stop_source trains;
  its.on_status = [&trains](const Task& task) {
    if (task.status() == Status::Training) trains.request_stop();
  };
  const std::jthread other([&] {
    while (!trains.stop_requested()) std::this_thread::yield();
    stop.request_stop();
  });
  TaskGroup group("g");
  group.add<Made>("a", for_ever);
  Yard yard(config(), its);
  EXPECT_EQ(yard.run(group).value().stopped, 1);
}

TEST_F(YardTest, SaysWhatHasBecomeOfATask) {
  TaskGroup group("g");
  auto& leaves = group.add<Made>("leaves", [](Made&, const Device&) -> Json { ::_exit(7); });
  auto& dies = group.add<Made>("dies", [](Made&, const Device&) -> Json {
    ::raise(SIGSEGV);
    return {};
  });
  auto& throws = group.add<Made>(
      "throws", [](Made&, const Device&) -> Json { throw std::runtime_error("no"); });
  auto& eats =
      group.add<Made>("eats", [](Made&, const Device&) -> Json { throw std::bad_alloc(); });
  EXPECT_EQ(eats.outcome(), TaskOutcome::None);
  EXPECT_EQ(eats.task_dir(), "");
  const RunSummary done = run(group);
  EXPECT_EQ(done.failed, 4);
  EXPECT_EQ(leaves.outcome(), TaskOutcome::Exited);
  EXPECT_EQ(leaves.exit_code(), 7);
  EXPECT_EQ(dies.outcome(), TaskOutcome::Crashed);
  EXPECT_EQ(dies.exit_code(), 128 + SIGSEGV);
  EXPECT_EQ(throws.outcome(), TaskOutcome::Exception);
  EXPECT_EQ(eats.outcome(), TaskOutcome::OutOfMemory);
  std::vector<std::string_view> words;
  for (const Task& task : group.tasks()) words.push_back(to_text(task.outcome()));
  EXPECT_THAT(words, ElementsAre("EXIT", "CRASHED", "ERROR", "OUT_OF_MEMORY"));
  EXPECT_TRUE(group.finished());
  EXPECT_EQ(group.numbers().failed, 4);
}

TEST_F(YardTest, TellsATaskWhyWhatItSendsCannotBeSent) {
  Yard yard(config(), options());
  std::vector<std::string> heard;
  yard.on_any_message([&heard](const Message& message) { heard.push_back(message.command); });
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) {
    const Result<void> fine = it.send("short", {{"x", 1}});
    const Result<void> much = it.send("long", {{"x", std::string(200'000, 'x')}});
    const Result<void> after = it.send("after", Json::object());
    return Json{{"fine", fine.has_value()},
                {"why", much ? "" : much.error().message},
                {"after", after.has_value()}};
  });
  ASSERT_EQ(yard.run(group).value().finished, 1);
  EXPECT_EQ(task.result().at("fine"), true);
  EXPECT_EQ(task.result().at("after"), true) << "the way to the yard is as it was";
  EXPECT_THAT(task.result().at("why").get<std::string>(), HasSubstr("bytes"));
  EXPECT_THAT(heard, ElementsAre("short", "after"));
  EXPECT_FALSE(task.send("from here", Json::object()));
}

TEST_F(YardTest, ReceivesWhatEightThreadsOfATaskSendAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 40;
  Yard yard(config(), options());
  std::vector<int> next(kThreads, 0);
  yard.on_any_message([&next](const Message& message) {
    const int thread = message.data.at("thread");
    EXPECT_EQ(message.data.at("number"), next.at(static_cast<std::size_t>(thread))++);
    const auto letter = static_cast<char>('a' + thread);
    EXPECT_EQ(message.data.at("text"), std::string(90'000, letter));
    // A matcher of each of 33 million bytes would take longer than all else that is tested here.
    EXPECT_EQ(std::ranges::count(message.buffer, static_cast<std::byte>(letter)),
              std::ssize(message.buffer));
  });
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) {
    std::atomic<int> sent = 0;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&it, &sent, thread] {
        const auto letter = static_cast<char>('a' + thread);
        const std::vector<std::byte> small(10, static_cast<std::byte>(letter));
        const std::vector<std::byte> shared((std::size_t{1} << 20) + 1, small.front());
        for (int number = 0; number < kEach; ++number) {
          it.progress(static_cast<double>(number) / kEach, {{"text", std::string(3'000, letter)}});
          it.report(fmt::format("{} {}", thread, number), number);
          const bool is_large = number % 10 == 0;
          const Json data = {
              {"thread", thread}, {"number", number}, {"text", std::string(90'000, letter)}};
          if (it.send("c", data, is_large ? shared : small)) ++sent;
        }
      });
    }
    threads.clear();
    return Json{{"sent", sent.load()}};
  });
  ASSERT_EQ(yard.run(group).value().finished, 1) << task.message();
  EXPECT_THAT(next, Each(kEach));
  EXPECT_EQ(task.result().at("sent"), kThreads * kEach);
  EXPECT_EQ(task.result().size(), 1U + kThreads * kEach);
}

TEST_F(YardTest, ReportsANewKeyWithoutWritingTheOthersAgain) {
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) -> Json {
    const auto inode = [] {
      struct stat about{};
      return ::stat(variable("TRAINYARD_RESULT").c_str(), &about) == 0 ? about.st_ino : 0;
    };
    it.report("first", 1);
    const ino_t first = inode();
    it.report("loss", std::numeric_limits<double>::quiet_NaN());
    it.report("same file", inode() == first);
    it.report("first", 2);
    it.report("another file", inode() != first);
    throw std::runtime_error("it fails");
  });
  ASSERT_EQ(run(group).failed, 1);
  EXPECT_EQ(task.result(),
            (Json{{"first", 2}, {"loss", nullptr}, {"same file", true}, {"another file", true}}));
}

TEST_F(YardTest, TellsATaskThatTheYardHasClosedItsConnection) {
  const std::string said = directory / "said";
  Yard yard(config(), options());
  TaskGroup group("g");
  group.add<Made>("a", [&said](Made& it, const Device&) {
    for (int number = 3; number < 1'024; ++number) {
      static_cast<void>(::send(number, "no frame of the protocol", 24, MSG_NOSIGNAL));
    }
    Result<void> sent;
    // Messages sent before the yard has closed the connection are in flight, and lost.
    for (int i = 0; i < 1'000'000 && sent; ++i) sent = it.send("c", Json::object());
    const Result<void> again = it.send("c", Json::object());
    std::ofstream(said) << (sent ? "sent" : sent.error().message) << '\n'
                        << (again ? "sent" : again.error().message) << '\n';
    return Json::object();
  });
  ASSERT_EQ(yard.run(group).value().failed, 1);
  std::ifstream file(said);
  std::string first;
  std::string second;
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_THAT(first, StartsWith("the yard "));
  EXPECT_EQ(second, first);
}

TEST_F(YardTest, DropsWhatIsNestedTooDeepAndGoesOn) {
  Json deep = 1;
  for (int i = 0; i < 70; ++i) deep = Json::array({deep});
  Yard yard(config(), options());
  std::vector<std::string> heard;
  yard.on_any_message([&heard](const Message& message) { heard.push_back(message.command); });
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [&deep](Made& it, const Device&) {
    it.progress(0.5, {{"deep", deep}});
    const Result<void> sent = it.send("deep", deep);
    const bool after = it.send("after", Json::object()).has_value();
    return Json{{"why", sent ? "" : sent.error().message}, {"after", after}};
  });
  ASSERT_EQ(yard.run(group).value().finished, 1);
  EXPECT_EQ(task.result().at("after"), true);
  EXPECT_THAT(task.result().at("why").get<std::string>(), HasSubstr("nested too deep"));
  EXPECT_THAT(heard, ElementsAre("after"));
}

TEST_F(YardTest, FailsATaskOfWhichTheResultCannotBeWritten) {
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made& it, const Device&) {
    std::filesystem::remove_all(it.task_dir());
    return Json{{"acc", 0.5}};
  });
  EXPECT_EQ(run(group).failed, 1);
  EXPECT_EQ(task.outcome(), TaskOutcome::Exception);
  EXPECT_THAT(task.message(), HasSubstr("its result is lost: "));
}

TEST_F(YardTest, IsNotEndedByANoteThatThrows) {
  YardOptions its = options();
  its.note = [](std::string_view) { throw std::runtime_error("a bug of the program"); };
  TaskGroup group("g");
  group.add<Made>("a", [](Made&, const Device&) { return Json::array({1}); });
  Yard yard(config(), its);
  EXPECT_EQ(yard.run(group).value().finished, 1);
}

TEST_F(YardTest, SaysWhichNumberOfAResultIsNone) {
  TaskGroup group("g");
  auto& task = group.add<Made>("a", [](Made&, const Device&) {
    return Json{{"loss", std::numeric_limits<double>::quiet_NaN()}, {"acc", 0.5}};
  });
  ASSERT_EQ(run(group).finished, 1);
  EXPECT_EQ(task.result(), (Json{{"loss", nullptr}, {"acc", 0.5}}));
  EXPECT_THAT(notes, ElementsAre("task 'a': result.1.json: 'loss' was NaN: kept as null"));
}

TEST_F(YardTest, GivesATaskThreadsByItsCpus) {
  ::unsetenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): the test has one thread.
  TaskGroup group("g", {.cpus = 1});
  auto& task = group.add<Made>(
      "a", [](Made&, const Device&) { return Json{{"threads", variable("OMP_NUM_THREADS")}}; });
  ASSERT_EQ(run(group).finished, 1);
  EXPECT_EQ(task.result(), (Json{{"threads", "1"}}));
}

TEST_F(YardTest, RunsATaskOfSeveralRanksThatEndTogether) {
  TaskGroup group("g", {.ranks = 3});
  auto& task = group.add<Made>("a", [](Made& it, const Device&) {
    if (it.rank() == 2) it.report("nobody", "hears");
    return Json{{"rank", it.rank()}, {"ranks", it.ranks()}, {"RANK", variable("RANK")}};
  });
  auto& breaks = group.add<Made>("b", [](Made& it, const Device& device) -> Json {
    if (it.rank() == 1) throw std::runtime_error("a bad rank");
    return for_ever(it, device);
  });
  const RunSummary done = run(group);
  EXPECT_EQ(done.finished, 1);
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(task.result(), (Json{{"rank", 0}, {"ranks", 3}, {"RANK", "0"}}));
  EXPECT_THAT(breaks.message(), HasSubstr("rank 1: "));
  EXPECT_THAT(breaks.message(), HasSubstr("a bad rank"));
}

TEST_F(YardTest, TriesAllRanksAgainAtOnceWhenOneRunsOutOfMemory) {
  // Less than what a rank gets that does not end when it is told to.
  TaskGroup group("g", {.ranks = 2, .time_limit = std::chrono::seconds(8)});
  auto& task = group.add<Made>("a", [](Made& it, const Device& device) -> Json {
    const bool first = variable("TRAINYARD_ATTEMPT") == "1";
    if (first && it.rank() == 1) throw std::bad_alloc();
    return first ? for_ever(it, device) : Json{{"ok", 1}};
  });
  EXPECT_EQ(run(group).finished, 1);
  EXPECT_EQ(task.result(), (Json{{"ok", 1}}));
}

}  // namespace
}  // namespace trainyard::library
