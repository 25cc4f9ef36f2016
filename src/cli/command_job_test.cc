// Job files that are made of a command line.
#include "cli/command_job.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The job file of one --matrix with a command, or the reason why there is none.
std::string job_of_matrix(const std::string& matrix) {
  CommandWords words;
  words.command = {"true"};
  words.matrix = {matrix};
  const auto job = job_of_command(words, "/work");
  return job ? job->text : job.error().message;
}

std::string why_not(const std::vector<std::string>& command) {
  const auto job = job_of_command({.command = command}, "/work");
  return job ? std::string() : job.error().message;
}

TEST(CommandWords, NamesTheFirstOptionThatOnlyACommandHas) {
  CommandWords words;
  EXPECT_FALSE(words.typed().is_there);
  EXPECT_EQ(words.typed().first_option, "");
  words.keys.at(std::to_underlying(job::TaskKey::Cpus)) = {"2"};
  EXPECT_EQ(words.typed().first_option, "--cpus");
  words.matrix = {"lr=1"};
  EXPECT_EQ(words.typed().first_option, "--matrix");
  words.name = "one";
  EXPECT_EQ(words.typed().first_option, "--name");
  EXPECT_EQ(words.typed().name, "one");
}

TEST(CommandWords, AreACommandWithWordsOrWithAFileOfLines) {
  CommandWords words;
  words.command = {"true"};
  EXPECT_TRUE(words.typed().is_there);
  words.command = {};
  words.each_line = "-";
  EXPECT_TRUE(words.typed().is_there);
}

TEST(CommandJob, IsNotMadeOfAJobFile) {
  EXPECT_EQ(why_not({"sweep.yaml"}),
            "'sweep.yaml' is a job file, not a command: trainyard run sweep.yaml");
  EXPECT_EQ(why_not({"-j.yaml"}),
            "'-j.yaml' is a job file, not a command: trainyard run ./-j.yaml");
  const auto submitted = job_of_command({.command = {"./my sweep.yml"}, .submits = true}, "/work");
  EXPECT_TRUE(submitted.has_value()) << "bash runs a single word with blanks";
  EXPECT_EQ(why_not({"cat", "sweep.yaml"}), "");
}

TEST(CommandJob, HasTheValuesAndRangesOfAMatrix) {
  EXPECT_THAT(job_of_matrix("lr=1e-3,x y"), HasSubstr("\n      lr: [\"1e-3\", \"x y\"]\n"));
  EXPECT_THAT(job_of_matrix("seed=0..3"), HasSubstr("\n      seed: 0..3\n"));
  EXPECT_THAT(job_of_matrix("seed=0..3,7"), HasSubstr("\n      seed: [0..3, \"7\"]\n"));
}

TEST(CommandJob, TrimsBlanksAroundTheKeyAndTheValuesOfAMatrix) {
  EXPECT_THAT(job_of_matrix("lr=1e-3, x y ,\t2"),
              HasSubstr("\n      lr: [\"1e-3\", \"x y\", \"2\"]\n"));
  EXPECT_THAT(job_of_matrix(" seed = 0..3 "), HasSubstr("\n      seed: 0..3\n"));
}

TEST(CommandJob, RefusesAMatrixWithoutAKeyOrValues) {
  for (const char* const typed : {"lr", "lr=", "lr= ", "=1", " =1", ""}) {
    EXPECT_EQ(job_of_matrix(typed), std::string("--matrix ") + typed +
                                        ": must be a key and its values, as in lr=1e-3,3e-4");
  }
}

TEST(CommandJob, SaysWhatARangeOfAMatrixIs) {
  EXPECT_EQ(job_of_matrix("lr=1e-3..1e-1"),
            "--matrix lr=1e-3..1e-1: must be a range of whole numbers, as in seed=0..3, or values "
            "with commas, as in lr=1e-3,3e-4");
  EXPECT_EQ(job_of_matrix("lr=range(3)"),
            "--matrix lr=range(3): must be a range of whole numbers, as in seed=0..3, or values "
            "with commas, as in lr=1e-3,3e-4");
  EXPECT_EQ(job_of_matrix("seed=0-3"), "--matrix seed=0-3: must be a range, as in seed=0..3");
  for (const char* const value : {"2024-12", "1e-3", "-3", "a-b", "0-", "0-3,7-9"}) {
    EXPECT_THAT(job_of_matrix(std::string("x=") + value), HasSubstr("\n      x: [\"")) << value;
  }
}

TEST(CommandJob, RefusesAnEmptyValueOfAMatrixUnlessItIsTwoQuotes) {
  for (const char* const typed : {"lr=0.1,0.2,", "lr=0.1, ,0.2", "lr=,0.1", "lr=,"}) {
    EXPECT_EQ(job_of_matrix(typed),
              std::string("--matrix ") + typed + ": has an empty value; write one as ''");
  }
  EXPECT_THAT(job_of_matrix("flag='',--amp"), HasSubstr(R"(flag: ["", "--amp"])"));
  EXPECT_THAT(job_of_matrix("flag=--amp,\"\""), HasSubstr(R"(flag: ["--amp", ""])"));
}

TEST(CommandJob, RefusesNumbersOfAMatrixThatHaveBlanksBetween) {
  EXPECT_EQ(job_of_matrix("lr=0.1  1e-2"),
            "--matrix lr=0.1  1e-2: must be values with commas, as in lr=0.1,1e-2");
  EXPECT_THAT(job_of_matrix("x=cosine 10"), HasSubstr(R"(x: ["cosine 10"])"));
  EXPECT_THAT(job_of_matrix("x=64 64,32 32"), HasSubstr(R"(x: ["64 64", "32 32"])"));
}

TEST(CommandJob, AdvisesToLeaveOutTheGpuOptionsThatWereTyped) {
  const auto advice = [](const std::vector<job::TaskKey>& typed) {
    CommandWords words{.command = {"true"}};
    for (const job::TaskKey key : typed) words.keys.at(std::to_underlying(key)) = {"x"};
    return words.cpus_advice();
  };
  EXPECT_EQ(advice({job::TaskKey::Gpus, job::TaskKey::Memory}),
            "to run on the CPUs, leave out --gpus");
  EXPECT_EQ(advice({job::TaskKey::Device}), "to run on the CPUs, leave out --device");
  EXPECT_EQ(advice({job::TaskKey::GpuMemory, job::TaskKey::Gpus}),
            "to run on the CPUs, leave out --gpus and --gpu-memory");
  EXPECT_EQ(advice({job::TaskKey::GpuMemory, job::TaskKey::Gpus, job::TaskKey::Device}),
            "to run on the CPUs, leave out --gpus, --gpu-memory and --device");
  EXPECT_EQ(advice({}), "");
  EXPECT_EQ(CommandWords{}.cpus_advice(),
            "to run on the CPUs, remove 'gpus', 'gpu-memory' and 'device' from the job file")
      << "without a command there is a job file";
}

TEST(CommandJob, RefusesAMatrixInTheBracketsOfAJobFile) {
  EXPECT_EQ(job_of_matrix("lr=[0.1,0.2]"),
            "--matrix lr=[0.1,0.2]: must be values without brackets, as in lr=0.1,0.2");
  EXPECT_EQ(job_of_matrix("lr=[0.1, 0.2,]"),
            "--matrix lr=[0.1, 0.2,]: must be values without brackets, as in lr=0.1,0.2");
  EXPECT_EQ(job_of_matrix("seed=[0..3]"),
            "--matrix seed=[0..3]: must be values without brackets, as in seed=0..3");
  EXPECT_EQ(job_of_matrix("lr=[1,2"),
            "--matrix lr=[1,2: must be values without brackets, as in lr=1,2");
}

TEST(CommandJob, RefusesAValueOfAMatrixThatACommaWouldCut) {
  EXPECT_EQ(job_of_matrix("layers=[64,64],[128]"),
            "--matrix layers=[64,64],[128]: a value cannot contain a comma, and '[64' has an open "
            "bracket; use a job file for such values");
  EXPECT_EQ(job_of_matrix("betas=(0.9,0.999)"),
            "--matrix betas=(0.9,0.999): a value cannot contain a comma, and '(0.9' has an open "
            "bracket; use a job file for such values");
  EXPECT_THAT(job_of_matrix("layers=[64],[128]"), HasSubstr(R"(layers: ["[64]", "[128]"])"));
  EXPECT_THAT(job_of_matrix("mark=("), HasSubstr(R"(mark: ["("])"));
}

TEST(CommandJob, WarnsOfAPlaceholderWithoutAMatrix) {
  const auto warning = [](const std::vector<std::string>& command,
                          const std::vector<std::string>& matrix = {}) {
    return fmt::format(
        "{}", fmt::join(CommandWords{.command = command, .matrix = matrix}.warnings(), "\n"));
  };
  const std::string of_lr = "'{lr}' stays as typed: there is no '--matrix lr=...'";
  EXPECT_EQ(warning({"python3", "fit.py", "--lr", "{lr}", "{seed}"}), of_lr);
  EXPECT_EQ(warning({"python3", "fit.py", "--out={}/{lr}"}), of_lr);
  EXPECT_EQ(warning({"python3 fit.py --lr {lr}"}), of_lr);
  EXPECT_EQ(warning({"python3", "fit.py", "--lr", "{lr}"}, {"lr=1,2"}), "");
  EXPECT_EQ(warning({"echo --lr ${lr}; awk '{print}' x; echo --a '{\"a\": {}}' --b {1} --c {"}),
            "");
}

TEST(CommandJob, WarnsOfAKeyAmongTheValuesOfAMatrix) {
  const auto warnings = [](const std::string& matrix) {
    return CommandWords{.command = {"./fit", "{lr}"}, .matrix = {matrix}}.warnings();
  };
  EXPECT_THAT(warnings("lr=1e-3,seed=1"),
              ElementsAre("--matrix lr=1e-3,seed=1: 'seed=1' is a value of 'lr'; for another key, "
                          "write --matrix lr=1e-3 --matrix seed=1"));
  EXPECT_THAT(
      warnings("lr=1,2, seed=3,4,opt=adam"),
      ElementsAre("--matrix lr=1,2, seed=3,4,opt=adam: 'seed=3' is a value of 'lr'; for "
                  "another key, write --matrix lr=1,2 --matrix seed=3,4 --matrix opt=adam"));
  for (const char* const meant : {"lr=1,2", "opt=a=1,b=2", "flag='',--amp=1", "x=1,=2", "lr"}) {
    EXPECT_THAT(warnings(meant), IsEmpty()) << meant;
  }
}

TEST(CommandJob, RefusesALauncherWithoutRanks) {
  CommandWords words{.command = {"./fit"}};
  words.keys.at(std::to_underlying(job::TaskKey::Launcher)) = {"mpirun"};
  const auto job = job_of_command(words, "/work");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message,
            "--launcher needs --ranks, the number of processes that it starts: write --ranks 2 "
            "--launcher mpirun");
  words.keys.at(std::to_underlying(job::TaskKey::Ranks)) = {"2"};
  EXPECT_TRUE(job_of_command(words, "/work"));
}

TEST(CommandJob, RefusesSeveralKeysOfAMatrixInOneWord) {
  EXPECT_EQ(job_of_matrix("a=1,2 b=3,4"),
            "--matrix a=1,2 b=3,4: must be one key and its values; write --matrix a=1,2 --matrix "
            "b=3,4");
  EXPECT_EQ(job_of_matrix("name=big net lr=1e-3  seed=0..3"),
            "--matrix name=big net lr=1e-3  seed=0..3: must be one key and its values; write "
            "--matrix 'name=big net' --matrix lr=1e-3 --matrix seed=0..3");
  EXPECT_THAT(job_of_matrix("opt=a=1 b=2,a=2 b=3"), HasSubstr(R"(opt: ["a=1 b=2", "a=2 b=3"])"));
  EXPECT_THAT(job_of_matrix("flag=-v --lr=1"), HasSubstr(R"(flag: ["-v --lr=1"])"));
}

TEST(CommandJob, RefusesAKeyAmongTheValuesOfAMatrixThatTheCommandUses) {
  const auto refused = [](const std::string& matrix) {
    const auto job =
        job_of_command({.command = {"./fit --lr {lr} --seed {seed}"}, .matrix = {matrix}}, "/work");
    return job ? std::string() : job.error().message;
  };
  EXPECT_EQ(refused("lr=1e-3,seed=1"),
            "--matrix lr=1e-3,seed=1: 'seed=1' is a value of 'lr'; for another key, write --matrix "
            "lr=1e-3 --matrix seed=1");
  EXPECT_EQ(refused("lr=1e-3,other=1"), "") << "where the job is read it is refused";
}

TEST(CommandJob, LeavesBracesThatAreNoValueOfAnOptionToTheProgram) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"awk", "{print}", "f"},
                                                  {"awk", "-F,", "{print}", "f"},
                                                  {"awk", "--assign=n=1", "{print}", "f"},
                                                  {"git", "log", "@{upstream}"},
                                                  {"python3", "-c", "print(f\"loss={loss}\")"}}) {
    EXPECT_THAT(CommandWords{.command = command}.warnings(), IsEmpty()) << command.back();
  }
}

TEST(CommandJob, WarnsOfItsOptionsAfterTheSeparator) {
  const auto warnings = [](const std::vector<std::string>& command, bool gpus = false) {
    CommandWords words{.command = command};
    if (gpus) words.keys.at(std::to_underlying(job::TaskKey::Gpus)) = {"1"};
    return words.warnings();
  };
  EXPECT_THAT(warnings({"echo", "hi", "--dry-run"}),
              ElementsAre("'--dry-run' after '--' belongs to the command; write it before '--'"));
  EXPECT_THAT(warnings({"./fit", "--gpus", "1", "--gpu-memory=4GB", "--gpus=2"}),
              ElementsAre("'--gpus' and '--gpu-memory' after '--' belong to the command; write "
                          "them before '--'"));
  EXPECT_THAT(warnings({"./fit", "--retries", "2", "--time-limit=1h"}),
              ElementsAre("'--retries' and '--time-limit' after '--' belong to the command; write "
                          "them before '--'"));
  EXPECT_THAT(warnings({"./fit", "--memory-limit", "hard", "--oom-retries=0"}),
              ElementsAre("'--memory-limit' and '--oom-retries' after '--' belong to the command; "
                          "write them before '--'"));
  EXPECT_THAT(warnings({"docker", "run", "--gpus", "all", "x"}, /*gpus=*/true), IsEmpty());
  const CommandWords with_matrix{.command = {"./fit", "--matrix", "a.npy"}, .matrix = {"lr=0.1"}};
  EXPECT_THAT(with_matrix.warnings(), IsEmpty()) << "it is before '--' as well";
  EXPECT_THAT(warnings({"./fit", "--resume", "--only", "a", "--memory", "x"}), IsEmpty());
  EXPECT_THAT(warnings({"bin/trainyard", "run", "a.yaml", "--dry-run"}), IsEmpty());
  const auto of_submit = [](const std::vector<std::string>& command) {
    return CommandWords{.command = command, .submits = true}.warnings();
  };
  EXPECT_THAT(of_submit({"echo", "hi", "--dry-run"}),
              ElementsAre("'--dry-run' after '--' belongs to the command; write it before '--' of "
                          "'trainyard run' ('submit' has no --dry-run)"));
  EXPECT_THAT(of_submit({"./fit", "--gpus", "1"}),
              ElementsAre("'--gpus' after '--' belongs to the command; write it before '--'"));
}

TEST(CommandJob, RefusesAMatrixAfterTheSeparatorWhoseKeyIsAPlaceholder) {
  const std::string why = "'--matrix' after '--' belongs to the command; write it before '--'";
  EXPECT_EQ(why_not({"./fit", "--lr", "{lr}", "--matrix", "lr=0.1,0.2"}), why);
  EXPECT_EQ(why_not({"./fit", "--lr={lr}", "--matrix=lr=0.1"}), why);
  EXPECT_EQ(why_not({"./fit", "--lr", "{lr}", "--matrix", "lr=0.1", "--dry-run"}),
            "'--matrix' and '--dry-run' after '--' belong to the command; write them before '--'");
  EXPECT_EQ(why_not({"./fit", "--matrix", "a=b", "--matrix", "--matrix"}), "");
  EXPECT_EQ(why_not({"./fit", "--lr", "{lr}", "--matrix-file", "lr=1"}), "") << "another option";
}

TEST(CommandJob, SaysInWhichDirectoryItsTasksRun) {
  const auto directory = [](const std::string& where) {
    return directory_of_command(job_of_command({.command = {"true"}}, where).value().text);
  };
  EXPECT_EQ(directory("/work"), "/work");
  EXPECT_EQ(directory("/a {b}/\"c\" {"), "/a {b}/\"c\" {");
  EXPECT_EQ(directory_of_command("groups: [{tasks: [{command: x}]}]\n"), std::nullopt);
  EXPECT_EQ(directory_of_command("x:\n    working-directory: data\n"), std::nullopt);
}

TEST(CommandJob, HasNoNameThatMeansAnotherRun) {
  const auto named = [](const std::string& name) {
    const auto job = job_of_command({.command = {"true"}, .name = name}, "/work");
    return job ? job->name : job.error().message;
  };
  EXPECT_EQ(named("5"),
            "--name: the name '5' means the run with this number; choose a name with a letter, "
            "such as 'run-5'");
  EXPECT_EQ(named("last"),
            "--name: the name 'last' means the last run; choose another, such as 'last-run'");
  EXPECT_EQ(named("*"),
            "--name: the name '*' is a pattern of tasks; choose one without '*', '?' and '['");
  EXPECT_EQ(named("last-5"), "last-5");
  EXPECT_EQ(job_of_command({.command = {"./5.sh"}}, "/work").value().name, "run-5");
}

TEST(CommandJob, RefusesACommandWithoutAProgram) {
  EXPECT_EQ(why_not({""}), "the command after '--' is empty");
  EXPECT_EQ(why_not({" \t"}), "the command after '--' is empty");
  EXPECT_EQ(why_not({"", "fit.py"}), "the command after '--' is empty");
  EXPECT_EQ(why_not({"python3", ""}), "") << "an argument may be empty";
}

TEST(CommandJob, TakesNoValueThatIsHiddenInACommandLineThatWasShown) {
  CommandWords words;
  words.command = {"true"};
  words.keys.at(std::to_underlying(job::TaskKey::Environment)) = {"KEY=******"};
  const auto job = job_of_command(words, "/work");
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().message, "--env KEY=******: type the value itself, which is hidden here");
}

}  // namespace
}  // namespace trainyard::cli
