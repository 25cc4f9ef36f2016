// All groups of a yard are one run, and the same program in the same directory goes on with it.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "library/test_yard.h"
#include "model/plan.h"
#include "model/status.h"
#include "report/status.h"
#include "report/status_text.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/test_wait.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Says how often it was trained, over all executions, by a file beside the run.
struct Counting : Task {
  Counting(std::string its_place, TaskOptions options, bool fails_first)
      : Task(std::move(options)), place(std::move(its_place)), fails(fails_first) {}
  Json train(const Device&) override {
    const std::string path = fmt::format("{}/count.{}", place, id());
    const std::string before = sys::read_file(path, 1_MB).value_or("");
    std::ofstream(path) << before << "x";
    if (fails && before.empty()) throw std::runtime_error("not yet");
    return {{"count", before.size() + 1}};
  }
  std::string place;
  bool fails;
};

class ProgramTest : public YardTest {
 public:
  Counting& add(TaskGroup& group, const std::string& id, bool fails = false,
                const std::string& fingerprint = {}) {
    return group.add<Counting>(
        beside.path(),
        TaskOptions{.id = id, .memory = 20_MB, .cpus = 0, .fingerprint = fingerprint}, fails);
  }
  /// "group/id WORD", in order.
  std::vector<std::string> rows() {
    std::vector<std::string> rows;
    auto reader = journal::JournalReader::open(run::journal_path(place));
    EXPECT_TRUE(reader);
    EXPECT_TRUE(reader->tasks({}, [&rows](const journal::TaskRow& row) {
      rows.push_back(
          fmt::format("{}/{} {}", row.group_name, row.id, model::word_for(row.standing)));
      return true;
    }));
    return rows;
  }

  sys::TemporaryDirectory beside;
};

TEST_F(ProgramTest, IsOneRunOfAllGroupsWithOneJournalAndOnePage) {
  Yard yard(config(), options());
  for (const std::string name : {"first", "second", "third"}) {
    TaskGroup group(name);
    add(group, "a");
    ASSERT_EQ(yard.run(group).value().finished, 1);
    EXPECT_EQ(group.tasks()[0].task_dir(), place + "/" + name + "/a");
    EXPECT_TRUE(sys::RunLock::holder(place)) << "also between two groups";
  }
  EXPECT_THAT(rows(), ElementsAre("first/a FINISHED", "second/a FINISHED", "third/a FINISHED"));
  auto reader = journal::JournalReader::open(run::journal_path(place)).value();
  const auto executions = reader.executions().value();
  ASSERT_EQ(executions.size(), 3U);
  const auto status = report::read_status(reader, {.run_directory = place, .yard_lives = true});
  EXPECT_EQ(status.value().state, report::RunState::Idle);
  for (const auto& execution : executions) EXPECT_EQ(execution.how, "ended");
  for (const char* const page : {"index", "first", "second", "third"}) {
    EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/reports/{}.html", place, page))) << page;
  }
  const std::string index = sys::read_file(place + "/reports/index.html", 1_MB).value();
  for (const char* const link : {"first.html", "second.html", "third.html"}) {
    EXPECT_THAT(index, HasSubstr(link));
  }
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(ProgramTest, RunsTheNewTasksOfAGroupThatGrew) {
  Yard yard(config(), options());
  TaskGroup group("g");
  const auto& a = add(group, "a");
  ASSERT_EQ(yard.run(group).value().finished, 1);
  const auto& b = add(group, "b");
  EXPECT_FALSE(group.finished());
  EXPECT_EQ(yard.run(group).value().finished, 1);
  EXPECT_TRUE(group.finished());
  EXPECT_EQ(a.result(), (Json{{"count", 1}}));
  EXPECT_EQ(b.result(), (Json{{"count", 1}}));
  EXPECT_EQ(b.task_dir(), place + "/g/b");
  EXPECT_EQ(yard.run(group).value().finished, 0) << "there is nothing new";
  EXPECT_THAT(rows(), ElementsAre("g/a FINISHED", "g (2)/b FINISHED"));
  add(group, "b");
  EXPECT_EQ(yard.run(group).error().message, "group 'g': duplicate id 'b'");
}

TEST_F(ProgramTest, KeepsWhatHadFinishedWhenItIsRunAgain) {
  for (int execution = 1; execution <= 2; ++execution) {
    Yard yard(config(), options());
    TaskGroup data("data");
    const auto& prepared = add(data, "p");
    TaskGroup train("train");
    const auto& a = add(train, "a");
    const auto& b = add(train, "b", /*fails=*/true);
    const RunSummary first = yard.run(data).value();
    const RunSummary second = yard.run(train).value();
    const bool again = execution == 2;
    EXPECT_EQ(first.kept, again ? 1 : 0);
    EXPECT_EQ(second.kept, again ? 1 : 0);
    EXPECT_EQ(second.finished, again ? 2 : 1);
    EXPECT_EQ(prepared.is_kept(), again);
    EXPECT_EQ(prepared.status(), Status::Exited);
    EXPECT_EQ(prepared.outcome(), TaskOutcome::Finished);
    EXPECT_EQ(prepared.result(), (Json{{"count", 1}}));
    EXPECT_EQ(prepared.task_dir(), place + "/data/p");
    EXPECT_EQ(a.result(), (Json{{"count", 1}}));
    EXPECT_EQ(b.outcome(), again ? TaskOutcome::Finished : TaskOutcome::Exception);
    EXPECT_FALSE(b.is_kept());
  }
  EXPECT_THAT(rows(), ElementsAre("data/p FINISHED", "train/a FINISHED", "train/b FINISHED"));
  EXPECT_THAT(notes, ElementsAre("group 'data': keeps the results of 1 of 1 tasks",
                                 "group 'train': keeps the results of 1 of 2 tasks"));
}

TEST_F(ProgramTest, TakesTheFingerprintOfItsGroupWhereATaskHasNone) {
  for (const char* const version : {"v1", "v2"}) {
    Yard yard(config(), options());
    TaskGroup group("g", {.fingerprint = version});
    const auto& own = add(group, "own", false, "always");
    const auto& other = add(group, "other");
    ASSERT_EQ(yard.run(group).value().finished, 2);
    EXPECT_EQ(own.result(), (Json{{"count", 1}}));
    EXPECT_EQ(other.result(), (Json{{"count", version == std::string("v1") ? 1 : 2}}));
  }
}

TEST_F(ProgramTest, RunsATaskAgainOfWhichTheFingerprintIsAnother) {
  for (const char* const version : {"v1", "v2"}) {
    Yard yard(config(), options());
    TaskGroup group("g");
    const auto& same = add(group, "same", false, "always");
    const auto& other = add(group, "other", false, version);
    ASSERT_EQ(yard.run(group).value().finished, 2);
    EXPECT_EQ(same.result(), (Json{{"count", 1}}));
    if (version == std::string("v2")) {
      EXPECT_THAT(
          notes,
          ElementsAre(
              "group 'g': keeps the results of 1 of 2 tasks, reruns 1 with another fingerprint"));
    }
    EXPECT_EQ(other.result(), (Json{{"count", version == std::string("v1") ? 1 : 2}}));
  }
}

TEST_F(ProgramTest, KeepsATaskThatWasLeftOutOnceAndComesBack) {
  for (const bool all : {true, false, true}) {
    Yard yard(config(), options());
    TaskGroup group("g");
    add(group, "a");
    if (all) add(group, "b");
    const RunSummary done = yard.run(group).value();
    EXPECT_EQ(done.finished, all ? 2 : 1);
    EXPECT_TRUE(group.finished());
    for (const Task& task : group.tasks()) EXPECT_EQ(task.result(), (Json{{"count", 1}}));
  }
  EXPECT_THAT(rows(), ElementsAre("g/a FINISHED", "g/b FINISHED"));
}

TEST_F(ProgramTest, KnowsTasksAgainInWhicheverPartOfTheirGroupTheyWere) {
  {
    Yard yard(config(), options());
    TaskGroup group("g");
    add(group, "a");
    ASSERT_EQ(yard.run(group).value().finished, 1);
    add(group, "b");
    ASSERT_EQ(yard.run(group).value().finished, 1);
  }
  Yard yard(config(), options());
  TaskGroup group("g");
  for (const char* const id : {"c", "b", "a"}) add(group, id);
  const RunSummary done = yard.run(group).value();
  EXPECT_EQ(done.finished, 3);
  EXPECT_EQ(done.kept, 2);
  for (const Task& task : group.tasks())
    EXPECT_EQ(task.result(), (Json{{"count", 1}})) << task.id();
  EXPECT_THAT(rows(), ElementsAre("g/c FINISHED", "g/a FINISHED", "g (2)/b FINISHED"));
}

/// Runs `program` in a process of its own and kills it when `path` is there.
void kill_program(const std::function<void()>& program, const std::string& path) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    program();
    std::_Exit(1);
  }
  ASSERT_TRUE(sys::eventually([&] { return std::filesystem::exists(path); }));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(ProgramTest, GoesOnAfterItWasKilledAtWork) {
  const std::string there = beside / "there";
  kill_program(
      [&] {
        Yard yard(config(), options());
        TaskGroup data("data");
        add(data, "p");
        if (!yard.run(data)) std::_Exit(2);
        TaskGroup train("train");
        train.add<Made>("endless", [&there](Made&, const Device&) -> Json {
          std::ofstream(there) << ::getpid();
          while (true) static_cast<void>(::pause());
        });
        static_cast<void>(yard.run(train));
      },
      there);
  Yard yard(config(), options());
  TaskGroup more("more");
  add(more, "m");
  ASSERT_EQ(yard.run(more).value().finished, 1) << "another one first";
  EXPECT_THAT(rows(), ElementsAre("data/p FINISHED", "train/endless STOPPED", "more/m FINISHED"));
  TaskGroup data("data");
  EXPECT_EQ(add(data, "p").is_kept(), false);
  EXPECT_EQ(yard.run(data).value().kept, 1);
  TaskGroup train("train");
  train.add<Made>("endless", [](Made&, const Device&) { return Json{{"attempt", true}}; });
  EXPECT_EQ(yard.run(train).value().finished, 1);
  EXPECT_THAT(rows(), ElementsAre("data/p FINISHED", "train/endless FINISHED", "more/m FINISHED"));
  auto reader = journal::JournalReader::open(run::journal_path(place)).value();
  const auto row = reader.find("train", "endless").value();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->attempt, 2U) << "the first ended with its yard";
  EXPECT_EQ(reader.groups().value()[1].finished, 1);
  EXPECT_EQ(reader.groups().value()[1].waiting, 0);
}

TEST_F(ProgramTest, IsNotRunByAProcessThatTheProgramHasForked) {
  Yard yard(config(), options());
  TaskGroup first("first");
  add(first, "a");
  ASSERT_TRUE(yard.run(first));
  const std::string told = beside / "told";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    TaskGroup second("second");
    add(second, "b");
    std::ofstream(told) << yard.run(second).error().message;
    std::_Exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(sys::read_file(told, mib(1)).value(),
            fmt::format("the run in '{}' is that of process {}, from which this one was forked: "
                        "here it needs another Yard, with another directory",
                        place, ::getpid()));
  TaskGroup third("third");
  add(third, "c");
  EXPECT_EQ(yard.run(third).value().finished, 1) << "the program itself goes on";
  EXPECT_THAT(rows(), ElementsAre("first/a FINISHED", "third/c FINISHED"));
}

TEST_F(ProgramTest, RefusesADirectoryInWhichAnotherIsAtWorkOrAJobFileWasRun) {
  TaskGroup group("g");
  add(group, "a");
  {
    Yard yard(config(), options());
    ASSERT_TRUE(yard.run(group));
    TaskGroup second("second");
    add(second, "a");
    Yard other(config(), options());
    EXPECT_THAT(other.run(second).error().message, HasSubstr(fmt::format("{}", ::getpid())));
  }
  const sys::TemporaryDirectory of_job;
  auto plan = std::make_shared<model::Plan>();
  ASSERT_TRUE(journal::Journal::create(run::journal_path(of_job.path()), "sweep",
                                       {.plan = std::move(plan)},
                                       {.job_file = "/home/me/sweep.yaml"}));
  Yard yard(config(), {.name = "test", .directory = of_job.path()});
  TaskGroup third("third");
  add(third, "a");
  EXPECT_EQ(yard.run(third).error().message,
            "'" + of_job.path() + "' contains the run of a job file, '/home/me/sweep.yaml'");
}

TEST_F(ProgramTest, LetsNoTaskHaveItsJournalSocketOrLock) {
  Yard yard(config(), options());
  for (const std::string name : {"first", "second"}) {
    TaskGroup group(name);
    auto& task = group.add<Made>("a", [](Made&, const Device&) {
      Json files = Json::array();
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        files.push_back(std::filesystem::read_symlink(entry.path(), gone).string());
      }
      return Json{{"files", files}};
    });
    ASSERT_EQ(yard.run(group).value().finished, 1);
    const std::string files = task.result().at("files").dump();
    EXPECT_THAT(files, HasSubstr("stdout.log"));
    EXPECT_THAT(files, Not(HasSubstr("journal.db")));
    EXPECT_THAT(files, Not(HasSubstr(place + "/lock")));
  }
}

TEST_F(ProgramTest, PutsTasksWhereTheSettingsSay) {
  Config flat = config();
  ASSERT_TRUE(flat.set("task.directory-grouping", "false"));
  ASSERT_TRUE(flat.set("workdir", beside.path()));
  Yard yard(flat, {.name = "flat"});
  TaskGroup group("g");
  const auto& a = add(group, "a");
  ASSERT_TRUE(yard.run(group));
  EXPECT_EQ(yard.directory(), beside / "runs/flat");
  EXPECT_EQ(a.task_dir(), beside / "runs/flat/a");
  TaskGroup second("second");
  add(second, "a");
  EXPECT_EQ(
      yard.run(second).error().message,
      "group 'second': the id 'a' is also in group 'g', and task.directory-grouping is false");
}

TEST_F(ProgramTest, KeepsWhatItHasLearnedForTheNextTime) {
  Config learning = config();
  ASSERT_TRUE(learning.set("scheduler.auto-adjust", "true"));
  ASSERT_TRUE(learning.set("period.trained-least", "0s"));
  Yard yard(learning, {.name = "taught", .directory = beside / "taught"});
  TaskGroup group("g");
  group.add<Made>("a", [](Made&, const Device&) { return Json::object(); });
  ASSERT_EQ(yard.run(group).value().finished, 1);
  EXPECT_TRUE(std::filesystem::exists(beside / ".trainyard/taught.learned.json"));
}

TEST_F(ProgramTest, ReservesNoLessForWhatTasksOfAnotherClassUsed) {
  struct First : Task {
    explicit First(std::function<bool()> work)
        : Task({.id = "a", .cpus = 0}), work_(std::move(work)) {}
    Json train(const Device&) override { return {{"done", work_()}}; }

   private:
    std::function<bool()> work_;
  };
  struct Second : First {
    using First::First;
  };
  Config learning = config();
  ASSERT_TRUE(learning.set("scheduler.auto-adjust", "true"));
  ASSERT_TRUE(learning.set("period.trained-least", "0s"));
  ASSERT_TRUE(learning.set("scheduler.interval", "0"));
  ASSERT_TRUE(learning.set("scheduler.default-memory", "500MB"));
  const auto notes_of = [&](const std::string& run, bool of_second_class) {
    auto its = options();
    its.name = "taught";
    its.directory = beside / run;
    Yard yard(learning, its);
    TaskGroup group("g");
    const auto work = [&its] {
      // A task that ends before its memory was sampled adds nothing to the learned estimates.
      return sys::eventually([&its] {
        auto reader = journal::JournalReader::open(run::journal_path(its.directory));
        if (!reader) return false;
        const auto row = reader->find("g", "a");
        return row && *row && (*row)->memory_peak > 0_MB;
      });
    };
    if (of_second_class) {
      group.add<Second>(work);
    } else {
      group.add<First>(work);
    }
    EXPECT_EQ(yard.run(group).value().finished, 1);
    return fmt::format("{}", fmt::join(std::exchange(notes, {}), "\n"));
  };
  const auto are_learned =
      AllOf(ContainsRegex("memory .* as learned from"), Not(HasSubstr("another class")));
  EXPECT_THAT(notes_of("one", false), Not(HasSubstr("as learned from")));
  EXPECT_THAT(notes_of("two", false), are_learned);
  EXPECT_THAT(notes_of("three", true), HasSubstr(", but with another class: reserving 500 MB"));
  EXPECT_THAT(notes_of("four", true), are_learned);
}

}  // namespace
}  // namespace trainyard::library
