#include "run/machine_look.h"

#include <filesystem>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MachineLook : public testing::Test {
 protected:
  wire::FoundProgram look_for(wire::SoughtProgram sought) const {
    if (sought.directory.empty()) sought.directory = directory_.path();
    return look_for_program(sought);
  }
  void make_program(const std::string& name, std::filesystem::perms permissions) const {
    directory_.write(name, "#!/bin/sh\n");
    std::filesystem::permissions(directory_ / name, permissions);
  }

  sys::TemporaryDirectory directory_;
};

TEST_F(MachineLook, FindsAProgramWhereItsTaskWould) {
  make_program("mine", std::filesystem::perms::owner_all);
  EXPECT_EQ(look_for({.name = "sh"}), wire::FoundProgram{});
  EXPECT_EQ(look_for({.name = "./mine"}), wire::FoundProgram{});
  EXPECT_EQ(look_for({.name = "mine", .environment = {"PATH=" + directory_.path()}}),
            wire::FoundProgram{});
  EXPECT_EQ(look_for({.name = "mine"}).why_not,
            "cannot run 'mine': program not found on PATH (did you mean './mine'?)");
  EXPECT_EQ(look_for({.name = "sh", .environment = {"PATH=/nowhere"}}).why_not,
            "cannot run 'sh': program not found on PATH; install it, or write its full path");
  const std::string path = "PATH=" + directory_.path();
  EXPECT_EQ(look_for({.name = "python", .environment = {path}}).why_not,
            "cannot run 'python': program not found on PATH; install it, or write its full path");
  make_program("python3", std::filesystem::perms::owner_all);
  EXPECT_EQ(look_for({.name = "python", .environment = {path}}).why_not,
            "cannot run 'python': program not found on PATH (did you mean 'python3'?)");
  EXPECT_EQ(look_for({.name = "pyhton3", .environment = {path}}).why_not,
            "cannot run 'pyhton3': program not found on PATH (did you mean 'python3'?)");
  EXPECT_EQ(look_for({.name = "torchrum", .environment = {path}}).why_not,
            "cannot run 'torchrum': program not found on PATH; install it, or write its full path");
}

TEST_F(MachineLook, SaysWhyAFileIsNoProgram) {
  make_program("train.sh", std::filesystem::perms::owner_read);
  EXPECT_THAT(look_for({.name = "./train.sh"}).why_not, HasSubstr("chmod +x ./train.sh"));
  directory_.write("fit.py", "print(1)\n");
  std::filesystem::permissions(directory_ / "fit.py", std::filesystem::perms::owner_all);
  EXPECT_EQ(look_for({.name = "./fit.py", .by_shell = true}).why_not,
            "cannot run './fit.py': its first line is not '#!/usr/bin/env python3'; try 'python3 "
            "./fit.py'");
  EXPECT_THAT(look_for({.name = "./other.sh"}).why_not, HasSubstr("no such file"));
  EXPECT_EQ(look_for({.name = "sh", .directory = "/nowhere"}).why_not,
            "directory '/nowhere' not found");
  const std::string file = directory_ / "train.sh";
  EXPECT_EQ(look_for({.name = "sh", .directory = file}).why_not,
            "'" + file + "' is not a directory");
}

TEST_F(MachineLook, TakesWhatOnlyBashKnowsWhereItReadsTheCommand) {
  const std::string function = "BASH_FUNC_train%%=() {  true; }";
  for (const char* const name : {"exit", "source", "time", "train"}) {
    // No PATH, on which 'time' may be a program.
    const wire::SoughtProgram sought{
        .name = name, .by_shell = true, .environment = {"PATH=/nowhere", function}};
    EXPECT_EQ(look_for(sought), wire::FoundProgram{}) << name;
  }
  EXPECT_NE(look_for({.name = "exit"}).why_not, "");
  EXPECT_NE(look_for({.name = "no-such-program", .by_shell = true}).why_not, "");
}

TEST_F(MachineLook, NamesModulesThatAPythonWouldNotFindAndImportsNone) {
  directory_.write("loud.py", "import sys; sys.exit('imported')\n");
  directory_.make("empty");
  wire::SoughtProgram sought{.name = "/usr/bin/python3",
                             .modules = {"json.tool", "loud", "nope"},
                             .import_directory = directory_ / "empty"};
  EXPECT_THAT(look_for(sought).missing, ElementsAre("loud", "nope"));
  sought.import_directory = directory_.path();
  EXPECT_THAT(look_for(sought).missing, ElementsAre("nope"));
  sought.name = "/bin/false";
  EXPECT_THAT(look_for(sought).cannot_ask, HasSubstr("exit code 1"));
}

TEST_F(MachineLook, WritesWhereTheRunWillAndLeavesNothing) {
  const wire::AgentSeen seen = look_at_machine({.directory = directory_.path()});
  EXPECT_EQ(seen.no_directory, "");
  EXPECT_GT(seen.disk_free, Bytes{});
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  EXPECT_THAT(look_at_machine({.directory = directory_ / "gone"}).no_directory,
              HasSubstr("not found"));
  directory_.write("file", "");
  EXPECT_THAT(look_at_machine({.directory = directory_ / "file"}).no_directory,
              HasSubstr("is not a directory"));
}

TEST_F(MachineLook, LooksForEachProgramInItsOrder) {
  const wire::SoughtProgram there{.name = "sh", .directory = directory_.path()};
  const wire::SoughtProgram gone{.name = "./gone", .directory = directory_.path()};
  const wire::AgentSeen seen =
      look_at_machine({.directory = directory_.path(), .programs = {gone, there}});
  EXPECT_THAT(seen.programs, ElementsAre(look_for_program(gone), look_for_program(there)));
  EXPECT_NE(seen.programs.at(0), seen.programs.at(1));
}

TEST_F(MachineLook, TellsTheSameFileFromAnotherOne) {
  directory_.write("job.yaml", "groups: []\n");
  Fingerprint print;
  print.add("groups: []\n");
  wire::AgentLook look{.directory = directory_.path(), .file = directory_ / "job.yaml"};
  EXPECT_THAT(look_at_machine(look).no_file, HasSubstr("is another file there"));
  look.file_print = print.value();
  EXPECT_EQ(look_at_machine(look).no_file, "");
  look.file = directory_ / "gone.yaml";
  EXPECT_THAT(look_at_machine(look).no_file, HasSubstr("gone.yaml"));
  look.file = directory_ / "pipe.yaml";
  ASSERT_EQ(::mkfifo(look.file.c_str(), 0600), 0);
  EXPECT_TRUE(sys::holds_in_time(
      [&] { return look_at_machine(look).no_file.contains("is a pipe, not a regular file"); }));
}

}  // namespace
}  // namespace trainyard::run
