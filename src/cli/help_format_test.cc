#include "cli/help_format.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
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

TEST(HelpFormat, BreaksDescriptionsAtEightyColumns) {
  CLI::App app("Restart programs", "tool");
  app.formatter(help_format());
  std::string value;
  app.add_option("--retry-delay", value,
                 "Delay before a restart, doubled up to 30s (default: 0.2s)")
      ->type_name("TIME");
  app.add_option("--an-option-that-has-a-long-name", value,
                 std::string(40, 'x') + " and " + "yyyyyyyyy");
  app.add_option("--own", value, std::string(45, 'o') + " o\n(default: o and " + "pppp)");
  const std::string indent(28, ' ');
  EXPECT_THAT(
      app.help(),
      testing::HasSubstr("  --retry-delay TIME        Delay before a restart, doubled up to 30s\n" +
                         indent + "(default: 0.2s)\n"));
  EXPECT_THAT(app.help(), testing::HasSubstr("\n" + indent + std::string(40, 'x') + " and\n" +
                                             indent + "yyyyyyyyy\n"));
  EXPECT_THAT(app.help(), testing::HasSubstr(std::string(45, 'o') + " o\n" + indent +
                                             "(default: o and pppp)\n"))
      << "a break of its own stays";
}

TEST(HelpFormat, JoinsTheLinesOfASentence) {
  EXPECT_EQ(wrapped_notes("one\ntwo.\nthree\n\nfour\n  trainyard run\nfive"),
            "one two.\nthree\n\nfour\n  trainyard run\nfive");
}

}  // namespace
}  // namespace trainyard::cli
