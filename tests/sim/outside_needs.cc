// The part of the outside that knows who waits for other tasks, or for a person to release it.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"
#include "sim/outside.h"

namespace trainyard::sim {
namespace {

bool went_badly(model::Verdict verdict) {
  return verdict == model::Verdict::Failed || verdict == model::Verdict::Skipped ||
         verdict == model::Verdict::Stopped;
}

}  // namespace

void Outside::add_needs(const model::Plan& batch, std::uint32_t first) {
  for (const model::TaskNeed& need : batch.task_needs) {
    const model::TaskIndex task{first + need.task.value};
    const model::TaskIndex other{first + need.needed.value};
    needed[task].push_back(other);
    const auto further = steads.find(other);
    const model::TaskIndex earlier = further == steads.end() ? other : further->second;
    const auto known = steads.find(task);
    steads[task] = std::min(known == steads.end() ? task : known->second, earlier);
  }
}

std::pair<model::TaskIndex, model::TaskIndex> Outside::place(model::TaskIndex index) const {
  const auto stead = steads.find(index);
  return {stead == steads.end() ? index : stead->second, index};
}

bool Outside::needs_open_tasks(model::TaskIndex index) const {
  const auto found = needed.find(index);
  return found != needed.end() &&
         std::ranges::any_of(found->second, [this](model::TaskIndex other) {
           return task(other).verdict == model::Verdict::None;
         });
}

bool Outside::needs_a_bad_group(model::GroupIndex index) const {
  return std::ranges::any_of(plan.groups[index.value].needs, [this](model::GroupIndex group) {
    const model::GroupPhase phase = groups[group.value].phase;
    return phase == model::GroupPhase::Failed || phase == model::GroupPhase::Skipped ||
           phase == model::GroupPhase::Stopped;
  });
}

Outside::Fate Outside::fate_of(model::TaskIndex index) const {
  const SeenGroup& own = groups[task(index).group.value];
  bool badly = own.phase == model::GroupPhase::Running ? own.after_failure
                                                       : needs_a_bad_group(task(index).group);
  if (const auto found = needed.find(index); found != needed.end()) {
    badly = badly || std::ranges::any_of(found->second, [this](model::TaskIndex other) {
              return went_badly(task(other).verdict);
            });
  }
  const model::RunIf condition = shape_of(index).terms.run_if;
  if (condition == model::RunIf::Success && badly) return Fate::Skipped;
  if (needs_open_tasks(index)) return Fate::Open;
  return condition == model::RunIf::Failure && !badly ? Fate::NotNeeded : Fate::Runs;
}

bool Outside::is_patient(model::GroupIndex group) const {
  return std::ranges::any_of(tasks, [&](const SeenTask& seen) {
    return seen.group == group &&
           plan.shapes[seen.shape.value].terms.run_if != model::RunIf::Success;
  });
}

void Outside::let_in() {
  const std::vector<model::TaskIndex> all(aside.begin(), aside.end());
  for (const model::TaskIndex index : all) {
    if (task(index).on_hold || fate_of(index) != Fate::Runs) continue;
    aside.erase(index);
    // A task with an earlier attempt has waited for its time before.
    if (task(index).status == Status::Interrupt) {
      waiting.insert(index);
    } else {
      begin_to_wait(index);
    }
  }
}

void Outside::put_on_hold(model::TaskIndex index) {
  SeenTask& seen = task(index);
  seen.on_hold = true;
  const bool waits = waiting.erase(index) > 0 || seen.begins_at || seen.back_at;
  // A task that waits for its retry is counted with those that wait from now on.
  if (seen.back_at) ++waiting_in[seen.shape.value];
  seen.begins_at.reset();
  seen.back_at.reset();
  if (!waits) return;
  seen.passed = 0;
  aside.insert(index);
}

void Outside::release_from_hold(model::TaskIndex index) {
  task(index).on_hold = false;
  let_in();
}

}  // namespace trainyard::sim
