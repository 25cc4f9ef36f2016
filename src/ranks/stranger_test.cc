// Strangers who must not get in, and members who say nonsense.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "link/control_socket.h"
#include "link/frame_socket.h"
#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "sys/descriptor.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/rank.h"

namespace trainyard::ranks {
namespace {

/// A directory in which ranks leave the address and identity with which they were to connect.
class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "strangers-" + std::to_string(::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// `before` is a piece of shell that a rank runs before it becomes one.
  RankExecutorOptions options(const std::string& before = "") const {
    RankExecutorOptions made = test_options(2);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    made.program = {"/bin/sh", "-c",
                    "echo $TRAINYARD_RANK_SOCKET > " + directory_ +
                        "/socket.$RANK; echo "
                        "$TRAINYARD_RANK_TOKEN > " +
                        directory_ + "/token.$RANK; " + before + " exec " + self};
    return made;
  }
  [[nodiscard]] std::string left(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    std::string line;
    std::getline(file, line);
    return line;
  }
  [[nodiscard]] sys::Descriptor connect() const {
    const auto address = link::socket_address(left("socket.1")).value();
    sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), link::generic(address), sizeof address) != 0) return {};
    return socket;
  }
  /// The answer of the server to a hello with this token.
  [[nodiscard]] std::string answer_to(const std::string& token, int rank) const {
    link::FrameSocket socket(connect(), wire::kRankLimits);
    EXPECT_TRUE(
        socket
            .send({.kind = wire::FrameKind::Hello,
                   .fields = wire::to_fields(wire::Hello{
                       .role = wire::Role::Rank, .token = token, .rank = rank, .ranks = 2})})
            .has_value());
    const auto frame = socket.wait_for_frame();
    if (!frame) return frame.error().message;
    const auto welcome = wire::read_welcome(frame->fields);
    return welcome ? welcome->error : frame->fields;
  }
  static void expect_to_work(RankExecutor& executor) {
    RankContext context;
    const Shareable reply = executor.execute("get", {}, context);
    EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
  }

  std::string directory_;
};

constexpr const char* kUnknown = "its token is not that of a rank of this group";

TEST_F(Strangers, AreNotLetInByAWrongAUsedOrAnOldToken) {
  RankExecutor executor(options(), test_registry());
  expect_to_work(executor);
  EXPECT_EQ(answer_to("", 0), kUnknown);
  EXPECT_EQ(answer_to("0123456789abcdef0123456789abcdef", 0), kUnknown);
  const std::string old = left("token.0");
  EXPECT_EQ(old.size(), 32U);
  EXPECT_EQ(answer_to(old, 0), kUnknown);
  // The ranks of the next launch have other tokens.
  RankContext context;
  EXPECT_EQ(executor.execute("kill", {}, context).code(), ReturnCode::RankDied);
  expect_to_work(executor);
  EXPECT_NE(left("token.0"), old);
  EXPECT_EQ(answer_to(old, 0), kUnknown);
  expect_to_work(executor);
}

TEST_F(Strangers, AreNotLetInWithATokenThatIsGoodButNotTheirs) {
  const std::string here = directory_ + "/here";
  const std::string go = directory_ + "/go";
  ASSERT_EQ(::mkfifo(here.c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  RankExecutor executor(
      options("[ $RANK = 0 ] || { echo > " + here + "; read line < " + go + "; };"),
      test_registry());
  RankContext context;
  Shareable started;
  std::jthread starter([&] { started = executor.start(context); });
  std::ifstream(here).get();
  // Its token has not been used, and this process is no descendant of the launcher.
  EXPECT_EQ(answer_to(left("token.1"), 1), "it was not started by the launcher of this group");
  std::ofstream(go) << "\n";
  starter.join();
  EXPECT_EQ(started.code(), ReturnCode::Ok) << started.message();
}

TEST_F(Strangers, EndTheirOwnConnectionWithNonsenseAndNothingElse) {
  RankExecutor executor(options(), test_registry());
  expect_to_work(executor);
  std::string huge = wire::encode({.kind = wire::FrameKind::Hello, .fields = "{}"}).value();
  huge[28] = huge[29] = huge[30] = huge[31] = '\xff';
  const std::string hello = wire::encode({.kind = wire::FrameKind::Hello, .fields = "{}"}).value();
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"), huge,
        hello}) {
    const sys::Descriptor socket = connect();
    ASSERT_EQ(::send(socket.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(nonsense.size()));
    std::string said;
    std::array<char, 4096> bytes{};
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
      if (got > 0) said.append(bytes.data(), static_cast<std::size_t>(got));
    }
    EXPECT_THAT(said, testing::HasSubstr("error"));
  }
  {
    const sys::Descriptor truncated = connect();
    ASSERT_EQ(::send(truncated.get(), hello.data(), 20, MSG_NOSIGNAL), 20);
  }
  expect_to_work(executor);
}

TEST_F(Strangers, OfAnotherUserCannotEvenConnect) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  RankExecutor executor(options(), test_registry());
  expect_to_work(executor);
  const std::string socket = left("socket.1");
  const passwd* const nobody = ::getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  const int child = ::fork();
  if (child == 0) {
    if (::setgid(nobody->pw_gid) != 0 || ::setuid(nobody->pw_uid) != 0) ::_exit(100);
    const auto address = link::socket_address(socket).value();
    const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) ::_exit(102);
    ::_exit(::connect(connection, link::generic(address), sizeof address) == 0 ? 101 : errno);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EACCES);
  expect_to_work(executor);
}

/// A rank that is welcome, and then says what `python` does with `connection`.
std::vector<std::string> hostile(const std::string& python) {
  return {"/usr/bin/python3", "-c",
          "import json, os, socket, struct\n"
          "prefix = struct.Struct('<4sBBHQQIIIIQ')\n"
          "def frame(kind, sequence, fields):\n"
          "    text = json.dumps(fields).encode()\n"
          "    return prefix.pack(b'TYRD', 1, kind, 0, 0, sequence, 0, len(text), 0, 0, 0) + text\n"
          "connection = socket.socket(socket.AF_UNIX)\n"
          "connection.connect(os.environ['TRAINYARD_RANK_SOCKET'])\n"
          "connection.sendall(frame(1, 0, {'role': 'rank', 'version': 1, 'rank': 0, 'ranks': 1,\n"
          "                                'token': os.environ['TRAINYARD_RANK_TOKEN']}))\n"
          "def answer():\n"
          "    connection.recv(65536)\n" +
              python + "\nwhile connection.recv(65536):\n    pass\n"};
}

TEST(Rank, ThatSaysNonsenseEndsTheLaunchWithTheReason) {
  for (const auto& [python, code, why] :
       std::vector<std::tuple<std::string, ReturnCode, std::string>>{
           {"answer()\nconnection.sendall(b'x' * 100)", ReturnCode::CommunicationError,
            "rank 0 speaks nonsense: "},
           {"answer()\nconnection.sendall(frame(4, 0, {}))", ReturnCode::CommunicationError,
            "reply: 'code' is missing"},
           {"answer()\nconnection.sendall(frame(4, 7, {'code': 'ok'}))",
            ReturnCode::CommunicationError, "it replies to what it was not asked"},
           {"answer()\nconnection.sendall(frame(4, 0, {'code': 'fine'}))", ReturnCode::InitFailed,
            "it replied 'fine', which nobody understands"}}) {
    RankExecutorOptions options = test_options(1);
    options.program = hostile(python);
    options.limits.stop = std::chrono::milliseconds(200);
    RankExecutor executor(options, test_registry());
    RankContext context;
    const Shareable reply = executor.start(context);
    EXPECT_EQ(reply.code(), code);
    EXPECT_THAT(reply.message(), testing::HasSubstr(why));
  }
}

}  // namespace
}  // namespace trainyard::ranks
