// YAML with places, as typed, and with its bounds.
#include "text/yaml_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/text_file.h"

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> mistakes_in(std::string_view text) {
  const YamlDocument document(text, "f.yaml");
  std::vector<std::string> lines;
  for (const Mistake& mistake : document.mistakes()) lines.push_back(to_text(mistake));
  return lines;
}

/// The tree in one line: [a, {k: v}], "quoted", null as (typed).
std::string shape(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlKind::Null:
      return "(" + node.text + ")";
    case YamlKind::Text:
      return node.quoted ? '"' + node.text + '"' : node.text;
    case YamlKind::List:
      for (const YamlNode* item : node.items) text += (text.empty() ? "" : ", ") + shape(*item);
      return "[" + text + "]";
    case YamlKind::Mapping:
      for (std::size_t i = 0; i < node.items.size(); i += 2) {
        text +=
            (text.empty() ? "" : ", ") + shape(*node.items[i]) + ": " + shape(*node.items[i + 1]);
      }
      return "{" + text + "}";
  }
  return text;
}

std::string shape_of(std::string_view text) {
  const YamlDocument document(text, "f.yaml");
  EXPECT_THAT(document.mistakes(), IsEmpty());
  return document.root() == nullptr ? "nothing" : shape(*document.root());
}

TEST(YamlDocument, KeepsValuesAsTyped) {
  EXPECT_EQ(shape_of("lr: [1e-3, 0.10, 007, 1_000, yes, 0x1F, '5', \"6\", 1:30:00]"),
            "{lr: [1e-3, 0.10, 007, 1_000, yes, 0x1F, \"5\", \"6\", 1:30:00]}");
  EXPECT_EQ(shape_of("- null\n- ~\n- \n- Null\n- NULL"), "[(null), (~), (), (Null), (NULL)]");
  EXPECT_EQ(shape_of("a: |\n  one\n  two\n"), "{a: \"one\ntwo\n\"}");
  EXPECT_EQ(shape_of(""), "nothing");
  EXPECT_EQ(shape_of("# only a comment\n"), "nothing");
}

TEST(YamlDocument, KnowsWhereThingsAre) {
  const YamlDocument document("name: x\ngroups:\n  - max-paralel: 2\n", "f.yaml");
  const YamlNode& group = *document.root()->find("groups")->items[0];
  const YamlNode& key = *group.items[0];
  EXPECT_EQ(to_text(document.mistake(key, "unknown")), "f.yaml:3:5: unknown");
  EXPECT_EQ(to_text(document.mistake(*group.items[1], "2")), "f.yaml:3:18: 2");
}

TEST(YamlDocument, CountsColumnsInCharacters) {
  const YamlDocument document("größe: [ä, b]\n", "f.yaml");
  const YamlNode& list = *document.root()->items[1];
  EXPECT_EQ(to_text(document.mistake(*list.items[1], "b")), "f.yaml:1:12: b");
}

TEST(YamlDocument, FindsPlacesAfterWindowsLineEnds) {
  const YamlDocument document("a: 1\r\nb:\r\n  c: 2\r\n", "f.yaml");
  ASSERT_NE(document.root(), nullptr);
  const YamlNode& inner = *document.root()->find("b");
  EXPECT_EQ(to_text(document.mistake(*inner.items[0], "c")), "f.yaml:3:3: c");
  EXPECT_EQ(document.root()->find("a")->text, "1");
}

TEST(YamlDocument, FollowsAliasesAndMergeKeys) {
  EXPECT_EQ(shape_of("a: &x [1, 2]\nb: *x"), "{a: [1, 2], b: [1, 2]}");
  EXPECT_EQ(shape_of("- &d {m: 1, n: 2}\n- {<<: *d, n: 3}\n"), "[{m: 1, n: 2}, {n: 3, m: 1}]");
  EXPECT_EQ(shape_of("- &d {m: 1}\n- &e {m: 2, o: 3}\n- {<<: [*d, *e]}\n"),
            "[{m: 1}, {m: 2, o: 3}, {m: 1, o: 3}]");
  EXPECT_EQ(shape_of("{\"<<\": 5}"), "{\"<<\": 5}");
  EXPECT_THAT(mistakes_in("a: {<<: 5}"),
              ElementsAre("f.yaml:1:5: '<<' must be a mapping, as in '<<: *defaults'"));
}

TEST(YamlDocument, RefusesKeysThatAreThereTwice) {
  EXPECT_THAT(mistakes_in("a: 1\nb: 2\na: 3\nb: 4\n"),
              ElementsAre("f.yaml:3:1: duplicate key 'a'; the first is in line 1",
                          "f.yaml:4:1: duplicate key 'b'; the first is in line 2"));
}

TEST(YamlDocument, NamesInMistakesWhatStandsForALine) {
  const YamlDocument document("a: 1\nb: 2\na: 3\n", "f.yaml", {"--a", "--b", "--again"});
  ASSERT_EQ(document.mistakes().size(), 1U);
  EXPECT_EQ(to_text(document.mistakes().front()),
            "--again: duplicate key 'a'; the first is in line 1");
  EXPECT_EQ(to_text(document.mistake(Place{}, "has no 'groups'")), "--a: has no 'groups'");
  EXPECT_EQ(to_text(document.mistake(Place{.line = 9, .column = 1}, "x")), "--again: x");
}

TEST(YamlDocument, LeavesOutOfMistakesTheGroupAndTheTaskThatNobodyWrote) {
  const YamlDocument document("a: 1\nb: 2\n", "f.yaml", {"the command", "--memory"});
  const auto mistake = [&document](int line, const std::string& message) {
    return to_text(document.mistake(Place{.line = line, .column = 1}, message));
  };
  EXPECT_EQ(mistake(1, "group 'fit': task 1: command: unknown"), "the command: unknown");
  EXPECT_EQ(mistake(2, "group 'fit': memory: '6' has no unit"), "--memory: '6' has no unit");
  EXPECT_EQ(mistake(2, "group 'fit': memory-limit: x"), "--memory: memory-limit: x");
  EXPECT_EQ(mistake(2, "task 'fit' can never run"), "--memory: task 'fit' can never run");
}

TEST(YamlDocument, RefusesKeysThatAreNoWords) {
  EXPECT_THAT(mistakes_in("{[1]: 2, x: {~: 1}}"),
              ElementsAre("f.yaml:1:14: a key must be a word", "f.yaml:1:2: a key must be a word"));
  EXPECT_THAT(mistakes_in("a: [{b: echo, {lr}}]"),
              ElementsAre("f.yaml:1:15: a key must be a word; text with '{' needs quotes, as in "
                          "\"{lr}\""));
}

TEST(YamlDocument, FindsTheKeyWithoutAColonAboveTheLineThatCannotBeRead) {
  const auto wrong = [](const std::string& where, const std::string& key) {
    return ElementsAre("f.yaml:" + where + ": not valid YAML: ':' is missing after '" + key + "'");
  };
  EXPECT_THAT(mistakes_in("groups:\n- name: a\n  tasks\n  - command: x\n"), wrong("3:3", "tasks"));
  EXPECT_THAT(mistakes_in("groups:\n- name: a\n  tasks  # x: y\n\n  # z: y\n  - command: x\n"),
              wrong("3:3", "tasks"));
  EXPECT_THAT(mistakes_in("groups:\n- name: a\n  tasks\n  - echo x\n  - command: x\n"),
              wrong("3:3", "tasks"));
  EXPECT_THAT(mistakes_in("name: a\ngroups\nmax-retries: 1\n"), wrong("2:1", "groups"));
  EXPECT_THAT(mistakes_in("config\n  a: {}\n"), wrong("1:1", "config"));
  EXPECT_THAT(mistakes_in("a: 1\nb:\n  config\n    c: {}\n"), wrong("3:3", "config"));
  EXPECT_THAT(mistakes_in("a: echo\n  x\n  b: 1\n"),
              ElementsAre("f.yaml:3:4: not valid YAML: wrong indentation, or no space after ':' "
                          "here or in the line above"))
      << "the rest of a value is no key";
}

TEST(YamlDocument, SaysWhereTheTextIsNoYaml) {
  const auto wrong = [](const std::string& where) { return ElementsAre("f.yaml:" + where); };
  EXPECT_THAT(mistakes_in("a: [1, 2\nb: 3\n"),
              wrong("2:2: not valid YAML: the '[' at 1:4 is not closed"));
  EXPECT_THAT(mistakes_in("a: {b: [1, 2}\n"),
              wrong("1:13: not valid YAML: the '[' at 1:8 is not closed"));
  EXPECT_THAT(mistakes_in("ä: {b: [1, 2}\n"),
              wrong("1:13: not valid YAML: the '[' at 1:8 is not closed"))
      << "in characters";
  EXPECT_THAT(mistakes_in("a: [{b: 1, c: 2]\n"),
              wrong("1:16: not valid YAML: ']' or '}' does not close anything here"))
      << "the '[' is not to blame";
  EXPECT_THAT(mistakes_in("a: {b: [1, 2] c: 'x]'}\n"),
              wrong("1:15: not valid YAML: ',' is missing before this, in the '{' at 1:4"));
  EXPECT_THAT(mistakes_in("a: [{b: 1} {b: 2}]\n"),
              wrong("1:12: not valid YAML: ',' is missing before this, in the '[' at 1:4"));
  EXPECT_THAT(mistakes_in("a: {b: echo {lr}}\n"),
              wrong("1:13: not valid YAML: text with '{' needs quotes, as in \"echo {lr}\", in the "
                    "'{' at 1:4"));
  EXPECT_THAT(mistakes_in("a: {b=[1, 2], c=3}\n"),
              wrong("1:7: not valid YAML: write ': ' instead of '=' in the '{' at 1:4"));
  EXPECT_THAT(mistakes_in("a: {b:[1, 2], c:3}\n"),
              wrong("1:7: not valid YAML: a space is missing after ':' in the '{' at 1:4"));
  EXPECT_THAT(mistakes_in("a: {b: 1\n"),
              wrong("2:1: not valid YAML: the '{' at 1:4 is not closed"));
  EXPECT_THAT(mistakes_in("a: ]\n"),
              wrong("1:4: not valid YAML: ']' or '}' does not close anything here"));
  EXPECT_THAT(mistakes_in("- a:1\n  b: 2\n"),
              wrong("2:4: not valid YAML: wrong indentation, or no space after ':' here or in the "
                    "line above"));
  EXPECT_THAT(mistakes_in("- a: echo b: c\n"),
              wrong("1:12: not valid YAML: text with ': ' needs quotes, as in 'echo b: c'"));
  EXPECT_THAT(mistakes_in("- {a: 1, b: echo c: d}  # so: it is\n"),
              wrong("1:19: not valid YAML: text with ': ' needs quotes, as in 'echo c: d', or ',' "
                    "is missing before a key"));
  EXPECT_THAT(mistakes_in("a: it's: b\n"),
              wrong("1:8: not valid YAML: text with ': ' needs quotes"));
  EXPECT_THAT(mistakes_in("a:\n  - b: c\n   d: 2\n"),
              wrong("3:4: not valid YAML: wrong indentation in a list"));
  EXPECT_THAT(mistakes_in("a: \"x\" y\n"),
              wrong("1:8: not valid YAML: wrong indentation, or text after a value"));
  EXPECT_THAT(mistakes_in("a: @x\n"), wrong("1:4: not valid YAML: a value that starts with a "
                                            "special character needs quotes"));
  EXPECT_THAT(
      mistakes_in("a:\n\t- 1\n"),
      ElementsAre("f.yaml:2:2: not valid YAML: a '- ' cannot be here (indent with spaces, not "
                  "with tabs)"));
  EXPECT_THAT(mistakes_in("a: 1\nb: 'x\nc: 2\n"),
              wrong("2:4: not valid YAML: this quote is not closed"));
  EXPECT_THAT(mistakes_in("a: [1, \"it's \\\"\nb: 2\n"),
              wrong("1:8: not valid YAML: this quote is not closed"));
  EXPECT_THAT(
      mistakes_in("a: 'x\nb: 'y'\n"),
      wrong("2:5: not valid YAML: wrong indentation, or text after a value (is the quote in "
            "line 1 closed?)"));
  EXPECT_THAT(mistakes_in("a: 1\nb: 'x"),
              ElementsAre(HasSubstr(
                  "not valid YAML: a quote is not closed (it opens in line 2 or below)")));
  EXPECT_THAT(mistakes_in("a: 'x\n---\nb: 1\n"),
              wrong("2:1: not valid YAML: a quote is not closed before this line (it opens in line "
                    "1 or below)"));
  EXPECT_THAT(mistakes_in("a: 'it''s\n  x'\nb: \"\\\"\"\nc: \"\"\n"), IsEmpty());
  for (const std::string_view text : {"a: *nowhere", "a: *.py", "a: * x"}) {
    EXPECT_THAT(mistakes_in(text),
                ElementsAre(HasSubstr("not valid YAML: '*' refers to a value marked with '&'; put "
                                      "other text that starts with '*' in quotes")))
        << text;
  }
  EXPECT_THAT(mistakes_in("a: & x"),
              ElementsAre(HasSubstr("not valid YAML: '&' marks a value for use with '*'; put other "
                                    "text that starts with '&' in quotes")));
  EXPECT_THAT(
      mistakes_in("a: 1\n---\nb: 2\n"),
      ElementsAre("f.yaml:2:1: a second document ('---') starts here; a file must contain one"));
  for (const std::string_view text : {"[train]\nlr = 0.1\n", "'./a'\n'./b'\n"}) {
    EXPECT_THAT(mistakes_in(text),
                wrong("2:1: not valid YAML: text after the end of the first value; write keys with "
                      "values, as in 'name: train'"));
  }
  EXPECT_THAT(
      mistakes_in("a: !include other.yaml"),
      ElementsAre("f.yaml:1:4: unknown tag '!include'; put text that starts with '!' in quotes"));
}

TEST(YamlDocument, RefusesTextOfWhichOnlyAPartWouldBeLeftForWantOfQuotes) {
  EXPECT_THAT(
      mistakes_in("a: &x y z\nb: [c, &d]\n"),
      ElementsAre("f.yaml:1:4: no '*x' uses the value that '&x' marks; put text that starts "
                  "with '&' in quotes, as in '&x y z'",
                  "f.yaml:2:8: no '*d' uses the value that '&d' marks; put text that starts "
                  "with '&' in quotes, as in '&d'"));
  EXPECT_THAT(
      mistakes_in("a: &x it's\n"),
      ElementsAre("f.yaml:1:4: no '*x' uses the value that '&x' marks; put text that starts "
                  "with '&' in quotes"));
  EXPECT_THAT(mistakes_in("a: ! grep -q x log\n"),
              ElementsAre("f.yaml:1:4: unknown tag '!'; put text that starts with '!' in quotes"));
  EXPECT_EQ(shape_of("a: &x y\nb: [*x, *x]\nc: &q '&x y'\nd: &m {e: 1}\nf: '! g'\n"),
            "{a: y, b: [y, y], c: \"&x y\", d: {e: 1}, f: \"! g\"}");
}

TEST(YamlDocument, RefusesWhatIsNoText) {
  EXPECT_THAT(mistakes_in("a: 1\nb: \xFF\n"), ElementsAre("f.yaml:2:4: is not UTF-8 text"));
  EXPECT_THAT(mistakes_in(std::string_view("a: \0", 4)), ElementsAre("f.yaml: is not a text file"));
  EXPECT_THAT(mistakes_in("a: \x04"),
              ElementsAre("f.yaml:1:4: the control character 0x04 is not allowed"));
}

TEST(YamlDocument, RefusesAnAliasBomb) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  EXPECT_THAT(mistakes_in(text),
              ElementsAre(HasSubstr(
                  "the file is too large: more than 2000000 parts with its aliases expanded")));
}

TEST(YamlDocument, RefusesAnAliasToItself) {
  EXPECT_THAT(mistakes_in("a: &a [1, *a]"),
              ElementsAre("f.yaml:1:11: an alias cannot refer to its own parent"));
}

TEST(YamlDocument, RefusesDeepNests) {
  const auto nest = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(mistakes_in(nest(64)), IsEmpty());
  EXPECT_THAT(mistakes_in(nest(65)), ElementsAre(HasSubstr("nested more than 64 deep")));
  EXPECT_THAT(mistakes_in(nest(100'000)), ElementsAre(HasSubstr("nested more than 64 deep")));
  EXPECT_THAT(mistakes_in("a: &a " + nest(40) + "\nb: " + std::string(30, '[') + "*a" +
                          std::string(30, ']')),
              ElementsAre(HasSubstr("nested more than 64 deep")));
}

TEST(YamlDocument, FindsEachOfManyPlacesOnALongLineAtTheSameCost) {
  constexpr int kLetters = 2'000'000;
  std::string text = "a: [";
  for (int i = 0; i < kLetters; ++i) text += "\u00e4";
  const YamlDocument document(text + "]", "f.yaml");
  constexpr int kMistakes = 200'000;
  for (int i = 0; i < kMistakes; ++i) {
    const int letters = kLetters - i;
    const Mistake found = document.mistake(Place{.line = 1, .column = 5 + 2 * letters}, "x");
    ASSERT_EQ(found.column, 5 + letters);
  }
}

TEST(YamlDocument, ReadsAFileThatIsJsonAsJson) {
  EXPECT_EQ(shape_of(R"({"a\ud83d\ude82\/\n": [1e-3, true, null, "null", {}, []],)"
                     "\n\t\"b\":\"\\\\ud83d\"}\n"),
            "{\"a\U0001F682/\n\": [1e-3, true, (null), \"null\", {}, []], \"b\": \"\\ud83d\"}");
  EXPECT_THAT(mistakes_in("{\"a\": \"\\ud83d\\ude82\",\n \"a\": 2}"),
              ElementsAre("f.yaml:2:2: duplicate key 'a'; the first is in line 1"));
  EXPECT_THAT(mistakes_in("{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}"),
              ElementsAre(HasSubstr("nested more than 64 deep")));
  const YamlDocument document(R"({"\ud83d\ude82ä": {"b": 2}})", "f.yaml");
  EXPECT_EQ(to_text(document.mistake(*document.root()->items[1], "x")), "f.yaml:1:19: x");
}

TEST(YamlDocument, ReadsAFileInBracesThatIsNotJsonAsYaml) {
  EXPECT_EQ(shape_of("{a: 1, \"b\": [x]} # text\n"), "{a: 1, \"b\": [x]}");
  EXPECT_EQ(shape_of("{\"a\": 1, }"), "{\"a\": 1}");
  EXPECT_THAT(mistakes_in("{a: [1}"), ElementsAre(HasSubstr("f.yaml:1:7: not valid YAML")));
}

TEST(YamlDocument, SaysWhereTheTextIsNoJsonIfYamlCannotHaveItsCharacters) {
  EXPECT_THAT(mistakes_in("{\"a\": \"\\ud83d\\ude82\",\n \"b\": 1,}"),
              ElementsAre("f.yaml:2:9: not valid JSON: unexpected '}'; expected string literal"));
  EXPECT_THAT(mistakes_in("{\"a\": \"\\ud83d\\ude82\""),
              ElementsAre("f.yaml:1:21: not valid JSON: unexpected end of input; expected '}'"));
  EXPECT_THAT(mistakes_in("{\"a\": \"\\ud83d\"}"),
              ElementsAre("f.yaml:1:14: not valid JSON: invalid string: surrogate U+D800..U+DBFF "
                          "must be followed by U+DC00..U+DFFF"));
}

TEST(YamlDocument, RefusesMoreThanSixteenMebibytes) {
  EXPECT_THAT(mistakes_in(std::string(kTextFileMax + 1, ' ')),
              ElementsAre("f.yaml: is larger than 16 MiB"));
  EXPECT_THAT(mistakes_in(std::string(kTextFileMax, ' ')), IsEmpty());
}

}  // namespace
}  // namespace trainyard::text
