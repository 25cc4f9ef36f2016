// The small things: text in a terminal, fields of results, names of files.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "journal/reader.h"
#include "report/html_page.h"
#include "report/json_rows.h"
#include "report/result_fields.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TerminalText, CountsColumnsNotBytes) {
  EXPECT_EQ(columns_of("abc"), 3);
  EXPECT_EQ(columns_of("ä"), 1);
  EXPECT_EQ(columns_of("日本"), 4);
  EXPECT_EQ(columns_of("e\u0301"), 1);
  EXPECT_EQ(columns_of("\xff\xfe"), 2);
}

TEST(TerminalText, CutsBetweenLettersAndSaysSo) {
  EXPECT_EQ(cut("abc", 3), "abc");
  EXPECT_EQ(cut("abcd", 3), "ab…");
  EXPECT_EQ(cut("äöü", 2), "ä…");
  EXPECT_EQ(cut("日本語", 4), "日…");
  EXPECT_EQ(cut("日本語", 1), "…");
  EXPECT_EQ(cut("abc", 0), "");
  EXPECT_EQ(cut("", 5), "");
}

TEST(TerminalText, MakesOneSafeLineOfAnything) {
  EXPECT_EQ(plain("  a\t\n b  "), "a b");
  EXPECT_EQ(plain("\x1b[31mred\x1b[0m"), "[31mred[0m");
  EXPECT_EQ(plain("a\xff\xc3z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  // A character that reverses the direction of writing, split in two so that it does not do so
  // here.
  EXPECT_EQ(plain(std::string("\xe2\x80") + "\xae" + "abc"), "abc");
  EXPECT_EQ(plain("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TerminalText, ShowsNumbersAsPeopleWriteThem) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(counted(1, "task"), "1 task");
  EXPECT_EQ(counted(9960, "task"), "9,960 tasks");
}

TEST(TerminalText, ShowsTimesOfReportsAndTheirAbsence) {
  EXPECT_EQ(clock_text(Duration{0}), "00:00:00.000");
  EXPECT_EQ(clock_text(Duration{125'009}), "00:02:05.009");
  EXPECT_EQ(clock_text(Duration{360'000'000}), "100:00:00.000");
  EXPECT_EQ(clock_text(std::nullopt), "--:--:--.---");
  EXPECT_EQ(clock_text(Duration{-1}), "--:--:--.---");
}

TEST(Html, EscapesWhatCouldEndAnElementOrAnAttribute) {
  EXPECT_EQ(html("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
  EXPECT_EQ(link_to("train/a b?#%\"<ä/stdout.log"), "train/a%20b%3F%23%25%22%3C%C3%A4/stdout.log");
}

std::vector<std::string> keys_of(const Fields& fields) {
  std::vector<std::string> keys;
  keys.reserve(fields.size());
  for (const auto& field : fields) keys.push_back(field.key);
  return keys;
}

TEST(ResultFields, ReadsAnObjectInItsOrder) {
  const Fields fields = read_fields(R"({"b":1,"a":2.5,"s":"x","t":true,"n":null,"l":[1]})");
  EXPECT_THAT(keys_of(fields), ElementsAre("b", "a", "s", "t", "n", "l"));
  EXPECT_THAT(keys_of(read_fields("")), IsEmpty());
  EXPECT_THAT(keys_of(read_fields("[1]")), IsEmpty());
  EXPECT_THAT(keys_of(read_fields("{\"a\":")), IsEmpty());
}

TEST(ResultFields, KeepNumbersAsTheyAreWritten) {
  const Fields fields = read_fields(
      R"({"a":9007199254740993,"b":123456789012345678901234567890,"c":1E5,"d":0.10,"e":-7})");
  std::vector<std::string> texts;
  for (const Field& field : fields) texts.push_back(field.text);
  EXPECT_THAT(texts, ElementsAre("9007199254740993", "123456789012345678901234567890", "1E5",
                                 "0.10", "-7"));
  EXPECT_EQ(fields[1].kind, FieldKind::Integer);
  EXPECT_EQ(fields[1].number, 123456789012345678901234567890.0);
  EXPECT_EQ(fields[2].kind, FieldKind::Decimal);
}

TEST(ResultFields, AreReadHoweverTheyAreWritten) {
  const Fields fields = read_fields(
      "{ \"a\" : {\"b\":[1,{\"}\":\"]\"}]} , \"q\\\"{\": \"x,\\\"y\\\\\",\n\"n\":[ ],\"a\":-1.5e3 "
      "}");
  EXPECT_THAT(keys_of(fields), ElementsAre("a", "q\"{", "n"));
  EXPECT_EQ(fields[0].number, -1500) << "the last one counts";
  EXPECT_EQ(fields[1].text, "x,\"y\\");
  EXPECT_EQ(fields[2].kind, FieldKind::Nested);
  EXPECT_THAT(keys_of(read_fields("{}")), IsEmpty());
}

TEST(ResultFields, AreReadInTheTimeThatTheirLengthTakes) {
  // Looked up one among all before it, these would take minutes.
  std::string object = "{";
  for (int i = 0; i < 90'000; ++i) object += fmt::format("{}\"{:x}\":0", i == 0 ? "" : ",", i);
  object += "}";
  EXPECT_EQ(read_fields(object).size(), 90'000U);
  const Fields nested = read_fields(fmt::format("{{\"all\":{}}}", object));
  ASSERT_EQ(nested.size(), 1U);
  EXPECT_EQ(nested[0].text, object);
  journal::TaskRow row;
  row.result = object;
  EXPECT_THAT(json_of(row, std::nullopt), HasSubstr("\"result\":" + object));
}

/// The texts of the values of one field in a column.
std::vector<std::string> column_of(std::string_view key, const std::vector<std::string>& values) {
  FieldColumns columns;
  std::vector<Fields> rows;
  rows.reserve(values.size());
  for (const std::string& value : values) {
    rows.push_back(read_fields(fmt::format("{{\"{}\":{}}}", key, value)));
    columns.look_at(rows.back());
  }
  std::vector<std::string> shown;
  shown.reserve(rows.size());
  for (const Fields& row : rows) {
    shown.push_back(show_field(columns.first(1).at(0), find_field(row, key)));
  }
  return shown;
}

TEST(ResultFields, ShowsAccuraciesAsPercentages) {
  EXPECT_THAT(column_of("train_acc", {"0.9641", "1", "0", "null"}),
              ElementsAre("96.4 %", "100.0 %", "0.0 %", "-"));
  EXPECT_THAT(column_of("val-accuracy", {"0.5"}), ElementsAre("50.0 %"));
  // A percentage already: unchanged.
  EXPECT_THAT(column_of("acc", {"96.25", "0.5"}), ElementsAre("96.250", "0.500"));
  // A text does not change how the numbers are shown.
  EXPECT_THAT(column_of("acc", {"\"n/a\"", "0.5"}), ElementsAre("n/a", "50.0 %"));
  EXPECT_THAT(column_of("accumulated", {"0.5"}), ElementsAre("0.5000"));
}

TEST(ResultFields, ShowsNumbersOfOneFieldInOneForm) {
  EXPECT_THAT(column_of("loss", {"0.25", "0.0123456", "1"}),
              ElementsAre("0.2500", "0.0123", "1.0000"));
  EXPECT_THAT(column_of("epochs", {"3", "12"}), ElementsAre("3", "12"));
  EXPECT_THAT(column_of("lr", {"1e-05", "0.1"}), ElementsAre("1e-05", "0.1"));
  EXPECT_THAT(column_of("big", {"12345.678", "1.5"}), ElementsAre("12345.7", "1.5"));
  EXPECT_THAT(column_of("ok", {"true", "null"}), ElementsAre("true", "-"));
}

TEST(ResultFields, TakesScoresFirstWhenThereAreTooMany) {
  FieldColumns columns;
  columns.look_at(read_fields(R"({"a":1,"b":2,"c":3,"test_acc":0.5,"d":[1]})"));
  std::vector<std::string> keys;
  const std::vector<FieldColumn> two = columns.first(2);
  keys.reserve(two.size());
  for (const FieldColumn& column : two) keys.push_back(column.key);
  EXPECT_THAT(keys, ElementsAre("test_acc", "a"));
  EXPECT_TRUE(columns.more_than(4));
}

TEST(ResultFields, HoldsABoundedNumberOfKeys) {
  FieldColumns columns;
  for (int i = 0; i < 10'000; ++i) columns.look_at(read_fields(fmt::format("{{\"k{}\":1}}", i)));
  EXPECT_EQ(columns.first(1'000'000).size(), FieldColumns::kKeysMax);
}

TEST(ResultFields, GivesTheRestAsJson) {
  const Fields fields = read_fields(R"({"a":1,"s":"x\"y","l":[1,{"b":null}]})");
  EXPECT_EQ(rest_as_json(fields, {{.key = "a"}}), R"({"s":"x\"y","l":[1,{"b":null}]})");
  EXPECT_EQ(rest_as_json(fields, {{.key = "a"}, {.key = "s"}, {.key = "l"}}), "");
}

std::optional<Best> best_of(const std::vector<std::string>& results) {
  BestSoFar best;
  FieldColumns columns;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Fields fields = read_fields(results[i]);
    columns.look_at(fields);
    best.look_at(fmt::format("t{}", i), fields);
  }
  return best.best(columns.first(FieldColumns::kKeysMax));
}

TEST(ResultFields, NamesTheBestByTheOneObviousScore) {
  const Best most =
      best_of({R"({"test_acc":0.9,"loss":3})", R"({"test_acc":0.964,"loss":9})"}).value_or(Best{});
  EXPECT_EQ(most.id, "t1");
  EXPECT_EQ(most.key, "test_acc");
  EXPECT_EQ(most.text, "96.4 %");
  const Best least =
      best_of({R"({"val_loss":0.5})", R"({"val_loss":0.25})", R"({"val_loss":null})"})
          .value_or(Best{});
  EXPECT_EQ(least.id, "t1");
  EXPECT_EQ(least.text, "0.2500") << "as its column shows it";
  const Best tiny = best_of({R"({"loss":1.3792459867793054e-05})"}).value_or(Best{});
  EXPECT_EQ(tiny.text, "1.379e-05");
}

TEST(ResultFields, DoesNotGuessWhichScoreIsMeant) {
  EXPECT_FALSE(best_of({R"({"val_acc":0.9,"test_acc":0.8})"}).has_value());
  EXPECT_FALSE(best_of({R"({"loss":1,"val_loss":2})"}).has_value());
  EXPECT_FALSE(best_of({R"({"test_acc":"high","epochs":3})"}).has_value());
  EXPECT_FALSE(best_of({}).has_value());
}

}  // namespace
}  // namespace trainyard::report
