// Tasks that are no command, but the program itself in a fork of the keeper.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include <sys/types.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/keeper.h"
#include "io/test_yard.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"

namespace trainyard::io {
namespace {

using Body = std::function<int(AttemptKey, const Launch&)>;

Launch forked(TestYard& yard) {
  Launch launch = yard.launch({});
  launch.forked = true;
  launch.environment = {"TRAINYARD_TEST_FORKED=a=b", "PATH="};
  return launch;
}

TEST(KeeperFork, GoesOnInAProcessOfItsOwnWithWhatTheProgramHad) {
  const std::string loaded(1 << 20, 'x');
  TestYard yard({.body = [&loaded](AttemptKey key, const Launch& launch) {
    std::ofstream out(launch.result_path);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread.
    out << loaded.size() << ' ' << key.attempt << ' ' << std::getenv("TRAINYARD_TEST_FORKED") << ' '
        << (::getsid(0) == ::getpid()) << (::getpgrp() == ::getpid());
    return 7;
  }});
  const Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), End(ExitedWith{7}));
  EXPECT_EQ(content_of(launch.result_path), "1048576 1 a=b 11");
}

TEST(KeeperFork, WorksInTheTasksDirectoryAndPrintsIntoItsLogs) {
  TestYard yard({.body = [](AttemptKey, const Launch&) {
    std::puts(std::filesystem::current_path().c_str());
    std::fputs("trouble\n", stderr);
    return 0;
  }});
  const Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), End(ExitedWith{0}));
  EXPECT_EQ(content_of(launch.stdout_path), launch.task_directory + "\n");
  EXPECT_EQ(content_of(launch.stderr_path), "trouble\n");
}

TEST(KeeperFork, EndsThatProcessAloneWhenItThrows) {
  TestYard yard({.body = [](AttemptKey key, const Launch&) -> int {
    if (key.task.value == 0) throw std::runtime_error("no");
    return 0;
  }});
  const Launch launch = forked(yard);
  EXPECT_EQ(yard.run(launch), End(KilledBy{.signal = SIGABRT}));
  EXPECT_NE(content_of(launch.stderr_path).find("std::runtime_error"), std::string::npos);
  yard.keeper.start(TestYard::key(1), launch);
  EXPECT_EQ(yard.wait_for_end(1).end, End(ExitedWith{0}));
}

TEST(KeeperFork, EndsLikeAnyTaskWhenItIsToldTo) {
  TestYard yard({.body = [](AttemptKey, const Launch&) {
    for (;;) ::pause();
    return 0;
  }});
  yard.keeper.start(TestYard::key(0), forked(yard));
  static_cast<void>(yard.wait_for_start());
  yard.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard.wait_for_end().end, End(KilledBy{.signal = SIGTERM}));
}

}  // namespace
}  // namespace trainyard::io
