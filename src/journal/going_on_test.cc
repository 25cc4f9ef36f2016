// Attempts that some machine still has are not lost when their yard has died.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "journal/test_resume.h"
#include "journal/test_run.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Journal::Resumed resumed_with(const JournalDirectory& directory, const TestJob& job,
                              const std::vector<FoundAttempt>& found) {
  JournalOptions options;
  options.found = found;
  return must(Journal::resume(directory.journal(), {job.batch()}, {}, options));
}

/// Three tasks that run when their yard dies.
void run_three(const JournalDirectory& directory, const TestJob& job) {
  auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
  must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(20), key(0), 100) +
                       started(at(30), key(1), 101) + started(at(40), key(2), 102)));
}

TEST(GoingOn, IsNoOtherTry) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  Journal::Resumed resumed = resumed_with(directory, job, {{.row = 1, .key = key(1)}});
  EXPECT_THAT(resumed.goes_on, ElementsAre(key(1)));
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "1", "2"));
  {
    auto reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)), ElementsAre("a WAITING", "b WAITING", "c WAITING"));
    EXPECT_EQ(must(reader.attempts({0})).at(0).failure, model::Failure::Lost);
    const std::vector<AttemptRow> same = must(reader.attempts({1}));
    ASSERT_EQ(same.size(), 1U);
    EXPECT_EQ(same[0].failure, model::Failure::None);
    EXPECT_FALSE(same[0].ended);
  }
  model::Turn found = granted(at(50), {key(1)});
  must(resumed.journal->commit(found + started(at(50), key(1), 101) +
                               finished(at(90), key(1), "{}")));
  auto reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> rows = all_tasks(reader);
  EXPECT_THAT(words(rows), ElementsAre("a WAITING", "b FINISHED", "c WAITING"));
  EXPECT_EQ(rows[1].attempt, 1U);
  EXPECT_EQ(must(reader.attempts({1})).size(), 1U);
}

TEST(GoingOn, LetsTheTimeOfTheRunGoOn) {
  const TestJob job{{.ids = {"a", "b", "c"}}};
  const auto resumed_at = [&job](const std::vector<FoundAttempt>& found, std::int64_t unix_ms) {
    const JournalDirectory directory;
    run_three(directory, job);
    JournalOptions options;
    options.found = found;
    return must(Journal::resume(directory.journal(), {job.batch()}, {.started_unix_ms = unix_ms},
                                options))
        .at;
  };
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1)}}, 5'000), at(5'000));
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1)}}, 7), at(40)) << "it never goes back";
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1, 9)}}, 5'000), at(40)) << "none has run on";
  EXPECT_EQ(resumed_at({}, 5'000), at(40));
}

TEST(GoingOn, IsAsGoodAfterTheNextYardHasDiedBeforeItWasTold) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  EXPECT_THAT(resumed_with(directory, job, {{.row = 2, .key = key(2)}}).goes_on,
              ElementsAre(key(2)));
  const Journal::Resumed again = resumed_with(directory, job, {{.row = 2, .key = key(2)}});
  EXPECT_THAT(again.goes_on, ElementsAre(key(2)));
  EXPECT_THAT(attempts_of(*again.plans.at(0)), ElementsAre("2", "2", "1"));
}

TEST(GoingOn, IsLostWhenNobodyHasItTheNextTime) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  EXPECT_THAT(resumed_with(directory, job, {{.row = 0, .key = key(0)}}).goes_on,
              ElementsAre(key(0)));
  const Journal::Resumed again = resumed_with(directory, job, {});
  EXPECT_THAT(again.goes_on, IsEmpty());
  EXPECT_THAT(attempts_of(*again.plans.at(0)), ElementsAre("2", "2", "2"));
}

TEST(GoingOn, IsOfNoAttemptThatHasEndedOrIsAnOlderOne) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(20), key(0), 100) +
                         finished(at(30), key(0), "{}")));
  }
  const Journal::Resumed resumed = resumed_with(
      directory, job,
      {{.row = 0, .key = key(0)}, {.row = 1, .key = key(1, 2)}, {.row = 9, .key = key(2)}});
  EXPECT_THAT(resumed.goes_on, IsEmpty());
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2+", "2", "2"));
}

TEST(GoingOn, IsNotOfATaskThatWasEditedOrStandsElsewhereOrWhoseGroupWasEdited) {
  const TestJob job{{.ids = {"a", "b", "c"}}};
  const auto found_in = [&job](const TestJob& edited) {
    const JournalDirectory directory;
    run_three(directory, job);
    return resumed_with(directory, edited, {{.row = 1, .key = key(1)}}).goes_on;
  };
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c", "d"}}}), ElementsAre(key(1)));
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c"}, .fingerprint = 2}}), IsEmpty());
  EXPECT_THAT(found_in({{.ids = {"a", "z", "b", "c"}}}), IsEmpty());
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c"}, .parallel_max = 1}}), IsEmpty());
}

}  // namespace
}  // namespace trainyard::journal
