// A run of tasks and events: the order of events, the listeners of each, and the state that stays.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ranks/test_components.h"
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

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// With a recorder of these events.
RankExecutorOptions recording(int ranks, std::string_view events) {
  return test_options(
      ranks, fmt::format("[{{id: tester, type: tester, args: {{recorder: {{ref: recorder}}}}}}, "
                         "{{id: recorder, type: recorder, args: {{events: [{}]}}}}]",
                         events));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RankRun, ReducesMoreBuffersThanThereAreArenas) {
  RankExecutorOptions options = test_options(2);
  options.result = RankResult::Mean;
  RankExecutor executor(options, test_registry());
  RankContext context;
  std::vector<Shareable> kept;
  for (int round = 0; round < 3; ++round) {
    kept.push_back(executor.execute("fill", with({{"count", 10'000}, {"names", 33}}), context));
    ASSERT_EQ(kept.back().code(), ReturnCode::Ok) << kept.back().message();
    ASSERT_EQ(kept.back().buffers().size(), 33U);
    for (const auto& [name, buffer] : kept.back().buffers()) {
      // Counted: a matcher of each of a million numbers would take most of a second.
      EXPECT_EQ(std::ranges::count(buffer.as<float>(), 1.5F), 10'000) << name;
    }
  }
}

TEST(RankRun, KeepsTheBuffersOfAReplyForAsLongAsSomebodyHasThem) {
  RankExecutor executor(test_options(1), test_registry());
  RankContext context;
  std::vector<Shareable> kept;
  for (int round = 0; round < 40; ++round) {
    const std::vector<float> numbers(10'000, static_cast<float>(round));
    Shareable task;
    task.set_buffer("w", Buffer::copy_of<float>({10'000}, numbers));
    kept.push_back(executor.execute("echo", task, context));
    ASSERT_EQ(kept.back().code(), ReturnCode::Ok) << kept.back().message();
  }
  for (int round = 0; round < 40; ++round) {
    EXPECT_THAT(kept[static_cast<std::size_t>(round)].buffer("w")->as<float>(),
                testing::Each(static_cast<float>(round)));
  }
}

TEST(RankRun, EndsACycleThatAHandlerKeepsUpWithItsContextOrAnyOther) {
  for (const bool own : {true, false}) {
    int handled = 0;
    std::vector<std::string> troubles;
    RankExecutor executor(recording(1, "ping"), test_registry());
    executor.on_event([&](const RankEvent& event, RankContext& context) {
      EXPECT_EQ(event.name, "pong");
      ++handled;
      RankContext other;
      const EventOutcome outcome = executor.fire("ping", {}, own ? context : other);
      if (outcome.code != ReturnCode::Ok) troubles.push_back(outcome.message);
    });
    RankContext context;
    ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
    EXPECT_EQ(executor.fire("ping", {}, context).code, ReturnCode::Ok);
    // In the rank, which reports nothing; or here, by how deep handlers are within each other.
    EXPECT_EQ(handled, own ? 10 : 100);
    EXPECT_THAT(troubles, testing::IsEmpty());
  }
}

TEST(RankRun, ShowsAContextItsOwnStickyPropertiesWhateverOthersHave) {
  constexpr ContextKey<std::int64_t> kRound{.name = "round", .sticky = true};
  RankExecutor executor(recording(1, "step"), test_registry());
  RankContext one;
  one.set(kRound, 3).value();
  ASSERT_EQ(executor.start(one).code(), ReturnCode::Ok);
  EXPECT_EQ(executor.execute("get", {}, one).get("round"), 3);
  RankContext fresh;
  EXPECT_EQ(executor.fire("step", {}, fresh).code, ReturnCode::Ok);
  EXPECT_EQ(executor.execute("get", {}, one).get("round"), 3);
  RankContext other;
  other.set(kRound, 9).value();
  EXPECT_EQ(executor.fire("step", {}, other).code, ReturnCode::Ok);
  EXPECT_EQ(executor.execute("get", {}, one).get("round"), 3);
  EXPECT_EQ(executor.execute("get", {}, fresh).get("round"), -1);
}

TEST(RankRun, BeginsWithItsStartForEveryRankAndIsQuietBefore) {
  RankExecutorOptions options = recording(2, "step, start-run, end-run");
  options.result = RankResult::All;
  RankExecutor executor(options, test_registry());
  RankContext context;
  const EventOutcome early = executor.fire("step", {}, context);
  EXPECT_EQ(early.code, ReturnCode::Ok);
  EXPECT_EQ(executor.log_directory(), "");
  for (const std::string_view reserved : {kStartRun, kEndRun}) {
    EXPECT_EQ(executor.fire(reserved, {}, context).message,
              fmt::format("event '{}': it is fired by start() and finalize()", reserved));
  }
  executor.handle_event({.name = kStartRun, .data = Json()}, context);
  executor.handle_event({.name = "step", .data = Json(1)}, context);
  for (const Shareable& reply : executor.execute_all("heard", {}, context)) {
    EXPECT_EQ(reply.get("heard"),
              (Json{{{"name", "start-run"}, {"data", nullptr}}, {{"name", "step"}, {"data", 1}}}));
  }
  executor.handle_event({.name = kEndRun, .data = Json()}, context);
  EXPECT_EQ(executor.log_directory(), "");
}

TEST(RankRun, EndsWithAnEventThatEveryRankHears) {
  const sys::TemporaryDirectory logs;
  RankExecutorOptions options = recording(2, "end-run, print");
  options.log_directory = logs.path();
  RankExecutor executor(options, test_registry());
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  executor.finalize();
  for (const char* const rank : {"0", "1"}) {
    EXPECT_EQ(text_of(logs.path() + "/rank-" + rank + ".log"),
              "heard end-run\nthe recorder ends\n");
  }
}

TEST(RankRun, DoesNotStartWhereARankFailsToHearThatItDoes) {
  RankExecutorOptions options = recording(1, "start-run, hang");
  options.limits.event = 100ms;
  options.limits.stop = 200ms;
  options.limits.close = 200ms;
  RankExecutor executor(options, test_registry());
  RankContext context;
  EXPECT_THROW(executor.handle_event({.name = kStartRun, .data = Json()}, context),
               std::runtime_error);
  const Shareable started = executor.start(context);
  EXPECT_EQ(started.code(), ReturnCode::Timeout);
  EXPECT_THAT(started.message(), testing::HasSubstr("rank 0 did not answer within 0.1 s"));
}

TEST(RankRun, CanBeAbortedWhileItStarts) {
  RankExecutorOptions options = recording(2, "start-run, hang");
  options.limits.close = 200ms;
  RankExecutor executor(options, test_registry());
  RankContext context;
  executor.on_event([&](const RankEvent& event, RankContext&) {
    EXPECT_EQ(event.name, "hangs");
    executor.abort("no more");
  });
  const Shareable started = executor.start(context);
  EXPECT_EQ(started.code(), ReturnCode::TaskAborted);
  EXPECT_EQ(started.message(), "no more");
}

TEST(RankRun, GivesTheReasonOfAnAbortWithEveryReply) {
  RankExecutorOptions options = test_options(2);
  options.limits.stop = 200ms;
  RankExecutor executor(options, test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) { executor.abort("enough"); });
  RankContext context;
  const std::vector<Shareable> replies = executor.execute_all("fire_and_hang", {}, context);
  ASSERT_EQ(replies.size(), 2U);
  for (const Shareable& reply : replies) {
    EXPECT_EQ(reply.code(), ReturnCode::TaskAborted);
    EXPECT_EQ(reply.message(), "enough");
  }
}

TEST(RankRun, LetsARankEndWhoseEventEndsTheRun) {
  const sys::TemporaryDirectory logs;
  RankExecutorOptions options = recording(1, "ping, print");
  options.log_directory = logs.path();
  RankExecutor executor(options, test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) { executor.finalize(); });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  // The recorder fires "pong" in answer, from the thread that receives events.
  static_cast<void>(executor.fire("ping", {}, context));
  executor.finalize();
  EXPECT_EQ(text_of(logs.path() + "/rank-0.log"), "the recorder ends\n");
}

TEST(RankRun, KeepsTheLogsOfAStartThatFailed) {
  RankExecutorOptions options =
      test_options(1, "[{id: tester, type: tester, args: {fault: exit}}]");
  std::vector<std::string> notes;
  options.note = [&](std::string_view what) { notes.emplace_back(what); };
  RankExecutor executor(options, test_registry());
  RankContext context;
  EXPECT_EQ(executor.start(context).code(), ReturnCode::InitFailed);
  const std::string kept = executor.log_directory();
  executor.finalize();
  EXPECT_TRUE(std::filesystem::exists(kept + "/rank-0.log"));
  EXPECT_THAT(notes, ElementsAre("what the ranks have printed is in " + kept));
  std::filesystem::remove_all(kept);
}

TEST(RankRun, TellsTheLastWordsOfARankWhoseTaskIsTriedAgain) {
  RankExecutorOptions options = test_options(1);
  options.restarts = 1;
  std::vector<std::string> notes;
  options.note = [&](std::string_view what) { notes.emplace_back(what); };
  RankExecutor executor(options, test_registry());
  RankContext context;
  EXPECT_EQ(executor.execute("kill", {}, context).code(), ReturnCode::RankDied);
  EXPECT_THAT(notes, ElementsAre("task 'kill' is retried: rank 0 was killed by signal 9\n"
                                 "last words\n"));
}

TEST(RankRun, IsRefusedWithAllThatIsWrong) {
  RankExecutorOptions options = test_options(0, "[{id: 7, type: tester}]");
  options.restarts = -1;
  options.limits.event = -1ms;
  options.limits.execute = -5ms;
  options.launcher = Launcher::command({"mpirun"});
  const RankExecutor executor(options, test_registry());
  EXPECT_EQ(executor.validate().error().message,
            "ranks: there can be 1 to 4096, not 0\n"
            "restarts: there cannot be -1\n"
            "limits.execute: -5 ms is less than nothing\n"
            "limits.event: -1 ms is less than nothing\n"
            "the launcher 'mpirun' does not say where the command goes: one of its arguments must "
            "be {command}\n"
            "components:1:1: components: there is no component 'tester' to execute, and none that "
            "could\n"
            "components:1:7: components/0: 'id' must be text, and not empty");
}

}  // namespace
}  // namespace trainyard::ranks
