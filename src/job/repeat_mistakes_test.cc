// Invalid repeats, and their messages.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A repeat of a server and its clients, with other lines next to `repeat` and another command.
std::vector<std::string> with(std::string_view lines, std::string_view command = "x") {
  return mistakes_of(fmt::format(R"(groups:
- {{name: init, matrix: {{a: 0..1}}, tasks: [{{command: x}}]}}
- {}
  groups:
  - {{name: clients, matrix: {{client: 0..2}}, tasks: [{{command: x}}]}}
  - {{name: server, tasks: [{{command: "{}"}}]}}
)",
                                 lines, command));
}

TEST(RepeatMistakes, AreNoneWhereThereAreNone) {
  EXPECT_THAT(with("repeat: 1"), IsEmpty());
  EXPECT_THAT(with("repeat: 10000"), IsEmpty());
  EXPECT_THAT(with("repeat: 2\n  initial: {clients.dirs: ''}", "x {prev.clients.dirs}"), IsEmpty());
  EXPECT_THAT(with("repeat: 2\n  initial: {clients: init}", "x {prev.clients.dirs}"), IsEmpty());
}

TEST(RepeatMistakes, NameTheNumbersThatARepeatMayHave) {
  for (const std::string_view rounds : {"0", "-1", "1000000000", "10001", "2.5", "many", "1e3"}) {
    EXPECT_THAT(
        with(fmt::format("repeat: {}", rounds)),
        ElementsAre(fmt::format(
            "sweep.yaml:3:11: repeat: '{}' is not a valid number of rounds (1 to 10000)", rounds)));
  }
}

TEST(RepeatMistakes, AreInWhatEndsIt) {
  const auto until = [](std::string_view text) {
    return with(fmt::format("repeat: 3\n  until: {}", text));
  };
  const auto garbage = [](std::string_view text) {
    return fmt::format(
        "sweep.yaml:4:10: repeat: until: '{}' must compare a result with a number, as in "
        "'server.result.acc >= 0.97'",
        text);
  };
  for (const std::string_view text :
       {"often", "server.result.acc", "server.result.acc >= high", "server.acc > 1",
        "server.result. > 1", "server > 1", "\">= 3\""}) {
    const std::string_view plain = text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
    EXPECT_THAT(until(text), ElementsAre(garbage(plain)));
  }
  EXPECT_THAT(until("sever.result.acc > 1"),
              ElementsAre("sweep.yaml:4:10: repeat: until: 'sever.result.acc > 1': no group "
                          "'sever' is repeated (did you mean 'server'?)"));
  EXPECT_THAT(until("clients.result.acc > 1"),
              ElementsAre("sweep.yaml:4:10: repeat: until: 'clients.result.acc > 1' is of one "
                          "task, and group 'clients' has 3"));
}

TEST(RepeatMistakes, AreInWhatIsOfTheRoundBefore) {
  EXPECT_THAT(with("repeat: 3", "x {prev.sever.dir}"),
              ElementsAre(HasSubstr(
                  "unknown placeholder '{prev.sever.dir}' (did you mean '{prev.server.dir}'?)")));
  EXPECT_THAT(with("repeat: 3", "x {prev.nobody.dir}"),
              ElementsAre(HasSubstr("unknown placeholder '{prev.nobody.dir}'")));
  EXPECT_THAT(with("repeat: 3", "x {prev.clients.dir}"),
              ElementsAre(HasSubstr("group 'server': '{prev.clients.dir}' is of one task, and "
                                    "group 'clients' has 3; '{prev.clients.dirs}' are the "
                                    "directories of all")));
  EXPECT_THAT(with("repeat: 3", "x {prev.server.result.acc}"),
              ElementsAre(HasSubstr("'{prev.server.result.acc}' has no value in round 0; set one "
                                    "next to 'repeat', as in 'initial: {server.result.acc: "
                                    "\"\"}'")));
  EXPECT_THAT(mistakes_of("groups: [{name: g, tasks: [{command: 'x {prev.g.dir}'}]}]"),
              ElementsAre(HasSubstr("unknown placeholder '{prev.g.dir}'")));
  EXPECT_THAT(mistakes_of("groups: [{name: g, tasks: [{command: 'x {round}'}]}]"),
              ElementsAre(HasSubstr("unknown placeholder '{round}'")));
}

TEST(RepeatMistakes, AreInWhatRound0Sees) {
  const auto initial = [](std::string_view text) {
    return with(fmt::format("repeat: 3\n  initial: {}", text), "x {prev.server.dir}");
  };
  EXPECT_THAT(initial("{server: server}"),
              ElementsAre(HasSubstr("repeat: initial: 'server' is itself repeated; name a group "
                                    "before the repeat")))
      << "a circle";
  EXPECT_THAT(initial("{server.dir: '{prev.server.dir}'}"),
              ElementsAre(HasSubstr("initial: server.dir: '{prev.server.dir}': round 0 has no "
                                    "round before it")))
      << "another one";
  EXPECT_THAT(initial("{server: init}"),
              ElementsAre(HasSubstr("initial: '{prev.server.dir}' is of one task, but group "
                                    "'init', which replaces it in round 0, has 2")));
  EXPECT_THAT(initial("{server: ini}"),
              ElementsAre(HasSubstr("no group 'ini' before the repeat (did you mean 'init'?)")));
  EXPECT_THAT(initial("{sever.dir: a, server.dir: b}"),
              ElementsAre(HasSubstr(
                  "initial: 'sever.dir' is not a value of a round (did you mean 'server.dir'?)")));
  EXPECT_THAT(initial("[server.dir]"),
              ElementsAre(HasSubstr(
                  "'initial' must be the values that round 0 uses in place of a round before it")));
}

TEST(RepeatMistakes, AreInWhereItStands) {
  EXPECT_THAT(
      mistakes_of(
          "groups: [{repeat: 2, groups: [{repeat: 2, groups: [{tasks: [{command: x}]}]}]}]"),
      ElementsAre(HasSubstr("a 'repeat' cannot contain another repeat")));
  EXPECT_THAT(mistakes_of("groups: [{repeat: 2, groups: [{tasks: [{command: x}]}]}, {name: last, "
                          "tasks: [{command: x}]}]"),
              ElementsAre(HasSubstr("'repeat' must be the last group")));
  EXPECT_THAT(with("repeat: 2\n  tasks: []\n  util: x.result.a > 1"),
              ElementsAre(HasSubstr("'tasks' belongs to a group, under the 'groups' of the repeat"),
                          HasSubstr("unknown key 'util' (did you mean 'until'?)")));
  EXPECT_THAT(mistakes_of("groups: [{repeat: 2}]"), ElementsAre(HasSubstr("has no 'groups'")));
  EXPECT_THAT(mistakes_of("groups: [{repeat: 2, groups: []}]"),
              ElementsAre(HasSubstr("'groups' must be a list of groups")));
}

TEST(RepeatMistakes, AreInTheNamesAroundIt) {
  const auto of = [](std::string_view before, std::string_view in_group) {
    return mistakes_of(
        fmt::format("groups: [{{{}, tasks: [{{command: x}}]}}, {{repeat: 4, groups: "
                    "[{{name: g, {}tasks: [{{command: x}}]}}]}}]",
                    before, in_group));
  };
  EXPECT_THAT(of("name: g.4", ""), IsEmpty()) << "there are rounds 0 to 3";
  EXPECT_THAT(of("name: g.3", ""),
              ElementsAre(HasSubstr("group 'g.3': so group 'g' is called in round 3: give one of "
                                    "them another name")));
  EXPECT_THAT(of("name: a, needs: [g]", "needs: [], "),
              ElementsAre(HasSubstr("group 'a': needs: 'g' is repeated")));
  EXPECT_THAT(of("name: a, matrix: {k: [1]}", "needs: [{group: a, match: matrix}], "),
              ElementsAre(HasSubstr("group 'g': needs: match: 'a' is not repeated")));
  EXPECT_THAT(of("name: a", "matrix: {round: [1]}, "),
              ElementsAre(HasSubstr("matrix: 'round' is the number of the round")));
}

}  // namespace
}  // namespace trainyard::job
