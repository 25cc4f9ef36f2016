// What trees of real processes use.
#include "io/process_table.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "io/test_yard.h"
#include "model/event.h"
#include "model/launch.h"

namespace trainyard::io {
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
    ASSERT_TRUE(eventually([&] { return content_of(yard.directory / file) == "yes\n"; }));
  }
  yard.keeper.start(TestYard::key(1), yard.launch({"sleep", "1000"}, 1));
  const std::int64_t other = yard.wait_for_start(1);
  ProcessTable table;
  const MachineReading reading = table.read(std::array{other, root, std::int64_t{0x7fffffff}});
  ASSERT_EQ(reading.trees.size(), 3U);
  EXPECT_GE(reading.trees[1].memory, mb(400));
  EXPECT_LE(reading.trees[1].memory, mb(500));
  EXPECT_EQ(reading.trees[1].processes, 5);
  EXPECT_LE(reading.trees[0].memory, mb(5));
  EXPECT_EQ(reading.trees[0].processes, 1);
  EXPECT_EQ(reading.trees[2].processes, 0);
  EXPECT_EQ(reading.trees[2].memory, Bytes{0});
  EXPECT_GT(reading.memory_available, mb(1));
  EXPECT_EQ(reading.cpu_used_by_others, 0);
}

TEST(ProcessTable, CountsTheCpuTimeOfTheLivingAndOfThoseTheyWaitedFor) {
  TestYard yard;
  const std::string burn = "import time\nwhile time.process_time() < 0.3: pass\n";
  yard.keeper.start(TestYard::key(0),
                    yard.shell("/usr/bin/python3 -c '" + burn + "'; echo yes > ready; sleep 1000"));
  const std::int64_t root = yard.wait_for_start();
  ASSERT_TRUE(eventually([&] { return content_of(yard.directory / "ready") == "yes\n"; }));
  ProcessTable table;
  const MachineReading reading = table.read(std::array{root});
  EXPECT_GE(reading.trees[0].cpu_time, Duration(280));
  EXPECT_LE(reading.trees[0].cpu_time, Duration(5000));
}

TEST(ProcessTable, DoesNotTakeOurOwnWorkForThatOfOthers) {
  TestYard yard;
  ProcessTable table;
  const auto others_while = [&](const std::string& work) {
    static_cast<void>(table.read({}));
    yard.run(yard.shell(work));
    return table.read({}).cpu_used_by_others;
  };
  // Ours, and gone again when we look: both a long one and many short ones.
  const std::string burn =
      "/usr/bin/python3 -c 'import time\nwhile time.process_time() < 0.4: pass'";
  // The machine may be busy with something else all the while: then there is nothing to compare.
  double best = 1;
  for (int round = 0; round < 3; ++round) {
    const double idle = others_while("sleep 0.4");
    const double busy = others_while(burn + " & " + burn + "; wait");
    best = std::min(best, busy - idle);
  }
  EXPECT_LT(best, 0.35);
}

}  // namespace
}  // namespace trainyard::io
