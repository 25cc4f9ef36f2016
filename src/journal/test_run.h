// Runs for the tests of the journal: small plans, turns about them, and a directory that goes away.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "sys/test_directory.h"

namespace trainyard::journal {

/// A run-directory for a test, in memory where that can be had: these tests make hundreds of
/// journals.
class JournalDirectory {
 public:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path(); }
  [[nodiscard]] std::string journal() const { return directory_ / "journal.db"; }

 private:
  sys::TemporaryDirectory directory_{sys::TemporaryDirectory::in_memory()};
};

/// Runs `work` in a child and waits for its end. Returns its exit code, or minus its signal.
template <class Work>
int in_child(Work work) {
  const auto child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// One group of a job file, as a test writes it down.
struct TestGroup {
  std::string name = "train";
  std::vector<std::string> ids;
  Bytes memory = mb(500);
  int parallel_max = 0;
  bool fail_fast = false;
  std::uint64_t fingerprint = 1;
};

/// A job file: its plan and its names. Must outlive the calls that get batch().
class TestJob {
 public:
  TestJob(std::initializer_list<TestGroup> groups) {
    for (const TestGroup& group : groups) {
      const auto i = static_cast<std::uint32_t>(plan.groups.size());
      plan.groups.push_back({.name = group.name,
                             .directory = group.name,
                             .needs = i == 0 ? std::vector<model::GroupIndex>{}
                                             : std::vector<model::GroupIndex>{{i - 1}},
                             .parallel_max = group.parallel_max,
                             .fail_fast = group.fail_fast});
      plan.shapes.push_back(
          {.group = {i}, .terms = {.request = {.memory = group.memory, .cpus = model::cpus(1)}}});
      for (const std::string& id : group.ids) {
        plan.tasks.push_back({.shape = {i}});
        ids.push_back(id);
        fingerprints.push_back(group.fingerprint);
      }
    }
  }

  /// `called`: what people call its first group.
  [[nodiscard]] Batch batch(std::uint32_t number = 1, std::string called = {}) const {
    auto its = std::make_shared<model::Plan>(plan);
    its->groups.front().called = std::move(called);
    return {.number = number,
            .plan = std::move(its),
            .names = {.task_id = [this](model::TaskIndex task) { return ids.at(task.value); },
                      .matrix_values =
                          [this](model::TaskIndex task) {
                            return std::vector<std::pair<std::string, std::string>>{
                                {"id", ids.at(task.value)}, {"lr", "1e-3"}};
                          },
                      .fingerprint =
                          [this](model::TaskIndex task) { return fingerprints.at(task.value); }},
            .source = {}};
  }

  model::Plan plan;
  std::vector<std::string> ids;
  std::vector<std::uint64_t> fingerprints;
};

/// A group with tasks "0", "1", ...
inline TestGroup numbered(int count) {
  TestGroup group;
  for (int i = 0; i < count; ++i) group.ids.push_back(fmt::format("{}", i));
  return group;
}

/// The value of a Result, or the end of the test program with the error's words.
template <class Value>
Value must(Result<Value> result) {
  if (!result) ADD_FAILURE() << result.error().message;
  check(result.has_value(), "a Result without an error in a test");
  return std::move(*result);
}
inline void must(Result<void> result) { EXPECT_TRUE(result.has_value()) << result.error().message; }

inline Instant at(std::int64_t milliseconds) { return {Duration(milliseconds)}; }
inline model::AttemptKey key(std::uint32_t task, std::uint32_t attempt = 1) {
  return {.task = {task}, .attempt = attempt};
}

inline model::Turn turn_of(model::Event event, model::Decision decision = {}) {
  return {.events = {std::move(event)}, .decisions = {std::move(decision)}};
}
inline model::Turn operator+(model::Turn a, const model::Turn& b) {
  a.events.insert(a.events.end(), b.events.begin(), b.events.end());
  a.decisions.insert(a.decisions.end(), b.decisions.begin(), b.decisions.end());
  return a;
}

/// A look at the machine at which these tasks are granted their start.
inline model::Turn granted(Instant when, const std::vector<model::AttemptKey>& keys) {
  model::Decision decision;
  for (const model::AttemptKey& key : keys) {
    decision.changes.emplace_back(model::TaskChanged{.key = key, .status = Status::Available});
    decision.commands.emplace_back(
        model::StartAttempt{.key = key, .promise = {.memory = mb(600), .cpus = model::cpus(1)}});
  }
  return turn_of({.at = when, .what = model::Sampled{.memory_available = gb(8)}},
                 std::move(decision));
}

inline model::Turn started(Instant when, model::AttemptKey key, std::int64_t pid) {
  return turn_of({.at = when, .what = model::AttemptStarted{.key = key, .pid = pid}},
                 {.changes = {model::TaskChanged{.key = key, .status = Status::Training}}});
}

inline model::Turn finished(Instant when, model::AttemptKey key, std::string result) {
  return turn_of(
      {.at = when,
       .what = model::AttemptEnded{.key = key,
                                   .end = model::ExitedWith{0},
                                   .usage = {.memory_peak = mb(300), .cpu_time = Duration(900)},
                                   .result = std::move(result)}},
      {.changes = {
           model::TaskChanged{.key = key, .status = Status::Finished},
           model::TaskChanged{
               .key = key, .status = Status::Exited, .verdict = model::Verdict::Finished}}});
}

inline model::Turn failed(Instant when, model::AttemptKey key, int code) {
  return turn_of({.at = when,
                  .what = model::AttemptEnded{.key = key,
                                              .end = model::ExitedWith{code},
                                              .usage = {.memory_peak = mb(200)}}},
                 {.changes = {model::TaskChanged{.key = key,
                                                 .status = Status::Exception,
                                                 .verdict = model::Verdict::Failed,
                                                 .failure = model::Failure::Exit,
                                                 .exit_code = code,
                                                 .message = fmt::format("exit code {}", code)}}});
}

inline std::vector<TaskRow> all_tasks(JournalReader& reader,
                                      const JournalReader::TaskFilter& filter = {}) {
  std::vector<TaskRow> rows;
  must(reader.tasks(filter, [&rows](TaskRow row) {
    rows.push_back(std::move(row));
    return true;
  }));
  return rows;
}

/// The last sample, or one of nothing.
inline SampleRow last_sample(JournalReader& reader) {
  return must(reader.last_sample()).value_or(SampleRow{});
}

/// Ids and words of tasks, as "a FINISHED".
inline std::vector<std::string> words(const std::vector<TaskRow>& rows) {
  std::vector<std::string> words;
  words.reserve(rows.size());
  for (const TaskRow& row : rows) words.push_back(row.id + " " + model::word_for(row.standing));
  return words;
}

}  // namespace trainyard::journal
