// The documentation is true: every job file in it is one, and every key is in it.
#include <fstream>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/configuration.h"
#include "config/job.h"
#include "config/job_reader.h"
#include "config/test_job.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_only::ids_of;
using testing_only::job_of;
using testing_only::mistakes_of;

std::string text_of(std::string_view name) {
  std::ifstream file(fmt::format("{}/{}", TRAINYARD_DOCS, name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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

TEST(Documentation, NamesEveryKeyWithItsDefault) {
  const std::string text = text_of("configuration.md");
  for (const SettingInfo& info : settings()) {
    const std::string row = info.fallback.empty()
                                ? fmt::format("| `{}` | | ", info.key)
                                : fmt::format("| `{}` | `{}` | ", info.key, info.fallback);
    EXPECT_THAT(text, HasSubstr(row));
  }
}

using Names = std::set<std::string>;

Names names_in(const nlohmann::json& properties) {
  Names names;
  for (const auto& [name, value] : properties.items()) names.insert(name);
  return names;
}

Names names_of(std::span<const std::string_view> keys) { return {keys.begin(), keys.end()}; }

TEST(Documentation, HasTheKeysOfJobFilesInItsSchemaAndNoOthers) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  EXPECT_EQ(names_in(schema["properties"]), names_of(keys_of_job()));
  EXPECT_EQ(names_in(schema["definitions"]["group"]["properties"]), names_of(keys_of_group()));
  EXPECT_EQ(names_in(schema["definitions"]["task"]["properties"]), names_of(keys_of_task()));
}

TEST(Documentation, HasTheSettingsInItsSchemaAndNoOthers) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  const nlohmann::json& config = schema["definitions"]["config"];
  Names known;
  for (const auto& [name, value] : config["properties"].items()) {
    if (!value.contains("properties")) known.insert(name);
    if (!value.contains("properties")) continue;
    for (const std::string& part : names_in(value["properties"])) known.insert(name + "." + part);
  }
  Names expected{"gpu-priority.stratety"};  // As fedflow spells it.
  for (const SettingInfo& info : settings()) expected.insert(std::string(info.key));
  EXPECT_EQ(known, expected);
  const std::regex allowed(config["propertyNames"]["pattern"].get<std::string>());
  for (const std::string& key : expected) EXPECT_TRUE(std::regex_match(key, allowed)) << key;
}

}  // namespace
}  // namespace trainyard
