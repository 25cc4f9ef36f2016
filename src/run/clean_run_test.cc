#include "run/clean_run.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/test_run.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::HasSubstr;

TEST(CleanRun, DeletesNothingWhereNoJournalSaysWhatBelongsToTheRun) {
  const sys::TemporaryDirectory directory;
  const std::string file = directory / "precious.txt";
  ASSERT_TRUE(sys::write_file_atomically(file, "mine").has_value());
  const Result<Cleaned> cleaned = clean_run(directory.path(), {});
  ASSERT_FALSE(cleaned.has_value());
  EXPECT_THAT(cleaned.error().message, HasSubstr("journal"));
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(CleanRun, DeletesASubmissionThatHasNotBegunAndNothingElseInItsDirectory) {
  const sys::TemporaryDirectory place;
  for (const bool has_other_file : {false, true}) {
    const std::string run = place / (has_other_file ? "shared" : "own");
    std::filesystem::create_directory(run);
    for (const char* name : {"trainyard.submission", "trainyard.job.yaml", "trainyard.run.log"}) {
      ASSERT_TRUE(sys::write_file_atomically(run + "/" + name, "four"));
    }
    const std::string learned = run + "/.trainyard/trainyard.job.yaml.learned.json";
    std::filesystem::create_directory(run + "/.trainyard");
    std::ofstream(learned) << "four";
    const std::string other = run + "/precious.txt";
    if (has_other_file) std::ofstream(other) << "mine";
    const Result<Cleaned> would = clean_run(run, {.only_look = true, .learned = {learned}});
    ASSERT_TRUE(would.has_value()) << would.error().message;
    EXPECT_EQ(would->bytes, Bytes{16});
    EXPECT_EQ(would->entries, 4U);
    EXPECT_TRUE(std::filesystem::exists(run + "/trainyard.submission"));
    EXPECT_TRUE(std::filesystem::exists(learned));
    const Result<Cleaned> cleaned = clean_run(run, {.learned = {learned}});
    ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
    EXPECT_EQ(cleaned->bytes, Bytes{16});
    EXPECT_EQ(cleaned->entries, 4U);
    EXPECT_FALSE(std::filesystem::exists(run + "/.trainyard"));
    EXPECT_EQ(cleaned->is_gone, !has_other_file);
    EXPECT_EQ(std::filesystem::exists(other), has_other_file);
    EXPECT_FALSE(std::filesystem::exists(run + "/trainyard.submission"));
  }
}

TEST(CleanRun, DeletesNothingOfASubmissionWhoseJournalIsGone) {
  const sys::TemporaryDirectory run;
  run.write("trainyard.submission", "");
  run.write("trainyard.job.yaml", "");
  std::filesystem::create_directories(run / "g/a");
  run.write("g/a/stdout.log", "epoch 1");
  EXPECT_FALSE(clean_run(run.path(), {}).has_value());
  EXPECT_TRUE(std::filesystem::exists(run / "g/a/stdout.log"));
}

TEST(CleanRun, DeletesALinkInThePlaceOfTheReportsAndNothingBehindIt) {
  const sys::TemporaryDirectory place;
  place.make("run");
  place.make("pages");
  place.write("pages/index.html", "mine");
  std::filesystem::create_directory_symlink(place / "pages", place / "run/reports");
  const journal::TestJob job{journal::numbered(1)};
  ASSERT_TRUE(journal::Journal::create(journal_path(place / "run"), "job", job.batch(), {}));
  const Result<Cleaned> cleaned = clean_run(place / "run", {});
  ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
  EXPECT_TRUE(cleaned->is_gone);
  EXPECT_EQ(sys::content_of(place / "pages/index.html"), "mine");
}

TEST(CleanRun, DeletesLinksInThePlaceOfTaskDirectoriesAndNothingBehindThem) {
  for (const char* const linked : {"train/0", "train"}) {
    SCOPED_TRACE(linked);
    const sys::TemporaryDirectory place;
    std::filesystem::create_directories(place / "run/train/1");
    std::filesystem::create_directories(place / "big/0");
    place.write("big/model.pt", "mine");
    const std::string link = place / fmt::format("run/{}", linked);
    std::filesystem::remove_all(link);
    std::filesystem::create_directory_symlink(place / "big", link);
    const journal::TestJob job{journal::numbered(2)};
    ASSERT_TRUE(journal::Journal::create(journal_path(place / "run"), "job", job.batch(), {}));
    ASSERT_TRUE(clean_run(place / "run", {.keep_results = true}).has_value());
    EXPECT_TRUE(std::filesystem::is_symlink(link)) << "results may be behind it";
    const Result<Cleaned> would = clean_run(place / "run", {.only_look = true});
    ASSERT_TRUE(would.has_value()) << would.error().message;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    const Result<Cleaned> cleaned = clean_run(place / "run", {});
    ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
    EXPECT_EQ(cleaned->entries, would->entries);
    EXPECT_TRUE(cleaned->is_gone);
    EXPECT_EQ(sys::content_of(place / "big/model.pt"), "mine");
    EXPECT_TRUE(std::filesystem::exists(place / "big/0"));
  }
}

TEST(CleanRun, KeepsALinkWithTheResultsAndEmptyDirectoriesBehindIt) {
  for (const char* const target : {"elsewhere", "elsewhere/x"}) {
    SCOPED_TRACE(target);
    const sys::TemporaryDirectory place;
    place.make("run");
    std::filesystem::create_directories(place / target);
    const std::string link = place / "run/train";
    std::filesystem::create_directory_symlink(place / "elsewhere", link);
    journal::TestJob job{journal::numbered(1)};
    job.plan.groups.front().directory = "train/x";
    ASSERT_TRUE(journal::Journal::create(journal_path(place / "run"), "job", job.batch(), {}));
    const Result<Cleaned> cleaned = clean_run(place / "run", {.keep_results = true});
    ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_TRUE(std::filesystem::exists(place / target));
  }
}

TEST(CleanRun, DeletesTheFilesThatATaskHadPutInThePlaceOfTheJournal) {
  const sys::TemporaryDirectory place;
  place.make("run");
  const journal::TestJob job{journal::numbered(1)};
  ASSERT_TRUE(journal::Journal::create(journal_path(place / "run"), "job", job.batch(), {}));
  place.write("precious", "mine");
  place.write("run/journal.db.other-1f0c93ab", "theirs");
  std::filesystem::create_symlink(place / "precious", place / "run/journal.db.other-1f0c93ab-wal");
  const Result<Cleaned> cleaned = clean_run(place / "run", {});
  ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
  EXPECT_TRUE(cleaned->is_gone);
  EXPECT_EQ(sys::content_of(place / "precious"), "mine");
}

TEST(CleanRun, DeletesNothingOfARunThatIsAtWork) {
  const sys::TemporaryDirectory directory;
  const Result<sys::RunLock> lock = sys::RunLock::take(directory.path());
  ASSERT_TRUE(lock.has_value());
  for (const bool only_look : {false, true}) {
    EXPECT_FALSE(clean_run(directory.path(), {.only_look = only_look}).has_value());
  }
}

}  // namespace
}  // namespace trainyard::run
