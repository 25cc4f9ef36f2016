#include "wire/commands.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>
#include <rapidcheck/gen/Numeric.h>

#include "base/bytes.h"
#include "base/result.h"
#include "model/command.h"
#include "model/resources.h"
#include "wire/test_values.h"

namespace trainyard::wire {
namespace {

using model::Command;

std::string command_fault(std::string_view text) {
  const Result<Command> read = command_from_text(text);
  return read ? "none: " + to_text(*read) : read.error().message;
}

TEST(Commands, AreAsShortAsWhatTheySay) {
  const std::vector<std::pair<Command, std::string>> all{
      {model::StopAttempt{.key = {.task = {7}, .attempt = 2}, .kill = true},
       R"({"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}})"},
      {model::SignalAttempt{.key = {}, .signal = 10}, R"({"signal_attempt":{"signal":10}})"},
      {model::Answer{.request = 18'446'744'073'709'551'615U, .done = true},
       R"({"answer":{"request":18446744073709551615,"done":true}})"},
      {model::GrantDevice{}, R"({"grant_device":{}})"},
      {model::StartAttempt{.key = {.task = {1}},
                           .promise = {.memory = gb(1), .cpus = model::cpus(1), .gpu = {{0}}},
                           .site = {.machine = {2}, .gpus = {{3}, {1}}},
                           .memory_max = {5},
                           .gpu_memory_max = {6}},
       R"({"start_attempt":{"key":{"task":1},"promise":{"memory":1000000000,"cpus":1000,"gpu":0},)"
       R"("site":{"machine":2,"gpus":[3,1]},"memory_max":5,"gpu_memory_max":6}})"}};
  for (const auto& [command, text] : all) {
    EXPECT_EQ(to_text(command), text);
    EXPECT_TRUE(command_from_text(text).value() == command) << text;
    for (std::size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(command_from_text(text.substr(0, size)).has_value()) << text.substr(0, size);
    }
  }
}

TEST(Commands, AreReadAsTheyWereWrittenWhateverTheySay) {
  for (std::size_t which = 0; which < std::variant_size_v<Command>; ++which) {
    const bool holds = rc::check(fmt::format("command {} is read as it was", which), [which] {
      Command command;
      make_up(command, which);
      RC_ASSERT(command.index() == which);
      const std::string text = to_text(command);
      const Result<Command> read = command_from_text(text);
      RC_ASSERT((read ? "" : read.error().message) == "");
      RC_ASSERT(*read == command);
      RC_ASSERT(to_text(*read) == text);
      const auto cut = *rc::gen::inRange<std::size_t>(0, text.size());
      RC_ASSERT(!command_from_text(text.substr(0, cut)).has_value());
    });
    EXPECT_TRUE(holds);
  }
}

TEST(Commands, SayWhereTheyAreWrong) {
  EXPECT_EQ(command_fault(R"({"start_attempt":{"site":{"gpus":[0,-1]}}})"),
            "command: start_attempt.site.gpus[1]: must be a whole number from 0 to 4294967295");
  EXPECT_EQ(command_fault(R"({"start_attempt":{"promise":[]}})"),
            "command: start_attempt.promise: must be an object, not array");
  EXPECT_EQ(command_fault(R"({"sing":{}})"),
            "command: must have one of start_attempt, grant_device, signal_attempt, stop_attempt, "
            "answer");
  EXPECT_EQ(command_fault(R"({"answer":{},"stop_attempt":{}})"),
            "command: has both 'stop_attempt' and 'answer'");
  EXPECT_EQ(command_fault("7"), "command: must be an object, not number");
  EXPECT_EQ(command_fault(R"({"answer":{},"later":3,"stop_attempt":null})"),
            R"(none: {"answer":{}})");
}

}  // namespace
}  // namespace trainyard::wire
