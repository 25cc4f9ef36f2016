// Threads that meet, words that are too long and events that lead to others, in an executor.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "sys/descriptor.h"
#include "sys/passing.h"
#include "sys/pidfd.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/component.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

TEST(RankExecutor, TellsARankWhatItDidNotGetWithATaskThatWasTooLong) {
  constexpr ContextKey<std::int64_t> kRound{.name = "round", .sticky = true};
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  ASSERT_TRUE(context.set(kRound, 7).has_value());
  const Shareable too_long = with({{"text", std::string(std::size_t{2} << 20, 'x')}});
  EXPECT_EQ(executor.execute("get", too_long, context).code(), ReturnCode::BadTaskData);
  EXPECT_EQ(executor.execute("get", {}, context).get("round"), 7);
}

TEST(RankExecutor, TakesWhatRankZeroChangesWhenItHearsAnEvent) {
  constexpr ContextKey<std::string> kGreeting{.name = "greeting"};
  RankExecutor executor(test_options(2, kWithRecorder), test_registry());
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  EXPECT_EQ(executor.fire("greet", {}, context).code, ReturnCode::Ok);
  EXPECT_EQ(context.get(kGreeting), "from rank");
}

TEST(RankExecutor, LetsAnEventLeadToOthersInAnyRank) {
  int heard = 0;
  RankExecutor executor(test_options(3, kWithRecorder), test_registry());
  executor.on_event([&](const RankEvent& event, RankContext& context) {
    ++heard;
    // Down again, to those who wait for this very answer.
    if (event.name == "reacted") static_cast<void>(context.fire("round", {}));
  });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  const EventOutcome outcome = executor.fire("react", {}, context);
  EXPECT_EQ(outcome.code, ReturnCode::Ok) << outcome.message;
  EXPECT_THAT(outcome.errors, testing::IsEmpty());
  EXPECT_EQ(heard, 3);
}

TEST(RankExecutor, SaysAtOnceThatAnEventIsTooLong) {
  RankExecutor executor(test_options(1, kWithRecorder), test_registry());
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  const EventOutcome outcome =
      executor.fire("round", std::string(std::size_t{2} << 20, 'x'), context);
  EXPECT_EQ(outcome.code, ReturnCode::Ok) << outcome.message;  // It did not wait for its limit.
  ASSERT_EQ(outcome.errors.size(), 1U);
  EXPECT_THAT(outcome.errors[0],
              testing::HasSubstr("bytes of fields, at most 1048576 are allowed"));
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, CanBeFinalizedByAHandlerOfAnEventForTheGroup) {
  RankExecutor executor(test_options(2, kWithRecorder), test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) { executor.finalize(); });
  RankContext context;
  EXPECT_EQ(executor.execute("fire", with({{"group", true}}), context).code(),
            ReturnCode::TaskAborted);
}

TEST(RankExecutor, AbortsWithTheReasonThatWasGiven) {
  // The other rank's event may be heard when the next task runs.
  std::atomic<bool> aborted{false};
  RankExecutor executor(test_options(2), test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) {
    if (!aborted.exchange(true)) executor.abort("enough");
  });
  RankContext context;
  const Shareable reply = executor.execute("fire", {}, context);
  EXPECT_EQ(reply.code(), ReturnCode::TaskAborted);
  EXPECT_EQ(reply.message(), "enough");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, IsBroughtUpOnceByThreadsThatAskAtTheSameTime) {
  RankExecutor executor(test_options(2), test_registry());
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      RankContext context;
      good += executor.start(context).code() == ReturnCode::Ok ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(good, 4);
}

TEST(RankExecutor, LaunchesAgainAfterItsKeeperWasKilled) {
  RankExecutor executor(test_options(1), test_registry());
  RankContext context;
  const Shareable reply = executor.execute("kill_parent", {}, context);  // That is the keeper.
  EXPECT_EQ(reply.code(), ReturnCode::RankDied);
  EXPECT_THAT(reply.message(), testing::HasSubstr("was killed by signal 9"));
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, LeavesNoRankToAKeeperThatWasKilledNotEvenOneThatIsStopped) {
  RankExecutorOptions options = test_options(2);
  options.result = RankResult::All;
  RankExecutor executor(std::move(options), test_registry());
  RankContext context;
  std::vector<sys::Descriptor> processes;
  for (const Shareable& reply : executor.execute_all("pid", {}, context)) {
    processes.push_back(sys::open_pidfd(reply.get("pid").get<std::int64_t>()));
    ASSERT_TRUE(processes.back().is_open());
  }
  ASSERT_EQ(processes.size(), 2U);
  sys::send_signal(processes[1], SIGSTOP);
  const Shareable reply = executor.execute("kill_parent", with({{"rank", 0}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::RankDied);
  for (const sys::Descriptor& process : processes) {
    EXPECT_TRUE(sys::wait_until_ended(process, sys::kLongEnough));
  }
}

TEST(RankExecutor, HasNoEffectInAForkOfItsProcessAndSaysSo) {
  auto executor = std::make_unique<RankExecutor>(test_options(2), test_registry());
  RankContext context;
  const Json pid = executor->execute("pid", {}, context).get("pid");
  const auto echo_of = [&](float value) {
    Shareable task;
    // Too large for a frame: the reply is in memory that the rank uses again once it is released.
    task.set_buffer("w", Buffer::copy_of<float>({20'000}, std::vector<float>(20'000, value)));
    return executor->execute("echo", task, context);
  };
  Shareable kept = echo_of(1);
  auto ends = sys::socket_pair().value();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    kept = Shareable();
    std::string said = executor->start(context).message();
    said += "\n" + executor->execute("get", {}, context).message();
    said += "\n" + executor->execute_all("get", {}, context).back().message();
    said += "\n" + executor->fire("round", {}, context).message;
    said += "\n" + executor->alloc(DType::Float32, {1}).error().message;
    executor->abort("the child");
    executor->finalize();
    executor.reset();
    static_cast<void>(::send(ends.second.get(), said.data(), said.size(), 0));
    ::_exit(0);
  }
  ends.second.close();
  std::string said(4'096, '\0');
  const ssize_t size = ::recv(ends.first.get(), said.data(), said.size(), MSG_WAITALL);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string why = fmt::format(
      "the ranks of this RankExecutor are those of process {}, from which this one was forked: "
      "here "
      "it needs another RankExecutor",
      ::getpid());
  EXPECT_EQ(said, fmt::format("{0}\n{0}\n{0}\n{0}\n{0}", why));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(echo_of(2).code(), ReturnCode::Ok);
  }
  EXPECT_THAT(kept.buffer("w")->as<float>(), testing::Each(1.0F));
  EXPECT_EQ(executor->execute("pid", {}, context).get("pid"), pid);
}

TEST(RankExecutor, CarriesAConfigurationLargerThanASocketHolds) {
  const std::string padding(700'000, 'x');
  RankExecutor executor(
      test_options(2, "[{id: tester, type: tester, args: {padding: " + padding + "}}]"),
      test_registry());
  RankContext context;
  const Shareable reply = executor.execute("get", {}, context);
  EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
}

}  // namespace
}  // namespace trainyard::ranks
