// Mistakes in commands: values that no quoting makes safe, and bytes that no program can be given.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/test_job.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_only::mistakes_of;

/// A job with one task of these keys, and a matrix.
std::vector<std::string> in_task(std::string_view keys, std::string_view matrix = "{v: [x]}") {
  return mistakes_of(
      fmt::format("groups:\n- name: g\n  matrix: {}\n  tasks:\n  - {{{}}}\n", matrix, keys));
}

TEST(JobCommand, IsRefusedWhereAValueCouldNotBeQuoted) {
  EXPECT_THAT(in_task(R"(command: 'echo $(( {v} + 1 ))')"),
              ElementsAre("sweep.yaml:5:15: group 'g': task 1: command: '{v}' stands in "
                          "arithmetic, which would read its value as a formula; write the command "
                          "as a list, in which no shell reads it; a variable of 'env' would be "
                          "run here as well"));
  EXPECT_THAT(in_task(R"(command: ['echo $(( {v} + 1 ))'], env: {A: '${{U:-{v}}}'})"), IsEmpty());
}

TEST(JobCommand, IsRefusedWhenAValueEndsItsHereDocument) {
  constexpr std::string_view kCommand = R"(id: '{i}', command: "cat <<EOF\n{v}\nEOF")";
  EXPECT_THAT(
      in_task(kCommand,
              R"({i: [0], include: [{i: 1, v: "a\nb"}, {i: 2, v: "EOF\nx"}, {i: 0, v: c}]})"),
      ElementsAre("sweep.yaml:5:26: group 'g': command: the value of '{v}' has the line "
                  "'EOF', which ends the here-document it stands in (in the combination "
                  "i=2,v=EOF\\nx)"));
  EXPECT_THAT(
      mistakes_of(R"(groups: [{name: EOF, tasks: [{command: "cat <<EOF\n{group}\nEOF"}]}])"),
      ElementsAre("sweep.yaml:1:40: group 'EOF': command: the value of '{group}' has the "
                  "line 'EOF', which ends the here-document it stands in"));
}

TEST(JobCommand, HasNoNulNorHasWhatItIsGiven) {
  EXPECT_THAT(
      in_task(R"(command: [echo, "a\0b"], env: {X: "a\0b"}, working-directory: "x\0y")"),
      ElementsAre(
          "sweep.yaml:5:22: group 'g': task 1: command: has the character \\0, which no program "
          "can be given",
          "sweep.yaml:5:40: group 'g': task 1: env: X: has the character \\0, which no program "
          "can be given",
          "sweep.yaml:5:68: group 'g': task 1: working-directory: has the character \\0, which "
          "no program can be given"));
  EXPECT_THAT(in_task(R"(command: "echo a\0b", id: "{v}")"),
              ElementsAre("sweep.yaml:5:15: group 'g': task '{v}': command: has the character \\0, "
                          "which no program can be given"));
  EXPECT_THAT(in_task("command: x, id: y", R"({v: ["a\0b"], include: [{w: "\0"}]})"),
              ElementsAre("sweep.yaml:3:16: group 'g': 'v': has the character \\0, which no "
                          "program can be given",
                          "sweep.yaml:3:39: group 'g': 'w': has the character \\0, which no "
                          "program can be given"));
}

}  // namespace
}  // namespace trainyard
