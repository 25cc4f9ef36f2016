#include "report/workers_section.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "journal/reader.h"
#include "report/html.h"
#include "report/html_text.h"
#include "report/terminal_text.h"
#include "report/workers_picture.h"

namespace trainyard::report {
namespace {

constexpr std::size_t kTotalsShown = 20;

constexpr std::array<LegendEntry, 5> kLegend{
    {{.look = "run", .word = "starts"},
     {.look = "ok", .word = "running"},
     {.look = "oom", .word = "at a barrier, or until all are ready"},
     {.look = "bad", .word = "for room in a full queue; or its end, where it failed"},
     {.look = "off", .word = "for an event"}}};

struct TotalOf {
  int node = 0;
  std::size_t place = 0;  ///< The index among all, in the order of the record.
  const wire::WaitTotal* total = nullptr;
};

/// The longest total first.
std::vector<TotalOf> longest_totals(const wire::ParallelRecord& record) {
  std::vector<TotalOf> all;
  for (const wire::WorkerRecord& worker : record.workers) {
    for (const wire::WaitTotal& total : worker.totals) {
      all.push_back({.node = worker.node, .place = all.size(), .total = &total});
    }
  }
  std::ranges::sort(all, {},
                    [](const TotalOf& it) { return std::pair(-it.total->waited_ms, it.place); });
  return all;
}

std::string table_of_waits(const wire::ParallelRecord& record) {
  const std::vector<TotalOf> all = longest_totals(record);
  if (all.empty()) return {};
  std::string text =
      "<div class=\"scroll\"><table class=\"waits\">\n<thead><tr><th>Who waited</th><th>For "
      "whom</th><th>What for</th><th class=\"n\">How long</th><th class=\"n\">Times</th></tr>"
      "</thead>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(all.size(), kTotalsShown); ++i) {
    const wire::WaitTotal& total = *all[i].total;
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        html(name_of_worker(record, all[i].node)), html(whom_text(record, total.whom)),
        html(what_text(total.kind, total.name)), html(wait_text(total.waited_ms)),
        with_commas(static_cast<std::int64_t>(total.count)));
  }
  text += "</tbody></table></div>\n";
  if (all.size() > kTotalsShown) {
    text += fmt::format("<p class=\"note\">The first {} of {}.</p>\n", kTotalsShown,
                        with_commas(std::ssize(all)));
  }
  return text;
}

std::string notes_of(const wire::ParallelRecord& record) {
  std::string text;
  const auto note = [&text](const std::string& what) {
    text += fmt::format("<p class=\"note\">{}</p>\n", what);
  };
  if (record.workers.size() > kWorkerRowsMax) {
    note(fmt::format("{} workers are drawn, of {}.", kWorkerRowsMax,
                     with_commas(std::ssize(record.workers))));
  }
  std::uint64_t lives = 0;
  std::int64_t beside = 0;
  for (const wire::WorkerRecord& worker : record.workers) {
    lives += worker.lives_left_out;
    beside += worker.waited_beside_ms;
  }
  if (lives > 0) {
    note(fmt::format("{} are left out, the first ones of workers that began again very often.",
                     counted(static_cast<std::int64_t>(lives), "life")));
  }
  if (beside > 0) {
    note(fmt::format("{} more were waited for events of too many names.", html(wait_text(beside))));
  }
  return text;
}

}  // namespace

std::string workers_section(const std::string& of, const wire::ParallelRecord& record) {
  std::string text = fmt::format("<section>\n<div class=\"bar\"><h2>Workers of {}</h2>{}</div>\n",
                                 html(of), legend_of(kLegend));
  text += "<div class=\"scroll drawing\">\n" + workers_svg(record) + "</div>\n";
  return text + table_of_waits(record) + notes_of(record) + "</section>\n";
}

Result<void> write_workers(GroupReport& report, Sink& sink) {
  if (!report.record_of) return {};
  int looked = 0;
  int shown = 0;
  int more = 0;
  Result<void> read = report.tasks(Which::All, [&](const journal::TaskRow& row) {
    if (row.attempt == 0) return ++looked < kHtmlRowsMax;
    const auto record = report.record_of(row);
    if (!record) {
      sink(
          fmt::format("<section>\n<div class=\"bar\"><h2>Workers of {}</h2></div>\n<p "
                      "class=\"note\">What they waited for cannot be shown: {}.</p>\n</section>\n",
                      html(row.id), html(record.error().message)));
      ++shown;
    } else if (*record && (*record)->workers.empty()) {
      // It has not begun yet.
    } else if (*record && shown < kWorkerPicturesMax) {
      sink(workers_section(row.id, **record));
      ++shown;
    } else if (*record) {
      ++more;
    }
    return ++looked < kHtmlRowsMax;
  });
  if (more > 0) {
    sink(
        fmt::format("<section>\n<p class=\"note\">The workers of {} more are in workers.json of "
                    "their directories.</p>\n</section>\n",
                    counted(more, "task")));
  }
  return read;
}

}  // namespace trainyard::report
