#include "journal/recording.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class Recorded : public ::testing::Test {
 protected:
  std::vector<std::pair<std::string, std::string>> rows(
      std::optional<std::int64_t> execution = std::nullopt) {
    RecordingReader reader = must(RecordingReader::open(directory_.journal(), execution));
    std::vector<std::pair<std::string, std::string>> all;
    while (std::optional<RecordingReader::Row> row = must(reader.next())) {
      all.emplace_back(row->event, row->decision);
    }
    return all;
  }
  std::string fault(std::optional<std::int64_t> execution = std::nullopt) {
    const Result<RecordingReader> reader = RecordingReader::open(directory_.journal(), execution);
    return reader ? "none" : reader.error().message;
  }

  JournalDirectory directory_;
  TestJob job_{numbered(2)};
  std::unique_ptr<Journal> journal_ =
      must(Journal::create(directory_.journal(), "sweep", job_.batch(), {}));
};

const std::string kWayTo =
    "was not recorded; start a run with --set journal.record=full, or 'journal: {record: full}' in "
    "trainyard.yaml";

TEST_F(Recorded, RunsKeepAllThatTheirSchedulerHeardAndWhatItDecided) {
  must(journal_->record({.memory_remain = mb(5)}));
  model::Turn turn = turn_of({.at = at(3), .what = model::Sampled{.memory_available = {9}}});
  turn.events.push_back({.at = at(4), .what = model::TimePassed{}});
  turn.decisions.push_back(
      {.changes = {}, .commands = {model::Answer{.request = 2, .done = true}}});
  must(journal_->commit(turn));
  must(journal_->commit(turn_of({.at = at(5), .what = model::TimePassed{}})));
  EXPECT_THAT(rows(), ElementsAre(Pair(R"({"at":3,"sampled":{"memory_available":9}})", "{}"),
                                  Pair(R"({"at":4,"time_passed":{}})",
                                       R"({"commands":[{"answer":{"request":2,"done":true}}]})"),
                                  Pair(R"({"at":5,"time_passed":{}})", "{}")));
  const RecordingReader reader = must(RecordingReader::open(directory_.journal(), std::nullopt));
  EXPECT_EQ(reader.policy(), R"({"memory_remain":5000000})");
  EXPECT_EQ(reader.execution(), 1);
}

TEST_F(Recorded, RunsThatAreNotKeepNothingOfIt) {
  must(journal_->commit(turn_of({.at = {}, .what = model::TimePassed{}})));
  EXPECT_EQ(fault(), "execution 1 " + kWayTo);
  EXPECT_EQ(fault(7), "the run has no execution 7");
}

TEST_F(Recorded, ExecutionsAreKeptApart) {
  must(journal_->record({.passes_max = 3}));
  must(journal_->commit(turn_of({.at = {}, .what = model::TimePassed{}})));
  must(journal_->close({}, "ended"));
  journal_ = must(Journal::resume(directory_.journal(), {job_.batch()}, {})).journal;
  EXPECT_EQ(fault(), "execution 2 " + kWayTo);
  must(journal_->record({}));
  EXPECT_THAT(rows(), IsEmpty());
  EXPECT_THAT(rows(1), ElementsAre(Pair(R"({"time_passed":{}})", "{}")));
}

}  // namespace
}  // namespace trainyard::journal
