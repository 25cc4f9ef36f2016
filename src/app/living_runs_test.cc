#include "app/living_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::app {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNowMs = 1'700'000'000'000;
constexpr std::int64_t kListedMs = 24 * 3'600'000;

LivingRun active_row(std::uint32_t number, const std::string& shown) {
  return {.number = number,
          .directory = "/here/" + shown,
          .shown = shown,
          .tasks = 6,
          .finished = 2,
          .running = 1};
}

LivingRun refused_row(std::uint32_t number) {
  return {.number = number,
          .directory = "/here/runs/a",
          .shown = "runs/a",
          .is_queued = true,
          .reason = "no GPU",
          .no_start = queue::NoStart::Refused};
}

/// A queue in which two submissions wait, of which the second needs runs 3 and 4.
QueueView two_waiting() { return {.waiting = {{.number = 7}, {.number = 8, .needs = {3, 4}}}}; }

queue::Fate none_has_ended(std::uint32_t /*number*/) { return queue::Fate::NotEnded; }
queue::Fate all_succeeded(std::uint32_t /*number*/) { return queue::Fate::EndedWell; }

queue::RunWithoutRoom without_room(std::uint32_t number, model::Cause cause) {
  return {.submission = {.number = number}, .need = {.cause = cause}};
}

queue::EndedSubmission end_by(std::optional<queue::NoStart> no_start) {
  return {.number = 5,
          .run_directory = "/here/runs/a",
          .exit_code = 2,
          .no_start = no_start,
          .why = "no GPU",
          .ended_unix_ms = kNowMs - 1'000};
}

std::optional<LivingRun> listed_row(const queue::EndedSubmission& ended,
                                    const EndedDirectory& directory) {
  return row_of_end(ended, kNowMs, [&directory] { return directory; });
}

/// The row of an end that does not count, whatever the directory has.
std::optional<LivingRun> row_unread(const queue::EndedSubmission& ended) {
  return row_of_end(ended, kNowMs, [] {
    ADD_FAILURE() << "the directory was read";
    return EndedDirectory{};
  });
}

TEST(WhyWaiting, AQueueThatStartsNothingIsTheReasonOfAll) {
  QueueView queue = two_waiting();
  queue.idle = "your queue is down";
  queue.without_room = {without_room(2, model::Cause::Gpus)};
  EXPECT_EQ(why_waiting(queue, 0, none_has_ended), "your queue is down");
  EXPECT_EQ(why_waiting(queue, 1, none_has_ended), "your queue is down");
}

TEST(WhyWaiting, NeededRunsThatHaveNotEndedComeNext) {
  QueueView queue = two_waiting();
  queue.without_room = {without_room(2, model::Cause::Gpus)};
  EXPECT_EQ(why_waiting(queue, 1, none_has_ended), "waits for runs 3, 4");
  const auto only_third = [](std::uint32_t number) {
    return number == 3 ? queue::Fate::NotEnded : queue::Fate::EndedBadly;
  };
  EXPECT_EQ(why_waiting(queue, 1, only_third), "waits for run 3");
}

TEST(WhyWaiting, RunsWithoutRoomAreNamedWithWhatTheyLack) {
  QueueView queue = two_waiting();
  queue.without_room = {without_room(2, model::Cause::Gpus)};
  EXPECT_EQ(why_waiting(queue, 0, all_succeeded), "1 run before it waits for room: 2 (GPU)");
  queue.without_room = {without_room(2, model::Cause::Memory), without_room(3, model::Cause::Cpus),
                        without_room(4, model::Cause::OthersUseCpu),
                        without_room(6, model::Cause::Gpus)};
  EXPECT_EQ(why_waiting(queue, 1, all_succeeded),
            "4 runs before it wait for room: 2 to 4, 6 (CPUs, GPU, memory)");
}

TEST(WhyWaiting, AnotherLackHasNoName) {
  QueueView queue = two_waiting();
  queue.without_room = {without_room(2, model::Cause::Disk)};
  EXPECT_EQ(why_waiting(queue, 0, all_succeeded), "1 run before it waits for room: 2");
}

TEST(WhyWaiting, ARunWithoutRoomThatDoesNotHoldItBackIsNotTheReason) {
  QueueView queue = two_waiting();
  queue.waiting[0].priority = 1;
  queue.without_room = {without_room(2, model::Cause::Gpus)};
  EXPECT_EQ(why_waiting(queue, 0, all_succeeded), "waits for the queue to start it");
}

TEST(WhyWaiting, TheFirstWaitsForARunThatCannotStart) {
  QueueView queue = two_waiting();
  queue.blocking = 6;
  EXPECT_EQ(why_waiting(queue, 0, all_succeeded), "waits until run 6 can start");
  EXPECT_EQ(why_waiting(queue, 1, all_succeeded), "behind 1 other run in the queue");
}

TEST(WhyWaiting, OthersWaitBehindThoseBeforeThem) {
  QueueView queue = two_waiting();
  queue.waiting.push_back({.number = 9});
  EXPECT_EQ(why_waiting(queue, 0, all_succeeded), "waits for the queue to start it");
  EXPECT_EQ(why_waiting(queue, 2, all_succeeded), "behind 2 other runs in the queue");
}

TEST(WhyPaused, SaysWhetherTheRunHasBegunAndWhenItContinues) {
  queue::IncompleteRun run{.resumes_unix_ms = kNowMs + 90'000, .why = "no GPU"};
  EXPECT_EQ(why_paused(run, kNowMs), "resumes in 1m30s: no GPU");
  EXPECT_EQ(how_resumed(run, kNowMs), "your queue resumes it in 1m30s (no GPU)");
  run.began = false;
  EXPECT_EQ(why_paused(run, kNowMs), "starts in 1m30s: no GPU");
}

TEST(WhyPaused, APauseThatIsOverHasNoTimeLeft) {
  const queue::IncompleteRun run{.resumes_unix_ms = kNowMs - 5'000, .why = "no GPU"};
  EXPECT_EQ(why_paused(run, kNowMs), "resumes in 0.0 s: no GPU");
}

TEST(RoomNeed, IsTheSmallestRequestOfTheFirstCause) {
  EXPECT_EQ(room_need({{.memory = gib(4), .cause = model::Cause::Memory},
                       {.memory = gib(2), .cause = model::Cause::Memory},
                       {.memory = gib(1), .cause = model::Cause::Held}}),
            (queue::RoomNeed{.cause = model::Cause::Memory, .memory = gib(2)}));
}

TEST(RoomNeed, TasksThatAreHeldOrWaitForOthersNeedNone) {
  EXPECT_EQ(room_need({{.cause = model::Cause::Held},
                       {.cause = model::Cause::Needs},
                       {.cause = model::Cause::NotYet}}),
            queue::RoomNeed{});
  EXPECT_EQ(room_need({}), queue::RoomNeed{});
}

TEST(RowOfEnd, ASubmissionThatDidNotStartIsListedForADay) {
  queue::EndedSubmission ended = end_by(queue::NoStart::Refused);
  const auto found = listed_row(ended, {.shown = "runs/a"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 5U);
  EXPECT_EQ(found->directory, "/here/runs/a");
  EXPECT_EQ(found->shown, "runs/a");
  EXPECT_EQ(found->reason, "no GPU");
  EXPECT_EQ(found->no_start, queue::NoStart::Refused);
  ended.ended_unix_ms = kNowMs - kListedMs + 1;
  EXPECT_TRUE(listed_row(ended, {.shown = "runs/a"}));
  ended.ended_unix_ms = kNowMs - kListedMs;
  EXPECT_FALSE(row_unread(ended));
}

TEST(RowOfEnd, ASubmissionThatWasCleanedIsNotListed) {
  for (const auto no_start :
       {queue::NoStart::Refused, queue::NoStart::Skipped, queue::NoStart::NotNeeded}) {
    EXPECT_TRUE(listed_row(end_by(no_start), {.shown = "runs/a"}));
    EXPECT_FALSE(listed_row(end_by(no_start), {.shown = "runs/a", .has_submission = false}));
    EXPECT_FALSE(listed_row(end_by(no_start), {.shown = "runs/a", .is_its_own = false}))
        << "a later run has the directory";
  }
}

TEST(RowOfEnd, ASubmissionThatHasRunSinceIsNotListed) {
  queue::EndedSubmission ended = end_by(queue::NoStart::Skipped);
  EXPECT_FALSE(listed_row(ended, {.shown = "runs/a", .has_journal = true}));
  ended.runs_again = true;
  EXPECT_TRUE(listed_row(ended, {.shown = "runs/a", .has_journal = true}))
      << "the journal is that of its first run";
}

TEST(RowOfEnd, ASubmissionWhoseDirectoryIsGoneIsListedAllTheSame) {
  EXPECT_TRUE(listed_row(end_by(queue::NoStart::DirectoryGone),
                         {.shown = "runs/a", .is_its_own = false, .has_submission = false}));
}

TEST(RowOfEnd, ASubmissionThatItsUserRemovedIsNotListed) {
  EXPECT_FALSE(row_unread(end_by(queue::NoStart::Removed)));
}

TEST(RowOfEnd, ARunThatWasGivenUpIsListedUntilItIsResumed) {
  queue::EndedSubmission ended = end_by(std::nullopt);
  ended.ended_unix_ms = kNowMs - 9 * kListedMs;
  const auto found = listed_row(ended, {.shown = "runs/a", .has_journal = true});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_given_up);
  EXPECT_FALSE(found->no_start);
  EXPECT_EQ(found->reason, "no GPU: 'trainyard run --resume runs/a' resumes it");
  EXPECT_FALSE(listed_row(ended, {.shown = "runs/a", .is_active = true, .has_journal = true}));
  EXPECT_FALSE(listed_row(ended, {.shown = "runs/a", .is_its_own = false, .has_journal = true}));
  EXPECT_FALSE(listed_row(ended, {.shown = "runs/a"})) << "its journal is gone";
}

TEST(RowOfEnd, ARunThatHasEndedIsNotListed) {
  queue::EndedSubmission ended = end_by(std::nullopt);
  ended.why.clear();
  EXPECT_FALSE(row_unread(ended));
}

TEST(LivingText, SaysSoWhenThereIsNoRun) {
  EXPECT_EQ(living_text({}), "you have no active runs on this machine\n");
}

TEST(LivingText, ColumnsAreAsWideAsTheirWidestRow) {
  EXPECT_EQ(living_text({active_row(7, "runs/sweep"), active_row(1234, "runs/a")}),
            " RUN    STATE  TASKS                       DIRECTORY\n"
            "   7  RUNNING  2 of 6 finished, 1 running  runs/sweep\n"
            "1234  RUNNING  2 of 6 finished, 1 running  runs/a\n");
}

/// The columns STATE and TASKS of a row.
std::string shown_state(const LivingRun& run) {
  const std::string text = living_text({run});
  const std::string line = text.substr(text.find('\n') + 1);
  const std::size_t state = line.find_first_not_of(' ', line.find_first_not_of(' ') + 1);
  return line.substr(state, line.find("  runs/") - state);
}

TEST(LivingText, TheStateSaysWhatTheRunDoes) {
  LivingRun run = active_row(7, "runs/sweep");
  EXPECT_EQ(shown_state(run), "RUNNING  2 of 6 finished, 1 running");
  run.is_stopping = true;
  EXPECT_EQ(shown_state(run), "STOPPING  2 of 6 finished, 1 running");
  run.is_suspended = true;
  EXPECT_EQ(shown_state(run), "SUSPENDED  2 of 6 finished, 1 running");
  run.is_suspended = false;
  run.is_stopping = false;
  run.running = 0;
  run.failed = 3;
  EXPECT_EQ(shown_state(run), "WAITING  2 of 6 finished, 3 failed");
  run.tasks = 0;
  EXPECT_EQ(shown_state(run), "WAITING  starting");
  run.is_queued = true;
  run.reason = "waits for run 3";
  EXPECT_EQ(shown_state(run), "QUEUED  waits for run 3");
  run.is_given_up = true;
  EXPECT_EQ(shown_state(run), "INCOMPLETE  waits for run 3");
}

TEST(LivingText, TheStateOfASubmissionThatDidNotStartSaysWhy) {
  LivingRun run = refused_row(7);
  EXPECT_EQ(shown_state(run), "REFUSED  no GPU");
  run.no_start = queue::NoStart::DirectoryGone;
  EXPECT_EQ(shown_state(run), "REFUSED  no GPU");
  run.no_start = queue::NoStart::Skipped;
  EXPECT_EQ(shown_state(run), "SKIPPED  no GPU");
  run.no_start = queue::NoStart::NotNeeded;
  EXPECT_EQ(shown_state(run), "NOT_NEEDED  no GPU");
}

TEST(LivingText, OnlyTheWidthOfATerminalCutsTheReasonOfASubmissionThatDidNotStart) {
  LivingRun run = refused_row(7);
  run.reason = std::string(90, 'x');
  const std::string whole = "REFUSED  " + run.reason + "  runs/a\n";
  EXPECT_THAT(living_text({run}), HasSubstr(whole));
  EXPECT_THAT(living_text({run}, {.width = 120}), HasSubstr(whole));
  EXPECT_THAT(living_text({run}, {.width = 80}),
              HasSubstr("REFUSED  " + std::string(57, 'x') + "…  runs/a\n"));
}

TEST(LivingText, ANarrowTerminalShortensTasksFirstThenDirectories) {
  const std::vector<LivingRun> runs{active_row(7, "runs/a/long/name/of/a/run")};
  EXPECT_EQ(living_text(runs, {.width = 60}),
            "RUN    STATE  TASKS                DIRECTORY\n"
            "  7  RUNNING  2 of 6 finished, 1…  runs/a/long/name/of/a/run\n");
  EXPECT_EQ(living_text(runs, {.width = 50}),
            "RUN    STATE  TASKS             DIRECTORY\n"
            "  7  RUNNING  2 of 6 finished…  runs/a/long/name/…\n");
}

TEST(LivingText, TheNoteNamesTheFirstSubmissionThatCanBeCleaned) {
  const auto is_second = [](const LivingRun& run) { return run.number >= 8; };
  const std::string text =
      living_text({active_row(7, "runs/b"), refused_row(7), refused_row(8), refused_row(9)},
                  {.is_cleanable = is_second});
  EXPECT_TRUE(text.ends_with(
      "runs that did not start are listed for a day: 'trainyard clean 8' removes run 8\n"))
      << text;
  EXPECT_TRUE(living_text({refused_row(8)}).ends_with("are listed for a day\n"));
  EXPECT_FALSE(
      living_text({active_row(8, "runs/b")}, {.is_cleanable = is_second}).contains("a day"));
}

TEST(LivingText, OnlyTheLastTwentyThatDidNotStartAreListed) {
  std::vector<LivingRun> runs{active_row(1, "runs/b")};
  for (std::uint32_t number = 2; number <= 24; ++number) runs.push_back(refused_row(number));
  const std::string text = living_text(runs);
  EXPECT_TRUE(text.contains("\n  1  RUNNING"));
  EXPECT_FALSE(text.contains("\n  4  REFUSED"));
  EXPECT_TRUE(text.contains("\n  5  REFUSED"));
  EXPECT_TRUE(text.contains("\n 24  REFUSED"));
  EXPECT_TRUE(text.contains("\nand 3 more that did not start\n"));
}

TEST(LivingPage, SaysHowToListEndedRunsWhenThereIsNoRun) {
  EXPECT_EQ(living_page({}, ""),
            "you have no active runs on this machine\n"
            "to list ended runs, type 'trainyard clean --older 0s --dry-run' where they were "
            "started\n");
  EXPECT_EQ(living_page({active_row(7, "runs/a")}, ""), living_text({active_row(7, "runs/a")}));
}

TEST(LivingPage, EndsWithTheLimitsOfTheQueue) {
  EXPECT_EQ(living_page({active_row(7, "runs/a")}, "your queue has nice 3"),
            living_text({active_row(7, "runs/a")}) + "\nyour queue has nice 3\n");
}

TEST(OtherRunsText, LeavesOutTheRunThatIsShown) {
  const LivingRun shown = active_row(7, "runs/a");
  const LivingRun other = active_row(8, "runs/b");
  EXPECT_EQ(other_runs_text({shown, other}, "/here/runs/a"),
            "\nyour other runs:\n" + living_text({other}));
  EXPECT_EQ(other_runs_text({shown}, "/here/runs/a"), "");
}

TEST(LivingJson, HasAReasonOnlyWhereThereIsOne) {
  EXPECT_EQ(living_json({}), "{\n  \"runs\": []\n}\n");
  const std::string text = living_json({active_row(7, "runs/b"), refused_row(8)});
  EXPECT_TRUE(text.contains("\"run_number\": 7"));
  EXPECT_TRUE(text.contains("\"run_directory\": \"/here/runs/b\""));
  EXPECT_TRUE(text.contains("\"word\": \"RUNNING\",\n      \"reason\": null"));
  EXPECT_TRUE(text.contains("\"word\": \"REFUSED\",\n      \"reason\": \"no GPU\""));
  EXPECT_TRUE(text.contains("\"finished\": 2,\n      \"failed\": 0,\n      \"running\": 1"));
}

}  // namespace
}  // namespace trainyard::app
