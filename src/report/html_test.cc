// The report of a group: its content, its escaping, and its size.
#include "report/html.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/status.h"
#include "report/curves.h"
#include "report/digest.h"
#include "report/test_rows.h"

namespace trainyard::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

/// A group with its rows, as the journal would hand them out.
struct Group {
  journal::GroupRow group{.name = "train", .phase = model::GroupPhase::Finished};
  std::vector<journal::TaskRow> rows;
  std::vector<journal::AttemptRow> attempts;
  std::vector<journal::SampleRow> samples;
  std::vector<Curve> curves;
  ReportHead head{.job = "mnist",
                  .execution = {.number = 1,
                                .host = "node7",
                                .command_line = "trainyard run sweep.yaml",
                                .version = "0.1.0",
                                .git_commit = "0123456789abcdef0123",
                                .started_unix_ms = 1'741'100'000'000}};

  void add(journal::TaskRow row) {
    row.index = {static_cast<std::uint32_t>(rows.size())};
    ++group.tasks;
    group.finished += row.standing.verdict == model::Verdict::Finished ? 1 : 0;
    group.failed += row.standing.verdict == model::Verdict::Failed ? 1 : 0;
    group.skipped += row.standing.verdict == model::Verdict::Skipped ? 1 : 0;
    if (row.started) {
      attempts.push_back({.key = {.task = row.index, .attempt = row.attempt},
                          .started = *row.started,
                          .ended = row.ended,
                          .failure = row.standing.failure});
    }
    rows.push_back(std::move(row));
  }

  std::string write(Result<void> (*kind)(GroupReport&, Sink&)) {
    GroupDigest digest(group);
    for (const journal::TaskRow& row : rows) digest.look_at(row);
    TaskSource source = [this](Which which, TaskVisitor visit) -> Result<void> {
      for (const journal::TaskRow& row : rows) {
        if (which == Which::Failed && row.standing.verdict != model::Verdict::Failed) continue;
        if (which == Which::Warned && row.warning.empty()) continue;
        if (!visit(row)) break;
      }
      return {};
    };
    GroupReport report{.head = head,
                       .digest = digest,
                       .attempts = attempts,
                       .samples = samples,
                       .id_of = [this](model::TaskIndex task) { return rows.at(task.value).id; },
                       .was_stopped = [](model::AttemptKey) { return false; },
                       .tasks = source,
                       .curves = curves};
    std::string text;
    Sink sink = [&text](std::string_view part) { text += part; };
    EXPECT_TRUE(kind(report, sink).has_value());
    return text;
  }
  std::string page() { return write(write_html); }
  std::string json() { return write(write_report_json); }
};

TEST(HtmlReport, NamesTheMachinesOfTasksWhereThereAreSeveral) {
  Group group;
  journal::TaskRow row = finished_row("a", Duration{1000}, "{}");
  row.machine = "<lab1>";
  group.add(row);
  EXPECT_THAT(group.page(), Not(HasSubstr("Machine")));
  EXPECT_THAT(group.json(), HasSubstr(R"("machine":"<lab1>")"));
  group.head.machines = true;
  EXPECT_THAT(group.page(), HasSubstr("<button type=\"button\">Machine</button>"));
  EXPECT_THAT(group.page(), HasSubstr("<td>&lt;lab1&gt;</td>"));
}

TEST(HtmlReport, SaysHowOftenTheRunWasResumed) {
  Group group;
  EXPECT_THAT(group.page(), Not(HasSubstr("<span>resumed")));
  group.head.execution.number = 3;
  EXPECT_THAT(group.page(), HasSubstr("<span>resumed 2 times</span>"));
}

TEST(HtmlReport, ShowsTasksWithTheirMatrixResultsAndFiles) {
  Group group;
  journal::TaskRow row =
      finished_row("lr=0.1", Duration{125'009}, R"({"train_acc":0.964,"note":[1]})");
  row.matrix = {{"lr", "0.1"}};
  row.attempt = 2;
  group.add(row);
  const std::string page = group.page();
  EXPECT_THAT(page, HasSubstr("<title>train - mnist</title>"));
  EXPECT_THAT(page, HasSubstr("<span>2025-03-04 14:53 UTC</span><span>on node7</span>"
                              "<span>commit 0123456789ab</span>"));
  EXPECT_THAT(
      page,
      HasSubstr("<tr title=\"lr=0.1\"><td class=\"id\">0.1</td>"
                "<td data-s=\"FINISHED\" title=\"EXITED\"><i class=\"dot ok\"></i>"
                "<span class=\"word\">FINISHED</span></td>"
                "<td class=\"n\" data-s=\"0.964\" title=\"0.964\">96.4 %</td>"
                "<td class=\"n time\" data-s=\"125009\">00:02:05.009</td><td class=\"n\">2</td>"
                "<td class=\"n\" data-s=\"300000000\" title=\"300 MB of 1 GB requested\">"
                "<span class=\"meter\"><i style=\"width:30%\"></i></span>300 MB</td>"
                "<td class=\"n time\" data-s=\"62504\">00:01:02.504</td>"
                "<td class=\"logs\"><a href=\"../train/lr=0.1/stdout.2.log\">out</a>"
                "<a href=\"../train/lr=0.1/stderr.2.log\">err</a></td>"
                "<td class=\"rest\" "
                "title=\"{&quot;note&quot;:[1]}\">{&quot;note&quot;:[1]}</td></tr>\n"));
  EXPECT_THAT(page, HasSubstr("<dt>Total</dt><dd>1</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Successful</dt><dd>1</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Failed</dt><dd>0</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Skipped</dt><dd>0</dd>"));
  EXPECT_THAT(page, Not(HasSubstr("Exceptions")));
}

TEST(HtmlReport, ShowsADashForWhatIsNotThere) {
  Group group;
  group.add(finished_row("a", Duration{1}, R"({"val_acc":null,"epochs":1})"));
  group.add(skipped_row("b", "fail-fast"));
  const std::string page = group.page();
  EXPECT_THAT(page, HasSubstr("<span class=\"word\">SKIPPED</span></td><td>-</td>"
                              "<td class=\"n\">-</td>"
                              "<td class=\"n time\" data-s=\"\">--:--:--.---</td>"
                              "<td class=\"n\">-</td><td class=\"n\" data-s=\"\">-</td>"
                              "<td class=\"n time\" data-s=\"\">--:--:--.---</td>"
                              "<td class=\"logs\">-</td></tr>"));
}

TEST(HtmlReport, ListsWhatWentWrong) {
  Group group;
  group.add(failed_row("lr=1", model::Failure::OutOfMemory, "took 1.2 GB of 1 GB"));
  EXPECT_THAT(group.page(),
              HasSubstr("<tr><td class=\"id\" title=\"lr=1\">lr=1</td><td>TRAIN</td>"
                        "<td><span class=\"word bad\">OUT_OF_MEMORY</span></td>"
                        "<td class=\"why\">took 1.2 GB of 1 GB</td>"
                        "<td class=\"logs\"><a href=\"../train/lr=1/stdout.log\">out</a>"
                        "<a href=\"../train/lr=1/stderr.log\">err</a></td></tr>\n"));
}

TEST(HtmlReport, ListsResultsThatWereLostOrChanged) {
  Group group;
  group.add(finished_row("fine", Duration{1000}, R"({"epochs":3})"));
  EXPECT_THAT(group.page(), Not(HasSubstr("Results missing or changed")));
  journal::TaskRow row = finished_row("lr=1", Duration{1000}, "");
  row.warning = "the result is not JSON <at 1>";
  group.add(row);
  EXPECT_THAT(group.page(), HasSubstr("<h2>Results missing or changed</h2></div>\n"
                                      "<div class=\"scroll tall\"><table>\n<thead>"));
  EXPECT_THAT(group.page(),
              HasSubstr("<tr><td class=\"id\" title=\"lr=1\">lr=1</td>"
                        "<td><span class=\"word\">FINISHED</span></td>"
                        "<td class=\"why\">the result is not JSON &lt;at 1&gt;</td>"
                        "<td class=\"logs\"><a href=\"../train/lr=1/stdout.log\">out</a>"
                        "<a href=\"../train/lr=1/stderr.log\">err</a></td></tr>\n"
                        "</tbody></table></div>\n</section>\n"));
}

TEST(HtmlReport, LetsNothingOutOfItsPlace) {
  const std::string bad = "</td><script>alert(1)</script>\"'&";
  Group clean;
  clean.add(finished_row("a", Duration{1000}, R"({"k":"v"})"));
  clean.add(failed_row("b", model::Failure::Exit, "m"));
  const int scripts = count(clean.page(), "<script>");

  Group group;
  group.head.job = bad;
  group.head.execution = {
      .host = bad, .command_line = bad, .version = bad, .job_file = bad, .git_commit = bad};
  group.group.name = bad;
  group.group.message = bad;
  journal::TaskRow row =
      finished_row(bad, Duration{1000}, nlohmann::json{{bad, bad}, {"n", {bad}}}.dump());
  row.warning = bad;
  row.matrix = {{bad, bad}};
  group.add(row);
  journal::TaskRow failed = failed_row(bad, model::Failure::Exit, bad);
  failed.group_name = bad;
  group.add(failed);
  const std::string page = group.page();
  EXPECT_EQ(count(page, "<script>"), scripts);
  EXPECT_EQ(count(page, "</td><script"), 0);
  EXPECT_EQ(count(page, "alert(1)</script>"), 0);
  EXPECT_EQ(nlohmann::json::parse(group.json()).at("tasks").at(0).at("id"), bad);
}

TEST(HtmlReport, LoadsNothingFromAnywhere) {
  Group group;
  group.add(finished_row("a", Duration{1000}, R"({"k":"v"})"));
  const std::string page = group.page();
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const std::string_view door : {"http:", "https:", "//", "@import", "url(", " src="}) {
    EXPECT_EQ(count(page, door), 0) << door;
  }
}

TEST(HtmlReport, GivesTheSameAsJson) {
  Group group;
  group.add(finished_row("a", Duration{1000}, R"({"test_acc":0.5,"x":null})"));
  group.add(failed_row("b", model::Failure::Timeout, "over its time limit"));
  group.samples = {
      {.at = Instant{Duration{500}}, .memory_available = gb(3), .memory_of_tasks = mb(5)}};
  const nlohmann::json json = nlohmann::json::parse(group.json());
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("group").at("name"), "train");
  EXPECT_EQ(json.at("took_ms"), 2000);
  EXPECT_EQ(json.at("best"), nlohmann::json::parse(R"({"id":"a","key":"test_acc","value":0.5})"));
  EXPECT_TRUE(json.at("better_before_edit").is_null());
  EXPECT_EQ(json.at("tasks").at(0).at("memory_peak_at_least"), false);
  ASSERT_EQ(json.at("tasks").size(), 2U);
  EXPECT_EQ(json.at("tasks").at(0).at("result"),
            nlohmann::json::parse(R"({"test_acc":0.5,"x":null})"));
  EXPECT_EQ(json.at("tasks").at(0).at("duration_ms"), 1000);
  EXPECT_EQ(json.at("tasks").at(1).at("word"), "TIMEOUT");
  ASSERT_EQ(json.at("attempts").size(), 2U);
  EXPECT_EQ(json.at("attempts").at(1).at("id"), "b");
  EXPECT_EQ(json.at("attempts").at(1).at("failure"), "TIMEOUT");
  EXPECT_EQ(json.at("samples").at(0).at("memory_of_tasks_bytes"), 5'000'000);
}

TEST(HtmlReport, TakesNoResultOfAnEditedCommandForTheBestWithoutSayingSo) {
  Group group;
  journal::TaskRow edited = finished_row("old", Duration{1000}, R"({"test_acc":0.9})");
  edited.edited = true;
  edited.memory_at_least = true;
  group.add(edited);
  group.add(finished_row("new", Duration{1000}, R"({"test_acc":0.5})"));
  const std::string page = group.page();
  EXPECT_THAT(page, HasSubstr("<dt>Best test_acc</dt><dd>50.0 %<small>new</small></dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Best test_acc with an earlier command</dt><dd>90.0 %"
                              "<small>old</small></dd>"));
  EXPECT_THAT(page, HasSubstr("title=\"at least 300 MB of 1 GB requested\""));
  EXPECT_EQ(count(page, "class=\"star\">best"), 1);
  const nlohmann::json json = nlohmann::json::parse(group.json());
  EXPECT_EQ(json.at("best").at("id"), "new");
  EXPECT_EQ(json.at("better_before_edit"),
            nlohmann::json::parse(R"({"id":"old","key":"test_acc","value":0.9})"));
  EXPECT_EQ(json.at("tasks").at(0).at("memory_peak_at_least"), true);
}

TEST(HtmlReport, StaysSmallHoweverManyTasksThereAre) {
  Group group;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = fmt::format("t{}", i);
    group.add(i % 10 == 9 ? failed_row(id, model::Failure::Exit, "m")
                          : finished_row(id, Duration{1000}, ""));
  }
  const std::string page = group.page();
  EXPECT_EQ(count(page, "<tr title="), kHtmlRowsMax);
  EXPECT_EQ(count(page, "<td class=\"why\">"), kHtmlFailuresMax);
  EXPECT_THAT(page, HasSubstr("The first 500 of 1,000; the JSON file has all."));
  EXPECT_THAT(page, HasSubstr("5,000 of 10,000, failures first; the JSON file has all."));
  // All failures, the last one too, and then the first of the others.
  EXPECT_THAT(page, HasSubstr("<tr title=\"t9999\">"));
  EXPECT_THAT(page, Not(HasSubstr("<tr title=\"t9998\">")));
  EXPECT_LE(count(page, "<g>"), 2000);
  EXPECT_LT(page.size(), 5'000'000U);
  EXPECT_EQ(count(group.json(), "\"cpu_time_ms\":"), 10'000);
}

}  // namespace
}  // namespace trainyard::report
