#include "hardware/mps.h"

#include <array>
#include <filesystem>
#include <string_view>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::hardware {
namespace {

/// Calls this process so for a while.
class Named {
 public:
  explicit Named(const char* name) {
    ::prctl(PR_GET_NAME, before_.data());
    ::prctl(PR_SET_NAME, name);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  ~Named() { ::prctl(PR_SET_NAME, before_.data()); }

 private:
  std::array<char, 16> before_{};
};

TEST(Mps, RunsWhereItsDaemonIsAliveAndOurs) {
  const sys::TemporaryDirectory directory;
  EXPECT_FALSE(find_mps(directory.path())) << "nobody has left a file";
  directory.write("nvidia-cuda-mps-control.pid", fmt::format("{}\n", ::getpid()));
  EXPECT_FALSE(find_mps(directory.path())) << "another program has its number";
  {
    const Named daemon("nvidia-cuda-mps-control");
    const std::optional<MpsService> service = find_mps(directory.path());
    ASSERT_TRUE(service);
    EXPECT_EQ(service->directory, directory.path());
    EXPECT_EQ(service->daemon, ::getpid());
    EXPECT_FALSE(is_gone(*service));
    EXPECT_TRUE(is_gone({.directory = directory.path(), .daemon = ::getppid()}))
        << "another one has taken its place";
    directory.write("nvidia-cuda-mps-control.pid", "0");
    EXPECT_TRUE(is_gone(*service));
  }
  const std::string file = directory / "nvidia-cuda-mps-control.pid";
  for (const std::string_view wrong : {"", "-1", "0", "many", "1", "999999999"}) {
    directory.write("nvidia-cuda-mps-control.pid", wrong);
    EXPECT_FALSE(find_mps(directory.path())) << wrong;
  }
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0666), 0);
  EXPECT_TRUE(sys::holds_in_time([&] { return !find_mps(directory.path()); }))
      << "any user may have put a pipe there, which is not waited for";
}

}  // namespace
}  // namespace trainyard::hardware
