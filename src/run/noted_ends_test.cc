// Ends that the keeper of a dead yard has noted, judged by the rules for any other end.
#include "run/noted_ends.h"

#include <csignal>
#include <filesystem>
#include <utility>
#include <variant>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "run/run_directory.h"

namespace trainyard::run {
namespace {

using journal::key;
using journal::must;
using journal::operator+;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kStarted = 1'700'000'000'000;

/// The remains of an attempt: a result if there is one to leave, and the end of its errors.
struct Left {
  bool told = true;
  std::string result;
  std::string errors;
  bool two_phase = false;
};

/// A run whose yard has died with one attempt of task 0 under way, and notes.
class NotedEndsTest : public ::testing::Test {
 protected:
  /// `life`: what the journal has of the attempt beyond that it was started.
  void die(const model::Turn& life = journal::started(journal::at(20), key(0), 100),
           std::vector<model::GpuIndex> gpus = {}) {
    const journal::TestJob job{{.ids = {"a"}}};
    auto written =
        must(journal::Journal::create(journal_path(directory_.path()), "job", job.batch(),
                                      {.started_unix_ms = kStarted, .gpus = {model::Gpu{}}}));
    model::Turn granted = journal::granted(journal::at(10), {key(0)});
    std::get<model::StartAttempt>(granted.decisions.at(0).commands.at(0)).site.gpus =
        std::move(gpus);
    must(written->commit(granted + life));
  }
  static model::Turn said(Status status) {
    return journal::turn_of(
        {.at = journal::at(50), .what = model::StageReported{.key = key(0)}},
        {.changes = {model::TaskChanged{.key = key(0), .status = status, .message = "why"}}});
  }

  void note(model::End end, const Left& left = {}, const process::EndNotes& of = kOf,
            std::uint32_t attempt = 1) {
    process::EndNote note{.of = of,
                          .attempt = {.journal_number = 0, .two_phase = left.two_phase},
                          .ended = {.key = {.task = {}, .attempt = attempt},
                                    .end = std::move(end),
                                    .usage = {.memory_peak = mb(7), .cpu_time = Duration(30)},
                                    .left = {.errors = left.errors},
                                    .at = Duration(5'900),
                                    .told_to_end = left.told}};
    if (!left.result.empty()) note.ended.left.result = left.result;
    process::add_end_note(ends_path(directory_.path()),
                          process::end_note_record(process::end_note_head(note), note.ended.left));
  }

  /// The changes that would be written: "EXITED FINISHED", "EXCEPTION FAILED EXIT: no such data".
  std::vector<std::string> judged() {
    const NotedEnds noted = noted_ends(directory_.path());
    EXPECT_EQ(noted.trouble, "");
    std::vector<std::string> texts;
    for (const journal::EarlierEnd& end : noted.ends) {
      EXPECT_EQ(end.task, 0U);
      EXPECT_EQ(end.attempt, 1U);
      for (const model::Change& each : end.decision.changes) {
        const auto& change = std::get<model::TaskChanged>(each);
        EXPECT_EQ(change.key, key(0));
        std::string text(to_text(change.status));
        if (change.verdict != model::Verdict::None)
          text += fmt::format(" {}", to_text(change.verdict));
        if (change.failure != model::Failure::None)
          text += fmt::format(" {}", to_text(change.failure));
        if (!change.message.empty()) text += ": " + change.message;
        texts.push_back(text);
      }
    }
    remove_noted_ends(directory_.path());
    return texts;
  }

  static inline const process::EndNotes kOf{
      .path = {}, .execution = 1, .started_unix_ms = kStarted, .clock_offset = Duration(-5'000)};
  sys::TemporaryDirectory directory_{sys::TemporaryDirectory::in_memory()};
};

TEST_F(NotedEndsTest, OfATaskThatLeftItsResultAreThatItHasFinished) {
  die();
  note(model::ExitedWith{0}, {.result = R"({"x": 1})"});
  const NotedEnds noted = noted_ends(directory_.path());
  ASSERT_EQ(noted.ends.size(), 1U);
  EXPECT_EQ(noted.ends[0].event.at, journal::at(900)) << "on the clock of the run";
  const auto& ended = std::get<model::AttemptEnded>(noted.ends[0].event.what);
  EXPECT_EQ(ended.result, R"({"x":1})");
  EXPECT_EQ(ended.ended, journal::at(900));
  EXPECT_EQ(ended.usage.memory_peak, mb(7));
  EXPECT_TRUE(ended.usage.memory_at_least);
  EXPECT_FALSE(ended.usage.gpu_capped);
  EXPECT_THAT(judged(), ElementsAre("FINISHED", "EXITED FINISHED"));
  EXPECT_THAT(judged(), IsEmpty()) << "they have been removed";
}

TEST_F(NotedEndsTest, OfOneThatWasNotedTwiceCountByTheLastNote) {
  die();
  note(model::ExitedWith{0}, {.result = R"({"x": 1})"});
  note(model::ExitedWith{0}, {.result = R"({"x": 2})"});
  const NotedEnds noted = noted_ends(directory_.path());
  ASSERT_EQ(noted.ends.size(), 1U);
  EXPECT_EQ(std::get<model::AttemptEnded>(noted.ends[0].event.what).result, R"({"x":2})");
}

TEST_F(NotedEndsTest, OfOneThatWasSampledTeachNothingBeyondThat) {
  die(journal::started(journal::at(20), key(0), 100) +
          journal::turn_of({.at = journal::at(50),
                            .what = model::Sampled{.tasks = {{.key = key(0), .memory = mb(2)}}}}),
      {model::GpuIndex{0}});
  note(model::ExitedWith{0}, {.told = false});
  const NotedEnds noted = noted_ends(directory_.path());
  ASSERT_EQ(noted.ends.size(), 1U);
  const model::Usage usage = std::get<model::AttemptEnded>(noted.ends[0].event.what).usage;
  EXPECT_EQ(usage.memory_peak, mb(2));
  EXPECT_FALSE(usage.memory_at_least);
  EXPECT_TRUE(usage.gpu_capped) << "as it may have been";
}

TEST_F(NotedEndsTest, OfOneThatWasToldToEndAndLeftNoneAreThoseOfAnInterruptedTask) {
  die();
  note(model::ExitedWith{0});
  EXPECT_THAT(judged(), ElementsAre("INTERRUPT STOPPED: trainyard died while the task ran; the "
                                    "task was then killed: exit code 0"));
  note(model::ExitedWith{3}, {.errors = "ValueError: no"});
  EXPECT_THAT(judged(),
              ElementsAre(HasSubstr("STOPPED: trainyard died while the task ran; the task was then "
                                    "killed: exit code 3")));
  note(model::KilledBy{.signal = SIGTERM});
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("was then killed: SIGTERM")));
}

TEST_F(NotedEndsTest, OfOneThatEndedByItselfAreItsOwn) {
  die();
  note(model::ExitedWith{0}, {.told = false});
  EXPECT_THAT(judged(), ElementsAre("FINISHED", "EXITED FINISHED"));
  note(model::ExitedWith{3}, {.told = false, .errors = "ValueError: no such data\n"});
  EXPECT_THAT(judged(), ElementsAre("EXCEPTION FAILED EXIT: ValueError: no such data"));
  note(model::ExitedWith{1}, {.told = false, .errors = "MemoryError\n"});
  EXPECT_THAT(judged(), ElementsAre("EXCEPTION FAILED OUT_OF_MEMORY: MemoryError"));
  note(model::KilledBy{.signal = SIGSEGV}, {.told = false});
  EXPECT_THAT(judged(),
              ElementsAre("EXCEPTION FAILED CRASHED: crashed with SIGSEGV (segmentation fault)"));
}

TEST_F(NotedEndsTest, OfOneWithoutAGpuThatSpeaksOfItsServiceAreItsOwn) {
  die();
  note(model::ExitedWith{1}, {.told = false, .errors = "RuntimeError: no MPS server\n"});
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("FAILED EXIT")));
}

TEST_F(NotedEndsTest, OfOneOnAGpuWhoseServiceHasGoneAreThatItWasLost) {
  die(journal::started(journal::at(20), key(0), 100), {model::GpuIndex{0}});
  note(model::ExitedWith{1},
       {.told = false, .errors = "RuntimeError: CUDA error: MPS server is not ready\n"});
  EXPECT_THAT(judged(),
              ElementsAre(HasSubstr("FAILED LOST: the MPS service of its GPU has exited")));
}

TEST_F(NotedEndsTest, OfOneThatNobodySawBeginAreTheFirstThatIsHeardOfIt) {
  die({});
  note(model::ExitedWith{0}, {.told = false});
  EXPECT_THAT(judged(), ElementsAre("TRAINING", "FINISHED", "EXITED FINISHED"));
}

TEST_F(NotedEndsTest, OfATwoPhaseTaskHangOnHowFarItWas) {
  die(said(Status::Training));
  // It has left the result of its training, and nobody received its message.
  note(model::ExitedWith{0}, {.result = "{}", .two_phase = true});
  EXPECT_THAT(judged(), ElementsAre("FINISHED", "EXITED FINISHED"));
  note(model::ExitedWith{0}, {.told = false, .two_phase = true});
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("FAILED EXIT: exited without reporting 'trained'")));
  note(model::ExitedWith{0}, {.two_phase = true});
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("INTERRUPT STOPPED")));
}

TEST_F(NotedEndsTest, OfATwoPhaseTaskThatOnlyLoadedAreNotThatItHasFinished) {
  die(said(Status::Loading));
  note(model::ExitedWith{0}, {.result = "{}", .two_phase = true});
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("FAILED EXIT: exited without reporting 'trained'")));
}

TEST_F(NotedEndsTest, OfATwoPhaseTaskThatHadTrainedAreThatItHasFinishedHoweverItEnded) {
  die(said(Status::Training) + said(Status::Finished));
  note(model::KilledBy{.signal = SIGTERM}, {.two_phase = true});
  EXPECT_THAT(judged(), ElementsAre("EXITED FINISHED"));
}

TEST_F(NotedEndsTest, OfAScriptThatSaidThatItsEndTellsAreItsExitCode) {
  die(said(Status::Training) +
      journal::turn_of(
          {.at = journal::at(60),
           .what = model::StageReported{.key = key(0), .said = model::Said::Training}}));
  note(model::ExitedWith{0}, {.told = false, .two_phase = true});
  EXPECT_THAT(judged(), ElementsAre("FINISHED", "EXITED FINISHED"));
}

TEST_F(NotedEndsTest, OfAnotherExecutionOrAttemptAreIgnored) {
  die();
  process::EndNotes other = kOf;
  other.execution = 2;
  note(model::ExitedWith{0}, {.result = "{}"}, other);
  other = kOf;
  other.started_unix_ms += 1;
  note(model::ExitedWith{0}, {.result = "{}"}, other);
  note(model::ExitedWith{0}, {.result = "{}"}, kOf, 2);
  EXPECT_THAT(judged(), IsEmpty());
}

TEST_F(NotedEndsTest, ThatAreNotedTwiceCountOnce) {
  die();
  note(model::ExitedWith{0}, {.told = false});
  note(model::ExitedWith{0}, {.told = false});
  EXPECT_EQ(noted_ends(directory_.path()).ends.size(), 1U);
}

TEST_F(NotedEndsTest, ThatCannotBeReadAreToldAndNothingElse) {
  die();
  const std::string path = ends_path(directory_.path());
  EXPECT_EQ(noted_ends(directory_.path()).trouble, "") << "there are none";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(noted_ends(directory_.path()).trouble, HasSubstr("is a pipe, not a regular file"));
  remove_noted_ends(directory_.path());
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::create_symlink("/etc/passwd", path);
  EXPECT_NE(noted_ends(directory_.path()).trouble, "");
  remove_noted_ends(directory_.path());
  note(model::ExitedWith{0}, {.result = "{}"});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(judged(), IsEmpty()) << "cut off";
}

TEST_F(NotedEndsTest, AreToldApartFromTasksThatRunAgain) {
  EXPECT_THAT(lines_about_ends({}), IsEmpty());
  EXPECT_THAT(lines_about_ends({.own = 1, .stopped = 1}),
              ElementsAre("1 task ended after trainyard had died; its outcome is recorded",
                          "1 task was running when trainyard died, and was killed: it runs again"));
  EXPECT_THAT(
      lines_about_ends({.own = 2, .stopped = 3}),
      ElementsAre("2 tasks ended after trainyard had died; their outcomes are recorded",
                  "3 tasks were running when trainyard died, and were killed: they run again"));
}

}  // namespace
}  // namespace trainyard::run
