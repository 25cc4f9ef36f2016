#include "report/timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "model/status.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

constexpr std::int64_t kTicksMax = 8;
constexpr Duration kSeconds{2'000};  ///< From so long on they are not divided.

/// "12 s", "1.5 s", "3m20s"
std::string tick_text(Duration at) {
  const std::int64_t seconds = at.count() / 1000;
  if (seconds >= 60) return to_text(at);
  if (at < kSeconds && at.count() % 1000 != 0) {
    return fmt::format("{:g} s", static_cast<double>(at.count()) / 1000);
  }
  return fmt::format("{} s", seconds);
}

/// A step between marks that a person counts in: 1, 2, 5, 10, 15, 30 seconds, minutes, hours, days.
Duration step_for(Duration span) {
  constexpr std::array<std::int64_t, 7> kMilliseconds{5, 10, 20, 50, 100, 200, 500};
  constexpr std::array<std::int64_t, 24> kSteps{
      1,      2,      5,       10,      15,      30,        60,        120,
      300,    600,    900,     1800,    3600,    7200,      10'800,    21'600,
      43'200, 86'400, 172'800, 432'000, 864'000, 1'728'000, 4'320'000, 8'640'000};
  for (const std::int64_t step : kMilliseconds) {
    if (span < kSeconds && span.count() / step <= kTicksMax) return Duration{step};
  }
  for (const std::int64_t seconds : kSteps) {
    if (span.count() / (seconds * 1000) <= kTicksMax) return Duration{seconds * 1000};
  }
  return Duration{std::max<std::int64_t>(1, span.count() / kTicksMax)};
}

Outcome outcome_of(const journal::AttemptRow& row,
                   const std::function<bool(model::AttemptKey)>& was_stopped) {
  if (!row.ended) return Outcome::Running;
  if (row.failure == model::Failure::None) return Outcome::Finished;
  if (was_stopped(row.key)) return Outcome::Stopped;
  return row.failure == model::Failure::OutOfMemory ? Outcome::OutOfMemory : Outcome::Failed;
}

bool is_failure(Outcome outcome) {
  return outcome == Outcome::OutOfMemory || outcome == Outcome::Failed;
}

/// Gives out the lowest lane that is free at a moment. Asked in order of time.
class Lanes {
 public:
  int take(Duration from, Duration to) {
    while (!busy_.empty() && busy_.top().first <= from) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    int lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    busy_.emplace(to, lane);
    return lane;
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  template <class Value>
  using SmallestFirst = std::priority_queue<Value, std::vector<Value>, std::greater<>>;
  SmallestFirst<std::pair<Duration, int>> busy_;
  SmallestFirst<int> free_;
  int count_ = 0;
};

void add(Bar& bar, const Bar& more) {
  bar.from = std::min(bar.from, more.from);
  bar.to = std::max(bar.to, more.to);
  bar.outcome = std::max(bar.outcome, more.outcome);
  bar.attempts += more.attempts;
  bar.failed += more.failed;
}

/// Makes one bar of all bars of a lane whose middles lie in the same slice of the time.
std::vector<Bar> merge(const std::vector<Bar>& bars, Duration span, int lanes) {
  const auto slices =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(Timeline::kBarsMax) / lanes);
  const auto slice_of = [&](const Bar& bar) {
    const std::int64_t middle = (bar.from + bar.to).count() / 2;
    return std::min(slices - 1, middle * slices / std::max<std::int64_t>(1, span.count()));
  };
  std::vector<Bar> merged;
  std::int64_t slice = -1;
  for (const Bar& bar : bars) {
    const bool same = !merged.empty() && merged.back().lane == bar.lane && slice == slice_of(bar);
    slice = slice_of(bar);
    if (same) {
      add(merged.back(), bar);
    } else {
      merged.push_back(bar);
    }
  }
  return merged;
}

constexpr double kWidth = 1120;
constexpr double kLeft = 6;
constexpr double kRight = 6;
constexpr double kInner = kWidth - kLeft - kRight;
constexpr double kAxis = 24;
constexpr double kMemoryHeight = 72;
constexpr double kMemoryGap = 22;
constexpr double kLetter = 6.2;
constexpr double kLabelMin = 52;

struct LaneLook {
  double height;
  double gap;
};

LaneLook look_for(int lanes) {
  if (lanes <= 14) return {.height = 20, .gap = 4};
  if (lanes <= 40) return {.height = 10, .gap = 2};
  if (lanes <= 100) return {.height = 5, .gap = 1};
  return {.height = 3, .gap = 0.5};
}

/// The text that fits into a bar: "0.1 128 2" for "lr=0.1,hidden=128,seed=2".
std::string label_of(const std::string& id) {
  std::string label;
  std::string_view rest = id;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return plain(id);
    label += fmt::format("{}{}", label.empty() ? "" : " \u00b7 ", part.substr(equals + 1));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return plain(label);
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, std::span<const journal::SampleRow> samples)
      : timeline_(timeline),
        look_(look_for(timeline.lanes)),
        span_(std::max(timeline.span, Duration{1})),
        lanes_height_(timeline.lanes * (look_.height + look_.gap)) {
    gather_memory(samples);
    const double memory = memory_.size() < 2 ? 0 : kMemoryGap + kMemoryHeight;
    bottom_ = lanes_height_ + memory;
  }

  std::string svg(const std::function<std::string(model::TaskIndex)>& id_of) {
    out_ = fmt::format(R"(<svg class="timeline" viewBox="0 0 {} {:.0f}" role="img" )"
                       "aria-label=\"Attempts over time\">\n",
                       kWidth, bottom_ + kAxis);
    out_ += time_axis_svg({.span = span_, .height = bottom_, .right = kWidth},
                          [this](Duration at) { return x_of(at); });
    for (const Bar& bar : timeline_.bars) draw_bar(bar, id_of);
    draw_memory();
    return std::move(out_) + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(Duration at) const {
    return kLeft + (kInner * static_cast<double>(at.count()) / static_cast<double>(span_.count()));
  }

  void draw_bar(const Bar& bar, const std::function<std::string(model::TaskIndex)>& id_of) {
    const double x = x_of(bar.from);
    // A gap between neighbours, unless there would be nothing left of the bar.
    const double width = std::max(1.2, x_of(bar.to) - x - 1);
    const double y = bar.lane * (look_.height + look_.gap);
    const double radius = look_.height < 10 || width < 5 ? 0 : width < 16 ? 1.5 : 3;
    const auto rectangle = [&](std::string_view look, double top, double height) {
      return fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" )"
                         R"(rx="{}"/>)",
                         look, x, top, width, height, radius);
    };
    const std::string id = id_of(bar.key.task);
    const bool mixed = bar.failed > 0 && bar.failed < bar.attempts;
    out_ += fmt::format("<g><title>{}</title>", html(title_of(bar, id)));
    out_ += rectangle(mixed ? "ok" : legend_of(bar.outcome).look, y, look_.height);
    if (mixed) {
      const double share = std::max(0.15, static_cast<double>(bar.failed) / bar.attempts);
      const double height = look_.height * share;
      out_ += rectangle(legend_of(bar.outcome).look, y + look_.height - height, height);
    }
    if (look_.height >= 14 && width >= kLabelMin && bar.attempts == 1) {
      const int letters = static_cast<int>((width - 12) / kLetter);
      out_ += fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}">{}</text>)", x + 6,
                          y + (look_.height / 2) + 3.8, html(cut(label_of(id), letters)));
    }
    out_ += "</g>\n";
  }

  static std::string title_of(const Bar& bar, const std::string& id) {
    const std::string where = bar.machine.empty() ? std::string{} : ", on " + plain(bar.machine);
    const std::string time =
        fmt::format("{} to {}{}", tick_text(bar.from), tick_text(bar.to), where);
    if (bar.attempts > 1) {
      return fmt::format("{}, {} failed, {}", counted(bar.attempts, "attempt"),
                         with_commas(bar.failed), time);
    }
    const std::string attempt =
        bar.key.attempt > 1 ? fmt::format(", attempt {}", bar.key.attempt) : std::string{};
    return fmt::format("{}{}: {} after {}, {}", id, attempt, legend_of(bar.outcome).word,
                       to_text(bar.to - bar.from), time);
  }

  /// The most of each pixel column, so that a peak is never lost.
  void gather_memory(std::span<const journal::SampleRow> samples) {
    for (const journal::SampleRow& sample : samples) {
      if (sample.at < timeline_.start || sample.at - timeline_.start > span_) continue;
      Bytes& most = memory_[static_cast<int>(x_of(sample.at - timeline_.start))];
      most = std::max(most, sample.memory_of_tasks);
      peak_ = std::max(peak_, sample.memory_of_tasks);
      if (!least_free_ || sample.memory_available < *least_free_) {
        least_free_ = sample.memory_available;
      }
    }
    if (peak_ == Bytes{}) memory_.clear();
  }

  void draw_memory() {
    if (memory_.size() < 2) return;
    const double top = lanes_height_ + kMemoryGap;
    std::string line;
    for (const auto& [x, bytes] : memory_) {
      const double share = static_cast<double>(bytes.count) / static_cast<double>(peak_.count);
      line += fmt::format("{}{},{:.1f}", line.empty() ? "" : " ", x,
                          top + ((kMemoryHeight - 2) * (1 - share)) + 2);
    }
    out_ += fmt::format(R"(<polygon class="area" points="{},{:.1f} {} {},{:.1f}"/>)",
                        memory_.begin()->first, bottom_, line, memory_.rbegin()->first, bottom_);
    out_ += fmt::format(R"(<polyline class="curve" points="{}"/>)", line);
    out_ += fmt::format(R"(<line class="base" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft,
                        kWidth - kRight, bottom_, bottom_);
    out_ += fmt::format(
        R"(<text class="tick" x="{}" y="{:.1f}">memory of all tasks, at most {}; least )"
        "free {}</text>\n",
        kLeft, top - 7, to_text(peak_), to_text(least_free_.value_or(Bytes{})));
  }

  const Timeline& timeline_;
  LaneLook look_;
  Duration span_;
  double lanes_height_;
  double bottom_ = 0;
  std::map<int, Bytes> memory_;
  Bytes peak_;
  std::optional<Bytes> least_free_;
  std::string out_;
};

}  // namespace

LegendEntry legend_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Finished:
      return {.look = "ok", .word = "finished"};
    case Outcome::Running:
      return {.look = "run", .word = "running"};
    case Outcome::Stopped:
      return {.look = "off", .word = "stopped"};
    case Outcome::OutOfMemory:
      return {.look = "oom", .word = "out of memory"};
    case Outcome::Failed:
      return {.look = "bad", .word = "failed"};
  }
  return {.look = "off"};
}

std::string time_axis_svg(const TimeAxis& axis, const std::function<double(Duration)>& x_of) {
  std::string text;
  const Duration step = step_for(axis.span);
  for (Duration at{0}; at <= axis.span; at += step) {
    const double x = x_of(at);
    text += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1:.1f}"/>)", x,
                        axis.height);
    const bool first = at == Duration{0};
    const bool last = x > axis.right - 30;
    text +=
        fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                    x, axis.height + 16,
                    first  ? "start"
                    : last ? "end"
                           : "middle",
                    tick_text(at));
  }
  return text;
}

Timeline lay_out(std::span<const journal::AttemptRow> attempts, const LayOut& how) {
  Timeline timeline;
  if (attempts.empty()) return timeline;
  std::vector<const journal::AttemptRow*> ordered;
  ordered.reserve(attempts.size());
  for (const journal::AttemptRow& row : attempts) ordered.push_back(&row);
  std::ranges::sort(ordered, {}, [](const journal::AttemptRow* row) {
    return std::pair(row->started, row->key);
  });
  timeline.start = ordered.front()->started;

  std::map<std::string, Lanes> lanes;
  for (const journal::AttemptRow* row : ordered) {
    const Instant end = std::max(row->started, row->ended.value_or(how.now));
    const Outcome outcome = outcome_of(*row, how.was_stopped);
    Bar bar{.from = row->started - timeline.start,
            .to = end - timeline.start,
            .key = row->key,
            .outcome = outcome,
            .failed = is_failure(outcome) ? 1 : 0,
            .machine = how.by_machine ? row->machine : std::string()};
    timeline.span = std::max(timeline.span, bar.to);
    bar.lane = lanes[bar.machine].take(bar.from, bar.to);
    timeline.bars.push_back(std::move(bar));
  }
  std::map<std::string, int> first_lanes;
  int count = 0;
  for (const auto& [machine, its] : lanes) {
    first_lanes[machine] = count;
    count += its.count();
  }
  for (Bar& bar : timeline.bars) bar.lane += first_lanes[bar.machine];
  timeline.left_out = static_cast<int>(
      std::erase_if(timeline.bars, [](const Bar& bar) { return bar.lane >= Timeline::kLanesMax; }));
  timeline.lanes = std::min(count, Timeline::kLanesMax);
  std::ranges::sort(timeline.bars, {},
                    [](const Bar& bar) { return std::tuple(bar.lane, bar.from, bar.key); });
  if (timeline.bars.size() > Timeline::kBarsMax) {
    timeline.bars = merge(timeline.bars, timeline.span, timeline.lanes);
    timeline.merged = true;
  }
  return timeline;
}

std::string timeline_svg(const Timeline& timeline, std::span<const journal::SampleRow> samples,
                         const std::function<std::string(model::TaskIndex)>& id_of) {
  return Drawing(timeline, samples).svg(id_of);
}

}  // namespace trainyard::report
