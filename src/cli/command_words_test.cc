#include "cli/command_words.h"

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

using Words = std::vector<std::string>;

TEST(CommandName, IsThatOfTheProgram) {
  EXPECT_EQ(command_name({"./bin/train.sh", "--lr", "0.1"}), "train");
  EXPECT_EQ(command_name({"echo", "a b"}), "echo");
  EXPECT_EQ(command_name({"LR=0.1 ./train --fast | tee log"}), "train");
}

TEST(CommandName, IsThatOfTheScriptBehindWhatRunsIt) {
  for (const Words& words :
       {Words{"python3", "-u", "src/train.py"}, Words{"/opt/venv/bin/python3.12", "train.py"},
        Words{"env", "LR=0.1", "python", "train.py"}, Words{"uv", "run", "train.py"},
        Words{"torchrun", "train.py"},
        Words{"torchrun", "--nproc_per_node", "4", "train.py", "x.py"},
        Words{"python3", "-m", "torch.distributed.run", "--nnodes", "1:2", "train.py"},
        Words{"bash", "train.sh", "7"}, Words{"python3 train.py --lr 0.1"}}) {
    EXPECT_EQ(command_name(words), "train") << words.back();
  }
}

TEST(CommandName, OfAModuleIsWhole) {
  EXPECT_EQ(command_name({"python3", "-m", "pkg.train", "--config", "a.py"}), "pkg.train");
  EXPECT_EQ(command_name({"python3 -um pkg.train"}), "pkg.train");
  EXPECT_EQ(command_name({"torchrun", "--nproc_per_node", "4", "-m", "pkg.train"}), "pkg.train");
}

TEST(CommandName, OfATextIsThatOfItsInterpreterOrOfWhatAShellRunsFirst) {
  EXPECT_EQ(command_name({"python3", "-c", "import torch; print(torch.rand(2))"}), "python3");
  EXPECT_EQ(command_name({"bash", "-lc", "python3 train.py > log"}), "train");
  EXPECT_EQ(command_name({"sh", "-c", "echo $HOME/a.b"}), "echo");
}

TEST(CommandName, HasNothingButLettersThatADirectoryMayHave) {
  EXPECT_EQ(command_name({"./my-train+v2"}), "my-trainv2");
  EXPECT_EQ(command_name({"./.."}), "command");
  EXPECT_EQ(command_name({"python3"}), "python3");
  EXPECT_EQ(command_name({""}), "command");
  EXPECT_EQ(command_name({}), "command");
}

TEST(NameOfFile, EndsAtItsFirstDot) {
  EXPECT_EQ(name_of_file("sweeps/lr.first.txt"), "lr");
  EXPECT_EQ(name_of_file("my commands.txt"), "mycommands");
  EXPECT_EQ(name_of_file("-"), "command");
}

}  // namespace

}  // namespace trainyard::cli
