#include "wire/control.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

std::string request_error(std::string_view fields) {
  const auto request = read_request(fields);
  return request ? "no error" : request.error().message;
}

TEST(ControlRequest, IsReadAsItWasWritten) {
  EXPECT_EQ(to_fields(ControlRequest{Ping{}}), R"({"do":"ping"})");
  EXPECT_EQ(read_request(to_fields(ControlRequest{Ping{}})).value(), ControlRequest{Ping{}});
  const ControlRequest kill = Kill{.group = "train", .id = "lr=1e-3,seed=0"};
  EXPECT_EQ(to_fields(kill), R"({"do":"kill","group":"train","id":"lr=1e-3,seed=0"})");
  EXPECT_EQ(read_request(to_fields(kill)).value(), kill);
}

TEST(ControlRequest, SaysWhatIsWrong) {
  EXPECT_EQ(request_error(""), "request: 'do' is missing");
  EXPECT_EQ(request_error(R"({"do":"dance"})"),
            "request: 'do': unknown request 'dance'; there are ping and kill");
  EXPECT_EQ(request_error(R"({"do":"kill","id":"a"})"), "request: 'group' is missing");
  EXPECT_EQ(request_error(R"({"do":"kill","group":"a","id":7})"), "request: 'id' must be text");
  EXPECT_EQ(request_error("\"kill\""), "request: fields must be an object, not string");
}

TEST(ControlReply, IsReadAsItWasWritten) {
  for (const Outcome outcome :
       {Outcome::Done, Outcome::NotRunning, Outcome::NoSuchTask, Outcome::Error}) {
    const ControlReply reply{.outcome = outcome, .text = "why"};
    EXPECT_EQ(read_reply(to_fields(reply)).value(), reply);
  }
  EXPECT_EQ(to_fields(ControlReply{.outcome = Outcome::NotRunning, .text = "a"}),
            R"({"outcome":"not-running","text":"a"})");
  EXPECT_EQ(read_reply(R"({"outcome":"done"})").value(), ControlReply{});
}

TEST(ControlReply, SaysWhatIsWrong) {
  EXPECT_EQ(read_reply("{}").error().message, "reply: 'outcome' is missing");
  EXPECT_EQ(read_reply(R"({"outcome":"maybe"})").error().message,
            "reply: 'outcome': unknown outcome 'maybe'");
}

TEST(ControlReply, CarriesAtMostAThousandBytesOfText) {
  const ControlReply reply{.text = std::string(5000, 'x')};
  EXPECT_EQ(read_reply(to_fields(reply)).value().text, std::string(1000, 'x'));
}

TEST(ControlReply, ReplacesBadUtf8) {
  EXPECT_EQ(to_fields(ControlReply{.text = "\xFF"}), "{\"outcome\":\"done\",\"text\":\"\uFFFD\"}");
}

TEST(Failure, SaysWhy) {
  EXPECT_EQ(failure_fields("too many"), R"({"error":"too many"})");
  EXPECT_EQ(read_failure(failure_fields("too many")), "too many");
  EXPECT_EQ(read_failure("garbage"), "no reason was given");
  EXPECT_EQ(read_failure("{}"), "no reason was given");
}

}  // namespace
}  // namespace trainyard::wire
