// Reading /proc: one line of it, all of it, and what makes up a tree.
#include "sys/process_scan.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kTail =
    " S 10 20 30 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 1 0 9999 1000 200 184467 1 1 0\n";

TEST(ProcessStat, IsReadFromALine) {
  EXPECT_EQ(parse_process_stat("42 (python3)" + std::string(kTail)),
            (ProcessStat{.pid = 42,
                         .parent = 10,
                         .group = 20,
                         .session = 30,
                         .state = 'S',
                         .cpu_ticks = 560,
                         .children_ticks = 15,
                         .start_ticks = 9999,
                         .major_faults = 3}));
}

TEST(ProcessStat, MindsNoNameHoweverOdd) {
  const auto process = parse_process_stat("42 (a) S 1 (b\n)" + std::string(kTail));
  ASSERT_TRUE(process);
  EXPECT_EQ(process->parent, 10);
}

TEST(ProcessStat, IsNothingWhenTheLineIsCutAnywhere) {
  const std::string line = "42 (python3)" + std::string(kTail);
  const std::size_t enough = line.find(" 1000 200");
  for (std::size_t cut = 0; cut < enough; ++cut) {
    const auto process = parse_process_stat(std::string_view(line).substr(0, cut));
    // Cut in the middle of the last number it is a shorter number: still no crash.
    EXPECT_TRUE(!process || cut >= enough - 3) << cut;
  }
  EXPECT_EQ(parse_process_stat("x (a)" + std::string(kTail)), std::nullopt);
  EXPECT_EQ(parse_process_stat(")"), std::nullopt);
}

TEST(ProcessScan, SeesUsAndOurParent) {
  ProcessScan scan;
  const auto processes = scan.read_all();
  EXPECT_TRUE(std::ranges::is_sorted(processes, {}, &ProcessStat::pid));
  const auto self = std::ranges::find(processes, std::int64_t{::getpid()}, &ProcessStat::pid);
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->session, ::getsid(0));
  EXPECT_EQ(self->state, 'R');
  EXPECT_EQ(scan.read(::getpid())->start_ticks, self->start_ticks);
  EXPECT_EQ(scan.read(0), std::nullopt);
}

TEST(ProcessScan, LeavesTheKernelsOwnThreadsOut) {
  const std::string line = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0";
  EXPECT_TRUE(parse_process_stat(line)->of_kernel);
  EXPECT_FALSE(parse_process_stat("42 (python3)" + std::string(kTail))->of_kernel);
  // The same at the first look and at the next, which remembers them.
  ProcessScan scan;
  for (int look = 0; look < 2; ++look) {
    for (const ProcessStat& process : scan.read_all()) {
      EXPECT_FALSE(process.of_kernel) << process.pid;
    }
    const auto processes = scan.read_all();
    EXPECT_NE(std::ranges::find(processes, std::int64_t{::getpid()}, &ProcessStat::pid),
              processes.end());
  }
}

TEST(ProcessScan, ReadsNoMoreOfAFileThanAsked) {
  const ProcessScan scan;
  EXPECT_EQ(scan.read_text(::getpid(), "environ", 3).size(), 3U);
  EXPECT_EQ(scan.read_text(::getpid(), "no-such-file", 100), "");
  EXPECT_TRUE(ProcessScan("/no/such/proc").read_all().empty());
}

std::vector<int> label(const std::vector<ProcessStat>& processes) {
  return label_trees(processes, [](const ProcessStat& process) {
    return process.session >= 100 ? static_cast<int>(process.session) : kNoTree;
  });
}

TEST(Trees, AreMadeOfWhatIsSaidToBeInThemAndAllThatDescends) {
  EXPECT_THAT(label({{.pid = 1},
                     {.pid = 2, .parent = 1, .session = 100},
                     {.pid = 3, .parent = 2},
                     {.pid = 4, .parent = 5},
                     {.pid = 5, .parent = 3},
                     {.pid = 6, .parent = 1},
                     {.pid = 7, .parent = 5, .session = 200},
                     {.pid = 8, .parent = 7},
                     {.pid = 9, .parent = 77}}),
              ElementsAre(kNoTree, 100, 100, 100, 100, kNoTree, 200, 200, kNoTree));
}

TEST(Trees, SurviveParentsInACircle) {
  EXPECT_THAT(label({{.pid = 1, .parent = 2}, {.pid = 2, .parent = 1}, {.pid = 3, .parent = 3}}),
              ElementsAre(kNoTree, kNoTree, kNoTree));
}

TEST(ProcessScan, KnowsTheProgramOfAProcess) {
  const ProcessScan scan;
  EXPECT_EQ(scan.program_of(::getpid()), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(scan.program_of(0), "");
}

}  // namespace
}  // namespace trainyard::sys
