#include "workers/datagram.h"

#include <gtest/gtest.h>

#include "wire/frame.h"

namespace trainyard::workers {
namespace {

Datagram some() {
  return {.version = wire::kProtocolVersion,
          .kind = Datagram::Kind::Piece,
          .from = 0x0102030405060708,
          .to = 7,
          .offset = 1ULL << 40U,
          .received = 3,
          .window = 4,
          .missing = true,
          .bytes = "what it brings"};
}

TEST(Datagram, IsReadAsItWasWritten) {
  const std::string text = datagram_text(some());
  EXPECT_EQ(text.size(), kDatagramHeadBytes + some().bytes.size());
  EXPECT_EQ(read_datagram(text), some());
}

TEST(Datagram, OfAnotherVersionTellsThatAndFromWhom) {
  std::string text = datagram_text(some());
  text[4] = 9;
  EXPECT_EQ(read_datagram(text.substr(0, 24)),
            (Datagram{.version = 9, .kind = Datagram::Kind::Piece, .from = some().from, .to = 7}));
}

TEST(Datagram, IsNothingElse) {
  const std::string text = datagram_text(some());
  for (std::size_t bytes = 0; bytes < kDatagramHeadBytes; ++bytes) {
    EXPECT_FALSE(read_datagram(text.substr(0, bytes))) << bytes;
  }
  std::string wrong = text;
  wrong[0] = 'X';
  EXPECT_FALSE(read_datagram(wrong));
  wrong = text;
  wrong[5] = 5;
  EXPECT_FALSE(read_datagram(wrong));
}

}  // namespace
}  // namespace trainyard::workers
