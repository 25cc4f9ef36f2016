#include "text/shell_parameters.h"

#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

TEST(ShellParameters, AreOthersInAFunction) {
  EXPECT_TRUE(changes_parameters("mean() { cat \"$@\"; }; mean"));
  EXPECT_TRUE(changes_parameters("true\nmean ( ) {\ncat\n}"));
  EXPECT_TRUE(changes_parameters("function mean { cat; }"));
}

TEST(ShellParameters, AreOthersAfterTheyAreSetOrShifted) {
  EXPECT_TRUE(changes_parameters("set -- a b; cat"));
  EXPECT_TRUE(changes_parameters("set -e -- a"));
  EXPECT_TRUE(changes_parameters("set a b && cat"));
  EXPECT_TRUE(changes_parameters("if true; then shift; fi; cat"));
  EXPECT_TRUE(changes_parameters("set -eo pipefail -- a"));
}

TEST(ShellParameters, StayInAllOtherCommands) {
  EXPECT_FALSE(changes_parameters(""));
  EXPECT_FALSE(changes_parameters("python mean.py > out.txt"));
  EXPECT_FALSE(changes_parameters("set -euo pipefail; python mean.py"));
  EXPECT_FALSE(changes_parameters("set -x +e\ncat"));
  EXPECT_FALSE(changes_parameters("echo shift set -- function 'f() { x; }' \"g()\""));
  EXPECT_FALSE(changes_parameters("x=$(cat a) && (cat b); for x in a; do cat; done"));
  EXPECT_FALSE(changes_parameters("python -c 'f()' \\; print f"));
  EXPECT_FALSE(changes_parameters("all=(); all+=(a); cat"));
  EXPECT_FALSE(changes_parameters("cat $(  ) \"$( )\""));
}

}  // namespace
}  // namespace trainyard::text
