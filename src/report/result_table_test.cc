// The results of tasks: filtered, averaged, sorted, pivoted, and written in four forms.
#include "report/result_table.h"

#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "report/test_rows.h"

namespace trainyard::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A cell of a sweep over lr and seed.
journal::TaskRow trained(std::string_view lr, std::string_view seed, std::string_view result) {
  journal::TaskRow row =
      finished_row(fmt::format("lr={},seed={}", lr, seed), Duration{2'000}, result);
  row.matrix = {{"lr", std::string(lr)}, {"seed", std::string(seed)}};
  return row;
}

journal::TaskRow lost_cell(std::string_view lr, std::string_view seed) {
  journal::TaskRow row = failed_row(fmt::format("lr={},seed={}", lr, seed),
                                    model::Failure::OutOfMemory, "took too much");
  row.matrix = {{"lr", std::string(lr)}, {"seed", std::string(seed)}};
  return row;
}

ResultTable results_of(const std::vector<journal::TaskRow>& rows) {
  ResultRows gathered;
  for (const journal::TaskRow& row : rows) gathered.add("runs/sweep", row);
  return std::move(gathered).table();
}

ResultTable sweep() {
  return results_of({trained("1e-3", "0", R"({"acc": 0.9, "epochs": 4, "net": "small"})"),
                     trained("1e-3", "1", R"({"acc": 0.8, "epochs": 5, "net": "small"})"),
                     trained("0.01", "0", R"({"acc": 0.5, "epochs": 4, "net": "small"})"),
                     lost_cell("0.01", "1")});
}

TEST(ResultTable, HasARowForEachTaskWhoseStatusSaysWhyItHasNoResult) {
  ResultTable table = sweep();
  note_missing(table);
  EXPECT_EQ(result_table_text(table),
            "  lr  seed  status          time     acc  epochs  net\n"
            "1e-3     0  FINISHED       2.0 s  90.0 %       4  small\n"
            "1e-3     1  FINISHED       2.0 s  80.0 %       5  small\n"
            "0.01     0  FINISHED       2.0 s  50.0 %       4  small\n"
            "0.01     1  OUT_OF_MEMORY  2.0 s       -       -  -\n");
}

TEST(ResultTable, LeavesOutColumnsThatHaveNoRoomAndNamesThem) {
  const auto text = [](int width, std::string_view kept = "") {
    return result_table_text(sweep(), {.width = width, .kept = kept});
  };
  constexpr int kWhole = 55;
  EXPECT_EQ(text(kWhole), result_table_text(sweep()));
  EXPECT_EQ(text(kWhole - 1),
            "  lr  seed  status            acc  epochs  net\n"
            "1e-3     0  FINISHED       90.0 %       4  small\n"
            "1e-3     1  FINISHED       80.0 %       5  small\n"
            "0.01     0  FINISHED       50.0 %       4  small\n"
            "0.01     1  OUT_OF_MEMORY       -       -  -\n"
            "1 column left out (time): a wider terminal, '| less -S' or --csv shows them\n");
  EXPECT_THAT(text(35), AllOf(StartsWith("  lr  seed  status            acc\n"),
                              HasSubstr("\n3 columns left out (time, epochs, net): ")));
  // Keys, the status and one result stay, however narrow the terminal is.
  EXPECT_THAT(text(10), StartsWith("  lr  seed  status            acc\n"));
  EXPECT_THAT(text(35, "time"), StartsWith("  lr  seed  status          time     acc\n"));
  EXPECT_THAT(text(35, "epochs"), AllOf(StartsWith("  lr  seed  status         epochs\n"),
                                        HasSubstr("(time, acc, net)")));
}

TEST(ResultTable, ShowsTheTimeOfAllAttemptsWithoutTheTimeBetweenThem) {
  journal::TaskRow retried = trained("1e-3", "0", R"({"acc": 0.9})");
  retried.started = Instant{Duration{60'000}};
  retried.ended = Instant{Duration{63'000}};
  retried.earlier_attempts = Duration{2'000};
  journal::TaskRow stopped = skipped_row("lr=1e-3,seed=1", "stopped before its retry");
  stopped.matrix = {{"lr", "1e-3"}, {"seed", "1"}};
  stopped.first_started = Instant{};
  stopped.ended = Instant{Duration{90'000}};
  stopped.earlier_attempts = Duration{4'000};
  const ResultTable table = results_of({retried, stopped});
  EXPECT_EQ(result_table_text(table),
            "  lr  seed  status     time     acc\n"
            "1e-3     0  FINISHED  5.0 s  90.0 %\n"
            "1e-3     1  SKIPPED   4.0 s       -\n");
  const auto rows = nlohmann::json::parse(result_table_json(table)).at("rows");
  EXPECT_EQ(rows.at(0).at("time"), 5);
}

TEST(ResultTable, ShowsTheTimeOfALostTaskUntilTheLastInstantOfItsRun) {
  journal::TaskRow lost = started_row("a");
  lost.standing = {.status = Status::Training, .failure = model::Failure::Lost};
  ResultRows rows;
  rows.add("runs/sweep", lost, Instant{Duration{1'900}});
  EXPECT_EQ(result_table_csv(std::move(rows).table()), "task,status,time\na,LOST,1.9\n");
}

TEST(ResultMeans, AreOverTheResultsAndTimesOfFinishedTasksAlone) {
  journal::TaskRow said = lost_cell("0.01", "1");
  said.result = R"({"acc": 0.1})";
  const ResultTable table =
      results_of({trained("0.01", "0", R"({"acc": 0.5})"), said, lost_cell("0.1", "0")});
  const Result<ResultTable> averaged = averaged_over(table, {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(result_table_text(*averaged),
            "  lr  tasks   time     acc\n"
            "0.01      1  2.0 s  50.0 %\n"
            " 0.1      0      -       -\n"
            "lr=0.01,seed=1: result not counted, OUT_OF_MEMORY\n"
            "lr=0.1,seed=0: no result, OUT_OF_MEMORY\n"
            "lr=0.1,seed=1: no such task\n");
}

TEST(ResultTable, KeepsApartWhatTheMatrixAndTheResultSayUnderOneName) {
  const ResultTable table =
      results_of({trained("1e-3", "0", R"({"lr": 7, "status": "x", "acc": 0.9})")});
  const auto row = nlohmann::json::parse(result_table_json(table)).at("rows").at(0);
  EXPECT_EQ(row.at("lr"), "1e-3");
  EXPECT_EQ(row.at("result.lr"), 7);
  EXPECT_EQ(row.at("status"), "FINISHED");
  EXPECT_EQ(row.at("result.status"), "x");
  EXPECT_EQ(row.at("acc"), 0.9);
}

TEST(ResultTable, HasEachColumnOnceAlsoWhereAKeyIsCalledAsOneOfItsOwn) {
  journal::TaskRow task = trained("1e-3", "0", R"({"acc": 0.9})");
  task.matrix = {{"status", "x"}, {"time", "3"}, {"tasks", "7"}, {"lr", "1"}};
  const ResultTable table = results_of({task});
  std::vector<std::string> names;
  for (const ResultColumn& column : table.columns) names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("matrix.status", "matrix.time", "matrix.tasks", "lr", "status",
                                 "time", "acc"));
  const auto row = nlohmann::json::parse(result_table_json(table)).at("rows").at(0);
  EXPECT_EQ(row.at("matrix.status"), "x");
  EXPECT_EQ(row.at("status"), "FINISHED");
}

TEST(ResultTable, IsAveragedOverAKeyWithWhatIsMissingNamed) {
  const Result<ResultTable> averaged = averaged_over(sweep(), {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(result_table_text(*averaged),
            "  lr  tasks         time           acc       epochs\n"
            "1e-3      2  2.0 s ± 0.0  85.0 % ± 7.1  4.50 ± 0.71\n"
            "0.01      1        2.0 s        50.0 %            4\n"
            "lr=0.01,seed=1: no result, OUT_OF_MEMORY\n");
}

TEST(ResultTable, NamesACellThatOtherRowsHave) {
  const Result<ResultTable> averaged = averaged_over(
      results_of({trained("1", "0", R"({"acc": 1})"), trained("1", "1", R"({"acc": 1})"),
                  trained("2", "0", R"({"acc": 1})")}),
      {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_THAT(averaged->notes, ElementsAre("lr=2,seed=1: no such task"));
}

TEST(ResultTable, LeavesATextOutOfAMeanByItself) {
  const Result<ResultTable> averaged = averaged_over(
      results_of({trained("1", "0", R"({"acc": 0.5})"), trained("1", "1", R"({"acc": "n/a"})")}),
      {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(result_table_csv(*averaged),
            "lr,tasks,time,time_std,time_n,acc,acc_std,acc_n\n1,2,2,0,2,0.5,,1\n");
  EXPECT_THAT(averaged->notes, IsEmpty());
}

TEST(ResultTable, ShowsNumbersAsIfATextAmongThemWereNotThere) {
  const ResultTable table =
      results_of({trained("1", "0", R"({"acc": 0.8200000000000001, "loss": 0.25})"),
                  trained("1", "1", R"({"acc": "n/a", "loss": "diverged"})"),
                  trained("1", "2", R"({"acc": 0.8, "loss": 12})")});
  EXPECT_EQ(result_table_text(table),
            "lr  seed  status     time  acc     loss\n"
            " 1     0  FINISHED  2.0 s  82.0 %  0.250\n"
            " 1     1  FINISHED  2.0 s  n/a     diverged\n"
            " 1     2  FINISHED  2.0 s  80.0 %  12.000\n");
  EXPECT_THAT(result_table_text(averaged_over(table, {"seed"}).value()),
              HasSubstr("    3  2.0 s ± 0.0  81.0 % ± 1.4 (2 of 3)  6.125 ± 8.309 (2 of 3)\n"));
}

TEST(ResultTable, TellsFieldsApartFromTheColumnsOfAverages) {
  const Result<ResultTable> averaged =
      averaged_over(results_of({trained("1", "0", R"({"acc": 0.5, "acc_std": 3, "tasks": 7})"),
                                trained("1", "1", R"({"acc": 0.5, "acc_std": 3, "tasks": 7})")}),
                    {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(result_table_csv(*averaged),
            "lr,tasks,time,time_std,time_n,acc,acc_std,acc_n,result.acc_std,result.acc_std_std,"
            "result.acc_std_n,result.tasks,result.tasks_std,result.tasks_n\n"
            "1,2,2,0,2,0.5,0,2,3,0,2,7,0,2\n");
}

TEST(ResultTable, NamesNoCellThatWasLeftOutOrIsOfAnotherGroup) {
  ResultTable table = sweep();
  const Result<text::Condition> condition = text::parse_condition("acc>0.8");
  ASSERT_TRUE(condition);
  ASSERT_TRUE(keep_where(table, *condition));
  EXPECT_THAT(averaged_over(table, {"seed"})->notes, IsEmpty());
  journal::TaskRow once = trained("1", "0", R"({"acc": 1})");
  once.group_name = "data";
  once.matrix = {};
  const ResultTable two =
      results_of({trained("1", "0", R"({"acc": 1})"), trained("1", "1", R"({"acc": 1})"), once});
  EXPECT_THAT(averaged_over(two, {"seed"})->notes, IsEmpty());
}

TEST(ResultTable, TakesANumberForTheSameHoweverItIsWritten) {
  ResultRows rows;
  rows.add("runs/a", trained("1e-3", "0", R"({"acc": 0.5})"));
  rows.add("runs/b", trained("0.001", "0", R"({"acc": 0.75})"));
  const Result<ResultTable> averaged = averaged_over(std::move(rows).table(), {"run"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(averaged->rows.size(), 1U);
  EXPECT_THAT(averaged->notes, IsEmpty());
}

TEST(ResultTable, ShowsTheCodeWhereTwoRunsHadAnotherOne) {
  const auto ran = [](std::string_view code, std::string_view seed) {
    journal::TaskRow row = trained("1", seed, R"({"acc": 0.5})");
    row.code = code;
    return row;
  };
  ResultRows rows;
  rows.add("runs/a", ran("a1b2c3d", "0"));
  rows.add("runs/b", ran("5d6e7f8", "0"));
  rows.add("runs/b", ran("5d6e7f8", "1"));
  const ResultTable table = std::move(rows).table();
  EXPECT_THAT(result_table_csv(table), HasSubstr("runs/a,1,0,FINISHED,2,a1b2c3d,0.5\n"));
  EXPECT_THAT(result_table_csv(*averaged_over(table, {"seed"})),
              HasSubstr("run,lr,tasks,code,time,time_std,time_n,acc,acc_std,acc_n\n"
                        "runs/a,1,1,a1b2c3d,2,,1,0.5,,1\nruns/b,1,2,5d6e7f8,2,0,2,0.5,0,2\n"));
  EXPECT_THAT(result_table_csv(*averaged_over(table, {"run", "seed"})),
              HasSubstr("1,3,2 different ones,"));
}

TEST(ResultTable, IsTurnedForOneGroupAlone) {
  const auto task_of = [](std::string_view group, std::string_view lr) {
    journal::TaskRow row = trained(lr, "0", R"({"acc": 0.5})");
    row.group_name = group;
    return row;
  };
  journal::TaskRow other = task_of("data", "0");
  other.matrix = {};
  EXPECT_THAT(
      pivoted(results_of({task_of("train", "1"), other}), "lr", "seed", "acc").value().notes,
      ElementsAre("shown: acc", "1 task without 'lr' left out"))
      << "what has neither key is in no cell";
  EXPECT_EQ(
      pivoted(results_of({task_of("train", "1"), task_of("eval", "1")}), "lr", "seed", "acc")
          .error()
          .message,
      "--pivot needs tasks of one group, but these are of 'train' and 'eval': select one, as in "
      "--where 'group=train'");
}

TEST(ResultTable, TellsABoundedNumberOfThem) {
  std::vector<journal::TaskRow> rows{trained("1", "100", R"({"acc": 1})")};
  for (int seed = 0; seed < 100; ++seed) rows.push_back(trained("1", fmt::format("{}", seed), ""));
  ResultTable table = results_of(rows);
  note_missing(table);
  EXPECT_EQ(table.notes.size(), ResultTable::kNotesMax);
  EXPECT_EQ(table.notes.back(), "and 91 more");
}

TEST(ResultTable, SaysWhichNumbersOfItsRowsAreNaN) {
  std::vector<journal::TaskRow> rows;
  for (const char* const seed : {"0", "1", "2"}) {
    rows.push_back(trained("1", seed, R"({"loss": null, "acc": 1})"));
    rows.back().warning = "result.1.json: 'loss' was NaN: kept as null";
  }
  ResultTable table = results_of(rows);
  EXPECT_THAT(number_notes(table), ElementsAre("loss is NaN in 3 results (shown as -)"));
  ASSERT_TRUE(keep_where(table, text::parse_condition("seed!=1").value()));
  EXPECT_THAT(number_notes(table), ElementsAre("loss is NaN in 2 results (shown as -)"));
  note_missing(table);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(ResultTable, SaysThatAFieldThatIsNaNInAllResultsHasNoAverage) {
  std::vector<journal::TaskRow> rows;
  for (const char* const seed : {"0", "1"}) {
    rows.push_back(trained("1", seed, R"({"loss": null})"));
    rows.back().warning = "metric 'loss' was NaN: kept as null";
  }
  ResultTable table = results_of(rows);
  EXPECT_TRUE(sort_by(table, "-loss"));
  note_missing(table);
  EXPECT_THAT(table.notes, IsEmpty());
  ResultTable averaged = averaged_over(table, {"seed"}).value();
  EXPECT_EQ(sort_by(averaged, "-loss").error().message,
            "no numbers in column 'loss': no finished task has one");
}

TEST(ResultTable, CountsAResultThatIsNaNWithoutNamingItsTask) {
  journal::TaskRow diverged = trained("1", "1", R"({"acc": null})");
  diverged.warning = "result.1.json: 'acc' was NaN: kept as null";
  ResultTable table = results_of({trained("1", "0", R"({"acc": 1})"), diverged});
  EXPECT_THAT(number_notes(table), ElementsAre("acc is NaN in 1 result (shown as -)"));
  EXPECT_THAT(averaged_over(table, {"seed"})->notes, IsEmpty());
  note_missing(table);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(ResultTable, NamesTheFileOfAResultThatWasLost) {
  journal::TaskRow lost = trained("1", "1", "");
  lost.warning = "result.1.json: 1:8: expected a value: result discarded";
  const std::string note =
      "lr=1,seed=1: no result: runs/sweep/train/lr=1,seed=1/result.1.json: 1:8: expected a "
      "value: result discarded";
  ResultTable table = results_of({trained("1", "0", R"({"acc": 1})"), lost});
  EXPECT_THAT(averaged_over(table, {"seed"})->notes, ElementsAre(note));
  note_missing(table);
  EXPECT_THAT(table.notes, ElementsAre(note));
  ResultTable alone = results_of({lost});
  note_missing(alone);
  EXPECT_THAT(alone.notes, ElementsAre(note));
}

TEST(ResultTable, NamesNoResultAsLostThatIsKeptWithoutItsNumbers) {
  journal::TaskRow diverged = trained("1", "1", R"({"acc": null, "loss": null})");
  diverged.warning = "result.1.json: 'acc' was NaN, 'loss' was NaN: kept as null (and 1 more)";
  ResultTable table = results_of({trained("1", "0", R"({"acc": 1})"), diverged});
  note_missing(table);
  EXPECT_THAT(table.notes, ElementsAre("lr=1,seed=1: no result, FINISHED"));
}

TEST(ResultTable, SaysWhichFieldsAreListsOrObjects) {
  ResultRows rows;
  rows.add("runs/sweep", trained("1", "0", R"({"val": {"acc": 0.7}, "curve": [1, 2]})"));
  EXPECT_EQ(rows.nested_note(), "lists and objects left out: val, curve");
  ResultTable table = std::move(rows).table();
  note_missing(table);
  EXPECT_THAT(table.notes, IsEmpty()) << "it has written a result";
  EXPECT_EQ(sort_by(table, "val").error().message,
            "column 'val' not found: the results contain only lists and objects; use lr, seed, "
            "status, time");
}

TEST(ResultTable, SaysOnceHowToReportAResultWhereNoFinishedTaskHasOne) {
  const auto waiting = [](std::string_view seed) {
    journal::TaskRow row = started_row(fmt::format("lr=1,seed={}", seed));
    row.matrix = {{"lr", "1"}, {"seed", std::string(seed)}};
    return row;
  };
  ResultTable table =
      results_of({trained("1", "0", ""), trained("1", "1", ""), lost_cell("1", "2"), waiting("3")});
  const Result<ResultTable> averaged = averaged_over(table, {"seed"});
  note_missing(table);
  const char* const counted =
      "2 finished tasks reported no result: print a line '::metric acc=0.9', or write a JSON "
      "object to the file named by $TRAINYARD_RESULT";
  EXPECT_THAT(table.notes, ElementsAre(counted));
  ASSERT_TRUE(averaged);
  EXPECT_THAT(averaged->notes, ElementsAre("lr=1,seed=2: no result, OUT_OF_MEMORY", counted));
}

TEST(ResultTable, NamesAFinishedTaskWithoutResultWhereOthersHaveOne) {
  ResultTable table = results_of({trained("1", "0", R"({"acc": 1})"), trained("1", "1", "")});
  note_missing(table);
  EXPECT_THAT(table.notes, ElementsAre("lr=1,seed=1: no result, FINISHED"));
}

TEST(ResultTable, NamesTasksInNotesAsCommandsDo) {
  journal::TaskRow other = finished_row("all", Duration{1'000}, "");
  other.group_name = "report";
  ResultTable groups =
      results_of({trained("1", "0", R"({"acc": 1})"), trained("1", "1", ""), other});
  EXPECT_THAT(
      averaged_over(groups, {"seed"})->notes,
      ElementsAre("train/lr=1,seed=1: no result, FINISHED", "report/all: no result, FINISHED"));
  note_missing(groups);
  EXPECT_THAT(groups.notes, ElementsAre("train/lr=1,seed=1: no result, FINISHED",
                                        "report/all: no result, FINISHED"));
}

TEST(ResultTable, NamesATaskWithAnIdByItAlone) {
  journal::TaskRow other = finished_row("all", Duration{1'000}, R"({"acc": 1})");
  other.matrix = {};
  const ResultTable table =
      results_of({trained("1", "0", R"({"acc": 1})"), trained("2", "1", ""), other});
  EXPECT_THAT(
      pivoted(table, "lr", "seed", "acc").value().notes,
      ElementsAre("shown: acc", "1 task without 'lr' left out", "lr=2,seed=1: no result, FINISHED",
                  "lr=1,seed=1: no such task", "lr=2,seed=0: no such task"));
  EXPECT_THAT(averaged_over(table, {"seed"}).value().notes,
              ElementsAre("lr=1,seed=1: no such task", "lr=2,seed=1: no result, FINISHED",
                          "lr=2,seed=0: no such task"));
}

TEST(ResultTable, KeepsTheRowsForWhichAConditionHolds) {
  const auto kept = [](std::string_view text) {
    ResultTable table = sweep();
    const Result<text::Condition> condition = text::parse_condition(text);
    EXPECT_TRUE(condition) << text;
    EXPECT_TRUE(keep_where(table, *condition)) << text;
    std::vector<std::string> names;
    for (const auto& row : table.rows) names.push_back(row[0].text + "/" + row[1].text);
    return names;
  };
  EXPECT_THAT(kept("lr<1e-2"), ElementsAre("1e-3/0", "1e-3/1"));
  EXPECT_THAT(kept("lr = 0.001"), ElementsAre("1e-3/0", "1e-3/1")) << "a number, however written";
  EXPECT_THAT(kept("acc>=0.8"), ElementsAre("1e-3/0", "1e-3/1"));
  EXPECT_THAT(kept("acc<=0.5"), ElementsAre("0.01/0")) << "what is not there is not small";
  EXPECT_THAT(kept("status!=FINISHED"), ElementsAre("0.01/1"));
  EXPECT_THAT(kept("status=failed"), ElementsAre("0.01/1")) << "any cause, in any case";
  EXPECT_THAT(kept("status!=FAILED"), ElementsAre("1e-3/0", "1e-3/1", "0.01/0"));
  EXPECT_THAT(kept("net==large"), IsEmpty());
  EXPECT_THAT(kept("acc>=80%"), ElementsAre("1e-3/0", "1e-3/1")) << "a percentage is a fraction";
  EXPECT_THAT(kept("acc = 90.0 %"), ElementsAre("1e-3/0"));
}

TEST(ResultTable, SaysWhichValuesAColumnHas) {
  const ResultTable table = sweep();
  EXPECT_EQ(range_text(table, "acc"), "acc is 0.5 to 0.9, shown as a percentage");
  EXPECT_EQ(range_text(table, "epochs"), "epochs is 4 to 5");
  EXPECT_EQ(range_text(table, "lr"), "lr is 1e-3 to 0.01");
  EXPECT_EQ(range_text(table, "net"), "") << "not a number";
  EXPECT_EQ(range_text(results_of({trained("1", "0", R"({"loss": 2})")}), "loss"), "loss is 2");
}

TEST(ResultTable, ComparesAStatusWithAStateOrWithItsWord) {
  journal::TaskRow exited = lost_cell("0.01", "1");
  exited.standing.failure = model::Failure::Exit;
  exited.standing.exit_code = 3;
  const ResultTable table = results_of({trained("1e-3", "0", R"({"acc": 0.9})"), exited});
  const auto kept = [&table](const std::string& text) {
    ResultTable some = table;
    EXPECT_TRUE(keep_where(some, text::parse_condition(text).value())) << text;
    std::string rates;
    for (const auto& row : some.rows) rates += row[0].text + ";";
    return rates;
  };
  for (const std::string word : {"FAILED", "failed", "exit", "exit 3", "EXIT 3", "FAILED EXIT 3"}) {
    EXPECT_EQ(kept("status=" + word), "0.01;") << word;
    EXPECT_EQ(kept("status!=" + word), "1e-3;") << word;
  }
  EXPECT_EQ(kept("status=exit 4"), "");
}

TEST(ResultTable, RefusesAStatusThatNoTaskCanHave) {
  const auto wrong = [](std::string_view text) {
    ResultTable table = sweep();
    const Result<void> kept = keep_where(table, text::parse_condition(text).value());
    return kept ? "" : kept.error().message;
  };
  EXPECT_EQ(wrong("status=faild"), "unknown state 'status=faild' (did you mean 'status=failed'?)");
  EXPECT_EQ(wrong("status!=Finishd"),
            "unknown state 'status!=Finishd' (did you mean 'status!=finished'?)");
  EXPECT_THAT(wrong("status=nothing"), HasSubstr("use status=waiting, status=on-hold, "));
  for (const std::string known : {"oom", "exit 7", "FAILED EXIT 7", "FAILED TIMEOUT", "ON_HOLD"}) {
    EXPECT_EQ(wrong("status=" + known), "");
  }
}

TEST(ResultTable, RefusesTwoConditionsInOneText) {
  ResultTable table = results_of(
      {trained("1e-3", "0", R"({"net": "a,lr=b"})"), trained("0.01", "1", R"({"net": "c"})")});
  const auto wrong = [&table](std::string_view text) -> std::string {
    const Result<void> kept = keep_where(table, text::parse_condition(text).value());
    return kept ? "" : kept.error().message;
  };
  EXPECT_EQ(wrong("lr=1e-3,seed=0"),
            "no task has '1e-3,seed=0' as its lr: write --where lr=1e-3 --where seed=0");
  EXPECT_EQ(wrong("status=failed,lr!=0.01,time<9"),
            "no task has 'failed,lr!=0.01,time<9' as its status: write --where status=failed "
            "--where 'lr!=0.01' --where 'time<9'");
  EXPECT_EQ(wrong("lr!=1e-3,seed=0"),
            "no task has '1e-3,seed=0' as its lr: write --where 'lr!=1e-3' --where seed=0");
  EXPECT_EQ(wrong("lr=1e-3 and seed=0"),
            "no task has '1e-3 and seed=0' as its lr: write --where lr=1e-3 --where seed=0");
  EXPECT_EQ(
      wrong("seed=0 or seed=1"),
      "no task has '0 or seed=1' as its seed: conditions cannot be joined by 'or'; use one at "
      "a time");
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(wrong("net=a,lr=b"), "") << "it is a value";
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(wrong("lr=1e-3,fold=0"), "") << "no column is called so";
  EXPECT_THAT(table.rows, IsEmpty());
}

TEST(ResultMeans, AreOfTasksWithoutAMatrixByTheirIdsAlone) {
  journal::TaskRow lost = failed_row("eval", model::Failure::OutOfMemory, "took too much");
  const ResultTable table =
      results_of({finished_row("train", Duration{2'000}, R"({"acc": 0.5})"), lost});
  EXPECT_EQ(averaged_over(table, {"sede"}).error().message,
            "'sede' is not a key of the matrix: these tasks have none");
  const Result<ResultTable> averaged = averaged_over(table, {"task"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(result_table_text(*averaged),
            "tasks   time     acc\n"
            "    1  2.0 s  50.0 %\n"
            "eval: no result, OUT_OF_MEMORY\n");
}

TEST(ResultTable, SaysWhatIsNoConditionAndWhichColumnWasMeant) {
  EXPECT_EQ(text::parse_condition("lr").error().message,
            "'lr' is not a valid condition; write it as in 'lr<1e-3' or 'status=FINISHED'");
  EXPECT_EQ(text::parse_condition("<3").error().message,
            "'<3' is not a valid condition; write it as in 'lr<1e-3' or 'status=FINISHED'");
  EXPECT_EQ(text::parse_condition("lr<fast").error().message, "'lr<fast': 'fast' is not a number");
  EXPECT_EQ(text::parse_condition("lr<= ").error().message,
            "'lr<= ': a value is missing after '<='");
  EXPECT_EQ(text::parse_condition("time>1.5m").error().message,
            "'time>1.5m': '1.5m' is not a number; write it without a unit, a time in seconds");
  EXPECT_EQ(text::parse_condition("lr<1 and seed<2").error().message,
            "'lr<1 and seed<2': '1 and seed<2' is not a number");
  ResultTable table = sweep();
  EXPECT_EQ(read_condition(table, "gpu").error().message,
            "'gpu' is not a valid condition; write it as in 'lr<1e-3' or 'status=FINISHED'; the "
            "columns are lr, seed, status, time, acc, epochs, net");
  EXPECT_EQ(read_condition(table, "lr<fast").error().message,
            text::parse_condition("lr<fast").error().message);
  EXPECT_TRUE(read_condition(table, "lr<1"));
  EXPECT_EQ(sort_by(table, "-ac").error().message, "column 'ac' not found (did you mean 'acc'?)");
  EXPECT_EQ(sort_by(table, "lr,-acc").error().message,
            "--sort takes one column: --sort lr or --sort -acc");
  EXPECT_EQ(averaged_over(table, {"acc"}).error().message,
            "'acc' is not a key of the matrix; use lr, seed");
  EXPECT_EQ(averaged_over(results_of({trained("1", "0", "")}), {"fold"}).error().message,
            "'fold' is not a key of the matrix; use lr, seed");
  EXPECT_EQ(sort_by(table, "nonsense").error().message,
            "column 'nonsense' not found; use lr, seed, status, time, acc, epochs, net");
  ResultTable early = results_of({trained("0.1", "0", "")});
  EXPECT_EQ(
      sort_by(early, "-test_acc").error().message,
      "column 'test_acc' not found: no task has reported a result yet; use lr, seed, status, time");
  ResultTable averaged = averaged_over(std::move(early), {"seed"}).value();
  EXPECT_EQ(sort_by(averaged, "-test_acc").error().message,
            "column 'test_acc' not found: no task has reported a result yet; use lr, tasks, time");
}

TEST(ResultTable, IsSortedUpwardsOrDownwardsWithWhatIsMissingLast) {
  const auto first_of = [](std::string_view by) {
    ResultTable table = sweep();
    EXPECT_TRUE(sort_by(table, by));
    std::vector<std::string> names;
    for (const auto& row : table.rows) names.push_back(row[0].text + "/" + row[1].text);
    return names;
  };
  EXPECT_THAT(first_of("acc"), ElementsAre("0.01/0", "1e-3/1", "1e-3/0", "0.01/1"));
  EXPECT_THAT(first_of("-acc"), ElementsAre("1e-3/0", "1e-3/1", "0.01/0", "0.01/1"));
  EXPECT_THAT(first_of("-lr"), ElementsAre("0.01/0", "0.01/1", "1e-3/0", "1e-3/1"))
      << "equal ones stay in their order";
}

TEST(ResultTable, SaysWhichFieldIsTextWhereANumberIsNeeded) {
  const ResultTable mixed =
      results_of({trained("1", "0", R"({"acc": "n/a"})"), trained("1", "1", R"({"acc": 0.5})"),
                  trained("1", "2", R"({"acc": "93%"})"), trained("1", "3", R"({"acc": 0.7})")});
  EXPECT_THAT(
      number_notes(mixed),
      ElementsAre("acc is text in 2 results, such as 'n/a': only numbers count for averages "
                  "and the best task"));
  for (const auto& [by, order] : {std::pair("acc", "1320"), std::pair("-acc", "3102")}) {
    ResultTable sorted = mixed;
    ASSERT_TRUE(sort_by(sorted, by));
    std::string seeds;
    for (const auto& row : sorted.rows) seeds += row[1].text;
    EXPECT_EQ(seeds, order) << by << ": numbers before text";
  }
  const ResultTable text = results_of(
      {trained("1", "0", R"({"acc": "93%", "net": "a"})"), trained("1", "1", R"({"acc": "5%"})")});
  EXPECT_EQ(number_notes(text).size(), 1U) << "'net' is no score";
  ResultTable averaged = averaged_over(text, {"seed"}).value();
  EXPECT_EQ(sort_by(averaged, "-acc").error().message,
            "no numbers in column 'acc': acc is text in 2 results, such as '93%'");
  EXPECT_EQ(pivoted(text, "lr", "seed", "acc").error().message,
            "no numbers in column 'acc': acc is text in 2 results, such as '93%'");
  EXPECT_EQ(pivoted(text, "lr", "seed", "").error().message,
            "--pivot needs a number in the results, and no task has one: acc is text in 2 results, "
            "such as '93%'");
}

TEST(ResultTable, IsTurnedByTwoKeysAndAveragedOverTheOthers) {
  std::vector<journal::TaskRow> rows;
  for (const auto& [lr, batch, acc] :
       {std::tuple("0.1", "64", "0.5"), std::tuple("0.1", "8", "0.75"),
        std::tuple("0.01", "8", "0.25")}) {
    for (const std::string_view seed : {"0", "1"}) {
      rows.push_back(trained(lr, seed, fmt::format(R"({{"acc": {}, "loss": 1.5}})", acc)));
      rows.back().matrix.insert(rows.back().matrix.begin() + 1, {"batch", batch});
    }
  }
  const Result<ResultTable> turned = pivoted(results_of(rows), "lr", "batch", "");
  ASSERT_TRUE(turned);
  EXPECT_EQ(result_table_text(*turned),
            "  lr       batch=8      batch=64\n"
            "0.01  25.0 % ± 0.0             -\n"
            " 0.1  75.0 % ± 0.0  50.0 % ± 0.0\n"
            "shown: acc\n"
            "lr=0.01,batch=64: no such task\n");
  EXPECT_EQ(pivoted(results_of(rows), "lr", "bach", "").error().message,
            "'bach' is not a key of the matrix (did you mean 'batch'?)");
  const auto why_not = [](std::string_view result) {
    return pivoted(results_of({trained("1", "0", result)}), "lr", "seed", "").error().message;
  };
  EXPECT_EQ(why_not(""), "--pivot needs a number in the results, and no task has one");
  EXPECT_EQ(
      why_not(R"({"acc": 1, "test_acc": 1})"),
      "--pivot shows one number, and the results have several (acc, test_acc): select one, as in "
      "'--show acc'");
}

TEST(ResultTable, SetsRunsSideBySide) {
  ResultRows rows;
  rows.add("runs/a", trained("1", "0", R"({"acc": 0.5})"));
  rows.add("runs/b", trained("1", "0", R"({"acc": 0.75})"));
  const Result<ResultTable> turned = pivoted(std::move(rows).table(), "lr", "run", "acc");
  ASSERT_TRUE(turned);
  EXPECT_EQ(result_table_text(*turned),
            "lr  run=runs/a  run=runs/b\n 1      50.0 %      75.0 %\nshown: acc\n");
}

TEST(ResultTable, IsWrittenForSpreadsheetsPagesAndPrograms) {
  const ResultTable table =
      results_of({trained("a,b", "x|y", R"({"acc": 0.125, "note": "say \"hi\""})"),
                  trained("1", "0", R"({"acc": 1})")});
  EXPECT_EQ(result_table_csv(table),
            "lr,seed,status,time,acc,note\n"
            "\"a,b\",x|y,FINISHED,2,0.125,\"say \"\"hi\"\"\"\n"
            "1,0,FINISHED,2,1,\n");
  EXPECT_THAT(result_table_markdown(table),
              HasSubstr("| lr | seed | status | time | acc | note |\n"
                        "| --- | --- | --- | ---: | ---: | --- |\n"
                        "| a,b | x\\|y | FINISHED | 2.0 s | 12.5 % | say \"hi\" |\n"));
  const Result<ResultTable> averaged = averaged_over(sweep(), {"seed"});
  ASSERT_TRUE(averaged);
  EXPECT_THAT(result_table_csv(*averaged),
              HasSubstr("lr,tasks,time,time_std,time_n,acc,acc_std,acc_n,epochs,epochs_std,"
                        "epochs_n\n"));
  const auto json = nlohmann::json::parse(result_table_json(*averaged));
  EXPECT_EQ(json.at("rows").at(1).at("acc"),
            (nlohmann::json{{"mean", 0.5}, {"deviation", nullptr}, {"count", 1}}));
  EXPECT_EQ(json.at("rows").at(1).at("lr"), "0.01");
  EXPECT_EQ(json.at("notes").size(), 1);
}

TEST(ResultTable, MarksWhatIsOutOfDateAndNamesItInANote) {
  ResultRows gathered;
  const auto add = [&gathered](std::string_view id, bool is_out_of_date) {
    journal::TaskRow row = finished_row(id, Duration{1'000}, R"({"acc": 1})");
    row.out_of_date = is_out_of_date;
    gathered.add("runs/sweep", row);
  };
  add("0", false);
  EXPECT_EQ(gathered.out_of_date_note(), "");
  add("1", true);
  EXPECT_EQ(gathered.out_of_date_note(), "1 task finished before what it needs ran again: train/1");
  for (const std::string_view id : {"2", "3", "4"}) add(id, true);
  EXPECT_EQ(gathered.out_of_date_note(),
            "4 tasks finished before what they need ran again: train/1, train/2, train/3 and 1 "
            "more");
  ResultTable table = std::move(gathered).table();
  EXPECT_THAT(result_table_text(table), HasSubstr("\n   0  FINISHED               1.0 s  "));
  EXPECT_THAT(result_table_text(table), HasSubstr("\n   1  FINISHED, out of date  1.0 s  "));
  EXPECT_THAT(result_table_csv(table), HasSubstr("\n1,\"FINISHED, out of date\",1,1\n"));
  const auto rows = nlohmann::json::parse(result_table_json(table)).at("rows");
  EXPECT_EQ(rows.at(0).at("out_of_date"), false);
  EXPECT_EQ(rows.at(1).at("out_of_date"), true);
  EXPECT_EQ(rows.at(1).at("status"), "FINISHED");
  ASSERT_TRUE(keep_where(table, text::parse_condition("status!=finished, out of date").value()));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows.front().front().text, "0");
}

TEST(ResultTable, ComparesEachMarkOfAStatusByItself) {
  journal::TaskRow both = trained("1", "0", R"({"out_of_date": 3})");
  both.edited = true;
  both.out_of_date = true;
  both.matrix.emplace_back("edited", "x");
  const ResultTable table = results_of({both});
  EXPECT_THAT(result_table_csv(table),
              HasSubstr("lr,seed,matrix.edited,status,time,result.out_of_date\n"
                        "1,0,x,\"FINISHED, edited, out of date\",2,3\n"));
  for (const char* const text : {"status=FINISHED, edited, out of date", "status=finished, edited",
                                 "status=finished, out of date", "status=finished"}) {
    ResultTable some = table;
    ASSERT_TRUE(keep_where(some, text::parse_condition(text).value())) << text;
    EXPECT_EQ(some.rows.size(), 1U) << text;
  }
}

TEST(ResultTable, SaysWhichTasksRanAnEarlierCommand) {
  journal::TaskRow edited = trained("1", "0", R"({"acc": 0.5, "edited": 7})");
  edited.edited = true;
  ResultTable table = results_of({edited, trained("1", "1", R"({"acc": 0.75, "edited": 8})")});
  EXPECT_EQ(result_table_text(table),
            "lr  seed  status             time     acc  result.edited\n"
            " 1     0  FINISHED, edited  2.0 s  50.0 %              7\n"
            " 1     1  FINISHED          2.0 s  75.0 %              8\n");
  EXPECT_THAT(result_table_csv(table), HasSubstr("1,0,\"FINISHED, edited\",2,0.5,7\n"));
  const auto rows = nlohmann::json::parse(result_table_json(table)).at("rows");
  EXPECT_EQ(rows.at(0).at("status"), "FINISHED");
  EXPECT_EQ(rows.at(0).at("edited"), true);
  EXPECT_EQ(rows.at(0).at("result.edited"), 7);
  EXPECT_EQ(rows.at(1).at("edited"), false);
  EXPECT_THAT(
      edited_notes(table, "runs/a sweep"),
      ElementsAre("1 of 2 tasks ran an earlier command: \"trainyard run --resume 'runs/a sweep' "
                  "--rerun-changed\" runs it again"));
  EXPECT_THAT(averaged_over(table, {"seed"})->notes, IsEmpty()) << "it has finished";
  for (const auto& [text, seeds] :
       {std::pair("status=finished", "01"), std::pair("status=FINISHED, edited", "0"),
        std::pair("status!=finished, edited", "1")}) {
    ResultTable some = table;
    ASSERT_TRUE(keep_where(some, text::parse_condition(text).value())) << text;
    std::string kept;
    for (const auto& row : some.rows) kept += row[1].text;
    EXPECT_EQ(kept, seeds) << text;
  }
  ASSERT_TRUE(keep_where(table, text::parse_condition("seed=1").value()));
  EXPECT_THAT(edited_notes(table, "runs/sweep"), IsEmpty());
}

TEST(ResultTable, SaysForEachRunHowManyTasksRanAnEarlierCommand) {
  ResultRows gathered;
  for (const char* const run : {"runs/a", "runs/b", "runs/c"}) {
    for (const char* const seed : {"0", "1"}) {
      journal::TaskRow row = trained("1", seed, R"({"acc": 0.5})");
      const std::string_view name(run);
      row.edited = name == "runs/c" || (name == "runs/a" && row.id.ends_with('1'));
      gathered.add(run, row);
    }
  }
  EXPECT_THAT(edited_notes(std::move(gathered).table(), ""),
              ElementsAre("1 of 2 tasks ran an earlier command: 'trainyard run --resume runs/a "
                          "--rerun-changed' runs it again",
                          "2 of 2 tasks ran an earlier command: 'trainyard run --resume runs/c "
                          "--rerun-changed' runs them again"));
}

TEST(ResultTable, GivesATruthAsOneInJsonUnlessItIsAWordOfTheJobFile) {
  const ResultTable table =
      results_of({trained("true", "0", R"({"stable": true, "note": "true"})")});
  const auto row = nlohmann::json::parse(result_table_json(table)).at("rows").at(0);
  EXPECT_EQ(row.at("lr"), "true");
  EXPECT_EQ(row.at("stable"), true);
  EXPECT_EQ(row.at("note"), "true");
}

TEST(ResultTable, HasNumbersAsTasksWroteThemWhereTheyAreNotAveraged) {
  const ResultTable table = results_of(
      {trained("1", "0", R"({"hash": 9007199254740993, "params": 7000000001, "x": 1e-3})"),
       trained("1", "9007199254740993",
               R"({"hash": 123456789012345678901234567890, "params": 7000000003, "x": 20})")});
  EXPECT_EQ(result_table_csv(table),
            "lr,seed,status,time,hash,params,x\n"
            "1,0,FINISHED,2,9007199254740993,7000000001,1e-3\n"
            "1,9007199254740993,FINISHED,2,123456789012345678901234567890,7000000003,20\n");
  const std::string json = result_table_json(table);
  EXPECT_THAT(
      json,
      HasSubstr(
          "\n    {\n      \"lr\": \"1\",\n      \"seed\": \"0\",\n"
          "      \"status\": \"FINISHED\",\n      \"edited\": false,\n"
          "      \"out_of_date\": false,\n"
          "      \"time\": 2.0,\n      \"hash\": 9007199254740993,\n      \"params\": 7000000001,\n"
          "      \"x\": 1e-3\n    },\n    {\n"));
  EXPECT_THAT(json, HasSubstr("      \"hash\": 123456789012345678901234567890,\n"));
  EXPECT_EQ(nlohmann::json::parse(json).at("rows").size(), 2U);

  // A mean of one task is the text that it wrote, a mean of two is not.
  const Result<ResultTable> each = averaged_over(table, {"lr"});
  ASSERT_TRUE(each);
  EXPECT_THAT(result_table_csv(*each), HasSubstr("\n0,1,2,,1,9007199254740993,,1,7000000001,,1,"));
  EXPECT_EQ(nlohmann::json::parse(result_table_json(*each)).at("rows").at(0).at("hash").at("mean"),
            9'007'199'254'740'993);
  const Result<ResultTable> turned = pivoted(table, "lr", "seed", "hash");
  ASSERT_TRUE(turned);
  EXPECT_THAT(result_table_text(*turned),
              HasSubstr("\n 1  9007199254740993  123456789012345678901234567890\n"));
  const Result<ResultTable> both = averaged_over(table, {"seed"});
  ASSERT_TRUE(both);
  EXPECT_THAT(result_table_json(*both), HasSubstr("\"tasks\": 2,"));
  EXPECT_EQ(
      nlohmann::json::parse(result_table_json(*both)).at("rows").at(0).at("params").at("mean"),
      7'000'000'002.0);
}

TEST(ResultTable, ShowsWholeNumbersVerbatimAlsoBesideOthers) {
  EXPECT_EQ(result_table_text(results_of({trained("1", "0", R"({"params": 7000000001})"),
                                          trained("1", "1", R"({"params": 0.5})")})),
            "lr  seed  status     time      params\n"
            " 1     0  FINISHED  2.0 s  7000000001\n"
            " 1     1  FINISHED  2.0 s         0.5\n");
}

TEST(ResultTable, TellsSeedsApartThatAreOneDouble) {
  const ResultTable table = results_of({trained("1", "9007199254740992", R"({"acc": 0.5})"),
                                        trained("1", "9007199254740993", R"({"acc": 0.75})")});
  const Result<ResultTable> averaged = averaged_over(table, {"lr"});
  ASSERT_TRUE(averaged);
  EXPECT_EQ(averaged->rows.size(), 2U);
  for (const auto& [text, count] :
       {std::pair("seed=9007199254740993", 1U), std::pair("seed!=9007199254740993", 1U),
        std::pair("seed>=9007199254740992", 2U), std::pair("seed>9007199254740992", 1U),
        std::pair("seed<9007199254740993", 1U), std::pair("seed<=9007199254740992", 1U)}) {
    ResultTable some = table;
    const Result<text::Condition> condition = text::parse_condition(text);
    ASSERT_TRUE(condition);
    ASSERT_TRUE(keep_where(some, *condition));
    EXPECT_EQ(some.rows.size(), count) << text;
  }
  ResultTable sorted = table;
  ASSERT_TRUE(sort_by(sorted, "-seed"));
  EXPECT_EQ(sorted.rows.at(0).at(1).text, "9007199254740993");
}

TEST(ResultTable, OfNoTaskIsAHeading) {
  EXPECT_EQ(nlohmann::json::parse(result_table_json(results_of({}))).at("rows"),
            nlohmann::json::array());
  EXPECT_EQ(result_table_text(results_of({})), "status  time\n");
}

}  // namespace
}  // namespace trainyard::report
