// The control server and faulty clients, and its limits.
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "base/time.h"
#include "link/frame_server.h"
#include "link/test_control_server.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/passing.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using wire::FrameKind;

struct Fault {
  std::string name;
  std::string bytes;
  std::string why;
};
std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

class ControlServerFaultTest : public ControlServerTest,
                               public ::testing::WithParamInterface<Fault> {};

TEST_P(ControlServerFaultTest, IsTheEndOfThatConnectionAlone) {
  listen();
  const auto good = caller_inside();
  Caller bad(server->path());
  EXPECT_TRUE(bad.say(GetParam().bytes));
  run_until_cut_off(bad);
  ASSERT_THAT(bad.received, Not(IsEmpty()));
  EXPECT_EQ(bad.received.back(), failure(GetParam().why));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: " + GetParam().why));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->received, ElementsAre(reply(1, {.text = "done so"})));
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

/// One end of a connection over loopback that has more to send than the other end takes, so that
/// who closes it last waits an hour.
sys::Descriptor socket_that_lingers(sys::Descriptor& other) {
  const sys::Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), generic, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), generic, &size), 0);
  sys::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), generic, size), 0);
  other = sys::Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::string much(std::size_t{1} << 16, 'x');
  while (::send(socket.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  const linger hour{.l_onoff = 1, .l_linger = 3600};
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour), 0);
  return socket;
}

TEST_F(ControlServerTest, IsNotHeldUpByASocketThatLingers) {
  listen();
  const auto good = caller_inside();
  Caller bad(server->path());
  sys::Descriptor other;
  {
    const sys::Descriptor passed = socket_that_lingers(other);
    const std::array<int, 1> descriptors{passed.get()};
    ASSERT_EQ(sys::send_with(bad.socket.get(), hello().substr(0, 1), descriptors, MSG_NOSIGNAL), 1);
    // So that the server closes it last; without the message it would be closed here, and wait.
  }
  run_until_cut_off(bad);
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: descriptors are not taken here"));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->received, ElementsAre(reply(1, {.text = "done so"})));
}

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
  EXPECT_THAT(silent.received, ElementsAre(failure("nothing was said for 3.0 s")));
  EXPECT_THAT(half.received, ElementsAre(failure("nothing was said for 3.0 s")));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: nothing was said for 3.0 s",
                                    me + " was cut off: nothing was said for 3.0 s"));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->received, SizeIs(1));
}

TEST_F(ControlServerTest, EndsWhoSaysNothingMore) {
  listen({.silence_max = kShort});
  const auto caller = caller_inside();
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->received, ElementsAre(failure("nothing was said for 3.0 s")));
  EXPECT_EQ(server->connections(), 0U);
}

TEST_F(ControlServerTest, DoesNotEndWhoWaitsForAnAnswer) {
  answers_at_once = false;
  listen({.silence_max = kShort});
  const auto caller = caller_inside();
  EXPECT_TRUE(caller->say(request(1)));
  const Duration end = sys::EventLoop::now() + (2 * kShort);
  run_until([&] { return sys::EventLoop::now() >= end; });
  ASSERT_THAT(due, SizeIs(1));
  caller->hear();
  EXPECT_FALSE(caller->cut_off);
  due[0]({});
  run_until_cut_off(*caller);
  EXPECT_THAT(caller->received, ElementsAre(reply(1, {}), failure("nothing was said for 3.0 s")));
}

TEST_F(ControlServerTest, HasSixtyFourConnectionsAtMost) {
  listen();
  std::vector<std::unique_ptr<Caller>> inside;
  inside.reserve(64);
  for (int i = 0; i < 64; ++i) inside.push_back(caller_inside());
  EXPECT_EQ(server->connections(), 64U);
  Caller late(server->path());
  EXPECT_TRUE(late.say(hello()));
  run_until_cut_off(late);
  EXPECT_THAT(late.received,
              ElementsAre(wire::Frame{.kind = FrameKind::Welcome,
                                      .fields = wire::to_fields(wire::Welcome{
                                          .ok = false,
                                          .server = "trainyard test",
                                          .error = "there are 64 control connections already"})}));
  EXPECT_THAT(troubles, ElementsAre(me + " was cut off: there are 64 control connections already"));
  EXPECT_EQ(server->connections(), 64U);
  inside.pop_back();
  run_until([&] { return server->connections() == 63; });
  inside.push_back(caller_inside());
  EXPECT_EQ(server->connections(), 64U);
}

TEST_F(ControlServerTest, HasSixtyFourAtMostWhoHaveNotSaidHello) {
  listen();
  const auto good = caller_inside();
  std::vector<std::unique_ptr<Caller>> silent;
  silent.reserve(64);
  for (int i = 0; i < 64; ++i) {
    silent.push_back(std::make_unique<Caller>(server->path()));
    run_until([&] { return server->connections() == silent.size() + 1; });
  }
  Caller late(server->path());
  run_until_cut_off(late);
  const std::string why = "there are 64 connections already that have not said hello";
  EXPECT_THAT(late.received, ElementsAre(failure(why)));
  EXPECT_THAT(troubles, ElementsAre(me + " was turned away: " + why));
  EXPECT_TRUE(good->say(request(1)));
  run_until_heard(*good, 1);
  EXPECT_THAT(good->received, ElementsAre(reply(1, {.text = "done so"})));
}

TEST_F(ControlServerTest, TurnsOtherUsersAway) {
  const std::uint32_t stranger = ::geteuid() + 1;
  listen({.peer = [&](int) { return Peer{.process = 77, .user = stranger}; }});
  Caller caller(server->path());
  run_until_cut_off(caller);
  const std::string why =
      fmt::format("user {} may not control the run of user {}", stranger, ::geteuid());
  EXPECT_THAT(caller.received, ElementsAre(failure(why)));
  EXPECT_THAT(troubles, ElementsAre("process 77 was turned away: " + why));
}

TEST_F(ControlServerTest, TurnsAwayWhoCannotBeSeen) {
  listen({.peer = [](int) -> Result<Peer> { return std::unexpected(Error{"no eyes"}); }});
  Caller caller(server->path());
  run_until_cut_off(caller);
  EXPECT_THAT(caller.received, ElementsAre(failure("no eyes")));
  EXPECT_THAT(troubles, ElementsAre("somebody was turned away: no eyes"));
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
  EXPECT_THAT(good->received, ElementsAre(reply(2, {.text = answer_text})));
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
  ASSERT_THAT(caller->received, SizeIs(kRequests));
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(caller->received[i], reply(i, {.text = answer_text}));
  }
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(ControlServerTest, TakesABoundedNumberOfRequestsAtOnce) {
  answers_at_once = false;
  listen();
  const auto caller = caller_inside();
  for (std::uint64_t i = 0; i < 512; ++i) {
    ASSERT_TRUE(caller->say(request(i)));
    run_until([&] { return requests.size() == i + 1; });
  }
  EXPECT_TRUE(caller->say(request(512)));
  run_until_cut_off(*caller);
  EXPECT_THAT(requests, SizeIs(512));
  EXPECT_THAT(caller->received, ElementsAre(failure("more than 512 requests at once")));
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
    const sys::Descriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
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
  EXPECT_THAT(troubles, ElementsAre(StartsWith("cannot let a connection in: ")));
  run_until_heard(caller, 1);
  EXPECT_THAT(caller.received, ElementsAre(welcome()));
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
  EXPECT_THAT(good->received, ElementsAre(reply(1, {.text = "done so"})));
}

}  // namespace
}  // namespace trainyard::link
