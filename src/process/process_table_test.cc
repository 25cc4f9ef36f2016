// The resources that trees of real processes use.
#include "process/process_table.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/test_yard.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

TEST(ProcessTable, AddsUpTheMemoryOfAParentWithFourChildren) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"/usr/bin/python3", "-c",
                                                   "import os,time\n"
                                                   "for i in range(4):\n"
                                                   "  if os.fork() == 0:\n"
                                                   "    if i == 3: os.setsid()\n"
                                                   "    x = b'x' * 100_000_000\n"
                                                   "    open(f'ready{i}', 'w').write('yes\\n')\n"
                                                   "    time.sleep(1000)\n"
                                                   "time.sleep(1000)\n"}));
  const std::int64_t root = yard.wait_for_start();
  for (const char* const file : {"ready0", "ready1", "ready2", "ready3"}) {
    ASSERT_TRUE(sys::eventually([&] { return sys::content_of(yard.directory / file) == "yes\n"; }));
  }
  yard.keeper.start(TestYard::key(1), yard.launch({"sleep", "1000"}, 1));
  const std::int64_t other = yard.wait_for_start(1);
  ProcessTable table;
  const MachineReading reading = table.read(std::array{other, root, std::int64_t{0x7fffffff}});
  ASSERT_EQ(reading.trees.size(), 3U);
  EXPECT_GE(reading.trees[1].memory, mb(400));
  EXPECT_LE(reading.trees[1].memory, mb(500));
  EXPECT_EQ(reading.trees[1].pids.size(), 5);
  EXPECT_LE(reading.trees[0].memory, mb(5));
  EXPECT_EQ(reading.trees[0].pids.size(), 1);
  EXPECT_EQ(reading.trees[2].pids.size(), 0);
  EXPECT_EQ(reading.trees[2].memory, Bytes{0});
  EXPECT_GT(reading.memory_available, mb(1));
  EXPECT_EQ(reading.cpu_used_by_others, 0);
}

TEST(ProcessTable, CountsTheMemoryOnceThatAChildOfVforkHasToo) {
  const pid_t self = ::getpid();
  if (::syscall(SYS_kcmp, self, self, 1, 0, 0) != 0 && errno == EPERM) {
    GTEST_SKIP() << "nobody may compare processes here";
  }
  TestYard yard;
  // The parent stands still until its child executes a program, which it never does.
  yard.keeper.start(TestYard::key(0), yard.launch({"/usr/bin/python3", "-c",
                                                   "import ctypes, time\n"
                                                   "x = b'x' * 100_000_000\n"
                                                   "if ctypes.CDLL(None).vfork() == 0:\n"
                                                   "  open('ready', 'w').write('yes\\n')\n"
                                                   "  time.sleep(1000)\n"}));
  const std::int64_t root = yard.wait_for_start();
  ASSERT_TRUE(
      sys::eventually([&] { return sys::content_of(yard.directory / "ready") == "yes\n"; }));
  ProcessTable table;
  for (const TreeUsage& tree : {table.read(std::array{root}).trees.at(0), table.look_at(root)}) {
    EXPECT_EQ(tree.pids.size(), 2);
    EXPECT_GE(tree.memory, mb(100));
    EXPECT_LE(tree.memory, mb(150));
  }
}

TEST(ProcessTable, KnowsOfARootThatHasEndedWhateverItHasLeft) {
  TestYard yard;
  ASSERT_EQ(::mkfifo((yard.directory / "gate").c_str(), 0600), 0);
  yard.keeper.start(TestYard::key(0), yard.shell("sleep 1000 & echo $! > child; read line < gate"));
  const std::int64_t root = yard.wait_for_start();
  yard.wait_for_pid("child");
  ProcessTable table;
  EXPECT_TRUE(table.read(std::array{root}).trees.at(0).root_lives);
  EXPECT_FALSE(table.read(std::array{std::int64_t{0x7fffffff}}).trees.at(0).root_lives);
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGSTOP);
  ::kill(static_cast<pid_t>(root), SIGKILL);
  EXPECT_TRUE(sys::eventually([&] { return !is_alive(root); }));
  const MachineReading reading = table.read(std::array{root});
  EXPECT_FALSE(reading.trees.at(0).root_lives);
  EXPECT_GT(reading.trees.at(0).pids.size(), 1U);
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGCONT);
}

TEST(ProcessTable, LooksAtOneTreeAndNothingElse) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"/usr/bin/python3", "-c",
                                                   "import os,time\n"
                                                   "if os.fork() == 0:\n"
                                                   "  if os.fork() == 0:\n"
                                                   "    x = b'x' * 50_000_000\n"
                                                   "    open('ready', 'w').write('yes\\n')\n"
                                                   "time.sleep(1000)\n"}));
  const std::int64_t root = yard.wait_for_start();
  ASSERT_TRUE(
      sys::eventually([&] { return sys::content_of(yard.directory / "ready") == "yes\n"; }));
  const ProcessTable table;
  const TreeUsage tree = table.look_at(root);
  EXPECT_EQ(tree.pids.size(), 3);
  EXPECT_GE(tree.memory, mb(50));
  EXPECT_LE(tree.memory, mb(120));
  EXPECT_GT(tree.others, mb(1)) << "the interpreter itself";
  EXPECT_EQ(table.look_at(0x7fffffff).memory, Bytes{});
}

TEST(ProcessTable, CountsWhatProcessesShareOnce) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"/usr/bin/python3", "-c",
                                                   "import mmap,os,time\n"
                                                   "size = 100_000_000\n"
                                                   "file = os.memfd_create('arena')\n"
                                                   "os.ftruncate(file, size)\n"
                                                   "arena = mmap.mmap(file, size)\n"
                                                   "arena[:] = b'x' * size\n"
                                                   "for i in range(3):\n"
                                                   "  if os.fork() == 0:\n"
                                                   "    mine = mmap.mmap(file, size)\n"
                                                   "    for at in range(0, size, 4096): mine[at]\n"
                                                   "    open(f'ready{i}', 'w').write('yes\\n')\n"
                                                   "    time.sleep(1000)\n"
                                                   "time.sleep(1000)\n"}));
  const std::int64_t root = yard.wait_for_start();
  for (const char* const file : {"ready0", "ready1", "ready2"}) {
    ASSERT_TRUE(sys::eventually([&] { return sys::content_of(yard.directory / file) == "yes\n"; }));
  }
  const MachineReading reading = ProcessTable().read(std::array{root});
  EXPECT_GE(reading.trees[0].memory, mb(100));
  EXPECT_LE(reading.trees[0].memory, mb(180));
}

TEST(ProcessTable, CountsTheCpuTimeOfTheLivingAndOfThoseTheyWaitedFor) {
  TestYard yard;
  const std::string burn = "import time\nwhile time.process_time() < 0.3: pass\n";
  yard.keeper.start(TestYard::key(0),
                    yard.shell("/usr/bin/python3 -c '" + burn + "'; echo yes > ready; sleep 1000"));
  const std::int64_t root = yard.wait_for_start();
  ASSERT_TRUE(
      sys::eventually([&] { return sys::content_of(yard.directory / "ready") == "yes\n"; }));
  ProcessTable table;
  const MachineReading reading = table.read(std::array{root});
  EXPECT_GE(reading.trees[0].cpu_time, Duration(280));
  EXPECT_LE(reading.trees[0].cpu_time, Duration(5000));
}

TEST(ProcessTable, DoesNotTakeOurOwnWorkForThatOfOthers) {
  // A made-up machine of two CPUs: we, our keeper, a task of it, and another user's process.
  const sys::TemporaryDirectory place;
  const std::int64_t self = ::getpid();
  const auto put = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path path = place / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  struct Process {
    std::int64_t pid;
    std::int64_t parent;
    int ticks;
    int children_ticks = 0;
  };
  const auto put_process = [&](const Process& it) {
    put(fmt::format("{}/stat", it.pid),
        fmt::format("{0} (x) S {1} {0} {0} 0 -1 0 0 0 0 0 {2} 0 {3} 0 20 0 1 0 5 0 0\n", it.pid,
                    it.parent, it.ticks, it.children_ticks));
  };
  const auto put_cpus = [&](int user, int steal, int idle) {
    put("stat", fmt::format("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {} 0 0 {} 7 0 0 0 0 0\n"
                            "cpu1 0 0 0 0 0 0 0 {} 0 0\nintr 5\n",
                            user, idle, steal));
  };
  constexpr std::int64_t kKeeper = 1'000'000'001;
  constexpr std::int64_t kTask = 1'000'000'002;
  constexpr std::int64_t kOther = 1'000'000'003;
  put("meminfo", "MemAvailable: 1000 kB\n");
  put_cpus(1000, 0, 5000);
  put_process({.pid = self, .parent = 1, .ticks = 20});
  put_process({.pid = kKeeper, .parent = self, .ticks = 10});
  put_process({.pid = kTask, .parent = kKeeper, .ticks = 100, .children_ticks = 30});
  put_process({.pid = kOther, .parent = 1, .ticks = 777});

  ProcessTable table(
      {.proc = place.path(), .cgroup = place / "none", .own = hardware::CapacitySources::Own{}});
  const MachineReading first = table.read(std::array{kTask});
  EXPECT_EQ(first.cpu_used_by_others, 0);
  EXPECT_EQ(first.memory_available, kib(1000));
  EXPECT_EQ(first.trees[0].cpu_time, Duration(130'000 / ::sysconf(_SC_CLK_TCK)));

  // The task has ended with 250 ticks, which are the keeper's children's now; we used 10.
  put_cpus(1400, 40, 5360);
  put_process({.pid = self, .parent = 1, .ticks = 30});
  put_process({.pid = kKeeper, .parent = self, .ticks = 10, .children_ticks = 250});
  std::filesystem::remove_all(place / fmt::format("{}", kTask));
  // 440 of 800 ticks were busy, 10 + 250 - 130 of them with our work.
  EXPECT_DOUBLE_EQ(table.read({}).cpu_used_by_others, (440.0 - 130.0) / 800.0);

  // Everything was ours, and a little more, as the two are not read in one instant.
  put_cpus(1500, 40, 5360);
  put_process({.pid = self, .parent = 1, .ticks = 140});
  EXPECT_EQ(table.read({}).cpu_used_by_others, 0);
  // No time has passed.
  EXPECT_EQ(table.read({}).cpu_used_by_others, 0);
}

}  // namespace
}  // namespace trainyard::process
