#include "app/run_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"

namespace trainyard::app {
namespace {

using ::testing::HasSubstr;

/// The message for words that cannot be combined; empty for a request.
std::string refused(const TypedRun& typed, const RunSurroundings& surroundings = {}) {
  const Result<RunRequest> request = request_run(typed, surroundings);
  return request ? std::string() : request.error().message;
}

RunRequest accepted(const TypedRun& typed, const RunSurroundings& surroundings = {}) {
  const Result<RunRequest> request = request_run(typed, surroundings);
  EXPECT_TRUE(request) << refused(typed, surroundings);
  return request ? *request : RunRequest{};
}

TypedRun typed_command() { return {.command = {.is_there = true}}; }

TEST(RunRequest, RunsAJobFileInTheDirectoryThatTheJobHas) {
  const RunRequest request = accepted({.job_file = "sweep.yaml"});
  EXPECT_EQ(request, (RunRequest{.job = JobFile{"sweep.yaml"}, .place = NewRun{}}));
  EXPECT_EQ(request.job_file(), "sweep.yaml");
  EXPECT_EQ(request.directory(), "");
  EXPECT_FALSE(request.resumes());
  EXPECT_FALSE(request.is_command());
  EXPECT_FALSE(request.takes_next_free());
  EXPECT_FALSE(request.names_new_directory());
}

TEST(RunRequest, RunsAJobFileThatIsMissing) {
  // The reader of the file says so, with the nearest file that is there.
  EXPECT_EQ(accepted({.job_file = "sweap.yaml"}, {.job_file = PathKind::Missing}).job_file(),
            "sweap.yaml");
}

TEST(RunRequest, RunsACommandWhoseJobFileIsYetToBeMade) {
  const RunRequest request = accepted(typed_command());
  EXPECT_EQ(request, (RunRequest{.job = Command{}, .place = NewRun{}}));
  EXPECT_TRUE(request.is_command());
  EXPECT_EQ(request.job_file(), "");
}

TEST(RunRequest, RunsInTheTypedDirectory) {
  const RunRequest request = accepted({.job_file = "sweep.yaml", .run_directory = "runs/a"});
  EXPECT_EQ(request.place, decltype(request.place)(NewRun{.directory = "runs/a"}));
  EXPECT_EQ(request.directory(), "runs/a");
  EXPECT_TRUE(request.names_new_directory());
}

TEST(RunRequest, RunsInTheNextFreeDirectory) {
  const RunRequest request = accepted({.job_file = "sweep.yaml", .is_new = true});
  EXPECT_EQ(request.place, decltype(request.place)(NewRun{.takes_next_free = true}));
  EXPECT_TRUE(request.takes_next_free());
  EXPECT_FALSE(request.names_new_directory());
}

TEST(RunRequest, RunsInTheNextFreeDirectoryAfterTheTypedOne) {
  const RunRequest request =
      accepted({.job_file = "sweep.yaml", .is_new = true, .run_directory = "runs/a"});
  EXPECT_EQ(request.place,
            decltype(request.place)(NewRun{.directory = "runs/a", .takes_next_free = true}));
  EXPECT_TRUE(request.names_new_directory());
}

TEST(RunRequest, ResumesTheLatestRunOfAJobFile) {
  const RunRequest request = accepted({.job_file = "sweep.yaml", .resumes = true});
  EXPECT_EQ(request, (RunRequest{.job = JobFile{"sweep.yaml"}, .place = LatestRun{}}));
  EXPECT_TRUE(request.resumes());
  EXPECT_EQ(request.directory(), "");
}

TEST(RunRequest, ResumesTheLatestRunOfAJobFileTypedAfterResume) {
  EXPECT_EQ(accepted({.resumes = true, .resume = "sweep.yaml"}, {.resume = PathKind::File}),
            accepted({.job_file = "sweep.yaml", .resumes = true}));
}

TEST(RunRequest, ResumesARunWithTheJobFileOfItsLastExecution) {
  const RunRequest request = accepted({.resumes = true, .resume = "46"});
  EXPECT_EQ(request, (RunRequest{.job = JobOfRun{}, .place = NamedRun{"46"}}));
  EXPECT_EQ(request.job_file(), "");
  EXPECT_EQ(request.directory(), "46");
  EXPECT_FALSE(request.is_command());
  EXPECT_FALSE(request.names_new_directory());
}

TEST(RunRequest, ResumesARunInADirectoryLikeAnyNamedRun) {
  for (const PathKind kind : {PathKind::Directory, PathKind::RunDirectory}) {
    EXPECT_EQ(accepted({.resumes = true, .resume = "runs/a"}, {.resume = kind}).place,
              decltype(RunRequest::place)(NamedRun{"runs/a"}));
  }
}

TEST(RunRequest, ResumesARunWithAnotherJobFile) {
  const RunRequest request =
      accepted({.job_file = "b.yaml", .resumes = true, .resume = "runs/a"},
               {.job_file = PathKind::File, .resume = PathKind::RunDirectory});
  EXPECT_EQ(request, (RunRequest{.job = JobFile{"b.yaml"}, .place = NamedRun{"runs/a"}}));
}

TEST(RunRequest, ResumesTheRunThatASecondJobFileNames) {
  const RunRequest request = accepted({.job_file = "b.yaml", .resumes = true, .resume = "a.yaml"},
                                      {.job_file = PathKind::File, .resume = PathKind::File});
  EXPECT_EQ(request, (RunRequest{.job = JobFile{"b.yaml"}, .place = NamedRun{"a.yaml"}}));
}

TEST(RunRequest, ResumesTheRunInTheTypedDirectory) {
  EXPECT_EQ(accepted({.resumes = true, .run_directory = "runs/a"}),
            (RunRequest{.job = JobOfRun{}, .place = RunInDirectory{"runs/a"}}));
  EXPECT_EQ(accepted({.job_file = "b.yaml", .resumes = true, .run_directory = "runs/a"}),
            (RunRequest{.job = JobFile{"b.yaml"}, .place = RunInDirectory{"runs/a"}}));
}

TEST(RunRequest, AcceptsOptionsOfANewRun) {
  EXPECT_EQ(refused({.job_file = "a.yaml",
                     .choices = {.only = {"lr=1"}, .snapshot = true, .detaches = true}}),
            "");
  EXPECT_EQ(refused({.job_file = "a.yaml", .choices = {.until_input_closes = true}}), "");
}

TEST(RunRequest, AcceptsOptionsOfAResumedRun) {
  EXPECT_EQ(
      refused(
          {.resumes = true, .resume = "46", .choices = {.reruns_changed = true, .detaches = true}}),
      "");
}

TEST(RunRequest, KeepsTheChoices) {
  const RunChoices choices{.only = {"lr=1"}, .snapshot = true, .detaches = true};
  EXPECT_EQ(accepted({.job_file = "a.yaml", .choices = choices}).choices, choices);
}

TEST(RunRequest, RefusesResumeWithNewBeforeAllElse) {
  TypedRun typed = typed_command();
  typed.job_file = "a.yaml";
  typed.resumes = true;
  typed.is_new = true;
  EXPECT_EQ(refused(typed),
            "--resume and --new cannot be combined: --resume continues a run, --new starts another "
            "one");
}

TEST(RunRequest, RefusesAJobFileWithACommand) {
  TypedRun typed = typed_command();
  typed.job_file = "a.yaml";
  EXPECT_EQ(refused(typed),
            "the job file 'a.yaml' and a command cannot be combined; leave out one of them");
  typed.job_file = "B=2";
  EXPECT_EQ(refused(typed),
            "the job file 'B=2' and a command cannot be combined; leave out one of them, or put a "
            "value with blanks in quotes");
}

TEST(RunRequest, RefusesOptionsOfACommandWithAJobFile) {
  EXPECT_EQ(refused({.job_file = "a.yaml", .command = {.first_option = "--cpus"}}),
            "--cpus needs a command after '--', as in 'trainyard run --cpus ... -- python3 "
            "train.py'; in a job file it is a key");
}

TEST(RunRequest, RefusesOptionsOfACommandWithNothing) {
  EXPECT_THAT(refused({.command = {.first_option = "--name"}}),
              HasSubstr("--name needs a command after '--'"));
}

TEST(RunRequest, ShowsThePositionOfAProgramTypedAsTheJobFile) {
  EXPECT_EQ(
      refused({.job_file = "fit.py", .command = {.first_option = "--cpus"}}),
      "--cpus needs a command after '--', as in 'trainyard run --cpus ... -- python3 fit.py'");
  EXPECT_EQ(refused({.job_file = "my tool", .command = {.first_option = "--cpus"}}),
            "--cpus needs a command after '--', as in \"trainyard run --cpus ... -- 'my tool'\"");
}

TEST(RunRequest, NamesTheSubcommandOfACommandsOptions) {
  EXPECT_EQ(wrong_with_command({.first_option = "--device"}, "fit.py", "submit"),
            "--device needs a command after '--', as in 'trainyard submit --device ... -- python3 "
            "fit.py'");
  EXPECT_EQ(wrong_with_command({.is_there = true, .first_option = "--device"}, "", "submit"), "");
  EXPECT_EQ(wrong_with_command({}, "a.yaml", "submit"), "");
}

TEST(RunRequest, RefusesToResumeACommandAndNamesItsRun) {
  const auto message = [](const std::string& command) {
    return "--resume cannot be combined with a command: to continue the run of a command, type " +
           command;
  };
  TypedRun typed = typed_command();
  typed.resumes = true;
  EXPECT_EQ(refused(typed), message("'trainyard run --resume RUN'"));
  typed.command.name = "one";
  EXPECT_EQ(refused(typed), message("'trainyard run --resume runs/one'"));
  typed.run_directory = "there";
  EXPECT_EQ(refused(typed), message("'trainyard run --resume there'"));
  typed.resume = "runs/a b";
  EXPECT_EQ(refused(typed), message("\"trainyard run --resume 'runs/a b'\""));
}

TEST(RunRequest, RefusesNewAndOnlyWithACommandAndNamesTheTypedOne) {
  TypedRun typed = typed_command();
  typed.is_new = true;
  EXPECT_EQ(refused(typed),
            "--new has no effect with a command, which always starts another run: leave it out");
  typed.is_new = false;
  typed.choices.only = {"lr=1"};
  EXPECT_EQ(refused(typed),
            "--only cannot be combined with a command, as it selects tasks of a job file; to run "
            "fewer tasks, give --matrix fewer values");
}

TEST(RunRequest, RefusesADirectoryAsTheJobFile) {
  EXPECT_EQ(refused({.job_file = "here"},
                    {.job_file = PathKind::Directory, .directory_message = "'here' has a.yaml"}),
            "'here' has a.yaml");
  EXPECT_EQ(refused({.job_file = "runs/a b"}, {.job_file = PathKind::RunDirectory}),
            "'runs/a b' is a directory, not a job file; \"trainyard run --resume 'runs/a b'\" "
            "continues the run in it");
}

TEST(RunRequest, RefusesOnlyWithResumeAndNamesTheCommandThatRetries) {
  const std::string begin =
      "--only cannot be combined with --resume; to run tasks of a run that has started, use ";
  EXPECT_EQ(refused({.job_file = "a.yaml", .resumes = true, .choices = {.only = {"lr=1", "b c"}}}),
            begin + "\"trainyard retry a.yaml lr=1 'b c'\"");
  EXPECT_EQ(
      refused(
          {.job_file = "a.yaml", .resumes = true, .resume = "46", .choices = {.only = {"lr=1"}}}),
      begin + "'trainyard retry 46 lr=1'");
}

TEST(RunRequest, RefusesSnapshotWithResume) {
  EXPECT_EQ(refused({.job_file = "a.yaml", .resumes = true, .choices = {.snapshot = true}}),
            "--snapshot cannot be combined with --resume: a resumed run keeps its copy of the "
            "code, or uses the work tree");
}

TEST(RunRequest, RefusesToRerunChangedTasksOfANewRun) {
  EXPECT_EQ(refused({.job_file = "a.yaml", .choices = {.reruns_changed = true}}),
            "--rerun-changed needs --resume: a new run runs all tasks");
}

TEST(RunRequest, RefusesTwoDirectoriesOfAResumedRun) {
  EXPECT_EQ(refused({.resumes = true, .resume = "46", .run_directory = "runs/a"}),
            "--run-dir cannot be combined with the run '46' after --resume: leave out one of them");
}

TEST(RunRequest, RefusesOptionsWithoutEffect) {
  TypedRun typed = typed_command();
  typed.command.has_condition = true;
  EXPECT_EQ(refused(typed), "--if has no effect without --needs, which 'trainyard submit' has");
  EXPECT_EQ(refused({.job_file = "a.yaml", .prints_json = true, .choices = {.detaches = true}}),
            "--detach and --json cannot be combined: use 'trainyard status RUN --json' later");
}

TEST(RunRequest, RefusesDetachUntilInputCloses) {
  EXPECT_EQ(
      refused({.job_file = "a.yaml", .choices = {.detaches = true, .until_input_closes = true}},
              {.input_can_close = false}),
      "--detach and --until-stdin-closes cannot be combined: --detach closes standard input");
}

TEST(RunRequest, RefusesToWaitForAnInputThatCannotClose) {
  EXPECT_EQ(refused({.job_file = "a.yaml", .choices = {.until_input_closes = true}},
                    {.input_can_close = false}),
            "--until-stdin-closes needs a pipe or a socket as standard input");
  EXPECT_EQ(refused({.job_file = "a.yaml"}, {.input_can_close = false}), "");
}

TEST(RunRequest, RefusesNothingToRun) {
  EXPECT_EQ(refused({}),
            "no job file given: use 'trainyard run sweep.yaml', 'trainyard run -- python3 "
            "train.py' or 'trainyard run sweep.yaml --resume'");
  EXPECT_THAT(refused({.run_directory = "runs/a"}), HasSubstr("no job file given"));
  EXPECT_THAT(refused({.is_new = true}), HasSubstr("no job file given"));
}

TEST(RunRequest, RefusesToResumeNoRun) {
  EXPECT_EQ(refused({.resumes = true}),
            "no run given: use 'trainyard run sweep.yaml --resume' or 'trainyard run --resume "
            "runs/sweep'");
}

TEST(RunRequest, NamesTheFirstOfSeveralReasons) {
  // Each is refused alone as well; a user sees the one that decides what the others mean.
  EXPECT_THAT(refused({.job_file = "here",
                       .resumes = true,
                       .resume = "46",
                       .run_directory = "runs/a",
                       .choices = {.only = {"lr=1"}, .snapshot = true}},
                      {.job_file = PathKind::RunDirectory}),
              HasSubstr("is a directory, not a job file"));
  EXPECT_THAT(refused({.resumes = true,
                       .resume = "46",
                       .run_directory = "runs/a",
                       .choices = {.only = {"lr=1"}, .snapshot = true}}),
              HasSubstr("--only cannot be combined with --resume"));
  EXPECT_THAT(refused({.resumes = true,
                       .resume = "46",
                       .run_directory = "runs/a",
                       .choices = {.snapshot = true, .until_input_closes = true}},
                      {.input_can_close = false}),
              HasSubstr("--snapshot cannot be combined with --resume"));
  EXPECT_THAT(refused({.resumes = true,
                       .resume = "46",
                       .run_directory = "runs/a",
                       .choices = {.until_input_closes = true}},
                      {.input_can_close = false}),
              HasSubstr("--run-dir cannot be combined with"));
}

TEST(RunRequest, IsCompleteOnceAJobFileAndADirectoryAreFound) {
  RunRequest request = accepted({.resumes = true, .resume = "46"});
  request.job = JobFile{"/home/me/sweep.yaml"};
  request.place = RunInDirectory{"/home/me/runs/sweep"};
  EXPECT_EQ(request.job_file(), "/home/me/sweep.yaml");
  EXPECT_EQ(request.directory(), "/home/me/runs/sweep");
  EXPECT_TRUE(request.resumes());
}

TEST(SubmitWords, AreAJobFileOrACommandForTheQueueOrARun) {
  const TestFacts facts({});
  EXPECT_EQ(wrong_with_submit({.job_file = "sweep.yaml"}, facts), "");
  EXPECT_EQ(wrong_with_submit({.command = {.is_there = true}}, facts), "");
  EXPECT_EQ(wrong_with_submit({.job_file = "sweep.yaml", .run_directory = "46"}, facts), "");
  EXPECT_EQ(wrong_with_submit({}, facts),
            "no job file or command given: use 'trainyard submit sweep.yaml' or 'trainyard submit "
            "-- python3 train.py'");
}

TEST(SubmitWords, BeginWithTheJobFile) {
  TestFacts facts({});
  const TypedSubmit typed{.job_file = "base", .run_directory = "job.yaml"};
  EXPECT_EQ(wrong_with_submit(typed, facts),
            "the job file comes first: trainyard submit job.yaml base");
  facts.files = {"/here/base"};
  EXPECT_EQ(wrong_with_submit(typed, facts), "") << "a job file may have any name";
}

TEST(SubmitWords, HaveOneJobFile) {
  const TypedSubmit typed{.job_file = "job.yaml", .run_directory = "my job.yaml"};
  TestFacts facts({});
  const std::string told =
      "unexpected argument 'my job.yaml'; one job file at a time: for job in job.yaml 'my "
      "job.yaml'; do trainyard submit \"$job\"; done";
  EXPECT_EQ(wrong_with_submit(typed, facts), told);
  facts.files = {"/here/job.yaml", "/here/my job.yaml"};
  EXPECT_EQ(wrong_with_submit(typed, facts), told);
  EXPECT_EQ(wrong_with_submit(typed, TestFacts({running_run(1, "my job.yaml")})), "")
      << "the directory of a run may have such a name";
}

TEST(SubmitWords, AreNotTheCommandItself) {
  const TypedSubmit typed{.job_file = "python3", .run_directory = "train.py", .is_runner = true};
  TestFacts facts({});
  EXPECT_EQ(
      wrong_with_submit(typed, facts),
      "unexpected argument 'train.py'; a command goes after '--': trainyard submit -- python3 "
      "train.py");
  facts.files = {"/here/python3"};
  EXPECT_EQ(wrong_with_submit(typed, facts), "");
}

TEST(SubmitWords, AreNotADirectory) {
  const std::string why = "'here' is a directory";
  EXPECT_EQ(wrong_with_submit({.job_file = "here", .directory_message = why}, TestFacts({})), why);
  EXPECT_EQ(
      wrong_with_submit(
          {.job_file = "here", .run_directory = "46", .snapshot = true, .directory_message = why},
          TestFacts({})),
      why);
}

TEST(SubmitWords, OfACommandAreRefusedWithoutIt) {
  const TestFacts facts({});
  EXPECT_EQ(wrong_with_submit({.job_file = "job.yaml", .command = {.is_there = true}}, facts),
            "the job file 'job.yaml' and a command cannot be combined; leave out one of them");
  EXPECT_THAT(
      wrong_with_submit({.job_file = "job.yaml", .command = {.first_option = "--cpus"}}, facts),
      HasSubstr("--cpus needs a command after '--', as in 'trainyard submit --cpus ... "));
  EXPECT_EQ(wrong_with_submit({.command = {.is_there = true, .has_condition = true}}, facts),
            "--if has no effect without --needs RUN");
}

TEST(SubmitWords, OfTheQueueAreRefusedForARun) {
  const auto refused_for_run = [](TypedSubmit typed) {
    typed.job_file = "job.yaml";
    EXPECT_EQ(wrong_with_submit(typed, TestFacts({})), "");
    typed.run_directory = "46";
    return wrong_with_submit(typed, TestFacts({}));
  };
  EXPECT_EQ(refused_for_run({.needs_runs = true}),
            "--needs cannot be used when adding to a run; use 'needs' in the job file");
  EXPECT_EQ(refused_for_run({.snapshot = true}),
            "--snapshot cannot be used when adding to a run: its tasks use the work tree");
  EXPECT_EQ(refused_for_run({.has_config = true}),
            "--config cannot be used when adding to a run, which has its own configuration");
}

}  // namespace
}  // namespace trainyard::app
