#include "schedule/scheduler.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/match.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/ledger.h"
#include "schedule/state.h"

namespace trainyard {

Scheduler::Scheduler(const Plan& plan, const Limits& limits, const Capacity& capacity)
    : state_(std::make_unique<State>(plan, limits, capacity)) {}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

Decision Scheduler::begin(Instant at, const Sampled& machine) {
  check(!state_->begun, "a run begins once");
  Decision out;
  state_->begin(at, machine, out);
  state_->start_what_fits(at, out);
  return out;
}

Decision Scheduler::on(const Event& event) {
  check(state_->begun, "a run begins before anything happens in it");
  Decision out;
  // Only what gives something back, or asks for something, is a reason to look who can start.
  bool look = true;
  match(
      event.what,
      [&](const AttemptStarted& it) {
        state_->started(event.at, it, out);
        look = false;
      },
      [&](const StageReported& it) { state_->reported(event.at, it, out); },
      [&](const AttemptEnded& it) { state_->ended(event.at, it, out); },
      [&](const Sampled& it) { state_->sampled(it); },
      [&](const InterruptAsked&) { state_->interrupted(event.at, out); },
      [&](const KillAsked& it) { state_->kill_asked(event.at, it, out); },
      [&](const Progressed&) {}, [&](const TimePassed&) {});
  state_->end_overdue(event.at, out);
  if (look) state_->start_what_fits(event.at, out);
  return out;
}

std::optional<Instant> Scheduler::wakeup() const {
  if (state_->deadlines.empty()) return std::nullopt;
  return state_->deadlines.begin()->first;
}

bool Scheduler::ended() const { return state_->tasks.open() == 0; }

std::optional<std::string> never_fits(const Request& request, const Limits& limits,
                                      const Capacity& capacity) {
  const Bytes kept = memory_kept_free(limits, capacity);
  if (request.memory > capacity.memory - kept) {
    const Bytes given = capacity.memory - kept;
    return fmt::format("needs {} of memory, this machine can give {} ({} less {} kept free)",
                       to_text(request.memory, given), to_text(given, request.memory),
                       to_text(capacity.memory), to_text(kept));
  }
  if (request.cpus > capacity.cpus) {
    return fmt::format("needs {} CPUs, this machine has {}",
                       static_cast<double>(request.cpus.milli) / 1000,
                       static_cast<double>(capacity.cpus.milli) / 1000);
  }
  return std::nullopt;
}

}  // namespace trainyard
