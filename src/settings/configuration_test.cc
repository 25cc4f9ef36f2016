// fedflow's keys: their layers, their values, and what they come to on a machine.
#include "settings/configuration.h"

#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/check.h"
#include "base/duration_text.h"
#include "settings/configuration_reader.h"
#include "settings/periods.h"
#include "settings/setting_value.h"
#include "sys/test_directory.h"
#include "text/yaml_reader.h"

namespace trainyard::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Configurations : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) const { place_.write(name, text); }
  [[nodiscard]] ConfigurationSources here() const { return {.current_directory = directory_}; }

  sys::TemporaryDirectory place_;
  const std::string& directory_ = place_.path();
};

std::vector<std::string> mistakes_of(const ConfigurationSources& sources) {
  std::vector<std::string> lines;
  const auto configuration = load_configuration(sources);
  if (configuration) return lines;
  for (const text::Mistake& mistake : configuration.error())
    lines.push_back(text::to_text(mistake));
  return lines;
}

/// The mistakes in the text of a configuration file.
std::vector<std::string> mistakes_in(std::string_view text) {
  Configuration configuration;
  text::MistakeList mistakes;
  const text::YamlDocument document(text, "c.yaml");
  mistakes.add(document.mistakes());
  if (document.root() != nullptr) {
    apply_mapping(configuration, document, *document.root(), "/etc", mistakes);
  }
  std::vector<std::string> lines;
  for (const text::Mistake& mistake : std::move(mistakes).take())
    lines.push_back(text::to_text(mistake));
  return lines;
}

TEST_F(Configurations, AreTheDefaultsWithoutAFile) {
  const auto configuration = load_configuration(here());
  ASSERT_TRUE(configuration.has_value());
  EXPECT_EQ(show(*configuration),
            "workdir: auto   # default\n"
            "yard.state: auto   # default\n"
            "gpu-priority.strategy: IDLE-FIRST   # default\n"
            "gpu-priority.reverse: false   # default\n"
            "other-users: avoid   # default\n"
            "limits.gpus: auto   # default\n"
            "limits.hours: \"\"   # default\n"
            "limits.log: 10GB   # default\n"
            "journal.record: usual   # default\n"
            "machines: local   # default\n"
            "agent.lease: 1m   # default\n"
            "agent.ssh: ssh   # default\n"
            "agent.program: trainyard   # default\n"
            "agent.copy: false   # default\n"
            "agent.local: false   # default\n"
            "slurm.options: \"\"   # default\n"
            "slurm.allocations: 1   # default\n"
            "utilization-limit.cpu: 0.8   # default\n"
            "utilization-limit.memory: 1.0   # default\n"
            "utilization-limit.cuda-memory: 1.0   # default\n"
            "utilization-limit.gpu: 1.0   # default\n"
            "remain-limit.memory: auto   # default\n"
            "remain-limit.cuda-memory: auto   # default\n"
            "task.directory-grouping: true   # default\n"
            "task.allow-duplicate-id: true   # default\n"
            "scheduler.default-memory: auto   # default\n"
            "scheduler.default-cuda-memory: 2GB   # default\n"
            "scheduler.auto-adjust: true   # default\n"
            "scheduler.max-waiting: 0   # default\n"
            "scheduler.max-process: 0   # default\n"
            "scheduler.max-per-gpu: 0   # default\n"
            "scheduler.settle-time: 30s   # default\n"
            "scheduler.interval: 1m   # default\n"
            "scheduler.load-nretry: 3   # default\n"
            "scheduler.train-nretry: 3   # default\n"
            "scheduler.try-first-time: 2m   # default\n"
            "scheduler.machine-patience: 10m   # default\n"
            "smtp.enable: false   # default\n"
            "smtp.server-host: \"\"   # default\n"
            "smtp.server-port: 25   # default\n"
            "smtp.security: auto   # default\n"
            "smtp.ca-file: auto   # default\n"
            "smtp.user: \"\"   # default\n"
            "smtp.password: \"\"   # default\n"
            "smtp.receiver: \"\"   # default\n"
            "smtp.min-interval: 1h   # default\n"
            "smtp.max-numbers: 10   # default\n");
}

TEST_F(Configurations, TakePeriodsInProgramsThatAreNotBuiltForUsers) {
  ConfigurationSources sources = here();
  sources.settings = {"period.gpu-steady=200ms", "period.machine-end=2s",
                      "period.machine-end=300ms"};
  const auto configuration = load_configuration(sources);
  ASSERT_EQ(configuration.has_value(), kTakesPeriods);
  if (!kTakesPeriods) return;
  EXPECT_EQ(policy(*configuration, {}).gpu_steady_after, Duration{200});
  EXPECT_EQ(configuration->period(kMachineEnd, Duration{1}), Duration{300});
  EXPECT_EQ(Configuration().period(kMachineEnd, Duration{1}), Duration{1});
  sources.settings = {"period.gpu-steady=soon"};
  EXPECT_THAT(mistakes_of(sources), SizeIs(1));
}

TEST_F(Configurations, AreReadFromTheFileThatIsAskedFor) {
  write("config.yaml", "other-users: share\n");
  write("trainyard.yaml", "other-users: avoid\n");
  ConfigurationSources sources = here();
  sources.config_file = "config.yaml";
  const auto configuration = load_configuration(sources);
  ASSERT_TRUE(configuration.has_value());
  EXPECT_EQ(configuration->origin(Setting::OtherUsers), "config.yaml:1");
  EXPECT_EQ(configuration->text(Setting::OtherUsers), "share");
  sources.config_file = "nowhere.yaml";
  EXPECT_THAT(mistakes_of(sources), ElementsAre("--config nowhere.yaml: file not found"));
  ASSERT_EQ(::mkfifo((directory_ + "/pipe.yaml").c_str(), 0600), 0);
  sources.config_file = "pipe.yaml";
  EXPECT_THAT(mistakes_of(sources),
              ElementsAre("--config pipe.yaml: is a pipe, not a regular file"));
}

TEST_F(Configurations, AreNotReadFromAJobFile) {
  const std::string why =
      ": 'groups' is a key of a job file, and this file is read as the configuration; ";
  write("trainyard.yaml", "name: sweep\ngroups: [{name: g, tasks: [{command: 'true'}]}]\n");
  ConfigurationSources sources = here();
  EXPECT_THAT(mistakes_of(sources), ElementsAre("trainyard.yaml" + why + "rename the job file"));
  write("sweep.yaml", "groups: []\n");
  sources.config_file = "sweep.yaml";
  EXPECT_THAT(mistakes_of(sources),
              ElementsAre("sweep.yaml" + why + "'trainyard config show' lists the settings"));
}

TEST_F(Configurations, AreReadByNameAloneWhereEveryUserCanHaveMadeTheFile) {
  write("trainyard.yaml", "agent.ssh: something\n");
  ASSERT_EQ(::chmod(directory_.c_str(), 01777), 0);
  EXPECT_THAT(mistakes_of(here()),
              ElementsAre("trainyard.yaml: every user can create this file here, and its settings "
                          "may start programs; to read it, use '--config trainyard.yaml'"));
  ConfigurationSources sources = here();
  sources.config_file = "trainyard.yaml";
  EXPECT_THAT(mistakes_of(sources), IsEmpty());
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(mistakes_of(here()), IsEmpty());
}

TEST_F(Configurations, TakeEveryKeyOfFedflow) {
  write("config.yaml", R"(
workdir: 'res'
debug: false
gpu-priority:
  stratety: 'REMAIN-MEM'
  reverse: true
utilization-limit:
  cpu: 0.7
  memory: 0.8
  cuda-memory: 0.9
remain-limit:
  memory: '4GB'
  cuda-memory: '2GB'
task:
  directory-grouping: false
  allow-duplicate-id: false
scheduler:
  default-memory: '2GB'
  default-cuda-memory: '3GB'
  auto-adjust: true
  max-waiting: 10
  max-process: 20
  interval: 60  # seconds
  load-nretry: 1
  train-nretry: 2
smtp:
  enable: false
  server-host: 'smtp.example.com'
  server-port: 26
  user: 'user@smtp.example.com'
  password: 'open: sesame'
  receiver: 'user@smtp.example.com'
  min-interval: 360 # seconds
  max-numbers: 11
)");
  ConfigurationSources sources = here();
  sources.config_file = "config.yaml";
  const auto configuration = load_configuration(sources);
  ASSERT_TRUE(configuration.has_value());
  for (std::size_t i = 0; i < kSettingCount; ++i) {
    const auto setting = static_cast<Setting>(i);
    // Fedflow has none of these.
    constexpr std::string_view kOurs =
        " limits.gpus limits.hours limits.log journal.record machines agent.lease agent.ssh "
        "agent.program agent.copy agent.local slurm.options slurm.allocations other-users "
        "yard.state utilization-limit.gpu scheduler.max-per-gpu scheduler.settle-time "
        "scheduler.try-first-time scheduler.machine-patience smtp.security smtp.ca-file ";
    if (kOurs.contains(fmt::format(" {} ", settings()[i].key))) continue;
    EXPECT_THAT(configuration->origin(setting), HasSubstr("config.yaml:")) << settings()[i].key;
  }
  EXPECT_EQ(configuration->text(Setting::Workdir), directory_ + "/res");
  EXPECT_EQ(configuration->text(Setting::GpuPriorityStrategy), "REMAIN-MEM");
  EXPECT_EQ(configuration->size(Setting::RemainLimitMemory), gb(4));
  EXPECT_EQ(configuration->share(Setting::UtilizationLimitCudaMemory), 0.9);
  EXPECT_EQ(configuration->duration(Setting::SmtpMinInterval), Duration(360'000));
  EXPECT_EQ(configuration->text(Setting::SmtpPassword), "open: sesame");
  EXPECT_THAT(show(*configuration), HasSubstr("smtp.password: \"******\"   # config.yaml:31"));
  EXPECT_THAT(show(*configuration), Not(HasSubstr("sesame")));
  EXPECT_THAT(show_json(*configuration), Not(HasSubstr("sesame")));
}

TEST_F(Configurations, HaveLimitsOfGpusByTheHour) {
  write("trainyard.yaml",
        "limits:\n  gpus: 3\n  Mon-Fri 08:00-19:00: {gpus: 2}\n  Sun 22:00-06:00: {gpus: 0}\n");
  const auto configuration = load_configuration(here());
  ASSERT_TRUE(configuration.has_value());
  const model::GpuLimits limits = gpu_limits(*configuration);
  EXPECT_EQ(limits.usual, 3);
  EXPECT_EQ(model::to_text(limits.hours), "Mon,Tue,Wed,Thu,Fri 08:00-19:00=2; Sun 22:00-06:00=0");
  ConfigurationSources sources = here();
  sources.settings = {"limits.gpus=auto", "limits.hours=Sat 08:00-09:00=1"};
  const model::GpuLimits others = gpu_limits(load_configuration(sources).value());
  EXPECT_EQ(others.usual, std::nullopt);
  EXPECT_EQ(model::to_text(others.hours), "Sat 08:00-09:00=1");
  EXPECT_EQ(gpu_limits(Configuration()), model::GpuLimits{});
}

TEST_F(Configurations, SayWhenTheyLeaveNoMemoryForTasks) {
  ConfigurationSources sources = here();
  sources.settings = {"remain-limit.memory=20GB"};
  const Configuration configuration = load_configuration(sources).value();
  const auto none = no_memory_left(configuration, gb(20), "lab1");
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(text::to_text(*none),
            "--set remain-limit.memory=20GB: remain-limit.memory: '20GB' leaves no memory for "
            "tasks; lab1 has 20 GB");
  EXPECT_FALSE(no_memory_left(configuration, gb(21), "lab1").has_value());
  EXPECT_FALSE(no_memory_left(configuration, Bytes{}, "lab1").has_value()) << "not known yet";
  EXPECT_FALSE(no_memory_left(Configuration(), gb(20), "lab1").has_value());
}

TEST_F(Configurations, BoundALogUnlessTheySayThatItMayBeAnyAmount) {
  EXPECT_EQ(log_max(Configuration()), gb(10));
  ConfigurationSources sources = here();
  sources.settings = {"limits.log=none"};
  EXPECT_EQ(log_max(load_configuration(sources).value()), Bytes{});
  sources.settings = {"limits.log=1MB"};
  EXPECT_EQ(log_max(load_configuration(sources).value()), mb(1));
  sources.settings = {"limits.log=10kB"};
  const auto too_little = load_configuration(sources);
  ASSERT_FALSE(too_little.has_value());
  EXPECT_THAT(too_little.error().front().message,
              HasSubstr("'10kB' is too small for a log; use at least 1 MB, or none"));
}

TEST_F(Configurations, AreWrittenAsADefaultThatReadsBackAsTheDefaults) {
  write("trainyard.yaml", commented_default());
  const auto configuration = load_configuration(here());
  ASSERT_TRUE(configuration.has_value());
  const Configuration defaults;
  for (std::size_t i = 0; i < kSettingCount; ++i) {
    const auto setting = static_cast<Setting>(i);
    EXPECT_EQ(configuration->text(setting), defaults.text(setting)) << settings()[i].key;
    EXPECT_NE(configuration->origin(setting), "default") << settings()[i].key;
  }
  EXPECT_THAT(commented_default(),
              HasSubstr("\nscheduler:\n  # Memory that is reserved for a task"));
}

TEST_F(Configurations, AreShownAsYamlThatReadsBack) {
  ConfigurationSources sources = here();
  sources.settings = {"smtp.user=a \"b\" # c: d", "workdir=/x y/z", "smtp.receiver=null",
                      "utilization-limit.cpu=50%"};
  const auto first = load_configuration(sources);
  ASSERT_TRUE(first.has_value());
  write("trainyard.yaml", show(*first));
  const auto second = load_configuration(here());
  ASSERT_TRUE(second.has_value());
  for (std::size_t i = 0; i < kSettingCount; ++i) {
    const auto setting = static_cast<Setting>(i);
    EXPECT_EQ(second->text(setting), first->text(setting)) << settings()[i].key;
  }
}

TEST_F(Configurations, WriteTheirDefaultTimesAsTimesAreShown) {
  for (const SettingInfo& info : settings()) {
    if (info.kind != SettingKind::Seconds && info.kind != SettingKind::Lease) continue;
    std::string shown = exact_text(parse_duration(info.fallback).value());
    std::erase(shown, ' ');
    EXPECT_EQ(info.fallback, shown) << info.key;
  }
}

TEST_F(Configurations, ShowATimeWithItsUnit) {
  ConfigurationSources sources = here();
  sources.settings = {"scheduler.interval=0.5", "scheduler.settle-time=2m", "agent.lease=90"};
  const auto configuration = load_configuration(sources);
  ASSERT_TRUE(configuration.has_value());
  EXPECT_EQ(configuration->text(Setting::SchedulerInterval), "0.5s");
  EXPECT_EQ(configuration->text(Setting::SchedulerSettleTime), "2m");
  EXPECT_EQ(configuration->text(Setting::AgentLease), "90s");
}

TEST_F(Configurations, AreShownAsJson) {
  const auto configuration = load_configuration(here());
  const auto json = nlohmann::json::parse(show_json(*configuration));
  EXPECT_EQ(json.size(), kSettingCount);
  EXPECT_EQ(json["scheduler.interval"]["value"], "1m");
  EXPECT_EQ(json["scheduler.interval"]["from"], "default");
}

TEST_F(Configurations, SayWhatIsWrongWithASetOption) {
  ConfigurationSources sources = here();
  sources.settings = {"scheduler.max-proces=4",
                      "max-process=4",
                      "memory=4GB",
                      "scheduler=4",
                      "debug",
                      "=3",
                      "debug=yes",
                      "workdir=",
                      "zzz=1",
                      "scheduler.max-process=many"};
  EXPECT_THAT(
      mistakes_of(sources),
      ElementsAre(
          "--set scheduler.max-proces=4: unknown key 'scheduler.max-proces' (did you mean "
          "'scheduler.max-process'?)",
          "--set max-process=4: unknown key 'max-process' (did you mean 'scheduler.max-process'?)",
          "--set memory=4GB: unknown key 'memory' (did you mean 'utilization-limit.memory' or "
          "'remain-limit.memory'?)",
          "--set scheduler=4: 'scheduler' is a section; name one of its keys",
          "--set debug: must be a key and a value, as in --set scheduler.max-process=4",
          "--set =3: must be a key and a value, as in --set scheduler.max-process=4",
          "--set debug=yes: debug: there is no debug mode; remove 'debug'. The journal contains "
          "all events of a run, and 'trainyard status' and 'trainyard logs' show them",
          "--set workdir=: the path is empty; use 'auto' for the default",
          "--set zzz=1: unknown key 'zzz'; remove it, and 'trainyard config show' lists the "
          "settings",
          "--set scheduler.max-process=many: 'many' is not a whole number of 0 or more"));
}

TEST(ConfigurationFile, SaysWhereAKeyOrValueIsWrong) {
  EXPECT_THAT(
      mistakes_in("workdirr: x\n"
                  "scheduler:\n"
                  "  max-proces: 1\n"
                  "  interval: fast\n"
                  "  default-memory: 8gb\n"
                  "  load-nretry: [1]\n"
                  "utilization-limit: 0.8\n"
                  "remain-limit: {memory: 4}\n"
                  "gpu-priority: {strategy: TOTAL-MME}\n"
                  "smtp: {server-port: 70000, enable: on}\n"
                  "task: {directory-grouping: maybe}\n"
                  "utilization-limit.cpu: 80\n"),
      ElementsAre(
          "c.yaml:1:1: unknown key 'workdirr' (did you mean 'workdir'?)",
          "c.yaml:3:3: unknown key 'scheduler.max-proces' (did you mean 'scheduler.max-process'?)",
          "c.yaml:4:13: scheduler.interval: 'fast' is not a valid time; write it as in '90s', "
          "'2h30m' or '1:30:00'",
          "c.yaml:5:19: scheduler.default-memory: '8gb' is in bits: write '8GB'",
          "c.yaml:6:16: 'scheduler.load-nretry' must be a single value",
          "c.yaml:7:20: 'utilization-limit' must have keys, as in {cpu: ...}",
          "c.yaml:8:24: remain-limit.memory: '4' has no unit and would be 4 bytes (did you mean "
          "'4GB' or '4MB'?)",
          "c.yaml:9:26: gpu-priority.strategy: 'TOTAL-MME' is not a valid strategy (did you mean "
          "'TOTAL-MEM'?)",
          "c.yaml:10:21: smtp.server-port: '70000' is not a valid port (1 to 65535)",
          "c.yaml:10:36: smtp.enable: must be true or false, not 'on' (did you mean 'true'?)",
          "c.yaml:11:28: task.directory-grouping: must be true or false, not 'maybe'",
          "c.yaml:12:24: utilization-limit.cpu: '80' means 8000%; a share is at most 100% (did you "
          "mean '80%'?)"));
}

TEST(ConfigurationFile, HasNoDebugModeAndTakesAFileThatSwitchesItOff) {
  constexpr const char* kWhy =
      "debug: there is no debug mode; remove 'debug'. The journal contains all events of a run, "
      "and 'trainyard status' and 'trainyard logs' show them";
  EXPECT_THAT(mistakes_in("debug: true\n"), ElementsAre(std::string("c.yaml:1:8: ") + kWhy));
  EXPECT_THAT(mistakes_in("debug: {level: 3}\n"), ElementsAre(std::string("c.yaml:1:8: ") + kWhy));
  EXPECT_THAT(mistakes_in("debug: false\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("debug:\n"), IsEmpty());
}

TEST(ConfigurationFile, SaysHowSafelyMailIsSent) {
  EXPECT_THAT(mistakes_in("smtp: {security: STARTTLS, ca-file: ca.pem}\n"), IsEmpty());
  EXPECT_THAT(
      mistakes_in("smtp: {security: ssl}\n"),
      ElementsAre("c.yaml:1:18: smtp.security: must be auto, none, starttls or tls, not 'ssl'"));
}

TEST(ConfigurationFile, HasNoEndOfALineInWhatAMailServerGets) {
  EXPECT_THAT(mistakes_in("smtp:\n"
                          "  server-host: \"h\\nx\"\n"
                          "  user: \"a@x\\r\"\n"
                          "  password: \"p\\n\"\n"
                          "  receiver: \"a@x\\nDATA\"\n"),
              ElementsAre("c.yaml:2:16: smtp.server-host: must be on one line",
                          "c.yaml:3:9: smtp.user: must be on one line",
                          "c.yaml:4:13: smtp.password: must be on one line",
                          "c.yaml:5:13: smtp.receiver: must be on one line"));
}

TEST(ConfigurationFile, SaysWhoseGpusAreLeftAlone) {
  EXPECT_THAT(mistakes_in("other-users: Share\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("limits: {gpus: 3, \"Mon-Fri 08:00-19:00\": {gpus: 2}}\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("limits: {\"Mom 08:00-19:00\": {gpus: 2}}\n"),
              ElementsAre("c.yaml:1:10: 'Mom' is not a day of the week (Mon, Tue, ..., Sun) (did "
                          "you mean 'Mon'?)"));
  EXPECT_THAT(mistakes_in("limits: {\"Mon 08:00-19:00\": {cpus: 2}}\n"),
              ElementsAre("c.yaml:1:29: Mon 08:00-19:00: must be {gpus: 2} and nothing else"));
  EXPECT_THAT(mistakes_in("limits: {gpus: many}\n"), SizeIs(1));
  EXPECT_THAT(mistakes_in("other-users: ignore\n"),
              ElementsAre("c.yaml:1:14: other-users: must be avoid or share, not 'ignore'"));
}

TEST(ConfigurationFile, HasNoValueWithWhichNothingWouldStart) {
  EXPECT_THAT(mistakes_in("utilization-limit: {cpu: 0, memory: 0%, cuda-memory: 0.0}\n"
                          "scheduler: {load-nretry: 0, train-nretry: 0}\n"),
              ElementsAre("c.yaml:1:26: utilization-limit.cpu: with '0' no task could start; use a "
                          "share above 0, up to 1 or 100%",
                          "c.yaml:1:37: utilization-limit.memory: with '0%' no task could start; "
                          "use a share above 0, up to 1 or 100%",
                          "c.yaml:1:54: utilization-limit.cuda-memory: with '0.0' no task could "
                          "start; use a share above 0, up to 1 or 100%",
                          "c.yaml:2:26: scheduler.load-nretry: must be at least 1, not '0'",
                          "c.yaml:2:43: scheduler.train-nretry: must be at least 1, not '0'"));
  EXPECT_THAT(
      commented_default(),
      HasSubstr("# While programs other than this run use this share of the CPUs or more, "
                "tasks without a GPU\n  # run one at a time. 100%: no limit.\n  cpu: 0.8\n"));
  EXPECT_THAT(commented_default(),
              HasSubstr("# Number of times that a task may run out of memory, before it fails.\n"
                        "  # 3: two retries; 1: no retry.\n  train-nretry: 3\n"));
}

TEST(ConfigurationFile, HasEachKeyOnce) {
  EXPECT_THAT(
      mistakes_in("scheduler: {max-process: 4}\n"
                  "gpu-priority:\n"
                  "  strategy: PCI\n"
                  "  stratety: TOTAL-MEM\n"
                  "scheduler.max-process: 5\n"),
      ElementsAre(
          "c.yaml:4:3: duplicate key 'gpu-priority.stratety'; as 'gpu-priority.strategy' it is at "
          "c.yaml:3:3",
          "c.yaml:5:1: duplicate key 'scheduler.max-process'; the first is at c.yaml:1:13"));
  EXPECT_THAT(mistakes_in("scheduler: {interval: 1}\n"
                          "scheduler: {interval: 2, interval: 3}\n"
                          "workdir: a\n"
                          "workdir: b\n"),
              ElementsAre("c.yaml:2:1: duplicate key 'scheduler'; the first is in line 1",
                          "c.yaml:2:26: duplicate key 'interval'; the first is in line 2",
                          "c.yaml:4:1: duplicate key 'workdir'; the first is in line 3"));
}

TEST(SettingValue, SaysWhatAShareIs) {
  EXPECT_EQ(parse_share("1"), 1.0);
  EXPECT_EQ(parse_share("100%"), 1.0);
  EXPECT_EQ(parse_share("0.5%"), 0.005);
  EXPECT_EQ(parse_share("80").error().message,
            "'80' means 8000%; a share is at most 100% (did you mean '80%'?)");
  for (const std::string_view text : {"1.5", "101", "150%"}) {
    EXPECT_EQ(parse_share(text).error().message,
              fmt::format("'{}' is too large; a share must be at most 1 or 100%", text));
  }
  for (const std::string_view text : {"", "%", "-1", "half", "-5%"}) {
    EXPECT_EQ(parse_share(text).error().message,
              fmt::format("'{}' is not a share; write it as in '0.8' or '80%'", text));
  }
}

TEST(ConfigurationFile, HasTextForValues) {
  EXPECT_THAT(mistakes_in(R"({workdir: "a\0b", smtp: {user: "\e[2J"}})"),
              ElementsAre("c.yaml:1:11: workdir: the value is not text",
                          "c.yaml:1:32: smtp.user: the value is not text"));
}

TEST(ConfigurationFile, MustBeKeysWithValues) {
  EXPECT_THAT(mistakes_in("- 1"), ElementsAre("c.yaml:1:1: a configuration must be keys with "
                                              "values, as in {scheduler: {max-process: 4}}"));
  EXPECT_THAT(mistakes_in("scheduler:\ndebug:\n"), IsEmpty());
}

Configuration with(const std::vector<std::string>& set) {
  auto configuration = load_configuration({.settings = set, .current_directory = "/nowhere"});
  check(configuration.has_value(), "a good configuration");
  return *configuration;
}

TEST(Policy, KeepATenthOfASmallMachineAndFourGigabytesOfALargeOneFree) {
  const Configuration defaults;
  EXPECT_EQ(policy(defaults, {.memory = gb(20), .cpus = model::cpus(4)}).memory_remain, gb(2));
  EXPECT_EQ(policy(defaults, {.memory = gb(512), .cpus = model::cpus(64)}).memory_remain, gb(4));
  EXPECT_EQ(memory_to_give(policy(defaults, {.memory = gb(20)}), {.memory = gb(20)}), gb(18));
}

TEST(Policy, AreTheStricterOfUtilizationAndRemain) {
  const model::Capacity machine{.memory = gb(100), .cpus = model::cpus(4)};
  const auto given = [&](const std::vector<std::string>& set) {
    return memory_to_give(policy(with(set), machine), machine);
  };
  EXPECT_EQ(given({"utilization-limit.memory=75%"}), gb(75));
  EXPECT_EQ(given({"utilization-limit.memory=0.99"}), gb(96));
  EXPECT_EQ(given({"remain-limit.memory=0"}), gb(100));
  EXPECT_EQ(given({"remain-limit.memory=1TB"}), gb(0));
}

TEST(Policy, HaveTheKeysOfTheScheduler) {
  const model::Policy all =
      policy(with({"utilization-limit.cpu=0.5", "scheduler.max-process=7",
                   "scheduler.max-waiting=2", "scheduler.load-nretry=1", "scheduler.train-nretry=2",
                   "scheduler.machine-patience=90s"}),
             {.memory = gb(20), .cpus = model::cpus(4)});
  EXPECT_EQ(all.cpu_utilization_max, 0.5);
  EXPECT_EQ(all.memory_utilization_max, 1.0);
  EXPECT_EQ(all.processes_max, 7);
  EXPECT_EQ(all.waiting_max, 2);
  EXPECT_EQ(all.load_retries, 1);
  EXPECT_EQ(all.machine_patience, Duration{90'000});
  EXPECT_EQ(all.train_retries, 2);
}

TEST(Policy, HaveTheStrategyOfGpusAndTakeIdleOnesFirstByDefault) {
  const auto strategy = [](const char* setting) {
    return policy(with({std::string("gpu-priority.strategy=") + setting}), {}).gpu_strategy;
  };
  EXPECT_EQ(policy(Configuration(), {}).gpu_strategy, model::GpuStrategy::IdleFirst);
  EXPECT_EQ(strategy("IDLE-FIRST"), model::GpuStrategy::IdleFirst);
  EXPECT_EQ(strategy("best-fit"), model::GpuStrategy::BestFit);
  EXPECT_EQ(strategy("PCI"), model::GpuStrategy::Pci);
  EXPECT_EQ(strategy("TOTAL-MEM"), model::GpuStrategy::TotalMemory);
  EXPECT_EQ(strategy("REMAIN-MEM"), model::GpuStrategy::RemainingMemory);
  EXPECT_EQ(strategy("PERFORMANCE"), model::GpuStrategy::Performance);
}

TEST(DefaultMemory, IsTheShareOfATasksCpus) {
  const Configuration defaults;
  const model::Capacity small{.memory = gb(4), .cpus = model::cpus(4)};
  EXPECT_EQ(default_memory(defaults, small, model::cpus(1)), mb(900));
  EXPECT_EQ(default_memory(defaults, small, model::cpus(4)), mb(3600));
  EXPECT_EQ(default_memory(defaults, small, model::Cpus{500}), mb(450));
  EXPECT_EQ(default_memory(defaults, small, model::cpus(0)), mb(0));
  const model::Capacity large{.memory = gb(512), .cpus = model::cpus(64)};
  EXPECT_EQ(default_memory(defaults, large, model::cpus(1)), gb(2));
  EXPECT_EQ(default_memory(defaults, small, model::cpus(400)), mb(3600));
  EXPECT_EQ(default_memory(with({"scheduler.default-memory=5GB"}), small, model::cpus(1)), gb(5));
}

TEST(SampleInterval, IsASecondOrLess) {
  EXPECT_EQ(sample_interval(Configuration()), Duration(1000));
  EXPECT_EQ(sample_interval(with({"scheduler.interval=0.5"})), Duration(500));
  EXPECT_EQ(sample_interval(with({"scheduler.interval=250ms"})), Duration(250));
  EXPECT_EQ(sample_interval(with({"scheduler.interval=0"})), Duration(100));
}

TEST(SettingValue, ReadsNumbersOfCpus) {
  EXPECT_EQ(parse_cpus("1")->milli, 1000);
  EXPECT_EQ(parse_cpus("0.5")->milli, 500);
  EXPECT_EQ(parse_cpus("0")->milli, 0);
  EXPECT_EQ(parse_cpus("0.001")->milli, 1);
  EXPECT_EQ(parse_cpus("-1").error().message, "'-1' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(parse_cpus("two").error().message, "'two' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(parse_cpus("0.0005").error().message, "'0.0005' has more than three decimals");
  EXPECT_EQ(parse_cpus("500m").error().message, "'500m' is not a number of CPUs; write 0.5");
  EXPECT_EQ(parse_cpus("2000m").error().message, "'2000m' is not a number of CPUs; write 2");
  EXPECT_EQ(parse_cpus("0.5m").error().message, "'0.5m' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(parse_cpus("-1m").error().message, "'-1m' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(parse_cpus("100000001m").error().message,
            "'100000001m' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(parse_cpus("nan").error().message, "'nan' is not a number of CPUs, as in 4 or 0.5");
}

}  // namespace
}  // namespace trainyard::settings
