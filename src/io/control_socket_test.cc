#include "io/control_socket.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::io {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ControlSocketTest : public ::testing::Test {
 public:
  ControlSocketTest() {
    std::string path = "/tmp/socket-test-XXXXXX";
    // NOLINTNEXTLINE(misc-include-cleaner): cstdlib has it.
    directory = ::mkdtemp(path.data());
  }
  ControlSocketTest(const ControlSocketTest&) = delete;
  ControlSocketTest& operator=(const ControlSocketTest&) = delete;
  ~ControlSocketTest() override { std::filesystem::remove_all(directory); }

  std::string directory;
};

TEST_F(ControlSocketTest, IsInADirectoryThatOnlyItsUserCanEnter) {
  const auto made = listen_in_one_of({directory});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->path, StartsWith(directory + "/trainyard-"));
  const std::string parent = std::filesystem::path(made->path).parent_path();
  struct stat status{};
  ASSERT_EQ(::stat(parent.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  remove_socket(made->path);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(ControlSocketTest, HasAPath) {
  // An empty one stands for any socket there is.
  EXPECT_EQ(socket_address("").error().message, "a socket needs a path");
  EXPECT_FALSE(remove_dead_socket(""));
}

TEST_F(ControlSocketTest, IsInTheFirstPlaceThatWillDo) {
  std::ofstream(directory + "/file") << "not a directory";
  const std::string deep = directory + "/" + std::string(100, 'd');
  std::filesystem::create_directory(deep);
  const auto made =
      listen_in_one_of({"relative", directory + "/absent", directory + "/file", deep, directory});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->path, StartsWith(directory + "/trainyard-"));
  EXPECT_TRUE(std::filesystem::is_empty(deep));
}

TEST_F(ControlSocketTest, SaysWhatIsWrongWithEveryPlace) {
  const std::string deep = "/tmp/" + std::string(90, 'd');
  const auto made = listen_in_one_of({"relative", directory + "/absent", deep});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, StartsWith("no place for the control socket: 'relative' is not "
                                               "an absolute path; cannot look at '" +
                                               directory + "/absent': "));
  EXPECT_THAT(made.error().message, HasSubstr("is too long for a socket"));
  EXPECT_FALSE(listen_in_one_of({}));
}

TEST_F(ControlSocketTest, GoesWhenItsServerIsDead) {
  std::string path;
  {
    const auto made = listen_in_one_of({directory});
    ASSERT_TRUE(made) << made.error().message;
    path = made->path;
    EXPECT_FALSE(remove_dead_socket(path)) << "it is alive";
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(remove_dead_socket(path));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_FALSE(remove_dead_socket(path));
}

TEST_F(ControlSocketTest, StaysWhenItIsNotNamedAsOneOfOurs) {
  std::filesystem::create_directory(directory + "/mine");
  std::ofstream(directory + "/mine/control") << "mine";
  EXPECT_FALSE(remove_dead_socket(directory + "/mine/control"));
  EXPECT_FALSE(remove_dead_socket(directory + "/mine"));
  EXPECT_FALSE(remove_dead_socket(""));
  EXPECT_FALSE(remove_dead_socket("/control"));
  EXPECT_FALSE(remove_dead_socket(std::string(200, 'x') + "/control"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/mine/control"));
}

TEST_F(ControlSocketTest, LeavesAForeignFileInItsDirectoryAlone) {
  std::filesystem::create_directory(directory + "/trainyard-mine");
  std::ofstream(directory + "/trainyard-mine/notes") << "mine";
  EXPECT_FALSE(remove_dead_socket(directory + "/trainyard-mine/control"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/trainyard-mine/notes"));
}

TEST(SocketParents, EndWithTheDirectoryThatIsAlwaysThere) {
  EXPECT_EQ(socket_parents().back(), "/tmp");
}

}  // namespace
}  // namespace trainyard::io
