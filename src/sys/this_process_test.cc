// The first steps of a process that becomes another one. Becoming one is tested by `trainyard
// rank`.
#include "sys/this_process.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/environment.h"
#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

TEST(ThisProcess, OpensALogOnceWhereItIsNotToBeEmptied) {
  const TemporaryDirectory place;
  const auto log = open_log(place / "log", IfThere::Refuse);
  ASSERT_TRUE(log && log->is_open());
  ASSERT_TRUE(write_all(*log, "one\n", "log"));
  const auto again = open_log(place / "log", IfThere::Refuse);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_open());
  EXPECT_EQ(content_of(place / "log"), "one\n");
}

TEST(ThisProcess, EmptiesALogThatIsThereAndAddsToIt) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "log", "old\n"));
  const auto log = open_log(place / "log", IfThere::Empty);
  ASSERT_TRUE(log && log->is_open());
  ASSERT_TRUE(write_all(*log, "one\n", "log"));
  ASSERT_TRUE(write_all(*log, "two\n", "log"));
  EXPECT_EQ(content_of(place / "log"), "one\ntwo\n");
}

TEST(ThisProcess, OpensNoLogInThePlaceOfWhichIsAPipeOrAnotherFile) {
  const TemporaryDirectory place;
  ASSERT_TRUE(write_file_atomically(place / "mine", "mine"));
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(place / "mine", place / "link");
  std::filesystem::create_hard_link(place / "mine", place / "second");
  const std::map<std::string, std::string> cases{
      {"fifo", "is a pipe, not a regular file; remove it"},
      {"link", "is a symbolic link, not a regular file; remove it"},
      {"second", "has 2 names (hard links); remove it"}};
  for (const auto& [name, why] : cases) {
    for (const IfThere if_there : {IfThere::Empty, IfThere::Append}) {
      EXPECT_TRUE(holds_in_time([&, path = place / name] {
        const auto log = open_log(path, if_there);
        return !log && log.error().message == fmt::format("'{}' {}", path, why);
      })) << name;
    }
  }
  EXPECT_EQ(content_of(place / "mine"), "mine");
}

TEST(ThisProcess, SaysWhichLogCannotBeWritten) {
  const auto log = open_log("/no/such/place/log", IfThere::Empty);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "cannot write '/no/such/place/log': no such file or directory");
}

TEST(ThisProcess, FailsToWriteMoreThanAFileMayHaveAndLivesOnWhileItsProgramsDoNot) {
  const TemporaryDirectory place;
  const auto end_after = [&](const std::vector<std::string>& program) {
    const pid_t child = ::fork();
    if (child == 0) {
      survive_file_size_limit();
      const rlimit few{.rlim_cur = 3, .rlim_max = 3};
      ::setrlimit(RLIMIT_FSIZE, &few);
      const auto log = open_log(place / "log", IfThere::Empty);
      const bool refused = log && !write_all(*log, "more", "log");
      if (refused && !program.empty()) static_cast<void>(become(program));
      ::_exit(refused ? 7 : 8);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  };
  const int alone = end_after({});
  EXPECT_TRUE(WIFEXITED(alone) && WEXITSTATUS(alone) == 7);
  const int other = end_after({"sh", "-c", "exec cat /proc/self/stat > " + (place / "other")});
  EXPECT_TRUE(WIFSIGNALED(other) && WTERMSIG(other) == SIGXFSZ);
}

TEST(FileSizeLimitGuard, MakesTheLimitAnErrorForAWhileAndLeavesTheSignalAsItWas) {
  const TemporaryDirectory place;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{.rlim_cur = 3, .rlim_max = 3};
    ::setrlimit(RLIMIT_FSIZE, &few);
    const auto log = open_log(place / "log", IfThere::Empty);
    {
      const FileSizeLimitGuard guard;
      if (!log || write_all(*log, "more", "log")) ::_exit(8);
    }
    std::ofstream(place / "lives").flush();
    static_cast<void>(write_all(*log, "more", "log"));
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  EXPECT_TRUE(std::filesystem::exists(place / "lives"));
}

TEST(FileSizeLimitGuard, LeavesASignalThatTheProgramHoldsBackToIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t held{};
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
    {
      const FileSizeLimitGuard guard;
      static_cast<void>(::raise(SIGXFSZ));
    }
    sigset_t pending{};
    ::sigpending(&pending);
    ::_exit(::sigismember(&pending, SIGXFSZ) == 1 ? 7 : 8);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(ThisProcess, AllowsMoreOpenFilesUpToWhatTheAdministratorAllows) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  struct rlimit now{};
  EXPECT_TRUE(allow_open_files(32));
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, 64U) << "so many were allowed";
  EXPECT_TRUE(allow_open_files(80));
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, 80U);
  if (before.rlim_max != RLIM_INFINITY) {
    const auto more = allow_open_files(before.rlim_max + 1);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().message,
              fmt::format("{} open files are needed, but {} are allowed (ulimit -Hn); start it "
                          "from a shell with a higher limit",
                          before.rlim_max + 1, before.rlim_max));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// Exits with 0 if the path that own_program() returns still leads to this program once another
/// file has its name (`replace`) or none has.
int remove_own_file(bool replace) {
  const auto before = own_program();
  if (!before || !std::filesystem::remove(*before)) return 2;
  if (replace && !write_file_atomically(*before, "another program")) return 3;
  const auto after = own_program();
  return after && std::filesystem::equivalent(*after, "/proc/self/exe") ? 0 : 4;
}

/// The exit code of remove_own_file() in a copy of this program. The copy runs the test that is
/// running here and finds in its environment what it is to do.
int exit_code_of_copy(const std::string& what) {
  const TemporaryDirectory place;
  const std::string copy = place / "copy";
  std::filesystem::copy_file("/proc/self/exe", copy);
  const pid_t child = ::fork();
  if (child == 0) {
    set_variable("TRAINYARD_TEST_OWN_FILE=" + what);
    [[maybe_unused]] const Error failure =
        become({copy, "--gtest_filter=ThisProcess.FindsItsProgramThoughItsFileIsReplaced"});
    ::_exit(5);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ThisProcess, FindsItsProgramThoughItsFileIsReplaced) {
  if (const auto what = variable("TRAINYARD_TEST_OWN_FILE")) {
    ::_exit(remove_own_file(*what == "replace"));
  }
  EXPECT_EQ(*own_program(), std::filesystem::canonical("/proc/self/exe"));
  EXPECT_EQ(exit_code_of_copy("remove"), 0);
  EXPECT_EQ(exit_code_of_copy("replace"), 0);
}

TEST(ThisProcess, EndsByASignalThatItIgnoresOrBlocks) {
  const auto end_by = [](int signal) {
    std::signal(signal, SIG_IGN);
    sigset_t all{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    end_by_signal(signal);
  };
  for (const int signal : {SIGSEGV, SIGTERM, SIGUSR1}) {
    EXPECT_EXIT(end_by(signal), ::testing::KilledBySignal(signal), "");
  }
}

TEST(ThisProcess, SaysWhichProgramItCannotBecome) {
  EXPECT_EQ(become({"no-such-program"}).message,
            "cannot run 'no-such-program': no such file or directory");
}

}  // namespace
}  // namespace trainyard::sys
