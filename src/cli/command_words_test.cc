#include "cli/command_words.h"

#include <vector>

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

std::string shown(const std::vector<const char*>& words) { return shown_command_line(words); }

TEST(CommandWords, HideTheValuesOfVariables) {
  EXPECT_EQ(shown({"trainyard", "run", "--env", "KEY=a=b", "--env=OTHER=c d", "--", "true"}),
            "trainyard run --env KEY=****** --env=OTHER=****** -- true");
}

TEST(CommandWords, ShowTheWordsOfTheCommandAsTheyAre) {
  EXPECT_EQ(shown({"trainyard", "run", "--", "train", "--env", "KEY=1", "--env=KEY=2"}),
            "trainyard run -- train --env KEY=1 --env=KEY=2");
  EXPECT_EQ(shown({"trainyard", "run", "--matrix", "lr=1,2", "--env", "KEY"}),
            "trainyard run --matrix lr=1,2 --env KEY");
}

TEST(CommandWords, HideAPasswordThatIsSet) {
  EXPECT_EQ(shown({"trainyard", "run", "--set", "smtp.password=x", "--set=smtp.password=y"}),
            "trainyard run --set smtp.password=****** --set=smtp.password=******");
}

}  // namespace
}  // namespace trainyard::cli
