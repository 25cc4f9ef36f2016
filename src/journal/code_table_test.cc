// The codes of attempts in the journal: of those that run, have ended, and were tried again.
#include "journal/code_table.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;

const model::Code kOld{.root = "/w", .commit = "aaaaaaaaaa", .changes = ""};
const model::Code kNew{.root = "/w", .commit = "aaaaaaaaaa", .changes = "1234567890abcdef"};

model::Turn started_with(Instant when, model::AttemptKey key, const model::Code& code) {
  return turn_of({.at = when, .what = model::AttemptStarted{.key = key, .pid = 7, .code = code}},
                 {.changes = {model::TaskChanged{.key = key, .status = Status::Training}}});
}

model::Turn found(Instant when, std::optional<model::Code> code,
                  std::vector<model::AttemptKey> attempts) {
  return turn_of(
      {.at = when,
       .what = model::CodeFound{
           .code = std::move(code), .diff = "+lr = 2", .attempts = std::move(attempts)}});
}

model::Turn tried_again(Instant when, model::AttemptKey key) {
  return turn_of({.at = when, .what = model::AttemptEnded{.key = key, .end = model::ExitedWith{1}}},
                 {.changes = {model::TaskChanged{
                      .key = key, .status = Status::Interrupt, .failure = model::Failure::Exit}}});
}

/// A run of three tasks that began with the old code.
struct CodedRun {
  explicit CodedRun(std::optional<model::Code> code = kOld)
      : journal(must(Journal::create(directory.journal(), "sweep", job.batch(),
                                     {.git_commit = "aaaaaaaaaa", .code = std::move(code)}))) {}

  [[nodiscard]] std::vector<std::string> codes() const {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    std::vector<std::string> codes;
    for (const TaskRow& row : all_tasks(reader)) {
      codes.push_back(row.newer_code.empty() ? row.code
                                             : fmt::format("{}, not {}", row.code, row.newer_code));
    }
    return codes;
  }
  [[nodiscard]] std::vector<std::string> codes_of_attempts(std::uint32_t task) const {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    std::vector<std::string> codes;
    for (const AttemptRow& row : must(reader.attempts({task}))) codes.push_back(row.code);
    return codes;
  }

  [[nodiscard]] bool has_several() const {
    return must(must(JournalReader::open(directory.journal())).has_several_codes());
  }

  JournalDirectory directory;
  TestJob job{numbered(3)};
  std::unique_ptr<Journal> journal;
};

TEST(CodeTable, KeepsWhatEachAttemptRanWhateverHasBecomeOfItSince) {
  const CodedRun run;
  must(run.journal->commit(granted(at(1), {key(0), key(1), key(2)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + started_with(at(1), key(1), kOld) +
                           started_with(at(1), key(2), kOld)));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa", "aaaaaaa", "aaaaaaa"));
  EXPECT_FALSE(run.has_several());
  // The first has ended, the second is retried, the third runs.
  must(run.journal->commit(finished(at(2), key(0), "{}") + tried_again(at(2), key(1))));
  must(run.journal->commit(granted(at(3), {key(1, 2)})));
  must(run.journal->commit(started_with(at(3), key(1, 2), kOld)));
  must(run.journal->commit(found(at(4), kNew, {key(0), key(1), key(2)})));
  EXPECT_THAT(run.codes(),
              ElementsAre("aaaaaaa+123456, not aaaaaaa", "aaaaaaa", "aaaaaaa+123456, not aaaaaaa"));
  EXPECT_TRUE(run.has_several());
  EXPECT_THAT(run.codes_of_attempts(0), ElementsAre("aaaaaaa+123456"));
  EXPECT_THAT(run.codes_of_attempts(1), ElementsAre("aaaaaaa+123456", "aaaaaaa"));
  must(run.journal->commit(found(at(5), std::nullopt, {key(0), key(1, 2)})));
  EXPECT_THAT(run.codes(), ElementsAre("", "", "aaaaaaa+123456"));
}

TEST(CodeTable, FindsNoNewerCodeForATaskThatIsNotNeededAnyMore) {
  const CodedRun run;
  must(run.journal->commit(granted(at(1), {key(0), key(1)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + finished(at(2), key(0), "{}") +
                           started_with(at(3), key(1), kOld)));
  must(run.journal->commit(found(at(3), kNew, {key(1)})));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa, not aaaaaaa+123456", "aaaaaaa+123456", ""));
  must(run.journal->commit(turn_of(
      {.at = at(4), .what = model::RetryAsked{.task = {0}}},
      {.changes = {
           model::TaskChanged{.key = key(0)},
           model::TaskChanged{
               .key = key(0), .status = Status::Exited, .verdict = model::Verdict::NotNeeded}}})));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa", "aaaaaaa+123456", ""));
}

TEST(CodeTable, KeepsItAlsoWhereTheEndIsToldInTheSameTurn) {
  const CodedRun run;
  must(run.journal->commit(granted(at(1), {key(0)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + finished(at(2), key(0), "{}") +
                           found(at(2), kNew, {key(0)})));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa+123456", "", ""));
}

TEST(CodeTable, ARunThatGoesOnKnowsWhatRanBefore) {
  CodedRun run;
  must(run.journal->commit(granted(at(1), {key(0), key(1)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + started_with(at(1), key(1), kOld) +
                           finished(at(2), key(0), "{}")));
  run.journal.reset();
  Journal::Resumed resumed =
      must(Journal::resume(run.directory.journal(), {run.job.batch()}, {.code = kNew}));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa", "", ""));
  EXPECT_THAT(run.codes_of_attempts(1), ElementsAre("aaaaaaa"));
  must(resumed.journal->commit(granted(at(9), {key(1, 2)})));
  must(resumed.journal->commit(started_with(at(9), key(1, 2), kNew)));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa, not aaaaaaa+123456", "aaaaaaa+123456", ""));
  EXPECT_THAT(run.codes_of_attempts(1), ElementsAre("aaaaaaa", "aaaaaaa+123456"));
}

TEST(CodeTable, CountsTheFinishedTasksOfEachCode) {
  const CodedRun run;
  must(run.journal->commit(granted(at(1), {key(0), key(1), key(2)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + started_with(at(1), key(1), kOld) +
                           started_with(at(1), key(2), kOld)));
  must(run.journal->commit(found(at(1), kNew, {key(1), key(2)})));
  const auto counted = [&run] {
    JournalReader reader = must(JournalReader::open(run.directory.journal()));
    std::vector<std::pair<model::Code, int>> codes;
    for (const auto& each : must(reader.finished_codes()))
      codes.emplace_back(each.code, each.tasks);
    return codes;
  };
  EXPECT_THAT(counted(), ElementsAre());
  must(run.journal->commit(finished(at(2), key(0), "{}") + finished(at(2), key(1), "{}") +
                           tried_again(at(2), key(2))));
  EXPECT_THAT(counted(), ElementsAre(std::pair(kOld, 1), std::pair(kNew, 1)));
  must(run.journal->commit(granted(at(3), {key(2, 2)})));
  must(
      run.journal->commit(started_with(at(3), key(2, 2), kNew) + finished(at(4), key(2, 2), "{}")));
  EXPECT_THAT(counted(), ElementsAre(std::pair(kNew, 2), std::pair(kOld, 1)));
}

TEST(CodeTable, OtherWorkTreesHaveCodeOfTheirOwn) {
  const CodedRun run;
  const model::Code elsewhere{.root = "/x", .commit = "bbbbbbbbbb", .changes = ""};
  must(run.journal->commit(granted(at(1), {key(0), key(1)})));
  must(run.journal->commit(started_with(at(1), key(0), kOld) + started_with(at(2), key(1), kOld) +
                           found(at(3), elsewhere, {key(1)})));
  EXPECT_THAT(run.codes(), ElementsAre("aaaaaaa", "bbbbbbb", ""));
}

TEST(CodeTable, WhatATurnPutThatWasGivenUpIsPutAgain) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  Database database = must(Database::open(directory.journal(), Database::Access::Write));
  CodeTable table = must(CodeTable::open(database));
  must(database.run("BEGIN"));
  EXPECT_EQ(must(table.put(at(1), kOld, "x")), 1U);
  database.roll_back();
  table.drop();
  EXPECT_EQ(table.number_of(kOld), 0U);
  EXPECT_EQ(must(table.put(at(2), kNew, "y")), 1U);
  table.keep();
  EXPECT_EQ(must(table.put(at(3), kOld, "x")), 2U);
  EXPECT_EQ(must(table.put(at(4), kNew, "other words for the same")), 1U);
  EXPECT_EQ(must(database.text("SELECT group_concat(git_diff) FROM codes")), "y,x");
}

TEST(CodeTable, KeepsSoManyCodesAndSoMuchOfTheirDiffs) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  Database database = must(Database::open(directory.journal(), Database::Access::Write));
  must(database.run("BEGIN"));
  const std::string large(CodeTable::kDiffMax + 1, 'x');
  const auto code = [](std::size_t i) {
    return model::Code{.root = "/w", .commit = "a", .changes = fmt::format("{}", i)};
  };
  for (std::size_t i = 1; i <= CodeTable::kCodesMax; ++i) {
    // Codes that another yard has kept count as well.
    CodeTable table = must(CodeTable::open(database));
    const std::size_t last = std::min(i + 99, CodeTable::kCodesMax);
    for (; i < last; ++i) EXPECT_EQ(must(table.put(at(1), code(i), large)), i);
    EXPECT_EQ(must(table.put(at(1), code(i), large)), i);
  }
  CodeTable table = must(CodeTable::open(database));
  EXPECT_EQ(must(table.put(at(2), code(CodeTable::kCodesMax + 1), "x")), 0U);
  EXPECT_EQ(must(table.put(at(2), code(1), "x")), 1U);
  EXPECT_EQ(must(database.number("SELECT max(length(git_diff)) FROM codes")),
            static_cast<std::int64_t>(CodeTable::kDiffMax));
  EXPECT_EQ(must(database.number("SELECT sum(length(git_diff)) FROM codes")),
            static_cast<std::int64_t>(CodeTable::kDiffsMax));
  database.roll_back();
}

}  // namespace
}  // namespace trainyard::journal
