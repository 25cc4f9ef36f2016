// Messages of a process that goes on to the one that was there first.
#include "sys/depart.h"

#include <cerrno>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/this_process.h"

namespace trainyard::sys {
namespace {

/// The report to the first process from one that does `body`, which may not return.
template <class Body>
Departed heard_of(Body body) {
  auto departed = depart();
  EXPECT_TRUE(departed);
  if (!departed) ::_exit(99);
  if (auto* const departure = std::get_if<Departure>(&*departed)) body(*departure);
  return std::get<Departed>(*departed);
}

TEST(Depart, TellsTheWordAndPrintsToTheLogFromThenOn) {
  const TemporaryDirectory place;
  const pid_t us = ::getpid();
  const Departed departed = heard_of([&](Departure& departure) {
    const auto log = open_log(place / "log", IfThere::Empty);
    departure.begun(::getsid(0) == ::getpid() && ::getpid() != us ? "46" : "bad", *log);
    static_cast<void>(::write(STDOUT_FILENO, "later\n", 6));
    ::_exit(0);
  });
  EXPECT_EQ(departed.word, "46");
  EXPECT_EQ(departed.exit_code, 0);
  while (::waitpid(-1, nullptr, 0) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(content_of(place / "log"), "later\n");
}

TEST(Depart, TellsHowOneEndedThatHadNotBegun) {
  testing::internal::CaptureStderr();
  const Departed departed = heard_of([](Departure&) {
    static_cast<void>(::write(STDERR_FILENO, "no such job\n", 12));
    ::_exit(2);
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "no such job\n");
  EXPECT_EQ(departed.word, "");
  EXPECT_EQ(departed.exit_code, 2);
}

TEST(Depart, TellsWhichSignalEndedOneThatHadNotBegun) {
  const Departed departed = heard_of([](Departure&) {
    ::kill(::getpid(), SIGKILL);
    ::_exit(0);
  });
  EXPECT_EQ(departed.word, "");
  EXPECT_EQ(departed.exit_code, 128 + SIGKILL);
}

}  // namespace
}  // namespace trainyard::sys
