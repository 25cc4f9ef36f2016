// How much of a machine is ours: made-up machines with control groups, limits and Slurm jobs.
#include "hardware/capacity.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::hardware {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A machine of 8 CPUs and 64 GiB in a directory.
class MadeUpMachine {
 public:
  MadeUpMachine() {
    sources.proc = place / "proc";
    sources.cgroup = place / "cgroup";
    put("proc/meminfo",
        "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   33554432 kB\n");
    put("proc/self/cgroup", "");
  }
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = place / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void in_group(const std::string& lines) const { put("proc/self/cgroup", lines); }
  [[nodiscard]] CapacityReading read() const {
    CapacitySources all = sources;
    all.own = own;
    return read_capacity(all);
  }

  sys::TemporaryDirectory place;
  CapacitySources sources;
  CapacitySources::Own own{.cpus = 8};
};

using MemoryAndCpus = std::pair<Bytes, model::Cpus>;

MemoryAndCpus memory_and_cpus(const CapacityReading& reading) {
  return {reading.capacity.memory, reading.capacity.cpus};
}

TEST(Capacity, IsTheWholeMachineWhereNothingLimitsIt) {
  const MadeUpMachine machine;
  const CapacityReading reading = machine.read();
  EXPECT_EQ(memory_and_cpus(reading), (MemoryAndCpus{gib(64), model::cpus(8)}));
  EXPECT_THAT(reading.notes, IsEmpty());
  EXPECT_EQ(memory_available(machine.sources), gib(32));
}

TEST(Capacity, FollowsVersion2GroupsUpToTheRoot) {
  const MadeUpMachine machine;
  machine.in_group("0::/user.slice/job\n");
  machine.put("cgroup/cgroup.controllers", "cpu memory pids");
  machine.put("cgroup/user.slice/memory.max", "8589934592\n");
  machine.put("cgroup/user.slice/memory.current", "6442450944\n");
  machine.put("cgroup/user.slice/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 9\n");
  machine.put("cgroup/user.slice/cpu.max", "250000 100000\n");
  machine.put("cgroup/user.slice/job/memory.max", "max\n");
  machine.put("cgroup/user.slice/job/cpu.max", "max 100000\n");
  machine.put("cgroup/user.slice/job/pids.max", "100\n");
  machine.put("cgroup/user.slice/job/pids.current", "20\n");
  const CapacityReading reading = machine.read();
  EXPECT_EQ(reading.capacity.memory, gib(8));
  EXPECT_EQ(reading.capacity.cpus, model::Cpus{2500});
  EXPECT_EQ(reading.capacity.processes_max, 64);
  EXPECT_EQ(reading.capacity.processes_max_reason, "processes of the cgroup (pids.max)");
  EXPECT_THAT(reading.notes,
              ElementsAre("cgroup: 2.5 CPUs", "cgroup: 8.6 GB of memory",
                          "processes of the cgroup (pids.max): 100, so at most 64 tasks at once"));
  EXPECT_EQ(memory_available(machine.sources), gib(3));
}

TEST(Capacity, FollowsVersion1Groups) {
  const MadeUpMachine machine;
  machine.in_group("12:pids:/a\n4:memory:/a/b\n3:cpuset:/a\n2:cpu,cpuacct:/a\n0::/\n");
  machine.put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.put("cgroup/memory/a/memory.limit_in_bytes", "4294967296\n");
  machine.put("cgroup/memory/a/memory.usage_in_bytes", "5000000000\n");
  machine.put("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  machine.put("cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
  machine.put("cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  machine.put("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  machine.put("cgroup/cpuset/a/cpuset.cpus", "0-2,5-7\n");
  machine.put("cgroup/pids/a/pids.max", "max\n");
  const CapacityReading reading = machine.read();
  EXPECT_EQ(memory_and_cpus(reading), (MemoryAndCpus{gib(4), model::cpus(3)}));
  EXPECT_THAT(reading.notes,
              ElementsAre("cpuset: 6 CPUs", "cgroup: 3 CPUs", "cgroup: 4.3 GB of memory"));
  // More is used than allowed: nothing is left, not less than nothing.
  EXPECT_EQ(memory_available(machine.sources), Bytes{0});
}

TEST(Capacity, FindsAContainersGroupThatIsMountedAsTheRoot) {
  const MadeUpMachine machine;
  machine.in_group("0::/docker/0123abc\n");
  machine.put("cgroup/cgroup.controllers", "cpu memory");
  machine.put("cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(machine.read().capacity.memory, gib(2));

  machine.in_group("0::/../elsewhere\n");
  EXPECT_EQ(machine.read().capacity.memory, gib(2));

  // One that the container has made inside.
  machine.in_group("0::/docker/0123abc/inner\n");
  machine.put("cgroup/inner/memory.max", "1073741824\n");
  EXPECT_EQ(machine.read().capacity.memory, gib(1));
}

TEST(Capacity, SeesVersion2BesideVersion1) {
  const MadeUpMachine machine;
  machine.in_group("4:memory:/a\n0::/b\n");
  machine.put("cgroup/memory/a/memory.limit_in_bytes", "4294967296\n");
  machine.put("cgroup/unified/b/memory.max", "1073741824\n");
  EXPECT_EQ(machine.read().capacity.memory, gib(1));
}

TEST(Capacity, IsNeverLessThanOneCpu) {
  const MadeUpMachine machine;
  machine.in_group("0::/\n");
  machine.put("cgroup/cgroup.controllers", "cpu");
  machine.put("cgroup/cpu.max", "50000 100000\n");
  const CapacityReading reading = machine.read();
  EXPECT_EQ(reading.capacity.cpus, model::cpus(1));
  EXPECT_THAT(reading.notes, ElementsAre("cgroup: 0.5 CPUs"));
}

TEST(Capacity, IsNotFooledByNonsense) {
  const MadeUpMachine machine;
  machine.in_group("0::/\nno colons\n:\n::\n7:memory\n");
  machine.put("cgroup/cgroup.controllers", "cpu");
  for (const char* const text : {"", "\n", "max", "-1", "0 0", "x y", "99999999999999999999 1"}) {
    machine.put("cgroup/memory.max", std::string(text) == "-1" ? "max" : text);
    machine.put("cgroup/cpu.max", text);
    machine.put("cgroup/cpuset.cpus.effective", text[0] == '-' || text[0] == '0' ? "" : text);
    machine.put("cgroup/pids.max", text[0] == '-' || text[0] == '0' ? "" : text);
    const CapacityReading reading = machine.read();
    EXPECT_EQ(reading.capacity.cpus, model::cpus(8)) << text;
    EXPECT_EQ(reading.capacity.processes_max, 0) << text;
  }
}

TEST(Capacity, StaysWithinAnOuterSlurmJob) {
  MadeUpMachine machine;
  machine.own.environment = {"SLURM_CPUS_ON_NODE=4", "SLURM_MEM_PER_NODE=1024"};
  // Left over in a shell, without a job.
  EXPECT_EQ(memory_and_cpus(machine.read()), (MemoryAndCpus{gib(64), model::cpus(8)}));
  machine.own.environment.emplace_back("SLURM_JOB_ID=77");
  const CapacityReading reading = machine.read();
  EXPECT_EQ(memory_and_cpus(reading), (MemoryAndCpus{gib(1), model::cpus(4)}));
  EXPECT_THAT(reading.notes, ElementsAre("Slurm job: 4 CPUs", "Slurm job: 1.1 GB of memory"));

  machine.own.environment = {"SLURM_JOB_ID=77", "SLURM_CPUS_ON_NODE=4", "SLURM_MEM_PER_CPU=2048"};
  EXPECT_EQ(machine.read().capacity.memory, gib(8));
  machine.own.environment = {"SLURM_JOB_ID=77", "SLURM_MEM_PER_NODE=0", "SLURM_CPUS_ON_NODE=4(x2)"};
  EXPECT_EQ(machine.read().capacity.memory, gib(64));
}

TEST(Capacity, LeavesRoomForOurselvesInTheLimitsOfProcesses) {
  MadeUpMachine machine;
  machine.own.files_max = 512;
  const CapacityReading by_files = machine.read();
  EXPECT_EQ(by_files.capacity.processes_max, 448);
  EXPECT_EQ(by_files.capacity.processes_max_reason, "open files (ulimit -n)");
  EXPECT_THAT(by_files.notes,
              ElementsAre("open files (ulimit -n): 512, so at most 448 tasks at once"));

  // Two threads of ours are there already.
  std::filesystem::create_directories(machine.place / "proc/17/task/17");
  std::filesystem::create_directories(machine.place / "proc/17/task/18");
  machine.own.user_processes_max = 200;
  const CapacityReading by_user = machine.read();
  EXPECT_EQ(by_user.capacity.processes_max, 182);
  EXPECT_EQ(by_user.capacity.processes_max_reason, "processes of the user (ulimit -u)");

  // However little there is, one may run.
  machine.own.files_max = 10;
  const CapacityReading least = machine.read();
  EXPECT_EQ(least.capacity.processes_max, 1);
  EXPECT_THAT(least.notes, ElementsAre("open files (ulimit -n): 10, so at most 1 task at once"));
  machine.own = CapacitySources::Own{.files_max = 1'000'000};
  EXPECT_THAT(machine.read().notes, IsEmpty());
}

TEST(Capacity, OfThisMachineIsSomething) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const CapacityReading reading = read_capacity();
  EXPECT_GT(reading.capacity.memory, mib(64));
  EXPECT_GE(reading.capacity.cpus, model::cpus(1));
  EXPECT_LE(memory_available(), reading.capacity.memory);
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, after.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(OomWatch, CountsInOurGroupOrOnTheMachineWhereTheGroupHasNoCounter) {
  const MadeUpMachine machine;
  machine.put("proc/vmstat", "nr_free_pages 5\noom_kill 3\noom_kill_other 9\n");
  EXPECT_EQ(OomWatch(machine.sources).kills(), 3);
  machine.in_group("0::/a\n");
  machine.put("cgroup/cgroup.controllers", "memory");
  machine.put("cgroup/a/cgroup.procs", "");
  EXPECT_EQ(OomWatch(machine.sources).kills(), 3) << "memory is not counted in the group";
  machine.put("cgroup/a/memory.events", "oom 7\noom_kill 0\n");
  EXPECT_EQ(OomWatch(machine.sources).kills(), 0);
  machine.in_group("4:memory:/b\n");
  machine.put("cgroup/memory/b/memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  EXPECT_EQ(OomWatch(machine.sources).kills(), 1);
}

}  // namespace
}  // namespace trainyard::hardware
