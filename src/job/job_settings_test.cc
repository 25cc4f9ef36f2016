// The settings that are in force for a job: defaults, the settings file, the job file, --set.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "settings/configuration.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(SettingsOfAJob, ComeInLayersAndSayFromWhere) {
  const sys::TemporaryDirectory directory;
  directory.write("trainyard.yaml",
                  "scheduler:\n  max-process: 1\n  max-waiting: 1\n  load-nretry: 1\n");
  const LoadOptions options{.job_file = "sweep.yaml",
                            .settings = {"scheduler.max-process=3", "gpu-priority.reverse=true"},
                            .current_directory = directory.path()};
  const Job job = job_of(
      "config:\n  scheduler: {max-process: 2, max-waiting: 2}\n"
      "groups: [{tasks: [{command: ./t}]}]\n",
      options);
  const settings::Configuration& in_force = job.configuration();
  EXPECT_EQ(in_force.count(settings::Setting::SchedulerTrainRetries), 3);
  EXPECT_EQ(in_force.origin(settings::Setting::SchedulerTrainRetries), "default");
  EXPECT_EQ(in_force.count(settings::Setting::SchedulerLoadRetries), 1);
  EXPECT_EQ(in_force.origin(settings::Setting::SchedulerLoadRetries), "trainyard.yaml:4");
  EXPECT_EQ(in_force.count(settings::Setting::SchedulerMaxWaiting), 2);
  EXPECT_EQ(in_force.origin(settings::Setting::SchedulerMaxWaiting), "sweep.yaml:2");
  EXPECT_EQ(in_force.count(settings::Setting::SchedulerMaxProcess), 3);
  EXPECT_EQ(in_force.origin(settings::Setting::SchedulerMaxProcess), "--set");
  EXPECT_TRUE(in_force.flag(settings::Setting::GpuPriorityReverse));
  EXPECT_EQ(job.policy().processes_max, 3);
}

TEST(SettingsOfAJob, AreNotKeysOfTasks) {
  LoadOptions options = in_job_directory();
  options.settings = {"memory=4GB", "task.memory=4GB", "memry=4GB", "command=x"};
  EXPECT_THAT(mistakes_of("groups: [{tasks: [{command: x}]}]\n", options),
              ElementsAre("--set memory=4GB: 'memory' is a key of tasks, not a setting; use "
                          "'--memory' with a command, or 'memory' in a job file",
                          "--set task.memory=4GB: 'memory' is a key of tasks, not a setting; use "
                          "'--memory' with a command, or 'memory' in a job file",
                          "--set memry=4GB: unknown key 'memry'; remove it, and 'trainyard config "
                          "show' lists the settings",
                          "--set command=x: unknown key 'command'; remove it, and 'trainyard "
                          "config show' lists the settings"));
}

TEST(SettingsOfAJob, AreNotKeysOfTasksInAFileEither) {
  const sys::TemporaryDirectory directory;
  directory.write("trainyard.yaml", "gpus: 1\ntask: {memory: 3GB}\n");
  LoadOptions options = in_job_directory();
  options.current_directory = directory.path();
  EXPECT_THAT(mistakes_of("config: {memory: 3GB}\ngroups: [{tasks: [{command: x}]}]\n", options),
              ElementsAre("trainyard.yaml:1:1: 'gpus' is a key of tasks, not a setting; use "
                          "'--gpus' with a command, or 'gpus' in a job file",
                          "trainyard.yaml:2:8: 'memory' is a key of tasks, not a setting; use "
                          "'--memory' with a command, or 'memory' in a job file",
                          "sweep.yaml:1:10: 'memory' is a key of tasks, not a setting; use "
                          "'--memory' with a command, or 'memory' in a job file"));
}

TEST(SettingsOfAJob, AreNamedAsKeysAlsoNextToTheOptionsOfACommand) {
  const sys::TemporaryDirectory directory;
  directory.write("trainyard.yaml", "gpus: 1\n");
  LoadOptions options = in_job_directory();
  options.current_directory = directory.path();
  options.settings = {"memory=3GB"};
  options.line_names = {"the command", "--memory"};
  EXPECT_THAT(
      mistakes_of("groups: [{tasks: [{command: x}],\nmemory: 3XB}]\n", options),
      UnorderedElementsAre("trainyard.yaml:1:1: 'gpus' is a key of tasks, not a setting; use "
                           "'--gpus' with a command, or 'gpus' in a job file",
                           StartsWith("--memory: "),
                           "--set memory=3GB: 'memory' is a key of tasks, not a setting; use "
                           "'--memory' with a command, or 'memory' in a job file"));
}

TEST(SettingsOfAJob, SayWhereItRuns) {
  const auto machines_in = [](const std::string& lines, LoadOptions options = in_job_directory()) {
    const std::string text = lines + "groups: [{tasks: [{command: x}]}]\n";
    const auto configuration = Job::configuration_of(text, options);
    const std::vector<std::string> mistakes = mistakes_of(text, options);
    return configuration ? configuration->text(settings::Setting::Machines) : mistakes.at(0);
  };
  EXPECT_EQ(machines_in("machines: lab1, local\n"), "lab1, local");
  EXPECT_EQ(machines_in("machines:\n- {ssh: lab1, cpus: 8}\n"), R"([{"ssh":"lab1","cpus":"8"}])");
  EXPECT_EQ(machines_in("config: {machines: lab1}\n"), "lab1");
  EXPECT_EQ(machines_in("machines:\n- {ssh: lab1, cpu: 8}\n"),
            "sweep.yaml:2:15: machines: unknown key 'cpu' (did you mean 'cpus'?)");
  EXPECT_EQ(machines_in("config: {machines: lab1}\nmachines: lab2\n"),
            "sweep.yaml:2:11: machines: is also set under 'config'");
  LoadOptions options = in_job_directory();
  options.settings = {"machines=lab1"};
  EXPECT_EQ(machines_in("machines: [local, {ssh: lab1, gpus: none}]\n", options),
            R"([{"ssh":"lab1","gpus":"none"}])");
}

}  // namespace
}  // namespace trainyard::job
