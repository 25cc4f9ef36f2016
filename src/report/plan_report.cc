#include "report/plan_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "report/html_page.h"
#include "report/planned_time.h"
#include "report/terminal_text.h"
#include "sim/play_run.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPlanReasonsShown = 10;

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1000; }

const model::Shape& shape_of(const model::Plan& plan, std::size_t task) {
  return plan.shape_of(model::TaskIndex{static_cast<std::uint32_t>(task)});
}

/// From when to when a task was on a device.
using Spans = std::vector<std::pair<Instant, Instant>>;

/// How long at least one of them lasted, as a share of all.
double covered(Spans spans, Duration all) {
  std::ranges::sort(spans);
  Duration sum{0};
  Instant until;
  for (const auto& [from, to] : spans) {
    sum += std::max(Duration{0}, to - std::max(from, until));
    until = std::max(until, to);
  }
  return all > Duration{0} ? seconds(sum) / seconds(all) : 0;
}

/// What tasks waited for, and how long any did.
std::vector<std::pair<std::string, Duration>> waits_of(const sim::PlayedRun& run) {
  std::map<std::uint32_t, std::pair<std::string, Instant>> open;
  std::map<std::string, Duration> sums;
  const auto close = [&](std::uint32_t shape, Instant at) {
    const auto found = open.find(shape);
    if (found == open.end()) return;
    sums[found->second.first] += at - found->second.second;
    open.erase(found);
  };
  for (const sim::PlayedWait& wait : run.waits) {
    close(wait.shape.value, wait.at);
    if (wait.reason.empty()) continue;
    open[wait.shape.value] = {wait.brief, wait.at};
  }
  while (!open.empty()) close(open.begin()->first, run.ended);
  std::vector<std::pair<std::string, Duration>> longest(sums.begin(), sums.end());
  std::ranges::sort(longest, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::erase_if(longest, [](const auto& it) { return it.second == Duration{0}; });
  return longest;
}

int finished(const sim::PlayedRun& run) {
  return static_cast<int>(std::ranges::count_if(run.tasks, &sim::PlayedTask::finished));
}

/// "<1" of what is not nothing.
std::string percent(double share) {
  return share > 0 && share < 0.005 ? "<1" : fmt::format("{:.0f}", 100 * share);
}

std::string uses_text(const model::Plan& plan, const PlannedRun& played) {
  std::string text;
  for (const DeviceUse& use : device_uses(plan, played)) {
    text += fmt::format("  {:<8} at work {:>3} % of the time, {:>3} % of it reserved\n", use.name,
                        percent(use.busy), percent(use.filled));
  }
  return text;
}

/// "3:32", "3:32 if sharing a GPU is free, 9:31 if it is not".
std::string took_text(const PlannedRun& played) {
  const Duration took = played.run.ended - Instant{};
  const Duration worst = played.at_the_worst.value_or(took);
  return range_text(took, worst);
}

std::string run_text(const PlanView& view, const PlannedRun& played) {
  if (!played.why_not.empty()) {
    return fmt::format("{}: cannot run it: {}\n", plain(played.machine), plain(played.why_not));
  }
  const int all = static_cast<int>(played.run.tasks.size());
  const int done = finished(played.run);
  std::string text = fmt::format(
      "{}: {} in {}\n", played.machine,
      done == all ? counted(all, "task") : fmt::format("{} of {}", done, counted(all, "task")),
      took_text(played));
  text += uses_text(*view.plan, played);
  const auto waits = waits_of(played.run);
  if (!waits.empty()) text += "  what waited, and how long:\n";
  for (std::size_t i = 0; i < std::min(waits.size(), kPlanReasonsShown); ++i) {
    text += fmt::format("    {}: {}\n", to_text(waits[i].second), waits[i].first);
  }
  return text;
}

std::string comparison(const PlanView& view) {
  std::optional<Duration> first;
  std::string text;
  for (const PlannedRun& played : view.runs) {
    if (!played.why_not.empty()) {
      text += fmt::format("  {:<24} cannot run it\n", played.machine);
      continue;
    }
    const Duration took = played.run.ended - Instant{};
    text += fmt::format("  {:<24} {:>12}", played.machine, to_text(took));
    if (first && took > Duration{0}) {
      text += fmt::format("  {:.2f} x as fast", seconds(*first) / seconds(took));
    }
    if (!first) first = took;
    text += '\n';
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

/// Rows in which no two tasks overlap.
class Rows {
 public:
  std::size_t place(Instant from, Instant to) {
    for (std::size_t row = 0; row < ends_.size(); ++row) {
      if (ends_[row] > from) continue;
      ends_[row] = to;
      return row;
    }
    ends_.push_back(to);
    return ends_.size() - 1;
  }
  [[nodiscard]] std::size_t count() const { return ends_.size(); }

 private:
  std::vector<Instant> ends_;
};

constexpr double kPlanWidth = 1100;
constexpr double kRow = 14;
constexpr double kLabel = 70;

struct Lane {
  std::string name;
  Rows rows;
  std::string boxes;
};

std::string box(double x, double y, double width, std::string_view look, std::string_view title) {
  return fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">)"
                     "<title>{}</title></rect>\n",
                     look, x, y, std::max(width, 0.7), kRow - 2, escaped(title));
}

std::string timeline(const PlanView& view, const PlannedRun& played) {
  const double all = std::max(seconds(played.run.ended - Instant{}), 0.001);
  const auto x = [all](Instant at) {
    return kLabel + (kPlanWidth - kLabel) * seconds(at - Instant{}) / all;
  };
  std::vector<Lane> lanes(played.capacity.gpus.size() + 2);
  for (std::size_t i = 0; i < played.capacity.gpus.size(); ++i) {
    lanes[i].name = "GPU " + played.capacity.gpus[i].label();
  }
  lanes[lanes.size() - 2].name = "CPUs";
  lanes.back().name = "loads, waits";
  std::vector<std::size_t> in_order(played.run.tasks.size());
  std::ranges::generate(in_order, [next = std::size_t{0}]() mutable { return next++; });
  std::ranges::sort(in_order, {}, [&](std::size_t task) {
    return std::pair(played.run.tasks[task].trains, task);
  });
  for (const std::size_t task : in_order) {
    const sim::PlayedTask& it = played.run.tasks[task];
    if (it.attempts == 0) continue;
    const std::string title =
        fmt::format("{}: {} to {}", view.task_ids[task], to_text(it.trains - Instant{}),
                    to_text(it.ended - Instant{}));
    const auto draw = [&](Lane& lane, Instant from, Instant to, std::string_view look) {
      const std::size_t row = lane.rows.place(from, to);
      const std::string look_of_group =
          fmt::format("{} g{}", look, shape_of(*view.plan, task).group.value % 6);
      lane.boxes +=
          box(x(from), static_cast<double>(row) * kRow, x(to) - x(from), look_of_group, title);
    };
    for (const model::GpuIndex gpu : it.gpus) draw(lanes[gpu.value], it.trains, it.ended, "t");
    if (it.gpus.empty()) draw(lanes[lanes.size() - 2], it.trains, it.ended, "t");
    if (it.trains > it.started) draw(lanes.back(), it.started, it.trains, "l");
  }
  double y = 0;
  std::string body;
  for (const Lane& lane : lanes) {
    if (lane.rows.count() == 0) continue;
    body += fmt::format(
        "<text x=\"0\" y=\"{:.1f}\">{}</text><g transform=\"translate(0,{:.1f})\">\n{}</g>\n",
        y + kRow - 3, escaped(lane.name), y, lane.boxes);
    y += static_cast<double>(lane.rows.count()) * kRow + 8;
  }
  for (int part = 0; part <= 4; ++part) {
    const Instant at{Duration{static_cast<std::int64_t>(all * 250 * part)}};
    body +=
        fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                    x(at), y + kRow,
                    part == 0   ? "start"
                    : part == 4 ? "end"
                                : "middle",
                    to_text(at - Instant{}));
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"timeline\">\n{}</svg>\n",
      kPlanWidth, y + kRow + 8, body);
}

}  // namespace

std::vector<DeviceUse> device_uses(const model::Plan& plan, const PlannedRun& played) {
  const Duration all = played.run.ended - Instant{};
  const model::Capacity& capacity = played.capacity;
  std::vector<Spans> on_gpu(capacity.gpus.size());
  std::vector<double> gpu_area(capacity.gpus.size(), 0);
  Spans on_cpus;
  Spans in_memory;
  double cpu_area = 0;
  double memory_area = 0;
  for (std::size_t task = 0; task < played.run.tasks.size(); ++task) {
    const sim::PlayedTask& it = played.run.tasks[task];
    if (it.attempts == 0) continue;
    const model::Request& request = shape_of(plan, task).terms.request;
    for (const model::GpuIndex gpu : it.gpus) {
      on_gpu[gpu.value].emplace_back(it.trains, it.ended);
      const Bytes whole = capacity.gpus[gpu.value].memory;
      const Bytes held = request.gpu_memory == Bytes{} ? whole : request.gpu_memory;
      gpu_area[gpu.value] += seconds(it.ended - it.trains) * static_cast<double>(held.count) /
                             static_cast<double>(whole.count);
    }
    if (request.memory > Bytes{}) in_memory.emplace_back(it.started, it.ended);
    if (request.cpus > model::Cpus{}) on_cpus.emplace_back(it.trains, it.ended);
    cpu_area += seconds(it.ended - it.trains) * static_cast<double>(request.cpus.milli) /
                static_cast<double>(std::max<std::int64_t>(capacity.cpus.milli, 1));
    memory_area += seconds(it.ended - it.started) * static_cast<double>(request.memory.count) /
                   static_cast<double>(std::max<std::int64_t>(capacity.memory.count, 1));
  }
  const double length = std::max(seconds(all), 0.001);
  std::vector<DeviceUse> uses;
  uses.reserve(on_gpu.size() + 2);
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    uses.push_back({.name = "GPU " + capacity.gpus[i].label(),
                    .busy = covered(std::move(on_gpu[i]), all),
                    .filled = gpu_area[i] / length});
  }
  uses.push_back(
      {.name = "CPUs", .busy = covered(std::move(on_cpus), all), .filled = cpu_area / length});
  uses.push_back({.name = "memory",
                  .busy = covered(std::move(in_memory), all),
                  .filled = memory_area / length});
  return uses;
}

std::string plan_text(const PlanView& view) {
  std::string text = plain(view.job) + "\n";
  for (const std::string& note : view.notes) text += plain(note) + "\n";
  for (const PlannedRun& played : view.runs) text += run_text(view, played);
  if (view.runs.size() > 1) text += "\ncompared:\n" + comparison(view);
  return text;
}

std::string plan_json(const PlanView& view) {
  Json runs = Json::array();
  for (const PlannedRun& played : view.runs) {
    if (!played.why_not.empty()) {
      runs.push_back({{"machine", played.machine}, {"why_not", played.why_not}});
      continue;
    }
    Json uses = Json::array();
    for (const DeviceUse& use : device_uses(*view.plan, played)) {
      uses.push_back({{"name", use.name}, {"busy", use.busy}, {"promised", use.filled}});
    }
    Json waits = Json::array();
    for (const auto& [reason, lasted] : waits_of(played.run)) {
      waits.push_back({{"reason", reason}, {"waited_ms", lasted.count()}});
    }
    Json tasks = Json::array();
    for (std::size_t task = 0; task < played.run.tasks.size(); ++task) {
      const sim::PlayedTask& it = played.run.tasks[task];
      if (it.attempts == 0) continue;
      Json gpus = Json::array();
      for (const model::GpuIndex gpu : it.gpus)
        gpus.push_back(played.capacity.gpus[gpu.value].label());
      tasks.push_back({{"id", view.task_ids[task]},
                       {"started_ms", it.started.since_start.count()},
                       {"trains_ms", it.trains.since_start.count()},
                       {"ended_ms", it.ended.since_start.count()},
                       {"gpus", gpus},
                       {"attempts", it.attempts}});
    }
    runs.push_back({{"machine", played.machine},
                    {"makespan_ms", played.run.ended.since_start.count()},
                    {"makespan_at_the_worst_ms",
                     played.at_the_worst.value_or(played.run.ended - Instant{}).count()},
                    {"finished", finished(played.run)},
                    {"devices", uses},
                    {"waits", waits},
                    {"tasks", tasks}});
  }
  const Json whole{{"job", view.job}, {"notes", view.notes}, {"runs", runs}};
  return text::readable_json(whole);
}

std::string plan_html(const PlanView& view) {
  std::string body = fmt::format("<h1>{}: the plan</h1>\n", escaped(view.job));
  for (const std::string& note : view.notes) body += fmt::format("<p>{}</p>\n", escaped(note));
  for (const PlannedRun& played : view.runs) {
    body += fmt::format("<h2>{}: {}</h2>\n", escaped(played.machine),
                        played.why_not.empty() ? took_text(played) : "cannot run it");
    if (!played.why_not.empty()) {
      body += fmt::format("<p>{}</p>\n", escaped(played.why_not));
      continue;
    }
    body += timeline(view, played);
    body += "<table><tr><th>device</th><th>at work</th><th>reserved</th></tr>\n";
    for (const DeviceUse& use : device_uses(*view.plan, played)) {
      body += fmt::format("<tr><td>{}</td><td>{:.0f} %</td><td>{:.0f} %</td></tr>\n", use.name,
                          100 * use.busy, 100 * use.filled);
    }
    body += "</table>\n";
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{}: the plan</title>"
      "<style>{}</style></head><body>\n{}</body></html>\n",
      escaped(view.job), kPlanStyle, body);
}

}  // namespace trainyard::report
