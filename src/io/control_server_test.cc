// The control socket, with callers in the same thread: each test drives the loop until what it
// waits for has come.
#include "io/control_server.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/match.h"
#include "base/time.h"
#include "io/control_socket.h"
#include "io/descriptor.h"
#include "io/event_loop.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::io {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using wire::Frame;
using wire::FrameKind;
using wire::Outcome;

constexpr Duration kPatience{20'000};
/// Long enough for a caller to say hello on a busy machine.
constexpr Duration kShort{200};

std::string bytes_of(const Frame& frame) { return wire::encode(frame).value(); }

std::string hello() {
  return bytes_of(
      {.kind = FrameKind::Hello, .fields = wire::to_fields(wire::Hello{.program = "test"})});
}

std::string request(std::uint64_t sequence, const wire::ControlRequest& what = wire::Ping{}) {
  return bytes_of(
      {.kind = FrameKind::Request, .sequence = sequence, .fields = wire::to_fields(what)});
}

Frame welcome() {
  return {.kind = FrameKind::Welcome, .fields = R"({"ok":true,"server":"trainyard test"})"};
}

Frame reply(std::uint64_t sequence, const wire::ControlReply& what) {
  return {.kind = FrameKind::Reply, .sequence = sequence, .fields = wire::to_fields(what)};
}

Frame failure(std::string_view why) {
  return {.kind = FrameKind::Failure, .fields = wire::failure_fields(why)};
}

/// "kill train/a"
std::string shown(const wire::ControlRequest& what) {
  return match(
      what, [](const wire::Ping&) { return std::string("ping"); },
      [](const wire::Kill& kill) { return fmt::format("kill {}/{}", kill.group, kill.id); });
}

/// Somebody who connects, and everything that was said to them.
struct Caller {
  explicit Caller(const std::string& path)
      : socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = socket_address(path).value();
    EXPECT_EQ(::connect(socket.get(), generic(address), sizeof address), 0);
  }

  /// Sends what there is room for; whether that was all.
  bool say(std::string_view bytes) {
    const auto count =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count == static_cast<ssize_t>(bytes.size());
  }

  void hear() {
    std::array<char, 4096> bytes{};
    while (!cut_off) {
      const ssize_t count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count < 0 && errno == EAGAIN) return;
      cut_off = count <= 0;
      if (count > 0) reader.add({bytes.data(), static_cast<std::size_t>(count)});
      while (auto frame = reader.next().value()) heard.push_back(std::move(*frame));
    }
  }

  Descriptor socket;
  wire::FrameReader reader;
  std::vector<Frame> heard;
  bool cut_off = false;
};

/// A server, and everything that it told.
class ControlServerTest : public ::testing::Test {
 protected:
  void listen(ControlServerOptions options = {}) {
    options.program = "trainyard test";
    options.parents = {"/tmp"};
    ControlCallbacks callbacks{
        .on_request =
            [this](const wire::ControlRequest& what, Reply answer) {
              requests.push_back(shown(what));
              if (answers_at_once) {
                answer({.text = answer_text});
              } else {
                due.push_back(std::move(answer));
              }
            },
        .on_trouble = [this](std::string_view what) { troubles.emplace_back(what); }};
    auto made = ControlServer::listen(loop, std::move(options), std::move(callbacks));
    ASSERT_TRUE(made) << made.error().message;
    server.emplace(std::move(*made));
  }

  /// Drives the loop until it holds.
  void run_until(const std::function<bool()>& holds) {
    const Duration end = EventLoop::now() + kPatience;
    while (!holds()) {
      ASSERT_LT(EventLoop::now(), end) << "it did not come";
      loop.run_once(Duration{10});
    }
  }

  void run_until_heard(Caller& caller, std::size_t frames) {
    run_until([&] {
      caller.hear();
      return caller.heard.size() >= frames || caller.cut_off;
    });
  }

  void run_until_cut_off(Caller& caller) {
    run_until([&] {
      caller.hear();
      return caller.cut_off;
    });
  }

  /// Somebody who has said hello and was heard.
  std::unique_ptr<Caller> caller_inside() {
    auto caller = std::make_unique<Caller>(server->path());
    EXPECT_TRUE(caller->say(hello()));
    run_until_heard(*caller, 1);
    EXPECT_THAT(caller->heard, ElementsAre(welcome()));
    caller->heard.clear();
    return caller;
  }

  EventLoop loop;
  std::vector<std::string> requests;
  std::vector<Reply> due;
  std::vector<std::string> troubles;
  bool answers_at_once = true;
  std::string answer_text = "done so";
  std::optional<ControlServer> server;
  const std::string me = fmt::format("process {}", ::getpid());
};

TEST_F(ControlServerTest, AnswersARequest) {
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(7, wire::Kill{.group = "train", .id = "a"})));
  run_until_heard(*caller, 1);
  EXPECT_THAT(requests, ElementsAre("kill train/a"));
  EXPECT_THAT(caller->heard, ElementsAre(reply(7, {.text = "done so"})));
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
  EXPECT_THAT(caller->heard, IsEmpty());
  due[1]({.outcome = Outcome::NotRunning, .text = "second"});
  due[0]({.outcome = Outcome::NoSuchTask, .text = "first"});
  run_until_heard(*caller, 2);
  EXPECT_THAT(caller->heard,
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
      caller->heard,
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
  server.reset();
  due[0]({});
  due.clear();
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->heard, IsEmpty());
}

TEST_F(ControlServerTest, RemovesItsSocketAndItsDirectory) {
  listen();
  const std::filesystem::path path = server->path();
  EXPECT_TRUE(std::filesystem::exists(path));
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

TEST_F(ControlServerTest, MayBeEndedByACallback) {
  std::optional<ControlServer> mine;
  auto made = ControlServer::listen(
      loop, {.program = "p", .parents = {"/tmp"}},
      {.on_request = [&mine](const wire::ControlRequest&, const Reply&) { mine.reset(); },
       .on_trouble = [](std::string_view) {}});
  ASSERT_TRUE(made);
  mine.emplace(std::move(*made));
  Caller caller(mine->path());
  EXPECT_TRUE(caller.say(hello() + request(1) + request(2)));
  run_until_cut_off(caller);
  EXPECT_THAT(caller.heard, ElementsAre(Frame{.kind = FrameKind::Welcome,
                                              .fields = R"({"ok":true,"server":"p"})"}));
  EXPECT_FALSE(mine);
}

TEST_F(ControlServerTest, TakesFramesThatComeTogether) {
  listen();
  Caller caller(server->path());
  EXPECT_TRUE(caller.say(hello() + request(1) + request(2)));
  run_until_heard(caller, 3);
  EXPECT_THAT(caller.heard,
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
  EXPECT_THAT(caller.heard, ElementsAre(welcome(), reply(1, {.text = "done so"})));
  EXPECT_THAT(requests, ElementsAre("ping"));
}

TEST_F(ControlServerTest, GoesOnAfterARequestThatItDoesNotUnderstand) {
  listen();
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(bytes_of({.sequence = 5, .fields = R"({"do":"dance"})"}) + request(6)));
  run_until_heard(*caller, 2);
  EXPECT_THAT(
      caller->heard,
      ElementsAre(
          reply(5, {.outcome = Outcome::Error,
                    .text = "request: 'do': unknown request 'dance'; there are ping and kill"}),
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
  const std::string why = "role 'task' is not taken here, only 'control' is";
  EXPECT_THAT(caller.heard,
              ElementsAre(Frame{.kind = FrameKind::Welcome,
                                .sequence = 3,
                                .fields = wire::to_fields(wire::Welcome{
                                    .ok = false, .server = "trainyard test", .error = why})}));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: " + why));
  EXPECT_THAT(requests, IsEmpty());
}

struct Fault {
  std::string name;
  std::string bytes;
  std::string why;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class ControlServerFaultTest : public ControlServerTest,
                               public ::testing::WithParamInterface<Fault> {};

TEST_P(ControlServerFaultTest, IsTheEndOfThatConnectionAlone) {
  listen();
  const auto good = caller_inside();
  Caller bad(server->path());
  EXPECT_TRUE(bad.say(GetParam().bytes));
  run_until_cut_off(bad);
  ASSERT_THAT(bad.heard, Not(IsEmpty()));
  EXPECT_EQ(bad.heard.back(), failure(GetParam().why));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: " + GetParam().why));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->heard, ElementsAre(reply(1, {.text = "done so"})));
  EXPECT_THAT(requests, ElementsAre("ping"));
}

INSTANTIATE_TEST_SUITE_P(
    ControlServer, ControlServerFaultTest,
    ::testing::Values(
        Fault{.name = "Garbage",
              .bytes = "GET / HTTP/1.1\r\n\r\n",
              .why = "this is not trainyard's protocol"},
        Fault{.name = "HugeFields",
              .bytes = bytes_of({.kind = FrameKind::Hello}).replace(28, 4, "\xFF\xFF\xFF\x7F"),
              .why = "a frame with 2147483647 bytes of fields, at most 65536 are allowed"},
        Fault{.name = "Buffers",
              .bytes = bytes_of({.kind = FrameKind::Hello, .buffers = {"x"}}),
              .why = "a frame with 1 buffers, at most 0 are allowed"},
        Fault{.name = "LaterVersion",
              .bytes = hello().replace(4, 1, "\x02"),
              .why = "version 2 of the protocol is spoken there, 1 here"},
        Fault{.name = "NoHello", .bytes = request(1), .why = "the first frame must be a hello"},
        Fault{.name = "BadHello",
              .bytes = bytes_of({.kind = FrameKind::Hello, .fields = "[]"}),
              .why = "hello: fields must be an object, not array"},
        Fault{.name = "DeepHello",
              .bytes = bytes_of({.kind = FrameKind::Hello, .fields = std::string(60'000, '[')}),
              .why = "hello: fields: 1:65: nested deeper than 64"},
        Fault{.name = "TwoHellos",
              .bytes = hello() + hello(),
              .why = "a frame of kind 1 is not expected here"},
        Fault{.name = "AReply",
              .bytes = hello() + bytes_of({.kind = FrameKind::Reply}),
              .why = "a frame of kind 4 is not expected here"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_F(ControlServerTest, TellsWhenSomebodyGoesInTheMiddleOfAFrame) {
  listen();
  {
    Caller caller(server->path());
    EXPECT_TRUE(caller.say(hello().substr(0, 20)));
    run_until([&] { return server->connections() == 1; });
  }
  run_until([&] { return server->connections() == 0; });
  EXPECT_THAT(troubles, ElementsAre(me + " went in the middle of a frame"));
}

TEST_F(ControlServerTest, WaitsSoLongForAHelloAndNotLonger) {
  listen({.hello_within = kShort});
  Caller silent(server->path());
  Caller half(server->path());
  EXPECT_TRUE(half.say(hello().substr(0, 50)));
  const auto good = caller_inside();
  run_until_cut_off(silent);
  run_until_cut_off(half);
  EXPECT_THAT(silent.heard, ElementsAre(failure("nothing was said for 0.2 s")));
  EXPECT_THAT(half.heard, ElementsAre(failure("nothing was said for 0.2 s")));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: nothing was said for 0.2 s",
                                    me + " was cut off: nothing was said for 0.2 s"));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->heard, SizeIs(1));
}

TEST_F(ControlServerTest, EndsWhoSaysNothingMore) {
  listen({.silence_max = kShort});
  const auto caller = caller_inside();
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->heard, ElementsAre(failure("nothing was said for 0.2 s")));
  EXPECT_EQ(server->connections(), 0U);
}

TEST_F(ControlServerTest, DoesNotEndWhoWaitsForAnAnswer) {
  answers_at_once = false;
  listen({.silence_max = kShort});
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1)));
  const Duration end = EventLoop::now() + (2 * kShort);
  run_until([&] { return EventLoop::now() >= end; });
  ASSERT_THAT(due, SizeIs(1));
  caller->hear();
  EXPECT_FALSE(caller->cut_off);
  due[0]({});
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->heard, ElementsAre(reply(1, {}), failure("nothing was said for 0.2 s")));
}

TEST_F(ControlServerTest, HasSixtyFourConnectionsAtMost) {
  listen();
  std::vector<std::unique_ptr<Caller>> inside;
  for (int i = 0; i < 64; ++i) inside.push_back(caller_inside());
  EXPECT_EQ(server->connections(), 64U);
  Caller late(server->path());
  EXPECT_TRUE(late.say(hello()));
  run_until_cut_off(late);
  EXPECT_THAT(late.heard, ElementsAre(failure("there are 64 control connections already")));
  EXPECT_THAT(troubles,
              ElementsAre(me + " was turned away: there are 64 control connections already"));
  EXPECT_EQ(server->connections(), 64U);
  inside.pop_back();
  run_until([&] { return server->connections() == 63; });
  inside.push_back(caller_inside());
  EXPECT_EQ(server->connections(), 64U);
}

TEST_F(ControlServerTest, TurnsOtherUsersAway) {
  const std::uint32_t stranger = ::geteuid() + 1;
  listen({.peer = [&](int) { return Peer{.process = 77, .user = stranger}; }});
  Caller caller(server->path());
  run_until_cut_off(caller);
  const std::string why =
      fmt::format("user {} may not control the run of user {}", stranger, ::geteuid());
  EXPECT_THAT(caller.heard, ElementsAre(failure(why)));
  EXPECT_THAT(troubles, ElementsAre("process 77 was turned away: " + why));
}

TEST_F(ControlServerTest, TurnsAwayWhoCannotBeSeen) {
  listen({.peer = [](int) -> Result<Peer> { return std::unexpected(Error{"no eyes"}); }});
  Caller caller(server->path());
  run_until_cut_off(caller);
  EXPECT_THAT(caller.heard, ElementsAre(failure("no eyes")));
  EXPECT_THAT(troubles, ElementsAre("somebody was turned away: no eyes"));
}

TEST_F(ControlServerTest, KnowsWhoConnects) {
  listen();
  const auto caller = caller_inside();
  const Peer peer = peer_of(caller->socket.get()).value();
  EXPECT_EQ(peer.process, ::getpid());
  EXPECT_EQ(peer.user, ::geteuid());
  EXPECT_FALSE(peer_of(-1));
}

TEST_F(ControlServerTest, KeepsSoMuchForWhoDoesNotRead) {
  answer_text = std::string(1000, 'x');
  listen({.unread_bytes_max = std::size_t{20} << 10});
  const auto good = caller_inside();
  const auto slow = caller_inside();
  run_until([&] {
    static_cast<void>(slow->say(request(1)));
    return server->connections() == 1;
  });
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: it does not read its answers"));
  run_until_cut_off(*slow);
  EXPECT_TRUE(good->say(request(2)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->heard, ElementsAre(reply(2, {.text = answer_text})));
}

TEST_F(ControlServerTest, SendsTheRestWhenASlowReaderReads) {
  answer_text = std::string(1000, 'x');
  listen({.unread_bytes_max = std::size_t{2} << 20});
  const auto caller = caller_inside();
  // More than the kernel holds for us, less than the server does.
  constexpr std::size_t kRequests = 1'000;
  for (std::size_t i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(caller->say(request(i)));
    run_until([&] { return requests.size() == i + 1; });
  }
  run_until_heard(*caller, kRequests);
  ASSERT_THAT(caller->heard, SizeIs(kRequests));
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(caller->heard[i], reply(i, {.text = answer_text}));
  }
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(ControlServerTest, TakesSixtyFourRequestsAtOnceAndNotMore) {
  answers_at_once = false;
  listen();
  const auto caller = caller_inside();
  for (std::uint64_t i = 0; i < 65; ++i) EXPECT_TRUE(caller->say(request(i)));
  run_until_cut_off(*caller);
  EXPECT_THAT(requests, SizeIs(64));
  EXPECT_THAT(caller->heard, ElementsAre(failure("more than 64 requests at once")));
}

TEST_F(ControlServerTest, TellsFiveTroublesAtOnceAndNotMore) {
  listen();
  for (int i = 0; i < 12; ++i) {
    Caller caller(server->path());
    EXPECT_TRUE(caller.say("garbage"));
    run_until_cut_off(caller);
  }
  EXPECT_THAT(troubles, ElementsAreArray(std::vector<std::string>(
                            5, me + " was cut off: this is not trainyard's protocol")));
}

TEST_F(ControlServerTest, CountsTheTroublesThatItDidNotTell) {
  listen({.trouble_window = Duration{30}, .troubles_max = 1});
  int callers = 0;
  run_until([&] {
    Caller caller(server->path());
    EXPECT_TRUE(caller.say("garbage"));
    ++callers;
    run_until_cut_off(caller);
    return troubles.back().ends_with(" more before)");
  });
  EXPECT_EQ(troubles.back(),
            fmt::format("{} was cut off: this is not trainyard's protocol (and {} more before)", me,
                        callers - static_cast<int>(troubles.size())));
}

/// Nothing more can be opened while it lives.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const Descriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
  ~NoDescriptorsLeft() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST_F(ControlServerTest, LetsInLaterWhenDescriptorsHaveRunOut) {
  listen({.full_pause = kShort});
  Caller caller(server->path());
  EXPECT_TRUE(caller.say(hello()));
  {
    const NoDescriptorsLeft none;
    run_until([&] { return !troubles.empty(); });
    // It does not try again and again in the meantime.
    loop.run_once(Duration{0});
    loop.run_once(Duration{0});
  }
  EXPECT_THAT(troubles, ElementsAre(StartsWith("cannot let a control connection in: ")));
  run_until_heard(caller, 1);
  EXPECT_THAT(caller.heard, ElementsAre(welcome()));
}

TEST_F(ControlServerTest, OutlivesWhateverIsSent) {
  listen({.hello_within = kShort, .silence_max = kShort, .troubles_max = 0});
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::string bytes = hello() + request(1) + request(2, wire::Kill{.group = "g", .id = "i"});
    for (std::uint64_t i = random() % 4; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(bytes.size() - (random() % bytes.size() / 2));
    auto caller = std::make_unique<Caller>(server->path());
    static_cast<void>(caller->say(bytes));
    if (random() % 2 == 0) caller.reset();
    loop.run_once(Duration{1});
    ASSERT_FALSE(HasFatalFailure());
  }
  run_until([&] { return server->connections() == 0; });
  const auto good = caller_inside();
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->heard, ElementsAre(reply(1, {.text = "done so"})));
}

}  // namespace
}  // namespace trainyard::io
