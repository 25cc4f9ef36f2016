// Python tasks that are forks of a process that has imported for them, through the keeper.
#include "process/preloads.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "process/keeper.h"
#include "process/test_yard.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using testing::HasSubstr;

/// A module that notes the process that imports it, in a file, each time that it is imported.
const std::string kNotes =
    "import os\n"
    "with open('importer.new', 'w') as file: file.write(str(os.getpid()) + '\\n')\n"
    "os.replace('importer.new', 'importer')\n"
    "data = list(range(1000))\n";

/// A yard with modules of its own to import.
class PreloadsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(sys::write_file_atomically(yard_.directory / name, text));
  }

  model::Launch launch(std::vector<std::string> script, std::vector<std::string> modules,
                       std::uint32_t number = 0) {
    std::vector<std::string> arguments{"/usr/bin/python3"};
    arguments.insert(arguments.end(), script.begin(), script.end());
    model::Launch launch = yard_.launch(std::move(arguments), number);
    launch.preload = {.modules = std::move(modules),
                      .interpreter = 1,
                      .path = yard_.directory.path(),
                      .environment = {"PYTHONDONTWRITEBYTECODE=1"},
                      .log_path = yard_.directory / "preload.log"};
    return launch;
  }

  std::string out(std::uint32_t number = 0) {
    return sys::content_of(yard_.directory / ("task" + std::to_string(number) + "/stdout.log"));
  }
  std::string err(std::uint32_t number = 0) {
    return sys::content_of(yard_.directory / ("task" + std::to_string(number) + "/stderr.log"));
  }
  std::int64_t importer() { return pid_in(yard_.directory / "importer"); }

  TestYard yard_;
};

TEST_F(PreloadsTest, StartTasksThatHaveWhatWasImportedOnce) {
  write("mydata.py", kNotes);
  write("train.py",
        "import os, sys, mydata\n"
        "print(len(mydata.data), sys.argv, __name__, __file__, os.environ['MINE'], os.getcwd())\n");
  for (std::uint32_t i = 0; i < 3; ++i) {
    model::Launch task = launch({"train.py", "--lr", std::to_string(i)}, {"mydata"}, i);
    task.environment.push_back("MINE=it is " + std::to_string(i));
    yard_.keeper.start(TestYard::key(i), task);
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(yard_.wait_for_end(i).end, model::End(model::ExitedWith{0})) << err(i);
    const std::string number = std::to_string(i);
    EXPECT_EQ(out(i), "1000 ['train.py', '--lr', '" + number + "'] __main__ train.py it is " +
                          number + " " + yard_.directory.path() + "\n");
  }
  EXPECT_TRUE(is_alive(importer()));
  EXPECT_EQ(sys::content_of(yard_.directory / "preload.log"), "");
}

TEST_F(PreloadsTest, StartTasksAsChildrenOfTheKeeperWithASessionOfTheirOwn) {
  yard_.keeper.start(TestYard::key(0), launch({"-c", "import time; time.sleep(100)"}, {"json"}));
  const std::int64_t pid = yard_.wait_for_start();
  const auto process = sys::ProcessScan().read(pid);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->session, pid);
  EXPECT_EQ(process->group, pid);
  EXPECT_EQ(process->parent, yard_.keeper.pid());
  yard_.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard_.wait_for_end().end, model::End(model::KilledBy{.signal = SIGTERM}));
}

TEST_F(PreloadsTest, StartTasksThatInheritNoDescriptor) {
  EXPECT_EQ(yard_.run(launch({"-c",
                              "import os\n"
                              "print([os.readlink(f'/proc/self/fd/{i}').split('/')[-1] for i in "
                              "range(3)], len(os.listdir('/proc/self/fd')) - 1)"},
                             {"json"})),
            model::End(model::ExitedWith{0}));
  EXPECT_EQ(out(), "['null', 'stdout.log', 'stderr.log'] 3\n");
}

TEST_F(PreloadsTest, TellTheExitCodeAndTheTracebackWithoutFramesOfOurs) {
  write("train.py", "def fit():\n  raise ValueError('too high')\nfit()\n");
  EXPECT_EQ(yard_.run(launch({"train.py"}, {"json"})), model::End(model::ExitedWith{1}));
  EXPECT_EQ(err(),
            "Traceback (most recent call last):\n"
            "  File \"train.py\", line 3, in <module>\n"
            "    fit()\n"
            "  File \"train.py\", line 2, in fit\n"
            "    raise ValueError('too high')\n"
            "ValueError: too high\n");
  EXPECT_EQ(yard_.run(launch({"-c", "import sys; sys.exit(7)"}, {"json"})),
            model::End(model::ExitedWith{7}));
  EXPECT_EQ(yard_.run(launch({"nowhere.py"}, {"json"})), model::End(model::ExitedWith{2}));
  EXPECT_EQ(err(), "/usr/bin/python3: can't open file '" + yard_.directory.path() +
                       "/nowhere.py': [Errno 2] No such file or directory\n");
}

TEST_F(PreloadsTest, RunAModuleAndWhatIsWrittenForExit) {
  std::filesystem::create_directory(yard_.directory / "pack");
  write("pack/__init__.py", "");
  write("pack/fit.py",
        "import atexit, sys\nfrom . import __name__ as parent\n"
        "atexit.register(lambda: print('over'))\n"
        "print(parent, __name__, sys.argv[1:])\n");
  EXPECT_EQ(yard_.run(launch({"-m", "pack.fit", "a"}, {"json"})), model::End(model::ExitedWith{0}));
  EXPECT_EQ(out(), "pack __main__ ['a']\nover\n");
}

TEST_F(PreloadsTest, EndTasksAsTheInterpreterWould) {
  write("leaves.py",
        "import atexit, threading\n"
        "atexit.register(lambda: print('at exit', len(text)))\n"
        "text = 'never closed'\n"
        "file = open('left', 'w')\n"
        "file.write(text)\n"
        "late = threading.Thread(target=lambda: (threading.main_thread().join(), print('late')))\n"
        "late.start()\n"
        "class Last:\n"
        "  def __del__(self): open('del', 'w').write('gone')\n"
        "last = Last(); last.itself = last\n"
        "print('end', end='\\n')\n");
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"leaves.py"}, {"-m", "leaves"}, {"-c", "import leaves"}}) {
    EXPECT_EQ(yard_.run(launch(how, {"json"})), model::End(model::ExitedWith{0})) << err();
    EXPECT_EQ(out(), "end\nlate\nat exit 12\n") << how.front();
    EXPECT_EQ(err(), "");
    EXPECT_EQ(sys::content_of(yard_.directory / "left"), "never closed") << how.front();
    EXPECT_EQ(sys::content_of(yard_.directory / "del"), "gone") << how.front();
    std::filesystem::remove(yard_.directory / "left");
    std::filesystem::remove(yard_.directory / "del");
  }
  EXPECT_EQ(yard_.run(launch({"-c", "import sys; sys.exit('too late')"}, {"json"})),
            model::End(model::ExitedWith{1}));
  EXPECT_EQ(err(), "too late\n");
  EXPECT_EQ(yard_.run(launch({"-c", "raise KeyboardInterrupt"}, {"json"})),
            model::End(model::KilledBy{.signal = SIGINT}));
  EXPECT_THAT(err(), HasSubstr("KeyboardInterrupt"));
}

TEST_F(PreloadsTest, RefuseTasksWhoseModulesCannotBeImported) {
  const std::string why = yard_.refusal(launch({"-c", ""}, {"json", "torhc"}));
  EXPECT_EQ(why,
            "cannot import json, torhc beforehand: ModuleNotFoundError: No module named 'torhc' "
            "(see '" +
                yard_.directory.path() + "/preload.log')");
  EXPECT_EQ(yard_.refusal(launch({"-c", ""}, {"json", "torhc"})), why) << "again, with a new one";
  write("quits.py", "import os; os._exit(3)\n");
  EXPECT_THAT(yard_.refusal(launch({"-c", ""}, {"quits"})), HasSubstr("beforehand: exit code 3"));
}

TEST_F(PreloadsTest, StartNoTaskWhoseLogOrDirectoryIsAnotherOne) {
  const std::string elsewhere = yard_.directory / "elsewhere";
  ASSERT_TRUE(sys::make_directories(elsewhere));
  write("mine", "mine");
  const model::Launch task = launch({"-c", ""}, {"json"});
  std::filesystem::create_symlink(elsewhere, task.task_directory);
  const std::string refused = "' is a symbolic link, not a directory; remove it";
  EXPECT_EQ(yard_.refusal(task), "'" + task.task_directory + refused);
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  std::filesystem::remove(task.task_directory);
  model::Launch below = task;
  below.run_directory = yard_.directory.path();
  below.task_directory = yard_.directory / "group/task";
  std::filesystem::create_symlink(elsewhere, yard_.directory / "group");
  EXPECT_EQ(yard_.refusal(below), "'" + (yard_.directory / "group") + refused);
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  ASSERT_TRUE(sys::make_directories(task.task_directory));
  std::filesystem::create_hard_link(yard_.directory / "mine", task.stdout_path);
  EXPECT_EQ(yard_.refusal(task), "cannot write '" + task.stdout_path +
                                     "': it has a second name (a hard link); remove it");
  EXPECT_EQ(sys::content_of(yard_.directory / "mine"), "mine");
}

TEST_F(PreloadsTest, AreStartedAgainWhenTheyDie) {
  write("mydata.py", kNotes);
  yard_.keeper.start(TestYard::key(0),
                     launch({"-c", "import time; time.sleep(100)"}, {"mydata"}, 0));
  const std::int64_t task = yard_.wait_for_start(0);
  const std::int64_t first = importer();
  ::kill(static_cast<int>(first), SIGKILL);
  yard_.keeper.start(TestYard::key(1), launch({"-c", "print('here')"}, {"mydata"}, 1));
  EXPECT_EQ(yard_.wait_for_end(1).end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(out(1), "here\n");
  EXPECT_NE(importer(), first);
  EXPECT_TRUE(is_alive(task)) << "what runs is not harmed";
  yard_.keeper.signal(TestYard::key(0), SIGKILL);
  EXPECT_EQ(yard_.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
}

TEST_F(PreloadsTest, RefuseWhatTheyDieOfTwice) {
  write("deadly.py", "import os; os.kill(os.getpid(), 9)\n");
  EXPECT_EQ(yard_.refusal(launch({"-c", ""}, {"deadly"})),
            "cannot import deadly beforehand: that process was killed by signal 9 (see '" +
                yard_.directory.path() + "/preload.log')");
}

TEST_F(PreloadsTest, StopATaskThatStillWaitsForTheImport) {
  write("slow.py", kNotes + "import time; time.sleep(1000)\n");
  yard_.keeper.start(TestYard::key(0), launch({"-c", ""}, {"slow"}));
  yard_.keeper.start(TestYard::key(1), launch({"-c", ""}, {"slow"}, 1));
  ASSERT_TRUE(yard_.wait([this] { return std::filesystem::exists(yard_.directory / "importer"); }));
  yard_.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard_.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGTERM}));
  yard_.keeper.signal(TestYard::key(1), SIGKILL);
  EXPECT_EQ(yard_.wait_for_end(1).end, model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_EQ(yard_.news.size(), 2U) << "neither was said to have started";
}

TEST_F(PreloadsTest, RefuseOnlyTheTaskThatTheyDieOfWhileTheyForkIt) {
  // The first two forks of all kill their parent; what it imported is fine.
  write("deadly.py",
        "import os\n"
        "def count():\n"
        "  with open('forks', 'a') as file: file.write('x')\n"
        "  if os.path.getsize('forks') <= 2: os.kill(os.getpid(), 9)\n"
        "os.register_at_fork(before=count)\n");
  for (std::uint32_t i = 0; i < 3; ++i) {
    yard_.keeper.start(TestYard::key(i), launch({"-c", "print('here')"}, {"deadly"}, i));
  }
  const model::End first = yard_.wait_for_end(0).end;
  ASSERT_TRUE(std::holds_alternative<model::NotStarted>(first));
  EXPECT_THAT(std::get<model::NotStarted>(first).why,
              HasSubstr("cannot start from what has imported deadly: that process was killed by"));
  EXPECT_EQ(yard_.wait_for_end(1).end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(yard_.wait_for_end(2).end, model::End(model::ExitedWith{0}));
}

TEST_F(PreloadsTest, AreEndedWithTheTaskThatTheyHangOn) {
  write("hangs.py",
        "import os, signal\n"
        "def hang():\n"
        "  if os.path.exists('hang'):\n"
        "    open('hanging', 'w').close()\n"
        "    while True: signal.pause()\n"
        "os.register_at_fork(after_in_child=hang)\n");
  write("hang", "");
  yard_.keeper.start(TestYard::key(0), launch({"-c", ""}, {"hangs"}, 0));
  yard_.keeper.start(TestYard::key(1), launch({"-c", ""}, {"hangs"}, 1));
  ASSERT_TRUE(yard_.wait([this] { return std::filesystem::exists(yard_.directory / "hanging"); }));
  std::filesystem::remove(yard_.directory / "hang");
  yard_.keeper.signal(TestYard::key(0), SIGTERM);
  yard_.keeper.signal(TestYard::key(0), SIGKILL);
  EXPECT_EQ(yard_.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_EQ(yard_.wait_for_end(1).end, model::End(model::ExitedWith{0})) << "with a new one";
}

TEST_F(PreloadsTest, EndWithAYardThatGoesWhileATaskIsForked) {
  write("slow.py",
        "import os, signal\n"
        "def hang():\n"
        "  open('hanging', 'w').close()\n"
        "  while True: signal.pause()\n"
        "os.register_at_fork(after_in_child=hang)\n" +
            kNotes);
  std::int64_t keeper = 0;
  {
    TestYard other;
    model::Launch mine = launch({"-c", ""}, {"slow"});
    keeper = other.keeper.pid();
    other.keeper.start(TestYard::key(0), mine);
    ASSERT_TRUE(
        other.wait([this] { return std::filesystem::exists(yard_.directory / "hanging"); }));
  }
  EXPECT_FALSE(is_alive(keeper));
  EXPECT_FALSE(is_alive(importer()));
}

TEST_F(PreloadsTest, LetTasksDieWithTheKeeper) {
  TestYard other;
  model::Launch mine = launch({"-c", "import time; time.sleep(100)"}, {"json"});
  other.keeper.start(TestYard::key(0), mine);
  const std::int64_t task = other.wait_for_start();
  ::kill(static_cast<int>(other.keeper.pid()), SIGKILL);
  EXPECT_TRUE(sys::eventually([task] { return !is_alive(task); }));
}

TEST_F(PreloadsTest, EndWhenNoneOfTheirTasksIsLeft) {
  TestYard other({.preload_idle_max = Duration(1)});
  ASSERT_TRUE(sys::write_file_atomically(other.directory / "mydata.py", kNotes));
  model::Launch mine = launch({"-c", "import time; time.sleep(100)"}, {"mydata"});
  mine.working_directory = mine.preload.path = other.directory.path();
  other.keeper.start(TestYard::key(0), mine);
  const std::int64_t task = other.wait_for_start();
  const std::int64_t importing = pid_in(other.directory / "importer");
  EXPECT_TRUE(is_alive(importing));
  other.keeper.signal(TestYard::key(0), SIGKILL);
  other.wait_for_end();
  EXPECT_TRUE(other.wait([importing] { return !is_alive(importing); }));
  EXPECT_FALSE(is_alive(task));
}

TEST_F(PreloadsTest, EndWithTheYard) {
  std::int64_t importing = 0;
  std::int64_t task = 0;
  {
    TestYard other;
    ASSERT_TRUE(sys::write_file_atomically(other.directory / "mydata.py", kNotes));
    model::Launch mine = launch({"-c", "import time; time.sleep(100)"}, {"mydata"});
    mine.working_directory = mine.preload.path = other.directory.path();
    other.keeper.start(TestYard::key(0), mine);
    task = other.wait_for_start();
    importing = pid_in(other.directory / "importer");
    EXPECT_TRUE(is_alive(importing));
  }
  EXPECT_FALSE(is_alive(importing));
  EXPECT_FALSE(is_alive(task));
}

TEST_F(PreloadsTest, AreNoMoreThanEightAndWhatComesThenStartsWithoutOne) {
  constexpr std::uint32_t kTasks = Preloads::kServersMax + 1;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    model::Launch task = launch({"-c",
                                 "import sys, time; print('wave' in sys.modules, flush=True); "
                                 "time.sleep(100)"},
                                {"wave"}, i);
    task.preload.environment.push_back("SEED=" + std::to_string(i));
    yard_.keeper.start(TestYard::key(i), task);
  }
  std::vector<std::string> printed(kTasks);
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    yard_.wait_for_start(i);
    ASSERT_TRUE(yard_.wait([&] { return out(i).ends_with('\n'); }));
    printed[i] = out(i);
  }
  EXPECT_EQ(std::ranges::count(printed, "True\n"), Preloads::kServersMax);
  EXPECT_EQ(printed.back(), "False\n");
}

TEST_F(PreloadsTest, GiveWayToAnotherWhenNobodyUsesThem) {
  for (std::uint32_t i = 0; i < Preloads::kServersMax + 1; ++i) {
    model::Launch task = launch({"-c", "import sys; print('wave' in sys.modules)"}, {"wave"});
    task.preload.environment.push_back("SEED=" + std::to_string(i));
    EXPECT_EQ(yard_.run(task), model::End(model::ExitedWith{0}));
    EXPECT_EQ(out(), "True\n") << i;
  }
}

TEST_F(PreloadsTest, GiveEachTaskRandomNumbersOfItsOwn) {
  write("draws.py", "import random; print(random.random())\n");
  std::set<std::string> drawn;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(yard_.run(launch({"draws.py"}, {"random"})), model::End(model::ExitedWith{0}));
    drawn.insert(out());
  }
  EXPECT_EQ(drawn.size(), 3U);
}

}  // namespace
}  // namespace trainyard::process
