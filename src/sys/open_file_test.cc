// Anything else in the place of a file causes an error, and no other effect.
#include "sys/open_file.h"

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

/// A refusal with that text, which is no error of the system.
bool is_refused(const std::string& path, const FileOptions& options, const std::string& told) {
  const auto opened = open_file(path, options);
  if (opened || opened.error().number != 0) return false;
  EXPECT_EQ(opened.error().error.message, told);
  return opened.error().error.message == told;
}

mode_t permissions_of(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return about.st_mode & 07777U;
}

void bind_socket(const Descriptor& socket, const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(&address.sun_path[0], sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

TEST(OpenFile, WaitsForNobodyAndNamesWhatIsInThePlaceOfTheFile) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "mine", "mine"));
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(place / "mine", place / "link");
  std::filesystem::create_symlink(place / "elsewhere", place / "broken");
  place.make("directory");
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_NO_FATAL_FAILURE(bind_socket(socket, place / "socket"));
  const std::vector<std::pair<std::string, std::string>> cases{{"fifo", "pipe"},
                                                               {"link", "symbolic link"},
                                                               {"broken", "symbolic link"},
                                                               {"directory", "directory"},
                                                               {"socket", "socket"}};
  const int makes = O_CREAT | O_TRUNC;
  for (const auto& [name, what] : cases) {
    const std::string told = fmt::format("'{}' is a {}, not a regular file", place / name, what);
    for (const int flags : {O_WRONLY | makes, O_WRONLY | O_APPEND, O_RDWR | makes}) {
      EXPECT_TRUE(holds_in_time([&] {
        return is_refused(place / name, {.flags = flags}, told + "; remove it");
      })) << told
          << ": " << flags;
    }
    // Nobody can read a socket, which open() itself refuses.
    EXPECT_TRUE(holds_in_time([&] { return is_refused(place / name, {}, told); })) << told;
  }
  EXPECT_TRUE(is_refused("/dev/null", {}, "'/dev/null' is a device, not a regular file"));
  EXPECT_EQ(content_of(place / "mine"), "mine");
  EXPECT_FALSE(std::filesystem::exists(place / "elsewhere"));
}

TEST(OpenFile, NamesTheFirstLinkBelowADirectory) {
  const TemporaryDirectory place;
  std::filesystem::create_directories(place / "run/group/task");
  std::filesystem::create_symlink(place / "run", place / "link");
  std::filesystem::create_symlink(place / "run/group", place / "run/second");
  const auto refused = [](const std::string& path, const std::string& below) {
    const auto opened = open_directory(path, below);
    return opened ? std::string() : opened.error().error.message;
  };
  const auto link = [](const std::string& path) {
    return fmt::format("'{}' is a symbolic link, not a directory; remove it", path);
  };
  EXPECT_EQ(refused(place / "link/second/task", place.path()), link(place / "link"));
  EXPECT_EQ(refused(place / "link/second/task", place / "link"), link(place / "link/second"));
  EXPECT_EQ(refused(place / "link/second", place / "link"), link(place / "link/second"));
  EXPECT_EQ(refused(place / "link/second//", place / "link"), link(place / "link/second"));
  EXPECT_EQ(refused(place / "link/group/task", place / "link"), "");
  EXPECT_EQ(refused(place / "link/second/task", ""), "");
  EXPECT_EQ(refused(place / "link/second/task", place / "lin"), "") << "not above it";
  EXPECT_EQ(open_directory(place / "run/none", place / "run").error().number, ENOENT);
  EXPECT_EQ(open_directory("", "").error().number, ENOENT);
  EXPECT_TRUE(is_refused(place / "link/second/file",
                         {.flags = O_WRONLY | O_CREAT, .below = place.path()},
                         link(place / "link")));
  EXPECT_TRUE(std::filesystem::is_empty(place / "run/group/task"));
}

TEST(OpenFile, WritesNothingToAPipeThatSomebodyReads) {
  const TemporaryDirectory place;
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  const Descriptor reader(::open((place / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.is_open());
  EXPECT_TRUE(
      is_refused(place / "fifo", {.flags = O_WRONLY},
                 fmt::format("'{}' is a pipe, not a regular file; remove it", place / "fifo")));
}

TEST(OpenFile, EmptiesOnlyAFileThatIsWhatItMustBe) {
  const TemporaryDirectory place;
  const std::string file = place / "file";
  const int empties = O_WRONLY | O_TRUNC;
  ASSERT_TRUE(write_file_atomically(file, "text"));
  const uid_t us = ::geteuid();
  EXPECT_TRUE(is_refused(
      file, {.flags = empties, .owner = us + 1},
      fmt::format("'{}' belongs to user {}, not to user {}; remove it", file, us, us + 1)));
  EXPECT_TRUE(
      is_refused(file, {.flags = empties, .size_max = Bytes{3}},
                 fmt::format("'{}' has 4 B, more than the 3 B it may have; remove it", file)));
  ASSERT_EQ(::link(file.c_str(), (place / "second").c_str()), 0);
  EXPECT_TRUE(is_refused(file, {.flags = empties},
                         fmt::format("'{}' has 2 names (hard links); remove it", file)));
  EXPECT_EQ(content_of(file), "text");
  EXPECT_TRUE(open_file(file, {})) << "to read it changes no other file";
  std::filesystem::remove(place / "second");
  EXPECT_TRUE(open_file(file, {.flags = empties, .owner = us, .size_max = Bytes{4}}));
  EXPECT_EQ(content_of(file), "");
}

TEST(OpenFile, MakesAFileThatOnlyItsUserCanReadUnlessItIsToldOtherwise) {
  const TemporaryDirectory place;
  const mode_t before = ::umask(022);
  EXPECT_TRUE(open_file(place / "own", {.flags = O_WRONLY | O_CREAT}));
  EXPECT_TRUE(open_file(place / "shared", {.flags = O_WRONLY | O_CREAT, .mode = 0666}));
  ::umask(before);
  EXPECT_EQ(permissions_of(place / "own"), 0600U);
  EXPECT_EQ(permissions_of(place / "shared"), 0644U);
}

TEST(OpenFile, TellsAMissingFileAndOneThatIsThereFromAnotherThing) {
  const TemporaryDirectory place;
  const auto missing = open_file(place / "file", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().number, ENOENT);
  EXPECT_EQ(missing.error().error.message,
            fmt::format("cannot read '{}': no such file or directory", place / "file"));
  const int makes = O_WRONLY | O_CREAT | O_EXCL;
  EXPECT_TRUE(open_file(place / "file", {.flags = makes}));
  const auto there = open_file(place / "file", {.flags = makes});
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().number, EEXIST);
}

TEST(OpenFile, FollowsALinkToAFileWhereThatIsSaid) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "mine", "mine"));
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(place / "mine", place / "link");
  std::filesystem::create_symlink(place / "fifo", place / "trap");
  const auto opened = open_file(place / "link", {.links = Links::Follow});
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->facts.st_size, 4);
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    EXPECT_TRUE(holds_in_time([&] {
      return is_refused(place / "trap", {.flags = flags, .links = Links::Follow},
                        fmt::format("'{}' is a pipe, not a regular file{}", place / "trap",
                                    flags == O_RDONLY ? "" : "; remove it"));
    })) << flags;
  }
}

TEST(OpenFile, SaysWithoutOpeningWhyItWouldRefuseAFile) {
  const TemporaryDirectory place;
  place.make("directory");
  place.write("directory/file", "mine");
  std::filesystem::create_symlink("directory", place / "way");
  std::filesystem::create_symlink("directory/file", place / "link");
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  const FileOptions writes{.flags = O_RDWR};
  EXPECT_EQ(reason_to_refuse_at(place / "missing", writes), std::nullopt);
  EXPECT_EQ(reason_to_refuse_at(place / "way/file", writes), std::nullopt);
  EXPECT_EQ(reason_to_refuse_at(place / "link", writes), "is a symbolic link, not a regular file");
  EXPECT_EQ(reason_to_refuse_at(place / "link", {.links = Links::Follow}), std::nullopt);
  EXPECT_EQ(reason_to_refuse_at(place / "fifo", {}), "is a pipe, not a regular file");
  ASSERT_EQ(::link((place / "directory/file").c_str(), (place / "second").c_str()), 0);
  EXPECT_EQ(reason_to_refuse_at(place / "second", writes), "has 2 names (hard links)");
  EXPECT_EQ(reason_to_refuse_at(place / "second", {}), std::nullopt);
  EXPECT_EQ(reason_to_refuse_at(place / "second", {.links = Links::RefuseAny}),
            "has 2 names (hard links); if it is the right file, replace it with a copy");
  EXPECT_EQ(reason_to_refuse_at(place / "link", {.links = Links::RefuseAny}),
            "is a symbolic link, not a regular file");
}

TEST(OpenFile, GivesAProgramAFileAsItWouldHaveOpenedIt) {
  const TemporaryDirectory place;
  const auto opened = open_file(place / "log", {.flags = O_WRONLY | O_CREAT | O_APPEND});
  ASSERT_TRUE(opened);
  const int file = opened->descriptor.get();
  EXPECT_EQ(::fcntl(file, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
  EXPECT_EQ(::fcntl(file, F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace trainyard::sys
