#include "run/clean_run.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
