// The state that a task finds when it starts, and the errors of one that cannot be started.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/event.h"
#include "model/launch.h"
#include "model/set_variables.h"
#include "process/keeper.h"
#include "process/test_mounts.h"
#include "process/test_yard.h"
#include "sys/descriptor.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

TEST(KeeperStart, GivesAProcessASessionAndAGroupOfItsOwn) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "100"}));
  const std::int64_t pid = yard.wait_for_start();
  const auto process = sys::ProcessScan().read(pid);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->session, pid);
  EXPECT_EQ(process->group, pid);
  EXPECT_EQ(process->parent, yard.keeper.pid());
}

TEST(KeeperStart, MakesTheDirectoryAndPutsWhatIsPrintedIntoTheLogs) {
  TestYard yard;
  model::Launch launch = yard.shell("echo out; echo err >&2; echo more");
  launch.task_directory = yard.directory / "run/group/task";
  launch.stdout_path = launch.task_directory + "/stdout.log";
  launch.stderr_path = launch.task_directory + "/stderr.log";
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(launch.stdout_path), "out\nmore\n");
  EXPECT_EQ(sys::content_of(launch.stderr_path), "err\n");
  EXPECT_EQ(yard.news.size(), 2U);
}

TEST(KeeperStart, StartsWithFreshLogsAndWithoutAnOldResult) {
  TestYard yard;
  const model::Launch first = yard.shell("echo a long first line; echo '{}' > task0/result.json");
  EXPECT_EQ(yard.run(first), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(first.result_path), "{}\n");
  EXPECT_EQ(yard.run(yard.shell("echo short")), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(first.stdout_path), "short\n");
  EXPECT_FALSE(std::filesystem::exists(first.result_path));
}

TEST(KeeperStart, RunsItInItsWorkingDirectoryWithAnEmptyStandardInput) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.shell("pwd; cat; readlink /proc/self/fd/0")),
            model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(yard.directory / "task0/stdout.log"),
            yard.directory.path() + "\n/dev/null\n");
}

TEST(KeeperStart, AddsToTheEnvironmentAndReplacesWhatWasThere) {
  ASSERT_EQ(::setenv("TRAINYARD_TEST_OLD", "old", 1), 0);
  ASSERT_EQ(::setenv("TRAINYARD_TEST_KEPT", "kept", 1), 0);
  TestYard yard;
  model::Launch launch = yard.shell("env | grep ^TRAINYARD_TEST | sort");
  launch.environment = {"TRAINYARD_TEST_OLD=new", "TRAINYARD_TEST_ADDED=first",
                        "TRAINYARD_TEST_ADDED=last", "TRAINYARD_TEST_EMPTY="};
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(launch.stdout_path),
            "TRAINYARD_TEST_ADDED=last\nTRAINYARD_TEST_EMPTY=\nTRAINYARD_TEST_KEPT=kept\n"
            "TRAINYARD_TEST_OLD=new\n");
}

/// The variables of this test that a run finds which a task with `env -0` starts.
std::string variables_of_a_run_in(const model::Launch& launch) {
  const std::string text = sys::content_of(launch.stdout_path);
  std::vector<std::string> environment;
  for (std::size_t at = 0; at < text.size();) {
    environment.emplace_back(text.c_str() + at);
    at += environment.back().size() + 1;
  }
  std::string found;
  for (const std::string& entry : model::without_set_variables(std::move(environment))) {
    if (entry.starts_with("TRAINYARD_TEST_SET_")) found += entry + "\n";
  }
  return found;
}

TEST(KeeperStart, MarksWhatARunInTheTaskIsNotToFind) {
  ASSERT_EQ(::setenv("TRAINYARD_TEST_SET_OLD", "old", 1), 0);
  ASSERT_EQ(::setenv("TRAINYARD_TEST_SET_GONE", "gone", 1), 0);
  TestYard yard;
  model::Launch launch = yard.launch({"env", "-0"});
  launch.environment = {"TRAINYARD_TEST_SET_OLD=new", "TRAINYARD_TEST_SET_GONE",
                        "TRAINYARD_TEST_SET_ADDED=1", "TRAINYARD_TEST_SET_USERS=us"};
  launch.user_variables = {"TRAINYARD_TEST_SET_USERS=us"};
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(
      variables_of_a_run_in(launch),
      "TRAINYARD_TEST_SET_GONE=gone\nTRAINYARD_TEST_SET_OLD=old\nTRAINYARD_TEST_SET_USERS=us\n");
}

TEST(KeeperStart, MarksWhatASubmittersRunInTheTaskIsNotToFind) {
  TestYard yard;
  model::Launch launch = yard.launch({"env", "-0"});
  launch.inherited = {"PATH=/usr/bin:/bin", "TRAINYARD_TEST_SET_OLD=submitter"};
  launch.environment = {"TRAINYARD_TEST_SET_OLD=new", "TRAINYARD_TEST_SET_ADDED=1"};
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(variables_of_a_run_in(launch), "TRAINYARD_TEST_SET_OLD=submitter\n");
}

TEST(KeeperStart, MarksInATaskWhatWasSetForTheTaskAsWell) {
  const std::vector<std::string_view> of_task{"TRAINYARD_TEST_SET_OLD=task",
                                              "TRAINYARD_TEST_SET_RANK=1"};
  const std::vector<std::string_view> before{"TRAINYARD_TEST_SET_OLD=old"};
  sys::set_variable("TRAINYARD_TEST_SET_OLD=task");
  sys::set_variable("TRAINYARD_TEST_SET_RANK=1");
  sys::set_variable("TRAINYARD_SET=" + model::set_variables(before, of_task));
  TestYard yard;
  sys::set_variable("TRAINYARD_SET=");
  model::Launch launch = yard.launch({"env", "-0"});
  launch.environment = {"TRAINYARD_TEST_SET_RANK=2", "TRAINYARD_TEST_SET_ADDED=1"};
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(variables_of_a_run_in(launch), "TRAINYARD_TEST_SET_OLD=old\n");
}

TEST(KeeperStart, LooksForTheProgramOnThePathOfTheTask) {
  TestYard yard;
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "mine", "#!/bin/sh\necho found\n"));
  ASSERT_EQ(::chmod((yard.directory / "mine").c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"mine"})),
            "cannot run 'mine': program not found on PATH (did you mean './mine'?)");
  model::Launch launch = yard.launch({"mine"});
  launch.environment = {"PATH=/nowhere:" + yard.directory.path() + ":/usr/bin:/bin"};
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(launch.stdout_path), "found\n");
  EXPECT_EQ(yard.run(yard.launch({"./mine"})), model::End(model::ExitedWith{0}));
}

TEST(KeeperStart, LetsItInheritNothing) {
  // Something that a careless fork would hand on.
  const sys::Descriptor open(::open("/dev/null", O_RDONLY));
  ::signal(SIGUSR1, SIG_IGN);
  TestYard yard;
  const model::Launch launch =
      yard.launch({"/usr/bin/python3", "-c",
                   "import os\n"
                   "status = open('/proc/self/status').read()\n"
                   "def mask(name):\n"
                   "  return int(status.split(name)[1].split()[0], 16)\n"
                   "seen = [os.stat(f'/proc/self/fd/{i}') and i for i in range(3)]\n"
                   "print(seen, len(os.listdir('/proc/self/fd')) - 1,\n"
                   "      mask('SigBlk:'), mask('SigIgn:') & (1 << 9))\n"});
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(sys::content_of(launch.stdout_path), "[0, 1, 2] 3 0 0\n");
}

TEST(KeeperStart, GivesItTheLimitOfOpenFilesThatTheUserSet) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit small = old;
  small.rlim_cur = 77;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  TestYard yard;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(yard.run(yard.shell("ulimit -n")), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(yard.directory / "task0/stdout.log"), "77\n");
}

TEST(KeeperStart, NamesALimitOfOpenFilesThatIsTooLowForAYard) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{.rlim_cur = 20, .rlim_max = 20};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto keeper = Keeper::fork({});
    ::_exit(!keeper && keeper.error().message ==
                           "32 open files are needed, but 20 are allowed (ulimit -Hn); start it "
                           "from a shell with a higher limit"
                ? 0
                : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(KeeperStart, SaysWhenThereIsNoSuchProgram) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.launch({"./train"})),
            model::End(model::NotStarted{.why = "cannot run './train': no such file or directory",
                                         .of_machine = false}));
  EXPECT_EQ(yard.refusal(yard.launch({"/no/such/train"})),
            "cannot run '/no/such/train': no such file or directory");
  EXPECT_EQ(yard.refusal(yard.launch({"trainyard-no-such-program"})),
            "cannot run 'trainyard-no-such-program': program not found on PATH; install it, or "
            "write its full path");
  EXPECT_EQ(yard.refusal(yard.launch({"~/train"})),
            "cannot run '~/train': no shell expands '~' here; write the full path, or the whole "
            "command as one string");
  for (const char* const name :
       {"python3 src/fit.py --lr 0.1", "LR=0.1", "P=/x", "/bin/sh -c true", ".", "alias", "cd",
        "eval", "exec", "export", "if", "module", "set", "source", "ulimit"}) {
    model::Launch launch = yard.launch({name});
    launch.environment = {"PATH=/nowhere"};
    EXPECT_EQ(yard.refusal(launch),
              std::string("cannot run '") + name +
                  "': program not found; write the whole command as one string, which bash runs");
  }
  EXPECT_EQ(yard.refusal(yard.launch({"/no/my programs/x"})),
            "cannot run '/no/my programs/x': no such file or directory");
  EXPECT_EQ(yard.refusal(yard.launch({})), "cannot run a command that is empty");
  EXPECT_EQ(yard.refusal(yard.launch({""})), "cannot run a command that is empty");
}

TEST(KeeperStart, SaysHowToMakeAScriptRun) {
  TestYard yard;
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "train.py", "print(1)\n"));
  EXPECT_EQ(yard.refusal(yard.launch({"./train.py"})),
            "cannot run './train.py': permission denied; try 'python3 ./train.py'");
  const std::string_view by_name =
      "cannot run 'train.py': program not found on PATH (did you mean 'python3 train.py'?)";
  EXPECT_EQ(yard.refusal(yard.launch({"train.py"})), by_name);
  ASSERT_EQ(::chmod((yard.directory / "train.py").c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"./train.py"})),
            "cannot run './train.py': its first line is not '#!/usr/bin/env python3'; try 'python3 "
            "./train.py'");
  EXPECT_EQ(yard.refusal(yard.launch({"train.py"})), by_name);
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "own.py", "#!/usr/bin/python3\n"));
  EXPECT_EQ(yard.refusal(yard.launch({"./own.py"})),
            "cannot run './own.py': permission denied; is it executable? try 'chmod +x ./own.py' "
            "or 'python3 ./own.py'");
  ASSERT_EQ(::chmod((yard.directory / "own.py").c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"own.py"})),
            "cannot run 'own.py': program not found on PATH (did you mean './own.py'?)");
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "text", "print(1)\n"));
  ASSERT_EQ(::chmod((yard.directory / "text").c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"./text"})),
            "cannot run './text': exec format error; does it start with a line like '#!/bin/sh'?");
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "bad", "#!/no/such/python\n"));
  ASSERT_EQ(::chmod((yard.directory / "bad").c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"./bad"})),
            "cannot run './bad': the interpreter in its first line was not found");
  const std::string windows = yard.directory / "windows";
  ASSERT_TRUE(sys::write_file_atomically(windows, "#!/bin/sh\r\ntrue\r\n"));
  ASSERT_EQ(::chmod(windows.c_str(), 0755), 0);
  EXPECT_EQ(yard.refusal(yard.launch({"./windows"})),
            "cannot run './windows': its first line ends in CR (a Windows line end); try 'sed -i "
            "\"s/\\r$//\" " +
                windows + "'");
  EXPECT_EQ(yard.refusal(yard.launch({"/tmp"})), "cannot run '/tmp': it is a directory");
}

TEST(KeeperStart, SaysWhichDirectoryOrFileStoodInTheWay) {
  TestYard yard;
  const std::string place = yard.directory.path();
  ASSERT_TRUE(sys::write_file_atomically(yard.directory / "file", ""));
  ASSERT_TRUE(sys::make_directories(yard.directory / "full/inside"));

  model::Launch launch = yard.launch({"true"});
  launch.working_directory = place + "/none";
  EXPECT_EQ(yard.refusal(launch),
            "cannot enter the directory '" + place + "/none': no such file or directory");
  launch.working_directory = place + "/file";
  EXPECT_EQ(yard.refusal(launch),
            "cannot enter the directory '" + place + "/file': not a directory");

  launch = yard.launch({"true"});
  launch.task_directory = place + "/file/task";
  EXPECT_EQ(yard.refusal(launch),
            "cannot make the directory '" + place + "/file/task': not a directory");
  launch = yard.launch({"true"});
  launch.stdout_path = place + "/full";
  EXPECT_EQ(yard.refusal(launch), "cannot write '" + place + "/full': is a directory");
  launch = yard.launch({"true"});
  launch.stderr_path = place + "/none/stderr.log";
  EXPECT_EQ(yard.refusal(launch),
            "cannot write '" + place + "/none/stderr.log': no such file or directory");
  launch = yard.launch({"true"});
  launch.result_path = place + "/full";
  EXPECT_EQ(yard.refusal(launch), "cannot remove the old '" + place + "/full': is a directory");
}

TEST(KeeperStart, SaysWhenACommandIsTooLongForTheSystemOrForUs) {
  TestYard yard;
  EXPECT_EQ(yard.refusal(yard.launch({"true", std::string(3'000'000, 'x')})),
            "cannot run 'true': its arguments and environment are too long for the system");
  EXPECT_EQ(yard.refusal(yard.launch({"true", std::string(17'000'000, 'x')})),
            "the command and its environment have 17 MB, at most 16.8 MB");
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
}

TEST(KeeperStart, SaysWhenTheDiskIsFullOrReadOnly) {
  in_own_mounts([] {
    TestYard yard;
    const std::string small = yard.directory / "small";
    if (!sys::make_directories(small) ||
        ::mount("none", small.c_str(), "tmpfs", 0, "nr_inodes=2,size=4k") != 0) {
      skip_for_mounts();
    }
    model::Launch launch = yard.launch({"true"});
    launch.task_directory = small + "/task";
    launch.stdout_path = small + "/task/stdout.log";
    EXPECT_EQ(yard.run(launch),
              model::End(model::NotStarted{
                  .why = "cannot write '" + launch.stdout_path + "': no inodes left on its disk",
                  .of_machine = true}));
    EXPECT_EQ(::mount("none", small.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    launch.task_directory = small + "/other";
    EXPECT_EQ(yard.run(launch),
              model::End(model::NotStarted{
                  .why = "cannot make the directory '" + small + "/other': read-only file system",
                  .of_machine = true}));
    ::umount2(small.c_str(), MNT_DETACH);
  });
}

TEST(KeeperStart, SaysWhenItHasNoMoreDescriptors) {
  const sys::TemporaryDirectory place;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const pid_t tester = ::fork();
  if (tester == 0) {
    ::setenv("TMPDIR", place.path().c_str(), 1);  // Its remains are deleted with ours.
    TestYard yard;
    yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "100"}, 0));
    yard.wait_for_start(0);
    // It does not expect this: what it had when it began is enough for all of them.
    const rlimit tiny{.rlim_cur = 16, .rlim_max = 16};
    ::prlimit(static_cast<pid_t>(yard.keeper.pid()), RLIMIT_NOFILE, &tiny, nullptr);
    for (std::uint32_t i = 1; i < 20; ++i) {
      yard.keeper.start(TestYard::key(i), yard.launch({"sleep", "100"}, i));
    }
    bool right = yard.wait([&] { return yard.ended(19).has_value(); });
    int started = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      if (yard.started(i)) ++started;
      const auto end = yard.ended(i);
      if (!end) continue;
      const auto* refused = std::get_if<model::NotStarted>(&end->end);
      right = right && refused != nullptr && refused->of_machine &&
              refused->why.ends_with(": too many open files, see 'ulimit -n'");
    }
    ::_exit(right && started > 0 && started < 20 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tester, &status, 0), tester);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace trainyard::process
