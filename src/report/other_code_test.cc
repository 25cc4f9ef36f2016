// Tasks are marked if they ran other code than the tasks that started last.
#include "report/other_code.h"

#include <string_view>

#include <gtest/gtest.h>

#include "base/time.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/test_rows.h"

namespace trainyard::report {
namespace {

journal::TaskRow row_of(std::string_view code, std::string_view newer) {
  journal::TaskRow row = finished_row("a", Duration{1000}, "{}");
  row.code = code;
  row.newer_code = newer;
  return row;
}

TEST(OtherCode, SaysNothingWhereAllRanTheSame) {
  OtherCode other;
  other.look_at(row_of("a1b2c3d", ""));
  other.look_at(row_of("", ""));
  EXPECT_EQ(other.count(), 0);
  EXPECT_EQ(other.text(), "");
  EXPECT_EQ(other.text_with_cure("runs/x"), "");
  EXPECT_EQ(other_code_text(row_of("a1b2c3d", "")), "");
}

TEST(OtherCode, CountsAndNamesWhatOthersRan) {
  OtherCode other;
  other.look_at(row_of("a1b2c3d+9f3e21", "5d6e7f8"));
  EXPECT_EQ(other.text(),
            "1 task ran other code (a1b2c3d+9f3e21) than the tasks that started last (5d6e7f8)");
  EXPECT_EQ(other.text_with_cure("runs/x"),
            other.text() + ": 'trainyard retry runs/x --other-code' runs it again");
  other.look_at(row_of("5d6e7f8", ""));
  other.look_at(row_of("b", "5d6e7f8"));
  EXPECT_EQ(
      other.text(),
      "2 tasks ran other code (a1b2c3d+9f3e21, b) than the tasks that started last (5d6e7f8)");
  EXPECT_EQ(other.text_with_cure("runs/a sweep"),
            other.text() + ": \"trainyard retry 'runs/a sweep' --other-code\" runs them again");
  EXPECT_EQ(other_code_text(row_of("b", "5d6e7f8")),
            "ran b; the tasks that started last ran 5d6e7f8");
}

TEST(OtherCode, NamesAFewOfMany) {
  OtherCode other;
  for (const char* code : {"a", "b", "c", "d", "e", "e"}) other.look_at(row_of(code, "z"));
  EXPECT_EQ(other.text(),
            "6 tasks ran other code (a, b, c and others) than the tasks that started last (z)");
}

TEST(OtherCode, StandsBehindTheStatusOfATask) {
  EXPECT_EQ(standing_text(row_of("b", "z")), "FINISHED, other code");
  journal::TaskRow edited = row_of("b", "z");
  edited.edited = true;
  EXPECT_EQ(standing_text(edited), "FINISHED, edited, other code");
  journal::TaskRow failed = failed_row("a", model::Failure::OutOfMemory, "");
  failed.newer_code = "z";
  EXPECT_EQ(standing_text(failed), "FAILED OUT_OF_MEMORY, other code");
}

}  // namespace
}  // namespace trainyard::report
