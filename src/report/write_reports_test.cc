// Reports and status from a real journal.
#include "report/write_reports.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "report/sink.h"
#include "report/status.h"
#include "report/status_text.h"
#include "sys/test_directory.h"

namespace trainyard::report {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// A run of two groups in its own directory: 'train' of three tasks, of which the first has
/// finished, the second failed and the third runs, and 'eval' of one that waits.
class ReportsOfARun : public ::testing::Test {
 protected:
  void SetUp() override {
    model::Plan plan;
    plan.groups = {{.name = "train", .directory = "train"},
                   {.name = "eval", .directory = "eval", .needs = {{0}}}};
    plan.shapes = {{.group = {0}, .terms = {.request = {.memory = gb(1), .cpus = model::cpus(1)}}},
                   {.group = {1}, .terms = {.request = {.memory = gb(2), .cpus = model::cpus(1)}}}};
    plan.tasks = {{.shape = {0}}, {.shape = {0}}, {.shape = {0}}, {.shape = {1}}};
    const journal::Batch batch{
        .plan = std::make_shared<model::Plan>(std::move(plan)),
        .names = {.task_id = [](model::TaskIndex task) { return fmt::format("lr={}", task.value); },
                  .matrix_values =
                      [](model::TaskIndex task) {
                        return std::vector<std::pair<std::string, std::string>>{
                            {"lr", fmt::format("{}", task.value)}};
                      },
                  .fingerprint = [](model::TaskIndex task) { return std::uint64_t{task.value}; }}};
    auto journal = journal::Journal::create(journal_path(), "mnist", batch,
                                            {.command_line = "trainyard run sweep.yaml",
                                             .version = "0.1.0",
                                             .host = "node7",
                                             .yard_pid = 42,
                                             .started_unix_ms = 1'741'100'000'000});
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    journal_ = std::move(*journal);
    run();
  }

  void TearDown() override { journal_.reset(); }

  void commit(std::int64_t at, model::What what, model::Decision decision) {
    model::Turn turn;
    turn.events.push_back({.at = Instant{Duration{at}}, .what = std::move(what)});
    turn.decisions.push_back(std::move(decision));
    const Result<void> written = journal_->commit(turn);
    ASSERT_TRUE(written.has_value()) << written.error().message;
  }

  void start(std::int64_t at, std::uint32_t task) {
    const model::AttemptKey key{.task = {task}};
    commit(at, model::TimePassed{},
           {.changes = {model::GroupChanged{.group = {0}, .phase = model::GroupPhase::Running},
                        model::TaskChanged{.key = key, .status = Status::Available}},
            .commands = {model::StartAttempt{.key = key, .promise = {.memory = gb(1)}}}});
    commit(at, model::AttemptStarted{.key = key, .pid = 1000 + task},
           {.changes = {model::TaskChanged{.key = key, .status = Status::Training}}});
  }

  void run() {
    start(1000, 0);
    start(1000, 1);
    commit(5000,
           model::Sampled{.memory_available = gb(3),
                          .tasks = {{.key = {.task = {0}}, .memory = mb(300)},
                                    {.key = {.task = {1}}, .memory = mb(200)}}},
           {});
    commit(13'300,
           model::AttemptEnded{.key = {.task = {0}},
                               .end = model::ExitedWith{},
                               .usage = {.memory_peak = mb(310), .cpu_time = Duration{9000}},
                               .result = R"({"test_acc":0.964})"},
           {.changes = {model::TaskChanged{.key = {.task = {0}}, .status = Status::Finished},
                        model::TaskChanged{.key = {.task = {0}},
                                           .status = Status::Exited,
                                           .verdict = model::Verdict::Finished}}});
    commit(14'000, model::AttemptEnded{.key = {.task = {1}}, .end = model::ExitedWith{.code = 3}},
           {.changes = {model::TaskChanged{.key = {.task = {1}},
                                           .status = Status::Exception,
                                           .verdict = model::Verdict::Failed,
                                           .failure = model::Failure::Exit,
                                           .exit_code = 3,
                                           .message = "exited with code 3"}}});
    start(15'000, 2);
    commit(20'000,
           model::Sampled{.memory_available = gb(2),
                          .tasks = {{.key = {.task = {2}}, .memory = mb(120)}}},
           {.changes = {model::ReasonChanged{
                .shape = {1}, .reason = {.cause = model::Cause::Group, .groups = "'train'"}}}});
  }

  [[nodiscard]] std::string journal_path() const { return directory_ + "/journal.db"; }

  journal::JournalReader reader() {
    Result<journal::JournalReader> reader = journal::JournalReader::open(journal_path());
    EXPECT_TRUE(reader.has_value()) << reader.error().message;
    return std::move(*reader);
  }

  /// The output 30 s after the run began. `only` selects tasks; nothing: the run as a whole.
  std::string status_of(std::optional<std::set<model::TaskIndex>> only) {
    journal::JournalReader source = reader();
    std::string text;
    Sink sink = [&text](std::string_view part) { text += part; };
    const StatusRequest request{.run_directory = "runs/mnist",
                                .yard_lives = true,
                                .now_unix_ms = 1'741'100'030'000,
                                .only = std::move(only)};
    EXPECT_TRUE(write_status(source, request, {}, sink).has_value());
    return text;
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    std::ifstream in(directory_ + "/" + name, std::ios::binary);
    EXPECT_TRUE(in.is_open()) << name;
    return {std::istreambuf_iterator<char>(in), {}};
  }

  sys::TemporaryDirectory place_;
  const std::string& directory_ = place_.path();
  std::unique_ptr<journal::Journal> journal_;
};

TEST_F(ReportsOfARun, AreWrittenForEveryGroup) {
  journal::JournalReader source = reader();
  const Result<Overview> written = write_reports(source, directory_);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  const std::string page = file("reports/train.html");
  EXPECT_THAT(page, HasSubstr("<tr title=\"lr=0\">"));
  EXPECT_THAT(page, HasSubstr("96.4 %"));
  EXPECT_THAT(page, HasSubstr("exited with code 3"));
  const nlohmann::json json = nlohmann::json::parse(file("reports/train.json"));
  ASSERT_EQ(json.at("tasks").size(), 3U);
  EXPECT_EQ(json.at("tasks").at(0).at("duration_ms"), 12'300);
  EXPECT_EQ(json.at("tasks").at(1).at("word"), "EXIT 3");
  EXPECT_EQ(json.at("tasks").at(2).at("word"), "RUNNING");
  EXPECT_EQ(json.at("attempts").size(), 3U);
  EXPECT_EQ(nlohmann::json::parse(file("reports/eval.json")).at("tasks").size(), 1U);
  EXPECT_THAT(file("reports/eval.html"), HasSubstr("<h1>eval</h1>"));
  const std::string index = file("reports/index.html");
  EXPECT_THAT(index, HasSubstr("<a href=\"train.html\">train</a>"));
  EXPECT_THAT(index, HasSubstr("<td>test_acc 96.4 %</td>"));
  EXPECT_THAT(index, HasSubstr("<a href=\"eval.html\">eval</a>"));
  ASSERT_EQ(written->rows.size(), 2U);
  EXPECT_EQ(written->rows[0].numbers.at(0).most, 0.964);
  // And nothing more.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ + "/reports"),
                          std::filesystem::directory_iterator()),
            5);
}

TEST_F(ReportsOfARun, StayAsTheyWereWhenTheyCannotBeWritten) {
  std::ofstream(directory_ + "/reports") << "in the way";
  journal::JournalReader source = reader();
  EXPECT_FALSE(write_reports(source, directory_).has_value());
  EXPECT_EQ(file("reports"), "in the way");
}

TEST_F(ReportsOfARun, AreNotWrittenThroughALinkInThePlaceOfTheirDirectory) {
  std::filesystem::create_directory(directory_ + "/pages");
  std::ofstream(directory_ + "/pages/index.html") << "mine";
  std::filesystem::create_directory_symlink("pages", directory_ + "/reports");
  journal::JournalReader source = reader();
  const Result<Overview> written = write_reports(source, directory_);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().message,
            "'" + directory_ + "/reports' is a symbolic link, not a directory; remove it");
  EXPECT_EQ(file("pages/index.html"), "mine");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/pages/train.html"));
}

TEST_F(ReportsOfARun, ShowTheStatusOfALiveRun) {
  EXPECT_EQ(status_of(std::nullopt),
            "mnist: active for 30.0 s, process 42 on node7\n"
            "run-dir: runs/mnist\n"
            "memory: 120 MB used by tasks, 2 GB free now\n"
            "\n"
            "GROUP    STATE  TASKS  FINISHED  RUNNING  WAITING  FAILED\n"
            "train  RUNNING      3         1        1        0       1\n"
            "eval   WAITING      1         0        0        1       0\n"
            "\n"
            "TASK         STATUS  ATTEMPT    TIME  MEMORY  RESERVED\n"
            "train/lr=2  RUNNING        1  15.0 s  120 MB      1 GB\n"
            "\n"
            "waiting:\n"
            "  eval, 1 task: waits for group 'train'\n"
            "\n"
            "failed:\n"
            "  train/lr=1: EXIT 3 after 13.0 s: exited with code 3\n");
}

TEST_F(ReportsOfARun, NameNothingElseThatATaskWaitsForWhileTheDelayOfItsRetryRuns) {
  const auto retry = [this](std::int64_t at, std::int64_t retry_at, const std::string& message) {
    commit(at, model::AttemptEnded{.key = {.task = {2}}, .end = model::ExitedWith{.code = 3}},
           {.changes = {
                model::TaskChanged{.key = {.task = {2}},
                                   .status = Status::Interrupt,
                                   .failure = model::Failure::Exit,
                                   .exit_code = 3,
                                   .message = message,
                                   .retry_at = Instant{Duration{retry_at}}},
                model::ReasonChanged{.shape = {0}, .reason = {.cause = model::Cause::Queued}}}});
  };
  const std::string queued = "  train, 1 task: older tasks are considered first\n";
  retry(25'000, 30'000, "retry 1 of 2 in 5 s: exited with code 3");
  EXPECT_THAT(status_of(std::nullopt), HasSubstr(queued)) << "the delay is over";
  retry(25'000, 45'000, "retry 1 of 2 in 20 s: exited with code 3");
  EXPECT_THAT(status_of(std::nullopt),
              AllOf(HasSubstr("  eval, 1 task: waits for group 'train'\n"),
                    HasSubstr("  train/lr=2: retry 1 of 2 in 15 s: exited with code 3\n"),
                    Not(HasSubstr("train, 1 task"))));
  commit(26'000, model::TimePassed{},
         {.changes = {model::SaidOfTask{.task = {2}, .on_hold = true}}});
  EXPECT_THAT(status_of(std::nullopt),
              AllOf(HasSubstr("  train, 1 task: on hold until 'trainyard release'\n"),
                    Not(HasSubstr("retrying:"))));
  EXPECT_THAT(status_of(std::set{model::TaskIndex{2}}),
              HasSubstr("  retry 1 of 2: exited with code 3\n"));
}

TEST_F(ReportsOfARun, ShowNothingOfTasksThatAreNotSelectedButTheirNumber) {
  EXPECT_EQ(status_of(std::set{model::TaskIndex{1}}),
            "mnist: active for 30.0 s, process 42 on node7\n"
            "run-dir: runs/mnist\n"
            "\n"
            "train: 3 tasks, 1 finished, 1 failed, 1 running\n"
            "\n"
            "lr  STATUS           TIME  ATTEMPTS  PEAK MEMORY\n"
            " 1  FAILED EXIT 3  13.0 s         1       200 MB  exited with code 3\n"
            "\n"
            "and 2 more: 'trainyard status runs/mnist --all', or runs/mnist/reports/train.html\n");
}

TEST_F(ReportsOfARun, SayInTheRowOfASelectedTaskWhyItWaits) {
  EXPECT_EQ(status_of(std::set{model::TaskIndex{3}}),
            "mnist: active for 30.0 s, process 42 on node7\n"
            "run-dir: runs/mnist\n"
            "\n"
            "eval: 1 task, 1 waiting\n"
            "\n"
            "lr  STATUS   TIME  ATTEMPTS  PEAK MEMORY\n"
            " 3  WAITING     -         -            -  waits for group 'train'\n");
}

TEST_F(ReportsOfARun, NameTheBestOfTheSelectedTasksAsSuch) {
  using Tasks = std::set<model::TaskIndex>;
  EXPECT_THAT(status_of(Tasks{{0}, {1}}), HasSubstr("\nbest of these: lr=0 test_acc 96.4 %\n"));
  EXPECT_THAT(status_of(Tasks{{0}, {1}, {2}}), HasSubstr("\nbest: lr=0 test_acc 96.4 %\n"));
  EXPECT_THAT(status_of(Tasks{{0}}), Not(HasSubstr("best")));
}

TEST_F(ReportsOfARun, TellADeadRunFromALiveOneAndWhenItWasLastHeardOf) {
  start(20'700, 3);
  journal::JournalReader source = reader();
  const auto died = read_status(source, {.run_directory = "runs/mnist", .yard_lives = false});
  ASSERT_TRUE(died.has_value());
  EXPECT_EQ(died->state, RunState::Died);
  EXPECT_EQ(died->now, Instant{Duration{20'700}});
  ASSERT_TRUE(journal_->close(Instant{Duration{21'000}}, "interrupted").has_value());
  ASSERT_TRUE(source.refresh().has_value());
  const auto ended = read_status(source, {.run_directory = "runs/mnist", .yard_lives = false});
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->state, RunState::Ended);
  EXPECT_THAT(status_text(*ended), HasSubstr("mnist: interrupted after 21.0 s; "));
}

TEST_F(ReportsOfARun, ShowNoTaskOfAnEndedRunAsRunning) {
  // The journal could not be written before its last turn.
  start(20'700, 3);
  ASSERT_TRUE(journal_->close(Instant{Duration{21'000}}, "ended").has_value());
  journal::JournalReader source = reader();
  std::string text;
  Sink sink = [&text](std::string_view part) { text += part; };
  const StatusRequest request{.run_directory = "runs/mnist", .yard_lives = false};
  ASSERT_TRUE(write_status(source, request, {.all = true}, sink).has_value());
  EXPECT_THAT(text, ContainsRegex("\n +2  LOST "));
  EXPECT_THAT(text, Not(HasSubstr("1 running")));
  text.clear();
  ASSERT_TRUE(write_status_json(source, request, true, sink).has_value());
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("tasks").at(2).at("word"), "LOST");
  EXPECT_EQ(json.at("running"), nlohmann::json::array());
  EXPECT_EQ(json.at("lost").at(0).at("word"), "LOST");
  EXPECT_EQ(json.at("groups").at(0).at("running"), 0);
  EXPECT_EQ(json.at("groups").at(0).at("phase"), "DIED");
}

TEST_F(ReportsOfARun, GoByTheRunsOwnTimeWhenTheClockIsSetBack) {
  journal::JournalReader source = reader();
  const auto view = read_status(source, {.yard_lives = true, .now_unix_ms = 1'000});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->now, Instant{Duration{20'000}});
}

TEST_F(ReportsOfARun, ListEveryTaskOnlyWhenAsked) {
  journal::JournalReader source = reader();
  std::string text;
  Sink sink = [&text](std::string_view part) { text += part; };
  ASSERT_TRUE(write_status_json(source, {.yard_lives = true}, true, sink).has_value());
  EXPECT_EQ(nlohmann::json::parse(text).at("tasks").size(), 4U);
  text.clear();
  ASSERT_TRUE(write_status_json(source, {.yard_lives = true}, false, sink).has_value());
  EXPECT_FALSE(nlohmann::json::parse(text).contains("tasks"));
}

TEST_F(ReportsOfARun, EndWithATableOfTasks) {
  journal::JournalReader source = reader();
  for (const bool all : {false, true}) {
    std::string text;
    Sink sink = [&text](std::string_view part) { text += part; };
    ASSERT_TRUE(write_tables(source, {.all = all}, sink).has_value());
    EXPECT_EQ(text,
              "train: 3 tasks, 1 finished, 1 failed, 1 running\n"
              "\n"
              "lr  STATUS           TIME  ATTEMPTS  PEAK MEMORY  test_acc\n"
              " 0  FINISHED       12.3 s         1       310 MB    96.4 %\n"
              " 1  FAILED EXIT 3  13.0 s         1       200 MB  exited with code 3\n"
              " 2  RUNNING             -         1       120 MB         -\n"
              "\n"
              "best: lr=0 test_acc 96.4 %\n"
              "\n"
              "eval: 1 task, 1 waiting\n"
              "\n"
              "lr  STATUS   TIME  ATTEMPTS  PEAK MEMORY\n"
              " 3  WAITING     -         -            -\n")
        << all;
  }
}

}  // namespace
}  // namespace trainyard::report
