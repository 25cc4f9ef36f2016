#include "queue/rules/submission.h"

#include <gtest/gtest.h>

namespace trainyard::queue {
namespace {

TEST(Submissions, AreReadAsTheyWereWritten) {
  const Submission written{
      .number = 46,
      .run_directory = "/home/me/a b/runs/vit",
      .job_file = "/home/me/a b/vit.yaml",
      .config_file = "/home/me/conf.yaml",
      .settings = {"scheduler.max-process=4", "task.env=A=1"},
      .command_line = "trainyard submit vit.yaml",
      .directory = "/home/me/a b",
      .umask = 027,
      .limits = {.cpus = {0, 3}, .nice = -5, .resources = {{.soft = 1024, .hard = 4096}, {}}},
      .environment = {"A=1\n2", "B=\xff", "C="},
      .priority = -5,
      .needs_gpu = true,
      .memory = gb(2),
      .cpus = {500},
      .needs = {44, 45},
      .run_if = model::RunIf::Always,
      .submitted_unix_ms = 1'700'000'000'000,
      .runs_again = true,
      .incomplete = IncompleteRun{.ends = 2,
                                  .finished = 7,
                                  .resumes_unix_ms = 1'700'000'000'002,
                                  .began = false,
                                  .why = "the disk is full"}};
  const auto read = submission_from(to_text(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, written);
  for (const std::optional<NoStart> no_start :
       {std::optional<NoStart>(), std::optional(NoStart::Refused),
        std::optional(NoStart::DirectoryGone), std::optional(NoStart::Skipped),
        std::optional(NoStart::NotNeeded), std::optional(NoStart::Removed)}) {
    const EndedSubmission ended{.number = 46,
                                .run_directory = "/r",
                                .exit_code = 2,
                                .no_start = no_start,
                                .why = no_start ? "no such directory" : "",
                                .ended_unix_ms = 1'700'000'000'001};
    EXPECT_EQ(ended_from(to_text(ended)), ended);
  }
}

TEST(Submissions, ThatAreDamagedAreRefused) {
  const std::string good = to_text(Submission{.number = 46, .run_directory = "/home/me/runs/vit"});
  const auto why = [](std::string_view text) { return submission_from(text).error().message; };
  EXPECT_EQ(why(""), "it is not a submission, or it is truncated");
  EXPECT_EQ(why(std::string_view(good).substr(0, good.size() - 1)),
            "it is not a submission, or it is truncated");
  EXPECT_EQ(why(to_text(Submission{.run_directory = "/r"})),
            "it does not contain the name of its run");
  EXPECT_EQ(why(good + "umask=x" + '\0'), "'umask' is not a number");
  for (const std::string wrong : {"limit=1", "limit=x 1", "limit=1 1 1", "limit="}) {
    EXPECT_EQ(why(good + wrong + '\0'), "'limit' is not a number") << wrong;
  }
  EXPECT_EQ(why(good + "if=often" + '\0'), "'if' is not a condition");
  EXPECT_EQ(why(good + "priority=1001" + '\0'),
            "'priority': '1001' is not a whole number from -1000 to 1000");
  EXPECT_EQ(why(good + "nothing" + '\0'), "a line has no name");
  EXPECT_TRUE(submission_from(good + "later=known" + '\0'));
  EXPECT_EQ(ended_from(good + "no-start=often" + '\0').error().message,
            "'no-start' is not a reason");
}

TEST(Submissions, KeepAfterTheirEndWhatTheirShellDidNotGiveThem) {
  const Submission submitted{.number = 46,
                             .run_directory = "/r",
                             .job_file = "/home/me/vit.yaml",
                             .settings = {"task.retries=1"},
                             .umask = 027,
                             .limits = {.cpus = {1}, .nice = 3},
                             .environment = {"SECRET=1"},
                             .priority = 2,
                             .needs = {7}};
  Submission kept = submitted;
  kept.umask = 0;
  kept.limits = {};
  kept.environment = {};
  const EndedSubmission ended{.number = 46, .run_directory = "/r", .exit_code = 1};
  const std::string text = to_text(ended, submitted);
  EXPECT_EQ(submission_from(text), kept);
  EXPECT_EQ(ended_from(text), ended);
}

TEST(Submissions, HaveBegunUnlessTheyDidNotStartTheFirstTime) {
  EXPECT_TRUE(has_begun({.exit_code = 1}));
  EXPECT_FALSE(has_begun({.no_start = NoStart::Refused}));
  EXPECT_TRUE(has_begun({.no_start = NoStart::Refused, .runs_again = true}));
}

TEST(SubmissionMarks, AreReadAsTheyWereWrittenAndAreEmptyIfTheyAreDamaged) {
  const SubmissionMark written{.name = "a\nb=c", .submitted_unix_ms = 1'700'000'000'000};
  EXPECT_EQ(mark_from(to_text(written)), written);
  EXPECT_EQ(mark_from(to_text(written).substr(0, 30)), SubmissionMark{});
  EXPECT_EQ(mark_from(""), SubmissionMark{});
}

}  // namespace
}  // namespace trainyard::queue
