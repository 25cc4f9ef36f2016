// Text for a reader who does not read, on real pipes and terminals.
#include "sys/output.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ends {
  Descriptor reader;
  Descriptor writer;
};

Ends make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {.reader = Descriptor(ends[0]), .writer = Descriptor(ends[1])};
}

Ends make_terminal() {
  Ends ends{.reader = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC))};
  EXPECT_EQ(::grantpt(ends.reader.get()), 0);
  EXPECT_EQ(::unlockpt(ends.reader.get()), 0);
  ends.writer = Descriptor(::open(::ptsname(ends.reader.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  return ends;
}

Ends make_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {.reader = Descriptor(ends[0]), .writer = Descriptor(ends[1])};
}

/// All that is there now.
std::string taken_from(const Descriptor& reader) {
  EXPECT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  std::string all;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return all;
}

TEST(Output, WaitsForNobodyAndSaysWhatWasLeftOut) {
  for (const auto make : {make_pipe, make_terminal, make_sockets}) {
    const Ends ends = make();
    Output output(ends.writer.get());
    const std::string line = std::string(999, 'x') + "\n";
    output.write("first\n");
    // Far more than what is kept and what the kernel takes. It would never come back if it waited.
    for (int i = 0; i < 2000; ++i) output.write(line);
    std::string all = taken_from(ends.reader);
    EXPECT_THAT(all, StartsWith("first"));
    EXPECT_LT(all.size(), 1'500'000U);
    for (int i = 0; i < 2000 && all.find("left out") == std::string::npos; ++i) {
      output.write("");
      all += taken_from(ends.reader);
    }
    EXPECT_THAT(all, HasSubstr("(lines are left out: they were not read for too long)"));
    output.write("last\n");
    all += taken_from(ends.reader);
    EXPECT_THAT(all, EndsWith(make == make_terminal ? "last\r\n" : "last\n"));
  }
}

TEST(Output, WaitsAtItsEndNoLongerThanItIsTold) {
  const Ends ends = make_pipe();
  Output output(ends.writer.get());
  output.write(std::string(100'000, 'x'));
  output.finish(Duration{10});
  EXPECT_LT(taken_from(ends.reader).size(), 100'000U);
  output.finish(Duration{10});
  EXPECT_GT(taken_from(ends.reader).size(), 0U);
}

TEST(Output, DropsWhatNobodyWillEverRead) {
  Ends ends = make_pipe();
  Output output(ends.writer.get());
  ends.reader.close();
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  output.write(std::string(1'000'000, 'x'));
  output.finish(kLongEnough);
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
}

TEST(Output, GoesOnInAFileWhereItsSharersAre) {
  const TemporaryDirectory place;
  const std::string path = place / "log";
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "before\n", 7), 7);
  Output(file.get()).write("ours\n");
  ASSERT_EQ(::write(file.get(), "after\n", 6), 6);
  EXPECT_EQ(content_of(path), "before\nours\nafter\n");
}

TEST(Output, LeavesItToOthersWhetherTheyWait) {
  const Ends ends = make_pipe();
  const Output output(ends.writer.get());
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace trainyard::sys
