// Values that are written can be read back, whatever they contain.
#include "journal/json_text.h"

#include <cstddef>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"

namespace trainyard::journal {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(MatrixJson, KeepsTheOrderOfItsKeys) {
  const MatrixValues values{{"seed", "0"}, {"lr", "1e-3"}};
  EXPECT_EQ(matrix_to_json(values), R"({"seed":"0","lr":"1e-3"})");
  EXPECT_EQ(matrix_from_json(matrix_to_json(values)), values);
}

TEST(MatrixJson, IsNothingForATaskWithoutAMatrix) {
  EXPECT_EQ(matrix_to_json({}), "");
  EXPECT_THAT(matrix_from_json(""), IsEmpty());
}

TEST(MatrixJson, EscapesWhatJsonCannotHold) {
  const MatrixValues values{{"q\"", "back\\slash"}, {"tab\t", std::string("\0\x1f\x7f", 3)}};
  EXPECT_EQ(matrix_to_json(values), R"({"q\"":"back\\slash","tab\u0009":"\u0000\u001f\u007f"})");
  EXPECT_EQ(matrix_from_json(matrix_to_json(values)), values);
}

TEST(MatrixJson, LeavesOutWhatItCannotRead) {
  EXPECT_THAT(matrix_from_json(R"({"a":"1","b":2})"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(matrix_from_json(R"({"a":"1\u00)"), IsEmpty());
  EXPECT_THAT(matrix_from_json(R"({"a":"\u12"})"), IsEmpty());
  EXPECT_THAT(matrix_from_json("[]"), IsEmpty());
  EXPECT_THAT(matrix_from_json("\"a\""), IsEmpty());
  EXPECT_THAT(matrix_from_json(R"({"a":"1","b":{"c":"2"},"d":"3"})"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(matrix_from_json(R"({"a":"1","b":["2"]})"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(matrix_from_json(R"({"a":"1","b":1e999})"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(matrix_from_json(R"({"a":"1"}})"), ElementsAre(Pair("a", "1")));
}

TEST(MatrixJson, IsReadInTimeThatGrowsWithItsLengthHoweverDamaged) {
  std::string json = "{";
  constexpr std::size_t kKeys = 50'000;
  for (std::size_t i = 0; i < kKeys; ++i) json += fmt::format(R"("{}":"",)", i);
  EXPECT_EQ(matrix_from_json(json + "?").size(), kKeys);
  EXPECT_THAT(matrix_from_json(std::string(1'000'000, '{')), IsEmpty());
  EXPECT_THAT(strings_from_json(std::string(1'000'000, '[')), IsEmpty());
}

TEST(MatrixJson, EndsWhereItIsCutOff) {
  const std::string whole = matrix_to_json({{"lr", "1e-3"}, {"seed", "\n"}});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const MatrixValues values = matrix_from_json(whole.substr(0, length));
    if (length < whole.find(',')) {
      EXPECT_THAT(values, AnyOf(IsEmpty(), ElementsAre(Pair("lr", "1e-3"))));
    } else {
      EXPECT_THAT(values, AnyOf(ElementsAre(Pair("lr", "1e-3")),
                                ElementsAre(Pair("lr", "1e-3"), Pair("seed", "\n"))));
    }
  }
}

TEST(MatrixJson, ComesBackWhateverTheBytesAre) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    MatrixValues values;
    MatrixValues expected;
    for (std::size_t i = 0; i <= random() % 4; ++i) {
      std::string key;
      std::string value;
      for (std::size_t n = random() % 12; n > 0; --n) key.push_back(static_cast<char>(random()));
      for (std::size_t n = random() % 12; n > 0; --n) value.push_back(static_cast<char>(random()));
      values.emplace_back(key, value);
      expected.emplace_back(valid_utf8(key), valid_utf8(value));
    }
    EXPECT_EQ(matrix_from_json(matrix_to_json(values)), expected);
  }
}

TEST(StringsJson, ComesBackAsItWas) {
  const std::vector<std::string> strings{"debug=true", "", "a\"b\\c\n"};
  EXPECT_EQ(strings_to_json(strings), R"(["debug=true","","a\"b\\c\u000a"])");
  EXPECT_EQ(strings_from_json(strings_to_json(strings)), strings);
  EXPECT_EQ(strings_to_json({}), "[]");
  EXPECT_THAT(strings_from_json("[]"), IsEmpty());
}

TEST(StringsJson, LeavesOutWhatItCannotRead) {
  EXPECT_THAT(strings_from_json(""), IsEmpty());
  EXPECT_THAT(strings_from_json(R"(["a",2,"b"])"), ElementsAre("a"));
  EXPECT_THAT(strings_from_json(R"(["a",["b"],"c"])"), ElementsAre("a"));
  EXPECT_THAT(strings_from_json(R"("a")"), IsEmpty());
  EXPECT_THAT(strings_from_json("{\"a\":\"b\"}"), IsEmpty());
}

}  // namespace
}  // namespace trainyard::journal
