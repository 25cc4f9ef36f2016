#include "workers/waits.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "wire/worker.h"

namespace trainyard::workers {
namespace {

/// However many workers there are.
constexpr std::size_t kPartLeast = 16;
/// Bytes of the name of an event or a barrier that are kept.
constexpr std::size_t kNameBytes = 64;

}  // namespace

void Waits::add(int node, std::vector<std::string> roles) {
  if (workers_.size() >= wire::kRecordWorkersMax) return;
  roles.resize(std::min(roles.size(), wire::kRecordWhomMax));
  workers_[node].record = {.node = node, .roles = std::move(roles)};
}

void Waits::begins(int node, std::uint32_t life, Duration now) {
  const auto worker = workers_.find(node);
  if (worker == workers_.end()) return;
  wire::WorkerRecord& record = worker->second.record;
  if (record.lives.size() == wire::kRecordLivesMax) {
    record.lives.erase(record.lives.begin());
    ++record.lives_left_out;
  }
  record.lives.push_back({.number = life, .from_ms = since_start(now)});
}

void Waits::comes(int node, Duration now) {
  const auto worker = workers_.find(node);
  if (worker == workers_.end() || worker->second.record.lives.empty()) return;
  worker->second.record.lives.back().came_ms = since_start(now);
}

void Waits::ends(int node, const std::string& outcome, Duration now) {
  const auto worker = workers_.find(node);
  if (worker == workers_.end() || worker->second.record.lives.empty()) return;
  wire::WorkerLife& life = worker->second.record.lives.back();
  life.to_ms = since_start(now);
  life.outcome = outcome;
}

std::size_t Waits::part_of(std::size_t all, std::size_t most) const {
  return std::clamp(all / std::max<std::size_t>(workers_.size(), 1), kPartLeast, most);
}

void Waits::waited(int node, const Wait& wait) {
  const auto found = workers_.find(node);
  if (found == workers_.end() || wait.to - wait.from < wire::kWaitedLeast) return;
  OfWorker& worker = found->second;
  wire::WorkerWait added{.kind = wait.kind,
                         .name = std::string(utf8_prefix(wait.name, kNameBytes)),
                         .whom = wait.whom,
                         // A wait that a worker reports cannot have begun before the run.
                         .from_ms = std::max<std::int64_t>(0, since_start(wait.from)),
                         .to_ms = since_start(wait.to)};
  added.whom.resize(std::min(added.whom.size(), wire::kRecordWhomMax));
  added.waited_ms = added.to_ms - added.from_ms;
  count(worker, added);
  std::vector<wire::WorkerWait>& waits = worker.record.waits;
  if (!waits.empty()) {
    wire::WorkerWait& last = waits.back();
    const bool same = last.kind == added.kind && last.name == added.name && last.whom == added.whom;
    if (same && added.from_ms >= last.to_ms && added.from_ms - last.to_ms < kApart.count()) {
      last.to_ms = added.to_ms;
      last.waited_ms += added.waited_ms;
      ++last.count;
      return;
    }
  }
  if (waits.size() >= part_of(kAllMax, wire::kRecordWaitsMax)) join_neighbours(waits);
  waits.push_back(std::move(added));
}

void Waits::count(OfWorker& worker, const wire::WorkerWait& wait) {
  const What what{.kind = wait.kind, .name = wait.name, .whom = wait.whom};
  const std::size_t totals_max = part_of(kAllTotalsMax, wire::kRecordTotalsMax);
  if (worker.totals.size() >= totals_max && !worker.totals.contains(what)) {
    worker.record.waited_beside_ms += wait.waited_ms;
    return;
  }
  Sum& sum = worker.totals[what];
  sum.waited_ms += wait.waited_ms;
  ++sum.count;
}

/// Joins neighbours; the longer one names those that were waited for.
void Waits::join_neighbours(std::vector<wire::WorkerWait>& waits) {
  std::vector<wire::WorkerWait> joined;
  joined.reserve((waits.size() + 1) / 2);
  for (std::size_t i = 0; i < waits.size(); i += 2) {
    if (i + 1 == waits.size()) {
      joined.push_back(std::move(waits[i]));
      break;
    }
    const wire::WorkerWait& one = waits[i];
    const wire::WorkerWait& other = waits[i + 1];
    wire::WorkerWait both = one.waited_ms >= other.waited_ms ? one : other;
    both.from_ms = std::min(one.from_ms, other.from_ms);
    both.to_ms = std::max(one.to_ms, other.to_ms);
    // Two threads of a worker may have waited at once.
    both.waited_ms = std::min(one.waited_ms + other.waited_ms, both.to_ms - both.from_ms);
    both.count = one.count + other.count;
    joined.push_back(std::move(both));
  }
  waits = std::move(joined);
}

wire::ParallelRecord Waits::record(Duration now, bool ended) const {
  wire::ParallelRecord record{.span_ms = since_start(now), .ended = ended};
  record.workers.reserve(workers_.size());
  for (const auto& [node, worker] : workers_) {
    wire::WorkerRecord& added = record.workers.emplace_back(worker.record);
    for (const auto& [what, sum] : worker.totals) {
      added.totals.push_back({.kind = what.kind,
                              .name = what.name,
                              .whom = what.whom,
                              .waited_ms = sum.waited_ms,
                              .count = sum.count});
    }
  }
  return record;
}

}  // namespace trainyard::workers
