// The kernel's out-of-memory killer at work, for real. Its counter is the machine's: no other test
// may run at the same time, or it would take its own kills for these.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/event.h"
#include "process/keeper.h"
#include "process/test_yard.h"

namespace trainyard::process {
namespace {

TEST(KeeperEnd, KnowsTheOutOfMemoryKillerAtWork) {
  const std::string group = "/sys/fs/cgroup/memory/trainyard-test-" + std::to_string(::getpid());
  if (::mkdir(group.c_str(), 0755) != 0) GTEST_SKIP() << "may not make a memory cgroup here";
  std::ofstream(group + "/memory.limit_in_bytes") << "50000000" << std::flush;
  std::ofstream(group + "/memory.swappiness") << "0" << std::flush;
  {
    TestYard yard({.oom_count_age = Duration(0)});
    const std::string enter = "echo $$ > " + group + "/cgroup.procs || exit 99; ";
    EXPECT_EQ(yard.run(yard.shell(enter + "exec /usr/bin/python3 -c 'x=b\"x\"*200000000'")),
              model::End(model::KilledBy{.signal = SIGKILL, .out_of_memory = true}));
    // The victim is a child of the shell.
    EXPECT_EQ(yard.run(yard.shell(enter + "/usr/bin/python3 -c 'x=b\"x\"*200000000'; exit $?")),
              model::End(model::KilledBy{.signal = SIGKILL, .out_of_memory = true}));
    // A KILL of another process does not count as one of the kernel, though the kernel killed a
    // process not long ago.
    EXPECT_EQ(yard.run(yard.shell("kill -KILL $$")),
              model::End(model::KilledBy{.signal = SIGKILL}));
    EXPECT_EQ(yard.run(yard.shell("exit 137")), model::End(model::ExitedWith{137}));
  }
  EXPECT_EQ(::rmdir(group.c_str()), 0);
}

}  // namespace
}  // namespace trainyard::process
