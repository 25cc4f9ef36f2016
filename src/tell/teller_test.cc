// The process that tells others, with nobody there to be told. Real servers are in
// tests/e2e/test_telling.py.
#include "tell/teller.h"

#include <csignal>
#include <filesystem>

#include <sys/stat.h>
#include <sys/types.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_directory.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::tell {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// Nobody listens at port 1.
TellerOptions to_nobody(const sys::TemporaryDirectory& place) {
  return {.notify = {{.url = "http://127.0.0.1:1/secret", .host = "127.0.0.1:1"}},
          .mail = std::nullopt,
          .mail_limits = {},
          .run_directory = place.path(),
          .job = "digits",
          .host = "here",
          .limits = {},
          .patience_at_end = Duration{200}};
}

std::size_t lines_with(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Teller, SaysWhoCouldNotBeToldAndEndsInTime) {
  const sys::TemporaryDirectory place;
  Result<Teller> teller = Teller::start(to_nobody(place));
  ASSERT_TRUE(teller);
  teller->begin({.job = "digits", .number = 1, .directory = place.path(), .host = "here"}, "{}");
  teller->finish("the end", "{}");
  const std::vector<std::string> lines = teller->wait();
  EXPECT_THAT(lines, Contains("notify: 127.0.0.1:1: the end: given up: it was not taken in time, "
                              "and the run is over"));
  EXPECT_THAT(lines, Each(AllOf(HasSubstr("127.0.0.1:1"), Not(HasSubstr("secret")))));
  EXPECT_TRUE(teller->ends_within(Duration{0}));
}

TEST(Teller, TellsPeopleThoughAPipeIsInThePlaceOfItsLog) {
  const sys::TemporaryDirectory place;
  ASSERT_EQ(::mkfifo(run::telling_log_path(place.path()).c_str(), 0600), 0);
  Result<Teller> teller = Teller::start(to_nobody(place));
  ASSERT_TRUE(teller);
  teller->finish("the end", "{}");
  EXPECT_THAT(teller->wait(), Contains(HasSubstr("the end: given up")));
}

TEST(Teller, WritesItsLogInTheDirectoryOfItsRunWhereverATaskMovesIt) {
  const sys::TemporaryDirectory place;
  for (const char* const run : {"run", "other"}) place.make(run);
  TellerOptions options = to_nobody(place);
  options.run_directory = place / "run";
  Result<Teller> teller = Teller::start(options);
  ASSERT_TRUE(teller);
  std::filesystem::rename(place / "run", place / "run.x");
  std::filesystem::create_symlink(place / "other", place / "run");
  teller->finish("the end", "{}");
  EXPECT_THAT(teller->wait(), Contains(HasSubstr("the end: given up")));
  EXPECT_THAT(sys::names_in(place / "other"), IsEmpty());
  EXPECT_THAT(sys::content_of(run::telling_log_path(place / "run.x")), HasSubstr("the end"));
}

TEST(Teller, TellsPeopleABoundedNumberOfLinesAndItsLogAll) {
  const sys::TemporaryDirectory place;
  Result<Teller> teller = Teller::start(to_nobody(place));
  ASSERT_TRUE(teller);
  teller->begin({.job = "digits", .directory = place.path(), .host = "here"}, "{}");
  constexpr int kPosts = 60;
  for (int i = 0; i < kPosts; ++i) teller->post(fmt::format("news {}", i), "{}");
  EXPECT_TRUE(sys::eventually([&] {
    const std::string log = sys::content_of(run::telling_log_path(place.path()));
    return lines_with(log, "not sent yet") == kPosts;
  }));
  EXPECT_THAT(teller->hear(), SizeIs(Teller::kLinesMax));
  teller->finish("the end", "{}");
  EXPECT_THAT(teller->wait(), IsEmpty());
}

TEST(Teller, WaitsForNothingAndKeepsABoundedNumberOfWordsWhereNobodyListens) {
  const sys::TemporaryDirectory place;
  Result<Teller> teller = Teller::start(to_nobody(place));
  ASSERT_TRUE(teller);
  const std::vector<pid_t> children = sys::ChildList().read();
  ASSERT_THAT(children, SizeIs(1));
  ::kill(children.front(), SIGSTOP);
  for (std::uint32_t i = 0; i < Teller::kUnsentMax + 5'000; ++i) teller->mail({i});
  EXPECT_EQ(teller->unsent(), Teller::kUnsentMax);
  teller->finish("the end", "{}");
  EXPECT_EQ(teller->unsent(), Teller::kUnsentMax);
  const std::vector<std::string> lines = teller->wait();
  EXPECT_THAT(
      lines, Contains("the process that sends notifications did not exit in time, and was killed"));
}

TEST(Teller, SaysThatItHasDied) {
  const sys::TemporaryDirectory place;
  Result<Teller> teller = Teller::start(to_nobody(place));
  ASSERT_TRUE(teller);
  teller->begin({.job = "digits", .directory = place.path(), .host = "here"}, "{}");
  const std::vector<pid_t> children = sys::ChildList().read();
  ASSERT_THAT(children, SizeIs(1));
  ::kill(children.front(), SIGKILL);
  ASSERT_TRUE(teller->ends_within(sys::kLongEnough));
  EXPECT_THAT(teller->hear(),
              ::testing::ElementsAre("the process that sends notifications has died"));
  EXPECT_THAT(teller->hear(), IsEmpty());
  teller->post("news", "{}");
  teller->finish("the end", "{}");
  EXPECT_THAT(teller->wait(), IsEmpty());
}

TEST(Teller, IsGoneWithARunThatNeverBegan) {
  const sys::TemporaryDirectory place;
  {
    const Result<Teller> teller = Teller::start(to_nobody(place));
    ASSERT_TRUE(teller);
    EXPECT_THAT(sys::ChildList().read(), SizeIs(1));
  }
  EXPECT_THAT(sys::ChildList().read(), IsEmpty());
}

}  // namespace
}  // namespace trainyard::tell
