// Ranks that others start: the real mpirun and torchrun of Debian.
#include "trainyard/launcher.h"

#include <cstddef>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "sys/test_directory.h"
#include "text/launcher_text.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

/// Starts each rank in the background of a shell.
Launcher shell() {
  return Launcher::command(
      {"/bin/sh", "-c",
       "for r in $(seq 0 $(({ranks} - 1))); do RANK=$r LOCAL_RANK=$r \"$@\" & done; wait", "launch",
       "{command}"});
}

/// Runs three tasks on ranks started by it, the last of which kills a rank, and looks at their logs.
void expect_to_work(const Launcher& launcher) {
  const sys::TemporaryDirectory logs;
  RankExecutorOptions options = test_options(2);
  options.launcher = launcher;
  options.result = RankResult::All;
  options.log_directory = logs.path();
  RankExecutor executor(options, test_registry());
  RankContext context;
  Shareable task;
  task.set("names", {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"});
  const std::vector<Shareable> replies = executor.execute_all("environment", task, context);
  ASSERT_EQ(replies.size(), 2U);
  for (const std::size_t rank : {0U, 1U}) {
    const Shareable& reply = replies[rank];
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << reply.message() << reply.traceback();
    const std::string number = std::to_string(rank);
    EXPECT_EQ(reply.get("value"), (Json{{"RANK", number},
                                        {"LOCAL_RANK", number},
                                        {"WORLD_SIZE", "2"},
                                        {"MASTER_ADDR", "127.0.0.1"}}));
  }
  EXPECT_EQ(executor.execute("print", {}, context).code(), ReturnCode::Ok);
  for (const char* const rank : {"0", "1"}) {
    std::ifstream log(options.log_directory + "/rank-" + rank + ".log");
    const std::string text(std::istreambuf_iterator<char>(log), {});
    EXPECT_EQ(text, fmt::format("line of rank {}\n", rank));
  }
  Shareable fatal;
  fatal.set("rank", 1);
  fatal.set("others_wait", true);
  const Shareable died = executor.execute("kill", fatal, context);
  EXPECT_EQ(died.code(), ReturnCode::RankDied);
  EXPECT_EQ(died.message(), "rank 1 is gone: its connection has ended");
  EXPECT_EQ(died.traceback(), "line of rank 1\nlast words\n");
}

TEST(Launcher, MayBeMpirun) { expect_to_work(Launcher::mpirun()); }

// The options that Debian's PyTorch needs with Debian's Python.
TEST(Launcher, MayBeTorchrun) { expect_to_work(Launcher::torchrun({"-r", "0:1", "-t", "0:1"})); }

TEST(Launcher, MayBeAnyCommand) { expect_to_work(shell()); }

TEST(Launcher, StartsTheRanksAgainForTheTaskAfterADeath) {
  RankExecutorOptions options = test_options(2);
  options.launcher = shell();
  RankExecutor executor(options, test_registry());
  RankContext context;
  Shareable fatal;
  fatal.set("rank", 1);
  EXPECT_EQ(executor.execute("kill", fatal, context).code(), ReturnCode::RankDied);
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(Launcher, SaysWhichOfItsMachineARankIs) {
  RankExecutorOptions options = test_options(2);
  options.result = RankResult::All;
  options.launcher = Launcher::command(
      {"/bin/sh", "-c", "for r in 0 1; do RANK=$r LOCAL_RANK=$((r + 4)) \"$@\" & done; wait",
       "launch", "{command}"});
  RankExecutor executor(options, test_registry());
  RankContext context;
  const std::vector<Shareable> replies = executor.execute_all("get", {}, context);
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].get("local_rank"), 4) << replies[0].message();
  EXPECT_EQ(replies[1].get("local_rank"), 5) << replies[1].message();
}

TEST(Launcher, ThatEndsEndsTheLaunch) {
  RankExecutorOptions options = test_options(2);
  options.launcher = Launcher::command({"/bin/sh", "-c", "echo no hosts; exit 3", "{command}"});
  RankExecutor executor(options, test_registry());
  RankContext context;
  const Shareable reply = executor.start(context);
  EXPECT_EQ(reply.code(), ReturnCode::LaunchFailed);
  EXPECT_EQ(reply.message(), "the launcher exited with code 3");
  EXPECT_EQ(reply.traceback(), "no hosts\n");
}

TEST(Launcher, ThatStartsOthersThanWasAskedForIsRefusedWithTheReason) {
  const auto message = [](const std::string& script) {
    RankExecutorOptions options = test_options(2);
    options.launcher = Launcher::command({"/bin/sh", "-c", script, "launch", "{command}"});
    RankExecutor executor(options, test_registry());
    RankContext context;
    const Shareable reply = executor.start(context);
    EXPECT_EQ(reply.code(), ReturnCode::LaunchFailed);
    return reply.message();
  };
  EXPECT_EQ(message("RANK=2 \"$@\"; sleep 1000"), "rank 2 is there, and the last of 2 is 1");
  EXPECT_EQ(message("RANK=0 \"$@\" & RANK=0 \"$@\" & wait; sleep 1000"),
            "two processes are rank 0");
  EXPECT_EQ(message("RANK=0 WORLD_SIZE=3 \"$@\"; sleep 1000"),
            "rank 0 was started as one of 3, and there must be 2");
  EXPECT_EQ(
      message("\"$@\"; sleep 1000"),
      "a process of the launcher does not know which rank it is (WORLD_SIZE is 2, and nothing "
      "says which rank this is (RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, "
      "SLURM_PROCID))");
}

TEST(Launcher, MustSayWhereTheCommandGoes) {
  RankExecutorOptions options = test_options(2);
  options.launcher = Launcher::command({"srun", "-n", "{ranks}"});
  EXPECT_EQ(RankExecutor(options, test_registry()).validate().error().message,
            "the launcher 'srun -n {ranks}' does not say where the command goes: one of its "
            "arguments must be {command}");
}

TEST(Launcher, HasAName) {
  EXPECT_EQ(Launcher::named("mpirun").value().name(), "mpirun");
  EXPECT_EQ(Launcher::named("built-in").value().name(), "built-in");
  EXPECT_EQ(Launcher::named("mpirum").error().message,
            "unknown launcher 'mpirum' (did you mean 'mpirun'?)");
}

TEST(Launcher, AListThatIsNotClosedIsNotValidJson) {
  EXPECT_EQ(
      text::parse_launcher(R"(["srun",)").error().message,
      R"(a list must be valid JSON, as in ["mpirun", "{command}"]; 1:9: expected a JSON value, )"
      "found the end of the text");
}

}  // namespace
}  // namespace trainyard::ranks
