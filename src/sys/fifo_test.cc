#include "sys/fifo.h"

#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

TEST(Fifo, CarriesWordsToWhoeverListensAndSaysWhereNobodyDoes) {
  const TemporaryDirectory place;
  EXPECT_FALSE(tell_fifo(place / "words", "look\n"));
  {
    const auto fifo = open_fifo(place / "words");
    ASSERT_TRUE(fifo);
    EXPECT_EQ(read_waiting(*fifo), "");
    EXPECT_TRUE(tell_fifo(place / "words", "look\n"));
    EXPECT_TRUE(tell_fifo(place / "words", "now\n"));
    EXPECT_EQ(read_waiting(*fifo), "look\nnow\n");
    EXPECT_TRUE(open_fifo(place / "words"));
  }
  EXPECT_FALSE(tell_fifo(place / "words", "look\n"));
}

TEST(Fifo, TakesNoMoreThanThereIsRoomFor) {
  const TemporaryDirectory place;
  const auto fifo = open_fifo(place / "words");
  ASSERT_TRUE(fifo);
  const std::string word(4096, 'x');
  int taken = 0;
  while (taken < 1000 && tell_fifo(place / "words", word)) ++taken;
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 1000);
}

TEST(Fifo, IsNoFileOfSomebodyElse) {
  const TemporaryDirectory place;
  ASSERT_TRUE(replace_file(place / "words", "mine"));
  const auto fifo = open_fifo(place / "words");
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().message, "'" + (place / "words") + "' is not a named pipe");
  EXPECT_FALSE(tell_fifo(place / "words", "look\n"));
  EXPECT_EQ(content_of(place / "words"), "mine");
}

}  // namespace
}  // namespace trainyard::sys
