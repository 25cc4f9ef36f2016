// The program that a command for the shell starts, if it is only one.
#include "text/python_command.h"

#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

TEST(ProgramOfCommand, IsItsFirstWordWhereNothingElseIsStarted) {
  EXPECT_EQ(program_of_command("python3 fit.py --lr 0.1"), "python3");
  EXPECT_EQ(program_of_command("./fit.py"), "./fit.py");
  EXPECT_EQ(program_of_command("/opt/venv/bin/python fit.py > out.txt 2>&1 < in.txt\n"),
            "/opt/venv/bin/python");
  EXPECT_EQ(program_of_command("python3 fit.py &>out.txt"), "python3");
  EXPECT_EQ(program_of_command("python3 fit.py --name 'a; b' --to \"$HOME/a|b\" c\\;d"), "python3");
  EXPECT_EQ(program_of_command("python3 -c 'print(`)'"), "python3");
  EXPECT_EQ(program_of_command("exec  /venv/bin/python fit.py > out.txt"), "/venv/bin/python");
  EXPECT_EQ(program_of_command("executor fit.py"), "executor");
}

TEST(ProgramOfCommand, IsNoneWhereAnotherOneMayCome) {
  for (const char* const text :
       {"cd x && python3 fit.py", "python3 a.py; python3 b.py", "python3 a.py | tee log",
        "python3 fit.py &", "python3 a.py\npython3 b.py", "(python3 fit.py)",
        "exec python3 a.py | tee log", "exec -a fit python3 fit.py", "python3 fit.py $(ls)",
        "python3 fit.py `ls`", "python3 fit.py \"$(ls)\""}) {
    EXPECT_EQ(program_of_command(text), "") << text;
  }
}

TEST(ProgramOfCommand, IsNoneWhereTheShellHasAHandInItsName) {
  for (const char* const text :
       {"$PYTHON fit.py", "A=b python3 fit.py", "'python3' fit.py", "~/bin/python fit.py",
        "py\\thon fit.py", "python3 'fit.py", "exec $PYTHON fit.py", "exec >log", ""}) {
    EXPECT_EQ(program_of_command(text), "") << text;
  }
}

TEST(NeedsShell, IsTrueOfAllButAPlainName) {
  for (const char* const text : {"train", "./train", "/opt/my-tool/train.sh", ""}) {
    EXPECT_FALSE(needs_shell(text)) << text;
  }
  for (const char* const text : {"./train --fast", "./train|tee log", "~/train", "$TRAIN", "exit 3",
                                 "LR=1", "'train'", "train "}) {
    EXPECT_TRUE(needs_shell(text)) << text;
  }
}

}  // namespace
}  // namespace trainyard::text
