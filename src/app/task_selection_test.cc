#include "app/task_selection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

constexpr model::Standing kExit3{.status = Status::Exception,
                                 .verdict = model::Verdict::Failed,
                                 .failure = model::Failure::Exit,
                                 .exit_code = 3};
constexpr model::Standing kRunning{.status = Status::Training};
constexpr model::Standing kOnHold{.on_hold = true};

/// train: lr 1e-3 and 0.1 with seeds 0 and 1, of which the larger rate failed; eval: all and 3.
TestRun sweep(TestRun run) {
  run.tasks = {test_task("train", "lr=1e-3,seed=0"),
               test_task("train", "lr=1e-3,seed=1"),
               test_task("train", "lr=0.1,seed=0", kExit3),
               test_task("train", "lr=0.1,seed=1", kExit3),
               test_task("eval", "all"),
               test_task("eval", "3")};
  return run;
}

TestRun with_tasks(TestRun run, std::vector<journal::TaskRow> tasks) {
  run.tasks = std::move(tasks);
  return run;
}

/// "46: lr=0.1 eval/* :oom", one entry for each run.
Words entries(const std::vector<TasksOfRun>& selections) {
  Words all;
  for (const TasksOfRun& selection : selections) {
    std::string text = selection.shown + ":";
    for (const text::TaskPattern& pattern : selection.patterns) text += " " + pattern.text();
    for (const report::TaskState state : selection.states) {
      text += " :" + std::string(report::task_state_word(state));
    }
    all.push_back(text);
  }
  return all;
}

/// The one run that is meant, with its patterns and states; or the error.
std::string read(const Words& words, const RunFacts& facts, const std::string& run_directory = {}) {
  const auto selection = read_selection({.words = words, .run_directory = run_directory}, facts);
  return selection ? entries({*selection}).front() : selection.error().message;
}

/// The runs that are meant, or the error.
Words read_several(const Words& words, const RunFacts& facts) {
  const auto selections = read_selections({.words = words}, facts);
  return selections ? entries(*selections) : Words{selections.error().message};
}

/// The names of the selected tasks, or the error.
Words tasks(const Words& words, const RunFacts& facts, SameName same_name = SameName::Refuse,
            const std::string& run_directory = {}, bool needs_active = false) {
  auto selection = read_selection({.words = words, .run_directory = run_directory}, facts);
  if (!selection) return {selection.error().message};
  selection->needs_active = needs_active;
  const auto rows = selected_tasks(**facts.tasks_of(selection->run), *selection, same_name, facts);
  if (!rows) return {rows.error().message};
  Words names;
  for (const journal::TaskRow& row : *rows) names.push_back(shown_name(row));
  return names;
}

TEST(TaskSelection, WithoutWordsAllTasksOfTheLatestRunAreMeant) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), ended_run(2, "runs/other")});
  EXPECT_EQ(read({}, facts), "runs/other:");
  EXPECT_TRUE(read_selection({}, facts)->is_all());
}

TEST(TaskSelection, ARunAndItsTasksAreOneWord) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), ended_run(2, "runs/other")});
  EXPECT_EQ(read({"1/lr=0.1"}, facts), "runs/sweep: lr=0.1");
  EXPECT_EQ(read({"sweep/eval"}, facts), "runs/sweep: eval");
  EXPECT_EQ(read({"runs/sweep/train/*"}, facts), "runs/sweep: train/*");
  EXPECT_EQ(read({"1/"}, facts), "runs/sweep:");
}

TEST(TaskSelection, ATaskBehindAJobFileIsOfItsLatestRun) {
  TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  facts.files = {"/here/sweep.yaml"};
  EXPECT_EQ(read({"sweep.yaml/train/lr=0.1"}, facts), "runs/sweep: train/lr=0.1");
}

TEST(TaskSelection, TheRunAndItsTasksMayBeInAnyOrder) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), ended_run(2, "runs/other")});
  EXPECT_EQ(read({"1", "lr=0.1", ":exit"}, facts), "runs/sweep: lr=0.1 :exit");
  EXPECT_EQ(read({":exit", "lr=0.1", "1"}, facts), "runs/sweep: lr=0.1 :exit");
}

TEST(TaskSelection, ADirectoryOfTasksWithinARunIsNotARun) {
  TestRun within = ended_run(0, "runs/sweep/train");
  within.run.has_journal = false;
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), within});
  EXPECT_EQ(read({"runs/sweep/train/lr=0.1"}, facts), "runs/sweep: train/lr=0.1");
}

TEST(TaskSelection, RunDirIsAlwaysTheRun) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), sweep(ended_run(3, "runs/third"))});
  EXPECT_EQ(read({"3"}, facts, "1"), "runs/sweep: 3");
  EXPECT_EQ(read({}, facts, "3"), "runs/third:");
}

TEST(TaskSelection, AnEmptyWordIsRefused) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_EQ(read({""}, facts), "'' is not the name of a run or a task");
}

TEST(TaskSelection, AnUnknownStateNamesTheNearest) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_EQ(read({":faild"}, facts), "unknown state ':faild' (did you mean ':failed'?)");
}

TEST(TaskSelection, APathThatIsNeitherARunNorATaskIsRefused) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_EQ(read({"a/b/c/d"}, facts),
            "no run found in 'a/b/c/d', and it is not a valid name of a task");
}

TEST(TaskSelection, AWordThatMeansARunAndATaskIsAmbiguous) {
  const TestFacts facts({ended_run(3, "runs/third"), sweep(ended_run(4, "runs/sweep"))});
  EXPECT_EQ(read({"3"}, facts),
            "'3' is ambiguous: run 3 ('runs/third'), and a task of run 4 ('runs/sweep'); write "
            "'--run-dir runs/third' for the run, or '--run-dir runs/sweep 3' for the task");
  const TestFacts with_blanks({ended_run(3, "runs/the third"), sweep(ended_run(4, "runs/sweep"))});
  EXPECT_THAT(read({"3"}, with_blanks),
              HasSubstr("; write \"--run-dir 'runs/the third'\" for the run, or '--run-dir "));
}

TEST(TaskSelection, AWordThatMeansARunAndAGroupIsAmbiguous) {
  const TestFacts facts({sweep(ended_run(1, "runs/train")), sweep(ended_run(2, "runs/sweep"))});
  EXPECT_EQ(read({"train"}, facts),
            "'train' is ambiguous: run 1 ('runs/train'), and a group of run 2 ('runs/sweep'); "
            "write '--run-dir runs/train' for the run, or '--run-dir runs/sweep train' for the "
            "group");
}

TEST(TaskSelection, ARunWithOneTaskOfItsNameIsNotAmbiguous) {
  const TestFacts facts({with_tasks(ended_run(1, "runs/vit"), {test_task("vit", "vit")})});
  EXPECT_EQ(read({"vit"}, facts), "runs/vit:");
}

TEST(TaskSelection, APathOfARunIsNotAmbiguous) {
  const TestFacts facts({ended_run(3, "runs/third"), sweep(ended_run(4, "runs/sweep"))});
  EXPECT_EQ(read({"runs/third"}, facts), "runs/third:");
  EXPECT_EQ(read({"3/"}, facts), "runs/third:");
}

TEST(TaskSelection, ACommandThatOnlyReadsMayPreferTheRun) {
  const TestFacts facts({ended_run(3, "runs/third"), sweep(ended_run(4, "runs/sweep"))});
  const auto shown = [&facts](const Words& words) {
    const auto selection = read_shown_selection({.words = words}, facts);
    return selection ? entries({*selection}).front() : selection.error().message;
  };
  EXPECT_EQ(shown({"3"}), "runs/third:");
  EXPECT_EQ(shown({"all"}), "runs/sweep: all");
  EXPECT_EQ(shown({":failed"}), "runs/sweep: :failed");
  EXPECT_EQ(shown({"sweep", "3"}), "runs/sweep: 3");
  EXPECT_EQ(shown({""}), "'' is not the name of a run or a task");
}

TEST(TaskSelection, BeforeARunStartsASingleWordThatIsNotARunIsAMistake) {
  const TestFacts facts({queued_run(1, "runs/new")});
  const auto shown = [&facts](const Words& words) {
    const auto selection = read_shown_selection({.words = words}, facts);
    return selection ? entries({*selection}).front() : selection.error().message;
  };
  EXPECT_EQ(shown({}), "runs/new:");
  EXPECT_EQ(shown({"new"}), "runs/new:");
  EXPECT_EQ(shown({"lr=0.1"}), "no tasks in '/here/runs/new'");
  EXPECT_EQ(shown({":failed"}), "no tasks in '/here/runs/new'");
  EXPECT_EQ(shown({"other.yaml"}),
            "job file 'other.yaml' not found; a run is named by its number, name, directory or "
            "job file");
}

TEST(TaskSelection, ASingleWordOfAShownRunMustMeanATask) {
  TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  facts.near = {"eval/all"};
  const auto selection = read_shown_selection({.words = {"eval/al"}}, facts);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().message, "task 'eval/al' not found (did you mean 'eval/all'?)");
}

TEST(TaskSelection, ATaskAsTablesShowItIsOfTheLatestRunBeforeARunOfItsGroupsName) {
  const TestFacts facts({sweep(ended_run(1, "runs/train")), sweep(ended_run(2, "runs/sweep"))});
  EXPECT_EQ(read({"train/lr=0.1,seed=0", "train/lr=0.1,seed=1"}, facts),
            "runs/sweep: train/lr=0.1,seed=1 train/lr=0.1,seed=0");
}

TEST(TaskSelection, AGroupIsMeantBeforeARunElsewhereOfItsName) {
  const TestFacts facts({run_elsewhere(1, "/other/runs/train"), sweep(ended_run(2, "runs/sweep"))});
  EXPECT_EQ(read({"train"}, facts), "runs/sweep: train");
}

TEST(TaskSelection, NextToAWordForAllTasksAWordIsTheRun) {
  const TestFacts facts({sweep(ended_run(1, "runs/train")), sweep(ended_run(2, "runs/sweep"))});
  EXPECT_EQ(read({"train", "*"}, facts), "runs/train: *");
}

TEST(TaskSelection, NextToARunAWordForItsGroupIsTheGroup) {
  const TestFacts facts({sweep(ended_run(1, "runs/train")), sweep(ended_run(2, "runs/sweep"))});
  for (const Words& words : {Words{"runs/sweep", "train"}, Words{"train", "runs/sweep"}}) {
    EXPECT_EQ(read(words, facts), "runs/sweep: train");
    EXPECT_THAT(read_several(words, facts), ElementsAre("runs/sweep: train"));
  }
}

TEST(TaskSelection, WhereOneRunIsAllowedASecondWordForARunIsATask) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), ended_run(3, "runs/third")});
  EXPECT_EQ(read({"1", "3"}, facts), "runs/sweep: 3");
  EXPECT_EQ(read({"3", "runs/sweep"}, facts), "runs/sweep: 3");
}

TEST(TaskSelection, WhereOneRunIsAllowedASecondPathIsRefused) {
  TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  facts.files = {"/here/sweep.yaml", "/here/notes.txt"};
  EXPECT_EQ(read({"runs/sweep", "sweep.yaml"}, facts),
            "only one run is allowed here, not 'runs/sweep' and 'sweep.yaml'");
  EXPECT_EQ(read({"notes.txt", "sweep.yaml"}, facts),
            "only one run is allowed here, not 'notes.txt' and 'sweep.yaml'; for all tasks, write "
            "'*' in quotes");
}

TEST(TaskSelection, SeveralRunsMayBeNamedForATable) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), ended_run(2, "runs/other")});
  EXPECT_THAT(read_several({"sweep", "other"}, facts), ElementsAre("runs/sweep:", "runs/other:"));
  EXPECT_THAT(read_several({"1", "runs/other", ":oom"}, facts),
              ElementsAre("runs/sweep: :oom", "runs/other: :oom"));
  EXPECT_THAT(read_several({"1/lr=0.1", "2"}, facts),
              ElementsAre("runs/sweep: lr=0.1", "runs/other:"));
}

TEST(TaskSelection, ARunThatSeveralWordsNameHasTheTasksOfAnyOfThem) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_THAT(read_several({"1/seed=0", "1/seed=1"}, facts),
              ElementsAre("runs/sweep: seed=0 seed=1"));
  EXPECT_THAT(read_several({"1/seed=0", "1/"}, facts), ElementsAre("runs/sweep:"));
  EXPECT_THAT(read_several({"1/", "1/seed=0"}, facts), ElementsAre("runs/sweep:"));
}

TEST(TaskSelection, ANameAndADirectoryOfOneRunAreRefusedIfAnotherRunHasTheDirectory) {
  const TestFacts facts({ended_run(1, "runs/sweep"), ended_run(2, "runs/sweep-2")});
  EXPECT_THAT(read_several({"sweep", "sweep-2"}, facts),
              ElementsAre("'sweep' and 'sweep-2' both mean run 2 ('runs/sweep-2'); type runs/sweep "
                          "for the run in that directory"));
}

TEST(TaskSelection, CommandsThatChangeARunRefuseSeveralActiveOnes) {
  const TestFacts facts({sweep(running_run(1, "runs/a")), sweep(running_run(2, "runs/b"))});
  const auto selection =
      read_selection({.words = {"*"}, .when_several = WhenSeveral::RefuseLive}, facts);
  ASSERT_FALSE(selection);
  EXPECT_EQ(
      selection.error().message,
      "several runs are active: run 2 ('runs/b') and run 1 ('runs/a'); name one of them: 2 or "
      "1");
  const auto of_kill = read_selection(
      {.words = {"*"}, .when_several = WhenSeveral::RefuseLive, .command = "kill"}, facts);
  EXPECT_EQ(of_kill.error().message,
            selection.error().message + ", as in: trainyard kill runs/b '*'");
}

TEST(TaskSelection, TheExampleForSeveralActiveRunsIsARunWithTheTasks) {
  const TestFacts facts({sweep(running_run(1, "runs/a")),
                         with_tasks(running_run(2, "runs/b"), {test_task("g", "own")})});
  const auto why_not = [&facts](const std::vector<std::string>& words) {
    return read_selection(
               {.words = words, .when_several = WhenSeveral::RefuseLive, .command = "kill"}, facts)
        .error()
        .message;
  };
  EXPECT_THAT(why_not({"eval/all"}), EndsWith(", as in: trainyard kill runs/a eval/all"));
  EXPECT_THAT(why_not({"g/own"}), EndsWith(", as in: trainyard kill runs/b g/own"));
  EXPECT_THAT(why_not({"eval/all", "g/own"}), EndsWith("name one of them: 2 or 1"));
}

TEST(TaskSelection, ATaskOfAnEarlierRunIsMeantBeforeARunElsewhereThatIsRefused) {
  const TestFacts facts({run_elsewhere(3, "/other/runs/train"), sweep(ended_run(1, "runs/sweep")),
                         with_tasks(ended_run(2, "runs/new"), {test_task("late", "mine")})});
  for (const std::string word : {"train/lr=0.1,seed=0", "train"}) {
    const auto selection =
        read_selection({.words = {word}, .when_several = WhenSeveral::RefuseLive}, facts);
    ASSERT_TRUE(selection) << selection.error().message;
    const auto rows =
        selected_tasks(**facts.tasks_of(selection->run), *selection, SameName::Refuse, facts);
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().message, "task '" + word + "' not found in 'runs/new'; run 1 " +
                                        "('runs/sweep') has it: type 1/" + word);
  }
  EXPECT_EQ(read({"train/lr=0.1,seed=0"}, facts), "/other/runs/train: lr=0.1,seed=0")
      << "a command that only reads shows that run";
}

TEST(TaskSelection, ARunOfASingleTaskIsThatTaskIfItIsNamed) {
  const TestFacts facts({with_tasks(ended_run(1, "runs/vit"), {test_task("vit", "vit")})});
  const auto names_none = [&facts](const Words& words, std::size_t tasks) {
    return names_no_task(*read_selection({.words = words}, facts), tasks);
  };
  EXPECT_FALSE(names_none({"vit"}, 1));
  EXPECT_FALSE(names_none({"1"}, 1));
  EXPECT_TRUE(names_none({}, 1));
  EXPECT_TRUE(names_none({"vit"}, 2));
  EXPECT_FALSE(names_none({"vit", "*"}, 2));
}

TEST(TaskSelection, ADirectoryWithoutARunIsNamedWhereNoOtherRunIsMeant) {
  TestFacts facts({});
  facts.directories = {"/here/runs/nothing"};
  EXPECT_EQ(read({"runs/nothing"}, facts), "no run found in 'runs/nothing': it has no journal");
}

TEST(TaskSelection, AWordThatMayBeARunIsNamedWhereTheTasksOfTheLatestCannotBeRead) {
  TestRun broken = ended_run(2, "runs/v2");
  broken.run.is_unreadable = true;
  const TestFacts facts({broken});
  EXPECT_EQ(read({"v3"}, facts),
            "no run has the name 'v3', and the tasks of run 2 ('runs/v2') cannot be read: "
            "'trainyard status runs/v2' says why");
  EXPECT_THAT(read_several({"*"}, facts), ElementsAre("runs/v2: *"))
      << "whoever reads the run gets the error of its journal";
}

TEST(TaskSelection, WithoutARunAWordThatCanOnlyBeOneIsNamed) {
  const TestFacts facts({run_elsewhere(1, "/other/runs/a")});
  EXPECT_EQ(read({"77"}, facts), "run 77 not found; the last one is run 1 ('/other/runs/a')");
  EXPECT_EQ(read({"nope.yaml"}, facts),
            "job file 'nope.yaml' not found; a run is named by its number, name, directory or job "
            "file");
  EXPECT_EQ(read({"lr=0.1"}, facts),
            "no run found under ./runs: name a run number, a run directory or a job file; your "
            "last run is run 1 ('/other/runs/a')");
}

TEST(TaskSelection, AWordThatNoActiveRunHasIsNamedBeforeTheRuns) {
  const TestFacts facts({running_run(1, "runs/a"), running_run(2, "runs/b")});
  const auto selection =
      read_selection({.words = {"failed"}, .when_several = WhenSeveral::RefuseLive}, facts);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().message,
            "no run has the name 'failed', and no run here has such a task; a state begins with a "
            "colon: type :failed");
}

TEST(SelectedTasks, AreThoseOfAnyPattern) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_THAT(tasks({"lr=0.1", "all"}, facts),
              ElementsAre("train/lr=0.1,seed=0", "train/lr=0.1,seed=1", "eval/all"));
  EXPECT_THAT(tasks({"lr=1e-1,seed=1"}, facts), ElementsAre("train/lr=0.1,seed=1"))
      << "numbers are compared as numbers";
  EXPECT_THAT(tasks({"eval"}, facts), ElementsAre("eval/all", "eval/3"));
  EXPECT_EQ(tasks({}, facts).size(), 6U);
}

TEST(SelectedTasks, AreOnlyThoseInAnyOfTheStates) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_THAT(tasks({":failed", "seed=0"}, facts), ElementsAre("train/lr=0.1,seed=0"));
  EXPECT_THAT(tasks({":failed", ":finished", "seed=0"}, facts),
              ElementsAre("train/lr=1e-3,seed=0", "train/lr=0.1,seed=0"));
  EXPECT_THAT(tasks({":oom"}, facts), IsEmpty());
}

TEST(SelectedTasks, ThatRunInTheJournalOfARunThatIsNotActiveAreLost) {
  TestRun run = with_tasks(ended_run(1, "runs/sweep"),
                           {test_task("train", "a", kRunning), test_task("train", "b")});
  EXPECT_THAT(tasks({":running"}, TestFacts({run})), ElementsAre("train/a"));
  run.over = true;
  EXPECT_THAT(tasks({":running"}, TestFacts({run})), IsEmpty());
  EXPECT_THAT(tasks({":lost"}, TestFacts({run})), ElementsAre("train/a"));
}

TEST(SelectedTasks, OfSeveralGroupsWithOneNameAreRefusedOrAllMeant) {
  const TestFacts facts(
      {with_tasks(ended_run(1, "runs/sweep"), {test_task("a", "x"), test_task("b", "x")})});
  EXPECT_THAT(tasks({"x"}, facts), ElementsAre("several tasks have the name 'x': type a/x or b/x"));
  EXPECT_THAT(tasks({"x"}, facts, SameName::MeansAll), ElementsAre("a/x", "b/x"));
  EXPECT_THAT(tasks({"b/x"}, facts), ElementsAre("b/x"));
}

TEST(SelectedTasks, AnUnknownTaskNamesSimilarOnes) {
  TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  facts.near = {"all"};
  EXPECT_THAT(tasks({"al"}, facts),
              ElementsAre("task 'al' not found in 'runs/sweep', and no run has this name (did you "
                          "mean 'all'?)"));
  facts.near = {"train/lr=0.1,seed=0", "train/lr=0.1,seed=1"};
  EXPECT_THAT(tasks({"train/lr=0.1,seed=7"}, facts),
              ElementsAre("task 'train/lr=0.1,seed=7' not found (did you mean "
                          "'train/lr=0.1,seed=0' or 'train/lr=0.1,seed=1'?)"));
}

TEST(SelectedTasks, AnUnknownValueNamesTheValues) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_THAT(
      tasks({"lr=0.2"}, facts),
      ElementsAre("task 'lr=0.2' not found in 'runs/sweep'; the values of lr are 1e-3, 0.1"));
  EXPECT_THAT(tasks({"fold=7"}, facts),
              ElementsAre("task 'fold=7' not found in 'runs/sweep'; the matrix keys are lr, seed"));
}

TEST(SelectedTasks, AStateWithoutItsColonIsExplained) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  EXPECT_THAT(tasks({"OOM"}, facts),
              ElementsAre("task 'OOM' not found in 'runs/sweep'; a state begins with a colon: type "
                          ":oom"));
}

TEST(SelectedTasks, AllIsNotAWordForAllTasks) {
  const TestFacts facts({with_tasks(ended_run(1, "runs/one"), {test_task("late", "mine")})});
  EXPECT_THAT(tasks({"all"}, facts),
              ElementsAre("task 'all' not found in 'runs/one'; for all tasks, type '*'"));
}

TEST(SelectedTasks, AnotherRunThatHasTheTaskIsNamed) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep")), sweep(ended_run(2, "runs/sweep-2")),
                         with_tasks(ended_run(3, "runs/other"), {test_task("late", "mine")})});
  EXPECT_THAT(tasks({"all"}, facts), ElementsAre("task 'all' not found in 'runs/other'; run 2 "
                                                 "('runs/sweep-2') has it: type 2/all"));
  EXPECT_THAT(tasks({"all"}, facts, SameName::Refuse, "3"),
              ElementsAre("task 'all' not found in 'runs/other'; run 2 ('runs/sweep-2') has it"))
      << "the run was named";
  EXPECT_THAT(tasks({"all"}, facts, SameName::Refuse, {}, true),
              ElementsAre("task 'all' not found in 'runs/other'; run 2 ('runs/sweep-2') has it, "
                          "but is not active"));
}

TEST(SelectedTasks, AnUnknownWordNamesTheNewestRuns) {
  std::vector<TestRun> runs{ended_run(1, "runs/a"), sweep(ended_run(2, "runs/sweep"))};
  EXPECT_THAT(tasks({"nope"}, TestFacts(runs)),
              ElementsAre("task 'nope' not found in 'runs/sweep', and no run has this name; "
                          "existing runs: runs/sweep, runs/a"));
  for (const std::uint32_t number : {5U, 3U, 4U, 6U}) {
    runs.push_back(ended_run(number, fmt::format("runs/r{}", 10 - number)));
  }
  runs.push_back(ended_run(7, "runs/last"));
  EXPECT_THAT(tasks({"runs/nosuch"}, TestFacts(runs)),
              ElementsAre("no run directory 'runs/nosuch'; existing runs: runs/last, runs/r4, "
                          "runs/r5, runs/r6, runs/r7 and 2 more"));
}

TEST(SelectedTasks, AWordThatCanOnlyBeARunIsNotATask) {
  TestFacts facts({sweep(ended_run(2, "runs/sweep")), ended_run(1, "runs/a")});
  facts.directories = {"/here/runs/refused"};
  EXPECT_THAT(tasks({"77"}, facts),
              ElementsAre("run 77 not found; the last one is run 2 ('runs/sweep')"));
  EXPECT_THAT(tasks({"runs/nope.yaml"}, facts),
              ElementsAre("job file 'runs/nope.yaml' not found; a run is named by its number, "
                          "name, directory or job file"));
  EXPECT_THAT(tasks({"runs/refused"}, facts),
              ElementsAre("task 'runs/refused' not found in 'runs/sweep', and no run has started "
                          "in the directory 'runs/refused'"));
}

TEST(SelectedTasks, ASecondRunIsNamedAsSuch) {
  const TestFacts facts({sweep(ended_run(2, "runs/sweep")), ended_run(1, "runs/a")});
  EXPECT_THAT(
      tasks({"2", "1"}, facts),
      ElementsAre("task '1' not found in 'runs/sweep'; a run is named '1', but this command "
                  "takes only one run"));
  EXPECT_THAT(tasks({"runs/a"}, facts, SameName::Refuse, "2"),
              ElementsAre("task 'runs/a' not found in 'runs/sweep'; a run is named 'runs/a', but "
                          "this command takes only one run"));
}

TEST(SelectedTasks, AreNamedByTheirIdsAlone) {
  const TestFacts facts({sweep(ended_run(1, "runs/sweep"))});
  const auto named = [&facts](const Words& words) {
    const auto selection = read_selection({.words = words}, facts);
    const auto rows =
        selected_tasks(**facts.tasks_of(selection->run), *selection, SameName::Refuse, facts);
    std::vector<std::uint32_t> indices;
    for (const model::TaskIndex task : named_tasks(*selection, *rows)) {
      indices.push_back(task.value);
    }
    return indices;
  };
  EXPECT_THAT(named({"all", "train/lr=0.1,seed=0"}), ElementsAre(2U, 4U));
  EXPECT_THAT(named({"eval", "lr=0.1", "tr*/lr=1e-3,seed=0"}), IsEmpty());
  EXPECT_THAT(named({"all", ":finished"}), IsEmpty());
}

TEST(SelectedTasks, AreMissedInTheirStates) {
  const TestFacts facts({with_tasks(running_run(1, "runs/sweep"),
                                    {test_task("train", "a", kOnHold), test_task("train", "b")})});
  const auto none = [&facts](const Words& words) {
    return none_in_state(*read_selection({.words = words}, facts), facts);
  };
  EXPECT_EQ(none({":oom"}), "no task of 'runs/sweep' is :oom");
  EXPECT_EQ(none({"a", ":oom", ":lost"}),
            "none of the selected tasks of 'runs/sweep' is :oom or :lost");
  EXPECT_EQ(none({":waiting"}), "no task of 'runs/sweep' is :waiting; 1 is :held");
  EXPECT_EQ(none({}), "'runs/sweep' has no tasks");
}

TEST(SelectionWords, ATimeBehindWatchIsNeitherARunNorATask) {
  const auto cured = [](const Words& words, const std::string& run_directory = {}) {
    return with_cure_of_interval({.words = words, .run_directory = run_directory},
                                 Error{"run 5 not found"})
        .message;
  };
  const std::string cure = "run 5 not found; --watch takes no interval: type ";
  EXPECT_EQ(cured({"5"}), cure + "'trainyard status --watch'");
  EXPECT_EQ(cured({"my run", "2s"}), cure + "\"trainyard status --watch 'my run'\"");
  EXPECT_EQ(cured({"5"}, "runs/a"), cure + "'trainyard status --watch --run-dir runs/a'");
  EXPECT_EQ(cured({"sweep"}), "run 5 not found");
  EXPECT_EQ(cured({}), "run 5 not found");
}

TEST(SelectedTasks, AreAllNamedByAStar) {
  const TestFacts facts({ended_run(1, "runs/my sweep")});
  EXPECT_EQ(how_to_name_all("kill", *read_selection({}, facts)),
            "For all of them, type: trainyard kill 'runs/my sweep' '*'");
}

TEST(SelectedTasks, AreListedUpToALimit) {
  std::vector<journal::TaskRow> rows;
  for (int i = 0; i < 23; ++i) rows.push_back(test_task("train", std::to_string(i)));
  const std::string lines = names_and_what(rows, "is selected");
  EXPECT_TRUE(lines.starts_with("train/0 is selected\ntrain/1 is selected\n")) << lines;
  EXPECT_TRUE(lines.ends_with("\ntrain/19 is selected\nand 3 more\n")) << lines;
  rows.resize(5);
  EXPECT_EQ(names_and_words(rows),
            "train/0 is FINISHED, train/1 is FINISHED, train/2 is FINISHED, and 2 more");
  rows.resize(1);
  EXPECT_EQ(names_and_words(rows), "train/0 is FINISHED");
}

}  // namespace
}  // namespace trainyard::app
