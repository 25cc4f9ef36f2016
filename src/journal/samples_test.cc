// The table of samples stays small, however long the run.
#include "journal/samples.h"

#include <cstddef>
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

}  // namespace
}  // namespace trainyard::journal
