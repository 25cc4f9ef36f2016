// The control server and its clients: requests, replies, and their ends.
#include "link/control_server.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/test_control_server.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Frame;
using wire::FrameKind;
using wire::Outcome;

TEST_F(ControlServerTest, AnswersARequest) {
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(7, wire::Kill{.group = "train", .id = "a"})));
  run_until_heard(*caller, 1);
  EXPECT_THAT(requests, ElementsAre("kill train/a"));
  EXPECT_THAT(caller->received, ElementsAre(reply(7, {.text = "done so"})));
  EXPECT_FALSE(caller->cut_off);
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(ControlServerTest, AnswersInALaterTurnAndInAnyOrder) {
  answers_at_once = false;
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1) + request(2)));
  run_until([&] { return due.size() == 2; });
  caller->hear();
  EXPECT_THAT(caller->received, IsEmpty());
  due[1]({.outcome = Outcome::NotRunning, .text = "second"});
  due[0]({.outcome = Outcome::NoSuchTask, .text = "first"});
  run_until_heard(*caller, 2);
  EXPECT_THAT(caller->received,
              ElementsAre(reply(2, {.outcome = Outcome::NotRunning, .text = "second"}),
                          reply(1, {.outcome = Outcome::NoSuchTask, .text = "first"})));
}

TEST_F(ControlServerTest, SaysSoWhenARequestIsForgotten) {
  answers_at_once = false;
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1)));
  run_until([&] { return due.size() == 1; });
  due.clear();
  run_until_heard(*caller, 1);
  EXPECT_THAT(
      caller->received,
      ElementsAre(reply(1, {.outcome = Outcome::Error, .text = "the request was not answered"})));
}

TEST_F(ControlServerTest, DropsTheAnswerToWhoHasGone) {
  answers_at_once = false;
  listen();
  auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1)));
  run_until([&] { return due.size() == 1; });
  caller.reset();
  run_until([&] { return server->connections() == 0; });
  due[0]({});
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(ControlServerTest, DropsTheAnswerWhenItIsGoneItself) {
  answers_at_once = false;
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1) + request(2)));
  run_until([&] { return due.size() == 2; });
  control.reset();
  server.reset();
  due[0]({});
  due.clear();
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->received, IsEmpty());
}

TEST_F(ControlServerTest, RemovesItsSocketAndItsDirectory) {
  listen();
  const std::filesystem::path path = server->path();
  EXPECT_TRUE(std::filesystem::exists(path));
  control.reset();
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

TEST_F(ControlServerTest, MayBeEndedByACallback) {
  auto made = FrameServer::listen(
      loop, {.program = "p", .parents = {"/tmp"}, .on_trouble = [](std::string_view) {}});
  ASSERT_TRUE(made);
  server = std::move(*made);
  control = std::make_unique<ControlServer>(*server, ControlLimits{},
                                            [this](const wire::ControlRequest&, const Reply&) {
                                              control.reset();
                                              server.reset();
                                            });
  Caller caller(server->path());
  EXPECT_TRUE(caller.say(hello() + request(1) + request(2)));
  run_until_cut_off(caller);
  EXPECT_THAT(caller.received, ElementsAre(Frame{.kind = FrameKind::Welcome,
                                                 .fields = R"({"ok":true,"server":"p"})"}));
  EXPECT_FALSE(server);
}

TEST_F(ControlServerTest, TakesFramesThatComeTogether) {
  listen();
  Caller caller(server->path());
  EXPECT_TRUE(caller.say(hello() + request(1) + request(2)));
  run_until_heard(caller, 3);
  EXPECT_THAT(caller.received,
              ElementsAre(welcome(), reply(1, {.text = "done so"}), reply(2, {.text = "done so"})));
}

TEST_F(ControlServerTest, TakesFramesThatComeByteByByte) {
  listen();
  Caller caller(server->path());
  for (const char byte : hello() + request(1)) {
    EXPECT_TRUE(caller.say({&byte, 1}));
    loop.run_once(Duration{10});
  }
  run_until_heard(caller, 2);
  EXPECT_THAT(caller.received, ElementsAre(welcome(), reply(1, {.text = "done so"})));
  EXPECT_THAT(requests, ElementsAre("ping"));
}

TEST_F(ControlServerTest, GoesOnAfterARequestThatItDoesNotUnderstand) {
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(bytes_of({.sequence = 5, .fields = R"({"do":"dance"})"}) + request(6)));
  run_until_heard(*caller, 2);
  EXPECT_THAT(
      caller->received,
      ElementsAre(reply(5, {.outcome = Outcome::Error,
                            .text = "request: 'do' must be ping, kill, retry, hold, release, "
                                    "priority or submit, not 'dance'"}),
                  reply(6, {.text = "done so"})));
  EXPECT_THAT(requests, ElementsAre("ping"));
}

TEST_F(ControlServerTest, LetsOnlyControlIn) {
  listen();
  Caller caller(server->path());
  EXPECT_TRUE(caller.say(bytes_of({.kind = FrameKind::Hello,
                                   .sequence = 3,
                                   .fields = R"({"role":"task","version":1,"token":"t"})"}) +
                         request(4)));
  run_until_cut_off(caller);
  const std::string why = "role 'task' is not taken here";
  EXPECT_THAT(caller.received,
              ElementsAre(Frame{.kind = FrameKind::Welcome,
                                .sequence = 3,
                                .fields = wire::to_fields(wire::Welcome{
                                    .ok = false, .server = "trainyard test", .error = why})}));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: " + why));
  EXPECT_THAT(requests, IsEmpty());
}

TEST_F(ControlServerTest, KnowsWhoConnects) {
  listen();
  const auto caller = caller_inside();
  const Peer peer = peer_of(caller->socket.get()).value();
  EXPECT_EQ(peer.process, ::getpid());
  EXPECT_EQ(peer.user, ::geteuid());
  EXPECT_FALSE(peer_of(-1));
}

}  // namespace
}  // namespace trainyard::link
