#include "queue/queue_files.h"

#include <filesystem>

#include <sys/mount.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/test_mounts.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::queue {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;
using Place = QueueFiles::Place;

Submission submission(std::uint32_t number) {
  return {.number = number, .run_directory = "/home/me/runs/vit", .environment = {"SECRET=1"}};
}

/// A queue in a directory of the test's own.
class Queue : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(files_.make("")); }

  sys::TemporaryDirectory place_{sys::TemporaryDirectory::in_memory()};
  QueueFiles files_{place_ / "state/queue"};
};

TEST_F(Queue, NotesOfARunThatHasBegunWhenItIsResumedUntilItEnds) {
  ASSERT_TRUE(files_.add(submission(46)));
  Submission noted = submission(46);
  noted.incomplete.emplace().ends = 3;
  ASSERT_TRUE(files_.note_incomplete(noted));
  EXPECT_EQ(files_.read(Place::Waiting, 46)->incomplete, std::nullopt);
  ASSERT_TRUE(files_.begin(46));
  ASSERT_TRUE(files_.note_incomplete(noted));
  EXPECT_EQ(files_.read(Place::Begun, 46)->incomplete, noted.incomplete);
  ASSERT_TRUE(files_.end({.number = 46, .run_directory = noted.run_directory, .why = "gave up"}));
  EXPECT_EQ(files_.read(Place::Ended, 46)->incomplete, std::nullopt);
}

TEST_F(Queue, KeepsWhatWaitsInOrderUntilItBegins) {
  ASSERT_TRUE(files_.add(submission(10)));
  ASSERT_TRUE(files_.add(submission(9)));
  EXPECT_THAT(files_.numbers(Place::Waiting), ElementsAre(9, 10));
  EXPECT_EQ(*files_.read(Place::Waiting, 9), submission(9));
  EXPECT_TRUE(files_.begin(9));
  EXPECT_FALSE(files_.begin(9));
  EXPECT_THAT(files_.numbers(Place::Waiting), ElementsAre(10));
  EXPECT_EQ(files_.place_of(9), Place::Begun);
  EXPECT_EQ(files_.place_of(11), std::nullopt);
}

TEST_F(Queue, ForgetsTheEnvironmentOfWhatHasEnded) {
  ASSERT_TRUE(files_.add(submission(9)));
  const std::string path = files_.directory() + "/waiting/9";
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(files_.directory()).permissions(), fs::perms::owner_all);
  const EndedSubmission ended{.number = 9,
                              .run_directory = "/r",
                              .exit_code = 3,
                              .no_start = NoStart::Refused,
                              .why = "so"};
  ASSERT_TRUE(files_.end(ended));
  EXPECT_EQ(files_.ended(9), ended);
  EXPECT_EQ(files_.place_of(9), Place::Ended);
  EXPECT_THAT(sys::content_of(files_.directory() + "/ended/9"), testing::Not(HasSubstr("SECRET")));
}

TEST_F(Queue, KeepsWhatWasSubmittedAfterItsEndAndNothingThatItsShellGaveIt) {
  const Submission written{.number = 9,
                           .run_directory = "/home/me/runs/vit",
                           .job_file = "/home/me/vit.yaml",
                           .config_file = "/home/me/conf.yaml",
                           .settings = {"task.retries=1"},
                           .command_line = "trainyard submit vit.yaml",
                           .directory = "/home/me",
                           .umask = 027,
                           .limits = {.cpus = {1}, .nice = 3, .resources = {{}}},
                           .environment = {"SECRET=1"},
                           .priority = 2,
                           .needs_gpu = true,
                           .memory = gb(2),
                           .cpus = {500},
                           .needs = {7},
                           .run_if = model::RunIf::Always,
                           .submitted_unix_ms = 1'700'000'000'000};
  Submission kept = written;
  kept.umask = 0;
  kept.limits = {};
  kept.environment = {};
  const EndedSubmission skipped{.number = 9,
                                .run_directory = "/home/me/runs/vit",
                                .exit_code = 1,
                                .no_start = NoStart::Skipped,
                                .why = "so"};
  ASSERT_TRUE(files_.add(written));
  ASSERT_TRUE(files_.end(skipped));
  EXPECT_EQ(*files_.read(Place::Ended, 9), kept);
  EXPECT_EQ(files_.ended(9), skipped);
  ASSERT_TRUE(files_.end(skipped)) << "an end that is written again";
  EXPECT_EQ(*files_.read(Place::Ended, 9), kept);
  Submission again = written;
  again.umask = 022;
  ASSERT_TRUE(*files_.put_back(again));
  EXPECT_EQ(files_.place_of(9), Place::Waiting);
  EXPECT_EQ(files_.ended(9), std::nullopt);
  EXPECT_EQ(*files_.read(Place::Waiting, 9), again);
  ASSERT_TRUE(files_.cancel(9));
  EXPECT_EQ(*files_.read(Place::Ended, 9), kept);
  ASSERT_TRUE(*files_.put_back(again));
  ASSERT_TRUE(files_.begin(9));
  ASSERT_TRUE(files_.end({.number = 9, .run_directory = "/home/me/runs/vit", .exit_code = 1}));
  EXPECT_EQ(*files_.read(Place::Ended, 9), kept);
  again.runs_again = true;
  ASSERT_TRUE(*files_.put_back(again));
  EXPECT_EQ(*files_.read(Place::Waiting, 9), again);
  ASSERT_TRUE(files_.begin(9));
  ASSERT_TRUE(files_.end({.number = 9, .run_directory = "/home/me/runs/vit"}));
  EXPECT_EQ(*files_.read(Place::Ended, 9), kept) << "it has run again";
}

TEST_F(Queue, PutsBackWhatHasEndedOnceAndOnlyWhereThereIsRoom) {
  ASSERT_TRUE(files_.add(submission(9)));
  EXPECT_FALSE(*files_.put_back(submission(9))) << "it waits";
  ASSERT_TRUE(files_.cancel(9));
  for (std::uint32_t number = 1001; number <= 1000 + QueueFiles::kWaitingMax; ++number) {
    ASSERT_TRUE(sys::replace_file(files_.directory() + "/waiting/" + std::to_string(number), "x"));
  }
  EXPECT_THAT(files_.put_back(submission(9)).error().message, HasSubstr("your queue is full"));
  EXPECT_EQ(files_.ended(9)->no_start, NoStart::Removed);
  fs::remove(files_.directory() + "/waiting/1001");
  EXPECT_TRUE(*files_.put_back(submission(9)));
  EXPECT_FALSE(*files_.put_back(submission(9)));
  EXPECT_EQ(files_.place_of(9), Place::Waiting);
}

TEST_F(Queue, FindsWhatEndedBehindARunStepByStep) {
  const auto end = [this](std::uint32_t number, std::vector<std::uint32_t> needs,
                          std::optional<NoStart> no_start,
                          model::RunIf run_if = model::RunIf::Success) {
    Submission ended = submission(number);
    ended.job_file = "/home/me/job.yaml";
    ended.needs = std::move(needs);
    ended.run_if = run_if;
    ASSERT_TRUE(files_.add(ended));
    ASSERT_TRUE(files_.end({.number = number,
                            .run_directory = ended.run_directory,
                            .exit_code = 1,
                            .no_start = no_start,
                            .why = no_start ? "so" : ""}));
  };
  end(1, {}, std::nullopt);
  end(2, {1}, NoStart::Skipped);
  end(3, {2}, NoStart::Skipped);
  end(4, {1}, NoStart::Removed);
  end(5, {4}, NoStart::Skipped);
  end(6, {1}, NoStart::Refused);
  end(7, {1}, NoStart::NotNeeded);
  end(8, {9, 3}, NoStart::Skipped);
  end(10, {1}, std::nullopt);
  end(11, {1}, NoStart::DirectoryGone);
  end(12, {1}, std::nullopt, model::RunIf::Always);
  end(13, {1}, std::nullopt, model::RunIf::Failure);
  end(14, {12}, NoStart::Skipped);
  end(15, {13}, std::nullopt);
  end(16, {3}, std::nullopt);
  const auto numbers = [](const std::vector<Submission>& submissions) {
    std::vector<std::uint32_t> found;
    for (const Submission& each : submissions) found.push_back(each.number);
    return found;
  };
  EXPECT_THAT(numbers(skipped_because_of(files_, 1)), ElementsAre(2, 3, 8));
  EXPECT_THAT(numbers(ended_behind(files_, 1)), ElementsAre(2, 3, 8, 10, 12, 14, 16));
  EXPECT_THAT(skipped_because_of(files_, 7), IsEmpty());
}

TEST_F(Queue, KeepsWhatWasSubmittedOfARunThatIsResumedOutsideOfIt) {
  Submission ended = submission(2);
  ended.needs = {1};
  ASSERT_TRUE(files_.add(ended));
  files_.forget_end(2);
  EXPECT_EQ(files_.place_of(2), Place::Waiting);
  ASSERT_TRUE(files_.end({.number = 2,
                          .run_directory = ended.run_directory,
                          .exit_code = 75,
                          .why = "gave up",
                          .ended_unix_ms = 3}));
  files_.forget_end(2);
  EXPECT_EQ(files_.ended(2), (EndedSubmission{.number = 2,
                                              .run_directory = ended.run_directory,
                                              .ended_unix_ms = 3,
                                              .is_resumed = true}));
  EXPECT_THAT(files_.read(Place::Ended, 2)->needs, ElementsAre(1));
  // Another process puts it back meanwhile.
  ASSERT_TRUE(files_.add(ended));
  files_.forget_end(2);
  EXPECT_EQ(files_.place_of(2), Place::Waiting);
}

TEST_F(Queue, FindsWhatHasBegunBehindARunAlsoOnceItHasEnded) {
  const auto add = [this](std::uint32_t number, std::vector<std::uint32_t> needs) {
    Submission added = submission(number);
    added.needs = std::move(needs);
    added.run_if = model::RunIf::Always;
    ASSERT_TRUE(files_.add(added));
  };
  const auto end = [this](std::uint32_t number, std::optional<NoStart> no_start) {
    ASSERT_TRUE(files_.end({.number = number,
                            .run_directory = submission(number).run_directory,
                            .no_start = no_start}));
  };
  for (const std::uint32_t number : {2U, 3U, 4U, 7U}) add(number, {1});
  add(5, {6, 1});
  add(6, {2});
  ASSERT_TRUE(files_.begin(3));
  for (const std::uint32_t number : {2U, 5U, 6U}) {
    ASSERT_TRUE(files_.begin(number));
    end(number, std::nullopt);
  }
  end(7, NoStart::Skipped);
  const auto behind_1 = [this] {
    std::vector<std::uint32_t> found;
    for (const Submission& each : begun_behind(files_, 1)) found.push_back(each.number);
    return found;
  };
  EXPECT_THAT(behind_1(), ElementsAre(2, 3, 5));
  const auto ended = files_.read(Place::Ended, 5);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(*ended, (Submission{.number = 5,
                                .run_directory = submission(5).run_directory,
                                .needs = {6, 1},
                                .run_if = model::RunIf::Always}));
  end(3, std::nullopt);
  EXPECT_THAT(behind_1(), ElementsAre(2, 3, 5));
}

TEST_F(Queue, TakesOutWhatWaitsAndNothingElse) {
  ASSERT_TRUE(files_.add(submission(9)));
  ASSERT_TRUE(files_.add(submission(10)));
  ASSERT_TRUE(files_.begin(10));
  EXPECT_TRUE(files_.cancel(9));
  EXPECT_FALSE(files_.cancel(9));
  EXPECT_FALSE(files_.cancel(10));
  EXPECT_THAT(files_.numbers(Place::Waiting), IsEmpty());
  EXPECT_EQ(files_.ended(9)->no_start, NoStart::Removed);
  EXPECT_EQ(files_.ended(9)->why, "removed from the queue");
  EXPECT_THAT(sys::content_of(files_.directory() + "/ended/9"), testing::Not(HasSubstr("SECRET")));
}

TEST_F(Queue, LeavesToARunItsOutcomeWhenItIsTakenOutBeforeItRunsAgain) {
  Submission again = submission(3);
  again.job_file = "/home/me/job.yaml";
  again.needs = {2};
  again.runs_again = true;
  ASSERT_TRUE(files_.add(again));
  ASSERT_TRUE(files_.cancel(3));
  const std::optional<EndedSubmission> removed = files_.ended(3);
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->is_resumed);
  EXPECT_EQ(removed->no_start, std::nullopt);
  EXPECT_EQ(removed->why, "");
  EXPECT_EQ(ended_behind(files_, 2).size(), 1U);
  EXPECT_EQ(begun_behind(files_, 2).size(), 1U);
}

TEST_F(Queue, CountsARunAsBegunThatIsRefusedWhenItIsToRunAgain) {
  Submission again = submission(3);
  again.job_file = "/home/me/job.yaml";
  again.needs = {2};
  again.runs_again = true;
  ASSERT_TRUE(files_.add(again));
  ASSERT_TRUE(files_.begin(3));
  ASSERT_TRUE(files_.end({.number = 3,
                          .run_directory = again.run_directory,
                          .exit_code = 2,
                          .no_start = NoStart::Refused,
                          .why = "so"}));
  const std::optional<EndedSubmission> refused = files_.ended(3);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->runs_again);
  EXPECT_EQ(refused->no_start, NoStart::Refused);
  EXPECT_EQ(ended_behind(files_, 2).size(), 1U);
  EXPECT_EQ(begun_behind(files_, 2).size(), 1U);
  files_.forget_end(3);
  EXPECT_FALSE(files_.ended(3)->runs_again) << "its run has been resumed since";
}

TEST_F(Queue, HoldsNoMoreThanItsBounds) {
  for (std::uint32_t number = 1; number <= QueueFiles::kWaitingMax; ++number) {
    ASSERT_TRUE(sys::replace_file(files_.directory() + "/waiting/" + std::to_string(number), "x"));
  }
  const auto added = files_.add(submission(9999));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("your queue is full, with 2000 submissions"));
  for (std::uint32_t number = 1; number <= QueueFiles::kEndedMax; ++number) {
    ASSERT_TRUE(sys::replace_file(files_.directory() + "/ended/" + std::to_string(number), "x"));
  }
  ASSERT_TRUE(files_.end({.number = 5000, .run_directory = "/r"}));
  EXPECT_EQ(files_.numbers(Place::Ended).size(), QueueFiles::kEndedMax);
  EXPECT_EQ(files_.numbers(Place::Ended).front(), 2);
  EXPECT_EQ(files_.numbers(Place::Ended).back(), 5000);
}

TEST_F(Queue, LiesWhereItIsToldAndStaysThere) {
  const QueueFiles other(place_ / "other/queue");
  ASSERT_TRUE(other.make(place_ / "local"));
  ASSERT_TRUE(other.make(""));
  EXPECT_TRUE(fs::is_symlink(other.directory()));
  EXPECT_TRUE(fs::is_directory(other.directory() + "/waiting"));
  EXPECT_THAT(fs::read_symlink(other.directory()).string(),
              HasSubstr((place_ / "local") + "/trainyard-queue-"));
  EXPECT_TRUE(is_in(other, place_ / "local"));
  EXPECT_FALSE(is_in(files_, place_ / "local"));
  fs::remove_all(place_ / "local");
  EXPECT_TRUE(other.make(""));
}

TEST(SubmissionMarks, AreReadAsTheyWereWrittenAndAreEmptyWhereThereIsNone) {
  const sys::TemporaryDirectory run;
  EXPECT_EQ(read_mark(run / ""), SubmissionMark{});
  run.write("trainyard.submission", "");
  EXPECT_EQ(read_mark(run / ""), SubmissionMark{});
  const SubmissionMark written{.name = "a\nb=c", .submitted_unix_ms = 1'700'000'000'000};
  run.write("trainyard.submission", to_text(written));
  EXPECT_EQ(read_mark(run / ""), written);
  run.write("elsewhere", to_text(written));
  fs::remove(run / "trainyard.submission");
  fs::create_symlink(run / "elsewhere", run / "trainyard.submission");
  EXPECT_EQ(read_mark(run / ""), SubmissionMark{}) << "a link is not followed";
}

TEST(SubmissionMarks, SayWhetherADirectoryIsStillThatOfTheSubmission) {
  const sys::TemporaryDirectory run{sys::TemporaryDirectory::in_memory()};
  const Submission own{.number = 1, .run_directory = run.path(), .submitted_unix_ms = 1000};
  const std::string changed =
      "its file '" + run / "trainyard.submission" + "' was changed or deleted";
  EXPECT_EQ(why_directory_lost({.number = 1, .run_directory = run / "gone"}),
            "its directory was deleted or moved");
  EXPECT_EQ(why_directory_lost(own), changed);
  run.write("trainyard.submission",
            to_text(SubmissionMark{.name = "vit", .submitted_unix_ms = 1000}));
  EXPECT_EQ(why_directory_lost(own), "");
  run.write("trainyard.submission",
            to_text(SubmissionMark{.name = "vit", .submitted_unix_ms = 2000}));
  EXPECT_EQ(why_directory_lost(own), changed);
  run.write("trainyard.submission", "");
  EXPECT_EQ(why_directory_lost(own), "") << "a power failure emptied the mark";
}

TEST_F(Queue, DrainsUntilItIsToldNotTo) {
  EXPECT_FALSE(files_.is_draining());
  EXPECT_TRUE(files_.set_draining(false)) << "it did not";
  EXPECT_TRUE(files_.set_draining(true));
  EXPECT_TRUE(files_.is_draining());
  EXPECT_TRUE(files_.set_draining(true));
  EXPECT_TRUE(files_.set_draining(false));
  EXPECT_FALSE(files_.is_draining());
}

TEST(QueueFilesOfNobody, CannotBeMadeWhereThereIsAFile) {
  const sys::TemporaryDirectory place;
  ASSERT_TRUE(sys::replace_file(place / "state", "a file"));
  const auto made = QueueFiles(place / "state/queue").make("");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("state"));
}

TEST(QueueFilesOnAMount, AreMadeWhereRootHasMountedTheDirectory) {
  process::in_own_mounts([] {
    const sys::TemporaryDirectory place;
    place.make("queue");
    const std::string queue = place / "queue";
    if (::mount("none", queue.c_str(), "tmpfs", 0, "mode=755") != 0) process::skip_for_mounts();
    const auto made = QueueFiles(queue).make("");
    EXPECT_TRUE(made) << made.error().message;
    EXPECT_EQ(fs::status(queue).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(fs::is_directory(queue + "/waiting"));
    ::umount(queue.c_str());
  });
}

}  // namespace
}  // namespace trainyard::queue
