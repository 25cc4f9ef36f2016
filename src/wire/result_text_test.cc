#include "wire/result_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {

namespace {

::testing::Matcher<ParsedResult> kept(const std::string& object, const std::string& warning = "") {
  return ::testing::AllOf(::testing::Field("object", &ParsedResult::object, object),
                          ::testing::Field("warning", &ParsedResult::warning, warning));
}

::testing::Matcher<ParsedResult> refused(const std::string& why) {
  return kept("", why + ": result discarded");
}

/// An object of so many bytes.
std::string object_of(std::size_t bytes) {
  return R"({"a":")" + std::string(bytes - 8, 'x') + R"("})";
}

TEST(ResultText, KeepsAnObjectCompactly) {
  EXPECT_THAT(parse_result("{\n  \"accuracy\": 0.9812,\n  \"epochs\": 1e1\n}\n"),
              kept(R"({"accuracy":0.9812,"epochs":1e1})"));
  EXPECT_THAT(parse_result("{}"), kept("{}"));
}

TEST(ResultText, KeepsANumberThatIsNotFiniteAsNull) {
  EXPECT_THAT(parse_result(R"({"val": {"loss": NaN}, "best": -Infinity})"),
              kept(R"({"val":{"loss":null},"best":null})",
                   "'val.loss' was NaN, 'best' was -Infinity: kept as null"));
}

TEST(ResultText, TellsAllThatItMended) {
  EXPECT_THAT(parse_result("{\"loss\": Infinity, \"note\": \"caf\xE9\"}"),
              kept("{\"loss\":null,\"note\":\"caf\uFFFD\"}",
                   "'loss' was Infinity: kept as null; 1:32: bad UTF-8 was replaced"));
}

TEST(ResultText, KeepsNothingOfAnEmptyFile) {
  EXPECT_THAT(parse_result(""), refused("is empty"));
  EXPECT_THAT(parse_result(" \n\t"), refused("is empty"));
}

TEST(ResultText, KeepsNothingThatIsNoObject) {
  EXPECT_THAT(parse_result("[1, 2]"), refused("is a list, not an object"));
  EXPECT_THAT(parse_result("\xEF\xBB\xBF[1, 2]"), refused("is a list, not an object"));
  EXPECT_THAT(parse_result("\"0.98\""), refused("is a string, not an object"));
  EXPECT_THAT(parse_result(" 0.98\n"), refused("is a number, not an object"));
  EXPECT_THAT(parse_result("true"), refused("is true or false, not an object"));
  EXPECT_THAT(parse_result("null"), refused("is null, not an object"));
}

TEST(ResultText, SaysWhereAFileStopsBeingJson) {
  EXPECT_THAT(parse_result("{\"a\": 1,\n \"b\": }"),
              refused("2:7: expected a JSON value, found '}'"));
  EXPECT_THAT(parse_result("{\"a\": 1}\n{\"a\": 2}\n"),
              refused("2:1: expected the end after the JSON value, found '{'"));
  EXPECT_THAT(parse_result("[1, 2"),
              refused("1:6: expected ',' or ']', found the end of the text"));
  EXPECT_THAT(parse_result("accuracy: 0.98"),
              refused("1:1: expected a JSON value, found 'accuracy'"));
  EXPECT_THAT(parse_result("{\"a\": 1, \"b\""),
              refused("1:13: expected ':' after the key, found the end of the text"));
}

TEST(ResultText, KeepsAtMostOneMebibyte) {
  EXPECT_THAT(parse_result(object_of(kResultBytesMax)), kept(object_of(kResultBytesMax)));
  EXPECT_THAT(parse_result(object_of(kResultBytesMax + 1)), refused("is longer than 1 MiB"));
  const std::string grows = R"({"a":")" + std::string(kResultBytesMax / 2, '\xFF') + R"("})";
  EXPECT_THAT(parse_result(grows), refused("is longer than 1 MiB once mended"));
}

TEST(ResultText, KeepsAtMostSixtyFourLevels) {
  const auto nested = [](std::size_t lists) {
    return "{\"a\":" + std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  EXPECT_THAT(parse_result(nested(kJsonDepthMax - 1)), kept(nested(kJsonDepthMax - 1)));
  EXPECT_THAT(parse_result(nested(kJsonDepthMax)), refused("1:69: nested deeper than 64"));
}

}  // namespace
}  // namespace trainyard::wire
