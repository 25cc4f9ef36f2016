#include "wire/field_reader.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trainyard::wire {
namespace {

std::string fault(FieldReader from) {
  const auto read = std::move(from).give(0, "word");
  return read ? "" : read.error().message;
}

TEST(FieldReader, GivesWhatIsThere) {
  FieldReader from(
      R"({"a": "one", "n": 7, "id": 18446744073709551615, "f": true, "l": ["x", "y"], "name": "e"})");
  EXPECT_EQ(from.text("a"), "one");
  EXPECT_EQ(from.needed_text("a"), "one");
  EXPECT_EQ(from.number("n", 7), 7);
  EXPECT_EQ(from.needed_number("n", 7), 7);
  EXPECT_EQ(from.needed_id("id"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(from.flag("f"));
  EXPECT_TRUE(from.needed_flag("f"));
  EXPECT_EQ(from.texts("l"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(from.needed_list("l", 2).size(), 2U);
  EXPECT_EQ(from.event_name(), "e");
  EXPECT_EQ(fault(std::move(from)), "");
}

TEST(FieldReader, TakesWhatIsNullOrLeftOutAsNotSaid) {
  FieldReader from(R"({"a": null})");
  EXPECT_EQ(from.text("a"), "");
  EXPECT_EQ(from.number("b", 7), std::nullopt);
  EXPECT_TRUE(from.flag("c", true));
  EXPECT_TRUE(from.texts("d").empty());
  EXPECT_EQ(from.find("a"), nullptr);
  EXPECT_EQ(fault(std::move(from)), "");
}

TEST(FieldReader, KeepsTheFirstFaultAndSaysInWhat) {
  FieldReader from(R"({"a": 1, "b": 2})");
  EXPECT_EQ(from.text("a"), "");
  EXPECT_EQ(from.text("b"), "");
  from.fail("c", "there");
  EXPECT_EQ(fault(std::move(from)), "word: 'a' must be text");
}

TEST(FieldReader, MissesWhatMustBeThere) {
  const auto fault_of = [](auto read) {
    FieldReader from("{}");
    read(from);
    return fault(std::move(from));
  };
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_text("a"); }), "word: 'a' is missing");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_number("a", 1); }),
            "word: 'a' is missing");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_id("a"); }), "word: 'a' is missing");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_flag("a"); }), "word: 'a' is missing");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_list("a", 1); }), "word: 'a' is missing");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.event_name(); }),
            "word: 'name' must be the name of an event");
}

TEST(FieldReader, RefusesWhatIsOfAnotherKindOrTooLarge) {
  const auto fault_of = [](auto read) {
    FieldReader from(R"({"n": -1, "big": 8, "half": 0.5, "text": "long", "list": [1, 2]})");
    read(from);
    return fault(std::move(from));
  };
  const std::string number = "must be a whole number from 0 to 7";
  EXPECT_EQ(fault_of([](FieldReader& from) { from.number("n", 7); }), "word: 'n' " + number);
  EXPECT_EQ(fault_of([](FieldReader& from) { from.number("big", 7); }), "word: 'big' " + number);
  EXPECT_EQ(fault_of([](FieldReader& from) { from.number("half", 7); }), "word: 'half' " + number);
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_id("n"); }),
            "word: 'n' must be a whole number from 0 on");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.text("text", 3); }),
            "word: 'text' must be shorter");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.flag("text"); }),
            "word: 'text' must be true or false");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.texts("list"); }),
            "word: 'list' must be a list of texts");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.texts("text"); }), "word: 'text' must be a list");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.needed_list("list", 1); }),
            "word: 'list' must be a list of at most 1");
  EXPECT_EQ(fault_of([](FieldReader& from) { from.fail_unknown("text", "a or b", "c"); }),
            "word: 'text' must be a or b, not 'c'");
}

TEST(FieldReader, TakesTheFaultOfAnObjectWithin) {
  FieldReader from(R"({"inner": {"a": 1}, "none": 3})");
  FieldReader inner = FieldReader::of(*from.find("inner"));
  inner.text("a");
  from.fail_as(inner);
  EXPECT_EQ(fault(std::move(from)), "word: 'a' must be text");
  EXPECT_EQ(fault(FieldReader::of(nlohmann::json(3))), "word: an object is missing");
}

TEST(FieldReader, SaysWhatIsNoObjectAtAll) {
  EXPECT_NE(fault(FieldReader("[1")), "");
  EXPECT_EQ(fault(FieldReader("")), "");
}

}  // namespace
}  // namespace trainyard::wire
