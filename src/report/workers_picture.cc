#include "report/workers_picture.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/time.h"
#include "report/html_text.h"
#include "report/terminal_text.h"
#include "report/time_axis.h"

namespace trainyard::report {
namespace {

constexpr double kPictureWidth = 1120;
constexpr double kNames = 150;
constexpr double kRightGap = 6;
constexpr double kAxisHeight = 24;
constexpr int kNameColumns = 22;

struct RowLook {
  double height;
  double gap;
};

RowLook look_for_rows(std::size_t rows) {
  if (rows <= 24) return {.height = 18, .gap = 6};
  if (rows <= 64) return {.height = 11, .gap = 3};
  return {.height = 5, .gap = 1};
}

class WorkersDrawing {
 public:
  explicit WorkersDrawing(const wire::ParallelRecord& record)
      : record_(record),
        rows_(std::min(record.workers.size(), kWorkerRowsMax)),
        look_(look_for_rows(rows_)),
        span_(std::max<std::int64_t>(record.span_ms, 1)) {
    // A life that is recorded beyond the end is drawn, too.
    for (const wire::WorkerRecord& worker : record.workers) {
      for (const wire::WorkerLife& life : worker.lives) span_ = std::max(span_, end_of(life));
    }
  }

  std::string svg() {
    const double bottom = static_cast<double>(rows_) * (look_.height + look_.gap);
    out_ = fmt::format(R"(<svg class="timeline" viewBox="0 0 {} {:.0f}" role="img" )"
                       "aria-label=\"Workers over time\">\n",
                       kPictureWidth, bottom + kAxisHeight);
    out_ += time_axis_svg({.span = Duration(span_), .height = bottom, .right = kPictureWidth},
                          [this](Duration at) { return x_of(at.count()); });
    for (std::size_t row = 0; row < rows_; ++row) draw_row(record_.workers[row], row);
    return std::move(out_) + "</svg>\n";
  }

 private:
  struct Part {
    std::string_view look;
    std::int64_t from_ms = 0;
    std::int64_t to_ms = 0;
    double opacity = 1;
    double top = 0;
  };

  [[nodiscard]] std::int64_t end_of(const wire::WorkerLife& life) const {
    return std::max(life.from_ms, life.to_ms.value_or(record_.span_ms));
  }

  [[nodiscard]] double x_of(std::int64_t ms) const {
    const double part =
        static_cast<double>(std::clamp<std::int64_t>(ms, 0, span_)) / static_cast<double>(span_);
    return kNames + ((kPictureWidth - kNames - kRightGap) * part);
  }

  void draw_row(const wire::WorkerRecord& worker, std::size_t row) {
    const double top = static_cast<double>(row) * (look_.height + look_.gap);
    const std::string name = name_of_worker(record_, worker.node);
    if (look_.height >= 10) {
      out_ += fmt::format("<text class=\"name\" x=\"0\" y=\"{:.1f}\">{}</text>\n",
                          top + (look_.height / 2) + 4, html(cut(name, kNameColumns)));
    }
    for (const wire::WorkerLife& life : worker.lives) draw_life(life, name, top);
    const std::size_t slices = std::max<std::size_t>(kWaitsDrawnMax / rows_, 1);
    for (const wire::WorkerWait& wait : drawn_waits(worker.waits, span_, slices)) {
      draw_wait(wait, name, top);
    }
  }

  void draw_life(const wire::WorkerLife& life, const std::string& name, double top) {
    const std::int64_t end = end_of(life);
    const std::int64_t came = std::clamp(life.came_ms.value_or(end), life.from_ms, end);
    const bool is_over = life.to_ms.has_value();
    const std::string how = !is_over               ? "running"
                            : life.outcome.empty() ? "over"
                                                   : plain(life.outcome);
    const std::string title =
        fmt::format("{}{}: {} after {}, from {} to {}", name,
                    life.number > 1 ? fmt::format(", life {}", life.number) : "", how,
                    wait_text(end - life.from_ms), wait_text(life.from_ms), wait_text(end));
    out_ += fmt::format("<g><title>{}</title>", html(title));
    out_ += part({.look = "run", .from_ms = life.from_ms, .to_ms = came, .top = top});
    out_ += part({.look = "ok", .from_ms = came, .to_ms = end, .top = top});
    if (life.outcome == "failed" || life.outcome == "lost") {
      // Its end, to be seen however short it was.
      out_ += fmt::format(R"(<rect class="bad" x="{:.1f}" y="{:.1f}" width="3" height="{:.1f}"/>)",
                          x_of(end) - 1.5, top - (look_.gap / 2), look_.height + look_.gap);
    }
    out_ += "</g>\n";
  }

  void draw_wait(const wire::WorkerWait& wait, const std::string& name, double top) {
    const double share =
        wait.to_ms > wait.from_ms
            ? static_cast<double>(wait.waited_ms) / static_cast<double>(wait.to_ms - wait.from_ms)
            : 1;
    std::string title = fmt::format("{} waited {} {}", name, wait_text(wait.waited_ms),
                                    what_text(wait.kind, wait.name));
    if (!wait.whom.empty()) title += fmt::format(" for {}", whom_text(record_, wait.whom));
    title += fmt::format(", from {} to {}", wait_text(wait.from_ms), wait_text(wait.to_ms));
    if (wait.count > 1) {
      title +=
          fmt::format(" ({} together)", counted(static_cast<std::int64_t>(wait.count), "wait"));
    }
    out_ += fmt::format("<g><title>{}</title>", html(title));
    out_ += part({.look = look_of(wait.kind),
                  .from_ms = wait.from_ms,
                  .to_ms = wait.to_ms,
                  .opacity = std::clamp(share, 0.25, 1.0),
                  .top = top});
    out_ += "</g>\n";
  }

  [[nodiscard]] std::string part(const Part& of) const {
    if (of.to_ms <= of.from_ms) return {};
    const double x = x_of(of.from_ms);
    return fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}")"
                       R"({}/>)",
                       of.look, x, of.top, std::max(0.8, x_of(of.to_ms) - x), look_.height,
                       of.opacity < 1 ? fmt::format(R"( fill-opacity="{:.2f}")", of.opacity) : "");
  }

  const wire::ParallelRecord& record_;
  std::size_t rows_;
  RowLook look_;
  std::int64_t span_;
  std::string out_;
};

}  // namespace

std::vector<wire::WorkerWait> drawn_waits(const std::vector<wire::WorkerWait>& waits,
                                          std::int64_t span_ms, std::size_t slices) {
  if (waits.size() <= slices) return waits;
  const auto slice_of = [&](const wire::WorkerWait& wait) {
    const double middle = static_cast<double>(wait.from_ms + wait.to_ms) / 2;
    return static_cast<std::size_t>(middle * static_cast<double>(slices) /
                                    static_cast<double>(std::max<std::int64_t>(span_ms, 1)));
  };
  std::vector<wire::WorkerWait> drawn;
  std::int64_t longest = 0;
  std::size_t slice = 0;
  for (const wire::WorkerWait& wait : waits) {
    if (drawn.size() == slices || (!drawn.empty() && slice == slice_of(wait))) {
      wire::WorkerWait& last = drawn.back();
      if (wait.waited_ms > longest) {
        longest = wait.waited_ms;
        last.kind = wait.kind;
        last.name = wait.name;
        last.whom = wait.whom;
      }
      last.from_ms = std::min(last.from_ms, wait.from_ms);
      last.to_ms = std::max(last.to_ms, wait.to_ms);
      last.waited_ms += wait.waited_ms;
      last.count += wait.count;
      continue;
    }
    slice = slice_of(wait);
    longest = wait.waited_ms;
    drawn.push_back(wait);
  }
  return drawn;
}

std::string name_of_worker(const wire::ParallelRecord& record, int node) {
  const auto found = std::ranges::find(record.workers, node, &wire::WorkerRecord::node);
  if (found == record.workers.end() || found->roles.empty()) return fmt::format("worker {}", node);
  return plain(fmt::format("worker {} ({})", node, fmt::join(found->roles, ", ")));
}

std::string wait_text(std::int64_t ms) {
  return ms < 1'000 ? fmt::format("{} ms", ms) : to_text(Duration(ms));
}

std::string what_text(wire::WaitKind kind, const std::string& name) {
  switch (kind) {
    case wire::WaitKind::Barrier:
      return plain(fmt::format("at the barrier '{}'", name));
    case wire::WaitKind::Ready:
      return "until others were ready";
    case wire::WaitKind::Room:
      return "for room in a full queue";
    case wire::WaitKind::Event:
      return plain(fmt::format("for the event '{}'", name));
  }
  return {};
}

std::string whom_text(const wire::ParallelRecord& record, const std::vector<int>& whom) {
  std::vector<std::string> names;
  names.reserve(whom.size());
  for (const int node : whom) names.push_back(name_of_worker(record, node));
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

std::string_view look_of(wire::WaitKind kind) {
  switch (kind) {
    case wire::WaitKind::Barrier:
    case wire::WaitKind::Ready:
      return "oom";
    case wire::WaitKind::Room:
      return "bad";
    case wire::WaitKind::Event:
      return "off";
  }
  return "off";
}

std::string workers_svg(const wire::ParallelRecord& record) { return WorkersDrawing(record).svg(); }

}  // namespace trainyard::report
