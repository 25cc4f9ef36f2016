// The ranks of an attempt are started, watched and ended by the keeper as one.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "process/port_lease.h"
#include "process/test_yard.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

model::Launch ranks_of(const TestYard& yard, int ranks, const std::string& text,
                       std::uint32_t number = 0) {
  model::Launch launch = yard.shell(text, number);
  launch.ranks = ranks;
  model::OwnRanks& own = launch.own_ranks.emplace();
  for (int rank = 1; rank < ranks; ++rank) {
    own.log_paths.push_back(fmt::format("{}/rank-{}.log", launch.task_directory, rank));
  }
  return launch;
}

std::string written(const TestYard& yard, const std::string& name) {
  return sys::content_of(yard.directory / ("task0/" + name));
}

std::vector<RankFailed> failures(const TestYard& yard) {
  std::vector<RankFailed> found;
  for (const KeeperNews& each : yard.news) {
    if (const auto* const failed = std::get_if<RankFailed>(&each)) found.push_back(*failed);
  }
  return found;
}

TEST(KeeperRanks, HaveEachItsNumberItsLogAndTheSamePort) {
  TestYard yard;
  model::Launch launch =
      ranks_of(yard, 3,
               "echo $RANK $LOCAL_RANK $TRAINYARD_RANK $WORLD_SIZE $MASTER_ADDR "
               "${SLURM_PROCID-no} ${TRAINYARD_DEVICE-none}; echo $MASTER_PORT >&2");
  launch.own_ranks->gpus = 2;
  launch.environment.emplace_back("SLURM_PROCID=9");
  yard.keeper.start(TestYard::key(0), launch);
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(ended.ranks.failed, std::nullopt);
  EXPECT_THAT(ended.ranks.finished, UnorderedElementsAre(0, 1, 2));
  const std::string port = written(yard, "stderr.log");
  EXPECT_GE(std::atoi(port.c_str()), 1024) << port;
  EXPECT_EQ(written(yard, "stdout.log"), "0 0 0 3 127.0.0.1 no cuda:0\n");
  EXPECT_EQ(written(yard, "rank-1.log"), "1 1 1 3 127.0.0.1 no cuda:1\n" + port);
  EXPECT_EQ(written(yard, "rank-2.log"), "2 2 2 3 127.0.0.1 no cuda:0\n" + port);
  EXPECT_THAT(failures(yard), IsEmpty());
  EXPECT_EQ(yard.news.size(), 2U);
}

TEST(KeeperRanks, AreToldOnceAllOfThemRun) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), ranks_of(yard, 3, "echo $$ > pid.$RANK; exec sleep 1000"));
  const std::int64_t first = yard.wait_for_start();
  ASSERT_EQ(yard.news.size(), 1U);
  const auto& started = std::get<ProcessStarted>(yard.news.front());
  EXPECT_EQ(first, yard.wait_for_pid("pid.0"));
  EXPECT_THAT(started.others, ElementsAre(yard.wait_for_pid("pid.1"), yard.wait_for_pid("pid.2")));
}

TEST(KeeperRanks, EndWithTheFirstThatFailsWhichIsNamed) {
  TestYard yard;
  yard.keeper.start(
      TestYard::key(0),
      ranks_of(yard, 3,
               "trap 'echo $RANK > ended.$RANK; exit 3' TERM; echo > there.$RANK\n"
               "if [ $RANK = 2 ]; then until [ -f there.0 ] && [ -f there.1 ]; do :; done;"
               " echo no such data; exit 7; fi\n"
               "while :; do :; done"));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{7}));
  EXPECT_EQ(ended.ranks, (model::RanksAtEnd{.failed = 2, .finished = {}}));
  const std::vector<RankFailed> failed = failures(yard);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].rank, 2);
  EXPECT_EQ(failed[0].end, model::End(model::ExitedWith{7}));
  EXPECT_EQ(sys::content_of(yard.directory / "ended.0"), "0\n");
  EXPECT_EQ(sys::content_of(yard.directory / "ended.1"), "1\n");
  // Its output has the reason, and is where users look.
  EXPECT_EQ(ended.left.errors, "no such data\n");
  EXPECT_EQ(written(yard, "stderr.log"),
            "trainyard ranks: rank 2 exited with code 7; the other ranks are killed\n"
            "trainyard ranks: the end of rank-2.log:\n"
            "no such data\n");
}

TEST(KeeperRanks, ShowTheOutputOfTheFirstRankWhereItPrintedNoErrors) {
  TestYard yard;
  yard.keeper.start(
      TestYard::key(0),
      ranks_of(yard, 2, "[ $RANK = 0 ] || exec sleep 1000; echo no such data; exit 7"));
  EXPECT_EQ(yard.wait_for_end().left.errors, "no such data\n");
  EXPECT_EQ(written(yard, "stderr.log"),
            "trainyard ranks: rank 0 exited with code 7; the other ranks are killed\n"
            "trainyard ranks: the end of stdout.log:\n"
            "no such data\n");
}

TEST(KeeperRanks, AreKnownByTheKernelsFigureWhereNobodySampledThem) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0),
                    ranks_of(yard, 3,
                             "[ $RANK = 1 ] || exit 0\n"
                             "exec dd if=/dev/zero of=/dev/null bs=300000000 count=1"));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(ended.ranks.largest, 1);
  EXPECT_GE(ended.ranks.largest_memory, mb(300));
}

TEST(KeeperRanks, AreKilledWhenTheyOutliveTheGrace) {
  TestYard yard({.stop_grace = Duration(50)});
  yard.keeper.start(TestYard::key(0),
                    ranks_of(yard, 2,
                             "if [ $RANK = 1 ]; then until [ -s deaf ]; do :; done; "
                             "exit 5; fi; trap '' TERM; echo $$ > deaf; "
                             "while :; do sleep 1000; done"));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{5}));
  EXPECT_EQ(ended.ranks.failed, 1);
  EXPECT_FALSE(is_alive(pid_in(yard.directory / "deaf")));
}

TEST(KeeperRanks, GoOnWhenOneEndsWellWhichIsToldOfAFailureAfterIt) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), ranks_of(yard, 3,
                                               "case $RANK in 1) echo $$ > pid.1; exit 0;; esac\n"
                                               "until [ -s go ]; do sleep 0.01; done\n"
                                               "[ $RANK = 2 ] || exec sleep 1000; exit 4"));
  yard.wait_for_start();
  const std::int64_t gone = yard.wait_for_pid("pid.1");
  ASSERT_TRUE(yard.wait([&] { return !is_alive(gone); }));
  // Two more turns: what the end of one rank leads to has been done by then.
  for (int i = 0; i < 2; ++i) yard.loop.run_once(Duration(20));
  EXPECT_EQ(yard.ended(0), std::nullopt);
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "go", "go\n"));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{4}));
  EXPECT_EQ(ended.ranks, (model::RanksAtEnd{.failed = 2, .finished = {1}}));
}

TEST(KeeperRanks, AreNotToBlameWhenTheyWereToldToEnd) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    TestYard yard;
    yard.keeper.start(TestYard::key(0), ranks_of(yard, 3,
                                                 "[ $RANK != 1 ] || exit 0; echo > there.$RANK; "
                                                 "exec sleep 1000"));
    ASSERT_TRUE(yard.wait([&] {
      return !sys::content_of(yard.directory / "there.0").empty() &&
             !sys::content_of(yard.directory / "there.2").empty() && yard.started(0);
    }));
    yard.keeper.signal(TestYard::key(0), signal);
    const ProcessEnded ended = yard.wait_for_end();
    EXPECT_EQ(ended.end, model::End(model::KilledBy{.signal = signal}));
    EXPECT_EQ(ended.ranks.failed, std::nullopt);
    EXPECT_THAT(failures(yard), IsEmpty());
    EXPECT_EQ(written(yard, "stderr.log"), "");
  }
}

TEST(KeeperRanks, AreOverWhenNothingThatTheyStartedIsLeft) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0),
                    ranks_of(yard, 2,
                             "setsid sh -c 'echo $$ > daemon.$RANK; exec sleep 1000' &\n"
                             "until [ -s daemon.0 ] && [ -s daemon.1 ]; do sleep 0.01; done\n"
                             "exit $RANK"));
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{1}));
  for (const char* const name : {"daemon.0", "daemon.1"}) {
    EXPECT_FALSE(is_alive(pid_in(yard.directory / name))) << name;
  }
}

TEST(KeeperRanks, LeaveNobodyBehindWhenTheYardIsGone) {
  std::vector<std::int64_t> pids;
  {
    TestYard yard;
    yard.keeper.start(TestYard::key(0), ranks_of(yard, 2,
                                                 "setsid sleep 1000 & echo $! > daemon.$RANK; "
                                                 "echo $$ > pid.$RANK; wait"));
    for (const char* const name : {"daemon.0", "daemon.1", "pid.0", "pid.1"}) {
      pids.push_back(yard.wait_for_pid(name));
    }
  }
  for (const std::int64_t pid : pids) EXPECT_FALSE(is_alive(pid));
}

TEST(KeeperRanks, AreNotStartedWhenOneOfThemCannotBe) {
  TestYard yard;
  model::Launch launch = ranks_of(yard, 3, "echo $$ > pid.$RANK; exec sleep 1000");
  ASSERT_EQ(::mkdir(launch.task_directory.c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo(launch.own_ranks->log_paths[0].c_str(), 0644), 0);
  yard.keeper.start(TestYard::key(0), launch);
  const model::End end = yard.wait_for_end().end;
  ASSERT_TRUE(std::holds_alternative<model::NotStarted>(end));
  EXPECT_THAT(std::get<model::NotStarted>(end).why,
              HasSubstr("rank-1.log': a pipe, a link or a device is in its place"));
  EXPECT_EQ(yard.started(0), std::nullopt);
}

TEST(KeeperRanks, SayOnceThatTheirProgramIsNotThere) {
  TestYard yard;
  model::Launch launch = ranks_of(yard, 4, "");
  launch.arguments = {"no-such-program"};
  EXPECT_EQ(yard.run(launch),
            model::End(model::NotStarted{
                "cannot run 'no-such-program': program not found on PATH; install "
                "it, or write its full path"}));
  EXPECT_EQ(yard.started(0), std::nullopt);
}

TEST(KeeperRanks, HaveThePortToThemselvesUntilTheyAreGone) {
  TestYard yard;
  std::set<std::string> ports;
  for (const std::uint32_t task : {0U, 1U}) {
    yard.keeper.start(TestYard::key(task),
                      ranks_of(yard, 2,
                               fmt::format("[ $RANK = 1 ] || echo $MASTER_PORT > port.{}; "
                                           "exec sleep 1000",
                                           task),
                               task));
    yard.wait_for_start(task);
    ports.insert(fmt::format("{}", yard.wait_for_pid(fmt::format("port.{}", task))));
  }
  ASSERT_EQ(ports.size(), 2U);
  const auto take = [](const std::string& port) {
    const int number = std::atoi(port.c_str());
    return PortLease::take({.first = number, .last = number}).has_value();
  };
  for (const std::string& port : ports) EXPECT_FALSE(take(port)) << port;
  for (const std::uint32_t task : {0U, 1U}) {
    yard.keeper.signal(TestYard::key(task), SIGKILL);
    yard.wait_for_end(task);
  }
  EXPECT_TRUE(yard.wait([&] { return take(*ports.begin()) && take(*ports.rbegin()); }));
}

TEST(KeeperRanks, CountTheirCpuTimeTogetherAndTheMemoryOfTheLargest) {
  TestYard yard;
  const auto used = [&](int ranks) {
    yard.news.clear();
    yard.keeper.start(TestYard::key(0),
                      ranks_of(yard, ranks, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
    return yard.wait_for_end().usage;
  };
  const model::Usage one = used(1);
  const model::Usage four = used(4);
  EXPECT_LT(four.memory_peak, one.memory_peak + one.memory_peak);
  EXPECT_GT(four.memory_peak, Bytes{});
  EXPECT_GT(four.cpu_time, one.cpu_time);
}

}  // namespace
}  // namespace trainyard::process
