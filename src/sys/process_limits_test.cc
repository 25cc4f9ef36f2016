#include "sys/process_limits.h"

#include <csignal>
#include <cstdlib>

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kOpenFiles = RLIMIT_NOFILE;
constexpr std::size_t kCore = RLIMIT_CORE;

/// The limits of a shell in which nothing was set.
ProcessLimits usual() {
  ProcessLimits limits{.cpus = {0, 1}, .resources = std::vector<ProcessLimits::Resource>(16)};
  limits.resources[kOpenFiles] = {.soft = 1024, .hard = 4096};
  limits.resources[RLIMIT_NICE] = {.soft = 0, .hard = 0};
  return limits;
}

/// Whether a process that takes `wanted` has exactly these limits.
bool is_taken(const ProcessLimits& wanted) {
  const pid_t child = ::fork();
  if (child == 0) {
    take_limits(wanted);
    const auto now = limits_of(::getpid());
    ::_exit(now && *now == wanted ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status == 0;
}

TEST(ProcessLimits, AreThoseOfAnotherProcess) {
  ProcessLimits less = limits_of(::getpid()).value();
  ASSERT_FALSE(less.cpus.empty());
  less.cpus.resize(1);
  less.nice = 15;
  less.resources[kOpenFiles] = {.soft = 100, .hard = 200};
  less.resources[kCore] = {.soft = 0, .hard = 0};
  EXPECT_TRUE(is_taken(less));
}

TEST(ProcessLimits, ComeAsNearAsAProcessMay) {
  const ProcessLimits own = limits_of(::getpid()).value();
  ProcessLimits more = own;
  more.cpus = {60'000};
  // Not even root may have more open files than the kernel counts.
  more.resources[kOpenFiles] = {.soft = own.resources[kOpenFiles].hard,
                                .hard = ProcessLimits::kUnlimited};
  const pid_t child = ::fork();
  if (child == 0) {
    take_limits(more);
    const auto now = limits_of(::getpid());
    ::_exit(now && now->cpus == own.cpus &&
                    now->resources[kOpenFiles].soft == own.resources[kOpenFiles].hard
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessLimits, CanAlwaysBeGivenWhereTheyAreLess) {
  ProcessLimits wanted = usual();
  wanted.cpus = {0};
  wanted.nice = 10;
  wanted.resources[kOpenFiles] = {.soft = 64, .hard = 64};
  EXPECT_THAT(not_to_be_given(usual(), {}, wanted), IsEmpty());
  EXPECT_THAT(not_to_be_given(usual(), {}, usual()), IsEmpty());
}

TEST(ProcessLimits, AreNamedWhichCannotBeGiven) {
  ProcessLimits has = usual();
  has.cpus = {0};
  has.nice = 10;
  has.resources[kOpenFiles] = {.soft = 64, .hard = 512};
  has.resources[kCore] = {.soft = 0, .hard = 0};
  ProcessLimits wanted = usual();
  EXPECT_THAT(not_to_be_given(has, {}, wanted),
              ElementsAre("nice is 10, not 0", "core is at most 0, not unlimited",
                          "nofile is at most 512, not 1024"));
  wanted.resources[kOpenFiles].soft = 512;
  EXPECT_THAT(not_to_be_given(has, {.nice = true}, wanted),
              ElementsAre("core is at most 0, not unlimited", "nofile is at most 512, not 4096"))
      << "the hard limit";
  EXPECT_THAT(not_to_be_given(has, {.nice = true, .limits = true}, wanted), IsEmpty());
}

TEST(ProcessLimits, AllowALowerNiceValueByALimitOfTheirOwn) {
  ProcessLimits has = usual();
  has.nice = 10;
  has.resources[RLIMIT_NICE] = {.soft = 15, .hard = 15};
  ProcessLimits wanted = usual();
  wanted.resources[RLIMIT_NICE] = has.resources[RLIMIT_NICE];
  EXPECT_THAT(not_to_be_given(has, {}, wanted), ElementsAre("nice is 5, not 0"));
  wanted.nice = 5;
  EXPECT_THAT(not_to_be_given(has, {}, wanted), IsEmpty());
}

}  // namespace
}  // namespace trainyard::sys
