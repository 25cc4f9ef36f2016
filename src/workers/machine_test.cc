#include "workers/machine.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "trainyard/parallel.h"

namespace trainyard::workers {
namespace {

using Piece = MachineStream::Piece;

Outbox with(const std::string& bytes) {
  Outbox outbox(QueueLimits{}, {});
  outbox.add_word(bytes);
  return outbox;
}

std::vector<std::string> all_of(MachineStream& stream, Outbox& outbox, Duration now = {}) {
  std::vector<std::string> pieces;
  while (const Piece* const piece = stream.next(outbox, now)) {
    pieces.emplace_back(piece->bytes());
  }
  return pieces;
}

TEST(MachineStream, SendsInPiecesAndKeepsThemUntilTheyHaveCome) {
  MachineStream stream(4);
  Outbox outbox = with("0123456789");
  EXPECT_EQ(all_of(stream, outbox), (std::vector<std::string>{"0123", "4567", "89"}));
  EXPECT_TRUE(outbox.empty());
  EXPECT_FALSE(stream.told(7, MachineStream::kWindowBytes, false, {}));
  // The second one has come but for its last byte.
  ASSERT_EQ(stream.on_its_way().size(), 2U);
  EXPECT_EQ(stream.on_its_way().front().offset, 4U);
  stream.told(10, MachineStream::kWindowBytes, false, {});
  EXPECT_TRUE(stream.on_its_way().empty());
}

TEST(MachineStream, SendsNoMoreThanThereIsRoomFor) {
  MachineStream stream(std::size_t{1} << 20);
  Outbox outbox = with(std::string(2 * MachineStream::kWindowBytes, 'x'));
  EXPECT_EQ(all_of(stream, outbox).size(), MachineStream::kWindowBytes >> 20U);
  // All has come, and is not taken: there is no room for more.
  stream.told(MachineStream::kWindowBytes, MachineStream::kWindowBytes, false, {});
  EXPECT_TRUE(all_of(stream, outbox).empty());
  stream.told(MachineStream::kWindowBytes, MachineStream::kWindowBytes + 3, false, {});
  EXPECT_EQ(all_of(stream, outbox), (std::vector<std::string>{"xxx"}));
}

TEST(MachineStream, SendsAgainWhatIsMissingOrOverdueAndNotTooOften) {
  MachineStream stream(4);
  Outbox outbox = with("01234567");
  all_of(stream, outbox, Duration(1'000));
  EXPECT_FALSE(stream.told(0, 100, true, Duration(1'000)));
  EXPECT_TRUE(stream.told(0, 100, true, Duration(1'000) + MachineStream::kResendPause));
  EXPECT_FALSE(stream.told(0, 100, true, Duration(1'001) + MachineStream::kResendPause));
  EXPECT_FALSE(stream.is_overdue(Duration(1'400)));
  EXPECT_TRUE(stream.is_overdue(Duration(2'000)));
  EXPECT_FALSE(stream.is_overdue(Duration(2'001)));
  stream.told(8, 100, false, Duration(2'002));
  EXPECT_FALSE(stream.is_overdue(Duration(9'000)));
}

TEST(MachineStream, SendsAllAgainWhenTheFirstPieceThatWasOverdueHasCome) {
  MachineStream stream(4);
  Outbox outbox = with("0123456789");
  all_of(stream, outbox, Duration(1'000));
  EXPECT_TRUE(stream.is_overdue(Duration(2'000)));
  EXPECT_FALSE(stream.told(0, 100, false, Duration(2'010))) << "it has not come";
  EXPECT_TRUE(stream.told(4, 100, false, Duration(2'020)));
  EXPECT_EQ(stream.on_its_way().size(), 2U);
  EXPECT_FALSE(stream.told(8, 100, false, Duration(2'030))) << "that was done once";
  EXPECT_TRUE(stream.is_overdue(Duration(3'000)));
  EXPECT_FALSE(stream.told(10, 100, false, Duration(3'010))) << "there is nothing left";
}

TEST(MachineStream, SplitsWhatIsOnItsWayWherePiecesMustBeSmaller) {
  MachineStream stream(4);
  Outbox outbox = with("0123456789ab");
  ASSERT_NE(stream.next(outbox, {}), nullptr);
  ASSERT_NE(stream.next(outbox, {}), nullptr);
  stream.told(2, MachineStream::kWindowBytes, false, {});
  stream.limit_pieces(3);
  std::vector<std::string> pieces;
  for (const Piece& each : stream.on_its_way()) {
    pieces.push_back(std::to_string(each.offset) + ":" + std::string(each.bytes()));
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"0:012", "3:3", "4:456", "7:7"}));
  EXPECT_EQ(all_of(stream, outbox), (std::vector<std::string>{"89a", "b"}));
  stream.told(12, MachineStream::kWindowBytes, false, {});
  EXPECT_TRUE(stream.is_idle());
}

TEST(MachineStream, DoesNotBelieveThatWhatNeverWentHasCome) {
  MachineStream stream(4);
  Outbox outbox = with("0123");
  all_of(stream, outbox);
  EXPECT_FALSE(stream.told(5, 100, true, Duration(1'000)));
  EXPECT_EQ(stream.on_its_way().size(), 1U);
}

TEST(MachineStream, TakesEachByteOnceAndInOrder) {
  MachineStream stream(4);
  EXPECT_EQ(stream.take(0, "01"), "01");
  EXPECT_EQ(stream.take(0, "01"), "");
  EXPECT_EQ(stream.take(4, "45"), "");
  EXPECT_TRUE(stream.is_missing());
  EXPECT_EQ(stream.take(1, "123"), "23");
  EXPECT_FALSE(stream.is_missing());
  EXPECT_EQ(stream.received(), 4U);
}

/// Two ends of something that loses, doubles and delays; whatever it does, all arrives.
TEST(MachineStream, BringsAllAcrossWhateverIsLost) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::size_t kBytes = 5'000;
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  MachineStream from(7);
  MachineStream to(7);
  std::string sent;
  std::string heard;
  std::deque<Piece> on_the_way;
  Outbox outbox(QueueLimits{}, {});
  Duration now{0};
  while (sent.size() < kBytes || heard.size() < sent.size()) {
    now += Duration(10);
    ASSERT_LT(now, Duration(10'000'000));
    if (sent.size() < kBytes) {
      const std::string more(1 + (random() % 40), static_cast<char>('a' + (random() % 26)));
      sent += more;
      outbox.add_word(more);
    }
    const auto send = [&](const Piece& piece) {
      if (!one_in(5)) on_the_way.push_back(piece);
      if (one_in(9)) on_the_way.push_back(piece);
    };
    while (const Piece* const piece = from.next(outbox, now)) send(*piece);
    while (!on_the_way.empty() && !one_in(60)) {
      heard += to.take(on_the_way.front().offset, on_the_way.front().bytes());
      on_the_way.pop_front();
    }
    if (!one_in(3) && from.told(to.received(), to.received() + 500, to.is_missing(), now)) {
      for (const Piece& piece : from.on_its_way()) send(piece);
    }
    if (from.is_overdue(now)) send(from.on_its_way().front());
  }
  EXPECT_TRUE(heard == sent) << "another one than was sent";
}

}  // namespace
}  // namespace trainyard::workers
