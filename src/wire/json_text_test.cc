#include "wire/json_text.h"

#include <cstdint>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "wire/result_text.h"

namespace trainyard::wire {
namespace {

std::string compact(std::string_view text) {
  const auto result = compact_json(text);
  if (!result) return "fault at " + to_text(result.error());
  return result->mended.empty() ? result->text : result->text + "  mended: " + result->mended;
}

TEST(JsonText, LeavesOutSpacesAndKeepsEverythingElse) {
  EXPECT_EQ(
      compact("  {\"a\" : [ 1 ,\t2.50, -0, 1e-3 ] ,\r\n \"b\":{ } , \"c\":[ ],\"d\":\"x y\"} \n"),
      R"({"a":[1,2.50,-0,1e-3],"b":{},"c":[],"d":"x y"})");
  EXPECT_EQ(compact("[true, false, null]"), "[true,false,null]");
  EXPECT_EQ(compact("\xEF\xBB\xBF{}"), "{}");
}

TEST(JsonText, KeepsNumbersAsTheyWereWritten) {
  EXPECT_EQ(compact("[123456789012345678901234567890, 0.10, 1E+5, 1e-999]"),
            "[123456789012345678901234567890,0.10,1E+5,1e-999]");
}

TEST(JsonText, TurnsWhatIsNoFiniteNumberIntoNullAndSaysWhere) {
  EXPECT_EQ(compact(R"({"val":{"acc":0.5,"loss":NaN}})"),
            R"({"val":{"acc":0.5,"loss":null}}  mended: 'val.loss' was NaN: kept as null)");
  EXPECT_EQ(
      compact(R"({"h":[1,[2,-Infinity]],"b":Infinity,"c":NaN})"),
      R"({"h":[1,[2,null]],"b":null,"c":null}  mended: 'h[1][1]' was -Infinity, 'b' was Infinity, )"
      "'c' was NaN: kept as null");
  EXPECT_EQ(compact("[NaN,NaN,NaN,NaN,NaN,NaN,NaN]"),
            "[null,null,null,null,null,null,null]  mended: '[0]' was NaN, '[1]' was NaN, '[2]' was "
            "NaN, '[3]' was NaN, '[4]' was NaN: kept as null (and 2 more)");
  EXPECT_EQ(compact(R"({"a":{"b":1},"c":[{"d":2},{"e":NaN}]})"),
            R"({"a":{"b":1},"c":[{"d":2},{"e":null}]}  mended: 'c[1].e' was NaN: kept as null)");
  EXPECT_EQ(compact(R"({"a":"NaN"})"), R"({"a":"NaN"})");
}

TEST(JsonText, TurnsNumbersThatOverflowIntoNull) {
  EXPECT_EQ(compact(R"({"a":1e999})"), R"({"a":null}  mended: 'a' was 1e999: kept as null)");
  EXPECT_EQ(compact(R"({"a":-0.0001e400})"),
            R"({"a":null}  mended: 'a' was -0.0001e400: kept as null)");
  EXPECT_EQ(compact("[1" + std::string(400, '0') + "]"),
            "[null]  mended: '[0]' was a number too large to keep: kept as null");
  EXPECT_EQ(compact("[1e99999999999999999999]"),
            "[null]  mended: '[0]' was a number too large to keep: kept as null");
  const std::string tiny =
      "[0." + std::string(400, '0') + "1,1e-99999999999999999999,0e99999,0e-5]";
  EXPECT_EQ(compact(tiny), tiny);
  const std::string in_range =
      "[0." + std::string(400, '0') + "1e500,1" + std::string(400, '0') + "e-300]";
  EXPECT_EQ(compact(in_range), in_range);
}

TEST(JsonText, CutsALongPathInAWarning) {
  const std::string key(200, 'k');
  EXPECT_EQ(compact("{\"" + key + "\":NaN}"),
            fmt::format("{{\"{}\":null}}  mended: '{}...' was NaN: kept as null", key,
                        key.substr(0, 80)));
}

TEST(JsonText, ReplacesBadUtf8) {
  EXPECT_EQ(compact("{\"a\":\"x\xFFy\xC3(\"}"),
            "{\"a\":\"x\uFFFDy\uFFFD(\"}  mended: 1:8: bad UTF-8 was replaced (and 1 more)");
  EXPECT_EQ(compact("{\n\"\xFF\":1}"), "{\"\uFFFD\":1}  mended: 2:2: bad UTF-8 was replaced");
  EXPECT_EQ(
      compact(R"(["\ud800","\udc00x","\ud800\u0041"])"),
      "[\"\uFFFD\",\"\uFFFDx\",\"\uFFFDA\"]  mended: 1:3: bad UTF-8 was replaced (and 2 more)");
}

TEST(JsonText, WritesEachCharacterInOneWay) {
  EXPECT_EQ(compact(R"(["\u0041\/\u00e4\ud83d\ude00","\u000a\u0022\u005c\u0001\b\u0000"])"),
            R"(["A/ä😀","\n\"\\\u0001\b\u0000"])");
}

TEST(JsonText, LetsTheLastOfEqualKeysWin) {
  EXPECT_EQ(compact(R"({"a":1,"a":2})"), R"({"a":2})");
  EXPECT_EQ(compact(R"({"a":1,"b":{"x":1,"y":2,"x":3},"a":2,"c":4,"\u0061":[5]})"),
            R"({"b":{"y":2,"x":3},"c":4,"a":[5]})");
  EXPECT_EQ(compact(R"({"a":{"x":1,"x":2},"a":{"x":3,"x":4}})"), R"({"a":{"x":4}})");
  EXPECT_EQ(compact(R"([{"a":1},{"a":2}])"), R"([{"a":1},{"a":2}])");
}

TEST(JsonText, TellsWhereItStopsBeingJson) {
  EXPECT_EQ(compact(""), "fault at 1:1: expected a JSON value, found the end of the text");
  EXPECT_EQ(compact("{"),
            "fault at 1:2: expected a key in double quotes, found the end of the text");
  EXPECT_EQ(compact("{\"a\": 1,\n \"ä\" 2}"),
            "fault at 2:6: expected ':' after the key, found '2'");
  EXPECT_EQ(compact("{\"a\":1 \"b\":2}"), "fault at 1:8: expected ',' or '}', found '\"'");
  EXPECT_EQ(compact("[1;2]"), "fault at 1:3: expected ',' or ']', found ';'");
  EXPECT_EQ(compact("{\"a\":1,}"), "fault at 1:8: expected a key in double quotes, found '}'");
  EXPECT_EQ(compact("[1,]"), "fault at 1:4: expected a JSON value, found ']'");
  EXPECT_EQ(compact("{'a':1}"), "fault at 1:2: expected a key in double quotes, found '''");
  EXPECT_EQ(compact("{\"a\": None}"), "fault at 1:7: expected a JSON value, found 'None'");
  EXPECT_EQ(compact("[nan]"), "fault at 1:2: expected a JSON value, found 'nan'");
  EXPECT_EQ(compact("[\xFF]"), "fault at 1:2: expected a JSON value, found the byte 0xff");
  EXPECT_EQ(compact(std::string_view("[\0]", 3)),
            "fault at 1:2: expected a JSON value, found the byte 0x00");
  EXPECT_EQ(compact("[" + std::string(40, 'x') + "]"),
            "fault at 1:2: expected a JSON value, found 'xxxxxxxxxxxxxxxx...'");
  EXPECT_EQ(compact("{} {}"), "fault at 1:4: expected the end after the JSON value, found '{'");
  EXPECT_EQ(compact("{}\n{}"), "fault at 2:1: expected the end after the JSON value, found '{'");
}

TEST(JsonText, TellsWhatIsWrongWithANumber) {
  EXPECT_EQ(compact("[01]"), "fault at 1:4: a number must not begin with 0");
  EXPECT_EQ(compact("[-]"), "fault at 1:3: expected a digit after '-', found ']'");
  EXPECT_EQ(compact("[1.]"), "fault at 1:4: expected a digit after '.', found ']'");
  EXPECT_EQ(compact("[1e]"), "fault at 1:4: expected an exponent, found ']'");
  EXPECT_EQ(compact("[+1]"), "fault at 1:2: expected a JSON value, found '+'");
  EXPECT_EQ(compact("[.5]"), "fault at 1:2: expected a JSON value, found '.'");
  EXPECT_EQ(compact("[0x10]"), "fault at 1:3: expected ',' or ']', found 'x'");
  EXPECT_EQ(compact("[-Infinit]"), "fault at 1:3: expected a digit after '-', found 'Infinit'");
}

TEST(JsonText, TellsWhatIsWrongWithAString) {
  EXPECT_EQ(compact("[\"a"), "fault at 1:4: the text ends in the middle of a string");
  EXPECT_EQ(compact("[\"a\n\"]"),
            "fault at 1:4: a control character (0x0a) in a string must be escaped");
  EXPECT_EQ(compact(R"(["\x"])"), "fault at 1:3: unknown escape in a string");
  EXPECT_EQ(compact("[\"\\"), "fault at 1:3: unknown escape in a string");
  EXPECT_EQ(compact(R"(["\u12G4"])"),
            "fault at 1:3: '\\u' in a string must be followed by four hexadecimal digits");
  EXPECT_EQ(compact(R"(["\u+123"])"),
            "fault at 1:3: '\\u' in a string must be followed by four hexadecimal digits");
}

TEST(JsonText, StopsAtItsDepth) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(compact(nested(kJsonDepthMax)), nested(kJsonDepthMax));
  EXPECT_EQ(compact(nested(kJsonDepthMax + 1)), "fault at 1:65: nested deeper than 64");
  EXPECT_EQ(compact(std::string(1'000'000, '[')), "fault at 1:65: nested deeper than 64");
}

TEST(JsonText, NamesWhatIsTooDeep) {
  const JsonFault deep = compact_json(R"({"val":[0,)" + std::string(100, '[')).error();
  EXPECT_EQ(deep.path.substr(0, 12), "val[1][0][0]");
  EXPECT_EQ(deep.what, "nested deeper than 64");
  EXPECT_EQ(compact_json(R"({"val":x)").error().path, "");
}

TEST(JsonText, TakesManyEqualKeysInReasonableTime) {
  std::string text = "{";
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 50'000; ++i) text += fmt::format("\"{}\":{},", i, round);
  }
  text.back() = '}';
  const auto result = compact_json(text);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "{" + text.substr(text.find("\"0\":1")));
}

/// A made-up value, as text with spaces here and there.
std::string made_up_json(std::mt19937_64& random, int depth) {
  const auto below = [&random](std::uint64_t end) { return random() % end; };
  const std::string space(below(3), ' ');
  const auto text = [&] { return fmt::format(R"("k{}\u00e4")", below(20)); };
  switch (below(depth > 4 ? 4 : 6)) {
    case 0:
      return space + fmt::format("{}", static_cast<std::int64_t>(random()));
    case 1:
      return space + fmt::format("-{}.{}e{}", below(100), below(1000), below(200));
    case 2:
      return text() + space;
    case 3:
      return below(2) == 0 ? "true" : "null";
    case 4: {
      std::string list = "[" + space;
      for (std::uint64_t i = below(5); i > 0; --i)
        list += made_up_json(random, depth + 1) + (i > 1 ? "," : "");
      return list + "]" + space;
    }
    default: {
      std::string object = "{" + space;
      for (std::uint64_t i = below(5); i > 0; --i) {
        object += text() + space + ":" + made_up_json(random, depth + 1) + (i > 1 ? "," : "");
      }
      return object + "}";
    }
  }
}

TEST(JsonText, MeansTheSameAsWhatItWasMadeFrom) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const std::string text = made_up_json(random, 0);
    const auto result = compact_json(text);
    ASSERT_TRUE(result) << text;
    EXPECT_EQ(result->mended, "");
    EXPECT_EQ(nlohmann::json::parse(result->text), nlohmann::json::parse(text)) << text;
    EXPECT_EQ(compact_json(result->text), *result);
  }
}

TEST(JsonText, TakesNoTextThatAnotherParserWouldNot) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::string text = made_up_json(random, 0);
    const std::string_view junk = "{}[]\",:\\\xFF\x01eN-0 ";
    for (int i = 0; i < 2; ++i) text[random() % text.size()] = junk[random() % junk.size()];
    const auto result = compact_json(text);
    const bool valid = nlohmann::json::accept(text);
    EXPECT_TRUE(result || !valid) << text;
    if (!result) continue;
    EXPECT_TRUE(valid || !result->mended.empty()) << text;
    EXPECT_TRUE(nlohmann::json::accept(result->text)) << text;
  }
}

}  // namespace
}  // namespace trainyard::wire
