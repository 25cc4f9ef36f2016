#include "process/kept_descriptors.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::process {
namespace {

TEST(KeptDescriptors, AProcessThatCanHaveNoneEndsWithASentence) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    static_cast<void>(keep_only(sys::Descriptor(ends[0]), {}).release());
    ::_exit(EXIT_SUCCESS);
  }
  ASSERT_GT(child, 0);
  ::close(ends[1]);
  std::string text(1'000, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "not by a signal";
  EXPECT_EQ(WEXITSTATUS(status), EXIT_FAILURE);
  EXPECT_THAT(text, ::testing::StartsWith("trainyard: cannot start the keeper: "));
}

}  // namespace
}  // namespace trainyard::process
