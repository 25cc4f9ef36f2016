#include "workers/outbox.h"

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/passing.h"

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr QueueLimits kEight{.events_max = 8, .bytes_max = 1'000};

/// "2x1 " for two events of topic 1.
std::string loss_words(const Outbox::Losses& losses) {
  std::string words;
  for (const auto& [topic, count] : losses) {
    words += std::to_string(count) + "x" + std::to_string(topic) + " ";
  }
  return words;
}

std::string take_all(Outbox& box) {
  std::string all;
  box.take(100'000, all);
  return all;
}

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
  Outbox box(kEight, loss_words);
  box.add_word("first.");
  box.add_event("one.", 1);
  box.add_event("two.", 1);
  box.add_share(
      3, std::make_shared<const sys::Descriptor>(std::move(sys::socket_pair().value().first)));
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
  Outbox box(kEight, loss_words);
  for (int i = 0; i < 7; ++i) box.add_event("e", 1);
  EXPECT_FALSE(box.full());
  box.add_event("e", 1);
  EXPECT_TRUE(box.full());
  EXPECT_FALSE(box.has_room());
  Outbox other(kEight, loss_words);
  other.add_event(std::string(1'000, 'x'), 1);
  EXPECT_TRUE(other.full());
}

TEST(Outbox, IsNotFullOfEventsThatTheMachineOfTheirSenderBounds) {
  Outbox box(kEight, loss_words);
  for (int i = 0; i < 8; ++i) box.add_event("there.", 1, Outbox::BoundBy::Sender);
  EXPECT_EQ(box.events(), 8U);
  EXPECT_TRUE(box.has_room());
  for (int i = 0; i < 8; ++i) box.add_event("here.", 1);
  EXPECT_TRUE(box.full());
  take_all(box);
  for (int i = 0; i < 7; ++i) box.add_event("here.", 1);
  EXPECT_FALSE(box.full());
}

TEST(Outbox, CountsTheEventsThatWereSentOrDropped) {
  Outbox box(kEight, loss_words);
  box.add_event("a.", 1);
  box.add_word("word.");
  box.add_event("b.", 1);
  box.add_word("word.");
  box.add_event("c.", 1);
  box.drop_oldest();
  EXPECT_EQ(box.events_gone(), 1U);
  std::string taken;
  box.take(4 + 5 + 1, taken);
  EXPECT_EQ(taken, "1x1 word.b");
  EXPECT_EQ(box.events_gone(), 1U) << "a part of it still waits";
  take_all(box);
  EXPECT_EQ(box.events_gone(), 3U);
}

TEST(Outbox, DropsTheOldestEventsAndSaysWhoseTheyWere) {
  Outbox box(kEight, loss_words);
  box.add_event("a1.", 1);
  box.add_word("word.");
  box.add_event("b.", 2);
  EXPECT_THAT(box.drop_oldest().events, ElementsAre(Pair(1, 1)));
  EXPECT_THAT(box.drop_oldest().events, ElementsAre(Pair(2, 1)));
  EXPECT_THAT(box.drop_oldest().events, IsEmpty()) << "words are never dropped";
  const auto pair = sys::socket_pair().value();
  EXPECT_TRUE(box.send_some(pair.first.get()));
  std::vector<sys::Descriptor> descriptors;
  EXPECT_EQ(read_all(pair.second.get(), descriptors), "1x1 word.1x2 ");
}

TEST(Outbox, ReportsWhatItDroppedBeforeAllThatCameAfterIt) {
  Outbox box(kEight, loss_words);
  box.add_event("begun.", 1);
  box.add_word("1.");
  std::string taken;
  box.take(2, taken);
  for (const char* const each : {"a.", "b.", "c.", "d."}) {
    box.add_event(each, 1);
    box.drop_oldest();
  }
  box.add_event("e.", 2);
  EXPECT_EQ(take_all(box), "gun.1.4x1 e.");
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.bytes(), 0U);
}

std::shared_ptr<const sys::Descriptor> a_descriptor() {
  return std::make_shared<const sys::Descriptor>(std::move(sys::socket_pair().value().first));
}

TEST(Outbox, HandsADescriptorOnToTheNextEventThatNamesItsMemory) {
  const auto pair = sys::socket_pair().value();
  Outbox box(kEight, loss_words);
  box.add_event("first.", 1);
  box.add_share(7, a_descriptor());
  box.add_event("other.", 1);
  box.add_share(8, a_descriptor());
  box.add_event("again.", 1);
  box.add_share(7, nullptr);
  const Outbox::DroppedEvents dropped = box.drop_oldest();
  EXPECT_THAT(dropped.aliases, ElementsAre(7));
  EXPECT_THAT(dropped.unsent, IsEmpty());
  EXPECT_THAT(box.drop_oldest().unsent, ElementsAre(8)) << "nothing that waits names it";
  EXPECT_TRUE(box.send_some(pair.first.get()));
  std::vector<sys::Descriptor> descriptors;
  EXPECT_EQ(read_all(pair.second.get(), descriptors), "2x1 again.");
  EXPECT_EQ(descriptors.size(), 1U);
}

TEST(Outbox, AddsNothingToAReportThatHasGoneInPart) {
  Outbox box(kEight, loss_words);
  box.add_event("a.", 1);
  box.drop_oldest();
  box.add_event("b.", 1);
  std::string taken;
  box.take(1, taken);
  box.drop_oldest();
  box.add_event("c.", 1);
  EXPECT_EQ(taken + take_all(box), "1x1 1x1 c.");
}

TEST(Outbox, ReportsWhatWasLostBeforeItCameBehindAllThatWaits) {
  Outbox box(kEight, loss_words);
  box.add_event("a.", 1);
  box.add_lost(1, 3);
  box.add_lost(2, 4);
  box.add_event("b.", 1);
  EXPECT_EQ(box.bytes(), 4U) << "it is not written yet";
  box.add_lost(1, 5);
  EXPECT_THAT(box.drop_oldest().events, ElementsAre(Pair(1, 1)));
  EXPECT_THAT(box.drop_oldest().events, ElementsAre(Pair(1, 1)));
  EXPECT_EQ(take_all(box), "10x1 4x2 ") << "in one report, as nothing is between them";
  EXPECT_TRUE(box.empty());
}

TEST(Outbox, HasNoMoreReportsThanFramesThatStillWait) {
  Outbox box({.events_max = 8, .bytes_max = 1'000'000}, loss_words);
  for (int i = 0; i < 10'000; ++i) {
    box.add_event("e", 1);
    box.add_lost(1, 1);
    if (box.full()) box.drop_oldest();
  }
  EXPECT_EQ(box.bytes(), 7U);
  const std::string all = take_all(box);
  EXPECT_EQ(all.substr(all.size() - 5), "e1x1 ");
  EXPECT_LT(all.size(), 100U);
}

TEST(Outbox, KnowsThatNobodyIsThere) {
  auto pair = sys::socket_pair().value();
  Outbox box(kEight, loss_words);
  box.add_event("e", 1);
  pair.second.close();
  EXPECT_FALSE(box.send_some(pair.first.get()));
}

TEST(Outbox, CountsItsWordsBesideItsEvents) {
  Outbox box({.events_max = 10, .bytes_max = 100}, loss_words);
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
