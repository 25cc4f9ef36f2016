#include "cli/with_command.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> command_of(std::vector<std::string> words) {
  CLI::App app;
  takes_command(app);
  // The library reads the words from the last to the first.
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  return typed_command(app).value_or(std::vector<std::string>());
}

TEST(WithCommand, RunsASingleWordInBashAsATaskDoes) {
  EXPECT_THAT(command_of({"[[ $RANK == 0 ]]"}), ElementsAre("/bin/bash", "-c", "[[ $RANK == 0 ]]"));
  EXPECT_THAT(command_of({"./train | tee log"}),
              ElementsAre("/bin/bash", "-o", "pipefail", "-c", ::testing::EndsWith("| tee log")));
}

TEST(WithCommand, RunsAProgramAndItsArgumentsWithoutAShell) {
  EXPECT_THAT(command_of({"./train"}), ElementsAre("./train"));
  EXPECT_THAT(command_of({"echo", "$RANK | cat"}), ElementsAre("echo", "$RANK | cat"));
  EXPECT_THAT(command_of({}), IsEmpty());
}

}  // namespace
}  // namespace trainyard::cli
