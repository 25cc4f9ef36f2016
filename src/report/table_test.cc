// The text about the tasks of a group, letter by letter.
#include "report/table.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/command.h"
#include "model/status.h"
#include "report/terminal_text.h"
#include "report/test_rows.h"

namespace trainyard::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string table_of(const journal::GroupRow& group, const std::vector<journal::TaskRow>& rows,
                     const TableOptions& options = {}) {
  GroupDigest digest(group);
  ShownRows shown(group);
  for (const journal::TaskRow& row : rows) {
    digest.look_at(row);
    shown.look_at(row);
  }
  return group_table(digest, shown.take(), options);
}

TEST(Table, ShowsMatrixValuesAndResultsAsColumns) {
  journal::TaskRow first =
      finished_row("lr=0.1,seed=2", Duration{12'300}, R"({"test_acc":0.964,"loss":0.12})");
  first.matrix = {{"lr", "0.1"}, {"seed", "2"}};
  journal::TaskRow second =
      finished_row("lr=1e-3,seed=10", Duration{125'000}, R"({"test_acc":0.9,"loss":null})");
  second.matrix = {{"lr", "1e-3"}, {"seed", "10"}};
  second.attempt = 2;
  const journal::GroupRow group{.name = "train", .tasks = 2, .finished = 2};
  EXPECT_EQ(table_of(group, {first, second}),
            "train: 2 tasks, 2 finished in 2m5s\n"
            "\n"
            "  lr  seed  STATUS      TIME  ATTEMPTS  PEAK MEMORY  test_acc    loss\n"
            " 0.1     2  FINISHED  12.3 s         1       300 MB    96.4 %  0.1200\n"
            "1e-3    10  FINISHED    2m5s         2       300 MB    90.0 %       -\n"
            "\n"
            "best: lr=0.1,seed=2 test_acc 96.4 %\n");
}

TEST(Table, CountsTheDelayOfARetryDown) {
  journal::TaskRow row = started_row("a");
  row.standing = {.status = Status::Interrupt, .failure = model::Failure::Exit, .exit_code = 3};
  row.ended = Instant{Duration{1000}};
  row.message = "retry 1 of 2 in 30 s: exited with code 3";
  const journal::GroupRow group{.name = "g", .tasks = 1, .retrying = 1};
  EXPECT_THAT(table_of(group, {row}, {.now = Instant{Duration{11'000}}}),
              HasSubstr("  retry 1 of 2 in 20 s: exited with code 3\n"));
}

TEST(Table, ShowsNoTimeOfAGroupThatHasNotEnded) {
  const journal::TaskRow first = finished_row("a", Duration{1000}, "{}");
  const journal::TaskRow second = started_row("b");
  const std::string text =
      table_of({.name = "g", .tasks = 2, .finished = 1, .running = 1}, {first, second});
  EXPECT_THAT(text, HasSubstr("g: 2 tasks, 1 finished, 1 running\n"));
}

TEST(Table, CountsFromTheFirstAttemptOfAGroupAndAllAttemptsOfATask) {
  journal::TaskRow lost = failed_row("a", model::Failure::Lost, "its GPUs failed twice");
  lost.attempt = 2;
  lost.first_started = Instant{Duration{75}};
  lost.started = Instant{Duration{11'131}};
  lost.ended = Instant{Duration{16'103}};
  lost.earlier_attempts = Duration{7'000};
  EXPECT_EQ(table_of({.name = "train", .tasks = 1, .failed = 1}, {lost}),
            "train: 1 task, 1 failed in 16.0 s\n"
            "\n"
            "TASK  STATUS         TIME  ATTEMPTS  PEAK MEMORY\n"
            "a     FAILED LOST  12.0 s         2       300 MB  its GPUs failed twice\n");
}

TEST(Table, NamesTheMachinesOfTasksWhereThereAreSeveral) {
  journal::TaskRow first = finished_row("a", Duration{1000}, R"({"loss":0.5})");
  first.machine = "lab1";
  first.gpus = "0";
  const journal::TaskRow second = finished_row("b", Duration{1000}, R"({"loss":0.7})");
  const journal::GroupRow group{.name = "train", .tasks = 2, .finished = 2};
  EXPECT_THAT(
      table_of(group, {first, second}, {.machines = true}),
      HasSubstr("TASK  STATUS     TIME  ATTEMPTS  PEAK MEMORY  MACHINE  GPU  PEAK GPU    loss\n"
                "a     FINISHED  1.0 s         1       300 MB  lab1       0         -  0.5000\n"
                "b     FINISHED  1.0 s         1       300 MB  -          -         -  0.7000\n"));
  EXPECT_THAT(table_of(group, {first, second}), Not(HasSubstr("lab1")));
}

/// Three tasks, of which the first was edited after it had finished.
std::vector<journal::TaskRow> with_an_edited_one(std::string_view its_result) {
  std::vector<journal::TaskRow> rows{finished_row("a", Duration{1000}, its_result),
                                     finished_row("b", Duration{1000}, R"({"acc":0.7})"),
                                     finished_row("c", Duration{1000}, R"({"acc":0.8})")};
  rows[0].edited = true;
  return rows;
}

TEST(Table, TakesNoResultOfAnEditedCommandForTheBestWithoutSayingSo) {
  const journal::GroupRow group{.name = "train", .tasks = 3, .finished = 3};
  const std::string better = table_of(group, with_an_edited_one(R"({"acc":0.9})"));
  EXPECT_THAT(better, HasSubstr("best: c acc 80.0 %\n"
                                "best with an earlier command: a acc 90.0 %\n"));
  const std::string worse = table_of(group, with_an_edited_one(R"({"acc":0.75})"));
  EXPECT_THAT(worse, HasSubstr("best: c acc 80.0 %\n"));
  EXPECT_THAT(worse, Not(HasSubstr("best with an earlier command")));
  const journal::GroupRow alone{.name = "train", .tasks = 1, .finished = 1};
  const std::string only = table_of(alone, {with_an_edited_one(R"({"acc":0.9})").front()});
  EXPECT_THAT(only, Not(HasSubstr("best:")));
  EXPECT_THAT(only, HasSubstr("best with an earlier command: a acc 90.0 %\n"));
  EXPECT_THAT(table_of(alone, {with_an_edited_one("").front()}, {.run_directory = "runs/x"}),
              HasSubstr("1 of 1 task ran an earlier command: 'trainyard run --resume runs/x "
                        "--rerun-changed' runs it again\n"));
}

TEST(Table, SaysThatAPeakWasThatOfTheLargestProcessAlone) {
  journal::TaskRow row = finished_row("a", Duration{1000}, "");
  row.memory_at_least = true;
  const journal::GroupRow group{.name = "train", .tasks = 1, .finished = 1};
  EXPECT_EQ(table_of(group, {row}),
            "train: 1 task, 1 finished in 1.0 s\n"
            "\n"
            "TASK  STATUS     TIME  ATTEMPTS      PEAK MEMORY\n"
            "a     FINISHED  1.0 s         1  at least 300 MB\n");
}

TEST(Table, SaysWhyATaskFailedInPlaceOfItsResults) {
  const journal::GroupRow group{
      .name = "train", .tasks = 3, .finished = 1, .failed = 1, .skipped = 1};
  EXPECT_EQ(
      table_of(group, {finished_row("a", Duration{1000}, R"({"epochs":3})"),
                       failed_row("b", model::Failure::OutOfMemory, "took 1.2 GB of 1 GB"),
                       skipped_row("c", "fail-fast: task 'b' failed")}),
      "train: 3 tasks, 1 finished, 1 failed in 2.0 s; 1 skipped\n"
      "\n"
      "TASK  STATUS                 TIME  ATTEMPTS  PEAK MEMORY  epochs\n"
      "a     FINISHED              1.0 s         1       300 MB       3\n"
      "b     FAILED OUT_OF_MEMORY  2.0 s         1       300 MB  took 1.2 GB of 1 GB\n"
      "c     SKIPPED                   -         -            -  fail-fast: task 'b' failed\n");
}

TEST(Table, ShowsOneLineOfAGroupThatNeverBegan) {
  const journal::GroupRow group{.name = "eval",
                                .phase = model::GroupPhase::Skipped,
                                .message = "it needs 'train', of which 1 task failed",
                                .tasks = 2,
                                .skipped = 2};
  EXPECT_EQ(table_of(group, {skipped_row("a", "x"), skipped_row("b", "x")}),
            "eval: 2 tasks, 2 skipped: it needs 'train', of which 1 task failed\n");
  journal::GroupRow own = group;
  own.message.clear();
  own.why_skipped = "needs 900 TB of disk";
  EXPECT_EQ(table_of(own, {skipped_row("a", "x"), skipped_row("b", "x")}),
            "eval: 2 tasks, 2 skipped\nskipped: needs 900 TB of disk\n");
  journal::GroupRow late = group;
  late.needs_finished_since = true;
  EXPECT_EQ(table_of(late, {skipped_row("a", "x"), skipped_row("b", "x")}),
            "eval: 2 tasks, 2 skipped: it needs 'train', of which 1 task failed; what was "
            "needed has finished since: resuming the run runs the skipped tasks\n");
  EXPECT_EQ(table_of(late, {skipped_row("a", "x"), skipped_row("b", "x")},
                     {.run_directory = "runs/a sweep"}),
            "eval: 2 tasks, 2 skipped: it needs 'train', of which 1 task failed; what was "
            "needed has finished since: \"trainyard run --resume 'runs/a sweep'\" runs the skipped "
            "tasks\n");
  late.message.clear();
  late.why_skipped = "needs a task of group 'train' that failed";
  EXPECT_EQ(
      table_of(late, {skipped_row("a", "x"), skipped_row("b", "x")}, {.run_directory = "runs/x"}),
      "eval: 2 tasks, 2 skipped\nskipped: needs a task of group 'train' that failed; what was "
      "needed has finished since: 'trainyard run --resume runs/x' runs the skipped tasks\n");
}

TEST(Table, MarksWhatIsOutOfDateAndSaysHowItRunsAgain) {
  const journal::GroupRow group{.name = "report", .tasks = 1, .finished = 1};
  journal::TaskRow row = finished_row("all", Duration{1000}, "");
  EXPECT_THAT(table_of(group, {row}), Not(HasSubstr("again")));
  row.out_of_date = true;
  const std::string text = table_of(group, {row}, {.run_directory = "runs/x"});
  EXPECT_THAT(text, HasSubstr("\nall   FINISHED, out of date  1.0 s"));
  EXPECT_THAT(text, HasSubstr("1 task finished before what it needs ran again: "
                              "'trainyard retry runs/x --cascade' runs it again\n"));
  EXPECT_THAT(table_of(group, {row}, {.run_directory = "runs/a sweep"}),
              HasSubstr(" again: \"trainyard retry 'runs/a sweep' --cascade\" runs it again\n"));
}

TEST(Table, ColoursTheStatusAloneWhenTold) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .failed = 1};
  journal::TaskRow row = failed_row("b", model::Failure::Exit, "");
  row.standing.exit_code = 3;
  EXPECT_EQ(table_of(group, {row}, {.colour = true}),
            "g: 1 task, 1 failed in 2.0 s\n"
            "\n"
            "TASK  STATUS          TIME  ATTEMPTS  PEAK MEMORY\n"
            "b     \x1b[31mFAILED EXIT 3\x1b[0m  2.0 s         1       300 MB\n");
}

TEST(Table, ShowsFailuresFirstAndAFewOthersOfABigGroup) {
  std::vector<journal::TaskRow> rows;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = fmt::format("t{}", i);
    rows.push_back(i % 100 == 99 ? failed_row(id, model::Failure::Timeout, "over its time limit")
                                 : finished_row(id, Duration{1000}, ""));
  }
  const journal::GroupRow group{.name = "train", .tasks = 10'000, .finished = 9'900, .failed = 100};
  const std::string text = table_of(group, rows, {.run_directory = "my runs/mnist"});
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 1 + 40 + 2);
  EXPECT_THAT(text, HasSubstr("\nt99 "));
  EXPECT_THAT(text, HasSubstr("\nt1999 "));
  EXPECT_THAT(text, Not(HasSubstr("\nt2099 ")));
  EXPECT_THAT(text, HasSubstr("\nt19 "));
  EXPECT_THAT(text, Not(HasSubstr("\nt20 ")));
  EXPECT_THAT(text, HasSubstr("\nand 9,960 more: \"trainyard status 'my runs/mnist' --all\", or my "
                              "runs/mnist/reports/train.html\n"));
}

TEST(Table, ShowsTheTasksThatWereSelectedAndCountsTheOthers) {
  std::vector<journal::TaskRow> rows;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back(skipped_row(fmt::format("i={}", i), "not selected when the run started"));
    rows.back().standing.verdict = model::Verdict::NotSelected;
  }
  rows[500] = finished_row("i=500", Duration{1000}, "");
  const journal::GroupRow group{.name = "train", .tasks = 1000, .finished = 1, .not_selected = 999};
  EXPECT_EQ(table_of(group, rows),
            "train: 1,000 tasks, 1 finished in 1.0 s; 999 not selected\n"
            "\n"
            "TASK   STATUS     TIME  ATTEMPTS  PEAK MEMORY\n"
            "i=500  FINISHED  1.0 s         1       300 MB\n");
}

TEST(Table, IsNeverWiderThanTold) {
  std::vector<journal::TaskRow> rows{
      finished_row("a-rather-long-name-of-a-task-with-日本語", Duration{1000},
                   R"({"note":"some words","epochs":3,"test_acc":0.5,"steps":12345,"x":1,"y":2})"),
      failed_row("b", model::Failure::Killed, std::string(300, 'm'))};
  const journal::GroupRow group{.name = "g", .tasks = 2, .finished = 1, .failed = 1};
  for (int width = 1; width <= 160; ++width) {
    GroupDigest digest(group);
    for (const journal::TaskRow& row : rows) digest.look_at(row);
    TaskTable table(digest, {.width = width});
    const std::string text = table.lines(rows);
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = text.find('\n', start);
      ASSERT_LE(columns_of(std::string_view(text).substr(start, end - start)), width) << text;
      start = end + 1;
    }
  }
}

TEST(Table, GivesUpOtherFieldsBeforeTheScoreAndSaysSo) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  const std::string text = table_of(
      group, {finished_row("a", Duration{1000}, R"({"epochs":3,"test_acc":0.5,"steps":7})")},
      {.width = 64, .run_directory = "runs/x"});
  EXPECT_EQ(text,
            "g: 1 task, 1 finished in 1.0 s\n"
            "\n"
            "TASK  STATUS     TIME  ATTEMPTS  PEAK MEMORY  epochs  test_acc\n"
            "a     FINISHED  1.0 s         1       300 MB       3    50.0 %\n"
            "\n"
            "1 column left out (steps): 'trainyard results runs/x' shows all results\n"
            "best: a test_acc 50.0 %\n");
}

TEST(Table, GivesUpThePeakMemoryBeforeTheOnlyResult) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  for (const std::string key : {"test_acc", "episodes"}) {
    const std::string result = fmt::format(R"({{"{}":"somewhat"}})", key);
    EXPECT_THAT(table_of(group, {finished_row("a", Duration{1000}, result)},
                         {.width = 50, .run_directory = "runs/x"}),
                HasSubstr(fmt::format("TASK  STATUS     TIME  ATTEMPTS  {}\n"
                                      "a     FINISHED  1.0 s         1  somewhat\n"
                                      "\n"
                                      "1 column left out (PEAK MEMORY)",
                                      key)));
  }
}

TEST(Table, ShortensNamesBeforeItLosesHowATaskStands) {
  const journal::GroupRow group{.name = "g", .tasks = 2, .finished = 2};
  std::vector<journal::TaskRow> rows{finished_row("a", Duration{1000}, R"({"acc":0.5})"),
                                     finished_row("b", Duration{2000}, R"({"acc":0.25})")};
  rows[0].matrix = {{"n", "日本"}};
  rows[1].matrix = {{"n", "a very long value indeed that will not fit in any narrow terminal"}};
  for (journal::TaskRow& row : rows) row.id = "n=" + row.matrix[0].second;
  EXPECT_THAT(table_of(group, rows, {.width = 40, .run_directory = "runs/x"}),
              HasSubstr("\nn             STATUS     TIME  ATTEMPTS\n"
                        "日本          FINISHED  1.0 s         1\n"
                        "a very long…  FINISHED  2.0 s         1\n"
                        "\n"
                        "2 columns left out (acc, PEAK MEMORY): 'trainyard results runs/x' shows "
                        "all results\n"));
}

TEST(Table, LosesColumnsOfTheMatrixBeforeItLosesHowATaskStands) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  journal::TaskRow row =
      finished_row("depth=6,width=64,heads=8,seed=1", Duration{1000}, R"({"acc":0.5})");
  row.matrix = {{"depth", "6"}, {"width", "64"}, {"heads", "8"}, {"seed", "1"}};
  EXPECT_THAT(table_of(group, {row}, {.width = 40, .run_directory = "runs/x"}),
              HasSubstr("\ndep…  wid…  STATUS     TIME  ATTEMPTS\n"
                        "   6    64  FINISHED  1.0 s         1\n"
                        "\n"
                        "4 columns left out (heads, seed, acc, PEAK MEMORY): 'trainyard results "
                        "runs/x' shows all results\n"));
  row.result = "";
  EXPECT_THAT(table_of(group, {row}, {.width = 40}),
              HasSubstr("\n3 columns left out (heads, seed, PEAK MEMORY)\n"));
}

TEST(Table, CountsAllColumnsThatAreLeftOutInOneLine) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  const std::string result = R"({"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"acc":0.5})";
  EXPECT_THAT(table_of(group, {finished_row("t", Duration{1000}, result)},
                       {.width = 60, .run_directory = "runs/x"}),
              HasSubstr("\n\n6 columns left out (c, d, e, f, ...): 'trainyard "
                        "results runs/x' shows all results\nbest: "));
}

TEST(Table, LetsNoControlCharacterThrough) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .failed = 1};
  const std::string text =
      table_of(group, {failed_row("a", model::Failure::Killed, "bad\x1b[2J\r\nthing \xff")});
  EXPECT_THAT(text, HasSubstr("bad[2J thing \xEF\xBF\xBD\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Table, LetsNoControlCharacterOfAResultThrough) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  const std::string result =
      R"({"test_\u001b[2Jacc":"\u001b]0;title\u0007\u009b1m","\u001b[1mloss":0.5,"x":1})";
  journal::TaskRow row = finished_row("\x1b[3ma", Duration{1000}, result);
  row.matrix = {{"\x1b[4mlr", "\x1b[5m1"}};
  for (const int width : {0, 60}) {
    const std::string text = table_of(group, {row}, {.width = width});
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\x07"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B"))) << text;
  }
}

TEST(Table, SaysWhichResultsAreMissingOrChanged) {
  std::vector<journal::TaskRow> rows;
  for (int i = 0; i < 7; ++i) {
    rows.push_back(finished_row(fmt::format("t{}", i), Duration{1000}, ""));
    if (i != 1) rows.back().warning = "the result is\x1b[2J not JSON";
  }
  const journal::GroupRow group{.name = "g", .tasks = 7, .finished = 7};
  EXPECT_THAT(table_of(group, rows, {.run_directory = "runs/x"}),
              HasSubstr("\n\n"
                        "6 results missing or changed:\n"
                        "  t0: the result is[2J not JSON\n"
                        "  t2: the result is[2J not JSON\n"
                        "  t3: the result is[2J not JSON\n"
                        "  t4: the result is[2J not JSON\n"
                        "  t5: the result is[2J not JSON\n"
                        "  and 1 more: runs/x/reports/g.html\n"));
}

TEST(Table, CountsTheResultsInWhichANumberIsNaN) {
  std::vector<journal::TaskRow> rows;
  for (int i = 0; i < 3; ++i) {
    rows.push_back(finished_row(fmt::format("t{}", i), Duration{1000}, R"({"loss":null})"));
    rows.back().warning = i == 2 ? "result.1.json: is empty: result discarded"
                                 : "result.1.json: 'loss' was NaN: kept as null";
  }
  const journal::GroupRow group{.name = "g", .tasks = 3, .finished = 3};
  EXPECT_THAT(table_of(group, rows, {.run_directory = "runs/x"}),
              HasSubstr("\n\n"
                        "3 results missing or changed:\n"
                        "  t2: runs/x/train/t2/result.1.json: is empty: result discarded\n"
                        "  loss is NaN in 2 results (shown as -)\n"));
  rows.pop_back();
  const journal::GroupRow two{.name = "g", .tasks = 2, .finished = 2};
  EXPECT_THAT(table_of(two, rows, {.run_directory = "runs/x"}),
              EndsWith("\n\nloss is NaN in 2 results (shown as -)\n"));
}

TEST(Table, NamesTheFieldsOfResultsThatAreNoColumns) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  const std::string result =
      R"({"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"val":{"acc":0.7},"curve":[1,2]})";
  const std::vector<journal::TaskRow> rows{finished_row("t", Duration{1000}, result)};
  EXPECT_EQ(table_of(group, rows, {.run_directory = "runs/x"}),
            "g: 1 task, 1 finished in 1.0 s\n"
            "\n"
            "TASK  STATUS     TIME  ATTEMPTS  PEAK MEMORY  a  b  c  d  e  f\n"
            "t     FINISHED  1.0 s         1       300 MB  1  2  3  4  5  6\n"
            "\n"
            "2 columns left out (g, h): 'trainyard results runs/x' shows all results\n"
            "lists and objects left out: val, curve\n");
}

TEST(Table, SaysWhichScoresKeepItFromNamingTheBestTask) {
  const journal::GroupRow group{.name = "g", .tasks = 1, .finished = 1};
  const auto footer = [&group](std::string_view result) {
    const std::string text =
        table_of(group, {finished_row("t", Duration{1000}, result)}, {.run_directory = "runs/x"});
    return text.substr(text.rfind("\n\n") + 2);
  };
  EXPECT_EQ(footer(R"({"val_acc":0.9,"test_acc":0.8,"loss":1})"),
            "no best task, as the results have several scores (val_acc and test_acc): 'trainyard "
            "results runs/x --sort -val_acc' sorts by one\n");
  EXPECT_EQ(footer(R"({"loss":1,"val_loss":2})"),
            "no best task, as the results have several scores (loss and val_loss): 'trainyard "
            "results runs/x --sort loss' sorts by one\n");
  EXPECT_EQ(footer(R"({"loss":1,"val_loss":2,"error":3})"),
            "no best task, as the results have several scores (loss, val_loss and error): "
            "'trainyard results runs/x --sort loss' sorts by one\n");
  EXPECT_EQ(footer(R"({"loss":1,"val_loss":2,"acc":0.5})"), "best: t acc 50.0 %\n");
  EXPECT_THAT(table_of(group, {finished_row("t", Duration{1000}, R"({"loss":1,"val_loss":2})")},
                       {.run_directory = "runs/a b"}),
              EndsWith("(loss and val_loss): \"trainyard results 'runs/a b' --sort loss\" sorts by "
                       "one\n"));
}

TEST(Table, SaysWhichScoreIsTextAndSoNeverTheBest) {
  const std::string text = table_of({.name = "g", .tasks = 2, .finished = 2},
                                    {finished_row("a", Duration{1000}, R"({"acc":"0.93%"})"),
                                     finished_row("b", Duration{1000}, R"({"acc":"n/a"})")});
  EXPECT_EQ(text.substr(text.rfind("\n\n") + 2),
            "acc is text in 2 results, such as '0.93%': only numbers count for averages and the "
            "best task\n");
}

TEST(Table, GoesOnInTheSameColumnsFromChunkToChunk) {
  const journal::GroupRow group{.name = "g", .tasks = 2, .finished = 2};
  const journal::TaskRow row = finished_row("abc", Duration{1000}, "");
  GroupDigest digest(group);
  digest.look_at(row);
  TaskTable table(digest, {.all = true});
  EXPECT_EQ(table.lines(std::vector<journal::TaskRow>{row}),
            "TASK  STATUS     TIME  ATTEMPTS  PEAK MEMORY\n"
            "abc   FINISHED  1.0 s         1       300 MB\n");
  EXPECT_EQ(table.lines(std::vector<journal::TaskRow>{row}),
            "abc   FINISHED  1.0 s         1       300 MB\n");
}

}  // namespace
}  // namespace trainyard::report
