// Folding of a task's output, one rule a test.
#include "report/log_text.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace trainyard::report {
namespace {

TEST(CarriageFolder, KeepsWhatIsLeftOfALineThatWasDrawnOver) {
  CarriageFolder folder;
  EXPECT_EQ(folder.feed(" 10%\r 50%\r100%\nnext\n"), "100%\nnext\n");
  EXPECT_EQ(folder.finish(), "");
}

TEST(CarriageFolder, TakesACarriageReturnBeforeANewlineForALinesEnd) {
  CarriageFolder folder;
  EXPECT_EQ(folder.feed("one\r\ntwo\r"), "one\n");
  EXPECT_EQ(folder.feed("\n"), "two\n");
}

TEST(CarriageFolder, GivesTheSameHoweverTheStreamIsCut) {
  const std::string text = "a\rbc\r\n\r\nd\re";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CarriageFolder folder;
    std::string out = folder.feed(text.substr(0, cut));
    out += folder.feed(text.substr(cut));
    EXPECT_EQ(folder.pending(), "e");
    out += folder.finish();
    EXPECT_EQ(out, "bc\n\ne\n") << "cut at " << cut;
  }
}

TEST(CarriageFolder, HoldsNoMoreThanItsBoundOfALineWithoutAnEnd) {
  CarriageFolder folder;
  const std::string piece(CarriageFolder::kLineMax + 5, 'x');
  EXPECT_EQ(folder.feed(piece).size(), CarriageFolder::kLineMax + 1);
  EXPECT_EQ(folder.pending().size(), 4U);
}

}  // namespace
}  // namespace trainyard::report
