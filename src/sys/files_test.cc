// Whole files in and out, directories, paths, and the holder of the lock of a run directory.
#include "sys/files.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Files, ReadsAWholeFileUpToItsBound) {
  const TemporaryDirectory place;
  const std::string text(100'000, 'x');
  ASSERT_TRUE(write_file_atomically(place / "a", text));
  EXPECT_EQ(read_file(place / "a", Bytes{100'000}).value(), text);
  EXPECT_EQ(read_file(place / "a", Bytes{99'999}).error().message,
            "'" + place.path() + "/a' is larger than 100 kB");
  EXPECT_EQ(read_file(place / "b", mib(1)).error().message,
            "cannot read '" + place.path() + "/b': no such file or directory");
  EXPECT_THAT(read_file(place.path(), mib(1)).error().message, EndsWith("is a directory"));
}

TEST(Files, SayOfAnErrorWhetherTheMachineIsToBlame) {
  const TemporaryDirectory place;
  EXPECT_FALSE(read_file(place / "none", mib(1)).error().of_machine);
  for (const int error : {ENOSPC, EDQUOT, EAGAIN, ENOMEM, EMFILE, ENFILE, EROFS, EIO}) {
    EXPECT_TRUE(system_error("cannot write", error).of_machine) << error;
    EXPECT_TRUE(system_error("cannot write", error).in("here").of_machine) << error;
  }
  for (const int error : {ENOENT, EACCES, ENOEXEC, E2BIG}) {
    EXPECT_FALSE(system_error("cannot write", error).of_machine) << error;
  }
}

TEST(Files, ReadsAFileWithoutASizeAndNoMoreOfItThanAllowed) {
  EXPECT_THAT(read_file("/proc/self/status", mib(1)).value(), HasSubstr("Pid:"));
  EXPECT_EQ(read_file("/dev/zero", kib(64)).error().message, "'/dev/zero' is larger than 66 kB");
}

TEST(Files, TakesOnlyAPlainFileFromATask) {
  const TemporaryDirectory place;
  EXPECT_EQ(read_plain_file(place / "a", mib(1)).value(), std::nullopt);
  ASSERT_TRUE(write_file_atomically(place / "a", "{}"));
  EXPECT_EQ(read_plain_file(place / "a", mib(1)).value(), "{}");

  // A fifo that nobody writes to would be waited for.
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_plain_file(place / "fifo", mib(1)).error().message,
            "'" + place.path() + "/fifo' is a pipe, not a regular file");
  EXPECT_EQ(read_plain_file(place.path(), mib(1)).error().message,
            "'" + place.path() + "' is a directory, not a regular file");
  EXPECT_THAT(read_plain_file("/dev/zero", mib(1)).error().message,
              HasSubstr("is a device, not a regular file"));
}

TEST(Files, ExistWhereALinkLeadsToThem) {
  const TemporaryDirectory place;
  place.write("a", "mine");
  std::filesystem::create_symlink(place / "a", place / "link");
  std::filesystem::create_symlink(place / "none", place / "broken");
  EXPECT_TRUE(exists(place / "a"));
  EXPECT_TRUE(exists(place / "link"));
  EXPECT_TRUE(exists(place.path())) << "a directory does, too";
  EXPECT_FALSE(exists(place / "none"));
  EXPECT_FALSE(exists(place / "broken"));
  EXPECT_FALSE(exists(place / "a/b")) << "a file has nothing below it";
  EXPECT_FALSE(exists(""));
}

TEST(Files, FollowsALinkOnlyWhereThatIsSaid) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "a", "mine"));
  std::filesystem::create_symlink(place / "a", place / "link");
  std::filesystem::create_symlink(place / "none", place / "broken");
  EXPECT_EQ(read_plain_file(place / "link", mib(1)).value(), "mine");
  EXPECT_EQ(read_plain_file(place / "broken", mib(1)).value(), std::nullopt);
  EXPECT_EQ(read_end_of_file(place / "link", 2).value(), "ne");
  for (const std::string name : {"link", "broken"}) {
    const std::string refused =
        "'" + place.path() + "/" + name + "' is a symbolic link, not a regular file";
    EXPECT_EQ(read_plain_file(place / name, mib(1), Links::Refuse).error().message, refused);
    EXPECT_EQ(read_end_of_file(place / name, 2, Links::Refuse).error().message, refused);
  }
}

TEST(Files, AreReadAndReplacedThroughNoLinkBelowADirectory) {
  const TemporaryDirectory place;
  std::filesystem::create_directories(place / "run/group");
  place.write("run/group/a", "mine");
  std::filesystem::create_symlink(place / "run", place / "link");
  std::filesystem::create_symlink(place / "run/group", place / "run/second");
  const std::string below = place / "link";
  const std::string refused =
      "'" + below + "/second' is a symbolic link, not a directory; remove it";
  const std::string path = below + "/second/a";
  EXPECT_EQ(read_plain_file(path, mib(1), Links::Refuse, below).error().message, refused);
  EXPECT_EQ(read_end_of_file(path, 2, Links::Refuse, below).error().message, refused);
  EXPECT_EQ(replace_file(path, "other", below).error().message, refused);
  EXPECT_EQ(content_of(path), "mine");
  EXPECT_TRUE(replace_file(below + "/group/a", "new", below)) << "the run may be behind a link";
  EXPECT_EQ(read_plain_file(below + "/group/a", mib(1), Links::Refuse, below).value(), "new");
  EXPECT_EQ(read_plain_file(below + "/none/a", mib(1), Links::Refuse, below).value(), std::nullopt);
}

TEST(Files, StayInTheDirectoryInWhichTheyWereMade) {
  const TemporaryDirectory place;
  std::filesystem::create_directories(place / "run/group");
  std::filesystem::create_directories(place / "elsewhere");
  Result<FreshFile> file = FreshFile::make(place / "run/group/a", place / "run");
  ASSERT_TRUE(file);
  std::filesystem::rename(place / "run/group", place / "run/moved");
  std::filesystem::create_symlink(place / "elsewhere", place / "run/group");
  ASSERT_TRUE(file->write("mine"));
  EXPECT_TRUE(file->put_in_place(FreshFile::Lasting::ThroughCrash));
  EXPECT_EQ(content_of(place / "run/moved/a"), "mine");
  EXPECT_TRUE(std::filesystem::is_empty(place / "elsewhere"));
}

TEST(Files, AreWrittenIntoTheCurrentDirectoryByTheirName) {
  const TemporaryDirectory place;
  EXPECT_TRUE(holds_in_time([&place] {
    std::filesystem::current_path(place.path());
    return replace_file("a", "mine").has_value();
  }));
  EXPECT_EQ(content_of(place / "a"), "mine");
  EXPECT_THAT(names_in(place.path()), UnorderedElementsAre("a"));
}

TEST(Files, WritesAnewWhateverStandsInTheWay) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "mine", "mine"));
  ASSERT_EQ(::mkfifo((place / "a.new").c_str(), 0600), 0);
  std::filesystem::create_symlink(place / "mine", place / "b.new");
  ASSERT_EQ(::mkfifo((place / "b").c_str(), 0600), 0);
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(replace_file(place / name, "new"));
    EXPECT_EQ(content_of(place / name), "new");
  }
  EXPECT_EQ(content_of(place / "mine"), "mine");

  // A file that is given up leaves the old one in place.
  {
    auto file = FreshFile::make(place / "a").value();
    ASSERT_TRUE(file.write(std::string(1'000'000, 'x')));
  }
  EXPECT_EQ(content_of(place / "a"), "new");
  EXPECT_THAT(names_in(place.path()), UnorderedElementsAre("a", "b", "mine"));
}

TEST(RunLock, WaitsForNobodyWhateverStandsInItsPlace) {
  const TemporaryDirectory place;
  const auto told = [&](const std::string& what) {
    return "'" + place.path() + "/lock' " + what +
           "; remove it if no run of trainyard is active there";
  };
  ASSERT_EQ(::mkfifo((place / "lock").c_str(), 0600), 0);
  EXPECT_EQ(RunLock::take(place.path()).error().message, told("is a pipe, not a regular file"));
  EXPECT_EQ(RunLock::holder(place.path()), std::nullopt);
  std::filesystem::remove(place / "lock");
  std::filesystem::create_symlink(place / "elsewhere", place / "lock");
  EXPECT_EQ(RunLock::take(place.path()).error().message,
            told("is a symbolic link, not a regular file"));
  EXPECT_FALSE(std::filesystem::exists(place / "elsewhere"));
  std::filesystem::remove(place / "lock");
  ASSERT_TRUE(write_file_atomically(place / "mine", "mine"));
  std::filesystem::create_hard_link(place / "mine", place / "lock");
  EXPECT_EQ(RunLock::take(place.path()).error().message, told("has 2 names (hard links)"));
  EXPECT_EQ(content_of(place / "mine"), "mine");
  std::filesystem::remove(place / "lock");
  EXPECT_TRUE(RunLock::take(place.path()));
}

TEST(Files, RefusesAHugeFileWithoutReadingIt) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "huge", ""));
  std::filesystem::resize_file(place / "huge", 1'000'000'000'000);
  EXPECT_EQ(read_plain_file(place / "huge", mib(1)).error().message,
            "'" + place.path() + "/huge' has 1 TB, more than the 1 MB it may have");
  std::filesystem::resize_file(place / "huge", mib(1).count + 1);
  EXPECT_EQ(
      read_plain_file(place / "huge", mib(1)).error().message,
      "'" + place.path() + "/huge' has 1048577 bytes, more than the 1048576 bytes it may have");
}

TEST(Files, ReplacesAFileAsAWhole) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "a", "old"));
  ASSERT_TRUE(write_file_atomically(place / "a", "new"));
  EXPECT_EQ(content_of(place / "a"), "new");
  EXPECT_FALSE(std::filesystem::exists(place / "a.new"));

  // A directory cannot be replaced: it is left as it was.
  ASSERT_TRUE(make_directories(place / "d/e"));
  EXPECT_FALSE(write_file_atomically(place / "d", "text"));
  EXPECT_TRUE(std::filesystem::is_directory(place / "d/e"));
  EXPECT_FALSE(std::filesystem::exists(place / "d.new"));
}

TEST(Files, ThatCannotBeReplacedAreNamedInTheError) {
  const TemporaryDirectory place;
  EXPECT_EQ(write_file_atomically(place / "none/a", "text").error().message,
            "cannot write '" + place.path() + "/none/a': no such file or directory");
}

TEST(Files, MakesADirectoryWithThoseAboveIt) {
  const TemporaryDirectory place;
  EXPECT_TRUE(make_directories(place / "a/b/c"));
  EXPECT_TRUE(make_directories(place / "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(place / "a/b/c"));
  ASSERT_TRUE(write_file_atomically(place / "file", ""));
  EXPECT_EQ(make_directories(place / "file").error().message,
            "cannot make the directory '" + place.path() + "/file': not a directory");
  EXPECT_THAT(make_directories(place / "file/x").error().message, EndsWith("not a directory"));
}

TEST(Files, MakesADirectoryThatOnlyWeMayEnter) {
  const TemporaryDirectory place;
  struct stat about{};
  ASSERT_EQ(::stat(place.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0700U);
}

/// A file system that keeps in mind what was looked for and not found.
bool remembers_absence(const std::string& directory) {
  constexpr long kExt4 = 0xEF53;
  constexpr long kXfs = 0x58465342;
  struct statfs about{};
  return ::statfs(directory.c_str(), &about) == 0 &&
         (about.f_type == kExt4 || about.f_type == kXfs);
}

TEST(Files, KnowsWithoutTheDiskThatAFileIsAbsentOnlyIfItWasLookedFor) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "there", "{}"));
  ASSERT_EQ(::symlink("gone", (place / "link").c_str()), 0);
  ASSERT_EQ(::mkfifo((place / "pipe").c_str(), 0600), 0);
  for (const std::string name : {"there", "link", "pipe"}) {
    EXPECT_FALSE(is_known_to_be_absent(place / name)) << name;
  }
  if (!remembers_absence(place.path()))
    GTEST_SKIP() << place.path() << " forgets what is not there";
  ASSERT_EQ(::unlink((place / "there").c_str()), 0);
  EXPECT_TRUE(is_known_to_be_absent(place / "there"));
}

TEST(Files, LooksAtAnEntryItselfAndAtNoMountedFileSystem) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "text", "12345"));
  ASSERT_EQ(::symlink("text", (place / "link").c_str()), 0);
  struct stat about{};
  ASSERT_EQ(::stat((place / "text").c_str(), &about), 0);
  const auto text = entry_facts(place / "text");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->mode, about.st_mode);
  EXPECT_EQ(text->owner, ::geteuid());
  EXPECT_EQ(text->inode, about.st_ino);
  EXPECT_TRUE(S_ISLNK(entry_facts(place / "link").value_or(EntryFacts{}).mode));
  for (const auto& [path, error] :
       {std::pair(place / "gone", ENOENT), std::pair(std::string("/proc"), EXDEV)}) {
    const auto facts = entry_facts(path);
    ASSERT_FALSE(facts.has_value()) << path;
    EXPECT_EQ(facts.error(), error) << path;
  }
}

TEST(Files, KnowsTheSizeOfPlainFilesAlone) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "text", "12345"));
  ASSERT_TRUE(write_file_atomically(place / "empty", ""));
  ASSERT_EQ(::symlink("text", (place / "link").c_str()), 0);
  ASSERT_EQ(::mkfifo((place / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(size_of_file(place / "text"), Bytes{5});
  EXPECT_EQ(size_of_file(place / "empty"), Bytes{0});
  for (const std::string name : {"link", "pipe", "gone"}) {
    EXPECT_EQ(size_of_file(place / name), std::nullopt) << name;
    EXPECT_EQ(known_size(place / name), std::nullopt) << name;
  }
  // If the kernel has nothing at hand, no size is known.
  EXPECT_EQ(known_size(place / "text").value_or(Bytes{5}), Bytes{5});
  EXPECT_EQ(known_size(place / "empty").value_or(Bytes{0}), Bytes{0});
}

TEST(Files, NamesWhatIsInADirectoryAsFarAsItCanBeRead) {
  const TemporaryDirectory place;
  EXPECT_THAT(names_in(place.path()), IsEmpty());
  ASSERT_TRUE(write_file_atomically(place / "b", ""));
  ASSERT_TRUE(make_directories(place / "a"));
  EXPECT_THAT(names_in(place.path()), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(names_in(place / "b"), IsEmpty());
  EXPECT_THAT(names_in(place / "c"), IsEmpty());
}

TEST(Files, KnowsTheCurrentDirectoryAndTheHost) {
  EXPECT_EQ(current_directory().value(), std::filesystem::current_path().string());
  EXPECT_FALSE(host_name().empty());
}

TEST(Files, KnowThePathOfADirectoryThatWasMoved) {
  const TemporaryDirectory place;
  place.make("run");
  const Descriptor run = open_directory(place / "run", {}).value();
  std::filesystem::rename(place / "run", place / "run.x");
  EXPECT_EQ(path_of(run), std::filesystem::canonical(place / "run.x").string());
  std::filesystem::remove(place / "run.x");
  EXPECT_EQ(path_of(run), "");
}

TEST(Files, GiveTheAccessToADirectoryBackToItsOwner) {
  const TemporaryDirectory place;
  for (const mode_t mode : {0500U, 0050U, 0U, 02755U}) {
    ASSERT_EQ(::chmod(place.path().c_str(), mode), 0);
    restore_access(place.path());
    struct stat about{};
    ASSERT_EQ(::stat(place.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777U, mode | 0700U);
  }
  place.write("file", "");
  ASSERT_EQ(::chmod((place / "file").c_str(), 0400), 0);
  restore_access(place / "file");
  EXPECT_EQ(std::filesystem::status(place / "file").permissions(),
            std::filesystem::perms::owner_read);
}

TEST(Files, GiveTheAccessToDirectoriesBackUpToTheFirstLink) {
  const TemporaryDirectory place;
  std::filesystem::create_directories(place / "run/group/task");
  std::filesystem::create_directories(place / "other/task");
  std::filesystem::create_directory_symlink(place / "other", place / "run/link");
  const auto mode_of = [&place](const std::string& name) {
    struct stat about{};
    EXPECT_EQ(::stat((place / name).c_str(), &about), 0);
    return about.st_mode & 07777U;
  };
  ASSERT_EQ(::chmod((place / "other/task").c_str(), 0500), 0);
  for (const std::string name : {"run/group/task", "run/group", "run"}) {
    ASSERT_EQ(::chmod((place / name).c_str(), 0), 0);
  }
  restore_access(place / "run/group/task", place / "run");
  restore_access(place / "run/link/task", place / "run");
  for (const std::string name : {"run", "run/group", "run/group/task"}) {
    EXPECT_EQ(mode_of(name), 0700U) << name;
  }
  EXPECT_EQ(mode_of("other/task"), 0500U);
}

TEST(RunLock, IsHeldByOneAndSaysByWhom) {
  const TemporaryDirectory place;
  EXPECT_EQ(RunLock::holder(place.path()), std::nullopt);
  {
    const auto lock = RunLock::take(place.path());
    ASSERT_TRUE(lock);
    EXPECT_EQ(RunLock::holder(place.path()), ::getpid());
    const auto second = RunLock::take(place.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message,
              "'" + place.path() + "' is in use by process " + std::to_string(::getpid()));
  }
  EXPECT_EQ(RunLock::holder(place.path()), std::nullopt);
  EXPECT_TRUE(RunLock::take(place.path()));
}

TEST(RunLock, IsInAFileThatNobodyElseCanReadAndSoLock) {
  const TemporaryDirectory place;
  ASSERT_TRUE(RunLock::take(place.path()));
  struct stat about{};
  ASSERT_EQ(::stat((place / "lock").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST(RunLock, GoesWithAProcessThatIsKilled) {
  const TemporaryDirectory place;
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = RunLock::take(place.path());
    while (lock) ::pause();
    ::_exit(1);
  }
  EXPECT_TRUE(eventually([&] { return RunLock::holder(place.path()) == holder; }));
  EXPECT_FALSE(RunLock::take(place.path()));
  ::kill(holder, SIGKILL);
  ASSERT_EQ(::waitpid(holder, nullptr, 0), holder);
  EXPECT_EQ(RunLock::holder(place.path()), std::nullopt);
  EXPECT_TRUE(RunLock::take(place.path()));
}

TEST(RunLock, SaysThatChildrenHoldItWhenTheProcessThatTookItHasExited) {
  const TemporaryDirectory place;
  std::array<int, 2> gate{};
  ASSERT_EQ(::pipe(gate.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto lock = RunLock::take(place.path());
    if (lock && ::fork() == 0) {
      ::close(gate[1]);
      char letter = 0;
      while (::read(gate[0], &letter, 1) > 0) continue;
    }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  const auto second = RunLock::take(place.path());
  ASSERT_FALSE(second);
  const std::string pid = std::to_string(parent);
  EXPECT_EQ(second.error().message, "'" + place.path() + "' is in use by the children of process " +
                                        pid + ", which has ended, or by process " + pid +
                                        " of another machine");
  for (const int end : gate) ::close(end);
  EXPECT_TRUE(eventually([&] { return RunLock::take(place.path()).has_value(); }));
}

TEST(ReservedSpace, IsTakenFromTheDiskAndHasNoName) {
  const TemporaryDirectory place{TemporaryDirectory::in_memory()};
  const Descriptor space = reserve_space(place.path(), mib(1));
  struct stat about{};
  ASSERT_EQ(::fstat(space.get(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, mib(1).count);
  EXPECT_THAT(names_in(place.path()), IsEmpty());
  EXPECT_FALSE(reserve_space(place / "none", mib(1)).is_open());
}

TEST(RunLock, NeedsADirectory) {
  const TemporaryDirectory place;
  EXPECT_EQ(RunLock::take(place / "none").error().message,
            "cannot write '" + place.path() + "/none/lock': no such file or directory");
}

}  // namespace
}  // namespace trainyard::sys
