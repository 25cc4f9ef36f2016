#include "report/plan_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/list_text.h"
#include "model/ids.h"
#include "model/waiting.h"
#include "report/html_page.h"
#include "report/planned_time.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

/// The use of a resource, from 0 to 1 of the whole run.
struct DeviceUse {
  std::string name;   ///< "GPU 0", "CPUs", "memory"; "GPUs" of several machines.
  double busy = 0;    ///< The fraction of time with at least one task on it.
  double filled = 0;  ///< The fraction that was reserved.
};

using Json = nlohmann::ordered_json;

constexpr std::size_t kPlanReasonsShown = 10;

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1000; }

const model::Shape& shape_of(const model::Plan& plan, std::size_t task) {
  return plan.shape_of(model::TaskIndex{static_cast<std::uint32_t>(task)});
}

/// From when to when a task was on a device.
using Spans = std::vector<std::pair<Instant, Instant>>;

/// The time during which at least one of them lasted.
Duration union_of(Spans spans) {
  std::ranges::sort(spans);
  Duration sum{0};
  Instant until;
  for (const auto& [from, to] : spans) {
    sum += std::max(Duration{0}, to - std::max(from, until));
    until = std::max(until, to);
  }
  return sum;
}

/// union_of() as a share of all.
double covered(Spans spans, Duration all) {
  return all > Duration{0} ? seconds(union_of(std::move(spans))) / seconds(all) : 0;
}

/// A reason for which tasks waited, and the time in which at least one task waited for it.
struct Waited {
  std::string reason;
  model::Cause cause = model::Cause::None;
  Duration lasted{0};
};

std::vector<Waited> waits_of(const plan::PlayedRun& run) {
  std::map<std::uint32_t, const plan::PlayedWait*> open;
  std::map<std::string, std::pair<model::Cause, Spans>> spans;
  const auto close = [&](std::uint32_t shape, Instant at) {
    const auto found = open.find(shape);
    if (found == open.end()) return;
    const plan::PlayedWait& wait = *found->second;
    auto& [cause, its] = spans[wait.brief];
    cause = wait.cause;
    its.emplace_back(wait.at, at);
    open.erase(found);
  };
  for (const plan::PlayedWait& wait : run.waits) {
    close(wait.shape.value, wait.at);
    if (wait.reason.empty()) continue;
    open[wait.shape.value] = &wait;
  }
  while (!open.empty()) close(open.begin()->first, run.ended);
  std::vector<Waited> longest;
  for (auto& [reason, why] : spans) {
    longest.push_back(
        {.reason = reason, .cause = why.first, .lasted = union_of(std::move(why.second))});
  }
  std::ranges::sort(longest, [](const Waited& left, const Waited& right) {
    return left.lasted == right.lasted ? left.reason < right.reason : left.lasted > right.lasted;
  });
  std::erase_if(longest, [](const Waited& it) { return it.lasted == Duration{0}; });
  return longest;
}

/// The number of the first machine of a kind.
std::uint32_t first_machine(const PlannedRun& played, std::size_t kind) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < kind; ++i) first += played.kinds[i].machines;
  return first;
}

std::uint32_t count_machines(const PlannedRun& played) {
  return first_machine(played, played.kinds.size());
}

/// On how many machines of a kind a task was.
std::size_t count_used(const PlannedRun& played, std::size_t kind) {
  const std::uint32_t first = first_machine(played, kind);
  std::set<std::uint32_t> used;
  for (const plan::PlayedTask& task : played.run.tasks) {
    const std::uint32_t machine = task.machine.value;
    const bool its_kind = machine >= first && machine - first < played.kinds[kind].machines;
    if (task.attempts > 0 && its_kind) used.insert(machine);
  }
  return used.size();
}

std::vector<DeviceUse> uses_of_machine(const PlannedRun& played, const model::Capacity& capacity,
                                       model::MachineIndex machine) {
  const plan::PlayedRun& run = played.run;
  const Duration all = run.ended - Instant{};
  std::vector<Spans> on_gpu(capacity.gpus.size());
  std::vector<double> gpu_area(capacity.gpus.size(), 0);
  Spans on_cpus;
  Spans in_memory;
  double cpu_area = 0;
  double memory_area = 0;
  for (std::size_t task = 0; task < run.tasks.size(); ++task) {
    const plan::PlayedTask& it = run.tasks[task];
    if (it.attempts == 0 || it.machine != machine) continue;
    const model::Request& request = shape_of(*played.plan, task).terms.request;
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

/// The use of each device of a machine. For several machines, the mean over all devices of a kind.
std::vector<DeviceUse> device_uses(const PlannedRun& played, std::size_t kind) {
  const PlannedKind& of = played.kinds[kind];
  const std::uint32_t first = first_machine(played, kind);
  if (of.machines == 1) return uses_of_machine(played, of.capacity, {first});
  std::vector<DeviceUse> means;
  const double gpus = of.machines * static_cast<double>(of.capacity.gpus.size());
  if (gpus > 0) means.push_back({.name = "GPUs"});
  means.push_back({.name = "CPUs"});
  means.push_back({.name = "memory"});
  for (std::uint32_t i = 0; i < of.machines; ++i) {
    for (const DeviceUse& use : uses_of_machine(played, of.capacity, {first + i})) {
      const bool is_gpu = use.name.starts_with("GPU");
      const auto mean = std::ranges::find(means, is_gpu ? "GPUs" : use.name, &DeviceUse::name);
      const double part = 1 / (is_gpu ? gpus : of.machines);
      mean->busy += part * use.busy;
      mean->filled += part * use.filled;
    }
  }
  return means;
}

int finished(const plan::PlayedRun& run) {
  return static_cast<int>(std::ranges::count_if(run.tasks, &plan::PlayedTask::finished));
}

/// "<1" for a small share that is not 0.
std::string percent(double share) {
  return share > 0 && share < 0.005 ? "<1" : fmt::format("{:.0f}", 100 * share);
}

/// Names the part of a device that tasks reserve.
std::string_view reservable(std::string_view device) {
  if (device == "GPUs") return "their memory";
  if (device.starts_with("GPU")) return "its memory";
  return device == "CPUs" ? "the CPUs" : "the memory";
}

std::string uses_text(const PlannedRun& played) {
  const bool one = count_machines(played) == 1;
  std::string text;
  for (std::size_t kind = 0; kind < played.kinds.size(); ++kind) {
    const PlannedKind& of = played.kinds[kind];
    if (!one) {
      text += fmt::format("  {}: tasks ran on {} of {}\n", of.text, count_used(played, kind),
                          counted(static_cast<int>(of.machines), "machine"));
    }
    for (const DeviceUse& use : device_uses(played, kind)) {
      text += fmt::format(
          "  {}{:<8} with tasks {:>3} % of the time; {:>3} % of {} reserved on average\n",
          one ? "" : "  ", use.name, percent(use.busy), percent(use.filled), reservable(use.name));
    }
  }
  return text;
}

/// "3m32s", "3m32s, or 9m31s if tasks that share a GPU slow each other down".
std::string took_text(const PlannedRun& played) {
  const Duration took = played.run.ended - Instant{};
  const Duration worst = played.at_the_worst.value_or(took);
  return range_text(took, worst);
}

/// "train/a, train/b, train/c and 2 more", of the tasks that do not finish.
std::string unfinished_names(const PlanView& view, const plan::PlayedRun& run, bool started) {
  constexpr std::size_t kNamedMax = 3;
  std::vector<std::string_view> ids;
  for (std::size_t i = 0; i < run.tasks.size(); ++i) {
    if (run.tasks[i].finished || (run.tasks[i].attempts > 0) != started) continue;
    ids.emplace_back(view.task_ids[i]);
  }
  return plain(short_list_text(ids, kNamedMax));
}

/// The tasks that do not finish, and the reasons.
std::string unfinished_text(const PlanView& view, const plan::PlayedRun& run) {
  std::string text;
  if (const std::string names = unfinished_names(view, run, true); !names.empty()) {
    text += fmt::format("  does not finish: {} (exceeds the time limit or the memory)\n", names);
  }
  if (const std::string names = unfinished_names(view, run, false); !names.empty()) {
    text += fmt::format(
        "  does not start: {} (a task that it needs does not finish, or 'if' does not hold)\n",
        names);
  }
  return text;
}

std::string run_text(const PlanView& view, const PlannedRun& played) {
  if (!played.why_not.empty()) {
    return fmt::format("{}: cannot run it: {}\n", plain(played.machine), plain(played.why_not));
  }
  const int all = static_cast<int>(played.run.tasks.size());
  const int done = finished(played.run);
  std::string text =
      fmt::format("{}: {} in {}\n", played.machine,
                  done == all ? counted(all, "task")
                              : fmt::format("{} of {} finish", done, counted(all, "task")),
                  took_text(played));
  text += unfinished_text(view, played.run);
  text += uses_text(played);
  const auto waits = waits_of(played.run);
  if (!waits.empty()) text += "  time during which tasks wait, by reason:\n";
  for (std::size_t i = 0; i < std::min(waits.size(), kPlanReasonsShown); ++i) {
    text += fmt::format("    {}: {}\n", to_text(waits[i].lasted), waits[i].reason);
  }
  return text;
}

std::string comparison(const PlanView& view) {
  int width = 0;
  for (const PlannedRun& played : view.runs) width = std::max(width, columns_of(played.machine));
  std::optional<Duration> first;
  std::string text;
  for (const PlannedRun& played : view.runs) {
    if (!played.why_not.empty()) {
      text += fmt::format("  {}  cannot run it\n", pad_right(played.machine, width));
      continue;
    }
    const Duration took = played.run.ended - Instant{};
    text += fmt::format("  {}  {:>8}", pad_right(played.machine, width), to_text(took));
    if (first && took > Duration{0}) {
      text += fmt::format("  {:.2f} x the speed of the first", seconds(*first) / seconds(took));
    }
    if (!first) first = took;
    text += '\n';
  }
  return text;
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
                     look, x, y, std::max(width, 0.7), kRow - 2, html(title));
}

/// Lanes of each machine, one for each GPU and one for the CPUs, then one for all loading tasks.
/// `firsts` gets the index of each machine's first lane, then the index after the last machine.
std::vector<Lane> lanes_of(const PlannedRun& played, std::vector<std::size_t>& firsts) {
  const bool one = count_machines(played) == 1;
  std::vector<Lane> lanes;
  const auto add = [&](std::string name) {
    const std::string machine = one ? "" : fmt::format("{}: ", firsts.size() - 1);
    lanes.push_back({.name = machine + std::move(name)});
  };
  for (const PlannedKind& kind : played.kinds) {
    for (std::uint32_t i = 0; i < kind.machines; ++i) {
      firsts.push_back(lanes.size());
      for (const model::Gpu& gpu : kind.capacity.gpus) add("GPU " + gpu.label());
      add("CPUs");
    }
  }
  firsts.push_back(lanes.size());
  lanes.push_back({.name = "loads, waits"});
  return lanes;
}

std::string timeline(const PlanView& view, const PlannedRun& played) {
  const double all = std::max(seconds(played.run.ended - Instant{}), 0.001);
  const auto x = [all](Instant at) {
    return kLabel + (kPlanWidth - kLabel) * seconds(at - Instant{}) / all;
  };
  std::vector<std::size_t> firsts;  // By machine: its first lane.
  std::vector<Lane> lanes = lanes_of(played, firsts);
  std::vector<std::size_t> in_order(played.run.tasks.size());
  std::ranges::generate(in_order, [next = std::size_t{0}]() mutable { return next++; });
  std::ranges::sort(in_order, {}, [&](std::size_t task) {
    return std::pair(played.run.tasks[task].trains, task);
  });
  for (const std::size_t task : in_order) {
    const plan::PlayedTask& it = played.run.tasks[task];
    if (it.attempts == 0) continue;
    const std::string title =
        fmt::format("{}: {} to {}", view.task_ids[task], to_text(it.trains - Instant{}),
                    to_text(it.ended - Instant{}));
    const auto draw = [&](Lane& lane, Instant from, Instant to, std::string_view look) {
      const std::size_t row = lane.rows.place(from, to);
      const std::string look_of_group =
          fmt::format("{} g{}", look, shape_of(*played.plan, task).group.value % 6);
      lane.boxes +=
          box(x(from), static_cast<double>(row) * kRow, x(to) - x(from), look_of_group, title);
    };
    const std::size_t first = firsts[it.machine.value];
    for (const model::GpuIndex gpu : it.gpus) {
      draw(lanes[first + gpu.value], it.trains, it.ended, "t");
    }
    if (it.gpus.empty()) draw(lanes[firsts[it.machine.value + 1] - 1], it.trains, it.ended, "t");
    if (it.trains > it.started) draw(lanes.back(), it.started, it.trains, "l");
  }
  double y = 0;
  std::string body;
  for (const Lane& lane : lanes) {
    if (lane.rows.count() == 0) continue;
    body += fmt::format(
        "<text x=\"0\" y=\"{:.1f}\">{}</text><g transform=\"translate(0,{:.1f})\">\n{}</g>\n",
        y + kRow - 3, html(lane.name), y, lane.boxes);
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

std::string plan_text(const PlanView& view) {
  std::string text = plain(view.job) + "\n";
  for (const std::string& note : view.notes) text += plain(note) + "\n";
  for (const PlannedRun& played : view.runs) text += run_text(view, played);
  if (view.runs.size() > 1) text += "\ncompared:\n" + comparison(view);
  return text;
}

namespace {

const model::Capacity& capacity_of(const PlannedRun& played, model::MachineIndex machine) {
  std::size_t kind = 0;
  while (first_machine(played, kind + 1) <= machine.value) ++kind;
  return played.kinds[kind].capacity;
}

Json uses_json(const PlannedRun& played, std::size_t kind) {
  Json uses = Json::array();
  for (const DeviceUse& use : device_uses(played, kind)) {
    uses.push_back({{"name", use.name}, {"busy", use.busy}, {"promised", use.filled}});
  }
  return uses;
}

}  // namespace

std::string plan_json(const PlanView& view) {
  Json runs = Json::array();
  for (const PlannedRun& played : view.runs) {
    if (!played.why_not.empty()) {
      runs.push_back({{"machine", played.machine}, {"why_not", played.why_not}});
      continue;
    }
    Json kinds = Json::array();
    for (std::size_t kind = 0; kind < played.kinds.size(); ++kind) {
      kinds.push_back({{"kind", played.kinds[kind].text},
                       {"machines", played.kinds[kind].machines},
                       {"used", count_used(played, kind)},
                       {"devices", uses_json(played, kind)}});
    }
    Json waits = Json::array();
    for (const Waited& it : waits_of(played.run)) {
      waits.push_back({{"cause", model::to_text(it.cause)},
                       {"reason", it.reason},
                       {"waited_ms", it.lasted.count()}});
    }
    Json tasks = Json::array();
    for (std::size_t task = 0; task < played.run.tasks.size(); ++task) {
      const plan::PlayedTask& it = played.run.tasks[task];
      if (it.attempts == 0) continue;
      Json gpus = Json::array();
      for (const model::GpuIndex gpu : it.gpus)
        gpus.push_back(capacity_of(played, it.machine).gpus[gpu.value].label());
      tasks.push_back({{"id", view.task_ids[task]},
                       {"started_ms", it.started.since_start.count()},
                       {"trains_ms", it.trains.since_start.count()},
                       {"ended_ms", it.ended.since_start.count()},
                       {"machine", it.machine.value},
                       {"gpus", gpus},
                       {"attempts", it.attempts}});
    }
    runs.push_back({{"machine", played.machine},
                    {"makespan_ms", played.run.ended.since_start.count()},
                    {"makespan_at_the_worst_ms",
                     played.at_the_worst.value_or(played.run.ended - Instant{}).count()},
                    {"finished", finished(played.run)},
                    {"devices", played.kinds.size() == 1 ? uses_json(played, 0) : Json(nullptr)},
                    {"kinds", kinds},
                    {"waits", waits},
                    {"tasks", tasks}});
  }
  const Json whole{{"job", view.job}, {"notes", view.notes}, {"runs", runs}};
  return text::readable_json(whole);
}

std::string plan_html(const PlanView& view) {
  std::string body = fmt::format("<h1>{}: the plan</h1>\n", html(view.job));
  for (const std::string& note : view.notes) body += fmt::format("<p>{}</p>\n", html(note));
  for (const PlannedRun& played : view.runs) {
    body += fmt::format("<h2>{}: {}</h2>\n", html(played.machine),
                        played.why_not.empty() ? took_text(played) : "cannot run it");
    if (!played.why_not.empty()) {
      body += fmt::format("<p>{}</p>\n", html(played.why_not));
      continue;
    }
    body += timeline(view, played);
    body += "<table><tr><th>device</th><th>with tasks</th><th>reserved on average</th></tr>\n";
    for (std::size_t kind = 0; kind < played.kinds.size(); ++kind) {
      const std::string of =
          count_machines(played) == 1 ? "" : html(played.kinds[kind].text) + ": ";
      for (const DeviceUse& use : device_uses(played, kind)) {
        body += fmt::format("<tr><td>{}{}</td><td>{:.0f} %</td><td>{:.0f} %</td></tr>\n", of,
                            use.name, 100 * use.busy, 100 * use.filled);
      }
    }
    body += "</table>\n";
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{}: the plan</title>"
      "<style>{}</style></head><body>\n{}</body></html>\n",
      html(view.job), kPlanStyle, body);
}

void PlanProgress::begin(std::string what, std::size_t tasks, Duration now) {
  what_ = std::move(what);
  tasks_ = tasks;
  shown_at_ = now;
}

void PlanProgress::on(std::size_t ended, Duration now) {
  if (now - shown_at_ < (terminal_ ? kDrawEvery : kLineEvery)) return;
  shown_at_ = now;
  const std::string line = fmt::format("{}: {} of {} tasks simulated", plain(what_),
                                       with_commas(static_cast<std::int64_t>(ended)),
                                       with_commas(static_cast<std::int64_t>(tasks_)));
  write_(terminal_ ? "\r" + line + "\x1b[K" : line + "\n");
  drawn_ = terminal_;
}

void PlanProgress::finish() {
  if (drawn_) write_("\r\x1b[K");
  drawn_ = false;
}

}  // namespace trainyard::report
