#include "sys/line_stream.h"

#include <utility>
#include <vector>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/passing.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

using testing::ElementsAre;

/// One end of a stream, and the other one by hand.
class LineStreams : public testing::Test {
 public:
  LineStreams() {
    auto ends = socket_pair().value();
    other_ = std::move(ends.first);
    stream_ = std::make_unique<LineStream>(
        loop_, std::move(ends.second),
        LineStream::Options{.line_max = 100'000,
                            .on_line =
                                [this](std::string_view line) {
                                  lines_.emplace_back(line);
                                  if (line == "go") stream_.reset();
                                },
                            .on_end = [this](const std::string& why) { end_ = why; }});
  }

 protected:
  void write(std::string_view text) {
    ASSERT_EQ(::send(other_.get(), text.data(), text.size(), 0), std::ssize(text));
  }
  void wait_until(const std::function<bool()>& holds) {
    const Duration end = EventLoop::now() + kLongEnough;
    while (!holds() && EventLoop::now() < end) loop_.run_once(Duration(10));
    ASSERT_TRUE(holds());
  }

  EventLoop loop_;
  Descriptor other_;
  std::unique_ptr<LineStream> stream_;
  std::vector<std::string> lines_;
  std::string end_;
};

TEST_F(LineStreams, TellsEachLineInOrderHoweverItComes) {
  write("one\ntw");
  wait_until([this] { return lines_.size() == 1; });
  write("o\n\nfo");
  wait_until([this] { return lines_.size() == 3; });
  EXPECT_THAT(lines_, ElementsAre("one", "two", ""));
  other_.close();
  wait_until([this] { return !end_.empty(); });
  EXPECT_EQ(end_, "it was closed");
  EXPECT_EQ(lines_.size(), 3U) << "what came half is no line";
}

TEST_F(LineStreams, EndsWhereALineIsTooLong) {
  write(std::string(60'000, 'x'));
  write(std::string(60'000, 'x'));
  wait_until([this] { return !end_.empty(); });
  EXPECT_EQ(end_, "a line is longer than 100000 bytes");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(LineStreams, MayBeDestroyedByALine) {
  write("go\nand this is told to nobody\n");
  wait_until([this] { return stream_ == nullptr; });
  EXPECT_THAT(lines_, ElementsAre("go"));
  EXPECT_EQ(end_, "");
}

TEST_F(LineStreams, SendsWhatTheOtherEndTakesAndKeepsTheRest) {
  const std::string line(1'000'000, 'y');
  stream_->send(line);
  EXPECT_GT(stream_->unsent(), 0U) << "more than a socket holds";
  std::string got;
  wait_until([&] {
    std::string some(65'536, '\0');
    const ssize_t count = ::recv(other_.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (count > 0) got.append(some, 0, static_cast<std::size_t>(count));
    return got.size() > line.size();
  });
  EXPECT_EQ(got, line + "\n");
  EXPECT_EQ(stream_->unsent(), 0U);
}

}  // namespace
}  // namespace trainyard::sys
