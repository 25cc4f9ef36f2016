// The table of settings, and all that must agree with it: the reader of files, of jobs and of
// --set, the schema, the documentation, the output, and the nearest right word.
#include <cstddef>
#include <cstdio>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "job/job.h"
#include "job/test_docs.h"
#include "job/test_job.h"
#include "settings/configuration.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using settings::SettingInfo;
using settings::SettingKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The test values of a kind of setting, and its schema.
struct Kind {
  std::string good;                  ///< A value that is no default.
  std::optional<std::string> wrong;  ///< Nothing where every text will do.
  nlohmann::json schema;
};

nlohmann::json definition(std::string_view name) {
  return {{"$ref", fmt::format("#/definitions/{}", name)}};
}

Kind kind_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::Path:
      return {
          .good = "/elsewhere", .wrong = "[]", .schema = {{"type", "string"}, {"minLength", 1}}};
    case SettingKind::Flag:
      return {.good = "true", .wrong = "maybe", .schema = {{"type", "boolean"}}};
    case SettingKind::MailSecurity:
      return {.good = "starttls",
              .wrong = "ssl",
              .schema = {{"enum", {"auto", "none", "starttls", "tls"}}}};
    case SettingKind::OtherUsers:
      return {.good = "share", .wrong = "ignore", .schema = {{"enum", {"avoid", "share"}}}};
    case SettingKind::Record:
      return {.good = "full", .wrong = "all", .schema = {{"enum", {"usual", "full"}}}};
    case SettingKind::Machines:
      return {.good = "lab1", .wrong = "lab1;", .schema = definition("machines")};
    case SettingKind::Lease:
      return {.good = "7s", .wrong = "0.5", .schema = definition("seconds")};
    case SettingKind::Command:
      return {.good = "some words", .schema = {{"type", "string"}}};
    case SettingKind::Strategy:
      return {.good = "PCI", .wrong = "PC", .schema = definition("strategy")};
    case SettingKind::Share:
      return {.good = "0.5", .wrong = "1.5", .schema = definition("share")};
    case SettingKind::Size:
      return {.good = "3GB", .wrong = "auto", .schema = definition("size")};
    case SettingKind::SizeOrAuto:
      return {.good = "3GB", .wrong = "some", .schema = definition("sizeOrAuto")};
    case SettingKind::LogSize:
      return {.good = "3GB",
              .wrong = "10kB",
              .schema = {{"anyOf", {definition("size"), {{"const", "none"}}}}}};
    case SettingKind::Count:
      return {.good = "7", .wrong = "-1", .schema = definition("count")};
    case SettingKind::CountOrAuto:
      return {.good = "7", .wrong = "some", .schema = definition("countOrAuto")};
    case SettingKind::Hours:
      return {.good = "Sat 08:00-09:00=1", .wrong = "Sat", .schema = {{"type", "string"}}};
    case SettingKind::MaxPerGpu:
      return {.good = "2",
              .wrong = "33",
              .schema = {{"type", "integer"}, {"minimum", 0}, {"maximum", 32}}};
    case SettingKind::Tries:
      return {.good = "7", .wrong = "0", .schema = {{"type", "integer"}, {"minimum", 1}}};
    case SettingKind::Allocations:
      return {.good = "4",
              .wrong = "65",
              .schema = {{"type", "integer"}, {"minimum", 1}, {"maximum", 64}}};
    case SettingKind::Port:
      return {.good = "26",
              .wrong = "65536",
              .schema = {{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}}};
    case SettingKind::Seconds:
      return {.good = "7s", .wrong = "-1", .schema = definition("seconds")};
    case SettingKind::Text:
    case SettingKind::Secret:
      return {.good = "some text", .schema = {{"type", "string"}}};
  }
  return {};
}

/// "scheduler: {max-process: 7}" for "scheduler.max-process".
std::string nested(std::string_view key, std::string_view value) {
  const auto dot = key.find('.');
  if (dot == std::string_view::npos) return fmt::format("{}: {}", key, value);
  return fmt::format("{}: {{{}: {}}}", key.substr(0, dot), key.substr(dot + 1), value);
}

constexpr std::string_view kGroups = "groups: [{tasks: [{command: ./t}]}]\n";

std::string job_with(const std::string& config) {
  return fmt::format("config:\n  {}\n{}", config, kGroups);
}

/// A configuration of a file and of options, which must be right.
settings::Configuration configuration_of(const std::string& file,
                                         std::vector<std::string> options = {}) {
  const sys::TemporaryDirectory directory;
  directory.write("trainyard.yaml", file);
  auto read = settings::load_configuration(
      {.settings = std::move(options), .current_directory = directory.path()});
  EXPECT_TRUE(read.has_value()) << file;
  return read.value_or(settings::Configuration());
}

TEST(SettingKeys, AreTakenFromAFileAJobAndTheCommandLineAlike) {
  for (std::size_t i = 0; i < settings::kSettingCount; ++i) {
    const SettingInfo& info = settings::settings()[i];
    const auto setting = static_cast<settings::Setting>(i);
    const std::string value = kind_of(info.kind).good;
    const std::string in_one = fmt::format("{}: {}", info.key, value);
    for (const std::string& file : {nested(info.key, value), in_one}) {
      const settings::Configuration of_file = configuration_of(file);
      EXPECT_EQ(of_file.text(setting), value) << file;
      EXPECT_THAT(of_file.origin(setting), HasSubstr("trainyard.yaml:1")) << file;
      const Job job = job_of(job_with(file));
      EXPECT_EQ(job.configuration().text(setting), value) << file;
      EXPECT_EQ(job.configuration().origin(setting), "sweep.yaml:2") << file;
    }
    const settings::Configuration set =
        configuration_of("", {fmt::format("{}={}", info.key, value)});
    EXPECT_EQ(set.text(setting), value) << info.key;
    EXPECT_EQ(set.origin(setting), "--set") << info.key;
  }
}

TEST(SettingKeys, TakeNoValueOfAnotherKind) {
  for (const SettingInfo& info : settings::settings()) {
    const std::optional<std::string> wrong = kind_of(info.kind).wrong;
    if (!wrong) continue;
    EXPECT_THAT(mistakes_of(job_with(nested(info.key, *wrong))),
                ElementsAre(HasSubstr(fmt::format("{}", info.key))))
        << info.key;
  }
}

TEST(SettingKeys, AreNamedWhereOneIsMisspelt) {
  for (const SettingInfo& info : settings::settings()) {
    const std::string wrong = fmt::format("{}x: {}", info.key, kind_of(info.kind).good);
    EXPECT_THAT(mistakes_of(job_with(wrong)),
                ElementsAre(HasSubstr(fmt::format("did you mean '{}'?", info.key))));
  }
}

TEST(SettingKeys, AreAllShownInTheirOrderAndWithWhereTheyComeFrom) {
  std::string file;
  for (const SettingInfo& info : settings::settings()) {
    file += fmt::format("{}: {}\n", info.key, kind_of(info.kind).good);
  }
  const settings::Configuration all = configuration_of(file);
  std::istringstream lines(settings::show(all));
  const auto json = nlohmann::ordered_json::parse(settings::show_json(all));
  EXPECT_THAT(json, SizeIs(settings::kSettingCount));
  int number = 0;
  for (const auto& [key, shown] : json.items()) {
    const SettingInfo& info = settings::settings()[static_cast<std::size_t>(number)];
    const std::string from = fmt::format("trainyard.yaml:{}", ++number);
    EXPECT_EQ(key, info.key);
    EXPECT_EQ(shown["value"],
              info.kind == SettingKind::Secret ? "******" : kind_of(info.kind).good);
    EXPECT_EQ(shown["from"], from);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with(fmt::format("{}: ", info.key))) << line;
    EXPECT_TRUE(line.ends_with("   # " + from)) << line;
  }
  EXPECT_FALSE(lines.peek() != EOF) << "nothing is shown that is no setting";
}

TEST(SettingKeys, AreInTheSchemaAsWhatTheReaderTakes) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  const nlohmann::json& properties = schema["definitions"]["config"]["properties"];
  for (const SettingInfo& info : settings::settings()) {
    const auto dot = info.key.find('.');
    const bool nests = dot != std::string_view::npos;
    const nlohmann::json section =
        nests ? properties.value(info.key.substr(0, dot), nlohmann::json::object())["properties"]
              : properties;
    EXPECT_EQ(section.value(nests ? info.key.substr(dot + 1) : info.key, nlohmann::json()),
              kind_of(info.kind).schema)
        << info.key;
  }
}

Names known_keys() {
  Names known;
  for (const SettingInfo& info : settings::settings()) known.insert(std::string(info.key));
  return known;
}

TEST(SettingKeys, AreTheOnlyOnesOfTheSchema) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  const nlohmann::json& config = schema["definitions"]["config"];
  Names keys;
  for (const auto& [name, value] : config["properties"].items()) {
    if (!value.contains("properties")) {
      keys.insert(name);
      continue;
    }
    // Apart from its keys it has times of the week.
    if (name != "limits") {
      EXPECT_EQ(value["additionalProperties"], false) << name;
    }
    for (const std::string& part : names_in(value["properties"]))
      keys.insert(fmt::format("{}.{}", name, part));
  }
  Names expected = known_keys();
  expected.insert("gpu-priority.stratety");  // As fedflow spells it.
  expected.insert("debug");                  // A file of fedflow's may switch it off.
  EXPECT_EQ(keys, expected);
  const std::regex allowed(config["propertyNames"]["pattern"].get<std::string>());
  for (const std::string& key : expected) EXPECT_TRUE(std::regex_match(key, allowed)) << key;
}

TEST(SettingKeys, AreInTheDocumentationWithTheirDefaultsAndNoOthersAre) {
  const std::string text = text_of("configuration.md");
  const auto begin = text.find("\n## Keys\n");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  std::vector<std::string> documented;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `")) documented.push_back(line);
  }
  ASSERT_THAT(documented, SizeIs(settings::kSettingCount));
  for (std::size_t i = 0; i < documented.size(); ++i) {
    const SettingInfo& info = settings::settings()[i];
    EXPECT_TRUE(documented[i].starts_with(
        info.fallback.empty() ? fmt::format("| `{}` | | ", info.key)
                              : fmt::format("| `{}` | `{}` | ", info.key, info.fallback)))
        << documented[i];
    EXPECT_FALSE(documented[i].contains("Not there yet")) << documented[i];
  }
}

}  // namespace
}  // namespace trainyard::job
