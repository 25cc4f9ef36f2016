// Where a run has its machines, and how long they may be unheard.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/duration_text.h"
#include "settings/configuration.h"
#include "settings/machine_entries.h"
#include "sys/test_directory.h"
#include "text/mistake.h"

namespace trainyard::settings {
namespace {

using testing::HasSubstr;

/// As a layer after the file sees them.
std::string machines_of(const ConfigurationSources& sources) {
  const auto configuration = load_configuration(sources);
  return configuration ? to_text(machines(*configuration))
                       : text::to_text(configuration.error().front());
}

TEST(MachineSettings, NameTheMachinesWhereTasksRun) {
  const auto said = [](const std::string& names) {
    return machines_of({.settings = {"machines=" + names}, .current_directory = "/"});
  };
  EXPECT_EQ(machines_of({.current_directory = "/"}), "local");
  EXPECT_EQ(said("lab1, me@lab2.uni.org local"), "lab1, me@lab2.uni.org, local");
  EXPECT_EQ(said("ssh://me@[::1]:2222"), "ssh://me@[::1]:2222");
  EXPECT_EQ(said("[{ssh: lab1, cpus: 8}]"), R"([{"ssh":"lab1","cpus":"8"}])");
  EXPECT_THAT(said(" , "), HasSubstr("no machine is given"));
  EXPECT_THAT(said("lab1;reboot"), HasSubstr("is not a valid host name"));
}

TEST(MachineSettings, OfAFileAreMeantByTheirNamesInLaterLayers) {
  const sys::TemporaryDirectory directory;
  ConfigurationSources sources{.current_directory = directory.path()};
  directory.write("trainyard.yaml",
                  "machines:\n  - local\n  - {ssh: lab1, cpus: 8, gpus: [0, 1]}\n");
  const std::string lab1 = R"({"ssh":"lab1","cpus":"8","gpus":"0,1"})";
  EXPECT_EQ(machines_of(sources), R"(["local",)" + lab1 + "]");
  sources.settings = {"machines=lab1,lab2"};
  EXPECT_EQ(machines_of(sources), "[" + lab1 + R"(,"lab2"])");
  directory.write("trainyard.yaml", "machines:\n  - {ssh: lab1, cpu: 8}\n");
  EXPECT_EQ(machines_of(sources),
            "trainyard.yaml:2:17: machines: unknown key 'cpu' (did you mean 'cpus'?)");
}

TEST(MachineSettings, AreShownAsTheyAreReadAgain) {
  const std::string said = "machines=[{ssh: lab1, setup: \"echo '#1'\"}]";
  const auto configuration =
      load_configuration({.settings = {said}, .current_directory = "/"}).value();
  const sys::TemporaryDirectory directory;
  directory.write("trainyard.yaml", show(configuration));
  EXPECT_EQ(machines_of({.current_directory = directory.path()}),
            configuration.text(Setting::Machines));
}

TEST(MachineSettings, KeepALeaseToWhatCanBeKept) {
  const auto lease_of = [](const std::string& said) {
    ConfigurationSources sources{.current_directory = "/"};
    sources.settings = {"agent.lease=" + said};
    const auto configuration = load_configuration(sources);
    return configuration ? trainyard::to_text(configuration->duration(Setting::AgentLease))
                         : configuration.error().front().message;
  };
  EXPECT_EQ(lease_of("5m"), "5m");
  EXPECT_EQ(lease_of("90"), "1m30s");
  EXPECT_THAT(lease_of("0.5"), HasSubstr("must be from 1 second to 1 day, not '0.5'"));
  EXPECT_THAT(lease_of("2d"), HasSubstr("must be from 1 second to 1 day"));
}

}  // namespace
}  // namespace trainyard::settings
