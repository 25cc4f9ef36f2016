// The part of the checkers that knows who waits for another to settle on a tight GPU.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"
#include "sim/outside_gpus.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// The GPUs as this request finds them: without what is kept for older ones, and without those on
/// which it would have to wait for another to settle.
std::vector<SeenGpu> Checkers::open_gpus(const model::Request& request) const {
  std::vector<SeenGpu> gpus = outside_.gpus.now();
  for (const auto& [kept, on] : held_) take_from(gpus, kept, on);
  if (workload_.policy.gpu_settle_max == Duration{0}) return gpus;
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    const Bytes begins = outside_.beginning_on({index}, now_);
    if (begins == Bytes{}) continue;
    const Bytes twice = std::max(begins, request.gpu_memory);
    if (gpus[index].free < request.gpu_memory + twice) gpus[index].left = true;
  }
  return gpus;
}

/// Goes by those that were looked at before this one was granted its device or started, in their
/// order; by all of them where there is no such one.
void Checkers::pass_those_before(std::optional<model::TaskIndex> granted,
                                 std::optional<model::TaskIndex> started) {
  if (complaint_ || outside_.interrupts > 0) return;
  if (workload_.policy.gpu_settle_max == Duration{0} || workload_.capacity.gpus.empty()) return;
  const auto go_by = [this](model::TaskIndex index, bool loaded) {
    const SeenTask& task = outside_.task(index);
    const bool again = loaded && !outside_.gpus.shares_of(index).empty();
    const model::Request asks = again ? model::Request{} : task.gpu_request;
    const auto [kind, first] = passed_by_.try_emplace(
        {loaded, task.shape, asks, loaded ? model::Request{} : task.request}, false);
    // Tasks behind the first of their kind were not tried, and wait for the same.
    if (first) kind->second = has_to_settle_first(index);
    if (kind->second) outside_.settling.insert(index);
  };
  for (const model::TaskIndex index : outside_.loaded_in_order()) {
    if (granted == index) return;
    go_by(index, true);
  }
  for (const model::TaskIndex index : outside_.waiting_in_order()) {
    if (started == index) return;
    // A task that loads first wants its GPUs later.
    if (!outside_.two_phase(index)) go_by(index, false);
  }
}

/// A task that requests disk and was not started though all else was there lacks disk, and nothing
/// else: also when younger ones have taken more of the rest.
void Checkers::pass_those_without_disk(model::TaskIndex started) {
  for (const model::TaskIndex index : outside_.waiting_in_order()) {
    if (started == index) return;
    const model::Request due = outside_.due(index);
    if (due.disk == Bytes{}) continue;
    // Tasks behind the first of their kind were not tried, and wait for the same.
    const SeenTask& task = outside_.task(index);
    const auto [kind, first] = lack_disk_alone_.try_emplace({task.shape, task.request}, false);
    if (first) kind->second = outside_.has_room_for(due);
    if (kind->second) outside_.without_disk.insert(index);
  }
}

/// It has room, and another has to settle there first.
bool Checkers::has_to_settle_first(model::TaskIndex index) {
  const bool loaded = outside_.loaded.contains(index);
  const SeenTask& task = outside_.task(index);
  if (!loaded && (!outside_.gate_open() || !outside_.may_use_cpus(index) ||
                  !outside_.group_has_room(task.group))) {
    return false;
  }
  const model::Request due = outside_.due(index);
  // A task that has loaded lacks no memory of the host, however little there is.
  const bool has_room = loaded ? due.cpus <= outside_.cpus_free() && outside_.gpus.has_room_for(due)
                               : outside_.has_room_for(due);
  if (due.gpus == 0 || !has_room || outside_.gpus.right_ones(open_gpus(due), due)) return false;
  std::vector<SeenGpu> beside = outside_.gpus.now();
  for (const auto& [kept, on] : held_) take_from(beside, kept, on);
  const auto on = outside_.gpus.right_ones(beside, due, outside_.idle_gpus());
  if (!on) return true;
  // Room that is kept for one that lacks it is kept against this one, too.
  const auto older = loaded ? oldest_loaded_ : oldest_;
  std::optional<model::TaskIndex> oldest = older;
  if (!oldest) {
    oldest = loaded ? outside_.oldest_loaded_without_device() : outside_.oldest_without_room();
  }
  const bool before = oldest && (loaded ? outside_.trains_before(*oldest, index)
                                        : outside_.starts_before(*oldest, index));
  if (before && outside_.is_owed_its_room(*oldest, now_)) {
    auto& kept = loaded ? kept_loaded_ : kept_;
    if (!kept) kept = outside_.opening_for(*oldest, now_);
    if (*kept && outside_.would_delay(**kept, index, *on, now_)) return false;
  }
  counts_.count(Fault::WaitsForStart);
  held_.emplace_back(due, *on);
  return true;
}

/// Checks the caps that tasks got with this event, with the state after it.
void Checkers::check_caps() {
  if (caps_.empty() || complaint_) return;
  std::vector<SeenGpu> left = outside_.gpus.now();
  for (const auto& [kept, on] : held_) take_from(left, kept, on);
  for (const auto& [index, cap] : caps_) {
    expect_of(index, cap == outside_.cap_for(index, left),
              "is told to take what nobody else was promised, and no more");
  }
}

}  // namespace trainyard::sim
