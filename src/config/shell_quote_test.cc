// Values in shell commands, asked of a real sh: whatever the value, the command sees just that.
#include "config/shell_quote.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>
#include <rapidcheck/gen/Container.h>
#include <rapidcheck/gen/Numeric.h>
#include <rapidcheck/gen/Select.h>

#include "base/check.h"
#include "config/placeholder.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 1> kNames{"v"};

/// What a command writes, run as trainyard runs it.
std::string output_of(const std::string& command) {
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0, "a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::execl("/bin/sh", "/bin/sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(ends[0], block.data(), block.size());
    if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : text + "(failed)";
}

std::string filled(std::string_view command, const std::string& value) {
  const Template::Read read = Template::read(command, {.names = kNames, .in_shell = true});
  EXPECT_TRUE(read.problems.empty()) << command << ": " << read.problems.front();
  return read.text.fill({value});
}

/// A way to write a value in a command, and what the command then prints around it.
struct Way {
  std::string_view command;
  std::string_view before;
  std::string_view after;
};

constexpr std::array<Way, 27> kWays{{
    {.command = "printf %s {v}", .before = "", .after = ""},
    {.command = "printf %s a{v}b", .before = "a", .after = "b"},
    {.command = "printf %s \"run {v}!\"", .before = "run ", .after = "!"},
    {.command = "printf %s 'run {v}!'", .before = "run ", .after = "!"},
    {.command = "printf %s \"it's {v}\"", .before = "it's ", .after = ""},
    {.command = "printf %s 'a \"'{v}", .before = "a \"", .after = ""},
    {.command = "printf %s \\'{v}", .before = "'", .after = ""},
    {.command = "printf %s \"$(printf %s. {v})\"", .before = "", .after = "."},
    {.command = "printf %s \"$(printf %s. \"{v}\")\"", .before = "", .after = "."},
    {.command = "printf %s \"$( (printf %s. '{v}') )\"", .before = "", .after = "."},
    {.command = "x=`printf %s. {v}`; printf %s \"$x\"", .before = "", .after = "."},
    {.command = "x=`printf %s. '{v}'`; printf %s \"$x\"", .before = "", .after = "."},
    {.command = "x=`printf %s. \"{v}\"`; printf %s \"$x\"", .before = "", .after = "."},
    {.command = "cat <<EOF\nit's {v}\nEOF", .before = "it's ", .after = "\n"},
    {.command = "cat <<'EOF'; printf %s {v}\nit's\nEOF", .before = "it's\n", .after = ""},
    {.command = "# don't: {v}\nprintf %s {v} # it's", .before = "", .after = ""},
    {.command = "case x in x) printf %s {v};; esac # it's", .before = "", .after = ""},
    {.command = "x=\"`printf %s. {v}`\"; printf %s \"$x\"", .before = "", .after = "."},
    {.command = "printf %s \"${NOTHING:-}{v}${HOME##*}\"", .before = "", .after = ""},
    {.command = "printf %s \"${NOTHING:-$(printf %s. {v})}\"", .before = "", .after = "."},
    {.command = "printf %s \"\\$(\"{v}", .before = "$(", .after = ""},
    {.command = "printf %s \"$((1 + (2 * 3)))\"'{v}'", .before = "7", .after = ""},
    {.command = "x=a; printf %s $x{v}", .before = "a", .after = ""},
    {.command = "printf %s a \\\n# it's {v}\nprintf %s {v}", .before = "a", .after = ""},
    {.command = "printf %s $(echo a)#{v}", .before = "a#", .after = ""},
    {.command = "printf %s `echo a`#{v}", .before = "a#", .after = ""},
    {.command = "f() { printf %s \"$1\"; }; ( (f {v}) )", .before = "", .after = ""},
}};

const std::vector<std::string>& hard_values() {
  static const std::vector<std::string> values{
      "1e-3",  "a b", "",    "it's", "\"",   "\\",   "\\\\", "$HOME",        "`id`",
      "$(id)", "a\\", "*",   "~",    "-n",   "'\"'", "a;b",  "a&b|c>d<e",    "#x",
      "!",     "{v}", "ä€",  "\\'",  "\\`",  "\\$",  "x\ty", "''",           "a=b",
      "%s",    "\\n", "[a]", "(b)",  "\\\"", "$",    "`",    "a'b\"c\\d$e`f"};
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

/// The outputs of many commands, asked of one sh: a quote that is lost in one spoils the next.
std::vector<std::string> outputs_of(const std::vector<std::string>& commands) {
  std::string script;
  for (const std::string& command : commands) script += command + "\nprintf '\\000'\n";
  std::vector<std::string> outputs;
  const std::string all = output_of(script);
  for (std::size_t at = 0; at < all.size();) {
    const auto end = std::min(all.find('\0', at), all.size());
    outputs.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return outputs;
}

TEST(ShellQuote, LetsTheCommandSeeJustTheValueWhereverItStands) {
  for (const Way& way : kWays) {
    std::vector<std::string> commands;
    std::vector<std::string> expected;
    for (const std::string& value : hard_values()) {
      commands.push_back(filled(way.command, value));
      expected.push_back(std::string(way.before) + value + std::string(way.after));
    }
    EXPECT_EQ(outputs_of(commands), expected) << way.command;
  }
}

TEST(ShellQuote, ReachesThroughHereDocumentsThatExpandNothing) {
  std::vector<std::string> commands;
  std::vector<std::string> expected;
  for (const std::string& value : hard_values()) {
    commands.push_back(filled("cat <<'END'\n{v}\nEND\nprintf %s {v}", value));
    expected.push_back(fmt::format("{0}\n{0}", value));
  }
  EXPECT_EQ(outputs_of(commands), expected);
}

TEST(ShellQuote, KnowsShiftsFromHereDocuments) {
  EXPECT_EQ(output_of(filled("echo $((1 << 2))\nprintf %s \"{v}\"", "it's")), "4\nit's");
}

TEST(ShellQuote, KeepsAValueApartFromTheRedirectionAfterIt) {
  EXPECT_EQ(output_of(filled("printf %s {v}>/dev/null; printf %s {v}>&1", "1")), "1");
  EXPECT_EQ(filled("x {v}<in {v} <in", "2"), "x '2'<in 2 <in");
}

TEST(ShellQuote, TakesTheFirstWordOfACommandForNothingElse) {
  EXPECT_EQ(filled("{v}; {v} | (x {v})", "done"), "'done'; 'done' | (x done)");
  EXPECT_EQ(filled("{v} true", "A=b"), "'A=b' true");
}

TEST(ShellQuote, SurvivesAnyText) {
  const bool holds = rc::check("a value comes out of sh as it went in", [] {
    const auto value = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("ab '\"\\$`(){}<>;&|*?~#!=\n-")));
    const auto way = *rc::gen::inRange<std::size_t>(0, kWays.size());
    const std::string command = filled(kWays.at(way).command, value);
    RC_ASSERT(output_of(command) ==
              std::string(kWays.at(way).before) + value + std::string(kWays.at(way).after));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace trainyard
