// For tests alone: mounts that only the test sees.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <functional>

#include <sched.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::process {

/// The exit of `test` of in_own_mounts() when nothing can be mounted here; the test is skipped.
[[noreturn]] inline void skip_for_mounts() { ::_exit(2); }

/// Calls `test` in a process of its own whose mounts no other process sees; its failures are this
/// test's.
inline void in_own_mounts(const std::function<void()>& test) {
  const sys::TemporaryDirectory place;
  const pid_t tester = ::fork();
  if (tester == 0) {
    ::setenv("TMPDIR", place.path().c_str(), 1);  // Its remains are deleted with ours.
    // In a chroot the root is no mount (EINVAL), so that its propagation cannot be changed.
    if (::unshare(CLONE_NEWNS) != 0 ||
        (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 && errno != EINVAL)) {
      skip_for_mounts();
    }
    test();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tester, &status, 0), tester);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "may not mount here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace trainyard::process
