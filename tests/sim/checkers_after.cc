// The part of the checkers that looks at what must hold after every decision.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "sim/checkers.h"
#include "sim/outside.h"

namespace trainyard::sim {
namespace {

/// The number of kinds of requests that are tried in one go (schedule/state_start.cc); a machine
/// with more of them may leave some room unused for a while.
constexpr std::size_t kLookahead = 128;

}  // namespace

void Checkers::check_after(const model::Event& event) {
  if (complaint_) return;
  check_news_was_heeded();
  expect(granted_.empty(), "what is granted is started at once");
  expect(!reached_due_, "what a task has come to ask for is written down for a resumed run");
  expect(!signal_due_, "a signal is sent when its time has come");
  expect(!retry_of_, "what somebody asked for begins anew at once");
  expect(answers_due_.empty(), "a kill request is answered as soon as it can be");
  check_groups();
  check_who_stands_aside();
  check_trials();
  check_time_limits();
  check_interrupted();
  check_reasons();
  check_what_is_said_to_be_free();
  // News of a start changes nothing that anybody waits for, unless the machine had refused others.
  if (std::holds_alternative<model::AttemptStarted>(event.what) && !held_back_) return;
  pass_those_before({}, {});
  check_caps();
  check_nobody_waits_in_vain();
  check_no_device_is_kept_in_vain();
}

void Checkers::check_news_was_heeded() {
  if (!about_) {
    if (kill_of_) {
      expect_of(*kill_of_, outside_.task(*kill_of_).verdict != model::Verdict::None,
                "a waiting task that is killed ends");
    }
    return;
  }
  expect_of(*about_, entered_ == expected_.statuses, "its statuses follow from what happened");
  if (stop_due_ != StopReason::None) {
    expect_of(*about_, outside_.running.at(*about_).stop == stop_due_,
              "is told to end when it cannot go on");
  }
  if (expected_.verdict == model::Verdict::None) return;
  expect_of(*about_, outside_.task(*about_).verdict == expected_.verdict,
            "gets its verdict when it ends");
}

void Checkers::check_groups() {
  for (std::uint32_t index = 0; index < outside_.groups.size(); ++index) {
    const SeenGroup& group = outside_.groups[index];
    if (group.phase == model::GroupPhase::Running) {
      expect(group.open > 0, "a group ends with its last task");
    }
    if (group.phase != model::GroupPhase::Blocked) continue;
    expect(outside_.interrupts == 0, "a blocked group is stopped when the run is");
    bool all = true;
    const bool patient = outside_.is_patient({index});
    for (const model::GroupIndex needed : outside_.plan.groups[index].needs) {
      const model::GroupPhase phase = outside_.groups[needed.value].phase;
      const bool failed = phase == model::GroupPhase::Failed || phase == model::GroupPhase::Skipped;
      all = all && (phase == model::GroupPhase::Finished || failed);
      expect(patient || !failed, "a group that needs a failed one is skipped at once");
    }
    expect(!all, "a group runs as soon as all it needs has ended as it wants");
  }
}

void Checkers::check_time_limits() {
  for (const auto& [task, attempt] : outside_.running) {
    if (attempt.stopped) {
      const bool over = now_ - *attempt.stopped >= workload_.policy.stop_grace;
      expect_of(task, !over || attempt.killed, "is sent KILL after the grace");
      continue;
    }
    const bool told = attempt.stop != StopReason::None || attempt.killed;
    expect_of(task, told || !too_much_.contains(task),
              "is told to end when it takes too much memory");
    expect_of(task, told || !outside_.groups[outside_.task(task).group.value].tripped,
              "is told to end when its group fails fast");
    const bool late = attempt.end_by && now_ >= *attempt.end_by && !attempt.killed;
    expect_of(task, !late, "is sent TERM at its time limit, or a grace after its last word");
  }
}

void Checkers::check_interrupted() {
  if (outside_.interrupts > 0) {
    expect(outside_.waiting.empty() && outside_.loaded.empty(), "nobody waits after an interrupt");
    for (const auto& [task, attempt] : outside_.running) {
      expect_of(task, attempt.stop != StopReason::None || attempt.killed,
                "is told to end after an interrupt");
      expect_of(task, outside_.interrupts == 1 || attempt.killed,
                "is killed after the second interrupt");
    }
    return;
  }
  for (const model::TaskIndex task : outside_.waiting) {
    expect_of(task, !outside_.groups[outside_.task(task).group.value].tripped,
              "nobody of a group waits after it failed fast");
  }
}

void Checkers::check_what_is_said_to_be_free() {
  if (!said_free_) return;
  const Bytes memory =
      std::min(outside_.memory_free_by_ledger(), outside_.memory_free_by_reading());
  expect(said_free_->gpus.size() == outside_.capacity.gpus.size(), "each GPU is spoken of");
  expect(said_free_->memory_free == memory && said_free_->cpus_free == outside_.cpus_free() &&
             said_free_->cpu_used_by_others == outside_.cpu_of_others,
         "what is said to be free is free");
}

void Checkers::check_reasons() {
  for (std::size_t shape = 0; shape < outside_.reasons.size(); ++shape) {
    const bool told = outside_.reasons[shape].cause != model::Cause::None;
    expect(!told || outside_.room_known, "the numbers of a reason are known");
    const bool waits = outside_.waiting_in[shape] > 0;
    expect(told || !waits, "why a task waits is said in words");
    expect(waits || !told, "a reason is taken back when nobody waits");
  }
}

void Checkers::check_nobody_waits_in_vain() {
  if (!outside_.gate_open()) return;
  const model::Cpus cpus = outside_.cpus_free();
  const Bytes memory =
      std::min(outside_.memory_free_by_ledger(), outside_.memory_free_by_reading());
  // A group that is full now had room before its last start, and was looked at.
  std::set<model::GroupIndex> started;
  for (const auto& [index, attempt] : outside_.running) {
    if (attempt.granted == now_) started.insert(outside_.task(index).group);
  }
  std::set<std::tuple<model::ShapeIndex, model::Request, model::Request>> kinds;
  std::optional<model::TaskIndex> in_vain;
  bool disk_waits = false;
  std::set<bool> loads_wait;  // For tasks on GPUs, and for the others.
  for (const model::TaskIndex index : outside_.waiting_in_order()) {
    const SeenTask& task = outside_.task(index);
    const bool room = outside_.group_has_room(task.group);
    if (!room && !started.contains(task.group)) continue;
    const bool two_phase = outside_.two_phase(index);
    const bool on_gpus = outside_.shape_of(index).terms.request.gpus > 0;
    if (two_phase && !outside_.may_load_ahead(index)) loads_wait.insert(on_gpus);
    if (!kinds.insert({task.shape, task.request, task.gpu_request}).second) continue;
    const model::Request due = outside_.due(index);
    if (two_phase && loads_wait.contains(on_gpus)) continue;
    // A task that requests disk waits behind older ones that do.
    const bool disk = due.disk == Bytes{} || (due.disk <= outside_.disk_free() && !disk_waits);
    if (due.disk > Bytes{}) disk_waits = true;
    const bool fits = due.cpus <= cpus && due.memory <= memory && disk &&
                      outside_.gpus.right_ones(open_gpus(due), due) && outside_.may_use_cpus(index);
    if (room && fits && !in_vain) in_vain = index;
  }
  if (!in_vain || kinds.size() > kLookahead) return;
  // Room may be kept for an older one.
  const std::optional<model::TaskIndex> oldest = oldest_ ? oldest_ : outside_.oldest_without_room();
  const bool kept = oldest && outside_.starts_before(*oldest, *in_vain) &&
                    outside_.is_owed_its_room(*oldest, now_);
  expect_of(*in_vain, kept, "nobody waits for what is free");
}

}  // namespace trainyard::sim
