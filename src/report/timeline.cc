#include "report/timeline.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "model/status.h"

namespace trainyard::report {
namespace {

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

}  // namespace

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

}  // namespace trainyard::report
