#include "app/run_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;

FoundRun found(const std::string& word, const RunFacts& facts,
               WhenSeveral when_several = WhenSeveral::TakeLatest) {
  const Result<FoundRun> run = choose_run(word, when_several, facts);
  EXPECT_TRUE(run) << run.error().message;
  return run.value_or(FoundRun{});
}

/// "run 1 ('runs/sweep')", of the run that a word means.
std::string name(const std::string& word, const RunFacts& facts,
                 WhenSeveral when_several = WhenSeveral::TakeLatest) {
  return found(word, facts, when_several).name;
}

std::string why_not(const std::string& word, const RunFacts& facts,
                    WhenSeveral when_several = WhenSeveral::TakeLatest) {
  const Result<FoundRun> run = choose_run(word, when_several, facts);
  EXPECT_FALSE(run) << run->name;
  return run ? std::string() : run.error().message;
}

TEST(RunName, ANumberIsTheRunThatHasIt) {
  const TestFacts facts({ended_run(1, "runs/sweep"), run_elsewhere(2, "/other/runs/eval")});
  EXPECT_EQ(found("1", facts).run, "/here/runs/sweep");
  EXPECT_EQ(name("2", facts, WhenSeveral::Refuse), "run 2 ('/other/runs/eval')");
  EXPECT_FALSE(found("2", facts).is_elsewhere) << "a number is unambiguous in every directory";
}

TEST(RunName, AnUnknownNumberNamesTheLastRun) {
  const TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/eval")});
  EXPECT_EQ(why_not("77", facts), "run 77 not found; the last one is run 2 ('runs/eval')");
  EXPECT_EQ(why_not("77/lr=0.1", facts), "run 77 not found; the last one is run 2 ('runs/eval')");
  EXPECT_EQ(why_not("77", TestFacts({})), "run 77 not found");
}

TEST(RunName, TheNumberOfARunThatIsGoneSaysWhereItWas) {
  TestRun gone = ended_run(1, "runs/sweep");
  gone.run.is_gone = true;
  EXPECT_EQ(why_not("1", TestFacts({gone})),
            "run 1 not found: '/here/runs/sweep' no longer contains it");
}

TEST(RunName, ANumberIsAmbiguousWithTheDirectoryOfAnotherRun) {
  const TestFacts facts({ended_run(1, "runs/sweep"), ended_run(7, "1")});
  EXPECT_EQ(why_not("1", facts),
            "'1' is ambiguous: the number of the run in '/here/runs/sweep', and the directory of "
            "the run in './1'; name the directory");
  EXPECT_EQ(name("./1", facts), "run 7 ('1')");
}

TEST(RunName, ANumberIsNotAmbiguousWithTheDirectoryOfItsRun) {
  EXPECT_EQ(name("1", TestFacts({ended_run(1, "1")})), "run 1 ('1')");
}

TEST(RunName, ANumberThatNoRunHasMayBeADirectory) {
  EXPECT_EQ(name("12", TestFacts({ended_run(1, "12")})), "run 1 ('12')");
}

TEST(RunName, ANumberIsNotTheNameOfARun) {
  EXPECT_EQ(why_not("12", TestFacts({ended_run(1, "runs/12")})),
            "run 12 not found; the last one is run 1 ('runs/12')");
}

TEST(RunName, ANameIsTheLatestRunOfThatName) {
  const TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  const FoundRun run = found("sweep", facts);
  EXPECT_EQ(run.run, "/here/runs/sweep-2");
  EXPECT_EQ(run.candidates, 2U);
  EXPECT_EQ(name("sweep-2", facts), "run 2 ('runs/sweep-2')");
}

TEST(RunName, ANameIsTheRunThatWasResumedLast) {
  TestRun resumed = ended_run(1, "runs/sweep");
  resumed.run.started_ms = 3;
  const TestFacts facts({resumed, ended_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("sweep", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(name("sweep", facts, WhenSeveral::TakeNewest), "run 2 ('runs/sweep-2')");
}

TEST(RunName, ANameIsTheActiveRunBeforeALaterOne) {
  const TestFacts facts({running_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("sweep", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(found("sweep", facts).candidates, 1U) << "an active run is not guessed";
}

TEST(RunName, TheNewestOfSeveralRunsIsExplainedEvenIfTheyAreActive) {
  const TestFacts facts({running_run(1, "runs/sweep"), running_run(2, "runs/sweep-2")});
  const auto note = [&facts](const std::string& word) {
    return which_run_note(found(word, facts, WhenSeveral::TakeNewest));
  };
  EXPECT_EQ(note("sweep"), "'sweep' is run 2 ('runs/sweep-2'), the one created last of 2 runs");
  EXPECT_EQ(note("last"), "");
  EXPECT_EQ(note("1"), "");
}

TEST(RunName, ANameIsARunInTheQueueBeforeOneThatHasEnded) {
  const TestFacts facts({queued_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("sweep", facts), "run 1 ('runs/sweep')");
}

TEST(RunName, ANameIsTheLargestNumberOfThoseInTheQueue) {
  const TestFacts facts({queued_run(1, "runs/sweep"), queued_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("sweep", facts), "run 2 ('runs/sweep-2')");
}

TEST(RunName, ANewerRunInTheQueueIsMentioned) {
  const TestFacts facts({running_run(1, "runs/eval"), queued_run(2, "runs/eval-2")});
  EXPECT_EQ(found("eval", facts).newer_in_queue, "run 2 ('runs/eval-2')");
  EXPECT_EQ(which_run_note(found("eval", facts)),
            "'eval' is run 1 ('runs/eval'), which is active; run 2 ('runs/eval-2') is in your "
            "queue");
  EXPECT_EQ(found("", facts).newer_in_queue, "") << "without a name, status lists it";
}

TEST(RunName, ANameIsARunOfThisDirectoryBeforeOneElsewhere) {
  const TestFacts facts({ended_run(1, "runs/sweep"), run_elsewhere(2, "/other/runs/sweep")});
  EXPECT_EQ(name("sweep", facts), "run 1 ('runs/sweep')");
  EXPECT_FALSE(found("sweep", facts).is_elsewhere);
}

TEST(RunName, ANameThatOnlyAnotherDirectoryHasIsExplained) {
  const TestFacts facts({run_elsewhere(2, "/other/runs/sweep")});
  EXPECT_TRUE(found("sweep", facts).is_elsewhere);
  EXPECT_EQ(which_run_note(found("sweep", facts)),
            "'sweep' is run 2 ('/other/runs/sweep'); no run of this directory has this name");
  EXPECT_EQ(which_run_note(found("sweep", facts, WhenSeveral::TakeNewest)),
            which_run_note(found("sweep", facts)));
}

TEST(RunName, ANameThatOnlyAnotherDirectoryHasChangesNothing) {
  const TestFacts facts({run_elsewhere(2, "/other/runs/sweep")});
  for (const WhenSeveral when : {WhenSeveral::RefuseLive, WhenSeveral::Refuse}) {
    EXPECT_EQ(why_not("sweep", facts, when),
              "'sweep' is run 2 ('/other/runs/sweep'), and no run of this directory has this name; "
              "type 2 instead of 'sweep'");
  }
}

TEST(RunName, ADirectoryWithRunsInItIsItselfBeforeARunElsewhere) {
  TestFacts facts({run_elsewhere(2, "/other/runs/sweep")});
  facts.directories = {"/here/sweep", "/here/sweep/runs"};
  EXPECT_EQ(why_not("sweep", facts), "no run of 'sweep' found");
}

TEST(RunName, AnUnknownNameSaysHowRunsAreNamed) {
  EXPECT_EQ(why_not("nowhere", TestFacts({ended_run(1, "runs/sweep")})),
            "run 'nowhere' not found; a run is named by its number, name, directory or job file");
}

TEST(RunName, EachRunOfAListIsNamedByItself) {
  const Error error = with_cure_of_list("10,1", "--needs ", Error{"run '10,1' not found"});
  EXPECT_EQ(error.message, "run '10,1' not found; name each run by itself: --needs 10 --needs 1");
  EXPECT_EQ(with_cure_of_list("sweep", "", Error{"why"}).message, "why");
}

TEST(RunName, ANeededRunIsItsNumberOrTheNewestOfItsName) {
  const TestFacts facts(
      {ended_run(1, "runs/sweep"), queued_run(2, "runs/sweep-2"), ended_run(0, "runs/unnumbered")});
  const auto needed = [&facts](const std::vector<std::string>& words) {
    const auto runs = needed_runs(words, facts);
    std::vector<std::uint32_t> numbers;
    for (const FoundRun& run : *runs) numbers.push_back(run.number);
    return numbers;
  };
  EXPECT_THAT(needed({"1", "sweep", "runs/sweep"}), ElementsAre(1U, 2U, 1U));
  EXPECT_TRUE(needed({}).empty());
  const auto wrong = [&facts](const std::string& word) {
    return needed_runs({"1", word}, facts).error().message;
  };
  EXPECT_EQ(wrong(""), "--needs : '' is not the name of a run");
  EXPECT_EQ(wrong("77"), "--needs 77: run 77 not found; the last one is run 2 ('runs/sweep-2')");
  EXPECT_EQ(wrong("unnumbered"), "--needs unnumbered: it has no number");
  EXPECT_TRUE(wrong("10,1").ends_with("; name each run by itself: --needs 10 --needs 1"));
}

TEST(RunName, IsWaitedForAsAWhole) {
  const TestFacts facts({ended_run(1, "runs/my sweep")});
  const auto wrong = [&facts](const std::string& word) {
    return nothing_to_wait_for(word, Error{"why"}, facts).message;
  };
  EXPECT_EQ(wrong("1/lr=0.1"),
            "'1/lr=0.1' is not a run: 'trainyard wait 1' waits for the whole run");
  EXPECT_EQ(wrong("my sweep/train"),
            "'my sweep/train' is not a run: \"trainyard wait 'my sweep'\" waits for the whole run");
  EXPECT_EQ(wrong("nope/lr=0.1"), "why");
  EXPECT_EQ(wrong("77,78"), "why; name each run by itself: 77 78");
}

TEST(RunName, ADirectoryIsTheRunInIt) {
  const TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("runs/sweep", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(name("./runs/sweep/", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(name("/here/runs/sweep", facts, WhenSeveral::Refuse), "run 1 ('runs/sweep')");
}

TEST(RunName, ADirectoryWithRunsInItIsTheLatestOfThem) {
  TestFacts facts({run_elsewhere(1, "/exp/runs/a"), run_elsewhere(2, "/exp/runs/b")});
  facts.directories = {"/exp", "/exp/runs"};
  EXPECT_EQ(name("/exp", facts), "run 2 ('/exp/runs/b')");
  EXPECT_EQ(name("/exp", facts, WhenSeveral::RefuseLive), "run 2 ('/exp/runs/b')");
}

TEST(RunName, ADirectoryWithoutARunSaysWhatItLacks) {
  TestFacts facts({ended_run(1, "runs/sweep")});
  facts.directories = {"/here/runs/nothing"};
  EXPECT_EQ(why_not("runs/nothing", facts), "no run found in 'runs/nothing': it has no journal");
  EXPECT_EQ(why_not("runs/nowhere", facts), "no run found in 'runs/nowhere': no such directory");
}

TEST(RunName, AJobFileIsItsLatestRun) {
  TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/other")});
  facts.files = {"/here/sweep.yaml", "/here/later.yaml", "/here/broken.yaml"};
  EXPECT_EQ(name("sweep.yaml", facts), "run 2 ('runs/other')");
  EXPECT_EQ(why_not("later.yaml", facts), "no run of 'later.yaml' found");
  EXPECT_EQ(why_not("broken.yaml", facts),
            "broken.yaml: no 'groups'; to name its run, use its number, name or directory");
}

TEST(RunName, AJobFileThatIsMissingIsNamed) {
  EXPECT_EQ(why_not("sweap.yaml", TestFacts({ended_run(1, "runs/sweep")})),
            "job file 'sweap.yaml' not found; a run is named by its number, name, directory or job "
            "file");
}

TEST(RunName, LastIsTheNewestRunOfThisDirectoryInAnyState) {
  TestRun resumed = ended_run(1, "runs/sweep");
  resumed.run.started_ms = 9;
  const TestFacts facts(
      {resumed, queued_run(3, "runs/sweep-3"), run_elsewhere(4, "/other/runs/a")});
  EXPECT_EQ(name("last", facts), "run 3 ('runs/sweep-3')");
  EXPECT_EQ(name("last", facts, WhenSeveral::Refuse), "run 3 ('runs/sweep-3')");
}

TEST(RunName, LastIsARunOfThisNameWhereThereIsOne) {
  const TestFacts facts({ended_run(1, "runs/last"), ended_run(2, "runs/sweep")});
  EXPECT_EQ(name("last", facts), "run 1 ('runs/last')");
}

TEST(RunName, LastIsAFileOfThisNameWhereThereIsOne) {
  TestFacts facts({ended_run(1, "runs/sweep")});
  facts.files = {"/here/last"};
  EXPECT_EQ(why_not("last", facts), "no run of 'last' found");
}

TEST(RunName, WithoutAWordTheRunThatWasStartedOrResumedLastIsMeant) {
  TestRun resumed = ended_run(1, "runs/sweep");
  resumed.run.started_ms = 3;
  const TestFacts facts({ended_run(2, "runs/eval"), resumed, run_elsewhere(9, "/other/runs/a")});
  EXPECT_EQ(name("", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(found("", facts).named, "");
}

TEST(RunName, WithoutAWordAnActiveRunIsMeantBeforeALaterOne) {
  const TestFacts facts({running_run(1, "runs/sweep"), ended_run(2, "runs/eval")});
  EXPECT_EQ(name("", facts), "run 1 ('runs/sweep')");
}

TEST(RunName, WithoutAWordARunThatStartedIsMeantBeforeOneInTheQueue) {
  const TestFacts facts({ended_run(1, "runs/sweep"), queued_run(2, "runs/eval")});
  EXPECT_EQ(name("", facts), "run 1 ('runs/sweep')");
  EXPECT_EQ(name("", facts, WhenSeveral::RefuseLive), "run 1 ('runs/sweep')");
}

TEST(RunName, WithoutAWordTheNewestInTheQueueIsMeantIfNoRunHasStarted) {
  const TestFacts facts({queued_run(1, "runs/sweep"), queued_run(2, "runs/eval")});
  EXPECT_EQ(name("", facts), "run 2 ('runs/eval')");
  EXPECT_EQ(why_not("", facts, WhenSeveral::RefuseLive),
            "several runs are active or in your queue: run 2 ('runs/eval') and run 1 "
            "('runs/sweep'); name one of them: 2 or 1");
}

TEST(RunName, WithoutAWordAnUnreadableRunOfALargerNumberIsMentioned) {
  TestRun broken = ended_run(2, "runs/new");
  broken.run.is_unreadable = true;
  broken.run.started_ms = 0;
  const TestFacts facts({ended_run(1, "runs/old"), broken});
  EXPECT_EQ(which_run_note(found("", facts)),
            "the journal of run 2 ('runs/new') cannot be read; this is run 1 ('runs/old')");
  EXPECT_EQ(which_run_note(found("old", facts)), "");
}

TEST(RunName, WithoutARunHereTheLastRunElsewhereIsNamed) {
  const std::string none =
      "no run found under ./runs: name a run number, a run directory or a job file";
  EXPECT_EQ(why_not("", TestFacts({})), none);
  EXPECT_EQ(why_not("last", TestFacts({run_elsewhere(3, "/other/runs/a")})),
            none + "; your last run is run 3 ('/other/runs/a')");
}

TEST(RunName, SeveralActiveRunsAreRefusedByCommandsThatChangeOne) {
  const TestFacts facts({running_run(1, "runs/sweep"), running_run(2, "runs/sweep-2")});
  EXPECT_EQ(name("sweep", facts), "run 2 ('runs/sweep-2')");
  for (const WhenSeveral when : {WhenSeveral::RefuseLive, WhenSeveral::Refuse}) {
    EXPECT_EQ(why_not("sweep", facts, when),
              "several runs of 'sweep' are active: run 2 ('runs/sweep-2') and run 1 "
              "('runs/sweep'); type 2 or 1 instead of 'sweep'");
  }
}

TEST(RunName, FiveOfTheActiveRunsAreNamed) {
  std::vector<TestRun> runs;
  for (std::uint32_t i = 1; i <= 7; ++i)
    runs.push_back(running_run(i, "runs/r" + std::to_string(i)));
  EXPECT_EQ(why_not("", TestFacts(runs), WhenSeveral::RefuseLive),
            "several runs are active: run 7 ('runs/r7'), run 6 ('runs/r6'), run 5 ('runs/r5'), run "
            "4 ('runs/r4'), run 3 ('runs/r3') and 2 more; name one of them: 7, 6, 5, 4, 3 or "
            "the number of another one");
}

TEST(RunName, SeveralEndedRunsAreRefusedByCommandsThatDelete) {
  const TestFacts facts(
      {ended_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2"), ended_run(3, "runs/sweep-3")});
  EXPECT_EQ(why_not("sweep", facts, WhenSeveral::Refuse),
            "several runs found: run 3 ('runs/sweep-3'), run 2 ('runs/sweep-2'), ...; a command "
            "that changes a run needs its number or directory");
  EXPECT_EQ(name("sweep", facts, WhenSeveral::RefuseLive), "run 3 ('runs/sweep-3')");
}

TEST(RunName, ARunWithoutANumberIsNamedByItsDirectory) {
  const TestFacts facts({running_run(0, "runs/my sweep"), running_run(2, "runs/eval")});
  EXPECT_EQ(name("runs/my sweep", facts), "'runs/my sweep'");
  EXPECT_EQ(
      why_not("", facts, WhenSeveral::RefuseLive),
      "several runs are active: run 2 ('runs/eval') and 'runs/my sweep'; name one of them: 2 or "
      "'runs/my sweep'");
}

TEST(RunName, TheLatestOfSeveralEndedRunsIsExplained) {
  TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  facts.files = {"/here/sweep.yaml"};
  EXPECT_EQ(which_run_note(found("sweep", facts)),
            "'sweep' is run 2 ('runs/sweep-2'), the latest of 2 runs");
  EXPECT_EQ(which_run_note(found("sweep.yaml", facts)), "") << "a job file has a latest run";
  EXPECT_EQ(which_run_note(found("2", facts)), "");
  EXPECT_EQ(which_run_note(found("", facts)), "");
}

TEST(RunName, TheNewestRunIsWaitedForWithTheOthersThatHadNotEndedWhenItWasCreated) {
  TestRun before = ended_run(2, "runs/b");
  before.run.ended_ms = 4;
  TestRun concurrent = ended_run(3, "runs/c");
  concurrent.run.ended_ms = 6;
  const TestFacts facts({running_run(1, "runs/a"), before, concurrent, queued_run(4, "runs/d"),
                         ended_run(5, "runs/e")});
  const auto runs = newest_and_concurrent_runs(facts);
  ASSERT_TRUE(runs);
  EXPECT_THAT(*runs, ElementsAre("/here/runs/e", "/here/runs/d", "/here/runs/c", "/here/runs/a"));
  EXPECT_FALSE(newest_and_concurrent_runs(TestFacts({run_elsewhere(1, "/other/runs/a")})));
}

TEST(RunName, AWordNamesARunByNumberNameOrLast) {
  const TestFacts facts({ended_run(1, "runs/sweep"), run_elsewhere(2, "/other/runs/eval-2")});
  for (const char* const word : {"1", "2", "sweep", "eval", "eval-2", "last"}) {
    EXPECT_TRUE(names_run(word, facts)) << word;
  }
  for (const char* const word : {"3", "swee", "", "runs/sweep", "./sweep", "sweep-3"}) {
    EXPECT_FALSE(names_run(word, facts)) << word;
  }
}

}  // namespace
}  // namespace trainyard::app
