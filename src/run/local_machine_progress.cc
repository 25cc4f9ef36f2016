// The part of the local machine that receives the progress of attempts: over its socket, which any
// of them may use, and from their output.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "link/task_server.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "run/local_machine.h"
#include "run/log_bounds.h"
#include "run/printed_metrics.h"
#include "wire/metric_line.h"
#include "wire/task.h"

namespace trainyard::run {

/// Puts the address for messages, and the attempt's name there, into its environment.
void LocalMachine::introduce(model::AttemptKey key, model::Launch& launch) {
  check(tasks_.has_value() || !launch.two_phase, "a socket where there are two-phase tasks");
  if (!tasks_) return;
  const std::string token =
      tasks_->expect(key, {.ranks = launch.ranks, .tells_its_life = launch.two_phase});
  launch.environment.push_back(fmt::format("TRAINYARD_SOCKET={}", tasks_->path()));
  launch.environment.push_back(fmt::format("TRAINYARD_TOKEN={}", token));
  launch.environment.push_back(fmt::format("TRAINYARD_PHASES={}", launch.two_phase ? 2 : 1));
}

/// The metrics that a task prints; with several ranks, those of the first one. Many programs log to
/// standard error.
PrintedMetrics LocalMachine::printed_by(model::TaskIndex task, const model::Launch& launch) {
  return {streams_of(launch), options_.pattern_of ? options_.pattern_of(task) : LinePattern()};
}

/// However often a task reports progress, it is passed on with the next look at the machine: the
/// latest fraction and the latest values, which may come apart.
void LocalMachine::hear_progress(model::AttemptKey key, wire::Progress progress) {
  const auto running = running_.find(key.task);
  if (running == running_.end() || running->second.key != key) return;
  Attempt& attempt = running->second;
  attempt.values = wire::values_together(attempt.values, progress.values);
  std::optional<wire::Progress>& latest = attempt.progress;
  if (latest && !progress.fraction) progress.fraction = latest->fraction;
  if (latest) progress.values = wire::values_together(latest->values, progress.values);
  latest = std::move(progress);
}

/// Reads the metrics that tasks print, a bounded number of bytes in one turn. The next turn begins
/// with the task that comes next.
void LocalMachine::read_what_they_print() {
  std::size_t left = PrintedMetrics::kOfATurnMax;
  auto next = running_.upper_bound(read_last_);
  for (std::size_t n = 0; n < running_.size() && left > 0; ++n, ++next) {
    if (next == running_.end()) next = running_.begin();
    const std::size_t read = next->second.printed.look(std::min(left, PrintedMetrics::kOfALogMax));
    left -= std::min(left, read);
    read_last_ = next->first;
  }
}

void LocalMachine::tell_progress(Attempt& attempt) {
  const bool printed = attempt.printed.take_news();
  if (!attempt.progress && !printed) return;
  wire::Progress reported =
      std::exchange(attempt.progress, std::nullopt).value_or(wire::Progress{});
  const wire::LastMetrics& metrics = attempt.printed.last();
  if (!reported.fraction) reported.fraction = metrics.fraction();
  inbox_.push_back({.at = now(),
                    .what = model::Progressed{.key = attempt.key,
                                              .fraction = reported.fraction,
                                              .values = metrics.values_with(reported.values)}});
}

}  // namespace trainyard::run
