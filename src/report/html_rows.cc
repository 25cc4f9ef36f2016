#include "report/html_rows.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/status.h"
#include "report/html_text.h"
#include "report/other_code.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"

namespace trainyard::report {
namespace {

constexpr int kTextMax = 80;
constexpr int kRestShown = 60;
constexpr int kRestTitle = 1000;

std::string heading(std::string_view title, bool numeric) {
  return fmt::format(R"(<th scope="col"{}><button type="button">{}</button></th>)",
                     numeric ? R"( class="n")" : "", html(title));
}

std::string duration_cell(std::optional<Duration> duration) {
  const std::string sort = duration ? fmt::format("{}", duration->count()) : "";
  return fmt::format(R"(<td class="n time" data-s="{}">{}</td>)", sort, clock_text(duration));
}

std::string_view look_of(const journal::TaskRow& row) {
  switch (row.standing.verdict) {
    case model::Verdict::Finished:
      return "ok";
    case model::Verdict::Failed:
      return row.standing.failure == model::Failure::OutOfMemory ? "oom" : "bad";
    case model::Verdict::Skipped:
    case model::Verdict::Stopped:
    case model::Verdict::NotSelected:
    case model::Verdict::NotNeeded:
      return "off";
    case model::Verdict::None:
      break;
  }
  return row.pid != 0 ? "run" : "off";
}

std::string status_cell(const journal::TaskRow& row, bool best) {
  const bool failed = row.standing.verdict == model::Verdict::Failed;
  return fmt::format(
      R"(<td data-s="{0}" title="{1}"><i class="dot {2}"></i><span )"
      R"(class="word{3}">{0}</span>{5}{6}{7}{4}</td>)",
      html(model::word_for(row.standing)), to_text(row.standing.status), look_of(row),
      failed ? " bad" : "", best ? R"(<span class="star">best</span>)" : "",
      row.edited ? R"( <span class="word" title="The job file was edited after it )"
                   R"(had finished">edited</span>)"
                 : "",
      row.out_of_date ? fmt::format(R"( <span class="word" title="It finished before what it )"
                                    R"(needs ran again">{}</span>)",
                                    kOutOfDate)
                      : "",
      row.newer_code.empty() ? ""
                             : fmt::format(R"( <span class="word" title="It {}">{}</span>)",
                                           html(other_code_text(row)), kOtherCode));
}

/// `peak` is how the used memory reads.
std::string memory_cell(Bytes used, const std::string& peak, Bytes requested) {
  if (used == Bytes{}) return R"(<td class="n" data-s="">-</td>)";
  if (requested == Bytes{}) {
    return fmt::format(R"(<td class="n" data-s="{}">{}</td>)", used.count, peak);
  }
  const double share = static_cast<double>(used.count) / static_cast<double>(requested.count);
  return fmt::format(
      R"(<td class="n" data-s="{}" title="{} of {} requested"><span class="meter{}">)"
      R"(<i style="width:{:.0f}%"></i></span>{}</td>)",
      used.count, peak, to_text(requested), share > 1 ? " over" : "", std::min(1.0, share) * 100,
      peak);
}

std::string log_link(const journal::TaskRow& row, std::string_view stream, std::string_view label) {
  const std::string path = row.directory + "/" + run::log_name(stream, row.attempt);
  return fmt::format(R"(<a href="../{}">{}</a>)", link_to(path), label);
}

std::string log_cell(const journal::TaskRow& row) {
  if (row.attempt == 0) return R"(<td class="logs">-</td>)";
  return fmt::format(R"(<td class="logs">{}{}</td>)", log_link(row, "stdout", "out"),
                     log_link(row, "stderr", "err"));
}

std::string field_cell(const FieldColumn& column, const Field* field) {
  const std::string text = show_field(column, field);
  const bool number =
      field != nullptr && (field->kind == FieldKind::Integer || field->kind == FieldKind::Decimal);
  if (number) {
    return fmt::format(R"(<td class="n" data-s="{}" title="{}">{}</td>)", html(field->text),
                       html(field->text), html(text));
  }
  return fmt::format("<td{}>{}</td>", column.numeric ? R"( class="n")" : "",
                     html(cut(plain(text), kTextMax)));
}

std::string rest_cell(const journal::TaskRow& row, const std::string& rest) {
  const std::string text = plain(rest);
  const std::string warning =
      row.warning.empty() ? "" : fmt::format(R"(<span class="warn">{}</span> )", html(row.warning));
  return fmt::format(R"(<td class="rest" title="{}">{}{}</td>)", html(cut(text, kRestTitle)),
                     warning, text.empty() && warning.empty() ? "-" : html(cut(text, kRestShown)));
}

}  // namespace

HtmlTaskTable::HtmlTaskTable(const GroupDigest& digest, const ReportHead& head)
    : matrix_keys_(digest.matrix_keys()),
      columns_(digest.result_columns()),
      more_(digest.more_than_columns()),
      gpus_(digest.any_gpus()),
      caps_(digest.any_capped()),
      stages_(digest.stages()),
      best_id_(digest.best().value_or(Best{}).id),
      head_(head) {}

std::string HtmlTaskTable::head() const {
  std::string text = "<thead><tr>";
  for (const std::string& key : matrix_keys_) text += heading(key, false);
  if (matrix_keys_.empty()) text += heading("Task", false);
  text += heading("Status", false);
  for (const FieldColumn& column : columns_) text += heading(column.key, column.numeric);
  text += heading("Duration", true);
  if (stages_) text += heading("Load time", true) + heading("Train time", true);
  text += heading("Attempts", true) + heading("Peak memory", true);
  if (head_.machines) text += heading("Machine", false);
  if (gpus_) text += heading("GPU", true) + heading("Peak GPU memory", true);
  if (caps_) text += heading("GPU limit", true);
  text += heading("CPU time", true);
  text += R"(<th scope="col" class="logs">Logs</th>)";
  if (more_) text += R"(<th scope="col">Other results</th>)";
  return text + "</tr></thead>\n";
}

std::string HtmlTaskTable::names(const journal::TaskRow& row) const {
  if (matrix_keys_.empty()) return fmt::format(R"(<td class="id">{}</td>)", html(row.id));
  std::string text;
  for (const auto& [key, value] : row.matrix) {
    text += fmt::format(R"(<td class="id">{}</td>)", html(value));
  }
  return text;
}

std::string HtmlTaskTable::results(const journal::TaskRow& row) const {
  const Fields fields = read_fields(row.result);
  std::string text;
  for (const FieldColumn& column : columns_) {
    text += field_cell(column, find_field(fields, column.key));
  }
  return text;
}

std::string HtmlTaskTable::row(const journal::TaskRow& row) const {
  const bool best = !best_id_.empty() && row.id == best_id_;
  const std::string attempts = attempts_text(row);
  const bool ran = row.attempt > 0;
  std::string text = fmt::format(R"(<tr title="{}">)", html(row.id));
  text += names(row) + status_cell(row, best) + results(row);
  text += duration_cell(duration_of(row, row.pid != 0 ? std::optional(head_.now) : std::nullopt));
  if (stages_) text += duration_cell(row.times.load) + duration_cell(row.times.train);
  text += fmt::format(R"(<td class="n">{}</td>)", attempts);
  text += memory_cell(row.memory_peak, memory_peak_text(row), row.memory_requested);
  if (head_.machines) {
    text += fmt::format("<td>{}</td>", row.machine.empty() ? "-" : html(row.machine));
  }
  if (gpus_) {
    text += fmt::format(R"(<td class="n">{}</td>)", row.gpus.empty() ? "-" : row.gpus);
    text +=
        memory_cell(row.gpu_memory_peak, to_text(row.gpu_memory_peak), row.gpu_memory_requested);
  }
  if (caps_) {
    text += fmt::format(R"(<td class="n" title="{}">{}</td>)", html(row.capped_by), cap_text(row));
  }
  text += duration_cell(ran ? std::optional(row.cpu_time) : std::nullopt);
  text += log_cell(row);
  if (more_) text += rest_cell(row, rest_as_json(read_fields(row.result), columns_));
  return text + "</tr>\n";
}

std::string html_failure_head() {
  return "<thead><tr>" + heading("Task", false) + heading("Stage", false) + heading("What", false) +
         heading("Message", false) + "<th scope=\"col\" class=\"logs\">Logs</th></tr></thead>\n";
}

std::string html_failure_row(const journal::TaskRow& row) {
  std::string why = row.message.empty() ? "-" : html(row.message);
  if (!row.traceback.empty()) {
    why = fmt::format("<details><summary>{}</summary><pre>{}</pre></details>", why,
                      html(row.traceback));
  }
  return fmt::format(R"(<tr><td class="id" title="{0}">{0}</td><td>{1}</td><td><span class="word )"
                     R"(bad">{2}</span></td>)"
                     "<td class=\"why\">{3}</td>{4}</tr>\n",
                     html(row.id), to_text(row.stage), html(model::word_for(row.standing)), why,
                     log_cell(row));
}

std::string html_warning_head() {
  return "<thead><tr>" + heading("Task", false) + heading("Status", false) +
         heading("Message", false) + "<th scope=\"col\" class=\"logs\">Logs</th></tr></thead>\n";
}

std::string html_warning_row(const journal::TaskRow& row) {
  return fmt::format(R"(<tr><td class="id" title="{0}">{0}</td><td><span class="word">{1}</span>)"
                     "</td><td class=\"why\">{2}</td>{3}</tr>\n",
                     html(row.id), html(model::word_for(row.standing)), html(row.warning),
                     log_cell(row));
}

}  // namespace trainyard::report
