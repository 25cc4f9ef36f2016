// Learned estimates from the journal of a run.
#include "job/keep_learned.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/event.h"
#include "model/status.h"
#include "model/turn.h"
#include "run/run_directory.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using journal::at;
using journal::key;
using journal::must;
using journal::operator+;

/// A run of one task whose first attempt trained for 14.6 s and was interrupted, and whose second
/// one finished after 2.4 s.
void write_run(const std::string& directory) {
  const journal::TestJob job{journal::numbered(1)};
  const auto written =
      must(journal::Journal::create(run::journal_path(directory), "sweep", job.batch(), {}));
  must(written->commit(journal::granted(at(1'000), {key(0)}) +
                       journal::started(at(2'000), key(0), 77)));
  must(written->commit(journal::turn_of(
      {.at = at(16'600),
       .what = model::AttemptEnded{.key = key(0),
                                   .end = model::KilledBy{.signal = 15},
                                   .usage = {.memory_peak = mb(300)}}},
      {.changes = {model::TaskChanged{.key = key(0), .status = Status::Interrupt}}})));
  must(written->commit(journal::granted(at(17'000), {key(0, 2)}) +
                       journal::started(at(18'000), key(0, 2), 78)));
  must(written->commit(journal::finished(at(20'400), key(0, 2), "{}")));
}

Duration learned_of(const sys::TemporaryDirectory& run) {
  const std::string path = run / ".trainyard/sweep.yaml.learned.json";
  must(keep_learned(run.path(), {1}, path, kTrainedLeast,
                    [](std::uint32_t batch, model::TaskIndex task) {
                      return std::int64_t{100 * batch + task.value};
                    }));
  const Learned::Taken taken = must(load_learned(path)).taken("train", "0").value();
  EXPECT_EQ(taken.command, 100) << "of the first task of the first batch";
  return taken.task.train;
}

TEST(KeepLearned, AddsUpTheAttemptsOfATaskThatContinuesFromItsCheckpoints) {
  const sys::TemporaryDirectory run;
  write_run(run.path());
  std::filesystem::create_directories(run / "train/0/checkpoints");
  EXPECT_EQ(learned_of(run), Duration{2'400}) << "without a checkpoint it ran from the start";
  run.write("train/0/checkpoints/last.pt", "weights");
  EXPECT_EQ(learned_of(run), Duration{17'000});
}

}  // namespace
}  // namespace trainyard::job
