// Braces that are placeholders, and the text after they are filled.
#include "text/placeholder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::array<std::string_view, 3> kSweepNames{"lr", "hidden-size", "task_dir"};

std::string filled(std::string_view text, bool in_shell = false, const std::string& lr = "1e-3") {
  const Template::Read read = Template::read(text, {.names = kSweepNames, .in_shell = in_shell});
  EXPECT_THAT(read.problems, IsEmpty());
  return read.text.fill({lr, "64", "/run dir/a"});
}

std::vector<std::string> problems(std::string_view text, bool in_shell = false) {
  return Template::read(text, {.names = kSweepNames, .in_shell = in_shell}).problems;
}

TEST(Template, PutsValuesInTheirPlaces) {
  EXPECT_EQ(filled("--lr {lr} --n={hidden-size}"), "--lr 1e-3 --n=64");
  EXPECT_EQ(filled("{lr}{lr}"), "1e-31e-3");
  EXPECT_EQ(filled("no placeholder"), "no placeholder");
  EXPECT_EQ(filled(""), "");
}

TEST(Template, LeavesEveryOtherBraceAlone) {
  for (const std::string_view text :
       {"awk '{print $1}'", "{\"a\": {\"b\": 1}}", "find -exec ls {} +", "{0..9}", "{a,b}",
        "{ lr }", "{lr", "lr}", "{-x}", "{9}", "a}}b"}) {
    EXPECT_EQ(filled(text), text);
  }
}

TEST(Template, LeavesShellVariablesAlone) {
  EXPECT_EQ(filled("${lr} ${HOME} $lr ${lr:-{lr}}"), "${lr} ${HOME} $lr ${lr:-1e-3}");
}

TEST(Template, TakesTwoBracesForOne) {
  EXPECT_EQ(filled("{{lr}"), "{lr}");
  EXPECT_EQ(filled("{{lr}}"), "{lr}");
  EXPECT_EQ(filled("{{unknown}}"), "{unknown}");
  EXPECT_EQ(filled("{{print}} and {lr}"), "{print} and 1e-3");
  EXPECT_EQ(filled("{{"), "{");
  EXPECT_EQ(filled("{{{lr}}"), "{1e-3}");
  EXPECT_EQ(filled("{{{{"), "{{");
  EXPECT_EQ(filled("{{ lr }}"), "{ lr }}");
}

TEST(Template, SaysWhichPlaceholderWasMeant) {
  EXPECT_THAT(problems("{hiden-size} {x}"),
              ElementsAre("unknown placeholder '{hiden-size}' (did you mean '{hidden-size}'?)",
                          "unknown placeholder '{x}'; for literal text, write '{{x}}'"));
}

TEST(Template, SaysWhichKeysTheMatrixHas) {
  constexpr std::array<std::string_view, 2> kKeys{"lr", "hidden-size"};
  const auto problems_with = [](std::string_view text, std::span<const std::string_view> keys) {
    return Template::read(text, {.names = kSweepNames, .matrix = keys}).problems;
  };
  EXPECT_THAT(problems_with("{seed}", kKeys),
              ElementsAre("unknown placeholder '{seed}'; add 'seed' to the matrix (keys: lr, "
                          "hidden-size), or write '{{seed}}' for literal text"));
  EXPECT_THAT(problems_with("{seed}", {}),
              ElementsAre("unknown placeholder '{seed}'; add 'seed' to the matrix, or write "
                          "'{{seed}}' for literal text"));
  EXPECT_THAT(problems_with("{prev.x.dir}", kKeys),
              ElementsAre("unknown placeholder '{prev.x.dir}'; for literal text, write "
                          "'{{prev.x.dir}}'"))
      << "a key has no dot";
}

TEST(Template, WritesValuesOutWithQuotesWhereTheShellNeedsThem) {
  EXPECT_EQ(filled("train --lr {lr}", true), "train --lr 1e-3");
  EXPECT_EQ(filled("train --lr {lr} > {task_dir}/out", true, "a b"),
            "train --lr 'a b' > '/run dir/a'/out");
  EXPECT_EQ(filled("train \"run {lr}\" '{task_dir}'", true, "a\"b"),
            "train \"run a\\\"b\" '/run dir/a'");
  EXPECT_EQ(filled("train --lr {lr}", false, "a b"), "train --lr a b");
}

TEST(Template, RefusesAPlaceholderAfterABackslash) {
  EXPECT_THAT(
      problems("echo \\{lr}", true),
      ElementsAre("'{lr}' cannot be used right after a backslash, which would quote only the first "
                  "character of its value; remove the backslash: the value is quoted"));
  EXPECT_THAT(problems("echo '\\{lr}' \\\\{lr}", true), IsEmpty());
  EXPECT_THAT(problems("echo \\{lr}", false), IsEmpty());
}

TEST(Template, KnowsWhichValuesItUsesAndMisses) {
  const Template text = Template::read("{hidden-size} {lr}", {.names = kSweepNames}).text;
  EXPECT_TRUE(text.uses_any());
  EXPECT_TRUE(text.uses(0));
  EXPECT_FALSE(text.uses(2));
  EXPECT_EQ(text.missing({"1", "2", "3"}), std::nullopt);
  EXPECT_EQ(text.missing({"1", std::nullopt, "3"}), 1U);
  EXPECT_EQ(text.missing({std::nullopt, std::nullopt, "3"}), 1U);
}

TEST(Identifier, IsWhatAPlaceholderMayBe) {
  for (const std::string_view good : {"a", "_", "lr", "hidden-size", "x1", "A_b"}) {
    EXPECT_TRUE(is_identifier(good)) << good;
  }
  for (const std::string_view bad : {"", "1", "-a", "a b", "a.b", "ä", "a/b"}) {
    EXPECT_FALSE(is_identifier(bad)) << bad;
  }
}

}  // namespace
}  // namespace trainyard::text
