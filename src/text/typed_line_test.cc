#include "text/typed_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kBreaks = " \t\n\"'@><=;|&(:";

TypedLine typed(std::string_view line) { return read_typed_line(line, kBreaks); }

/// The line with what takes the place of its end.
std::string gone_on(std::string line, std::size_t replaced, std::string_view whole) {
  const TypedLine read = typed(line);
  line.resize(line.size() - replaced);
  return line + as_typed(whole, read);
}

TEST(TypedLine, HasTheWordsBeforeTheCursorAndTheOneAtIt) {
  const TypedLine line = typed("trainyard  logs 46 lr");
  EXPECT_THAT(line.words, ElementsAre("trainyard", "logs", "46"));
  EXPECT_EQ(line.word, "lr");
  EXPECT_EQ(line.stays, 0u);
  EXPECT_EQ(line.open, Quoting::Word);
}

TEST(TypedLine, HasAnEmptyWordAfterABlank) {
  const TypedLine line = typed("trainyard logs ");
  EXPECT_THAT(line.words, ElementsAre("trainyard", "logs"));
  EXPECT_EQ(line.word, "");
  EXPECT_THAT(typed("").words, IsEmpty());
}

TEST(TypedLine, TakesQuotesAndBackslashesAway) {
  EXPECT_THAT(typed(R"(a 'b c' "d \"e\n" f\ g '' h)").words,
              ElementsAre("a", "b c", "d \"e\\n", "f g", ""));
  EXPECT_EQ(typed("a 'b\\").word, "b\\");
  EXPECT_EQ(typed("a b\\").word, "b") << "what the backslash is for is not typed";
  EXPECT_EQ(typed("a b\\\nc").word, "bc");
}

TEST(TypedLine, KeepsWhatBashTakesForAWordOfItsOwn) {
  EXPECT_EQ(typed("t logs lr=0.1,seed=2").stays, std::string_view("lr=0.1,seed=").size());
  EXPECT_EQ(typed("t logs :fa").stays, 1u);
  EXPECT_EQ(typed("t logs a@b").stays, 1u) << "this one is completed with what follows it";
  EXPECT_EQ(typed("t logs lr\\=0").stays, 0u) << "quoted it breaks nothing";
  EXPECT_EQ(typed("t logs 'lr=0").stays, 0u);
  EXPECT_EQ(typed("t logs 'lr=0").open, Quoting::SingleQuotes);
  EXPECT_EQ(typed("t logs a=\"b=c").stays, 2u);
  EXPECT_EQ(typed("t logs a=\"b=c").open, Quoting::DoubleQuotes);
  EXPECT_EQ(typed("t logs 'a b'").stays, 3u);
}

TEST(TypedLine, IsGoneOnWithSoThatBashReadsTheWholeWord) {
  EXPECT_EQ(gone_on("t logs lr=0.", 2, "lr=0.1"), "t logs lr=0.1");
  EXPECT_EQ(gone_on("t logs a", 1, "a b's"), R"(t logs a\ b\'s)");
  EXPECT_EQ(gone_on("t logs 'a ", 2, "a b's"), R"(t logs 'a b'\''s)");
  EXPECT_EQ(gone_on("t logs \"a ", 2, "a $b\"s"), R"(t logs "a \$b\"s)");
  EXPECT_EQ(gone_on("t logs ", 0, "#1"), R"(t logs \#1)");
  EXPECT_EQ(gone_on("t logs ", 0, "~1"), R"(t logs \~1)");
  EXPECT_EQ(gone_on("t run ~/s", 3, "~/sweep.yaml"), "t run ~/sweep.yaml");
  EXPECT_EQ(gone_on("t logs lr=", 0, "lr=#~"), "t logs lr=#~");
}

}  // namespace
}  // namespace trainyard::text
