// With real commands, as tasks of the executor `command` name them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "ranks/component_builder.h"
#include "ranks/component_config.h"
#include "ranks/context_access.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/component_registry.h"
#include "trainyard/rank_context.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

BuiltComponents executor_of(const Json& commands) {
  const Json list{{{"id", "it"}, {"type", "command"}, {"args", {{"commands", commands}}}}};
  return build_components(check_components(list.dump(), "", "it", {})->json, "it", {});
}

Shareable run(const Json& commands, std::string_view task, const Shareable& input = {},
              std::stop_token stop = {}) {
  RankContext context;
  ContextAccess::set_position(context, {.rank = 2, .local_rank = 1, .ranks = 4});
  return executor_of(commands).executor->execute(task, input, context, std::move(stop));
}

TEST(CommandExecutor, GivesTheValuesOfTheTaskAndReturnsWhatTheCommandLeaves) {
  Shareable input;
  input.set("rate", Json(0.5));
  const Shareable reply =
      run({{"train",
            "test $TRAINYARD_TASK = train && "
            R"(printf '{"got": %s, "rank": "{rank} {local_rank} {ranks} {task}"}' )"
            "\"$(cat $TRAINYARD_VALUES)\" > $TRAINYARD_RESULT"}},
          "train", input);
  EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
  EXPECT_EQ(reply.values(), (Json{{"got", {{"rate", 0.5}}}, {"rank", "2 1 4 train"}}));
}

TEST(CommandExecutor, TakesAListAsItIsAndNeedsNoResult) {
  const Shareable reply = run({{"t", {"/usr/bin/test", "{rank} $HOME", "=", "2 $HOME"}}}, "t");
  EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
  EXPECT_TRUE(reply.values().empty());
}

TEST(CommandExecutor, SetsItsVariablesOverThoseOfATaskThatItRunsIn) {
  const sys::TemporaryDirectory directory;
  const std::string outer = directory.path() + "/outer";
  ::setenv("TRAINYARD_RESULT", outer.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  const Shareable reply = run({{"t", R"(echo '{"mine": 1}' > $TRAINYARD_RESULT)"}}, "t");
  ::unsetenv("TRAINYARD_RESULT");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(reply.values(), (Json{{"mine", 1}})) << reply.message();
  EXPECT_FALSE(std::filesystem::exists(outer));
}

TEST(CommandExecutor, SaysHowACommandFailed) {
  const Json commands{
      {"code", "exit 3"}, {"signal", "kill -9 $$"}, {"result", "echo [1] > $TRAINYARD_RESULT"}};
  EXPECT_EQ(run(commands, "code").code(), ReturnCode::ExecutionException);
  EXPECT_EQ(run(commands, "code").message(), "'/bin/sh' exited with code 3");
  EXPECT_EQ(run(commands, "signal").message(), "'/bin/sh' was killed by signal 9");
  EXPECT_EQ(run(commands, "result").code(), ReturnCode::ExecutionResultError);
  EXPECT_EQ(run(commands, "result").message(), "the command left a result that is no JSON object");
  EXPECT_THROW(run({{"t", {"/no/such/program"}}}, "t"), std::runtime_error);
}

TEST(CommandExecutor, KnowsItsTasksByName) {
  const Json commands{{"train", "true"}, {"test", "true"}};
  EXPECT_EQ(run(commands, "trian").code(), ReturnCode::TaskUnknown);
  EXPECT_EQ(run(commands, "trian").message(),
            "no command for the task 'trian' (did you mean 'train'?)");
  EXPECT_EQ(run(commands, "submit").message(),
            "no command for the task 'submit'; there are test, train");
  EXPECT_THROW(executor_of({{"t", ""}}), std::invalid_argument);
  EXPECT_THROW(executor_of({{"t", Json::array()}}), std::invalid_argument);
}

TEST(CommandExecutor, EndsACommandThatIsNotWantedAnyMoreWithAllThatItStarted) {
  const sys::TemporaryDirectory directory;
  const std::string there = directory.path() + "/there";
  ASSERT_EQ(::mkfifo(there.c_str(), 0600), 0);
  std::stop_source stop;
  Shareable reply;
  std::jthread thread([&] {
    reply = run({{"t", fmt::format("sleep 1000 & echo $! > {}; wait", there)}}, "t", {},
                stop.get_token());
  });
  std::ifstream told(there);  // Waits until somebody writes.
  int child = 0;
  told >> child;
  const sys::Descriptor ended = sys::open_pidfd(child);
  ASSERT_TRUE(ended.is_open());
  stop.request_stop();
  thread.join();
  EXPECT_EQ(reply.code(), ReturnCode::TaskAborted);
  EXPECT_EQ(reply.message(), "it was told to stop");
  EXPECT_TRUE(sys::wait_until_ended(ended, sys::kLongEnough));
}

}  // namespace
}  // namespace trainyard::ranks
