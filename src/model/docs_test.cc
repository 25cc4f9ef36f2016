// The tables of the documentation about reasons have a row for each reason.
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

using ::testing::UnorderedElementsAreArray;

/// The first cells of the table below a heading of a page, without their code marks. A row with an
/// empty first cell belongs to the row above it.
std::vector<std::string> rows_of(std::string_view page, std::string_view heading) {
  std::ifstream file(std::string(TRAINYARD_DOCS "/").append(page));
  EXPECT_TRUE(file.is_open()) << page;
  std::vector<std::string> rows;
  bool in_section = false;
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) in_section = line.substr(3) == heading;
    if (!in_section) continue;
    if (line.starts_with("| `") && in_table) rows.push_back(line.substr(3, line.find('`', 3) - 3));
    in_table = line.starts_with("|---") || (in_table && line.starts_with('|'));
  }
  return rows;
}

TEST(Docs, HaveARowForEachCauseOfWaitingAndForNothingElse) {
  std::vector<std::string> words;
  for (const Cause cause : all_causes()) words.emplace_back(to_text(cause));
  EXPECT_THAT(rows_of("waiting.md", "What it may say"), UnorderedElementsAreArray(words));
}

TEST(Docs, HaveARowForEachEndButSuccessAndForNothingElse) {
  std::vector<std::string> ids;
  for (const TaskEnd& end : all_ends()) {
    if (end.verdict != Verdict::Finished) ids.emplace_back(end.id);
  }
  EXPECT_THAT(rows_of("troubleshooting.md", "A task has failed"), UnorderedElementsAreArray(ids));
}

}  // namespace
}  // namespace trainyard::model
