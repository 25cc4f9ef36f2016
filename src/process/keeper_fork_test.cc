// Tasks that are no command, but the program itself in a fork of the keeper.
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <variant>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "process/test_yard.h"
#include "sys/descriptor.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using Body = std::function<int(model::AttemptKey, const model::Launch&)>;

model::Launch forked(TestYard& yard) {
  model::Launch launch = yard.launch({});
  launch.forked = true;
  launch.environment = {"TRAINYARD_TEST_FORKED=a=b", "PATH="};
  return launch;
}

TEST(KeeperFork, GoesOnInAProcessOfItsOwnWithWhatTheProgramHad) {
  const std::string loaded(1 << 20, 'x');
  TestYard yard({.body = [&loaded](model::AttemptKey key, const model::Launch& launch) {
    std::ofstream out(launch.result_path);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread.
    out << loaded.size() << ' ' << key.attempt << ' ' << std::getenv("TRAINYARD_TEST_FORKED") << ' '
        << (::getsid(0) == ::getpid()) << (::getpgrp() == ::getpid());
    return 7;
  }});
  const model::Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{7}));
  EXPECT_EQ(sys::content_of(launch.result_path), "1048576 1 a=b 11");
}

TEST(KeeperFork, WorksInTheTasksDirectoryAndPrintsIntoItsLogs) {
  TestYard yard({.body = [](model::AttemptKey, const model::Launch&) {
    std::puts(std::filesystem::current_path().c_str());
    std::fputs("trouble\n", stderr);
    return 0;
  }});
  const model::Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_EQ(sys::content_of(launch.stdout_path), launch.task_directory + "\n");
  EXPECT_EQ(sys::content_of(launch.stderr_path), "trouble\n");
}

TEST(KeeperFork, HasTheDescriptorsOfTheProgramAndNoneOfOursAlsoFromAnotherKeeper) {
  const sys::TemporaryDirectory place;
  place.write("data", "12");
  const int data = ::open((place / "data").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(data, 0);
  const sys::Descriptor ours = sys::Descriptor::duplicate(data);
  {
    TestYard yard({.body = [data, &ours](model::AttemptKey, const model::Launch&) {
      const auto is_open = [](int number) { return ::fcntl(number, F_GETFD) >= 0; };
      int others = 0;
      for (int number = STDERR_FILENO + 1; number < 1'024; ++number) {
        others += number != data && is_open(number) ? 1 : 0;
      }
      for (const int number : sys::descriptors_of_program()) others -= number != data ? 1 : 0;
      char digit = 0;
      // Its position is that of the program and all tasks.
      const bool reads = ::read(data, &digit, 1) == 1;
      return reads && others == 0 && !is_open(ours.get()) ? digit : 1;
    }});
    EXPECT_EQ(yard.run(forked(yard)), model::End(model::ExitedWith{'1'}));
    ASSERT_EQ(::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL), 0);
    ASSERT_TRUE(yard.wait([&] {
      return !yard.news.empty() && std::holds_alternative<KeeperReplaced>(yard.news.back());
    }));
    yard.keeper.start(TestYard::key(1), forked(yard));
    EXPECT_EQ(yard.wait_for_end(1).end, model::End(model::ExitedWith{'2'}));
  }
  ::close(data);
}

TEST(KeeperFork, ATaskWhoseDirectoryCannotBeEnteredIsNotStarted) {
  TestYard yard({.body = [](model::AttemptKey, const model::Launch&) { return 0; }});
  model::Launch launch = forked(yard);
  // Each part of the path can be made and entered, and the whole path is too long.
  launch.run_directory = launch.task_directory = yard.directory.path();
  for (std::size_t i = 0; i <= PATH_MAX / NAME_MAX; ++i) {
    launch.task_directory += "/" + std::string(NAME_MAX, 'd');
  }
  launch.stdout_path = yard.directory / "stdout.log";
  launch.stderr_path = yard.directory / "stderr.log";
  EXPECT_EQ(yard.run(launch),
            model::End(model::NotStarted{"cannot enter the directory '" + launch.task_directory +
                                         "': file name too long"}));
}

TEST(KeeperFork, EndsThatProcessAloneWhenItThrows) {
  TestYard yard({.body = [](model::AttemptKey key, const model::Launch&) -> int {
    if (key.task.value == 0) throw std::runtime_error("no");
    return 0;
  }});
  const model::Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), model::End(model::KilledBy{.signal = SIGABRT}));
  EXPECT_NE(sys::content_of(launch.stderr_path).find("std::runtime_error"), std::string::npos);
  yard.keeper.start(TestYard::key(1), launch);
  EXPECT_EQ(yard.wait_for_end(1).end, model::End(model::ExitedWith{0}));
}

TEST(KeeperFork, EndsLikeAnyTaskWhenItIsToldTo) {
  TestYard yard({.body = [](model::AttemptKey, const model::Launch&) {
    for (;;) ::pause();
    return 0;
  }});
  yard.keeper.start(TestYard::key(0), forked(yard));
  static_cast<void>(yard.wait_for_start());
  yard.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::KilledBy{.signal = SIGTERM}));
}

}  // namespace
}  // namespace trainyard::process
