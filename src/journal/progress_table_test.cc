// The progress that tasks reported: kept, thinned, read again.
#include "journal/progress_table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"
#include "model/ids.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
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
