#include "queue/rules/returns.h"

#include <map>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::queue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The facts of a test about runs, by their numbers.
struct Runs {
  std::map<std::uint32_t, Fate> fates;
  std::set<std::uint32_t> have_run;
  std::set<std::uint32_t> out_of_date;
  std::set<std::uint32_t> without_start;
  std::set<std::uint32_t> gone;
  std::map<std::uint32_t, Submission> skipped;
  std::set<std::uint32_t> interrupted;
  std::set<std::uint32_t> removed;

  [[nodiscard]] ReturnFacts facts() const {
    const auto is_in = [](const std::set<std::uint32_t>& numbers) {
      return [&numbers](const Submission& it) { return numbers.contains(it.number); };
    };
    return {.fate_of =
                [this](std::uint32_t number) {
                  return fates.contains(number) ? fates.at(number) : Fate::EndedWell;
                },
            .has_run = is_in(have_run),
            .needs_ran_again = is_in(out_of_date),
            .has_no_start = is_in(without_start),
            .is_directory_gone = [this](std::uint32_t number) { return gone.contains(number); },
            .without_start = [this](std::uint32_t number) -> std::optional<Submission> {
              if (!skipped.contains(number)) return std::nullopt;
              return skipped.at(number);
            },
            .is_in_cascade = [this](std::uint32_t number) { return !removed.contains(number); },
            .resume_command = [this](std::uint32_t number) -> std::string {
              return interrupted.contains(number) ? "'trainyard run --resume runs/d'" : "";
            }};
  }
};

Submission behind(std::uint32_t number, std::vector<std::uint32_t> needs) {
  return {.number = number, .needs = std::move(needs)};
}

std::vector<std::uint32_t> numbers_of(const Returns& returns) {
  std::vector<std::uint32_t> numbers;
  for (const Submission& each : returns.submissions) numbers.push_back(each.number);
  return numbers;
}

std::vector<std::string> refusals_of(const Returns& returns) {
  std::vector<std::string> texts;
  for (const Error& each : returns.refused) texts.push_back(each.message);
  return texts;
}

TEST(Returns, TakeASubmissionThatWasSkipped) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}}, .without_start = {2}};
  const Returns returns = choose_returns({.number = 1}, {behind(2, {1})}, runs.facts());
  EXPECT_THAT(numbers_of(returns), ElementsAre(2));
  EXPECT_FALSE(returns.submissions.front().runs_again);
  EXPECT_THAT(returns.refused, IsEmpty());
}

TEST(Returns, TakeTheSubmissionsBehindOneThatGoesBack) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {2, Fate::EndedBadly}, {3, Fate::EndedBadly}},
                  .without_start = {2, 3, 4}};
  EXPECT_THAT(
      numbers_of(choose_returns({.number = 1}, {behind(2, {1}), behind(3, {2}), behind(4, {1, 3})},
                                runs.facts())),
      ElementsAre(2, 3, 4));
}

TEST(Returns, LeaveASubmissionThatWasCleanedOrHasRunSince) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}}};
  EXPECT_THAT(numbers_of(choose_returns({.number = 1}, {behind(2, {1})}, runs.facts())), IsEmpty());
}

TEST(Returns, LeaveARunThatIsNotOutOfDate) {
  const Runs runs{.have_run = {2}};
  EXPECT_THAT(numbers_of(choose_returns({.number = 1}, {behind(2, {1})}, runs.facts())), IsEmpty());
}

TEST(Returns, TakeARunThatIsOutOfDateAndRunAllOfItAgain) {
  const Runs runs{.have_run = {2}, .out_of_date = {2}};
  const Returns returns = choose_returns({.number = 1}, {behind(2, {1})}, runs.facts());
  EXPECT_THAT(numbers_of(returns), ElementsAre(2));
  EXPECT_TRUE(returns.submissions.front().runs_again);
}

TEST(Returns, TakeARunIfTheOneThatItNeedsRunsAgain) {
  const Runs runs{.have_run = {2}};
  EXPECT_THAT(
      numbers_of(choose_returns({.number = 1, .runs_again = true}, {behind(2, {1})}, runs.facts())),
      ElementsAre(2));
}

TEST(Returns, TakeARunIfItNeedsASubmissionThatGoesBack) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {2, Fate::EndedBadly}},
                  .have_run = {3},
                  .without_start = {2}};
  EXPECT_THAT(
      numbers_of(choose_returns({.number = 1}, {behind(2, {1}), behind(3, {2})}, runs.facts())),
      ElementsAre(2, 3));
}

TEST(Returns, LeaveARunInAnotherDirectoryAlthoughItIsOutOfDate) {
  const Runs runs{.out_of_date = {2}};
  EXPECT_THAT(
      numbers_of(choose_returns({.number = 1, .runs_again = true}, {behind(2, {1})}, runs.facts())),
      IsEmpty());
}

TEST(Returns, RefuseASubmissionThatNeedsAnotherRunThatFailed) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {5, Fate::EndedBadly}}, .without_start = {6}};
  const Returns returns = choose_returns({.number = 1}, {behind(6, {1, 5})}, runs.facts());
  EXPECT_THAT(numbers_of(returns), IsEmpty());
  EXPECT_THAT(refusals_of(returns),
              ElementsAre("run 6 needs run 5, which did not succeed: 'trainyard retry 5 --cascade' "
                          "runs both again"));
}

TEST(Returns, RefuseTheSubmissionsBehindOneThatIsRefused) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {5, Fate::EndedBadly}, {6, Fate::EndedBadly}},
                  .without_start = {6, 7},
                  .skipped = {{6, behind(6, {1, 5})}}};
  const Returns returns =
      choose_returns({.number = 1}, {behind(6, {1, 5}), behind(7, {6})}, runs.facts());
  EXPECT_THAT(numbers_of(returns), IsEmpty());
  ASSERT_EQ(returns.refused.size(), 2);
  EXPECT_EQ(returns.refused.back().message,
            "run 7 needs run 6, which did not succeed: 'trainyard retry 5 --cascade' runs them "
            "again");
}

TEST(Needs, AreMetIfTheRunsSucceededOrMaySucceedYet) {
  const Runs runs{.fates = {{1, Fate::EndedWell}, {2, Fate::NotEnded}}};
  EXPECT_TRUE(check_needs(behind(3, {1, 2}), runs.facts()));
}

TEST(Needs, AreNotMetIfADirectoryIsGoneAndTheErrorSaysToSubmitAgain) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}}, .gone = {1}};
  EXPECT_EQ(check_needs(behind(2, {1}), runs.facts()).error().message,
            "run 2 needs run 1, which did not succeed, and the directory of run 1 is gone: submit "
            "both again");
}

TEST(Needs, AreNotMetIfADirectoryOfAChainIsGoneAndTheErrorNamesTheChain) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {2, Fate::EndedBadly}},
                  .gone = {1},
                  .skipped = {{2, behind(2, {1})}}};
  EXPECT_EQ(check_needs(behind(3, {2}), runs.facts()).error().message,
            "run 3 needs run 2, which did not succeed, and the directory of run 1 is gone: submit "
            "runs 1 to 3 again");
}

TEST(Needs, AreNotMetByAnInterruptedRunAndTheErrorSaysToResumeIt) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {2, Fate::EndedBadly}},
                  .skipped = {{2, behind(2, {1})}},
                  .interrupted = {1}};
  EXPECT_EQ(check_needs(behind(2, {1}), runs.facts()).error().message,
            "run 2 needs run 1, which did not succeed: 'trainyard run --resume runs/d' resumes run "
            "1, then 'trainyard retry 2' puts run 2 back into your queue");
  EXPECT_EQ(check_needs(behind(3, {2}), runs.facts()).error().message,
            "run 3 needs run 2, which did not succeed: 'trainyard run --resume runs/d' resumes run "
            "1, then 'trainyard retry 2 --cascade' puts runs 2 to 3 back into your queue");
}

TEST(Needs, AreNotMetBehindARemovedSubmissionAndTheErrorSaysToRetryItByItself) {
  const Runs runs{.fates = {{1, Fate::EndedBadly}, {2, Fate::EndedBadly}, {3, Fate::EndedBadly}},
                  .skipped = {{2, behind(2, {1})}, {3, behind(3, {2})}},
                  .removed = {3}};
  const auto why_not = [&runs](const Submission& submission) {
    return check_needs(submission, runs.facts()).error().message;
  };
  EXPECT_EQ(why_not(behind(3, {1})),
            "run 3 needs run 1, which did not succeed: 'trainyard retry 1' retries run 1, then "
            "'trainyard retry 3' puts run 3 back into your queue");
  EXPECT_EQ(
      why_not(behind(4, {3})),
      "run 4 needs run 3, which did not succeed: 'trainyard retry 1 --cascade' retries runs 1 "
      "to 2, then 'trainyard retry 3 --cascade' puts runs 3 to 4 back into your queue");
}

TEST(Needs, OfASubmissionForAFailureAreNotMetWithoutOne) {
  Submission alarm = behind(2, {1});
  alarm.run_if = model::RunIf::Failure;
  EXPECT_EQ(check_needs(alarm, Runs{}.facts()).error().message,
            "run 2: the runs that it needs succeeded, and it starts only after a failure");
}

}  // namespace
}  // namespace trainyard::queue
