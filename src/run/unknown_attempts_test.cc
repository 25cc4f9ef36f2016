// A run is not resumed over the logs of attempts that its journal has lost.
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/test_run.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using journal::at;
using journal::key;
using journal::must;
using ::testing::HasSubstr;

/// A run whose yard has died: of group g, task a has finished, b runs, and the others wait.
class UnknownAttempts : public ::testing::Test {
 protected:
  UnknownAttempts() {
    const journal::TestJob job{{.name = "g", .ids = {"a", "b", "c", "d", "e", "f"}}};
    auto written =
        must(journal::Journal::create(journal_path(run_.path()), "job", job.batch(), {}));
    must(written->commit(journal::granted(at(10), {key(0), key(1)})));
    must(written->commit(journal::finished(at(20), key(0), "{}")));
    log("g/a/stdout.log");
    log("g/b/stdout.log");
  }
  void log(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(run_ / name).parent_path());
    run_.write(name, "epoch 1\n");
  }
  [[nodiscard]] std::string refusal() const {
    const Result<void> known = check_attempts_are_known(run_.path());
    return known ? "" : known.error().message;
  }

  sys::TemporaryDirectory run_;
};

TEST_F(UnknownAttempts, AreNoneWhereTheJournalIsWhole) {
  EXPECT_EQ(refusal(), "");
  std::filesystem::create_directories(run_ / "g/c");
  EXPECT_EQ(refusal(), "") << "a directory without a log is of no attempt";
}

TEST_F(UnknownAttempts, AreNamedWithTheCure) {
  log("g/c/stdout.log");
  EXPECT_EQ(refusal(), "the journal of '" + run_.path() +
                           "' does not contain the last attempts of its tasks, whose logs are in "
                           "g/c: journal.db-wal is missing or damaged. Put it back, or move these "
                           "directories away to run the tasks again");
  for (const char* const task : {"d", "e", "f"}) log(std::string("g/") + task + "/stdout.log");
  EXPECT_THAT(refusal(), HasSubstr("are in g/c, g/d, g/e and 1 more task directory: "));
}

TEST_F(UnknownAttempts, MayFollowKnownOnes) {
  log("g/b/stdout.2.log");
  EXPECT_THAT(refusal(), HasSubstr("are in g/b: "));
}

TEST_F(UnknownAttempts, OfAFinishedTaskRunNothingAgain) {
  log("g/a/stdout.2.log");
  EXPECT_EQ(refusal(), "");
}

TEST_F(UnknownAttempts, FromBeforeThisBootRunAgain) {
  log("g/c/stdout.log");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::years(30);
  std::filesystem::last_write_time(run_ / "g/c/stdout.log", long_ago);
  EXPECT_EQ(refusal(), "");
}

TEST_F(UnknownAttempts, AreNotLookedForWithoutAJournal) {
  log("g/c/stdout.log");
  std::filesystem::remove(journal_path(run_.path()));
  EXPECT_EQ(refusal(), "") << "what opens it for writing reports that";
}

}  // namespace
}  // namespace trainyard::run
