// The documentation is true: every job file in it is one, and every configuration.
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_docs.h"
#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The blocks of YAML in a document.
std::vector<std::string> examples_in(std::string_view name) {
  const std::string text = text_of(name);
  std::vector<std::string> examples;
  constexpr std::string_view kOpen = "```yaml\n";
  for (auto at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at)) {
    at += kOpen.size();
    const auto end = text.find("```\n", at);
    examples.push_back(text.substr(at, end - at));
    at = end;
  }
  return examples;
}

TEST(Documentation, HasOnlyJobFilesWithoutMistakes) {
  const auto examples = examples_in("job-file.md");
  ASSERT_GE(examples.size(), 5U);
  for (const std::string& example : examples)
    EXPECT_THAT(mistakes_of(example), IsEmpty()) << example;
  EXPECT_EQ(job_of(examples[0]).plan().tasks.size(), 19U);
}

TEST(Documentation, SaysWhichTasksAMatrixMakes) {
  for (const std::string& example : examples_in("job-file.md")) {
    if (example.find("banana") == std::string::npos) continue;
    const std::string text = text_of("job-file.md");
    const auto ids = ids_of(job_of(example));
    EXPECT_EQ(ids.size(), 6U);
    for (const std::string& id : ids) EXPECT_THAT(text, HasSubstr("`" + id + "`"));
  }
}

TEST(Documentation, HasOnlyConfigurationsWithoutMistakes) {
  for (const std::string& example : examples_in("configuration.md")) {
    std::string indented;
    std::istringstream lines(example);
    for (std::string line; std::getline(lines, line);) indented += "  " + line + "\n";
    EXPECT_THAT(mistakes_of("config:\n" + indented + "groups: [{tasks: [{command: x}]}]"),
                IsEmpty());
  }
}

}  // namespace
}  // namespace trainyard::job
