#include "job/program_as_job.h"

#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/test_job.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;

LoadOptions file_named(const std::string& name, const std::string& directory = "/job") {
  return {.job_file = name, .current_directory = directory, .starts_with = "run"};
}

TEST(ProgramAsJob, SaysHowToRunAScript) {
  const auto how = [](const std::string& command) {
    return ElementsAre(": is a program, not a job file; write it after '--': trainyard run -- " +
                       command);
  };
  const auto mistakes = [](const std::string& name, const std::string& text) {
    std::vector<std::string> all = mistakes_of(text, file_named(name));
    for (std::string& each : all) each.erase(0, name.size());
    return all;
  };
  EXPECT_THAT(mistakes("fit.py", "print(f\"a: {1}\")\n"), how("python3 fit.py"));
  EXPECT_THAT(mistakes("a b/fit.py", "x = 1\ny: int = 2\n"), how("python3 'a b/fit.py'"));
  EXPECT_THAT(mistakes("fit.sh", "echo hi\n"), how("bash fit.sh"));
  const auto configuration = Job::configuration_of("a: b: c\n", file_named("fit.py"));
  ASSERT_FALSE(configuration);
  EXPECT_THAT(text::to_text(configuration.error().front()),
              "fit.py: is a program, not a job file; write it after '--': trainyard run -- "
              "python3 fit.py");
}

TEST(ProgramAsJob, SaysOnlyWhatItIsToACommandThatStartsNothing) {
  LoadOptions options = file_named("fit.py");
  options.starts_with.clear();
  EXPECT_THAT(mistakes_of("x = 1\n", options), ElementsAre("fit.py: is a program, not a job file"));
}

TEST(ProgramAsJob, SaysHowToSubmitAScript) {
  LoadOptions options = file_named("fit.py");
  options.starts_with = "submit";
  EXPECT_THAT(mistakes_of("x = 1\n", options),
              ElementsAre("fit.py: is a program, not a job file; write it after '--': trainyard "
                          "submit -- python3 fit.py"));
}

TEST(ProgramAsJob, SaysHowToRunASlurmScriptThatIsNamedAsAJobFile) {
  const std::string script = "#!/bin/bash\n#SBATCH --mem=4G\npython3 fit.py\n";
  EXPECT_THAT(mistakes_of(script, file_named("fit.yaml")),
              ElementsAre("fit.yaml: is a program, not a job file; write it after '--': trainyard "
                          "run -- bash fit.yaml"));
  EXPECT_THAT(mistakes_of("#SBATCH --mem=4G\ngroups: 1\n", file_named("fit.yaml")),
              ElementsAre(testing::StartsWith("fit.yaml:2:9: 'groups' must be a list")));
}

TEST(ProgramAsJob, HasNoRuns) {
  const sys::TemporaryDirectory directory;
  directory.write("fit.py", "print(1)\n");
  const auto runs = Job::runs_of(file_named("fit.py", directory.path()));
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().message,
            "fit.py: is a program, not a job file; write it after '--': trainyard run -- "
            "python3 fit.py");
}

TEST(ProgramAsJob, SaysHowToRunAnExecutableFile) {
  const sys::TemporaryDirectory directory;
  for (const std::string name : {"fit", "text", "sweep.yaml"}) directory.write(name, "x = 1\n");
  for (const std::string name : {"fit", "sweep.yaml"}) {
    std::filesystem::permissions(directory.path() + "/" + name, std::filesystem::perms::owner_all);
  }
  const auto mistake = [&](const std::string& name) {
    return mistakes_of("x = 1\n", file_named(name, directory.path())).front();
  };
  EXPECT_EQ(mistake("fit"),
            "fit: is a program, not a job file; write it after '--': trainyard run -- ./fit");
  for (const std::string name : {"text", "sweep.yaml"}) {
    EXPECT_EQ(
        mistake(name),
        name + ":1:1: a job file must have the key 'groups:', with the list of groups below it");
  }
  EXPECT_EQ(mistakes_of("groups: 1\n", file_named("fit", directory.path())),
            mistakes_of("groups: 1\n", file_named("fit")));
}

}  // namespace
}  // namespace trainyard::job
