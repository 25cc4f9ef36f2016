#include "tell/notice.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trainyard::tell {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kHour{3'600'000};
const Counts kSome{.tasks = 18, .finished = 12, .failed = 1, .skipped = 2, .running = 1};

Notice notice_of(Occasion occasion) {
  return {.run = {.job = "digits", .number = 46, .directory = "/r/digits", .host = "gpu1"},
          .occasion = std::move(occasion),
          .counts = kSome};
}

TEST(Notices, SayWhatHappenedToWhichRunAndHowFarItIs) {
  const Notice failed = notice_of(FirstFailure{
      .task = "train/lr=1", .how = "EXIT 3", .end = "exit", .message = "no such file"});
  EXPECT_EQ(title_of(failed), "digits (run 46): train/lr=1 failed");
  EXPECT_EQ(text_of(failed),
            "digits (run 46) on gpu1: train/lr=1 failed: EXIT 3: no such file\n"
            "12 of 18 tasks finished, 1 failed, 2 skipped, 1 running, 2 waiting");
  const Notice idle =
      notice_of(NothingRuns{.since = kHour, .cause = "memory", .reason = "needs 5 GB of memory"});
  EXPECT_EQ(title_of(idle), "digits (run 46): nothing has run for 1h");
  EXPECT_THAT(text_of(idle), HasSubstr("nothing has run for 1h: needs 5 GB of memory\n12 of"));
  EXPECT_EQ(title_of(notice_of(Ended{.outcome = Outcome::Failed, .exit_code = 1})),
            "digits (run 46) has ended, and not all tasks have finished");
}

TEST(Notices, SayHowARunGoesOnThatIsNotDone) {
  for (const Outcome outcome : {Outcome::Interrupted, Outcome::NotDone, Outcome::Died}) {
    EXPECT_THAT(text_of(notice_of(Ended{.outcome = outcome, .exit_code = {}})),
                HasSubstr("\nresume it with 'trainyard run --resume /r/digits'"));
  }
  Notice died = notice_of(Ended{.outcome = Outcome::Died, .exit_code = {}});
  died.run.directory = "/r/my digits";
  EXPECT_THAT(text_of(died),
              HasSubstr("\nresume it with \"trainyard run --resume '/r/my digits'\""));
  EXPECT_EQ(title_of(notice_of(Ended{.outcome = Outcome::NotDone, .exit_code = 75})),
            "digits (run 46) has stopped and can be resumed")
      << "tasks may have failed as well";
  for (const Outcome outcome : {Outcome::Finished, Outcome::Failed}) {
    EXPECT_THAT(text_of(notice_of(Ended{.outcome = outcome, .exit_code = 0})),
                Not(HasSubstr("--resume")));
  }
}

TEST(Notices, AreJsonForChatsAndForPrograms) {
  const auto json =
      nlohmann::json::parse(json_of(notice_of(Ended{.outcome = Outcome::Failed, .exit_code = 1})));
  EXPECT_EQ(json["event"], "end");
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["run"], 46);
  EXPECT_EQ(json["run_dir"], "/r/digits");
  EXPECT_EQ(json["host"], "gpu1");
  EXPECT_EQ(json["job"], "digits");
  EXPECT_EQ(json["tasks"], nlohmann::json({{"total", 18},
                                           {"finished", 12},
                                           {"failed", 1},
                                           {"skipped", 2},
                                           {"stopped", 0},
                                           {"running", 1},
                                           {"waiting", 2}}));
  EXPECT_THAT(json["text"], HasSubstr("digits (run 46) on gpu1 has ended"));
  Notice died = notice_of(Ended{.outcome = Outcome::Died, .exit_code = {}});
  died.run.number.reset();
  died.counts.reset();
  const auto of_dead = nlohmann::json::parse(json_of(died));
  EXPECT_EQ(of_dead["run"], nullptr);
  EXPECT_EQ(of_dead["tasks"], nullptr);
  EXPECT_EQ(of_dead["exit_code"], nullptr);
  EXPECT_EQ(of_dead["text"],
            "digits on gpu1 has died\nresume it with 'trainyard run --resume /r/digits'");
  const auto failed = nlohmann::json::parse(json_of(
      notice_of(FirstFailure{.task = "t/a", .how = "EXIT 3", .end = "exit", .message = "m"})));
  EXPECT_EQ(failed["event"], "first-failure");
  EXPECT_EQ(failed["task"], "t/a");
  EXPECT_EQ(failed["how"], "EXIT 3");
  EXPECT_EQ(failed["end"], "exit");
  EXPECT_EQ(failed["message"], "m");
  const auto idle = nlohmann::json::parse(
      json_of(notice_of(NothingRuns{.since = kHour, .cause = "memory", .reason = "r"})));
  EXPECT_EQ(idle["event"], "nothing-runs");
  EXPECT_EQ(idle["seconds"], 3600);
  EXPECT_EQ(idle["cause"], "memory");
  EXPECT_EQ(idle["reason"], "r");
}

TEST(Notices, SayWhyASubmissionDidNotStart) {
  Notice notice = notice_of(NotStarted{.reason = "needs run 45, which did not succeed"});
  notice.counts.reset();
  EXPECT_EQ(title_of(notice), "digits (run 46) did not start");
  EXPECT_EQ(text_of(notice),
            "digits (run 46) on gpu1 did not start: needs run 45, which did not succeed");
  const auto json = nlohmann::json::parse(json_of(notice));
  EXPECT_EQ(json["event"], "not-started");
  EXPECT_EQ(json["reason"], "needs run 45, which did not succeed");
  EXPECT_EQ(json["tasks"], nullptr);
}

TEST(Notices, CallNobodyInAChatAndHaveABound) {
  const std::string text = text_of(notice_of(FirstFailure{
      .task = "t/a", .how = "EXIT 1", .end = "exit", .message = "<!channel> <@U1> <#C1> a<b"}));
  EXPECT_THAT(text, HasSubstr("< !channel> < @U1> < #C1> a<b"));
  const Notice endless = notice_of(FirstFailure{
      .task = "t/a", .how = "EXIT 1", .end = "exit", .message = std::string(100'000, 'x')});
  EXPECT_LT(text_of(endless).size(), kMessageMax + 200);
  EXPECT_LT(json_of(endless).size(), 3 * kMessageMax);
  // JSON must be valid UTF-8.
  const Notice odd = notice_of(
      FirstFailure{.task = "t/\xff", .how = "EXIT 1", .end = "exit", .message = "\xc3 end"});
  EXPECT_EQ(nlohmann::json::parse(json_of(odd))["task"], "t/\xef\xbf\xbd");
}

}  // namespace
}  // namespace trainyard::tell
