#include "wire/agent.h"

#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>

#include "wire/test_values.h"
#include "wire/unheard_lines.h"

namespace trainyard::wire {
namespace {

using testing::ElementsAre;

TEST(Agent, SaysOnALineWhatItHasToSay) {
  const std::vector<std::pair<AgentSays, std::string>> all{
      {{.what = AgentHello{.protocol = 1,
                           .program = "trainyard 0.1.0",
                           .path = "/bin/ty",
                           .home = "/home/me",
                           .host = "lab1",
                           .instance = "0a1b",
                           .place = "b1",
                           .capacity = {.memory = gb(8), .cpus = model::cpus(4)},
                           .received = 3,
                           .acknowledged = 4,
                           .said = 6,
                           .begun = true,
                           .clock = Duration(86'400'000),
                           .at = {Duration(17)},
                           .unix_ms = 1'700'000'000'000}},
       R"({"hello":{"protocol":1,"program":"trainyard 0.1.0","path":"/bin/ty","home":"/home/me",)"
       R"("host":"lab1","instance":"0a1b","place":"b1","capacity":{"memory":8000000000,"cpus":4000},"received":3,"acknowledged":4,"said":6,"begun":true,"clock":86400000,"at":17,)"
       R"("unix_ms":1700000000000}})"},
      {{.number = 1,
        .what = AgentSeen{.no_directory = "read-only",
                          .no_file = "another one",
                          .disk_free = gb(3),
                          .programs = {{.why_not = "no such program"},
                                       {.missing = {"torch"}, .cannot_ask = "too late"}}}},
       R"({"number":1,"seen":{"no_directory":"read-only","no_file":"another one",)"
       R"("disk_free":3000000000,"programs":[{"why_not":"no such program"},)"
       R"({"missing":["torch"],"cannot_ask":"too late"}]}})"},
      {{.number = 1, .what = AgentReady{}}, R"({"number":1,"ready":{}})"},
      {{.number = 7,
        .what =
            AgentReady{.found = true,
                       .runs = {{.command = {.key = {.task = {7}, .attempt = 2}},
                                 .journal_number = 9,
                                 .two_phase = true,
                                 .started = model::AttemptStarted{.key = {.task = {7}}, .pid = 4},
                                 .ended = true,
                                 .task_directory = "/run/a"}}}},
       R"({"number":7,"ready":{"found":true,"runs":[{"command":{"key":{"task":7,"attempt":2}},)"
       R"("journal_number":9,"two_phase":true,"started":{"key":{"task":7},"pid":4},"ended":true,)"
       R"("task_directory":"/run/a"}]}})"},
      {{.number = 2, .what = AgentRefuses{.why = "no \"disk\""}},
       R"({"number":2,"refuses":{"why":"no \"disk\""}})"},
      {{.number = 3,
        .what = AgentTells{.at = {Duration(5)},
                           .what = model::AttemptEnded{.key = {.task = {7}, .attempt = 2},
                                                       .end = model::ExitedWith{3}}}},
       R"({"number":3,"tells":{"at":5,"what":{"attempt_ended":{"key":{"task":7,"attempt":2},)"
       R"("end":{"exited":{"code":3}}}}}})"},
      {{.number = 4, .what = AgentNote{.text = "GPU 0 answers"}},
       R"({"number":4,"note":{"text":"GPU 0 answers"}})"},
      {{.number = 5, .what = AgentLog{.path = "/run/a/stdout.log", .anew = true, .bytes = "1\n"}},
       R"({"number":5,"log":{"path":"/run/a/stdout.log","anew":true,"bytes":"1\n"}})"},
      {{.number = 6, .what = AgentLog{.path = "/run/a/stdout.log", .bytes = "\xff"}},
       R"({"number":6,"log":{"path":"/run/a/stdout.log","bytes":{"hex":"ff"}}})"},
      {{.what = AgentHeard{.up_to = 9, .clock = Duration(1)}},
       R"({"heard":{"up_to":9,"clock":1}})"}};
  for (const auto& [said, line] : all) {
    EXPECT_EQ(to_line(said), line);
    EXPECT_TRUE(agent_says(line).value() == said) << line;
    for (std::size_t size = 0; size < line.size(); ++size) {
      EXPECT_FALSE(agent_says(line.substr(0, size)).has_value()) << line.substr(0, size);
    }
  }
}

TEST(Agent, HearsOnALineWhatItIsTold) {
  model::Launch launch;
  launch.arguments = {"python3", "train.py"};
  launch.environment = {"LR=0.1", "OMP_NUM_THREADS"};
  launch.working_directory = "/proj";
  launch.task_directory = "/run/a";
  launch.ranks = 2;
  launch.own_ranks = model::OwnRanks{.gpus = 1, .log_paths = {"/run/a/rank1.log"}};
  launch.preload.modules = {"torch"};
  launch.region_limits = {{.region = "drm/0", .most = {5}}};
  const model::StartAttempt start{.key = {.task = {1}}, .site = {.machine = {2}, .gpus = {{1}}}};
  const std::vector<std::pair<YardSays, std::string>> all{
      {{.what = AgentOpen{.protocol = 1,
                          .program = "trainyard 0.1.0",
                          .lease = Duration(60'000),
                          .until = Duration(99'000),
                          .received = 4}},
       R"({"open":{"protocol":1,"program":"trainyard 0.1.0","lease":60000,"until":99000,"received":4}})"},
      {{.number = 1,
        .what = AgentLook{.directory = "/runs/a",
                          .file = "/job.yaml",
                          .file_print = 77,
                          .programs = {{.name = "python3",
                                        .by_shell = true,
                                        .directory = "/proj",
                                        .environment = {"PATH=/bin"},
                                        .modules = {"torch"},
                                        .import_directory = "/proj/src"}}}},
       R"({"number":1,"look":{"directory":"/runs/a","file":"/job.yaml","file_print":77,)"
       R"("programs":[{"name":"python3","by_shell":true,"directory":"/proj",)"
       R"("environment":["PATH=/bin"],"modules":["torch"],"import_directory":"/proj/src"}]}})"},
      {{.number = 1,
        .what = AgentBegin{.run_directory = "/run",
                           .key = "a1",
                           .after = "a0",
                           .keeps = {{{.task = {1}, .attempt = 3}}},
                           .work_directory = "/proj",
                           .proof = "/run/proof",
                           .token = "0f",
                           .sample_every = Duration(500),
                           .log_max = {9}}},
       R"({"number":1,"begin":{"run_directory":"/run","key":"a1","after":"a0","keeps":[{"task":1,"attempt":3}],"work_directory":"/proj","proof":"/run/proof","token":"0f",)"
       R"("sample_every":500,"log_max":9}})"},
      {{.number = 2, .what = AgentStart{.command = start, .launch = launch, .journal_number = 8}},
       R"({"number":2,"start":{"command":{"key":{"task":1},"site":{"machine":2,"gpus":[1]}},)"
       R"("launch":{"arguments":["python3","train.py"],"environment":["LR=0.1",)"
       R"("OMP_NUM_THREADS"],"working_directory":"/proj","task_directory":"/run/a","ranks":2,)"
       R"("own_ranks":{"gpus":1,"log_paths":["/run/a/rank1.log"]},"preload":{"modules":["torch"]},)"
       R"("region_limits":[{"region":"drm/0","most":5}]},"journal_number":8}})"},
      {{.number = 3,
        .what = AgentCommand{.command = model::StopAttempt{.key = {.task = {1}}, .kill = true}}},
       R"({"number":3,"command":{"command":{"stop_attempt":{"key":{"task":1},"kill":true}}}})"},
      {{.what = AgentHeard{.up_to = 9, .clock = Duration(61'000)}},
       R"({"heard":{"up_to":9,"clock":61000}})"},
      {{.what = AgentBye{}}, R"({"bye":{}})"}};
  for (const auto& [said, line] : all) {
    EXPECT_EQ(to_line(said), line);
    EXPECT_TRUE(yard_says(line).value() == said) << line;
    for (std::size_t size = 0; size < line.size(); ++size) {
      EXPECT_FALSE(yard_says(line.substr(0, size)).has_value()) << line.substr(0, size);
    }
  }
}

TEST(Agent, ReadsEveryCommandAsItWasWritten) {
  for (std::size_t which = 0; which < std::variant_size_v<model::Command>; ++which) {
    const bool holds = rc::check(fmt::format("command {} is read as it was", which), [which] {
      AgentCommand command;
      make_up(command.command, which);
      const YardSays said{.number = 1, .what = std::move(command)};
      const std::string line = to_line(said);
      const Result<YardSays> read = yard_says(line);
      RC_ASSERT((read ? "" : read.error().message) == "");
      RC_ASSERT(to_line(*read) == line);
      RC_ASSERT(*read == said);
    });
    EXPECT_TRUE(holds);
  }
}

TEST(Agent, NamesWhatIsWrongWithALine) {
  EXPECT_EQ(yard_says(R"({"number":1,"start":{"launch":{"ranks":"two"}}})").error().message,
            "yard: start.launch.ranks: must be a whole number from -2147483648 to 2147483647");
  EXPECT_FALSE(agent_says("Welcome to lab1!").has_value());
  EXPECT_FALSE(agent_says("{}").has_value()) << "it says nothing";
  EXPECT_FALSE(agent_says(R"({"ready":{},"note":{}})").has_value()) << "it says two things";
  EXPECT_FALSE(yard_says(R"({"ready":{}})").has_value()) << "that is an agent's to say";
}

TEST(Agent, IsToldFromAGreetingByItsFirstWord) {
  EXPECT_TRUE(is_agents_first(R"({"hello":{"protocol":1}})"));
  EXPECT_TRUE(is_agents_first(R"({"refuses":{"why":"no"}})"));
  EXPECT_FALSE(is_agents_first("Last login: Fri"));
  EXPECT_FALSE(is_agents_first(R"({"number":1,"hello":{}})"));
  EXPECT_FALSE(is_agents_first(""));
}

TEST(UnheardLines, KeepWhatIsSaidUntilItIsHeard) {
  UnheardLines lines;
  EXPECT_EQ(lines.next(), 1U);
  EXPECT_EQ(lines.keep("one"), "one");
  lines.keep("two");
  lines.keep("three");
  EXPECT_EQ(lines.next(), 4U);
  EXPECT_EQ(lines.bytes(), 11U);
  lines.acknowledge(2);
  EXPECT_THAT(lines.lines(), ElementsAre("three"));
  EXPECT_EQ(lines.bytes(), 5U);
  lines.acknowledge(1);
  lines.acknowledge(99);
  EXPECT_EQ(lines.next(), 4U) << "what was never said cannot be acknowledged";
  EXPECT_TRUE(lines.lines().empty());
}

TEST(UnheardLines, MayFollowOnThoseOfSomebodyElse) {
  UnheardLines lines;
  lines.go_on_after(7);
  EXPECT_EQ(lines.acknowledged(), 7U);
  EXPECT_EQ(lines.next(), 8U);
  lines.keep("eight");
  lines.acknowledge(7);
  EXPECT_THAT(lines.lines(), ElementsAre("eight"));
  lines.acknowledge(8);
  EXPECT_EQ(lines.acknowledged(), 8U);
}

}  // namespace
}  // namespace trainyard::wire
