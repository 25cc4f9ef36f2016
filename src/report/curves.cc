#include "report/curves.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "report/result_fields.h"

namespace trainyard::report {

bool Curves::look_at(const journal::ProgressRow& row, const std::string& id) {
  if (task_ != row.task) {
    if (std::ssize(tasks_) == kTasksMax) return false;
    task_ = row.task;
    tasks_.push_back({.id = id, .first = row.at, .said = {}});
  }
  OfTask& task = tasks_.back();
  for (const Field& field : read_fields(row.values)) {
    if (field.kind != FieldKind::Integer && field.kind != FieldKind::Decimal) continue;
    auto key = std::ranges::find(keys_, field.key);
    if (key == keys_.end()) {
      if (std::ssize(keys_) == kKeysMax) continue;
      key = keys_.insert(keys_.end(), field.key);
    }
    task.said.push_back({.key = static_cast<std::size_t>(key - keys_.begin()),
                         .fraction = row.fraction,
                         .since_first = row.at - task.first,
                         .value = field.number});
  }
  return true;
}

std::vector<Curve> Curves::take() const {
  std::vector<Curve> curves;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    Curve curve{.key = keys_[key], .lines = {}, .from = {}, .to = {}};
    bool over_time = false;
    for (const OfTask& task : tasks_) {
      over_time = over_time || std::ranges::any_of(task.said, [key](const Said& said) {
                    return said.key == key && !said.fraction;
                  });
    }
    bool drawn = false;
    double from = std::numeric_limits<double>::max();
    double to = 0;
    for (const OfTask& task : tasks_) {
      CurveLine line{.id = task.id, .points = {}};
      for (const Said& said : task.said) {
        if (said.key != key) continue;
        const double seconds = static_cast<double>(said.since_first.count()) / 1000;
        const double x = over_time ? seconds : said.fraction.value_or(0);
        line.points.push_back({.x = x, .y = said.value, .name = {}});
        from = std::min(from, x);
        to = std::max(to, x);
      }
      drawn = drawn || line.points.size() > 1;
      if (!line.points.empty()) curve.lines.push_back(std::move(line));
    }
    const auto end = [over_time](double x) {
      return over_time ? fmt::format("{:.0f} s", x) : fmt::format("{:.0f} %", 100 * x);
    };
    curve.from = end(from);
    curve.to = end(to);
    if (drawn) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace trainyard::report
