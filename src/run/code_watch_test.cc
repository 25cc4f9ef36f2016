// The code that attempts are reported to run: with the real process that asks git, in repositories
// made here, and with a git that does not answer.
#include "run/code_watch.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/environment.h"
#include "sys/helper_command.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

model::AttemptKey attempt(std::uint32_t task) { return {.task = {task}, .attempt = 1}; }

/// A repository with a file that changes while attempts start.
class CodeWatchTest : public ::testing::Test {
 protected:
  CodeWatchTest() {
    repository_.write("train.py", "lr = 1\n");
    const auto made =
        sys::run_helper({.arguments = {"sh", "-c",
                                       "git init -q && git add train.py && git -c user.name=me -c "
                                       "user.email=me@here commit -qm one"},
                         .directory = path()});
    EXPECT_TRUE(made.has_value() && made->exit_code == 0);
  }

  [[nodiscard]] std::string path() const {
    return std::filesystem::canonical(repository_.path()).string();
  }
  [[nodiscard]] model::Code code() const { return process::find_code(path()).value().code; }
  void edit(std::string_view text) const { repository_.write("train.py", text); }

  CodeWatch& begin(CodeWatch::Pace pace = {.between = Duration{0}}) {
    watch_.emplace(
        loop_, process::CodeAsker::start().value(),
        [](std::string text) { return "cleaned " + text; }, pace);
    watch_->listen([this](model::CodeFound found) { found_.push_back(std::move(found)); });
    return *watch_;
  }
  void run_until_found(std::size_t count) {
    while (found_.size() < count) loop_.run_once(std::nullopt);
  }

  sys::EventLoop loop_;
  sys::TemporaryDirectory repository_;
  std::optional<CodeWatch> watch_;
  std::vector<model::CodeFound> found_;
};

TEST_F(CodeWatchTest, SaysWhatIsFoundAfterTheStartOfThoseThatKnewNothing) {
  CodeWatch& watch = begin();
  EXPECT_EQ(watch.started(attempt(0), path()), std::nullopt);
  EXPECT_EQ(watch.started(attempt(1), path()), std::nullopt);
  run_until_found(1);
  ASSERT_THAT(found_, SizeIs(1));
  EXPECT_EQ(found_[0].code, code());
  EXPECT_THAT(found_[0].attempts, ElementsAre(attempt(0), attempt(1)));
  EXPECT_EQ(watch.started(attempt(2), path()), code()) << "what was found last";
}

TEST_F(CodeWatchTest, OnlyWhatIsOtherwiseThanWasKnownIsSaid) {
  CodeWatch& watch = begin();
  const model::Code before = code();
  watch.know(before);
  repository_.make("below");
  EXPECT_EQ(watch.started(attempt(0), path() + "/below"), before);
  EXPECT_EQ(watch.started(attempt(1), path()), before);
  edit("lr = 2\n");
  run_until_found(2);
  ASSERT_THAT(found_, SizeIs(2)) << "one for each directory";
  EXPECT_EQ(found_[0].code, code());
  EXPECT_NE(found_[0].code, before);
  EXPECT_EQ(found_[1].code, found_[0].code);
  EXPECT_THAT(found_[0].attempts, ElementsAre(attempt(1)));
  EXPECT_THAT(found_[1].attempts, ElementsAre(attempt(0)));
  EXPECT_THAT(found_[0].diff, HasSubstr("cleaned diff --git"));
  EXPECT_THAT(found_[0].diff, HasSubstr("+lr = 2"));

  // Nothing is reported for attempts whose code has not changed.
  EXPECT_EQ(watch.started(attempt(2), path()), code());
  EXPECT_EQ(watch.started(attempt(3), path() + "/below"), code());
  watch.started(attempt(4), "/");
  edit("lr = 3\n");
  run_until_found(4);
  EXPECT_THAT(found_[2].attempts, ElementsAre(attempt(2)));
  EXPECT_THAT(found_[3].attempts, ElementsAre(attempt(3)));
  edit("lr = 1\n");
  watch.started(attempt(5), path());
  run_until_found(5);
  EXPECT_EQ(found_[4].code, before);
  EXPECT_THAT(found_[4].attempts, ElementsAre(attempt(5)));
}

TEST_F(CodeWatchTest, AsksAgainOnlyWhenItsPauseIsOver) {
  CodeWatch& watch = begin({.between = Duration{300}});
  const Duration before = sys::EventLoop::now();
  watch.started(attempt(0), path());
  run_until_found(1);
  edit("lr = 2\n");
  watch.started(attempt(1), path());
  watch.started(attempt(2), path());
  run_until_found(2);
  EXPECT_GE(sys::EventLoop::now() - before, Duration{300});
  EXPECT_THAT(found_[1].attempts, ElementsAre(attempt(1), attempt(2)));
}

TEST_F(CodeWatchTest, NothingIsKnownWhereNobodyAnswersInTime) {
  // A git that does not answer.
  const sys::TemporaryDirectory bin;
  bin.write("git", "#!/bin/sh\nexec sleep 1000\n");
  ::chmod((bin / "git").c_str(), 0700);
  const std::string path_before = sys::variable("PATH").value();
  ::setenv("PATH", (bin.path() + ":" + path_before).c_str(), 1);
  CodeWatch& watch = begin({.between = Duration{0}, .patience = Duration{50}});
  ::setenv("PATH", path_before.c_str(), 1);
  const model::Code known = code();
  watch.know(known);
  EXPECT_EQ(watch.started(attempt(0), path()), known);
  run_until_found(1);
  EXPECT_EQ(found_[0].code, std::nullopt);
  EXPECT_THAT(found_[0].attempts, ElementsAre(attempt(0)));
  EXPECT_EQ(watch.started(attempt(1), path()), std::nullopt);
}

TEST_F(CodeWatchTest, NothingIsKnownOfMoreAttemptsThanItHasRoomFor) {
  CodeWatch& watch = begin();
  const model::Code known = code();
  watch.know(known);
  for (std::uint32_t task = 0; task < CodeWatch::kAttemptsMax; ++task) {
    ASSERT_EQ(watch.started(attempt(task), path()), known);
  }
  EXPECT_EQ(watch.started(attempt(CodeWatch::kAttemptsMax), path()), std::nullopt);
}

TEST_F(CodeWatchTest, NothingIsKnownOfMorePlacesThanItHasRoomFor) {
  CodeWatch& watch = begin();
  const model::Code known = code();
  watch.know(known);
  for (std::size_t place = 0; place < CodeWatch::kPlacesMax; ++place) {
    ASSERT_EQ(watch.started(attempt(0), path() + "/" + std::to_string(place)), known);
  }
  EXPECT_EQ(watch.started(attempt(1), path()), std::nullopt);
  EXPECT_EQ(watch.started(attempt(2), path() + "/0"), known);
}

}  // namespace
}  // namespace trainyard::run
