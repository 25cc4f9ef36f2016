#include "report/overview.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "report/digest.h"
#include "report/html_page.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

const NumberOfGroup* find_number(const OverviewRow& row, const std::string& key) {
  const auto found = std::ranges::find(row.numbers, key, &NumberOfGroup::key);
  return found == row.numbers.end() ? nullptr : &*found;
}

/// The keys that at least two groups have, in the order of their first appearance.
std::vector<std::string> common_keys(std::span<const OverviewRow> rows) {
  std::vector<std::string> seen;
  std::vector<std::string> common;
  const auto holds = [](const std::vector<std::string>& keys, const std::string& key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  for (const OverviewRow& row : rows) {
    for (const NumberOfGroup& number : row.numbers) {
      if (!holds(seen, number.key)) {
        seen.push_back(number.key);
      } else if (!holds(common, number.key)) {
        common.push_back(number.key);
      }
    }
  }
  return common;
}

Curve curve_of(const std::string& key, std::span<const OverviewRow> rows) {
  Curve curve{.key = key};
  CurveLine mean{.id = "mean"};
  CurveLine least{.id = "least"};
  CurveLine most{.id = "most"};
  bool spread = false;
  double x = 0;
  for (const OverviewRow& row : rows) {
    const NumberOfGroup* const number = find_number(row, key);
    if (number == nullptr) continue;
    const double value = number->sum / number->count;
    const std::string name = fmt::format("{}: {:.4g}", row.group.name, value);
    mean.points.push_back({.x = x, .y = value, .name = name});
    least.points.push_back({.x = x, .y = number->least});
    most.points.push_back({.x = x, .y = number->most});
    spread = spread || number->least < number->most;
    if (curve.from.empty()) curve.from = row.group.name;
    curve.to = row.group.name;
    ++x;
  }
  if (spread) {
    curve.lines.push_back(std::move(least));
    curve.lines.push_back(std::move(most));
  }
  curve.lines.push_back(std::move(mean));
  return curve;
}

std::string row_html(const OverviewRow& row) {
  const std::string best = row.best ? fmt::format("{} {}", row.best->key, row.best->text) : "-";
  const std::string edited = row.edited == 0 ? "" : fmt::format(" ({} edited since)", row.edited);
  return fmt::format(
      "<tr><td class=\"id\"><a href=\"{}\">{}</a></td><td><span class=\"chip {}\">{}</span></td>"
      "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
      "<td>{}</td></tr>\n",
      link_to(row.link), html(row.group.name), chip_look(shown_phase(row.group)),
      shown_phase(row.group), with_commas(row.group.tasks),
      with_commas(row.group.finished) + edited, with_commas(row.group.failed),
      row.took ? to_text(*row.took) : "-", html(best));
}

}  // namespace

void NumbersOfGroup::look_at(const Fields& fields) {
  for (const Field& field : fields) {
    if (!field.is_number()) continue;
    auto number = std::ranges::find(numbers_, field.key, &NumberOfGroup::key);
    if (number == numbers_.end()) {
      if (numbers_.size() == FieldColumns::kKeysMax) continue;
      number = numbers_.insert(numbers_.end(),
                               {.key = field.key, .least = field.number, .most = field.number});
    }
    ++number->count;
    number->sum += field.number;
    number->least = std::min(number->least, field.number);
    number->most = std::max(number->most, field.number);
  }
}

std::vector<Curve> curves_over_groups(std::span<const OverviewRow> rows) {
  std::vector<std::string> keys = common_keys(rows);
  const auto is_score = [](const std::string& key) {
    return is_accuracy(key) || score_direction(key).has_value();
  };
  if (std::ranges::any_of(keys, is_score)) std::erase_if(keys, std::not_fn(is_score));
  keys.resize(std::min(keys.size(), kOverviewCurvesMax));
  std::vector<Curve> curves;
  curves.reserve(keys.size());
  for (const std::string& key : keys) curves.push_back(curve_of(key, rows));
  return curves;
}

void write_overview(const ReportHead& head, std::span<const OverviewRow> rows, Sink& sink) {
  const std::size_t left_out = rows.size() - std::min(rows.size(), kOverviewGroupsMax);
  const std::span<const OverviewRow> shown = rows.subspan(left_out);
  sink(page_top(head.job) + "<header>\n<div class=\"title\"><h1>" + html(head.job) +
       "</h1></div>\n" + facts(head.execution) + "</header>\n");
  sink(curves_section("From group to group", curves_over_groups(shown)));
  sink(section_top("Groups"));
  if (left_out > 0) {
    sink(page_note(fmt::format("The last {} of {}.", with_commas(std::ssize(shown)),
                               with_commas(std::ssize(rows)))));
  }
  sink(
      "<div class=\"scroll\"><table>\n<thead><tr><th>Group</th><th>State</th>"
      "<th class=\"n\">Tasks</th><th class=\"n\">Finished</th><th class=\"n\">Failed</th>"
      "<th class=\"n\">Took</th><th>Best</th></tr></thead>\n<tbody>\n");
  for (const OverviewRow& row : shown) sink(row_html(row));
  sink("</tbody>\n</table></div>\n</section>\n" + page_bottom(head.execution));
}

}  // namespace trainyard::report
