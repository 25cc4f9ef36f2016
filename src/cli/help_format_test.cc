#include "cli/help_format.h"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

TEST(HelpFormat, BreaksNotesAtEightyColumns) {
  const std::string word(39, 'x');
  EXPECT_EQ(wrapped_notes(word + " " + word + "x " + word), word + " " + word + "x\n" + word);
  const std::string wide = "\u00b1" + std::string(39, 'x');
  EXPECT_EQ(wrapped_notes(word + " " + wide), word + " " + wide) << "a character is one column";
  const std::string longer(90, 'x');
  EXPECT_EQ(wrapped_notes("a " + longer + " b"), "a\n" + longer + "\nb");
}

TEST(HelpFormat, JoinsTheLinesOfASentence) {
  EXPECT_EQ(wrapped_notes("one\ntwo.\nthree\n\nfour\n  trainyard run\nfive"),
            "one two.\nthree\n\nfour\n  trainyard run\nfive");
}

}  // namespace
}  // namespace trainyard::cli
