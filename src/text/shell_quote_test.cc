// Values in shell commands, asked of real shells: whatever the value, the command sees just that.
#include "text/shell_quote.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/placeholder.h"
#include "text/test_shell.h"

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::array<std::string_view, 2> kTwoNames{"v", "w"};

Template shell_template(std::string_view command) {
  const Template::Read read = Template::read(command, {.names = kTwoNames, .in_shell = true});
  EXPECT_TRUE(read.problems.empty()) << command << ": " << read.problems.front();
  return read.text;
}

std::string text_of(std::string_view command) {
  return shell_template(command).command({"value", "other"}).text;
}

std::string written_out(std::string_view command, const std::string& value) {
  return shell_template(command).fill({value, "other"});
}

/// A way to write a value in a command, and what the command then prints around it.
struct Way {
  std::string_view command;
  std::string_view before;
  std::string_view after;
  bool can_be_written_out = true;  ///< Whether quotes alone are enough for a person who pastes it.
};

constexpr std::array<Way, 30> kWays{{
    {.command = "printf %s {v}"},
    {.command = "printf %s a{v}b", .before = "a", .after = "b"},
    {.command = "printf %s \"run {v}!\"", .before = "run ", .after = "!"},
    {.command = "printf %s 'run {v}!'", .before = "run ", .after = "!"},
    {.command = "printf %s \"it's {v}\"", .before = "it's "},
    {.command = "printf %s 'a \"'{v}", .before = "a \""},
    {.command = "printf %s \\'{v}", .before = "'"},
    {.command = "printf %s \"$(printf %s. {v})\"", .after = "."},
    {.command = "printf %s \"$(printf %s. \"{v}\")\"", .after = "."},
    {.command = "printf %s \"$( (printf %s. '{v}') )\"", .after = "."},
    {.command = "cat <<EOF\nit's {v}.\nEOF",
     .before = "it's ",
     .after = ".\n",
     .can_be_written_out = false},
    {.command = "cat <<EOF\n{v}\nEOF", .after = "\n", .can_be_written_out = false},
    {.command = "cat <<EOF\n\"{v}\" '$HOME'\nEOF",
     .before = "\"",
     .after = "\" '/home'\n",
     .can_be_written_out = false},
    {.command = "x=$(cat <<E\n{v}.\nE\n)\nprintf %s \"$x\"",
     .after = ".",
     .can_be_written_out = false},
    {.command = "cat <<'EOF'; printf %s {v}\nit's\nEOF", .before = "it's\n"},
    {.command = "# don't: {v}\nprintf %s {v} # it's"},
    {.command = "case x in x) printf %s {v};; esac # it's"},
    {.command = "printf %s \"${NOTHING:-}{v}${HOME##*}\""},
    {.command = "printf %s \"${NOTHING:-$(printf %s. {v})}\"", .after = "."},
    {.command = "printf %s \"\\$(\"{v}", .before = "$("},
    {.command = "printf %s \"$((1 + (2 * 3)))\"'{v}'", .before = "7"},
    {.command = "x=a; printf %s $x{v}", .before = "a"},
    {.command = "printf %s a \\\n# it's {v}\nprintf %s {v}", .before = "a"},
    {.command = "printf %s $(echo a)#{v}", .before = "a#"},
    {.command = "printf %s `echo a`#{v}", .before = "a#"},
    {.command = "f() { printf %s \"$1\"; }; ( (f {v}) )"},
    {.command = "x={v}; printf %s \"$x\""},
    {.command = "for x in {v}; do printf '%s' \"<$x>\"; done", .before = "<", .after = ">"},
    {.command = "sh() { printf %s \"$4\"; }; sh -c 'printf %s \"$1\"' sh {v}"},
    {.command = "case {v} in {v}) printf %s {v};; esac"},
}};

/// All the nasty ones in a few, as each is two processes.
std::vector<std::string> few_values() {
  std::vector<std::string> values{every_byte(), "", "1e-3", "-n", "EOF", "E", "touch HIT"};
  for (const std::string_view between : {"", "\n", " ", "a"}) {
    values.push_back(fmt::format("{}", fmt::join(nasty_values(), between)));
  }
  return values;
}

TEST(ShellQuote, MakesOneWordOfAnyValue) {
  EXPECT_EQ(shell_word("1e-3"), "1e-3");
  EXPECT_EQ(shell_word("/a/b.py"), "/a/b.py");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("~"), "'~'");
}

TEST(ShellQuote, PutsAVariableInThePlaceOfEachValueWithTheQuotesThatItNeeds) {
  EXPECT_EQ(text_of("train --lr {v}"), R"(train --lr "$TRAINYARD_V1")");
  EXPECT_EQ(text_of("train \"lr {v}!\""), R"(train "lr ${TRAINYARD_V1}!")");
  EXPECT_EQ(text_of("train 'lr {v}!'"), R"(train 'lr '"${TRAINYARD_V1}"'!')");
  EXPECT_EQ(text_of("cat <<EOF\nlr: {v}x\nEOF"), "cat <<EOF\nlr: ${TRAINYARD_V1}x\nEOF");
  EXPECT_EQ(text_of("train # {v}"), "train # ");
}

TEST(ShellQuote, HasOneVariableForEachPlaceholderInTheOrderOfTheText) {
  const Template::Command command =
      shell_template("x {w} \"{v}\" '{w}' # {v}").command({"a", "b c"});
  EXPECT_EQ(command.text, R"(x "$TRAINYARD_V1" "${TRAINYARD_V2}" ''"${TRAINYARD_V1}"'' # )");
  EXPECT_THAT(command.variables,
              ElementsAre(Pair("TRAINYARD_V1", "b c"), Pair("TRAINYARD_V2", "a")));
  EXPECT_THAT(shell_template("x # {v}").command({"a", "b"}).variables, IsEmpty());
}

TEST(ShellQuote, LetsTheCommandSeeJustTheValueWhereverItStandsWhateverItIs) {
  const ShellRoom room;
  for (const Way& way : kWays) {
    const Template command = shell_template(way.command);
    for (const std::string& value : few_values()) {
      const std::string expected = std::string(way.before) + value + std::string(way.after);
      for (const std::string& shell : shells()) {
        EXPECT_EQ(room.run(shell, command.command({value, ""})), expected)
            << shell << ": " << way.command;
        EXPECT_FALSE(room.was_hit()) << shell << ": " << way.command << " with " << value;
      }
    }
  }
}

TEST(ShellQuote, CanBePastedWithTheValuesWrittenOut) {
  const ShellRoom room;
  for (const Way& way : kWays) {
    const Template command = shell_template(way.command);
    EXPECT_NE(command.first_in_document().has_value(), way.can_be_written_out) << way.command;
    if (!way.can_be_written_out) continue;
    for (const std::string& value : few_values()) {
      const Template::Command pasted{.text = command.fill({value, ""})};
      for (const std::string& shell : shells()) {
        EXPECT_EQ(room.run(shell, pasted), std::string(way.before) + value + std::string(way.after))
            << shell << ": " << pasted.text;
      }
    }
  }
}

TEST(ShellQuote, KnowsShiftsFromHereDocuments) {
  const ShellRoom room;
  for (const std::string& shell : shells()) {
    EXPECT_EQ(room.run(shell,
                       shell_template("echo $((1 << 2))\nprintf %s \"{v}\"").command({"it's", ""})),
              "4\nit's");
  }
}

TEST(ShellQuote, KeepsAValueApartFromTheRedirectionAfterIt) {
  EXPECT_EQ(written_out("x {v}<in {v} <in", "2"), "x '2'<in 2 <in");
  EXPECT_EQ(text_of("x {v}<in"), R"(x "$TRAINYARD_V1"<in)");
}

TEST(ShellQuote, QuotesACommandInAMessageOnceAtMost) {
  EXPECT_EQ(quoted_command("trainyard kill 46"), "'trainyard kill 46'");
  EXPECT_EQ(quoted_command("trainyard kill 'my runs/x'"), "\"trainyard kill 'my runs/x'\"");
}

TEST(ShellQuote, TakesTheFirstWordOfACommandForNothingElse) {
  EXPECT_EQ(written_out("{v}; {v} | (x {v})", "done"), "'done'; 'done' | (x done)");
  EXPECT_EQ(written_out("{v} true", "A=b"), "'A=b' true");
}

}  // namespace
}  // namespace trainyard::text
