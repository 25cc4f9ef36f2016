#include "tell/report_mail.h"

#include <algorithm>
#include <expected>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "report/group_report.h"
#include "report/group_source.h"
#include "report/html.h"
#include "report/sink.h"
#include "report/status_text.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"

namespace trainyard::tell {
namespace {

/// "train: 17 of 18 tasks finished, 1 failed, in 2h5m".
std::string group_line(const journal::GroupRow& group, std::optional<Duration> took) {
  std::string line =
      fmt::format("{}: {} of {} finished", group.name, report::with_commas(group.finished),
                  report::counted(group.tasks, "task"));
  for (const auto& [count, word] :
       {std::pair{group.failed, "failed"}, std::pair{group.skipped, "skipped"},
        std::pair{group.stopped, "stopped"}}) {
    if (count > 0) line += fmt::format(", {} {}", report::with_commas(count), word);
  }
  return took ? fmt::format("{}, in {}", line, to_text(*took)) : line;
}

/// The page of a group, as far as there is room for all of it.
struct Page {
  std::optional<std::string> html;
  std::string line;
};

Result<Page> page_of(journal::JournalReader& reader, const journal::GroupRow& group,
                     const report::ReportBasis& basis, std::size_t bytes_max) {
  std::string html;
  bool whole = true;
  const Result<report::GroupFigures> figures =
      report::with_report(reader, group, basis, [&](report::GroupReport& report) {
        report::Sink sink = [&](std::string_view text) {
          whole = whole && html.size() + text.size() <= bytes_max;
          if (whole) html += text;
        };
        return report::write_html(report, sink);
      });
  if (!figures) return std::unexpected(figures.error());
  Page page{.html = std::nullopt, .line = group_line(group, figures->digest.took())};
  if (whole) page.html = std::move(html);
  return page;
}

/// The name of a file in a header of a mail, of which not every server takes another letter.
std::string in_ascii(std::string name) {
  constexpr unsigned char kLast = 0x7e;
  std::ranges::replace_if(
      name, [](char letter) { return static_cast<unsigned char>(letter) > kLast; }, '_');
  return name;
}

/// "trainyard train report", of several groups "trainyard digits report: 3 groups".
std::string report_subject(const std::string& job, const std::vector<std::string>& groups) {
  if (groups.size() == 1) return fmt::format("trainyard {} report", groups.front());
  return fmt::format("trainyard {} report: {} groups", job, groups.size());
}

}  // namespace

Result<Mail> report_mail(journal::JournalReader& reader, const RunName& run,
                         const ReportWish& wish) {
  const Result<report::ReportBasis> basis = report::read_basis(reader);
  if (!basis) return std::unexpected(basis.error());
  const Result<std::vector<journal::GroupRow>> rows = reader.groups();
  if (!rows) return std::unexpected(rows.error());
  Mail mail;
  std::vector<std::string> names;
  std::string left_out;
  std::size_t room = wish.pages_bytes_max;
  for (const journal::GroupRow& row : *rows) {
    if (std::ranges::find(wish.groups, row.index) == wish.groups.end()) continue;
    Result<Page> made = page_of(reader, row, *basis, room);
    if (!made) return std::unexpected(std::move(made.error()).in(row.name));
    Page& page = *made;
    names.push_back(row.name);
    mail.text += page.line + "\n";
    const std::string file = run::report_name(row.name) + ".html";
    if (!page.html) {
      left_out += fmt::format(
          "The report of {} is too long for a mail; when the run has ended it is {}/{}\n", row.name,
          run::reports_directory(run.directory), file);
      continue;
    }
    room -= page.html->size();
    mail.pages.push_back({.name = in_ascii(file), .html = std::move(*page.html)});
  }
  mail.subject = report_subject(run.job, names);
  mail.text = fmt::format("{} on {}\n{}\n\n{}{}", run.job, run.host,
                          report::run_line(run.number, run.directory), mail.text, left_out);
  return mail;
}

}  // namespace trainyard::tell
