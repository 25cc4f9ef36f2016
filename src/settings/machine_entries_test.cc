#include "settings/machine_entries.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/mistake.h"

namespace trainyard::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string wrong_with(std::string_view text) {
  const auto machines = parse_machines(text);
  return machines ? "nothing" : machines.error().message;
}

std::vector<std::string> mistakes_of_entries(std::string_view text) {
  const text::YamlDocument document(text, "trainyard.yaml");
  text::MistakeList mistakes;
  const text::Complainer to = text::Complainer(document, mistakes, "").within("machines");
  EXPECT_FALSE(read_machines(to, *document.root()).has_value());
  std::vector<std::string> lines;
  for (const text::Mistake& mistake : std::move(mistakes).take()) {
    lines.push_back(text::to_text(mistake));
  }
  return lines;
}

TEST(MachineEntries, AreNamesOrAList) {
  EXPECT_THAT(parse_machines("lab1, me@lab2 local").value(),
              ElementsAre(MachineEntry{.host = "lab1"}, MachineEntry{.host = "me@lab2"},
                          MachineEntry{.host = "local"}));
  EXPECT_THAT(parse_machines("[local, {ssh: me@lab2, cpus: 7.5, memory: 32GB, gpus: '0,1', "
                             "setup: source venv/bin/activate}, {ssh: lab3, gpus: [2, '3:1']}]")
                  .value(),
              ElementsAre(MachineEntry{.host = "local"},
                          MachineEntry{.host = "me@lab2",
                                       .cpus = model::Cpus{7'500},
                                       .memory = gb(32),
                                       .gpus = "0,1",
                                       .setup = "source venv/bin/activate"},
                          MachineEntry{.host = "lab3", .gpus = "2,3:1"}));
}

TEST(MachineEntries, SayWhereTheCodeIsThereAndWhatOfItIsBrought) {
  EXPECT_THAT(
      parse_machines(
          "[{ssh: lab1, directory: ~/proj/, sync: [., '!data', src/x]}, "
          "{ssh: lab2, directory: /data/p, sync: train.py}, {ssh: lab3, directory: '~'}]")
          .value(),
      ElementsAre(
          MachineEntry{.host = "lab1", .directory = "proj", .sync = {".", "!data", "src/x"}},
          MachineEntry{.host = "lab2", .directory = "/data/p", .sync = {"train.py"}},
          MachineEntry{.host = "lab3", .directory = "."}));
}

TEST(MachineEntries, BringNothingFromOutsideTheDirectoryAndNothingToNowhere) {
  for (const std::string_view path : {"/etc", "..", "../x", "a/../../x", "a/..", "~/x", "!", ""}) {
    EXPECT_THAT(
        wrong_with(std::string("[{ssh: lab1, directory: p, sync: ['") + std::string(path) + "']}]"),
        testing::Not("nothing"))
        << path;
  }
  EXPECT_THAT(wrong_with("[{ssh: lab1, directory: p, sync: ['!data']}]"),
              HasSubstr("sync: contains no path to copy"));
  EXPECT_THAT(wrong_with("[{ssh: lab1, directory: p, sync: []}]"),
              HasSubstr("sync: contains no path to copy"));
  EXPECT_THAT(wrong_with("[{ssh: lab1, sync: .}]"), HasSubstr("sync: needs 'directory'"));
  for (const std::string_view directory : {"''", "~me/p", "-p", "'~/-p'"}) {
    EXPECT_THAT(wrong_with(std::string("[{ssh: lab1, directory: ") + std::string(directory) + "}]"),
                HasSubstr("is not a valid directory of that machine"));
  }
}

TEST(MachineEntries, AreReadAgainAsTheyAreWritten) {
  for (const std::string_view text :
       {"lab1, local", "[{ssh: lab1, gpus: none, setup: \"echo \\\"it's\\\" \\\\\"}, local]",
        "[{ssh: 'ssh://me@[::1]:22', cpus: 0.125, memory: 1GiB}]",
        "[{ssh: lab1, directory: '~/my proj', sync: [., '!*.ckpt']}, {ssh: lab2, directory: "
        "'~'}]"}) {
    const std::vector<MachineEntry> machines = parse_machines(text).value();
    EXPECT_EQ(parse_machines(to_text(machines)).value(), machines) << to_text(machines);
  }
  EXPECT_EQ(to_text(parse_machines("[lab1, local]").value()), "lab1, local");
}

TEST(MachineEntries, SayWhatIsWrongWithThem) {
  EXPECT_THAT(wrong_with(" , "), HasSubstr("no machine is given"));
  EXPECT_THAT(wrong_with("[]"), HasSubstr("no machine is given"));
  EXPECT_THAT(wrong_with("lab1,lab1"), HasSubstr("duplicate machine 'lab1'"));
  EXPECT_THAT(wrong_with("[lab1, {ssh: lab1}]"), HasSubstr("duplicate machine 'lab1'"));
  EXPECT_THAT(wrong_with("-oProxyCommand=sh"), HasSubstr("is not a valid host name"));
  EXPECT_THAT(wrong_with("lab1;reboot"), HasSubstr("is not a valid host name"));
  EXPECT_THAT(wrong_with("[{ssh: 'lab1;reboot'}]"), HasSubstr("is not a valid host name"));
  EXPECT_THAT(wrong_with("[lab1"), testing::Not("nothing"));
  const std::string number =
      "'2' is a number; name the machines, as in 'lab1, me@lab2, local', or request nodes from "
      "Slurm: trainyard run --slurm '--nodes=2'";
  EXPECT_EQ(wrong_with("2"), number);
  EXPECT_THAT(mistakes_of_entries("- 2\n"), ElementsAre("trainyard.yaml:1:3: machines: " + number));
}

TEST(MachineEntries, AreMistakenAtTheirPlaces) {
  EXPECT_THAT(mistakes_of_entries("- {ssh: lab1, cpu: 8}\n- {cpus: 8}\n- 7: 8\n"),
              ElementsAre("trainyard.yaml:1:15: machines: unknown key 'cpu' (did you mean 'cpus'?)",
                          "trainyard.yaml:2:3: machines: has no 'ssh', the name of the host",
                          "trainyard.yaml:3:3: machines: unknown key '7'; the known keys are ssh, "
                          "cpus, memory, gpus, setup, directory, sync",
                          "trainyard.yaml:3:3: machines: has no 'ssh', the name of the host"));
  EXPECT_THAT(
      mistakes_of_entries("- {ssh: lab1, cpus: 0}\n"),
      ElementsAre("trainyard.yaml:1:21: machines: cpus: with '0' no task could start there"));
  EXPECT_THAT(mistakes_of_entries("- {ssh: lab1, memory: much}\n"),
              ElementsAre(HasSubstr("trainyard.yaml:1:23: machines: memory: ")));
  EXPECT_THAT(mistakes_of_entries("- {ssh: lab1, gpus: some}\n"),
              ElementsAre("trainyard.yaml:1:21: machines: gpus: must be all, none or the numbers "
                          "of GPUs, as in '0,1', not 'some'"));
  EXPECT_THAT(mistakes_of_entries("- {ssh: lab1, gpus: 0,1}\n"),
              ElementsAre("trainyard.yaml:1:23: machines: gpus: a comma ends it in braces; write "
                          "[0, 1] or '0,1'"));
  EXPECT_THAT(mistakes_of_entries("- ssh: lab1\n  setup: |\n    one\n    two\n"),
              ElementsAre(HasSubstr("machines: setup: must be on one line")));
  EXPECT_THAT(mistakes_of_entries("- {ssh: local, cpus: 4}\n"),
              ElementsAre(HasSubstr("machines: ssh: 'local' is not a host")));
  EXPECT_THAT(mistakes_of_entries("{ssh: lab1}\n"),
              ElementsAre(HasSubstr("or a list of machines")));
  EXPECT_THAT(mistakes_of_entries("- [lab1]\n"),
              ElementsAre(HasSubstr("a machine must be a name, or keys")));
}

TEST(MachineEntries, OfANameAloneKeepWhatWasSaidBefore) {
  const std::vector<MachineEntry> before =
      parse_machines("[local, {ssh: lab1, cpus: 8}, {ssh: lab2, gpus: 0}]").value();
  EXPECT_EQ(to_text(as_said_before(parse_machines("lab2, lab3").value(), before)),
            R"([{"ssh":"lab2","gpus":"0"},"lab3"])");
  EXPECT_EQ(to_text(as_said_before(parse_machines("[{ssh: lab2, gpus: all}]").value(), before)),
            R"([{"ssh":"lab2","gpus":"all"}])");
}

}  // namespace
}  // namespace trainyard::settings
