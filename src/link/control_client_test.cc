// Asking a yard: with the real server, and with others that do what no server should.
#include "link/control_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <expected>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/control_server.h"
#include "link/control_socket.h"
#include "link/frame_server.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

using ::testing::ElementsAre;

constexpr Duration kLongEnough{30'000};
constexpr Duration kMoment{30};

AskOptions asking(Duration within = kLongEnough) {
  return {.run = "runs/x", .program = "trainyard kill test", .within = within};
}

std::string text_of(const Result<wire::ControlReply>& reply) {
  if (!reply) return "error: " + reply.error().message;
  return std::string(wire::to_text(reply->outcome)) + ": " + reply->text;
}

/// Asks in a thread of its own, while the server is served here.
std::string ask_served(sys::EventLoop& loop, const std::string& path,
                       const wire::ControlRequest& request, const AskOptions& options = asking()) {
  auto answer =
      std::async(std::launch::async, [&] { return text_of(ask(path, request, options)); });
  const Duration end = sys::EventLoop::now() + (2 * kLongEnough);
  while (answer.wait_for(Duration{0}) != std::future_status::ready) {
    if (sys::EventLoop::now() > end) return "it did not end";
    loop.run_once(Duration{5});
  }
  return answer.get();
}

/// A yard that answers control requests.
struct Yard {
  Yard(sys::EventLoop& loop, FrameServerOptions options, ControlLimits limits,
       ControlServer::OnRequest on_request)
      : server(listen(loop, std::move(options))), control(*server, limits, std::move(on_request)) {}

  static std::unique_ptr<FrameServer> listen(sys::EventLoop& loop, FrameServerOptions options) {
    options.program = "trainyard test";
    options.parents = {"/tmp"};
    options.on_trouble = [](auto) {};
    return FrameServer::listen(loop, std::move(options)).value();
  }
  [[nodiscard]] const std::string& path() const { return server->path(); }

  std::unique_ptr<FrameServer> server;
  ControlServer control;
};

TEST(ControlClient, GetsItsAnswer) {
  sys::EventLoop loop;
  std::vector<wire::ControlRequest> requests;
  const Yard server(loop, {}, {}, [&](wire::ControlRequest request, Reply reply) {
    requests.push_back(std::move(request));
    reply({.outcome = wire::Outcome::NotRunning, .text = "it waits"});
  });
  const wire::ControlRequest kill = wire::Kill{.group = "train", .id = "a"};
  EXPECT_EQ(ask_served(loop, server.path(), kill), "not-running: it waits");
  EXPECT_EQ(ask_served(loop, server.path(), wire::Ping{}), "not-running: it waits");
  EXPECT_THAT(requests, ElementsAre(kill, wire::ControlRequest{wire::Ping{}}));
}

TEST(ControlClient, GetsAnAnswerThatComesLater) {
  sys::EventLoop loop;
  std::optional<Reply> due;
  const Yard server(loop, {}, {}, [&](const wire::ControlRequest&, Reply reply) {
    due.emplace(std::move(reply));
  });
  auto answer = std::async(std::launch::async,
                           [&] { return text_of(ask(server.path(), wire::Ping{}, asking())); });
  const Duration end = sys::EventLoop::now() + kLongEnough;
  while (!due) {
    ASSERT_LT(sys::EventLoop::now(), end);
    loop.run_once(Duration{5});
  }
  (*due)({.text = "later"});
  EXPECT_EQ(answer.get(), "done: later");
}

TEST(ControlClient, GetsManyAnswersInWhicheverOrderAndWaitsForABoundedNumber) {
  constexpr std::size_t kRequests = (3 * kAskedAtOnce) + 5;
  sys::EventLoop loop;
  std::vector<std::pair<std::string, Reply>> due;
  std::size_t most = 0;
  const Yard server(loop, {}, {}, [&](wire::ControlRequest request, Reply reply) {
    due.emplace_back(std::get<wire::Kill>(request).id, std::move(reply));
    most = std::max(most, due.size());
  });
  std::vector<wire::ControlRequest> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    requests.emplace_back(wire::Kill{.group = "g", .id = std::to_string(i)});
  }
  auto answers =
      std::async(std::launch::async, [&] { return ask_all(server.path(), requests, asking()); });
  const Duration end = sys::EventLoop::now() + kLongEnough;
  std::size_t answered = 0;
  while (answered < kRequests) {
    ASSERT_LT(sys::EventLoop::now(), end);
    // The last one first, and all that there may be at once before the first is answered.
    const std::size_t left = kRequests - answered;
    if (due.size() < std::min(kAskedAtOnce, left)) {
      loop.run_once(Duration{5});
      continue;
    }
    due.back().second({.text = due.back().first});
    due.pop_back();
    ++answered;
  }
  // The last answers may not have fitted into the socket.
  while (answers.wait_for(Duration{0}) != std::future_status::ready) {
    ASSERT_LT(sys::EventLoop::now(), end);
    loop.run_once(Duration{5});
  }
  const auto got = answers.get();
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), kRequests);
  for (std::size_t i = 0; i < kRequests; ++i) EXPECT_EQ((*got)[i].text, std::to_string(i));
  EXPECT_EQ(most, kAskedAtOnce);
}

TEST(ControlClient, ReportsOnceThatTheYardHasBeenSentAllRequests) {
  sys::EventLoop loop;
  std::vector<Reply> due;
  const Yard server(loop, {}, {}, [&](const wire::ControlRequest&, Reply reply) {
    due.push_back(std::move(reply));
  });
  const std::vector<wire::ControlRequest> requests(kAskedAtOnce + 1, wire::Ping{});
  std::atomic<int> reports = 0;
  AskOptions options = asking();
  options.on_all_sent = [&reports] { ++reports; };
  auto answers =
      std::async(std::launch::async, [&] { return ask_all(server.path(), requests, options); });
  const Duration end = sys::EventLoop::now() + kLongEnough;
  const auto serve_until = [&](auto holds) {
    while (!holds() && sys::EventLoop::now() < end) loop.run_once(Duration{5});
    return holds();
  };
  ASSERT_TRUE(serve_until([&] { return due.size() == kAskedAtOnce; }));
  EXPECT_EQ(reports, 0) << "the last request has to wait for an answer";
  due.front()({.text = "yes"});
  ASSERT_TRUE(serve_until([&] { return due.size() == requests.size(); }));
  // No request has been answered since.
  ASSERT_TRUE(serve_until([&] { return reports == 1; }));
  for (std::size_t i = 1; i < due.size(); ++i) due[i]({.text = "yes"});
  ASSERT_TRUE(
      serve_until([&] { return answers.wait_for(Duration{0}) == std::future_status::ready; }));
  ASSERT_TRUE(answers.get());
  EXPECT_EQ(reports, 1);
}

TEST(ControlClient, SaysWhenNobodyIsThere) {
  EXPECT_EQ(text_of(ask("/tmp/trainyard-absent/control", wire::Ping{}, asking())),
            "error: the run in 'runs/x' is not running");
  std::string path;
  {
    const auto dead = listen_in_one_of({"/tmp"});
    ASSERT_TRUE(dead);
    path = dead->path;
  }
  EXPECT_EQ(text_of(ask(path, wire::Ping{}, asking())),
            "error: the run in 'runs/x' is not running");
  EXPECT_TRUE(remove_dead_socket(path));
}

TEST(ControlClient, SaysWhenItMayNotEnter) {
  const auto socket = listen_in_one_of({"/tmp"});
  ASSERT_TRUE(socket);
  const std::filesystem::path directory = std::filesystem::path(socket->path).parent_path();
  std::filesystem::permissions(directory, std::filesystem::perms::none);
  // Root may enter all the same; as another user, this thread may not.
  if (::geteuid() == 0) ::setfsuid(65534);
  const auto reply = ask(socket->path, wire::Ping{}, asking());
  if (::geteuid() == 0) ::setfsuid(0);
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  remove_socket(socket->path);
  EXPECT_EQ(text_of(reply), "error: the run in 'runs/x' belongs to another user");
}

TEST(ControlClient, SaysWhyItWasTurnedAway) {
  sys::EventLoop loop;
  const Yard server(loop,
                    {.peer = [](int) -> Result<Peer> { return std::unexpected(Error{"not you"}); }},
                    {}, {});
  EXPECT_EQ(ask_served(loop, server.path(), wire::Ping{}),
            "error: the run in 'runs/x' refused: not you");
}

TEST(ControlClient, SaysWhenTheYardIsFull) {
  sys::EventLoop loop;
  const Yard server(loop, {}, {.connections_max = 0}, {});
  EXPECT_EQ(ask_served(loop, server.path(), wire::Ping{}),
            "error: the run in 'runs/x' refused: there are 0 control connections already");
}

TEST(ControlClient, WaitsUntilItsDeadlineAndNotLonger) {
  sys::EventLoop loop;
  std::vector<Reply> due;
  const Yard server(loop, {}, {}, [&](const wire::ControlRequest&, Reply reply) {
    due.push_back(std::move(reply));
  });
  EXPECT_EQ(ask_served(loop, server.path(), wire::Ping{}, asking(kMoment * 20)),
            "error: the run in 'runs/x' did not answer within 0.6 s");
  EXPECT_EQ(due.size(), 1U);
}

TEST(ControlClient, DoesNotWaitLongerForAYardThatLetsNobodyIn) {
  const auto socket = listen_in_one_of({"/tmp"});
  ASSERT_TRUE(socket);
  EXPECT_EQ(text_of(ask(socket->path, wire::Ping{}, asking(kMoment))),
            "error: the run in 'runs/x' did not answer within 0.0 s");
  // With a full queue not even the connection comes about.
  ASSERT_EQ(::listen(socket->socket.get(), 0), 0);
  EXPECT_EQ(text_of(ask(socket->path, wire::Ping{}, asking(kMoment))),
            "error: the run in 'runs/x' did not answer within 0.0 s");
  remove_socket(socket->path);
}

TEST(ControlClient, SaysWhenARequestIsTooLong) {
  sys::EventLoop loop;
  const Yard server(loop, {}, {}, {});
  EXPECT_EQ(
      ask_served(loop, server.path(), wire::Kill{.group = "g", .id = std::string(70'000, 'x')}),
      "error: a frame with 70033 bytes of fields, at most 65536 are allowed");
}

/// Takes one connection, waits for something to be said, says `bytes`, and hangs up.
Result<std::vector<wire::ControlReply>> ask_who_says(
    const std::string& bytes, const std::vector<wire::ControlRequest>& requests) {
  const auto socket = listen_in_one_of({"/tmp"});
  if (!socket) return std::unexpected(socket.error());
  auto answers =
      std::async(std::launch::async, [&] { return ask_all(socket->path, requests, asking()); });
  // The server's socket does not block; a loop waits for it.
  sys::EventLoop loop;
  sys::Descriptor connection;
  loop.watch_readable(socket->socket.get(), [&] {
    connection = sys::Descriptor(::accept4(socket->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  });
  const Duration end = sys::EventLoop::now() + kLongEnough;
  while (!connection.is_open() && sys::EventLoop::now() < end) loop.run_once(Duration{5});
  loop.unwatch(socket->socket.get());
  std::array<char, 4096> heard{};
  EXPECT_GT(::recv(connection.get(), heard.data(), heard.size(), 0), 0);
  EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  connection.close();
  auto got = answers.get();
  remove_socket(socket->path);
  return got;
}

std::string ask_who_says(const std::string& bytes) {
  const auto got = ask_who_says(bytes, {wire::Ping{}});
  return got ? text_of(got->front()) : "error: " + got.error().message;
}

std::string frame(const wire::Frame& frame) { return wire::encode(frame).value(); }

std::string welcome_bytes() {
  return frame({.kind = wire::FrameKind::Welcome,
                .sequence = 1,
                .fields = wire::to_fields(wire::Welcome{.ok = true, .server = "s"})});
}

TEST(ControlClient, SaysWhenAnotherProtocolIsSpokenThere) {
  const std::string stranger = "error: the run in 'runs/x' does not speak our protocol: ";
  EXPECT_EQ(ask_who_says("HTTP/1.1 400 Bad Request\r\n"),
            stranger + "this is not trainyard's protocol");
  EXPECT_EQ(ask_who_says(welcome_bytes().replace(4, 1, "\x02")),
            stranger + "version 2 of the protocol is spoken there, 1 here");
  EXPECT_EQ(ask_who_says(frame({.kind = wire::FrameKind::Welcome, .sequence = 9})),
            stranger + "an answer to something else");
  EXPECT_EQ(ask_who_says(frame({.kind = wire::FrameKind::Reply, .sequence = 1})),
            stranger + "an answer to something else");
  EXPECT_EQ(ask_who_says(frame({.kind = wire::FrameKind::Welcome, .sequence = 1, .fields = "{}"})),
            stranger + "answer to hello: 'ok' is missing");
  EXPECT_EQ(ask_who_says(welcome_bytes() +
                         frame({.kind = wire::FrameKind::Reply, .sequence = 2, .fields = "{}"})),
            stranger + "reply: 'outcome' is missing");
}

TEST(ControlClient, SaysWhenTheYardRefusesItsHello) {
  EXPECT_EQ(ask_who_says(frame({.kind = wire::FrameKind::Welcome,
                                .sequence = 1,
                                .fields = R"({"ok":false,"server":"s","error":"not today"})"})),
            "error: the run in 'runs/x' refused: not today");
  EXPECT_EQ(
      ask_who_says(frame({.kind = wire::FrameKind::Failure, .fields = R"({"error":"never"})"})),
      "error: the run in 'runs/x' refused: never");
}

TEST(ControlClient, SaysWhenTheYardEndsInTheMiddle) {
  EXPECT_EQ(ask_who_says(""), "error: the run in 'runs/x' ended before it answered");
  EXPECT_EQ(ask_who_says(welcome_bytes()), "error: the run in 'runs/x' ended before it answered");
  EXPECT_EQ(ask_who_says(welcome_bytes().substr(0, 30)),
            "error: the run in 'runs/x' ended before it answered");
}

TEST(ControlClient, TellsWhatWasAnsweredWhereTheYardEndsBeforeTheRest) {
  const auto answers_all = [](const std::string& bytes) {
    const std::vector<wire::ControlRequest> requests(3, wire::Ping{});
    std::vector<std::string> texts;
    const auto got = ask_who_says(bytes, requests);
    if (!got) return std::vector{"error: " + got.error().message};
    for (const wire::ControlReply& reply : *got) texts.push_back(text_of(reply));
    return texts;
  };
  const std::string reply = frame({.kind = wire::FrameKind::Reply,
                                   .sequence = 3,
                                   .fields = wire::to_fields(wire::ControlReply{.text = "yes"})});
  const std::string ended = "the run in 'runs/x' ended before it answered";
  EXPECT_THAT(answers_all(welcome_bytes() + reply),
              ElementsAre("error: " + ended, "done: yes", "error: " + ended));
  EXPECT_THAT(answers_all(welcome_bytes()), ElementsAre("error: " + ended)) << "of all of them";
}

TEST(ControlClient, SaysWhenAPathIsTooLong) {
  EXPECT_EQ(text_of(ask("/tmp/" + std::string(200, 'x'), wire::Ping{}, asking())),
            "error: '/tmp/" + std::string(200, 'x') + "' is too long for a socket");
}

}  // namespace
}  // namespace trainyard::link
