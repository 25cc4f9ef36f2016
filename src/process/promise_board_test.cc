// Yards that read of each other on real files: processes of their own where it matters whose a lock
// is.
#include "process/promise_board.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "process/test_mounts.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/test_directory.h"
#include "wire/promises_text.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Board : public ::testing::Test {
 protected:
  PromiseBoard open() { return PromiseBoard::open({directory()}).value(); }
  [[nodiscard]] std::string directory() const { return directory_.path() + "/board"; }
  [[nodiscard]] std::string path_of(const std::string& ticket) const {
    return directory() + "/trainyard-" + ticket;
  }
  void put(const std::string& ticket, const std::string& text) const {
    std::ofstream(path_of(ticket)) << text;
  }

  sys::TemporaryDirectory directory_;
};

model::Promises promises(const PromiseBoard& of, Bytes memory) {
  return {.ticket = of.ticket(), .held = {.memory = memory, .tasks = 1}};
}

std::vector<Bytes> seen_by(PromiseBoard& board) {
  std::vector<Bytes> memory;
  for (const PromiseBoard::Other& other : board.read()) {
    memory.push_back(other.promises.held.memory);
  }
  return memory;
}

/// A process that has opened a board, promised 3 GB, and waits to be ended.
class Elsewhere {
 public:
  explicit Elsewhere(const std::string& directory, uid_t user = ::getuid()) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (user != ::getuid() && ::setresuid(user, user, user) != 0) ::_exit(1);
      Result<PromiseBoard> board = PromiseBoard::open({directory});
      if (!board) ::_exit(1);
      board->write(promises(*board, gb(3)));
      static_cast<void>(::write(ends[1], "x", 1));
      for (;;) ::pause();
    }
    ::close(ends[1]);
    if (pid_ < 0) {
      // No number of a process: a signal to it would be one to all.
      ADD_FAILURE() << "cannot fork";
      pid_ = 0;
    }
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1) << "it could not open the board";
    ::close(ends[0]);
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  ~Elsewhere() { kill(); }

  void stop() const {
    if (pid_ == 0) return;
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

TEST(Boards, ReadNoFileOnWhichAFileSystemIsMounted) {
  in_own_mounts([] {
    const sys::TemporaryDirectory place;
    auto board = PromiseBoard::open({place.path()}).value();
    const Elsewhere other(place.path());
    EXPECT_THAT(seen_by(board), ElementsAre(gb(3)));
    for (const auto& entry : std::filesystem::directory_iterator(place.path())) {
      const std::string path = entry.path();
      if (path == board.path()) continue;
      if (::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) skip_for_mounts();
    }
    EXPECT_THAT(seen_by(board), IsEmpty()) << "another user's may not answer";
  });
}

TEST_F(Board, EachReadsWhatTheOthersWriteAndNotItsOwn) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  EXPECT_THAT(seen_by(one), ElementsAre(Bytes{}));
  other.write(promises(other, gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  other.write(promises(other, mb(1)));
  EXPECT_THAT(seen_by(one), ElementsAre(mb(1))) << "a shorter text in the place of a longer one";
  const std::vector<PromiseBoard::Other> others = one.read();
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_EQ(others.front().user, ::geteuid());
  EXPECT_TRUE(others.front().is_ours);
  EXPECT_EQ(others.front().promises, promises(other, mb(1)));
  EXPECT_THAT(one.take_notes(), IsEmpty());
}

TEST_F(Board, AFileThatSomebodyDeletesIsMadeAgain) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  one.write(promises(one, gb(2)));
  EXPECT_THAT(seen_by(other), ElementsAre(gb(2)));
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(::unlink(one.path().c_str()), 0);
    EXPECT_THAT(seen_by(one), ElementsAre(Bytes{}));
    EXPECT_THAT(seen_by(other), ElementsAre(gb(2))) << "as it was said before";
    one.write(promises(one, gb(3)));
    EXPECT_THAT(seen_by(other), ElementsAre(gb(3)));
    one.write(promises(one, gb(2)));
  }
  std::filesystem::remove_all(directory());
  EXPECT_THAT(seen_by(one), IsEmpty()) << "of another directory the other knows with its next look";
  EXPECT_THAT(seen_by(other), ElementsAre(gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(Bytes{}));
  EXPECT_THAT(one.take_notes(), IsEmpty());
}

TEST_F(Board, TheOlderHasTheSmallerTicketAndTheDirectoryIsForAll) {
  const PromiseBoard one = open();
  const PromiseBoard other = open();
  EXPECT_LE(one.ticket().substr(0, 16), other.ticket().substr(0, 16));
  EXPECT_NE(one.ticket(), other.ticket());
  struct stat seen{};
  ASSERT_EQ(::stat(directory().c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777U, 01777U);
  ASSERT_EQ(::stat(one.path().c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777U, 0644U);
}

TEST_F(Board, WhoHasEndedHasPromisedNothing) {
  PromiseBoard one = open();
  {
    PromiseBoard other = open();
    other.write(promises(other, gb(2)));
    EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  }
  EXPECT_THAT(seen_by(one), IsEmpty());
  EXPECT_THAT(sys::names_in(directory()), ElementsAre("trainyard-" + one.ticket()));
}

TEST_F(Board, WhoWasKilledHasPromisedNothingAndTheNextTakesItsFileAway) {
  PromiseBoard one = open();
  {
    Elsewhere other(directory());
    EXPECT_THAT(seen_by(one), ElementsAre(gb(3)));
    other.kill();
    EXPECT_THAT(seen_by(one), IsEmpty());
    EXPECT_THAT(sys::names_in(directory()), SizeIs(2));
  }
  const PromiseBoard next = open();
  EXPECT_THAT(
      sys::names_in(directory()),
      ::testing::UnorderedElementsAre("trainyard-" + one.ticket(), "trainyard-" + next.ticket()));
}

TEST_F(Board, WhoIsStoppedHasPromisedWhatItHad) {
  PromiseBoard one = open();
  const Elsewhere other(directory());
  other.stop();
  EXPECT_THAT(seen_by(one), ElementsAre(gb(3)));
}

TEST_F(Board, TheLockIsHeldAsLongAsAnybodyHasTheDescriptor) {
  PromiseBoard one = open();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t yard = ::fork();
  if (yard == 0) {
    PromiseBoard board = open();
    board.write(promises(board, gb(5)));
    const pid_t its_keeper = ::fork();
    if (its_keeper == 0) {
      ::close(ends[1]);
      for (;;) ::pause();
    }
    static_cast<void>(::write(ends[1], &its_keeper, sizeof(its_keeper)));
    ::close(ends[1]);
    for (;;) ::pause();
  }
  ASSERT_GT(yard, 0);
  ::close(ends[1]);
  pid_t its_keeper = 0;
  ASSERT_EQ(::read(ends[0], &its_keeper, sizeof(its_keeper)),
            static_cast<ssize_t>(sizeof(its_keeper)));
  ::close(ends[0]);
  ASSERT_GT(its_keeper, 0);
  ::kill(yard, SIGKILL);
  ::waitpid(yard, nullptr, 0);
  EXPECT_THAT(seen_by(one), ElementsAre(gb(5))) << "its keeper has tasks to end";
  ::kill(its_keeper, SIGKILL);
  // It is not a child of ours: only its lock shows its end.
  for (int i = 0; i < 100'000 && !seen_by(one).empty(); ++i) PromiseBoard::let_others_go_on();
  EXPECT_THAT(seen_by(one), IsEmpty());
}

TEST_F(Board, AnotherUsersFileIsReadAndIsThatUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  PromiseBoard one = open();
  constexpr uid_t kNobody = 65534;
  const Elsewhere other(directory(), kNobody);
  const std::vector<PromiseBoard::Other> others = one.read();
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_EQ(others.front().user, kNobody);
  EXPECT_FALSE(others.front().is_ours);
  EXPECT_EQ(others.front().promises.held.memory, gb(3));
}

TEST_F(Board, WhatIsBrokenInAFileThatLivesIsSaidOnceAndWhatWasReadBeforeCounts) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  other.write(promises(other, gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  put(other.ticket(), "nonsense");
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("cannot be read: it is not whole")));
  other.write(promises(other, gb(4)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(4)));
}

TEST_F(Board, NobodyHasWaitedForLongerThanTheirFileIsThere) {
  constexpr std::int64_t kMilliseconds = 1'000;
  const std::int64_t before = sys::unix_milliseconds() / kMilliseconds;
  PromiseBoard one = open();
  PromiseBoard other = open();
  other.write({.ticket = other.ticket(), .want = model::Want{.gpus = 1, .since_unix_s = 1}});
  std::vector<PromiseBoard::Other> others = one.read();
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_GE(others.front().promises.want->since_unix_s, before - 1) << "a clock of ticks";
  const std::int64_t later = before + 3'600;
  other.write({.ticket = other.ticket(), .want = model::Want{.gpus = 1, .since_unix_s = later}});
  others = one.read();
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_EQ(others.front().promises.want->since_unix_s, later);
}

TEST_F(Board, NothingIsReservedForLongerThanItsFileIsThere) {
  constexpr std::int64_t kMilliseconds = 1'000;
  const std::int64_t before = sys::unix_milliseconds() / kMilliseconds;
  PromiseBoard one = open();
  PromiseBoard other = open();
  model::HeldPromise held{.tasks = 1, .since_unix_s = 1};
  held.cards.push_back({.uuid = "GPU-0", .tasks = 1, .since_unix_s = 1});
  other.write({.ticket = other.ticket(), .held = held});
  const std::vector<PromiseBoard::Other> others = one.read();
  ASSERT_THAT(others, SizeIs(1));
  const model::HeldPromise& seen = others.front().promises.held;
  EXPECT_GE(seen.since_unix_s, before - 1);
  ASSERT_THAT(seen.cards, SizeIs(1));
  EXPECT_GE(seen.cards.front().since_unix_s, before - 1);
}

TEST_F(Board, AFileOfAnotherTicketIsBelievedNothing) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  put(other.ticket(), wire::sealed(wire::to_text({.ticket = "1-a", .held = {.memory = gb(9)}}), 1));
  EXPECT_THAT(seen_by(one), IsEmpty());
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("it is that of another run")));
}

TEST_F(Board, AHugeFileIsNotRead) {
  PromiseBoard one = open();
  const PromiseBoard other = open();
  ASSERT_EQ(::truncate(other.path().c_str(), off_t{1} << 40U), 0);
  EXPECT_THAT(seen_by(one), IsEmpty());
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("it has 1099511627776 bytes")));
}

TEST_F(Board, NoUserOwnsTheUsualDirectory) {
  ASSERT_EQ(::unsetenv("TRAINYARD_PROMISES"), 0);
  const std::string usual = PromiseBoard::usual_directories().front();
  struct stat seen{};
  ASSERT_EQ(::stat(usual.c_str(), &seen), 0) << usual;
  EXPECT_EQ(seen.st_uid, 0U);
  EXPECT_NE(seen.st_mode & S_ISVTX, 0U) << "files are their owners' alone";
}

TEST_F(Board, WhoPromisesNothingSeesTheFilesOfAllDirectories) {
  PromiseBoard one = open();
  one.write(promises(one, gb(2)));
  const std::vector<PromiseBoard::Other> others =
      PromiseBoard::look_at({directory_.path(), directory()});
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_EQ(others.front().promises.held.memory, gb(2));
}

TEST_F(Board, WhatNobodyHasLockedOrIsNoFileCountsForNothing) {
  PromiseBoard one = open();
  const std::string text =
      wire::sealed(wire::to_text({.ticket = "0-a", .held = {.memory = gb(9)}}), 1);
  put("0-a", text);
  put("not-a-ticket", text);
  std::ofstream(directory() + "/0-e") << text;
  std::filesystem::create_symlink("trainyard-0-a", path_of("0-b"));
  std::filesystem::create_directory(path_of("0-c"));
  ASSERT_EQ(::mkfifo(path_of("0-d").c_str(), 0644), 0);
  EXPECT_THAT(seen_by(one), IsEmpty());
  EXPECT_THAT(one.take_notes(), IsEmpty());
  const PromiseBoard next = open();
  EXPECT_FALSE(std::filesystem::exists(path_of("0-a"))) << "ours, and nobody's";
  EXPECT_TRUE(std::filesystem::exists(path_of("not-a-ticket")));
  EXPECT_TRUE(std::filesystem::exists(directory() + "/0-e")) << "a file of another program";
}

TEST_F(Board, OfOneUserTheOldestFilesAreReadAndThatThereAreMoreIsSaidOnce) {
  PromiseBoard one = open();
  std::vector<PromiseBoard> others;
  for (std::size_t i = 0; i < PromiseBoard::kFilesOfUserMax + 1; ++i) others.push_back(open());
  EXPECT_THAT(one.read(), SizeIs(PromiseBoard::kFilesOfUserMax));
  EXPECT_THAT(one.read(), SizeIs(PromiseBoard::kFilesOfUserMax));
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("more than 32 files of user ")));
}

TEST_F(Board, FilesOfOneUserCostALimitedNumberOfDescriptors) {
  PromiseBoard one = open();
  for (int i = 0; i < 100; ++i) put(fmt::format("{:016}-a", i), "");
  const std::size_t before = sys::names_in("/proc/self/fd").size();
  EXPECT_THAT(one.read(), IsEmpty());
  EXPECT_LE(sys::names_in("/proc/self/fd").size(), before + PromiseBoard::kFilesOfUserMax);
}

TEST_F(Board, LockedFilesOfOneUserDoNotHideTheRunsOfAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  PromiseBoard one = open();
  std::vector<PromiseBoard> hiding;
  for (std::size_t i = 0; i < PromiseBoard::kFilesMax; ++i) {
    hiding.push_back(open());
    ASSERT_EQ(::chown(hiding.back().path().c_str(), 65534, 65534), 0);
  }
  PromiseBoard youngest = open();
  youngest.write(promises(youngest, gb(2)));
  EXPECT_THAT(seen_by(one), ::testing::Contains(gb(2)));
  EXPECT_THAT(one.read(), SizeIs(PromiseBoard::kFilesOfUserMax + 1));
}

TEST_F(Board, OfTooManyFilesOfManyUsersTheOldestOfEachIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  PromiseBoard one = open();
  for (std::size_t i = 0; i < PromiseBoard::kFilesMax; ++i) {
    const std::string name = fmt::format("{:016}-a", i);
    put(name, "");
    const auto user = static_cast<uid_t>(60'000 + (i / PromiseBoard::kFilesOfUserMax));
    ASSERT_EQ(::chown(path_of(name).c_str(), user, user), 0);
  }
  PromiseBoard youngest = open();
  youngest.write(promises(youngest, gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("more than 256 files are in ")));
}

TEST_F(Board, ATextWhoseSealHasNotChangedIsNotReadAgain) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  other.write(promises(other, gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  // After the seal, so that a reader finds that it is not whole.
  ASSERT_EQ(::pwrite(other.descriptor(), "x", 1, wire::kPromiseSealBytes), 1);
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  EXPECT_THAT(one.take_notes(), IsEmpty());
}

TEST_F(Board, ADirectoryThatCannotBeReadLeavesInSightWhatIsOpen) {
  PromiseBoard one = open();
  PromiseBoard other = open();
  other.write(promises(other, gb(2)));
  EXPECT_THAT(seen_by(one), ElementsAre(gb(2)));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  other.write(promises(other, gb(3)));
  const std::vector<Bytes> seen = seen_by(one);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(seen, ElementsAre(gb(3)));
  EXPECT_THAT(one.take_notes(), ElementsAre(HasSubstr("may not be seen")));
}

TEST_F(Board, WhereNoneCanBeMadeItSaysWhyAndTheNextDirectoryIsTaken) {
  const std::string nowhere = directory_.path() + "/nobody-made-this/board";
  const Result<PromiseBoard> none = PromiseBoard::open({nowhere, "/proc/self/board"});
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message,
              HasSubstr("cannot make '" + nowhere +
                        "': no such file or directory; cannot make '/proc/self/board'"));
  const Result<PromiseBoard> second = PromiseBoard::open({nowhere, directory()});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->directory(), directory());
}

TEST_F(Board, ADirectoryThatMayNotBeWrittenIsNone) {
  // No user can make a file here, not even root, who may write everywhere else.
  EXPECT_FALSE(PromiseBoard::open({"/proc/self/fdinfo"}).has_value());
  if (::geteuid() == 0) return;
  std::filesystem::create_directory(directory());
  ASSERT_EQ(::chmod(directory().c_str(), 0555), 0);
  EXPECT_FALSE(PromiseBoard::open({directory()}).has_value());
}

TEST_F(Board, WhoReadsWhileAnotherWritesNeverReadsHalf) {
  PromiseBoard one = open();
  const pid_t writer = ::fork();
  if (writer == 0) {
    PromiseBoard board = open();
    for (std::int64_t i = 0;; i = (i + 1) % 1'000) {
      // Both numbers are the same one, in texts of many lengths.
      board.write({.ticket = board.ticket(),
                   .name = std::string(static_cast<std::size_t>(i % 60), 'n'),
                   .held = {.memory = {i * i * i}, .unused = {i * i * i}, .tasks = 1}});
    }
  }
  ASSERT_GT(writer, 0);
  int read = 0;
  while (read < 20'000) {
    for (const PromiseBoard::Other& other : one.read()) {
      ASSERT_EQ(other.promises.held.memory, other.promises.held.unused);
      ++read;
    }
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
}

}  // namespace
}  // namespace trainyard::process
