// Ranks that are Python, by the package in python/trainyard.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ranks/test_options.h"
#include "sys/test_directory.h"
#include "trainyard/buffer.h"
#include "trainyard/component.h"
#include "trainyard/launcher.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

/// An executor of class `entry` of test_rank.py.
RankExecutorOptions python(int ranks, const std::string& args = "{}",
                           const std::string& more = "") {
  RankExecutorOptions made =
      test_options(ranks, "[{id: tester, type: python, args: {script: " TRAINYARD_TEST_RANK_PY
                          ", entry: Tester, python: /usr/bin/python3, args: " +
                              args + "}}" + more + "]");
  return made;
}

constexpr const char* kRecorder =
    ", {id: recorder, type: python, args: {script: " TRAINYARD_TEST_RANK_PY ", entry: Recorder}}";

TEST(PythonRank, ExecutesATask) {
  RankExecutor executor(python(2, "{answer: 7}"));
  RankContext context;
  const Shareable reply = executor.execute("get", {}, context);
  EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message() << reply.traceback();
  EXPECT_EQ(reply.values(),
            (Json{{"rank", 0}, {"answer", 7}, {"greeting", "none"}, {"round", -1}}));
}

TEST(PythonRank, KnowsWhichOfItsMachineItIs) {
  RankExecutorOptions options = python(1);
  options.launcher = Launcher::command({"/usr/bin/env", "RANK=0", "LOCAL_RANK=5", "{command}"});
  RankExecutor executor(options);
  RankContext context;
  const Shareable reply = executor.execute("local-rank", {}, context);
  EXPECT_EQ(reply.values(), (Json{{"local-rank", 5}})) << reply.message() << reply.traceback();
}

TEST(PythonRank, ReadsBuffersAsArraysAndCannotWriteThem) {
  RankExecutor executor(python(2));
  RankContext context;
  Buffer placed = executor.alloc(DType::Float32, {1000, 100}).value();
  std::ranges::fill(placed.fill<float>(), 2.0F);
  const std::vector<float> large(50'000, 0.5F);
  Shareable task;
  task.set_buffer("placed", placed);
  task.set_buffer("large", Buffer::view_of<float>({50'000}, large));
  task.set_buffer("small", Buffer::copy_of<std::int64_t>({2, 1}, {3, 4}));
  for (int round = 0; round < 3; ++round) {
    const Shareable reply = executor.execute("sum", task, context);
    EXPECT_EQ(reply.values(), (Json{{"placed", 200'000.0}, {"large", 25'000.0}, {"small", 7.0}}))
        << reply.message() << reply.traceback();
  }
  EXPECT_EQ(executor.execute("writable", task, context).values(),
            (Json{{"placed", false}, {"large", false}, {"small", false}}));
}

TEST(PythonRank, ReturnsArraysInPlaceAndCopied) {
  RankExecutorOptions reducing = python(3);
  reducing.result = RankResult::Mean;
  RankExecutor executor(reducing);
  RankContext context;
  Shareable task;
  task.set("count", 100'000);
  for (int round = 0; round < 40; ++round) {
    const Shareable reply = executor.execute("fill", task, context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << reply.message() << reply.traceback();
    // Counted: a matcher of each of 4 million numbers would take seconds.
    EXPECT_EQ(std::ranges::count(reply.buffer("filled")->as<float>(), 2.0F), 100'000);
  }
  Shareable echoed;
  const std::vector<double> large(20'000, 1.5);
  echoed.set_buffer("large", Buffer::view_of<double>({20'000}, large));
  echoed.set_buffer("small", Buffer::copy_of<double>({2}, {3.0, 5.0}));
  const Shareable back = executor.execute("echo", echoed, context);
  ASSERT_EQ(back.code(), ReturnCode::Ok) << back.message() << back.traceback();
  EXPECT_THAT(back.buffer("large")->as<double>(), testing::Each(1.5));
  EXPECT_THAT(back.buffer("small")->as<double>(), testing::ElementsAre(3.0, 5.0));
}

TEST(PythonRank, SharesItsContext) {
  constexpr ContextKey<std::string> kGreeting{.name = "greeting"};
  constexpr ContextKey<std::int64_t> kRound{.name = "round", .sticky = true};
  RankExecutor executor(python(2));
  RankContext context;
  ASSERT_TRUE(context.set(kGreeting, "hello").has_value());
  ASSERT_TRUE(context.set(kRound, 3).has_value());
  EXPECT_EQ(executor.execute("get", {}, context).get("greeting"), "hello");
  static_cast<void>(executor.execute("set", {}, context));
  EXPECT_EQ(context.get(kGreeting), "from rank 0");
  EXPECT_EQ(context.get(kRound), 40);
  RankContext other;
  EXPECT_EQ(executor.execute("get", {}, other).get("greeting"), "none");
}

TEST(PythonRank, HearsEventsAndFiresThem) {
  std::vector<int> from;
  RankExecutor executor(python(2, "{}", kRecorder));
  executor.on_event([&](const RankEvent& event, RankContext& context) {
    from.push_back(event.from_rank.value());
    EXPECT_TRUE(context.set(ContextKey<std::string>{.name = "greeting"}, "of the parent"));
  });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  EXPECT_EQ(executor.fire("round", {{"number", 1}}, context).code, ReturnCode::Ok);
  EXPECT_THAT(executor.fire("throw", {}, context).errors,
              testing::UnorderedElementsAre("rank 0: RuntimeError: the recorder throws",
                                            "rank 1: RuntimeError: the recorder throws"));
  Shareable task;
  task.set("rank", 1);
  task.set("group", true);
  static_cast<void>(executor.execute("fire", task, context));
  EXPECT_THAT(from, testing::ElementsAre(1));
  EXPECT_EQ(executor.execute("heard", {}, context).get("heard"),
            (Json{{"start-run", nullptr, nullptr},
                  {"round", {{"number", 1}}, nullptr},
                  {"throw", nullptr, nullptr},
                  {"progress", {{"rank", 1}}, 1}}));
  task.set("rank", 0);
  EXPECT_EQ(executor.execute("fire", task, context).get("greeting"), "of the parent");
}

TEST(PythonRank, SaysWhatWentWrong) {
  RankExecutor executor(python(2));
  RankContext context;
  Shareable task;
  task.set("rank", 1);
  Shareable reply = executor.execute("throw", task, context);
  EXPECT_EQ(reply.code(), ReturnCode::ExecutionException);
  EXPECT_EQ(reply.message(), "rank 1: ValueError: cannot train");
  EXPECT_THAT(reply.traceback(), testing::HasSubstr("raise ValueError"));
  EXPECT_EQ(executor.execute("memory", task, context).code(), ReturnCode::OutOfMemory);
  task.set("rank", 0);
  reply = executor.execute("nonsense", task, context);
  EXPECT_EQ(reply.code(), ReturnCode::ExecutionResultError);
  EXPECT_EQ(reply.message(), "rank 0: execute() returned int, and no dict");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
  reply = executor.execute("kill", task, context);
  EXPECT_EQ(reply.message(), "rank 0 was killed by signal 9");
  EXPECT_EQ(reply.traceback(), "last words\n");
}

TEST(PythonRank, IsToldToStop) {
  for (const char* const task : {"wait", "spin"}) {
    std::stop_source stop;
    RankExecutor executor(python(2));
    executor.on_event([&](const RankEvent&, RankContext&) { stop.request_stop(); });
    RankContext context;
    const Json pid = executor.execute("pid", {}, context).get("pid");
    EXPECT_EQ(executor.execute(task, {}, context, stop.get_token()).code(),
              ReturnCode::TaskAborted);
    // It ended by itself: those who do not are killed, and others take their place.
    EXPECT_EQ(executor.execute("pid", {}, context).get("pid"), pid);
  }
}

TEST(PythonRank, SaysWhyAComponentCouldNotBeMade) {
  RankContext context;
  RankExecutor throws(python(2, "{fault: throw, fault_rank: 1}"));
  const Shareable reply = throws.start(context);
  EXPECT_EQ(reply.code(), ReturnCode::InitFailed);
  EXPECT_EQ(reply.message(), "rank 1: FileNotFoundError: no such file");
  EXPECT_THAT(reply.traceback(), testing::HasSubstr("in __init__"));
  RankExecutor unknown(python(1, "{speed: 7}"));
  EXPECT_THAT(unknown.start(context).message(), testing::HasSubstr("unexpected keyword argument"));
}

TEST(PythonRank, LooksForModulesWhereItWasToldTo) {
  const sys::TemporaryDirectory directory;
  directory.write("beside.py", "NAME = 'beside'\n");
  directory.write(
      "rank.py",
      "import random, numpy, trainyard\n"
      "def run(task, data, context, stop):\n"
      "    import beside\n"
      "    return {'name': beside.NAME, 'drawn': int(numpy.random.randint(1 << 30))}\n");
  for (const std::string_view safe : {"", "1"}) {
    RankExecutorOptions options = test_options(
        2, fmt::format("[{{id: tester, type: python, args: {{script: {}/rank.py, entry: run, "
                       "python: /usr/bin/python3}}}}]",
                       directory.path()));
    options.environment = {fmt::format("PYTHONSAFEPATH={}", safe), "PYTHONPATH=/nowhere"};
    RankExecutor executor(options);
    RankContext context;
    const std::vector<Shareable> replies = executor.execute_all("run", {}, context);
    ASSERT_EQ(replies.front().code(), ReturnCode::Ok)
        << replies.front().message() << replies.front().traceback();
    EXPECT_EQ(replies[0].get("name"), "beside");
    EXPECT_EQ(replies[1].get("name"), "beside");
    // Each has random numbers of its own.
    EXPECT_NE(replies[0].get("drawn"), replies[1].get("drawn"));
  }
}

TEST(PythonRank, MayHaveMoreRepliesKeptThanItHasArenas) {
  RankExecutor executor(python(1));
  RankContext context;
  Shareable task;
  task.set("count", 10'000);
  std::vector<Shareable> kept;
  for (int round = 0; round < 20; ++round) {
    task.set("round", round);
    kept.push_back(executor.execute("copied", task, context));
    ASSERT_EQ(kept.back().code(), ReturnCode::Ok) << kept.back().message();
  }
  for (std::size_t round = 0; round < kept.size(); ++round) {
    EXPECT_THAT(kept[round].buffer("copied")->as<double>(),
                testing::Each(static_cast<double>(round)));
  }
}

TEST(PythonRank, MayBeAFunction) {
  RankExecutor executor(
      test_options(1, "[{id: tester, type: python, args: {script: " TRAINYARD_TEST_RANK_PY
                      ", entry: function, python: /usr/bin/python3, args: {offset: 5}}}]"));
  RankContext context;
  EXPECT_EQ(executor.execute("a", {}, context).values(), (Json{{"task", "a"}, {"rank", 5}}));
}

TEST(PythonRank, LetsAnEventLeadToOthersInAnyRank) {
  int heard = 0;
  RankExecutor executor(python(3, "{}", kRecorder));
  executor.on_event([&](const RankEvent& event, RankContext& context) {
    ++heard;
    if (event.name == "reacted") static_cast<void>(context.fire("round", {}));
  });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  const EventOutcome outcome = executor.fire("react", {}, context);
  EXPECT_EQ(outcome.code, ReturnCode::Ok) << outcome.message;
  EXPECT_THAT(outcome.errors, testing::IsEmpty());
  EXPECT_EQ(heard, 3);
}

TEST(PythonRank, ReturnsEmptyArraysAndEverLargerOnes) {
  RankExecutor executor(python(1));
  RankContext context;
  Shareable task;
  for (int round = 0; round < 40; ++round) {
    task.set("round", round);
    const Shareable reply = executor.execute("empty", task, context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << round << reply.message() << reply.traceback();
    EXPECT_EQ(reply.buffer("none")->shape(), (Dimensions{0, 3}));
    EXPECT_EQ(reply.buffer("large")->count(), static_cast<std::size_t>(round + 1) * 20'000);
    const auto large = reply.buffer("large")->as<double>();
    EXPECT_EQ(std::ranges::count(large, 1.0), std::ssize(large));
    EXPECT_THAT(reply.buffer("one")->as<double>(), testing::ElementsAre(0.0));
  }
}

TEST(PythonRank, KeepsItsMemoryWhenAReplyIsTooLong) {
  RankExecutor executor(python(1));
  RankContext context;
  Shareable task;
  task.set("count", 100'000);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(executor.execute("long", {}, context).code(), ReturnCode::ExecutionResultError);
    const Shareable reply = executor.execute("fill", task, context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << round << reply.message();
  }
}

}  // namespace
}  // namespace trainyard::ranks
