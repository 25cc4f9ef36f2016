// For the tests of the control server: callers in the same thread as the server, and a fixture that
// keeps all that the server reported, and drives the loop until what a test waits for has come.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/match.h"
#include "base/time.h"
#include "link/control_server.h"
#include "link/control_socket.h"
#include "link/frame_server.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

inline constexpr Duration kPatience{30'000};
/// Long enough for a caller to say hello on a busy machine.
inline constexpr Duration kShort{3'000};

inline std::string bytes_of(const wire::Frame& frame) { return wire::encode(frame).value(); }

inline std::string hello() {
  return bytes_of(
      {.kind = wire::FrameKind::Hello, .fields = wire::to_fields(wire::Hello{.program = "test"})});
}

inline std::string request(std::uint64_t sequence,
                           const wire::ControlRequest& what = wire::Ping{}) {
  return bytes_of(
      {.kind = wire::FrameKind::Request, .sequence = sequence, .fields = wire::to_fields(what)});
}

inline wire::Frame welcome() {
  return {.kind = wire::FrameKind::Welcome, .fields = R"({"ok":true,"server":"trainyard test"})"};
}

inline wire::Frame reply(std::uint64_t sequence, const wire::ControlReply& what) {
  return {.kind = wire::FrameKind::Reply, .sequence = sequence, .fields = wire::to_fields(what)};
}

inline wire::Frame failure(std::string_view why) {
  return {.kind = wire::FrameKind::Failure, .fields = wire::failure_fields(why)};
}

/// "kill train/a"
inline std::string shown(const wire::ControlRequest& what) {
  return match(
      what, [](const wire::Ping&) { return std::string("ping"); },
      [](const wire::Kill& kill) { return fmt::format("kill {}/{}", kill.group, kill.id); },
      [](const wire::Retry& retry) { return fmt::format("retry {}/{}", retry.group, retry.id); },
      [](const wire::Hold& it) {
        return fmt::format("{} {}/{}", it.hold ? "hold" : "release", it.group, it.id);
      },
      [](const wire::SetPriority& it) {
        return fmt::format("priority {}/{} {}", it.group, it.id, it.priority);
      },
      [](const wire::Submit& it) { return "submit " + it.job_file; });
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
      while (auto frame = reader.next().value()) received.push_back(std::move(*frame));
    }
  }

  sys::Descriptor socket;
  wire::FrameReader reader;
  std::vector<wire::Frame> received;
  bool cut_off = false;
};

/// A server, and everything that it reported.
class ControlServerTest : public ::testing::Test {
 public:
  void listen(FrameServerOptions options = {}) {
    options.program = "trainyard test";
    options.parents = {"/tmp"};
    options.on_trouble = [this](std::string_view what) { troubles.emplace_back(what); };
    auto made = FrameServer::listen(loop, std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
    control = std::make_unique<ControlServer>(
        *server, ControlLimits{}, [this](const wire::ControlRequest& what, Reply answer) {
          requests.push_back(shown(what));
          if (answers_at_once) {
            answer({.text = answer_text});
          } else {
            due.push_back(std::move(answer));
          }
        });
  }

  /// Drives the loop until it holds.
  void run_until(const std::function<bool()>& holds) {
    const Duration end = sys::EventLoop::now() + kPatience;
    while (!holds()) {
      ASSERT_LT(sys::EventLoop::now(), end) << "it did not come";
      loop.run_once(Duration{10});
    }
  }

  void run_until_heard(Caller& caller, std::size_t frames) {
    run_until([&] {
      caller.hear();
      return caller.received.size() >= frames || caller.cut_off;
    });
  }

  void run_until_cut_off(Caller& caller) {
    run_until([&] {
      caller.hear();
      return caller.cut_off;
    });
  }

  /// A client whose hello the server has received.
  std::unique_ptr<Caller> caller_inside() {
    auto caller = std::make_unique<Caller>(server->path());
    EXPECT_TRUE(caller->say(hello()));
    run_until_heard(*caller, 1);
    EXPECT_THAT(caller->received, ::testing::ElementsAre(welcome()));
    caller->received.clear();
    return caller;
  }

  sys::EventLoop loop;
  std::vector<std::string> requests;
  std::vector<Reply> due;
  std::vector<std::string> troubles;
  bool answers_at_once = true;
  std::string answer_text = "done so";
  std::unique_ptr<FrameServer> server;
  std::unique_ptr<ControlServer> control;
  const std::string me = fmt::format("process {}", ::getpid());
};

}  // namespace trainyard::link
