#include "report/html.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/curves.h"
#include "report/digest.h"
#include "report/html_page.h"
#include "report/json_rows.h"
#include "report/other_code.h"
#include "report/result_fields.h"
#include "report/terminal_text.h"
#include "report/timeline.h"
#include "report/workers_section.h"
#include "run/run_directory.h"

namespace trainyard::report {
namespace {

using journal::TaskRow;

constexpr int kTextMax = 80;
constexpr int kRestShown = 60;
constexpr int kRestTitle = 1000;
constexpr std::string_view kLogsHeading = R"(<th scope="col" class="logs">Logs</th>)";

std::string heading(std::string_view title, bool numeric) {
  return fmt::format(R"(<th scope="col"{}><button type="button">{}</button></th>)",
                     numeric ? R"( class="n")" : "", html(title));
}

std::string duration_cell(std::optional<Duration> duration) {
  const std::string sort = duration ? fmt::format("{}", duration->count()) : "";
  return fmt::format(R"(<td class="n time" data-s="{}">{}</td>)", sort, clock_text(duration));
}

std::string_view look_of(const TaskRow& row) {
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

std::string status_cell(const TaskRow& row, bool best) {
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

std::string log_link(const TaskRow& row, std::string_view stream, std::string_view label) {
  const std::string path = row.directory + "/" + run::log_name(stream, row.attempt);
  return fmt::format(R"(<a href="../{}">{}</a>)", link_to(path), label);
}

std::string log_cell(const TaskRow& row) {
  if (row.attempt == 0) return R"(<td class="logs">-</td>)";
  return fmt::format(R"(<td class="logs">{}{}</td>)", log_link(row, "stdout", "out"),
                     log_link(row, "stderr", "err"));
}

std::string field_cell(const FieldColumn& column, const Field* field) {
  const std::string text = show_field(column, field);
  if (field != nullptr && field->is_number()) {
    return fmt::format(R"(<td class="n" data-s="{}" title="{}">{}</td>)", html(field->text),
                       html(field->text), html(text));
  }
  return fmt::format("<td{}>{}</td>", column.numeric ? R"( class="n")" : "",
                     html(cut(plain(text), kTextMax)));
}

std::string rest_cell(const TaskRow& row, const std::string& rest) {
  const std::string text = plain(rest);
  const std::string warning =
      row.warning.empty() ? "" : fmt::format(R"(<span class="warn">{}</span> )", html(row.warning));
  return fmt::format(R"(<td class="rest" title="{}">{}{}</td>)", html(cut(text, kRestTitle)),
                     warning, text.empty() && warning.empty() ? "-" : html(cut(text, kRestShown)));
}

std::string id_cell(const std::string& id) {
  return fmt::format(R"(<td class="id">{}</td>)", html(id));
}

/// The table of tasks, row by row, so that not all are in memory.
class HtmlTaskTable {
 public:
  HtmlTaskTable(const GroupDigest& digest, const ReportHead& head);

  [[nodiscard]] std::string head() const { return "<thead><tr>" + headings_ + "</tr></thead>\n"; }
  [[nodiscard]] std::string row(const TaskRow& row) const {
    std::string text = fmt::format(R"(<tr title="{}">)", html(row.id));
    for (const Cells& cells : cells_) text += cells(row);
    return text + "</tr>\n";
  }

 private:
  /// The cells of a row below one heading or several.
  using Cells = std::function<std::string(const TaskRow&)>;
  void add(const std::string& headings, Cells cells) {
    headings_ += headings;
    cells_.push_back(std::move(cells));
  }

  std::string headings_;
  std::vector<Cells> cells_;
};

HtmlTaskTable::HtmlTaskTable(const GroupDigest& digest, const ReportHead& head) {
  std::string keys;
  for (const std::string& key : digest.matrix_keys()) keys += heading(key, false);
  if (keys.empty()) {
    add(heading("Task", false), [](const TaskRow& row) { return id_cell(row.id); });
  } else {
    add(keys, [](const TaskRow& row) {
      std::string text;
      for (const auto& [key, value] : row.matrix) text += id_cell(value);
      return text;
    });
  }
  add(heading("Status", false), [best = digest.best().value_or(Best{}).id](const TaskRow& row) {
    return status_cell(row, !best.empty() && row.id == best);
  });
  const std::vector<FieldColumn> columns = digest.result_columns();
  std::string results;
  for (const FieldColumn& column : columns) results += heading(column.key, column.numeric);
  add(results, [columns](const TaskRow& row) {
    const Fields fields = read_fields(row.result);
    std::string text;
    for (const FieldColumn& column : columns) {
      text += field_cell(column, find_field(fields, column.key));
    }
    return text;
  });
  add(heading("Duration", true), [now = head.now](const TaskRow& row) {
    return duration_cell(duration_of(row, row.pid != 0 ? std::optional(now) : std::nullopt));
  });
  if (digest.stages()) {
    add(heading("Load time", true) + heading("Train time", true), [](const TaskRow& row) {
      return duration_cell(row.times.load) + duration_cell(row.times.train);
    });
  }
  add(heading("Attempts", true), [](const TaskRow& row) {
    return fmt::format(R"(<td class="n">{}</td>)", attempts_text(row));
  });
  add(heading("Peak memory", true), [](const TaskRow& row) {
    return memory_cell(row.memory_peak, memory_peak_text(row), row.memory_requested);
  });
  if (head.machines) {
    add(heading("Machine", false), [](const TaskRow& row) {
      return fmt::format("<td>{}</td>", row.machine.empty() ? "-" : html(row.machine));
    });
  }
  if (digest.any_gpus()) {
    add(heading("GPU", true) + heading("Peak GPU memory", true), [](const TaskRow& row) {
      return fmt::format(R"(<td class="n">{}</td>)", row.gpus.empty() ? "-" : row.gpus) +
             memory_cell(row.gpu_memory_peak, to_text(row.gpu_memory_peak),
                         row.gpu_memory_requested);
    });
  }
  if (digest.any_capped()) {
    add(heading("GPU limit", true), [](const TaskRow& row) {
      return fmt::format(R"(<td class="n" title="{}">{}</td>)", html(row.capped_by), cap_text(row));
    });
  }
  add(heading("CPU time", true), [](const TaskRow& row) {
    return duration_cell(row.attempt > 0 ? std::optional(row.cpu_time) : std::nullopt);
  });
  add(std::string(kLogsHeading), log_cell);
  if (digest.more_than_columns()) {
    add(R"(<th scope="col">Other results</th>)", [columns](const TaskRow& row) {
      return rest_cell(row, rest_as_json(read_fields(row.result), columns));
    });
  }
}

std::string failure_cells(const TaskRow& row) {
  std::string why = row.message.empty() ? "-" : html(row.message);
  if (!row.traceback.empty()) {
    why = fmt::format("<details><summary>{}</summary><pre>{}</pre></details>", why,
                      html(row.traceback));
  }
  return fmt::format(
      R"(<td>{}</td><td><span class="word bad">{}</span></td><td class="why">{}</td>)",
      to_text(row.stage), html(model::word_for(row.standing)), why);
}

std::string warning_cells(const TaskRow& row) {
  return fmt::format(R"(<td><span class="word">{}</span></td><td class="why">{}</td>)",
                     html(model::word_for(row.standing)), html(row.warning));
}

std::string header(const GroupReport& report) {
  const journal::GroupRow& group = report.digest.group();
  const journal::ExecutionRow& execution = report.head.execution;
  std::string text = fmt::format(
      "<header>\n<p class=\"job\">{}</p>\n<div class=\"title\"><h1>{}</h1>"
      "<span class=\"chip {}\">{}</span></div>\n",
      html(report.head.job), html(group.name), chip_look(shown_phase(group)), shown_phase(group));
  text += facts(execution);
  if (!group.message.empty())
    text += fmt::format("<p class=\"cause\">{}</p>\n", html(cause_text(group, group.message)));
  return text + "</header>\n";
}

std::string share_bar(const journal::GroupRow& group) {
  struct Part {
    int count;
    std::string_view look;
    std::string_view word;
  };
  const std::array<Part, 5> parts{
      {{.count = group.finished, .look = "ok", .word = "finished"},
       {.count = group.failed, .look = "bad", .word = "failed"},
       {.count = group.running + group.retrying, .look = "run", .word = "running"},
       {.count = group.skipped + group.not_needed + group.not_selected + group.stopped,
        .look = "off",
        .word = "skipped or stopped"},
       {.count = group.waiting, .word = "waiting"}}};
  std::string text = R"(<div class="share">)";
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    text += fmt::format(R"(<i class="{}" style="flex:{}" title="{} {}"></i>)", part.look,
                        part.count, with_commas(part.count), part.word);
  }
  return text + "</div>\n";
}

std::string tile(std::string_view name, std::string_view value, std::string_view look = "") {
  return fmt::format("<div class=\"tile\"><dt>{}</dt><dd{}>{}</dd></div>\n", name,
                     look.empty() ? "" : fmt::format(R"( class="{}")", look), html(value));
}

std::string tiles(const GroupReport& report) {
  const journal::GroupRow& group = report.digest.group();
  std::string text = "<dl class=\"tiles\">\n" + tile("Total", with_commas(group.tasks)) +
                     tile("Successful", with_commas(group.finished)) +
                     tile("Failed", with_commas(group.failed), group.failed > 0 ? "bad" : "") +
                     tile("Skipped", with_commas(group.skipped));
  if (group.not_needed > 0) text += tile("Not needed", with_commas(group.not_needed));
  if (group.not_selected > 0) text += tile("Not selected", with_commas(group.not_selected));
  if (group.stopped > 0) text += tile("Stopped", with_commas(group.stopped));
  const int open = group.running + group.retrying + group.waiting;
  if (open > 0) text += tile("Not ended yet", with_commas(open));
  const std::optional<Duration> took = report.digest.took();
  text += tile("Took", took ? to_text(*took) : "-");
  if (const std::optional<Best> best = report.digest.best()) {
    text +=
        fmt::format("<div class=\"tile wide\"><dt>Best {}</dt><dd>{}<small>{}</small></dd></div>\n",
                    html(best->key), html(best->text), html(best->id));
  }
  if (const std::optional<Best> before = report.digest.better_before_edit()) {
    text += fmt::format(
        "<div class=\"tile wide\"><dt>Best {} with an earlier command</dt><dd>{}<small>{}</small>"
        "</dd></div>\n",
        html(before->key), html(before->text), html(before->id));
  }
  return text + "</dl>\n";
}

/// Only the outcomes in the picture.
std::string legend(const Timeline& timeline) {
  std::vector<LegendEntry> shown;
  for (const Outcome outcome : {Outcome::Finished, Outcome::OutOfMemory, Outcome::Failed,
                                Outcome::Running, Outcome::Stopped}) {
    const bool is_there = std::ranges::any_of(timeline.bars, [outcome](const Bar& bar) {
      const bool some_finished = outcome == Outcome::Finished && bar.failed < bar.attempts;
      return bar.outcome == outcome || (bar.attempts > 1 && some_finished);
    });
    if (is_there) shown.push_back(legend_of(outcome));
  }
  return legend_of(shown);
}

std::string timeline_section(const GroupReport& report) {
  if (report.attempts.empty()) return {};
  const Timeline timeline = lay_out(report.attempts, {.now = report.head.now,
                                                      .was_stopped = report.was_stopped,
                                                      .by_machine = report.head.machines});
  std::string text = section_top("Timeline", legend(timeline)) + "<div class=\"scroll drawing\">\n";
  text += timeline_svg(timeline, report.samples, report.id_of) + "</div>\n";
  if (timeline.merged) {
    text += page_note(fmt::format("{} in {} bars: adjacent bars in a lane are drawn as one.",
                                  counted(std::ssize(report.attempts), "attempt"),
                                  with_commas(std::ssize(timeline.bars))));
  }
  if (timeline.left_out > 0) {
    text += page_note(fmt::format("{} lanes are drawn; {} are in further lanes.", timeline.lanes,
                                  counted(timeline.left_out, "attempt")));
  }
  return text + "</section>\n";
}

/// A list of tasks with something to say about each.
struct Section {
  std::string_view title;
  int count = 0;
  Which which = Which::Failed;
  /// The titles of the columns between the task and its logs, and their cells.
  std::vector<std::string_view> columns;
  std::string (*cells)(const TaskRow&) = nullptr;
};

Result<void> write_section(GroupReport& report, const Section& section, Sink& sink) {
  if (section.count == 0) return {};
  sink(section_top(section.title));
  if (section.count > kHtmlFailuresMax) {
    sink(page_note(fmt::format("The first {} of {}; the JSON file has all.",
                               with_commas(kHtmlFailuresMax), with_commas(section.count))));
  }
  std::string headings = heading("Task", false);
  for (const std::string_view column : section.columns) headings += heading(column, false);
  sink(fmt::format("<div class=\"scroll tall\"><table>\n<thead><tr>{}{}</tr></thead>\n<tbody>\n",
                   headings, kLogsHeading));
  int rows = 0;
  Result<void> read = report.tasks(section.which, [&](const TaskRow& row) {
    sink(fmt::format("<tr><td class=\"id\" title=\"{0}\">{0}</td>{1}{2}</tr>\n", html(row.id),
                     section.cells(row), log_cell(row)));
    return ++rows < kHtmlFailuresMax;
  });
  sink("</tbody></table></div>\n</section>\n");
  return read;
}

Result<void> write_rows(GroupReport& report, Sink& sink) {
  const HtmlTaskTable table(report.digest, report.head);
  sink(table.head() + "<tbody>\n");
  const bool all = report.digest.group().tasks <= kHtmlRowsMax;
  int rows = 0;
  if (!all) {
    Result<void> read = report.tasks(Which::Failed, [&](const TaskRow& row) {
      sink(table.row(row));
      return ++rows < kHtmlRowsMax;
    });
    if (!read) return read;
  }
  Result<void> read = report.tasks(Which::All, [&](const TaskRow& row) {
    if (rows == kHtmlRowsMax) return false;
    if (!all && row.standing.verdict == model::Verdict::Failed) return true;
    sink(table.row(row));
    return ++rows < kHtmlRowsMax;
  });
  sink("</tbody>\n");
  return read;
}

Result<void> write_tasks(GroupReport& report, Sink& sink) {
  const int tasks = report.digest.group().tasks;
  sink(section_top("Tasks", R"(<input id="filter" type="search" placeholder="Filter tasks" )"
                            R"(aria-label="Filter tasks" hidden>)"));
  if (tasks > kHtmlRowsMax) {
    sink(page_note(fmt::format("{} of {}, failures first; the JSON file has all.",
                               with_commas(kHtmlRowsMax), with_commas(tasks))));
  }
  sink("<div class=\"scroll\"><table id=\"tasks\">\n");
  Result<void> written = write_rows(report, sink);
  sink("</table></div>\n");
  if (report.digest.other_code().count() > 0) {
    sink(page_note(report.digest.other_code().text() + "."));
  }
  sink("</section>\n");
  return written;
}

template <class Rows, class Print>
void write_list(const Rows& rows, Sink& sink, Print print) {
  bool first = true;
  for (const auto& row : rows) {
    sink((first ? "\n" : ",\n") + print(row));
    first = false;
  }
}

}  // namespace

Result<void> write_html(GroupReport& report, Sink& sink) {
  sink(page_top(fmt::format("{} - {}", report.digest.group().name, report.head.job)));
  sink(header(report) + share_bar(report.digest.group()) + tiles(report));
  sink(timeline_section(report) + curves_section("Progress", report.curves));
  if (Result<void> written = write_workers(report, sink); !written) return written;
  for (const Section& section : {Section{.title = "Exceptions",
                                         .count = report.digest.group().failed,
                                         .which = Which::Failed,
                                         .columns = {"Stage", "What", "Message"},
                                         .cells = failure_cells},
                                 Section{.title = "Results missing or changed",
                                         .count = report.digest.warnings(),
                                         .which = Which::Warned,
                                         .columns = {"Status", "Message"},
                                         .cells = warning_cells}}) {
    if (Result<void> written = write_section(report, section, sink); !written) return written;
  }
  if (Result<void> written = write_tasks(report, sink); !written) return written;
  sink(page_bottom(report.head.execution));
  return {};
}

Result<void> write_report_json(GroupReport& report, Sink& sink) {
  const std::optional<Best> best = report.digest.best();
  const std::optional<Best> before = report.digest.better_before_edit();
  const std::optional<Duration> took = report.digest.took();
  sink(fmt::format(
      "{{\"schema\":1,\n\"job\":{},\n\"group\":{},\n\"execution\":{},\n\"took_ms\":{},\n"
      "\"best\":{},\n\"better_before_edit\":{},\n\"tasks\":[",
      json_text(report.head.job), json_of(report.digest.group()), json_of(report.head.execution),
      took ? fmt::format("{}", took->count()) : "null", best ? json_of(*best) : "null",
      before ? json_of(*before) : "null"));
  bool first = true;
  Result<void> read = report.tasks(Which::All, [&](const TaskRow& row) {
    sink((first ? "\n" : ",\n") + json_of(row, report.head.now));
    first = false;
    return true;
  });
  if (!read) return read;
  sink("],\n\"attempts\":[");
  write_list(report.attempts, sink, [&](const journal::AttemptRow& row) {
    return json_of(row, report.id_of(row.key.task));
  });
  sink("],\n\"samples\":[");
  write_list(report.samples, sink, [](const journal::SampleRow& row) { return json_of(row); });
  sink("]}\n");
  return {};
}

}  // namespace trainyard::report
