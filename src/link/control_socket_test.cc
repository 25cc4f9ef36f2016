#include "link/control_socket.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::link {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ControlSocketTest : public ::testing::Test {
 protected:
  sys::TemporaryDirectory directory_;
  // NOLINTNEXTLINE(readability-identifier-naming): all tests read it
  const std::string& directory = directory_.path();
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

TEST_F(ControlSocketTest, IsToldOfBeforeItIsThere) {
  std::vector<std::string> told;
  const auto made = listen_in_one_of({"relative", directory}, [&](const std::string& place) {
    EXPECT_FALSE(std::filesystem::exists(place));
    told.push_back(place);
  });
  ASSERT_TRUE(made) << made.error().message;
  const std::string name = std::filesystem::path(made->path).parent_path().filename();
  EXPECT_THAT(told, ElementsAre(directory + "/." + name, directory + "/" + name));
  remove_socket(made->path);
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

TEST_F(ControlSocketTest, IsFoundWhereOthersPutTheirsElsewhere) {
  const auto made = listen_in_one_of({directory});
  const auto beside = listen_in_one_of({directory});
  ASSERT_TRUE(made && beside);
  ASSERT_THAT(socket_parents(), Not(Contains(directory)));
  std::ofstream(directory + "/trainyard-file") << "has no socket";
  std::filesystem::create_directory(directory + "/other");
  const auto not_ours = listen_at(directory + "/other/control");
  ASSERT_TRUE(not_ours);
  const auto found = [this] {
    std::vector<std::string> here = control_sockets();
    std::erase_if(here, [this](const std::string& it) { return !it.starts_with(directory + "/"); });
    return here;
  };
  EXPECT_THAT(found(), UnorderedElementsAre(made->path, beside->path));
  remove_socket(beside->path);
  EXPECT_THAT(found(), ElementsAre(made->path));
  remove_socket(made->path);
  EXPECT_THAT(found(), IsEmpty());
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

TEST_F(ControlSocketTest, IsInNoPlaceWhereOthersMayRenameIt) {
  for (const ::mode_t mode : {0777U, 0770U, 0702U}) {
    ASSERT_EQ(::chmod(directory.c_str(), mode), 0);
    const auto made = listen_in_one_of({directory});
    ASSERT_FALSE(made) << mode;
    EXPECT_EQ(made.error().message,
              fmt::format("no place for the control socket: others may rename what is in '{}' "
                          "(mode {:04o}: it is not sticky)",
                          directory, mode));
    EXPECT_TRUE(std::filesystem::is_empty(directory)) << mode;
  }
  ASSERT_EQ(::chmod(directory.c_str(), 01777), 0);
  const auto made = listen_in_one_of({directory});
  ASSERT_TRUE(made) << made.error().message;
  remove_socket(made->path);
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

TEST_F(ControlSocketTest, RemovesWhatTheDeadHaveLeftBesideIt) {
  const auto alive = listen_in_one_of({directory});
  ASSERT_TRUE(alive) << alive.error().message;
  // Left as by a server that was killed.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(listen_in_one_of({directory}).has_value());
  std::filesystem::create_directory(directory + "/trainyard-absent");
  std::filesystem::create_directory(directory + "/trainyard-nobody");
  std::ofstream(directory + "/trainyard-nobody/control") << "no socket";
  const auto made = listen_in_one_of({directory});
  ASSERT_TRUE(made) << made.error().message;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    left.push_back(entry.path().string() + "/control");
  }
  EXPECT_THAT(left,
              UnorderedElementsAre(alive->path, made->path, directory + "/trainyard-absent/control",
                                   directory + "/trainyard-nobody/control"));
  EXPECT_FALSE(remove_dead_socket(alive->path)) << "it is alive";
}

TEST_F(ControlSocketTest, RemovesWhatWasLeftOnItsWayToItsNameWhenThatIsLongAgo) {
  std::vector<std::string> fresh;
  for (const bool long_ago : {true, false}) {
    const auto left = listen_in_one_of({directory});
    ASSERT_TRUE(left) << left.error().message;
    const std::filesystem::path made = std::filesystem::path(left->path).parent_path();
    fresh.push_back(directory + "/." + made.filename().string());
    std::filesystem::rename(made, fresh.back());
    if (!long_ago) continue;
    const std::array<timespec, 2> times{{{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 1}}};
    const std::string socket = fresh.back() + "/control";
    ASSERT_EQ(::utimensat(AT_FDCWD, socket.c_str(), times.data(), AT_SYMLINK_NOFOLLOW), 0);
  }
  ASSERT_TRUE(listen_in_one_of({directory}));
  EXPECT_FALSE(std::filesystem::exists(fresh[0]));
  EXPECT_TRUE(std::filesystem::exists(fresh[1]));
}

TEST_F(ControlSocketTest, IsNotConnectedToByThoseWhoLookWhetherItIsAlive) {
  const auto alive = listen_in_one_of({directory});
  ASSERT_TRUE(alive) << alive.error().message;
  ASSERT_TRUE(listen_in_one_of({directory}).has_value());
  EXPECT_FALSE(remove_dead_socket(alive->path));
  EXPECT_EQ(::accept(alive->socket.get(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN) << "nobody waits to be let in";
}

/// Under the name that others look for it listens from the first moment on.
TEST_F(ControlSocketTest, IsNeverTakenForDeadByOthersThatStart) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      if (auto made = listen_in_one_of({directory})) remove_socket(made->path);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto made = listen_in_one_of({directory});
    EXPECT_TRUE(made) << made.error().message;
    if (!made) break;
    EXPECT_TRUE(std::filesystem::exists(made->path)) << i;
    remove_socket(made->path);
  }
  done = true;
  other.join();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
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

using testing::HasSubstr;

TEST(PrivateSocket, LeadsToWhoeverListensThere) {
  const sys::TemporaryDirectory directory;
  const std::string path = directory / "agent";
  EXPECT_THAT(connect_privately(path).error().message, HasSubstr("no such file"));
  const sys::Descriptor listener = listen_privately(path).value();
  const sys::Descriptor here = connect_privately(path).value();
  const sys::Descriptor there = accept_from(listener);
  ASSERT_TRUE(there.is_open());
  ASSERT_EQ(::send(here.get(), "a", 1, 0), 1);
  char got = 0;
  ASSERT_EQ(::recv(there.get(), &got, 1, 0), 1);
  EXPECT_EQ(got, 'a');
}

TEST(PrivateSocket, IsTakenFromADeadServerAndNotFromALivingOne) {
  const sys::TemporaryDirectory directory;
  const std::string path = directory / "agent";
  {
    const sys::Descriptor dead = listen_privately(path).value();
    EXPECT_THAT(listen_privately(path).error().message, HasSubstr("somebody listens at"));
  }
  const sys::Descriptor listener = listen_privately(path).value();
  EXPECT_TRUE(connect_privately(path).has_value());
}

TEST(PrivateSocket, SaysWhereAPathIsTooLong) {
  const std::string path = "/tmp/" + std::string(200, 'x');
  EXPECT_FALSE(listen_privately(path).has_value());
  EXPECT_FALSE(connect_privately(path).has_value());
}

}  // namespace

}  // namespace trainyard::link
