#include "run/gpu_owners.h"

#include <array>

#include <unistd.h>

#include <gtest/gtest.h>

namespace trainyard::run {
namespace {

constexpr model::TaskIndex kOneTask{1};
constexpr model::TaskIndex kOtherTask{2};
/// No process of this machine has such a number.
constexpr std::int64_t kNobody = 99'999'999;

TEST(GpuOwners, KnowAProcessThatIsYoungerThanTheLastLookByWhereItComesFrom) {
  GpuOwners owners;
  EXPECT_TRUE(owners.is_stranger(::getppid()));
  const std::array<std::int64_t, 1> parent{::getppid()};
  owners.started(kOneTask, parent);
  owners.sampled({{::getppid(), kOneTask}});
  EXPECT_EQ(owners.task_of(::getpid()), kOneTask) << "a child of the task's process";
  EXPECT_FALSE(owners.is_stranger(::getpid()));
}

TEST(GpuOwners, TakeOneThatIsNotThereForAStrangerWhenItIsShownASecondTime) {
  GpuOwners owners;
  hardware::GpuState shows;
  shows.processes = {{.pid = kNobody}};
  EXPECT_FALSE(owners.is_stranger(kNobody));
  owners.keep_only({shows});
  EXPECT_TRUE(owners.is_stranger(kNobody));
}

TEST(GpuOwners, TakeWhatATaskHasLeftForNobodyElses) {
  GpuOwners owners;
  const std::array<std::int64_t, 2> ranks{kNobody, kNobody + 1};
  owners.started(kOneTask, ranks);
  owners.sampled({{kNobody, kOneTask}, {kNobody + 2, kOneTask}, {kNobody + 3, kOtherTask}});
  owners.ended(kOneTask);
  for (const std::int64_t pid : {kNobody, kNobody + 1, kNobody + 2}) {
    EXPECT_EQ(owners.task_of(pid), std::nullopt) << pid;
    EXPECT_FALSE(owners.is_stranger(pid)) << pid;
  }
  EXPECT_EQ(owners.task_of(kNobody + 3), kOtherTask);
}

TEST(GpuOwners, ForgetWhatIsNotShownAnyMore) {
  GpuOwners owners;
  const std::array<std::int64_t, 1> task{kNobody};
  owners.started(kOneTask, task);
  owners.ended(kOneTask);
  hardware::GpuState shows;
  shows.processes = {{.pid = kNobody}};
  owners.keep_only({shows});
  EXPECT_FALSE(owners.is_stranger(kNobody));
  owners.keep_only({hardware::GpuState{}});
  EXPECT_FALSE(owners.is_stranger(kNobody)) << "it is new";
  owners.keep_only({shows});
  EXPECT_TRUE(owners.is_stranger(kNobody)) << "another process may have the number now";
}

}  // namespace
}  // namespace trainyard::run
