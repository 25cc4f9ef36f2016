#include "workers/outbox.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/passing.h"
#include "trainyard/parallel.h"

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr QueueLimits kEight{.events_max = 8, .bytes_max = 1'000};

/// All that is there to be read.
std::string read_all(int socket, std::vector<sys::Descriptor>& descriptors) {
  std::string all;
  std::string piece(100'000, '\0');
  while (true) {
    const auto count = sys::receive_with(socket, piece, descriptors, MSG_DONTWAIT);
    if (count <= 0) return all;
    all += piece.substr(0, static_cast<std::size_t>(count));
  }
}

TEST(Outbox, SendsFramesAndWordsInOrderWithTheirDescriptors) {
  const auto pair = sys::socket_pair().value();
  Outbox box(kEight);
  box.add_word("first.");
  box.add_event("one.", 1);
  box.add_event("two.", 1);
  box.add_descriptor(
      std::make_shared<const sys::Descriptor>(std::move(sys::socket_pair().value().first)));
  const auto [bytes, at] = box.back();
  EXPECT_EQ(std::string_view(*bytes).substr(at), "two.");
  (*bytes)[at] = 'T';
  box.add_word("last.");
  EXPECT_EQ(box.events(), 2U);
  EXPECT_TRUE(box.send_some(pair.first.get()));
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.bytes(), 0U);
  std::vector<sys::Descriptor> descriptors;
  EXPECT_EQ(read_all(pair.second.get(), descriptors), "first.one.Two.last.");
  EXPECT_EQ(descriptors.size(), 1U);
}

TEST(Outbox, IsFullOfSoManyEventsOrBytes) {
  Outbox box(kEight);
  for (int i = 0; i < 7; ++i) box.add_event("e", 1);
  EXPECT_FALSE(box.full());
  box.add_event("e", 1);
  EXPECT_TRUE(box.full());
  EXPECT_FALSE(box.has_room());
  Outbox other(kEight);
  other.add_event(std::string(1'000, 'x'), 1);
  EXPECT_TRUE(other.full());
}

TEST(Outbox, DropsTheOldestEventsAndSaysWhoseTheyWere) {
  Outbox box(kEight);
  box.add_event("a1.", 1);
  box.add_word("word.");
  box.add_event("b.", 2);
  EXPECT_THAT(box.drop_oldest(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(box.drop_oldest(), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(box.drop_oldest(), IsEmpty()) << "words are never dropped";
  const auto pair = sys::socket_pair().value();
  EXPECT_TRUE(box.send_some(pair.first.get()));
  std::vector<sys::Descriptor> descriptors;
  EXPECT_EQ(read_all(pair.second.get(), descriptors), "word.");
}

TEST(Outbox, KnowsThatNobodyIsThere) {
  auto pair = sys::socket_pair().value();
  Outbox box(kEight);
  box.add_event("e", 1);
  pair.second.close();
  EXPECT_FALSE(box.send_some(pair.first.get()));
}

TEST(Outbox, CountsItsWordsBesideItsEvents) {
  Outbox box({.events_max = 10, .bytes_max = 100});
  box.add_word("four");
  box.add_event(std::string(50, 'e'), 1);
  box.add_word("seven77");
  EXPECT_EQ(box.word_bytes(), 11U);
  std::string taken;
  box.take(3, taken);
  EXPECT_EQ(box.word_bytes(), 8U);
  box.take(51, taken);
  EXPECT_EQ(box.word_bytes(), 7U);
  EXPECT_EQ(box.bytes(), 7U);
}

}  // namespace
}  // namespace trainyard::workers
