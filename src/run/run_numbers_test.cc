// Runs have small numbers, each its own for as long as it is kept.
#include "run/run_numbers.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunNumbersTest : public ::testing::Test {
 protected:
  sys::TemporaryDirectory directory_;
  RunNumbers numbers_{directory_ / "state/host/runs"};
};

TEST_F(RunNumbersTest, CountFromOne) {
  EXPECT_EQ(numbers_.give("/runs/a", "/home/me").value(), 1);
  EXPECT_EQ(numbers_.give("/runs/b", "/home/me").value(), 2);
  EXPECT_EQ(numbers_.directory_of(1), "/runs/a");
  EXPECT_EQ(numbers_.directory_of(2), "/runs/b");
  EXPECT_EQ(numbers_.number_of("/runs/b"), 2);
  EXPECT_EQ(numbers_.directory_of(3), std::nullopt);
  EXPECT_EQ(numbers_.number_of("/runs/c"), std::nullopt);
}

TEST_F(RunNumbersTest, AreKeptByARunThatGoesOn) {
  EXPECT_EQ(numbers_.keep("/runs/a", "/home/me").value(), 1)
      << "one that began where numbers were not kept";
  EXPECT_EQ(numbers_.give("/runs/b", "/home/me").value(), 2);
  EXPECT_EQ(numbers_.keep("/runs/a", "/home/me").value(), 1);
  EXPECT_EQ(numbers_.all().size(), 2);
}

TEST_F(RunNumbersTest, AreNewForARunThatBeginsWhereAnotherWas) {
  EXPECT_EQ(numbers_.give("/runs/a", "/home/me").value(), 1);
  EXPECT_EQ(numbers_.give("/runs/a", "/home/me").value(), 2);
  EXPECT_EQ(numbers_.directory_of(1), std::nullopt) << "it would be the results of another run";
  EXPECT_EQ(numbers_.number_of("/runs/a"), 2);
}

TEST_F(RunNumbersTest, HaveAnIdentityThatTheirUsersShare) {
  EXPECT_EQ(numbers_.identity(), "");
  EXPECT_EQ(numbers_.give("/runs/a", "/home/me").value(), 1);
  EXPECT_EQ(numbers_.identity().size(), 16U);
  EXPECT_EQ(RunNumbers(directory_ / "state/../state/host/runs").identity(), numbers_.identity());
  const RunNumbers other(directory_ / "other/host/runs");
  EXPECT_EQ(other.give("/runs/a", "/home/me").value(), 1);
  EXPECT_NE(other.identity(), numbers_.identity());
}

TEST_F(RunNumbersTest, AreTakenBackFromARunThatDoesNotBegin) {
  EXPECT_EQ(numbers_.give("/runs/a", "/home/me").value(), 1);
  EXPECT_EQ(numbers_.give("/runs/b", "/home/me").value(), 2);
  numbers_.forget(2);
  EXPECT_EQ(numbers_.directory_of(2), std::nullopt);
  EXPECT_THAT(numbers_.started_from("/home/me"), ElementsAre("/runs/a"));
  EXPECT_EQ(numbers_.give("/runs/c", "/home/me").value(), 2);
}

TEST_F(RunNumbersTest, AreToldTheLastOneFirst) {
  for (int i = 1; i <= 12; ++i) {
    EXPECT_EQ(numbers_.give("/runs/" + std::to_string(i), "/home/me").value(), i);
  }
  const std::vector<RunNumbers::Numbered> all = numbers_.all();
  ASSERT_EQ(all.size(), 12);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, 12 - i);
    EXPECT_EQ(all[i].directory, "/runs/" + std::to_string(12 - i));
  }
}

TEST_F(RunNumbersTest, AreForgottenTheOldestFirstBeyondTheirBound) {
  const std::string place = directory_ / "state/host/runs";
  std::filesystem::create_directories(place);
  const auto most = static_cast<std::uint32_t>(RunNumbers::kKeptMax);
  for (std::uint32_t i = 1; i <= most; ++i) {
    std::filesystem::create_symlink("/runs/" + std::to_string(i), place + "/" + std::to_string(i));
  }
  EXPECT_EQ(numbers_.give("/runs/next", "/home/me").value(), most + 1);
  EXPECT_EQ(numbers_.all().size(), RunNumbers::kKeptMax);
  EXPECT_EQ(numbers_.directory_of(1), std::nullopt);
  EXPECT_EQ(numbers_.directory_of(2), "/runs/2");
}

TEST_F(RunNumbersTest, KnowFromWhereARunWasStarted) {
  EXPECT_EQ(numbers_.give("/a/runs/x", "/a").value(), 1);
  EXPECT_EQ(numbers_.give("/a/sub/runs/y", "/a").value(), 2);
  EXPECT_EQ(numbers_.give("/b/runs/x", "/b").value(), 3);
  EXPECT_EQ(numbers_.keep("/a/runs/x", "/b").value(), 1) << "it was started from /a all the same";
  EXPECT_THAT(numbers_.started_from("/a"), ElementsAre("/a/sub/runs/y", "/a/runs/x"));
  EXPECT_EQ(numbers_.start_of(1), "/a");
  EXPECT_EQ(numbers_.start_of(9), std::nullopt);
  EXPECT_EQ(numbers_.give("/a/sub/runs/y", "/b").value(), 4);
  EXPECT_THAT(numbers_.started_from("/a"), ElementsAre("/a/runs/x")) << "another run is there";
  EXPECT_THAT(numbers_.started_from("/b"), ElementsAre("/a/sub/runs/y", "/b/runs/x"));
}

TEST_F(RunNumbersTest, PassOverWhatElseLiesThere) {
  const std::string place = directory_ / "state/host/runs";
  std::filesystem::create_directories(place);
  std::ofstream(place + "/7").put('x');
  std::ofstream(place + "/notes").put('x');
  std::filesystem::create_symlink("/runs/zero", place + "/0");
  std::filesystem::create_symlink("/runs/eight", place + "/08");
  EXPECT_TRUE(numbers_.all().empty());
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(numbers_.give("/runs/x" + std::to_string(i), "/home/me").value(), i);
  EXPECT_EQ(numbers_.give("/runs/x7", "/home/me").value(), 8) << "7 is somebody's file";
}

TEST_F(RunNumbersTest, AreNotGivenWhereNothingCanBeWritten) {
  std::ofstream(directory_ / "file").put('x');
  const Result<std::uint32_t> given =
      RunNumbers(directory_ / "file/runs").give("/runs/a", "/home/me");
  ASSERT_FALSE(given.has_value());
  EXPECT_THAT(given.error().message, HasSubstr("file/runs"));
}

TEST(RunNumber, IsOfDigitsAloneAndNotZero) {
  EXPECT_EQ(read_run_number("1"), 1);
  EXPECT_EQ(read_run_number("46"), 46);
  EXPECT_EQ(read_run_number("4294967295"), 4294967295);
  for (const std::string_view text : {"", "0", "01", "-1", "+1", "1 ", "4294967296", "a", "1a"}) {
    EXPECT_EQ(read_run_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace trainyard::run
