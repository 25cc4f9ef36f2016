#include "link/frame_socket.h"

#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/passing.h"

namespace trainyard::link {
namespace {

constexpr wire::FrameLimits kLimits{.fields_bytes_max = 1000,
                                    .buffers_max = 2,
                                    .buffers_bytes_max = std::size_t{1} << 20,
                                    .shared_max = 4};

struct Pair {
  FrameSocket one;
  FrameSocket other;
};

Pair connected() {
  auto ends = sys::socket_pair().value();
  return {.one = FrameSocket(std::move(ends.first), kLimits),
          .other = FrameSocket(std::move(ends.second), kLimits)};
}

TEST(FrameSocket, CarriesFramesWithTheirSharedBuffers) {
  Pair pair = connected();
  ArenaPool pool({});
  const auto loan = pool.lend(5).value();
  loan.bytes()[4] = std::byte{7};
  const wire::Frame frame{.kind = wire::FrameKind::Request,
                          .sequence = 3,
                          .fields = "{}",
                          .buffers = {"raw"},
                          .shared = {loan.buffer()}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pair.one.send(frame, &pool).has_value());
    const wire::Frame got = pair.other.wait_for_frame().value();
    EXPECT_EQ(got, frame);
    EXPECT_EQ(pair.other.arenas().open(got).value()[0][4], std::byte{7});
  }
  EXPECT_EQ(pair.one.unsent(), 0U);
}

TEST(FrameSocket, TakesTheDescriptorsOfTwoFramesWhereTheSecondBeginsInTheLastReadOfTheFirst) {
  auto ends = sys::socket_pair().value();
  FrameSocket one(std::move(ends.first), {});
  FrameSocket other(std::move(ends.second), {});
  ArenaPool pool({.arenas_max = 2 * wire::kDescriptorsMax});
  std::vector<ArenaPool::Loan> loans;
  // The first frame takes more than one read, and the last of them brings the second frame.
  std::vector<wire::Frame> frames(2, {.fields = "{}"});
  frames[0].buffers = {std::string(100'000, 'x')};
  for (wire::Frame& frame : frames) {
    for (std::size_t i = 0; i < wire::kDescriptorsMax; ++i) {
      frame.shared.push_back(loans.emplace_back(pool.lend(1).value()).buffer());
    }
    ASSERT_TRUE(one.send(frame, &pool).has_value());
    ASSERT_EQ(one.unsent(), 0U);
  }
  for (const wire::Frame& frame : frames) {
    const Result<wire::Frame> got = other.wait_for_frame();
    ASSERT_TRUE(got.has_value()) << got.error().message;
    EXPECT_EQ(*got, frame);
    EXPECT_TRUE(other.arenas().open(*got).has_value());
  }
}

TEST(FrameSocket, CarriesADescriptorThatIsNoArena) {
  Pair pair = connected();
  auto passed = sys::socket_pair().value();
  ASSERT_TRUE(pair.one.send_with_descriptor({.fields = "{}"}, passed.first.get()).has_value());
  ASSERT_TRUE(pair.other.wait_for_frame().has_value());
  const sys::Descriptor got = pair.other.take_descriptor().value();
  ASSERT_EQ(::write(got.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(passed.second.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(pair.other.take_descriptor().error().message, "a descriptor did not come");
}

TEST(FrameSocket, KeepsWhatTheOtherEndDoesNotTake) {
  Pair pair = connected();
  const wire::Frame large{.fields = "{}", .buffers = {std::string(std::size_t{1} << 20, 'x')}};
  ASSERT_TRUE(pair.one.send(large).has_value());
  EXPECT_GT(pair.one.unsent(), 0U);
  wire::Frame got;
  while (got.buffers.empty()) {
    ASSERT_TRUE(pair.other.read_some().has_value());
    auto next = pair.other.next().value();
    if (next) got = *std::move(next);
    pair.one.write_some();
  }
  EXPECT_EQ(got, large);
  EXPECT_EQ(pair.one.unsent(), 0U);
}

TEST(FrameSocket, SendsNoFrameOverItsLimits) {
  Pair pair = connected();
  EXPECT_FALSE(pair.one.send({.fields = std::string(1001, ' ')}).has_value());
  EXPECT_EQ(pair.one.unsent(), 0U);
  EXPECT_TRUE(pair.other.read_some().has_value());
  EXPECT_EQ(pair.other.next().value(), std::nullopt);
}

TEST(FrameSocket, SaysWhenTheConnectionHasEnded) {
  Pair pair = connected();
  pair.one.shut_down();
  EXPECT_EQ(pair.other.wait_for_frame().error().message, "its connection has ended");
  EXPECT_TRUE(pair.other.send({.fields = "{}"}).has_value());
  EXPECT_EQ(pair.other.unsent(), 0U);
}

TEST(FrameSocket, SaysWhenWhatComesIsNoFrame) {
  Pair pair = connected();
  const std::string_view request = "GET / HTTP/1.1\r\n\r\n 0123456789 0123456789 0123456789";
  ASSERT_EQ(::send(pair.one.descriptor(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  EXPECT_FALSE(pair.other.wait_for_frame().has_value());
}

}  // namespace
}  // namespace trainyard::link
