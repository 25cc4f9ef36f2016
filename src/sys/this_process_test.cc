// What a process that becomes another one does first. Becoming one is tested by `trainyard rank`.
#include "sys/this_process.h"

#include <sys/resource.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/files.h"
#include "sys/test_directory.h"

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

TEST(ThisProcess, SaysWhichLogCannotBeWritten) {
  const auto log = open_log("/no/such/place/log", IfThere::Empty);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "cannot write '/no/such/place/log': no such file or directory");
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
              fmt::format("{} open files are needed, but {} are allowed (ulimit -Hn)",
                          before.rlim_max + 1, before.rlim_max));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ThisProcess, SaysWhichProgramItCannotBecome) {
  EXPECT_EQ(become({"no-such-program"}).message,
            "cannot run 'no-such-program': no such file or directory");
}

}  // namespace
}  // namespace trainyard::sys
