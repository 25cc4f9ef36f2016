#include "workers/channel.h"

#include <sys/socket.h>

#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/passing.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;

Result<void> add_frame(Sender& sender, const std::string& frame) {
  return sender.add([&](std::string& bytes, std::vector<int>& /*descriptors*/) -> Result<void> {
    bytes = frame;
    return {};
  });
}

Result<void> add_word(Sender& sender, const std::string& word) {
  return sender.add_word([&](std::string& bytes) -> Result<void> {
    bytes = word;
    return {};
  });
}

/// Reads until so many bytes have come.
std::string received(const sys::Descriptor& socket, std::size_t count) {
  std::string all;
  std::string piece(std::size_t{1} << 20, '\0');
  while (all.size() < count) {
    const ssize_t read = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (read <= 0) break;
    all.append(piece, 0, static_cast<std::size_t>(read));
  }
  return all;
}

TEST(Sender, TakesAWordWhileWhatWasAddedBeforeWaitsForRoom) {
  auto pair = sys::socket_pair().value();
  Sender sender(pair.first.get(), [] { return false; });
  const std::string frame(std::size_t{8} << 20, 'f');
  std::thread emits([&] { EXPECT_TRUE(add_frame(sender, frame)); });
  const std::string first = received(pair.second, 1);
  EXPECT_TRUE(add_word(sender, "word")) << "nobody reads meanwhile";
  EXPECT_EQ(first + received(pair.second, frame.size() + 4 - first.size()), frame + "word");
  emits.join();
}

TEST(Sender, SendsAWordByItself) {
  auto pair = sys::socket_pair().value();
  Sender sender(pair.first.get(), [] { return false; });
  EXPECT_TRUE(add_word(sender, "word"));
  EXPECT_EQ(received(pair.second, 4), "word");
}

TEST(Sender, WaitsForRoomWhereManyWordsHaveGathered) {
  auto pair = sys::socket_pair().value();
  std::atomic<bool> is_over = false;
  Sender sender(pair.first.get(), [&] { return is_over.load(); });
  const std::string word(std::size_t{1} << 16, 'w');
  std::thread emits(
      [&] { EXPECT_FALSE(add_frame(sender, std::string(std::size_t{8} << 20, 'f'))); });
  static_cast<void>(received(pair.second, 1));
  for (std::size_t words = 0; words < Sender::kGatheredMax; words += word.size()) {
    EXPECT_TRUE(add_word(sender, word));
  }
  is_over = true;
  EXPECT_FALSE(add_word(sender, word)) << "nobody is there to make room";
  emits.join();
}

TEST(Sender, WaitsForRoomOnlyForAWhileInAWorkerThatFails) {
  auto pair = sys::socket_pair().value();
  Sender sender(pair.first.get(), [] { return false; }, 1ms);
  const std::string frame(std::size_t{8} << 20, 'f');
  Result<void> first;
  std::thread emits([&] { first = add_frame(sender, frame); });
  const std::string begun = received(pair.second, 1);
  sender.begin_to_fail();
  emits.join();
  constexpr const char* kWhy =
      "this worker fails, and the workers that it waits for have read nothing for 0.001 s";
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, kWhy);
  const Result<void> second = add_frame(sender, "never sent");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, kWhy);
  sender.has_failed();
  std::thread goes_on([&] { EXPECT_TRUE(add_frame(sender, "sent again")); });
  EXPECT_EQ(begun + received(pair.second, frame.size() + 10 - begun.size()), frame + "sent again");
  goes_on.join();
}

}  // namespace
}  // namespace trainyard::workers
