#include "wire/rank.h"

#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

Payload small_payload() {
  return {.headers = R"({"round":3})",
          .cookies = R"({"k":"v"})",
          .values = R"({"lr":0.1})",
          .buffers = {{.name = "w", .dtype = "float32", .shape = {2, 3}, .shared = true},
                      {.name = "b", .dtype = "int64"}}};
}

TEST(RankRequest, IsReadAsItWasWritten) {
  const RankRequest initialise = InitialiseRequest{.components = R"([{"id":"a","type":"t"}])",
                                                   .executor = "a",
                                                   .rank = 2,
                                                   .ranks = 4,
                                                   .buffers_wanted = false,
                                                   .event_ms = 7,
                                                   .context = R"({"set":{"a":[1,3]}})"};
  EXPECT_EQ(read_rank_request(to_fields(initialise)).value(), initialise);
  const RankRequest execute = ExecuteRequest{.task = "train \"it\"", .payload = small_payload()};
  EXPECT_EQ(read_rank_request(to_fields(execute)).value(), execute);
  EXPECT_EQ(read_rank_request(to_fields(RankRequest{CloseRequest{}})).value(),
            RankRequest{CloseRequest{}});
}

TEST(RankReply, SaysWhichEventsAreHeard) {
  EXPECT_TRUE(hears({"start-run", "round"}, "round"));
  EXPECT_FALSE(hears({"start-run", "round"}, "rounds"));
  EXPECT_TRUE(hears({"*"}, "rounds"));
  EXPECT_FALSE(hears({}, "round"));
}

TEST(RankReply, IsReadAsItWasWritten) {
  const RankReply reply{.outcome = {.code = "rank-died", .message = "m", .traceback = "t"},
                        .listens = {"*", "round.done"},
                        .payload = small_payload(),
                        .context = R"({"remove":["a"]})"};
  EXPECT_EQ(read_rank_reply(to_fields(reply)).value(), reply);
  EXPECT_EQ(to_fields(RankReply{}), R"({"code":"ok"})");
}

TEST(RankWord, IsReadAsItWasWritten) {
  const RankWord event = EventWord{.name = "round.done",
                                   .data = "[1,2]",
                                   .context = R"({"set":{}})",
                                   .depth = 2,
                                   .from_rank = 3,
                                   .to_group = true};
  EXPECT_EQ(read_rank_word(to_fields(event)).value(), event);
  const RankWord done = EventDone{.errors = {"a", "b"}};
  EXPECT_EQ(read_rank_word(to_fields(done)).value(), done);
  const RankWord stop = StopWord{.reason = "Ctrl-C"};
  EXPECT_EQ(read_rank_word(to_fields(stop)).value(), stop);
}

TEST(RankRequest, ThatMakesNoSenseIsAnErrorThatNamesTheMember) {
  const auto error = [](const char* fields) { return read_rank_request(fields).error().message; };
  EXPECT_EQ(error("{}"), "request: 'do' is missing");
  EXPECT_EQ(error(R"({"do":"dance"})"),
            "request: 'do' must be initialise, execute or close, not 'dance'");
  EXPECT_EQ(error(R"({"do":"execute"})"), "request: 'task' is missing");
  EXPECT_EQ(error(R"({"do":"execute","task":"t","values":[1]})"),
            "request: 'values' must be an object");
  EXPECT_EQ(error(R"({"do":"initialise","executor":"e","rank":-1})"),
            "request: 'rank' must be a whole number from 0 to 1000000000");
  for (const char* shape : {"[-1]", "[1.5]", "7", R"(["a"])", "[18446744073709551615]"}) {
    EXPECT_EQ(
        error((std::string(R"({"do":"execute","task":"t","buffers":[{"name":"w","dtype":"f",)") +
               R"("shape":)" + shape + "}]}")
                  .c_str()),
        "request: 'buffers' must be a list of {name, dtype, shape}")
        << shape;
  }
}

TEST(RankReply, ThatMakesNoSenseIsAnErrorThatNamesTheMember) {
  EXPECT_EQ(read_rank_reply("{}").error().message, "reply: 'code' is missing");
  EXPECT_EQ(read_rank_reply(R"({"code":"ok","listens":[7]})").error().message,
            "reply: 'listens' must be a list of texts");
}

TEST(RankWord, ThatMakesNoSenseIsAnErrorThatNamesTheMember) {
  EXPECT_EQ(read_rank_word("[]").error().message, "word: fields must be an object, not array");
  EXPECT_EQ(read_rank_word(R"({"say":"sing"})").error().message,
            "word: 'say' must be event, event-done or stop, not 'sing'");
  EXPECT_EQ(read_rank_word(R"({"say":"event","name":7})").error().message,
            "word: 'name' must be text");
}

TEST(RankReply, KeepsTheEndOfALongTraceback) {
  RankReply reply{};
  reply.outcome.traceback = std::string(70'000, 'a') + "last line";
  const RankReply read = read_rank_reply(to_fields(reply)).value();
  EXPECT_EQ(read.outcome.traceback.size(), 64'000U);
  EXPECT_TRUE(read.outcome.traceback.ends_with("last line"));
}

}  // namespace
}  // namespace trainyard::wire
