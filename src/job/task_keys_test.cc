// The table of keys, and all that must agree with it: the reader, the schema, the documentation and
// the fingerprint; the dry run is tested in report/dry_run_test.cc.
#include "job/task_keys.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "job/job.h"
#include "job/test_docs.h"
#include "job/test_job.h"
#include "job/test_task_keys.h"
#include "model/ids.h"
#include "model/priority.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TaskKeys, AreTakenFromAGroupAndFromATask) {
  for (const TaskKeyInfo& info : task_keys()) {
    const std::string text = needed_by(info.key) + said(info);
    for (const std::string& job : {job_text(text, ""), job_text("", text)}) {
      EXPECT_TRUE(Job::parse(job, in_job_directory(), examples_machine())) << job;
    }
  }
}

TEST(TaskKeys, AreNamedWhereOneIsMisspelt) {
  for (const TaskKeyInfo& info : task_keys()) {
    const std::string wrong = fmt::format("{}x: {}, ", info.name, info.example);
    EXPECT_THAT(mistakes_of(job_text(wrong, "")),
                ElementsAre(HasSubstr(fmt::format("did you mean '{}'?", info.name))));
    EXPECT_THAT(mistakes_of(job_text("", wrong)),
                ElementsAre(HasSubstr(fmt::format("did you mean '{}'?", info.name))));
  }
}

TEST(TaskKeys, MakeAnotherTaskOfItOnlyWhereTheTableSaysSo) {
  for (const TaskKeyInfo& info : task_keys()) {
    const std::string text = needed_by(info.key);
    const auto before = job_of(job_text(text, ""), in_job_directory(), examples_machine());
    const auto after =
        job_of(job_text(text + said(info), ""), in_job_directory(), examples_machine());
    const bool another =
        before.fingerprint(model::TaskIndex{0}) != after.fingerprint(model::TaskIndex{0});
    EXPECT_EQ(another, info.in_fingerprint) << info.name;
  }
}

TEST(TaskKeys, ReachTheTermsOfATaskOrItsLaunch) {
  constexpr model::AttemptKey kFirst{.task = {0}, .attempt = 1};
  for (const TaskKeyInfo& info : task_keys()) {
    // The yard finds the pattern in the output.
    if (info.key == TaskKey::Metrics) continue;
    const std::string text = needed_by(info.key);
    const auto before = job_of(job_text(text, ""), in_job_directory(), examples_machine());
    const auto after =
        job_of(job_text(text + said(info), ""), in_job_directory(), examples_machine());
    const bool has_same_terms =
        before.plan().shape_of(kFirst.task).terms == after.plan().shape_of(kFirst.task).terms;
    EXPECT_FALSE(has_same_terms && before.launch(kFirst) == after.launch(kFirst)) << info.name;
  }
}

TEST(TaskKeys, SayWhichTasksAreNotInterruptedForMemory) {
  const auto preemptible = [](const std::string& task) {
    return job_of(job_text("preemptible: true, ", task), in_job_directory(), examples_machine())
        .plan()
        .shapes.at(0)
        .terms.preemptible;
  };
  EXPECT_TRUE(preemptible(""));
  EXPECT_FALSE(preemptible("preemptible: false, "));
  EXPECT_THAT(mistakes_of(job_text("preempt: false, ", "")),
              ElementsAre(HasSubstr("unknown key 'preempt'")));
}

TEST(TaskKeys, AreInTheSchemaAsTheTableHasThem) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  for (const TaskKeyInfo& info : task_keys()) {
    const auto property = nlohmann::json::parse(info.schema);
    for (const char* const place : {"group", "task"}) {
      EXPECT_EQ(schema["definitions"][place]["properties"].value(info.name, nlohmann::json()),
                property)
          << place << ": " << info.name;
    }
  }
}

TEST(TaskKeys, AreInTheDocumentationAsTheTableHasThem) {
  const std::string text = text_of("job-file.md");
  for (const TaskKeyInfo& info : task_keys()) {
    EXPECT_THAT(text, HasSubstr(info.fallback.empty()
                                    ? fmt::format("\n| `{}` | {} | | ", info.name, info.type)
                                    : fmt::format("\n| `{}` | {} | {} | ", info.name, info.type,
                                                  info.fallback)));
  }
}

TEST(TaskKeys, HavePlaceholdersWhereTheDocumentationSaysSo) {
  std::string keys = "in `id`, `command`";
  for (const TaskKeyInfo& info : task_keys()) {
    if (info.placeholders && info.key != TaskKey::Environment)
      keys += fmt::format(", `{}`", info.name);
  }
  std::string text = text_of("job-file.md");
  std::ranges::replace(text, '\n', ' ');
  EXPECT_THAT(text, HasSubstr(keys + " and the values of `env`"));
}

Names names_of(std::span<const std::string_view> keys) { return {keys.begin(), keys.end()}; }

TEST(TaskKeys, HaveOneRangeOfPriorities) {
  for (const std::string value : {"1001", "-1001", "high"}) {
    const std::string key = fmt::format("priority: {}, ", value);
    const auto told = ElementsAre(HasSubstr(fmt::format(
        "priority: '{0}' is not a whole number from -{1} to {1}", value, model::kPriorityMost)));
    EXPECT_THAT(mistakes_of(job_text(key, "")), told) << key;
    EXPECT_THAT(mistakes_of(job_text("", key)), told) << key;
  }
  const auto schema = nlohmann::json::parse(info_of(TaskKey::Priority).schema)["anyOf"][0];
  EXPECT_EQ(schema["minimum"], -model::kPriorityMost);
  EXPECT_EQ(schema["maximum"], model::kPriorityMost);
}

TEST(TaskKeys, AreTheOnlyOnesOfTheSchema) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  EXPECT_EQ(names_in(schema["properties"]), names_of(keys_of_job()));
  EXPECT_EQ(names_in(schema["definitions"]["group"]["properties"]), names_of(keys_of_group()));
  EXPECT_EQ(names_in(schema["definitions"]["task"]["properties"]), names_of(keys_of_task()));
}

/// The keys in the table of the documentation, by the part of a job file to which they belong.
std::map<std::string, Names> documented_keys() {
  const std::string text = text_of("job-file.md");
  const auto begin = text.find("\n## Keys\n");
  if (begin == std::string::npos) return {};
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  std::map<std::string, Names> keys;
  std::string part;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| **")) part = line.substr(4, line.find("**", 4) - 4);
    if (line.starts_with("| `")) keys[part].insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

TEST(TaskKeys, AreTheOnlyOnesOfTheDocumentation) {
  const auto schema = nlohmann::json::parse(text_of("job-file.schema.json"));
  std::map<std::string, Names> keys = documented_keys();
  const Names options = keys["Keys of a group or a task"];
  const auto with_options = [&options](Names own) {
    own.insert(options.begin(), options.end());
    return own;
  };
  EXPECT_EQ(options, names_of(keys_of_task_options()));
  EXPECT_EQ(keys["Keys of the file"], names_of(keys_of_job()));
  EXPECT_EQ(with_options(keys["Keys of a group"]), names_of(keys_of_group()));
  EXPECT_EQ(with_options(keys["Keys of a task"]), names_of(keys_of_task()));
  EXPECT_EQ(keys["Keys of a repeat"], names_in(schema["definitions"]["repeat"]["properties"]));
}

}  // namespace
}  // namespace trainyard::job
