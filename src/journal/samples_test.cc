#include "journal/samples.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/schema.h"
#include "journal/test_run.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;

/// A journal's file, open for writing beside a reader of it.
struct TableOfSamples {
  TableOfSamples() {
    const TestJob job{numbered(1)};
    must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  }
  JournalDirectory directory;
};

std::vector<std::int64_t> times(const JournalDirectory& directory) {
  JournalReader reader = must(JournalReader::open(directory.journal()));
  std::vector<std::int64_t> times;
  for (const SampleRow& row : must(reader.samples())) {
    times.push_back(row.at.since_start.count());
  }
  return times;
}

TEST(SampleTable, KeepsEverySampleOfAShortRun) {
  const TableOfSamples table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  SampleTable samples = must(SampleTable::open(database));
  must(samples.add(at(0), {.memory_available = gb(8), .cpu_used_by_others = 0.5}));
  must(samples.add(at(1000), {.memory_available = gb(7),
                              .cpu_used_by_others = 0.25,
                              .tasks = {{key(0), mb(3)}, {key(1), mb(4)}}}));
  JournalReader reader = must(JournalReader::open(table.directory.journal()));
  const std::vector<SampleRow> rows = must(reader.samples());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].memory_available, gb(8));
  EXPECT_EQ(rows[0].memory_of_tasks, mb(0));
  EXPECT_EQ(rows[0].cpu_used_by_others, 0.5);
  EXPECT_EQ(rows[1].at, at(1000));
  EXPECT_EQ(rows[1].memory_available, gb(7));
  EXPECT_EQ(rows[1].memory_of_tasks, mb(7));
  EXPECT_EQ(last_sample(reader).at, at(1000));
}

TEST(SampleTable, StaysBoundedAndEndsWithTheLastSample) {
  const TableOfSamples table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  must(database.run("BEGIN"));
  constexpr int kSamples = 5 * kSampleRowsMax;
  SampleTable samples = must(SampleTable::open(database));
  Statement count = must(database.prepare("SELECT count(*), max(at_ms) FROM samples"));
  for (int i = 0; i < kSamples; ++i) {
    must(samples.add(at(std::int64_t{1000} * i), {}));
    samples.keep();
    if (i % 97 != 0 && i != kSamples - 1) continue;
    ASSERT_TRUE(must(count.next()));
    EXPECT_LE(count.integer(0), kSampleRowsMax);
    EXPECT_EQ(count.integer(1), 1000 * i);
    count.stop();
  }
  must(database.run("COMMIT"));

  const std::vector<std::int64_t> kept = times(table.directory);
  EXPECT_GE(kept.size(), static_cast<std::size_t>(kSampleRowsMax) / 2);
  EXPECT_EQ(kept.front(), 0);
  // Evenly thinned: five times as many as there is room for are kept at most eight apart.
  for (std::size_t i = 1; i < kept.size(); ++i) {
    EXPECT_GT(kept[i] - kept[i - 1], 0);
    EXPECT_LE(kept[i] - kept[i - 1], 8'000);
  }
}

TEST(SampleTable, StaysBoundedWhenTimeStandsStill) {
  const TableOfSamples table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  must(database.run("BEGIN"));
  SampleTable samples = must(SampleTable::open(database));
  for (int i = 0; i < 3 * kSampleRowsMax; ++i) must(samples.add(at(7), {}));
  must(database.run("COMMIT"));
  EXPECT_LE(times(table.directory).size(), static_cast<std::size_t>(kSampleRowsMax));
}

TEST(SampleTable, ReplacesTheLastRowWhileItIsTooClose) {
  const TableOfSamples table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  must(
      database.run("UPDATE run SET sample_gap_ms = 2000; INSERT INTO samples VALUES (1, 0, 0, 0, "
                   "0), (5, 2000, 0, 0, 0)"));
  SampleTable samples = must(SampleTable::open(database));
  must(samples.add(at(3000), {}));
  EXPECT_THAT(times(table.directory), ElementsAre(0, 2000, 3000));
  must(samples.add(at(4000), {}));
  EXPECT_THAT(times(table.directory), ElementsAre(0, 2000, 4000));
  must(samples.add(at(5000), {}));
  EXPECT_THAT(times(table.directory), ElementsAre(0, 2000, 4000, 5000));
}

TEST(SampleTable, ForgetsWhatWasRolledBack) {
  const TableOfSamples table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  SampleTable samples = must(SampleTable::open(database));
  must(samples.add(at(0), {}));
  samples.keep();
  must(database.run("BEGIN"));
  must(samples.add(at(1000), {}));
  must(database.run("ROLLBACK"));
  samples.drop();
  must(samples.add(at(2000), {}));
  samples.keep();
  must(samples.add(at(3000), {}));
  EXPECT_THAT(times(table.directory), ElementsAre(0, 2000, 3000));
}

using ::testing::Pair;

model::Progressed told(model::AttemptKey key, double fraction, std::string values = {}) {
  return {.key = key, .fraction = fraction, .values = std::move(values)};
}

/// A journal of two tasks in one group.
struct Table {
  Table() : job{numbered(2)} {
    must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  }

  std::vector<std::pair<std::int64_t, double>> rows(model::TaskIndex task) const {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    std::vector<std::pair<std::int64_t, double>> rows;
    must(reader.progress_of({0}, [&](const ProgressRow& row) {
      if (row.task == task)
        rows.emplace_back(row.at.since_start.count(), row.fraction.value_or(-1));
      return true;
    }));
    return rows;
  }

  JournalDirectory directory;
  TestJob job;
};

TEST(ProgressTable, KeepsWhatEachTaskSaid) {
  const Table table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  ProgressTable progress = must(ProgressTable::open(database));
  must(progress.add(at(1000), 0, told(key(0), 0.25, R"({"loss":1})")));
  must(progress.add(at(1000), 1, told(key(1), 0.5)));
  must(progress.add(at(2000), 0, told(key(0), 0.75, R"({"loss":0.5})")));
  EXPECT_THAT(table.rows({0}), ElementsAre(Pair(1000, 0.25), Pair(2000, 0.75)));
  EXPECT_THAT(table.rows({1}), ElementsAre(Pair(1000, 0.5)));
  JournalReader reader = must(JournalReader::open(table.directory.journal()));
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.progress, std::optional(0.75));
  EXPECT_EQ(row.progress_values, R"({"loss":0.5})");
}

TEST(ProgressTable, ShowsTheLastAttemptAlone) {
  const Table table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  ProgressTable progress = must(ProgressTable::open(database));
  must(progress.add(at(1000), 0, told(key(0, 1), 0.9)));
  must(progress.add(at(2000), 0, told(key(0, 2), 0.1)));
  EXPECT_THAT(table.rows({0}), ElementsAre(Pair(2000, 0.1)));
}

TEST(ProgressTable, StaysSmallWithItsFirstAndLastRowHoweverMuchIsSaid) {
  const Table table;
  Database database = must(Database::open(table.directory.journal(), Database::Access::Write));
  ProgressTable progress = must(ProgressTable::open(database));
  must(database.run("BEGIN"));
  for (int i = 0; i <= 5'000; ++i) {
    must(progress.add(at(std::int64_t{i} * 10), 0, told(key(0), i / 5000.0)));
    // As after a transaction that was given up: the table is read again.
    if (i % 700 == 0) progress.drop();
  }
  must(database.run("COMMIT"));
  const auto rows = table.rows({0});
  EXPECT_LT(rows.size(), std::size_t{kProgressRowsMax});
  EXPECT_GT(rows.size(), std::size_t{kProgressRowsMax} / 8);
  EXPECT_EQ(rows.front(), std::pair(std::int64_t{0}, 0.0));
  EXPECT_EQ(rows.back(), std::pair(std::int64_t{50'000}, 1.0));
}

}  // namespace

}  // namespace trainyard::journal
