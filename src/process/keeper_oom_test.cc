// The kernel's out-of-memory killer at work, for real.
#include <csignal>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/cgroup.h"
#include "model/event.h"
#include "process/keeper.h"
#include "process/test_yard.h"

namespace trainyard::process {
namespace {

/// Memory cgroups of version 1: one with this process and the keepers that it forks, and another.
/// Each leaves 200 MB to its processes, far more than the test and a keeper need.
class KeeperOomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = hardware::find_cgroups("/proc", "/sys/fs/cgroup").memory;
    if (before_.empty() || !make(own_) || !make(other_)) {
      GTEST_SKIP() << "may not make memory cgroups of version 1 here";
    }
    write(own_ + "/cgroup.procs", fmt::to_string(::getpid()));
  }
  void TearDown() override {
    if (made_.empty()) return;
    write(before_.front() + "/cgroup.procs", fmt::to_string(::getpid()));
    for (const std::string& group : made_) EXPECT_EQ(::rmdir(group.c_str()), 0) << group;
  }

  bool make(const std::string& group) {
    if (::mkdir(group.c_str(), 0755) != 0) return false;
    made_.push_back(group);
    write(group + "/memory.limit_in_bytes", "200000000");
    write(group + "/memory.swappiness", "0");
    return true;
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text << std::flush;
  }

  const std::string own_ = fmt::format("/sys/fs/cgroup/memory/trainyard-own-{}", ::getpid());
  const std::string other_ = fmt::format("/sys/fs/cgroup/memory/trainyard-other-{}", ::getpid());
  std::vector<std::string> before_;
  std::vector<std::string> made_;
};

TEST_F(KeeperOomTest, KnowsTheKillsOfTheKernelInItsGroup) {
  TestYard yard({.oom_count_age = Duration(0)});
  EXPECT_EQ(yard.run(yard.shell("exec /usr/bin/python3 -c 'x=b\"x\"*600000000'")),
            model::End(model::KilledBy{.signal = SIGKILL, .out_of_memory = true}));
  // The victim is a child of the shell.
  EXPECT_EQ(yard.run(yard.shell("/usr/bin/python3 -c 'x=b\"x\"*600000000'; exit $?")),
            model::End(model::KilledBy{.signal = SIGKILL, .out_of_memory = true}));
  // A KILL of another process does not count as one of the kernel, though the kernel killed a
  // process not long ago.
  EXPECT_EQ(yard.run(yard.shell("kill -KILL $$")), model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_EQ(yard.run(yard.shell("exit 137")), model::End(model::ExitedWith{137}));
}

TEST_F(KeeperOomTest, DoesNotTakeThoseInAnotherGroupForThese) {
  TestYard yard({.oom_count_age = Duration(0)});
  EXPECT_EQ(yard.run(yard.shell(fmt::format("( echo 0 > {}/cgroup.procs || exit 99\n"
                                            "  exec /usr/bin/python3 -c 'x=b\"x\"*600000000' )\n"
                                            "test $? = 137 || exit 98\n"
                                            "kill -KILL $$",
                                            other_))),
            model::End(model::KilledBy{.signal = SIGKILL}));
}

}  // namespace
}  // namespace trainyard::process
