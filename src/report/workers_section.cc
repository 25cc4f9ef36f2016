#include "report/workers_section.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/time.h"
#include "journal/reader.h"
#include "report/html.h"
#include "report/html_page.h"
#include "report/terminal_text.h"
#include "report/timeline.h"

namespace trainyard::report {
namespace {

/// "worker 2 (collector)"
std::string name_of_worker(const wire::ParallelRecord& record, int node) {
  const auto found = std::ranges::find(record.workers, node, &wire::WorkerRecord::node);
  if (found == record.workers.end() || found->roles.empty()) return fmt::format("worker {}", node);
  return plain(fmt::format("worker {} ({})", node, fmt::join(found->roles, ", ")));
}

/// "12 ms", "3.4 s"
std::string wait_text(std::int64_t ms) {
  return ms < 1'000 ? fmt::format("{} ms", ms) : to_text(Duration(ms));
}

/// "at the barrier 'epoch'", "for the event 'go'"
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

/// "worker 2 (collector), worker 3"; "-" if not known.
std::string whom_text(const wire::ParallelRecord& record, const std::vector<int>& whom) {
  std::vector<std::string> names;
  names.reserve(whom.size());
  for (const int node : whom) names.push_back(name_of_worker(record, node));
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

/// A class of page.css.
std::string_view look_of_wait(wire::WaitKind kind) {
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
      title += fmt::format(" ({} together)", counted(wait.count, "wait"));
    }
    out_ += fmt::format("<g><title>{}</title>", html(title));
    out_ += part({.look = look_of_wait(wait.kind),
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
    text +=
        page_note(fmt::format("The first {} of {}.", kTotalsShown, with_commas(std::ssize(all))));
  }
  return text;
}

std::string notes_of(const wire::ParallelRecord& record) {
  std::string text;
  if (record.workers.size() > kWorkerRowsMax) {
    text += page_note(fmt::format("{} workers are drawn, of {}.", kWorkerRowsMax,
                                  with_commas(std::ssize(record.workers))));
  }
  std::uint64_t lives = 0;
  std::int64_t beside = 0;
  for (const wire::WorkerRecord& worker : record.workers) {
    lives += worker.lives_left_out;
    beside += worker.waited_beside_ms;
  }
  if (lives > 0) {
    text += page_note(
        fmt::format("{} are left out, the first ones of workers that began again very often.",
                    counted(lives, "life")));
  }
  if (beside > 0) {
    text += page_note(
        fmt::format("{} more were waited for events of too many names.", wait_text(beside)));
  }
  return text;
}

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

std::string workers_svg(const wire::ParallelRecord& record) { return WorkersDrawing(record).svg(); }

std::string workers_section(const std::string& of, const wire::ParallelRecord& record) {
  std::string text = section_top("Workers of " + of, legend_of(kLegend));
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
      sink(section_top("Workers of " + row.id) +
           page_note(
               fmt::format("What they waited for cannot be shown: {}.", record.error().message)) +
           "</section>\n");
      ++shown;
    } else if (*record && (*record)->workers.empty()) {
      // The task's workers have not started yet.
    } else if (*record && shown < kWorkerPicturesMax) {
      sink(workers_section(row.id, **record));
      ++shown;
    } else if (*record) {
      ++more;
    }
    return ++looked < kHtmlRowsMax;
  });
  if (more > 0) {
    sink("<section>\n" +
         page_note(fmt::format("The workers of {} more are in workers.json of their directories.",
                               counted(more, "task"))) +
         "</section>\n");
  }
  return read;
}

}  // namespace trainyard::report
