#include "sys/stream_program.h"

#include <array>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

using testing::HasSubstr;

TEST(StreamProgram, ReadsAndWritesOneStreamAndSaysItsErrorsApart) {
  StreamProgram program =
      StreamProgram::start({"sh", "-c", "read line; echo \"heard $line\"; echo wrong >&2; exit 3"})
          .value();
  const Descriptor stream = program.take_stream();
  const std::string_view word = "this\n";
  ASSERT_EQ(::send(stream.get(), word.data(), word.size(), 0), std::ssize(word));
  std::string heard(11, '\0');
  ASSERT_EQ(::recv(stream.get(), heard.data(), heard.size(), MSG_WAITALL), 11);
  EXPECT_EQ(heard, "heard this\n");
  EXPECT_EQ(program.exit_code(kLongEnough), 3);
  EXPECT_EQ(program.last_errors(), "wrong\n");
}

TEST(StreamProgram, SaysThatItCannotBeRunAsAShellDoes) {
  StreamProgram program = StreamProgram::start({"/nowhere/ssh", "lab1"}).value();
  EXPECT_EQ(program.exit_code(kLongEnough), 127);
  EXPECT_THAT(program.last_errors(), HasSubstr("cannot run '/nowhere/ssh'"));
}

TEST(StreamProgram, KeepsTheLastOfWhatItSays) {
  StreamProgram program =
      StreamProgram::start({"sh", "-c", "head -c 30000 /dev/zero | tr '\\0' x >&2; echo end >&2"})
          .value();
  EXPECT_EQ(program.exit_code(kLongEnough), 0);
  const std::string errors = program.last_errors();
  EXPECT_EQ(errors.size(), 4096U);
  EXPECT_TRUE(errors.ends_with("xxend\n"));
}

TEST(StreamProgram, IsKilledWithWhoeverHasItAndSoIsWhatItHasStarted) {
  std::optional<StreamProgram> program =
      StreamProgram::start({"sh", "-c", "sleep 1000 & echo up; wait"}).value();
  const Descriptor stream = program->take_stream();
  std::array<char, 3> up{};
  ASSERT_EQ(::recv(stream.get(), up.data(), up.size(), MSG_WAITALL), 3);
  EXPECT_EQ(program->exit_code(), std::nullopt);
  program.reset();
  pollfd closed{.fd = stream.get(), .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, static_cast<int>(kLongEnough.count())), 1)
      << "nobody has the other end any more";
}

}  // namespace
}  // namespace trainyard::sys
