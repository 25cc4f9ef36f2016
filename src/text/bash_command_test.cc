// With real bash.
#include "text/bash_command.h"

#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/stoppable_command.h"
#include "text/placeholder.h"

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(std::string_view text) {
  const Template::Read read = Template::read(text, {.names = {}, .in_shell = true});
  return bash_command(read.text.text(), read.text.traits());
}

/// The exit code of the text. Commands exit with 141 themselves: whether SIGPIPE kills one depends
/// on how fast the other end closes.
int status_of(std::string_view text) {
  const auto end =
      sys::run_stoppable({.arguments = words_of(text), .environment = {}, .directory = "/"}, {});
  return end ? end->exit_code : -1;
}

TEST(BashCommand, IsTheTextAloneWithoutAPipe) {
  EXPECT_THAT(words_of("train || exit 3"), ElementsAre("/bin/bash", "-c", "train || exit 3"));
  EXPECT_THAT(words_of("train 'a|b' >|log"), ElementsAre("/bin/bash", "-c", "train 'a|b' >|log"));
}

TEST(BashCommand, UnderstandsBash) {
  EXPECT_EQ(status_of("a=({1..3}); [[ abc == a* ]] && (( a[2] == 3 ))"), 0);
  EXPECT_EQ(status_of("a=(1 2); [[ ${#a[@]} == 2 ]] && cat <(exit 0) &>/dev/null"), 0);
}

TEST(BashCommand, FailsAsAnyCommandOfItsPipelineDoes) {
  EXPECT_EQ(status_of("(exit 3) | true"), 3);
  EXPECT_EQ(status_of("true | (exit 4)"), 4);
  EXPECT_EQ(status_of("true | true"), 0);
  EXPECT_EQ(status_of("(exit 3) | \"cat\""), 3);
  EXPECT_EQ(status_of("(exit 3) |& cat"), 3);
  EXPECT_EQ(status_of("`true | true`; (exit 3) |\n  cat"), 3);
  EXPECT_EQ(status_of("true | true; exit 5"), 5);
}

TEST(BashCommand, SucceedsWhereOnlySigpipeHasEndedACommandBeforeTheLast) {
  for (const std::string_view text :
       {"(exit 141) | true", "(exit 141) | (exit 141) | true", "true; (exit 141) | true | true",
        "IFS=,; (exit 141) | (exit 141) | true", "set -u; (exit 141) | true",
        "for i in 1 2; do (exit 141) | true; done", "true && (exit 141) | true",
        "(exit 141) | true\n# a comment"}) {
    EXPECT_EQ(status_of(text), 0) << text;
  }
  for (const std::string_view text :
       {"true | (exit 141)", "(exit 3) | (exit 141) | true", "true | true; exit 141 | exit 141"}) {
    EXPECT_NE(status_of(text), 0) << text;
  }
}

TEST(BashCommand, FailsWithSigpipeWhereItHasStoppedTheText) {
  EXPECT_EQ(status_of("set -e; (exit 141) | true; true"), 141);
  EXPECT_EQ(status_of("set -euo pipefail\n(exit 141) | true"), 141);
}

TEST(BashCommand, KeepsTheTrapsOfTheText) {
  EXPECT_EQ(status_of("trap 'exit 7' EXIT; true | true"), 7);
}

}  // namespace
}  // namespace trainyard::text
