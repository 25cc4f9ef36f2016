// Odd files in the place of those of tasks, and disks that do not answer, delay no other task.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/end_reader.h"
#include "process/keeper.h"
#include "process/test_mounts.h"
#include "process/test_yard.h"
#include "sys/descriptor.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

/// A file system that never answers, as a network disk whose server is gone. A process that uses it
/// waits until it is killed.
class DeadDisk {
 public:
  explicit DeadDisk(const std::string& directory)
      : server_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)), directory_(directory) {
    const std::string options =
        fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", server_.get());
    mounted_ = server_.is_open() && sys::make_directories(directory) &&
               ::mount("dead", directory.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  DeadDisk(DeadDisk&&) = delete;
  DeadDisk& operator=(DeadDisk&&) = delete;
  ~DeadDisk() { ::umount2(directory_.c_str(), MNT_DETACH); }
  [[nodiscard]] bool is_mounted() const { return mounted_; }

 private:
  sys::Descriptor server_;
  std::string directory_;
  bool mounted_ = false;
};

/// The texts of the notes.
std::vector<std::string> notes_of(const TestYard& yard) {
  std::vector<std::string> notes;
  for (const KeeperNews& news : yard.news) {
    if (const auto* note = std::get_if<KeeperNote>(&news)) notes.push_back(note->text);
  }
  return notes;
}

/// The number of notes that the process of this task directory has not begun.
std::ptrdiff_t count_late(const TestYard& yard, const std::string& task_directory) {
  return std::ranges::count(notes_of(yard),
                            "a process has not started for 0.2 s: the disk of its files ('" +
                                task_directory + "') or of its program does not answer");
}

TEST(KeeperDisk, StartsNothingWhoseLogIsNoPlainFile) {
  TestYard yard;
  const model::Launch launch = yard.launch({"true"});
  ASSERT_TRUE(sys::make_directories(launch.task_directory));
  const std::string elsewhere = yard.directory / "elsewhere";
  const std::string refused = "': a pipe, a link or a device is in its place; remove it";
  for (const std::string& log : {launch.stdout_path, launch.stderr_path}) {
    ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
    EXPECT_EQ(yard.refusal(launch), "cannot write '" + log + refused);
    {
      const sys::Descriptor reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      EXPECT_EQ(yard.refusal(launch), "cannot write '" + log + refused) << "with a reader";
    }
    std::filesystem::remove(log);

    ASSERT_TRUE(sys::write_file_atomically(elsewhere, "mine"));
    std::filesystem::create_symlink(elsewhere, log);
    EXPECT_EQ(yard.refusal(launch), "cannot write '" + log + refused);
    EXPECT_EQ(sys::content_of(elsewhere), "mine");
    std::filesystem::remove(log);

    std::filesystem::create_hard_link(elsewhere, log);
    EXPECT_EQ(yard.refusal(launch),
              "cannot write '" + log + "': it has a second name (a hard link); remove it");
    EXPECT_EQ(sys::content_of(elsewhere), "mine");
    std::filesystem::remove(log);

    const sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    log.copy(&address.sun_path[0], sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(yard.refusal(launch), "cannot write '" + log + refused);
    std::filesystem::remove(log);
  }
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
}

TEST(KeeperDisk, StartsNothingWhoseDirectoryIsALink) {
  TestYard yard;
  ASSERT_TRUE(sys::make_directories(yard.directory / "elsewhere"));
  model::Launch launch = yard.launch({"true"});
  std::filesystem::create_symlink(yard.directory / "elsewhere", launch.task_directory);
  for (const std::string& checkpoints : {std::string(), launch.task_directory + "/checkpoints"}) {
    launch.checkpoint_directory = checkpoints;
    EXPECT_EQ(yard.refusal(launch),
              "'" + launch.task_directory + "' is a symbolic link, not a directory; remove it");
  }
  EXPECT_TRUE(std::filesystem::is_empty(yard.directory / "elsewhere"));
}

TEST(KeeperDisk, StartsNothingBelowALinkInTheRunDirectory) {
  TestYard yard;
  const std::string elsewhere = yard.directory / "elsewhere";
  const std::string run = yard.directory / "run";
  ASSERT_TRUE(sys::make_directories(elsewhere));
  ASSERT_TRUE(sys::make_directories(run));
  model::Launch launch = yard.launch({"true"});
  launch.run_directory = run;
  launch.task_directory = run + "/group/task";
  launch.stdout_path = launch.stderr_path = launch.task_directory + "/stdout.log";
  std::filesystem::create_symlink(elsewhere, run + "/group");
  EXPECT_EQ(yard.refusal(launch),
            "'" + run + "/group' is a symbolic link, not a directory; remove it");
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

TEST(KeeperDisk, FollowsALinkThatIsOrIsAboveTheRunDirectory) {
  TestYard yard;
  ASSERT_TRUE(sys::make_directories(yard.directory / "elsewhere"));
  std::filesystem::create_symlink(yard.directory / "elsewhere", yard.directory / "home");
  std::filesystem::create_symlink(yard.directory / "elsewhere", yard.directory / "run");
  model::Launch launch = yard.shell("echo hello");
  for (const std::string& run : {yard.directory / "run", yard.directory / "home/me/run"}) {
    launch.run_directory = run;
    launch.task_directory = run + "/group/task";
    launch.stdout_path = launch.stderr_path = launch.task_directory + "/stdout.log";
    EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
    EXPECT_EQ(sys::content_of(launch.stdout_path), "hello\n");
  }
}

TEST(KeeperDisk, TellsWhatAnAttemptLeft) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0),
                    yard.shell("echo '{\"a\": 1}' > task0/result.json; echo trouble >&2; exit 3"));
  EXPECT_EQ(yard.wait_for_end().left,
            (LeftBehind{.result = "{\"a\": 1}\n", .trouble = {}, .errors = "trouble\n"}));
  // The errors of a task that ended well are not read; and an empty file is a file.
  yard.keeper.start(TestYard::key(1), yard.shell(": > task1/result.json; echo warning >&2", 1));
  EXPECT_EQ(yard.wait_for_end(1).left, (LeftBehind{.result = "", .trouble = {}, .errors = {}}));
  yard.keeper.start(TestYard::key(2), yard.launch({"true"}, 2));
  EXPECT_EQ(yard.wait_for_end(2).left, LeftBehind{});
}

TEST(KeeperDisk, TellsWhetherAnAttemptThatEndedBadlyStartedWithACheckpoint) {
  TestYard yard;
  const auto left_by = [&yard](const std::string& text, std::uint32_t number,
                               std::filesystem::file_time_type::duration age = {}) {
    model::Launch launch = yard.shell(text, number);
    launch.checkpoint_directory = launch.task_directory + "/checkpoints";
    if (age != age.zero()) {
      const std::string epoch = launch.checkpoint_directory + "/epoch";
      std::filesystem::create_directories(epoch);
      std::filesystem::last_write_time(epoch, std::filesystem::file_time_type::clock::now() - age);
    }
    yard.keeper.start(TestYard::key(number), launch);
    return yard.wait_for_end(number).left;
  };
  // Nothing was printed to the standard error, so that the output was read as well.
  LeftBehind left{.result = {}, .trouble = {}, .errors = {}, .errors_are_output = true};
  EXPECT_EQ(left_by("exit 3", 1), left) << "the directory is empty";
  EXPECT_EQ(left_by("rmdir task2/checkpoints; exit 3", 2), left);
  // An hour ahead, as no clock of a file is exact.
  EXPECT_EQ(left_by("exit 3", 4, -std::chrono::hours(1)), left) << "from after its start";
  left.has_checkpoint = true;
  EXPECT_EQ(left_by("exit 3", 0, std::chrono::hours(1)), left);
  EXPECT_EQ(left_by("true", 3, std::chrono::hours(1)), LeftBehind{}) << "it ended well";
}

TEST(KeeperDisk, TakesTheLastLinesOfTheOutputWhereTheStandardErrorIsEmpty) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell("seq 30; exit 3"));
  std::string last;
  for (int line = 11; line <= 30; ++line) last += fmt::format("{}\n", line);
  EXPECT_EQ(yard.wait_for_end().left,
            (LeftBehind{.result = {}, .trouble = {}, .errors = last, .errors_are_output = true}));
  // A standard error with text is all that counts, and nothing does after success.
  yard.keeper.start(TestYard::key(1), yard.shell("echo output; echo trouble >&2; exit 3", 1));
  EXPECT_EQ(yard.wait_for_end(1).left.errors, "trouble\n");
  yard.keeper.start(TestYard::key(2), yard.shell("echo output; : > task2/result.json", 2));
  EXPECT_EQ(yard.wait_for_end(2).left.errors, "");
}

TEST(KeeperDisk, PutsACopyOfTheResultThatItHasReadWhereThatOfTheLastAttemptIs) {
  TestYard yard;
  model::Launch first = yard.shell("echo '{\"a\": 1}' > task0/result.1.json; exit 3");
  first.result_path = yard.directory / "task0/result.1.json";
  first.result_copy_path = yard.directory / "task0/result.json";
  yard.keeper.start(TestYard::key(0), first);
  EXPECT_EQ(yard.wait_for_end().left.result, "{\"a\": 1}\n");
  EXPECT_EQ(sys::content_of(first.result_copy_path), "{\"a\": 1}\n");
  // The next one leaves nothing: no result is that of the last attempt.
  model::Launch second = yard.shell("test ! -e task0/result.json");
  second.result_path = yard.directory / "task0/result.2.json";
  second.result_copy_path = first.result_copy_path;
  EXPECT_EQ(yard.run(second), model::End(model::ExitedWith{0}));
  EXPECT_FALSE(std::filesystem::exists(second.result_copy_path));
  EXPECT_EQ(sys::content_of(first.result_path), "{\"a\": 1}\n");
}

TEST(KeeperDisk, ReadsNoResultThatIsNoPlainFile) {
  TestYard yard;
  const std::string secret = yard.directory / "secret";
  ASSERT_TRUE(sys::write_file_atomically(secret, "{\"mine\": 1}"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mkfifo", "' is a pipe, not a regular file"},
      {"mkdir", "' is a directory, not a regular file"},
      {"ln -s " + secret, "' is a symbolic link, not a regular file"}};
  for (std::uint32_t i = 0; i < cases.size(); ++i) {
    const model::Launch launch =
        yard.shell(fmt::format("{} task{}/result.json", cases[i].first, i), i);
    yard.keeper.start(TestYard::key(i), launch);
    EXPECT_EQ(
        yard.wait_for_end(i).left,
        (LeftBehind{
            .result = {}, .trouble = "'" + launch.result_path + cases[i].second, .errors = {}}));
  }
}

TEST(KeeperDisk, GoesOnBesideATaskWhoseDiskDoesNotAnswer) {
  in_own_mounts([] {
    TestYard yard({.late_after = Duration(200)});
    const DeadDisk disk(yard.directory / "dead");
    // Has a disk of its own: the kernel keeps a process that makes a program there waiting while
    // another looks for one, and a waiting process cannot be killed.
    const DeadDisk programs(yard.directory / "programs");
    if (!disk.is_mounted() || !programs.is_mounted()) skip_for_mounts();
    model::Launch stuck = yard.launch({"true"}, 0);
    stuck.task_directory = yard.directory / "dead/task";
    yard.keeper.start(TestYard::key(0), stuck);
    // So is one whose program, or current directory, is there.
    yard.keeper.start(TestYard::key(1), yard.launch({yard.directory / "programs/train"}, 1));
    model::Launch elsewhere = yard.launch({"true"}, 2);
    elsewhere.working_directory = yard.directory / "dead";
    yard.keeper.start(TestYard::key(2), elsewhere);
    for (std::uint32_t i = 3; i < 20; ++i) {
      yard.keeper.start(TestYard::key(i), yard.launch({"true"}, i));
      EXPECT_EQ(yard.wait_for_end(i).end, model::End(model::ExitedWith{0}));
    }
    EXPECT_FALSE(yard.started(0) || yard.started(1) || yard.started(2));
    const std::string dead_task = stuck.task_directory;
    for (const std::string& each :
         {dead_task, yard.directory / "task1", yard.directory / "task2"}) {
      EXPECT_TRUE(yard.wait([&] { return count_late(yard, each) == 1; })) << each;
    }
    // It can be ended, and leaves the keeper to do its work.
    yard.keeper.signal(TestYard::key(0), SIGTERM);
    yard.keeper.signal(TestYard::key(0), SIGKILL);
    EXPECT_EQ(yard.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
    EXPECT_EQ(yard.run(yard.launch({"true"}, 0)), model::End(model::ExitedWith{0}));
    for (const std::string& each : {yard.directory / "task1", yard.directory / "task2"}) {
      EXPECT_EQ(count_late(yard, each), 0) << "told once, all news since were cleared";
    }
  });
}

TEST(KeeperDisk, TellsOfAPreloadThatDoesNotBegin) {
  in_own_mounts([] {
    TestYard yard({.late_after = Duration(200)});
    const DeadDisk disk(yard.directory / "dead");
    if (!disk.is_mounted()) skip_for_mounts();
    model::Launch task = yard.launch({"/usr/bin/python3", "-c", "pass"});
    task.preload = {.modules = {"json"},
                    .interpreter = 1,
                    .path = yard.directory.path(),
                    .environment = {},
                    .log_path = yard.directory / "dead/preload.log"};
    yard.keeper.start(TestYard::key(0), task);
    EXPECT_TRUE(yard.wait([&] { return !notes_of(yard).empty(); }));
    EXPECT_THAT(notes_of(yard),
                ElementsAre("preload: the process that imports json has not started for 0.2 s: the "
                            "disk of its log ('" +
                            task.preload.log_path + "') or of its interpreter does not answer"));
    yard.keeper.signal(TestYard::key(0), SIGKILL);
    EXPECT_EQ(yard.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
  });
}

TEST(KeeperDisk, HoldsOnlySoManyOnTheirWayAsItHasDescriptorsFor) {
  in_own_mounts([] {
    constexpr rlimit kFew{.rlim_cur = 64, .rlim_max = 64};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &kFew), 0);
    TestYard yard;
    const DeadDisk disk(yard.directory / "dead");
    if (!disk.is_mounted()) skip_for_mounts();
    for (std::uint32_t i = 0; i < 40; ++i) {
      model::Launch stuck = yard.launch({"true"}, i);
      stuck.working_directory = yard.directory / "dead";
      yard.keeper.start(TestYard::key(i), stuck);
    }
    // A descriptor is free once one of those on their way is gone.
    yard.keeper.start(TestYard::key(40), yard.launch({"true"}, 40));
    for (std::uint32_t i = 0; i < 40; ++i) yard.keeper.signal(TestYard::key(i), SIGKILL);
    EXPECT_EQ(yard.wait_for_end(40).end, model::End(model::ExitedWith{0}));
    for (std::uint32_t i = 0; i < 40; ++i) {
      EXPECT_EQ(yard.wait_for_end(i).end, model::End(model::KilledBy{.signal = SIGKILL})) << i;
    }
  });
}

TEST(KeeperDisk, TellsTheEndOfATaskWhoseResultCannotBeRead) {
  in_own_mounts([] {
    TestYard yard({.stop_grace = Duration(5000), .result_answer_max = Duration(100)});
    ASSERT_EQ(::mkfifo((yard.directory / "gate").c_str(), 0600), 0);
    const model::Launch launch = yard.shell("read line < gate; exit 1");
    yard.keeper.start(TestYard::key(0), launch);
    yard.wait_for_start();
    const DeadDisk disk(launch.task_directory);
    if (!disk.is_mounted()) skip_for_mounts();
    const sys::Descriptor gate(::open((yard.directory / "gate").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::write(gate.get(), "\n", 1), 1);
    // Later files are read by another process.
    EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{1}));
    EXPECT_EQ(yard.wait_for_end().left.trouble,
              "cannot read '" + launch.result_path + "': its disk has not answered for 0.1 s");
    yard.keeper.start(TestYard::key(1), yard.shell("echo '{}' > task1/result.json", 1));
    EXPECT_EQ(yard.wait_for_end(1).left.result, "{}\n");
  });
}

TEST(KeeperDisk, StartsAnotherReaderWhenTheOneIsKilled) {
  TestYard yard;
  const auto readers = [&] {
    std::vector<std::int64_t> found;
    for (const std::string& name : sys::names_in("/proc")) {
      const std::string comm = sys::read_file("/proc/" + name + "/comm", mib(1)).value_or("");
      const auto stat =
          sys::parse_process_stat(sys::read_file("/proc/" + name + "/stat", mib(1)).value_or(""));
      if (comm == "trainyard-read\n" && stat && stat->parent == yard.keeper.pid()) {
        found.push_back(stat->pid);
      }
    }
    return found;
  };
  EXPECT_EQ(yard.run(yard.shell("echo '{}' > task0/result.json")),
            model::End(model::ExitedWith{0}));
  const std::vector<std::int64_t> first = readers();
  ASSERT_EQ(first.size(), 1U);
  ::kill(static_cast<pid_t>(first[0]), SIGKILL);
  ASSERT_TRUE(sys::eventually([&] { return !is_alive(first[0]); }));
  yard.keeper.start(TestYard::key(1), yard.shell("echo '{}' > task1/result.json", 1));
  EXPECT_EQ(yard.wait_for_end(1).left.result, "{}\n");
  EXPECT_EQ(readers().size(), 1U);
  EXPECT_NE(readers(), first);
}

}  // namespace
}  // namespace trainyard::process
