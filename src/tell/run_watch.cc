#include "tell/run_watch.h"

#include <algorithm>
#include <utility>

#include "model/plan.h"

namespace trainyard::tell {

std::vector<Sight> RunWatch::see(const model::Turn& turn) {
  std::vector<Sight> sights;
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    now_ = std::max(now_, turn.events[i].at);
    if (!begun_) idle_since_ = now_;
    begun_ = true;
    see(turn.events[i]);
    if (i >= turn.decisions.size()) continue;
    for (const model::Change& change : turn.decisions[i].changes) {
      if (const auto* const task = std::get_if<model::TaskChanged>(&change)) see(*task, sights);
      if (const auto* const group = std::get_if<model::GroupChanged>(&change)) see(*group, sights);
      if (const auto* const room = std::get_if<model::HeadroomSeen>(&change))
        rooms_.see(room->machine, room->headroom);
      if (const auto* const waits = std::get_if<model::ReasonChanged>(&change)) {
        reasons_[waits->shape] = waits->reason;
        if (waits->reason.cause == model::Cause::None) reasons_.erase(waits->shape);
      }
    }
  }
  if (std::optional<NothingRuns> nothing = idle()) sights.emplace_back(std::move(*nothing));
  return sights;
}

void RunWatch::see(const model::Event& event) {
  rooms_.hear(event.what);
  if (const auto* const batch = std::get_if<model::BatchAdded>(&event.what)) add(*batch);
  if (const auto* const started = std::get_if<model::AttemptStarted>(&event.what)) {
    running_.insert(started->key);
    idle_told_ = false;
  }
  if (const auto* const ended = std::get_if<model::AttemptEnded>(&event.what)) {
    if (running_.erase(ended->key) > 0 && running_.empty()) idle_since_ = now_;
  }
}

void RunWatch::add(const model::BatchAdded& batch) {
  const model::Plan& plan = *batch.plan;
  std::vector<std::uint32_t> tasks(plan.groups.size());
  std::vector<bool> open(plan.groups.size());
  for (const model::PlannedTask& task : plan.tasks) {
    const std::uint32_t group = plan.shapes[task.shape.value].group.value;
    ++tasks[group];
    if (task.is_open()) open[group] = true;
    verdicts_.push_back(task.before);
    count(task.before, 1);
  }
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    open_groups_.push_back(open[i]);
    group_ends_.push_back((group_ends_.empty() ? 0 : group_ends_.back()) + tasks[i]);
  }
}

void RunWatch::count(model::Verdict verdict, int by) { ended_[verdict] += by; }

void RunWatch::see(const model::TaskChanged& change, std::vector<Sight>& sights) {
  if (change.key.task.value >= verdicts_.size()) return;
  model::Verdict& verdict = verdicts_[change.key.task.value];
  // One that begins anew has none any more.
  if (verdict != change.verdict) {
    count(verdict, -1);
    count(change.verdict, 1);
    if (change.verdict == model::Verdict::None) {
      const auto group = std::ranges::upper_bound(group_ends_, change.key.task.value);
      open_groups_[static_cast<std::size_t>(group - group_ends_.begin())] = true;
    }
    verdict = change.verdict;
  }
  if (change.verdict != model::Verdict::Failed || failure_told_) return;
  failure_told_ = true;
  const model::Standing standing{.status = change.status,
                                 .verdict = change.verdict,
                                 .failure = change.failure,
                                 .exit_code = change.exit_code};
  const model::TaskEnd* const end = model::end_of(standing);
  sights.emplace_back(FirstFailure{.task = name_of_(change.key.task),
                                   .how = model::word_for(standing),
                                   .end = std::string(end == nullptr ? "" : end->id),
                                   .message = change.message});
}

void RunWatch::see(const model::GroupChanged& change, std::vector<Sight>& sights) {
  const bool ended = change.phase == model::GroupPhase::Finished ||
                     change.phase == model::GroupPhase::Failed ||
                     change.phase == model::GroupPhase::Stopped;
  // Groups that an earlier execution has run are no news, and skipped groups have no report.
  if (!ended || change.group.value >= open_groups_.size() || !open_groups_[change.group.value]) {
    return;
  }
  sights.emplace_back(GroupEnded{change.group});
}

std::optional<NothingRuns> RunWatch::idle() {
  if (idle_told_ || !running_.empty() || counts().waiting() == 0) return std::nullopt;
  const Duration since = now_ - idle_since_;
  if (since < kIdleLong) return std::nullopt;
  idle_told_ = true;
  NothingRuns nothing{.since = since, .cause = {}, .reason = {}};
  if (!reasons_.empty()) {
    const model::Reason& reason = reasons_.begin()->second;
    nothing.cause = model::to_text(reason.cause);
    nothing.reason =
        rooms_.reason_text(reason, reason.first ? name_of_(*reason.first) : std::string());
  }
  return nothing;
}

Counts RunWatch::counts() const {
  const auto of = [this](model::Verdict verdict) {
    const auto found = ended_.find(verdict);
    return found == ended_.end() ? 0 : found->second;
  };
  return {.tasks = static_cast<int>(verdicts_.size()) - of(model::Verdict::NotSelected),
          .finished = of(model::Verdict::Finished),
          .failed = of(model::Verdict::Failed),
          .skipped = of(model::Verdict::Skipped),
          .stopped = of(model::Verdict::Stopped),
          .running = static_cast<int>(running_.size())};
}

}  // namespace trainyard::tell
