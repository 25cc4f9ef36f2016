#include "wire/control.h"

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

TEST(ControlRequest, ToTryAgainSaysWithWhat) {
  const ControlRequest retry = Retry{.group = "train",
                                     .id = "a",
                                     .memory_bytes = 1,
                                     .gpu_memory_bytes = 20'000'000'000,
                                     .time_limit_ms = 7'200'000};
  EXPECT_EQ(to_fields(retry),
            R"({"do":"retry","gpu_memory_bytes":20000000000,"group":"train","id":"a",)"
            R"("memory_bytes":1,"time_limit_ms":7200000})");
  EXPECT_EQ(read_request(to_fields(retry)).value(), retry);
  EXPECT_EQ(read_request(R"({"do":"retry","group":"g","id":"a"})").value(),
            (ControlRequest{Retry{.group = "g", .id = "a"}}));
  for (const std::string_view amount : {"-1", "1.5", "\"1\"", "18446744073709551615"}) {
    EXPECT_EQ(request_error(R"({"do":"retry","group":"g","id":"a","memory_bytes":)" +
                            std::string(amount) + "}"),
              "request: 'memory_bytes' must be a whole number from 0 to 9223372036854775807")
        << amount;
  }
}

TEST(ControlRequest, ToHoldToReleaseAndToGoFirstComeThroughTheFrame) {
  for (const ControlRequest& request :
       {ControlRequest(Hold{.group = "train", .id = "a", .hold = true}),
        ControlRequest(Hold{.group = "train", .id = "a", .hold = false}),
        ControlRequest(SetPriority{.group = "train", .id = "lr=1", .priority = -7})}) {
    EXPECT_EQ(read_request(to_fields(request)), request);
  }
  EXPECT_EQ(request_error(R"({"do":"hold","group":"a"})"), "request: 'id' is missing");
  for (const std::string_view wrong : {R"("3")", "1.5", "1001", "-1001", "18446744073709551615"}) {
    EXPECT_EQ(request_error(std::string(R"({"do":"priority","group":"a","id":"b","priority":)") +
                            std::string(wrong) + "}"),
              "request: 'priority' must be a whole number from -1000 to 1000")
        << wrong;
  }
}

TEST(ControlRequest, SaysWhatIsWrong) {
  EXPECT_EQ(request_error(""), "request: 'do' is missing");
  EXPECT_EQ(request_error(R"({"do":"dance"})"),
            "request: 'do' must be ping, kill, retry, hold, release, priority or submit, not "
            "'dance'");
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
            "reply: 'outcome' must be done, not-running, no-such-task or error, not 'maybe'");
}

TEST(ControlReply, CarriesAtMostSixteenThousandBytesOfText) {
  const ControlReply reply{.text = std::string(50'000, 'x')};
  EXPECT_EQ(read_reply(to_fields(reply)).value().text, std::string(16'000, 'x'));
}

TEST(ControlReply, CarriesTheNumberOfWhatWasSubmitted) {
  const ControlReply reply{.text = "added", .number = 7};
  EXPECT_EQ(to_fields(reply), R"({"number":7,"outcome":"done","text":"added"})");
  EXPECT_EQ(read_reply(to_fields(reply)).value(), reply);
  EXPECT_EQ(read_reply(R"({"outcome":"done","number":"7"})").error().message,
            "reply: 'number' must be a whole number from 0 to 4294967295");
}

TEST(ControlRequest, CarriesAJobFileAndAnEnvironmentAsTheyAre) {
  const ControlRequest submit = Submit{.job_file = "/home/me/more.yaml",
                                       .current_directory = "/home/me",
                                       .settings = {"task.allow-duplicate-id=true"},
                                       .command_line = "trainyard submit more.yaml",
                                       .job_text = "groups: []\n\xFF",
                                       .environment = {"A=1", "B=", "C=x\ny\xFE"}};
  const std::vector<std::string> buffers = to_buffers(submit);
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(read_request(to_fields(submit), buffers).value(), submit);
  EXPECT_EQ(
      read_request(to_fields(submit)).error().message,
      "request: 'buffers' must be 2, a job file and an environment, or 3, with the options of a "
      "command; there are 0");
  EXPECT_EQ(request_error(R"({"do":"submit","job_file":"a"})"),
            "request: 'current_directory' is missing");
  EXPECT_EQ(
      request_error(
          R"({"do":"submit","job_file":"a","current_directory":"/","command_line":"","settings":3})"),
      "request: 'settings' must be a list");
  EXPECT_TRUE(read_request(
      R"({"do":"submit","job_file":"a","current_directory":"/","command_line":""})", buffers))
      << "settings may be missing";
  EXPECT_TRUE(to_buffers(Ping{}).empty());
}

TEST(ControlRequest, CarriesTheOptionBehindEachLineOfACommand) {
  const ControlRequest submit = Submit{.job_file = "/home/me/command.yaml",
                                       .current_directory = "/home/me",
                                       .command_line = "trainyard submit --cpus 2 -- true",
                                       .job_text = "name: 'true'\n",
                                       .line_names = {"the command", "", "--cpus"}};
  const std::vector<std::string> buffers = to_buffers(submit);
  EXPECT_EQ(buffers.size(), 3U);
  EXPECT_EQ(read_request(to_fields(submit), buffers).value(), submit);
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
