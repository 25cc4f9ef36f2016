#include "schedule/waiting_room.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/another_try.h"

namespace trainyard::schedule {

void WaitingRoom::add(model::TaskIndex task, model::ShapeIndex shape, model::GroupIndex group,
                      const model::Request& request, model::MachineIndex machine) {
  const auto [it, fresh] =
      index_.try_emplace({shape, machine, request}, static_cast<std::uint32_t>(lanes_.size()));
  if (fresh) {
    if (model::wants_whole_gpus(request)) whole_gpus_.push_back(it->second);
    lanes_.push_back(
        {.shape = shape, .group = group, .request = request, .machine = machine, .tasks = {}});
  }
  Lane& lane = lanes_[it->second];
  if (!lane.tasks.empty()) step_back(it->second);
  // Nearly always at the end; a task that comes back goes where it was.
  const auto precedence = [&](model::TaskIndex each) { return precedence_of(each, shape); };
  const auto place = std::ranges::upper_bound(lane.tasks, precedence(task), {}, precedence);
  lane.tasks.insert(place, task);
  stand(it->second);
  ++waiting_[shape];
}

void WaitingRoom::set_priority(model::TaskIndex task, int priority) {
  if (priority == 0 && task.value >= priorities_.size()) return;
  if (task.value >= priorities_.size()) priorities_.resize(std::size_t{task.value} + 1, 0);
  priorities_[task.value] = priority;
}

void WaitingRoom::set_stead(model::TaskIndex task, model::TaskIndex earlier) {
  steads_[task] = earlier;
}

void WaitingRoom::set_turns(std::vector<std::int64_t> turns) {
  turns_ = std::move(turns);
  put_in_order();
}

void WaitingRoom::put_in_order() {
  order_.clear();
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    std::ranges::sort(lane.tasks, {},
                      [&](model::TaskIndex each) { return precedence_of(each, lane.shape); });
    if (!lane.tasks.empty()) stand(index);
  }
}

void WaitingRoom::refuse(model::TaskIndex task, model::ShapeIndex shape) {
  std::vector<std::uint32_t> lanes;
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    if (lanes_[index].shape == shape && !lanes_[index].tasks.empty()) lanes.push_back(index);
  }
  for (const std::uint32_t index : lanes) step_back(index);
  ++refusals_[task];
  ++refusals_of_shapes_[shape];
  for (const std::uint32_t index : lanes) stand(index);
}

void WaitingRoom::forget_refusals() {
  if (refusals_.empty()) return;
  refusals_.clear();
  refusals_of_shapes_.clear();
  put_in_order();
}

model::TaskIndex WaitingRoom::take_head(std::uint32_t index) {
  Lane& lane = lanes_[index];
  check(!lane.tasks.empty(), "only a lane with somebody in it is looked at");
  const model::TaskIndex head = lane.tasks.front();
  // The node goes on to stand for the next head: no allocation for each start.
  auto node = order_.extract(head_of(index));
  lane.tasks.pop_front();
  if (!lane.tasks.empty()) {
    node.value() = head_of(index);
    order_.insert(std::move(node));
  }
  leave(lane.shape);
  return head;
}

std::optional<WaitingRoom::Place> WaitingRoom::place_of(model::TaskIndex task) const {
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    const std::deque<model::TaskIndex>& tasks = lanes_[index].tasks;
    const auto precedence = [&](model::TaskIndex each) {
      return precedence_of(each, lanes_[index].shape);
    };
    const auto found = std::ranges::lower_bound(tasks, precedence(task), {}, precedence);
    if (found == tasks.end() || *found != task) continue;
    return Place{.lane = index, .position = found - tasks.begin()};
  }
  return std::nullopt;
}

model::Request WaitingRoom::remove(model::TaskIndex task) {
  constexpr Place kNowhere{.lane = std::numeric_limits<std::uint32_t>::max()};
  const Place place = place_of(task).value_or(kNowhere);
  check(place.lane < lanes_.size(), "a task is removed from where it waits");
  Lane& lane = lanes_[place.lane];
  step_back(place.lane);
  lane.tasks.erase(lane.tasks.begin() + place.position);
  if (!lane.tasks.empty()) stand(place.lane);
  leave(lane.shape);
  return lane.request;
}

std::vector<model::TaskIndex> WaitingRoom::clear(model::GroupIndex group) {
  std::vector<model::TaskIndex> gone;
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    if (lane.group != group || lane.tasks.empty()) continue;
    step_back(index);
    gone.insert(gone.end(), lane.tasks.begin(), lane.tasks.end());
    waiting_[lane.shape] -= static_cast<std::uint32_t>(lane.tasks.size());
    lane.tasks = {};
  }
  std::ranges::sort(gone);
  return gone;
}

std::uint32_t WaitingRoom::waiting_in(model::ShapeIndex shape) const {
  const auto found = waiting_.find(shape);
  return found == waiting_.end() ? 0 : found->second;
}

void DelayedTries::add(model::TaskIndex task, Instant at, Bytes memory) {
  const bool is_new = tasks_.try_emplace(task, Waiting{.at = at, .memory = memory}).second;
  check(is_new, "a task waits for one next try");
  order_.insert({at, task});
}

std::optional<DelayedTries::Waiting> DelayedTries::remove(model::TaskIndex task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  const Waiting waiting = found->second;
  order_.erase({waiting.at, task});
  tasks_.erase(found);
  return waiting;
}

std::vector<DelayedTries::Due> DelayedTries::take_due(Instant now) {
  std::vector<Due> due;
  while (!order_.empty() && order_.begin()->first <= now) {
    const model::TaskIndex task = order_.begin()->second;
    due.push_back({.task = task, .memory = tasks_.at(task).memory});
    remove(task);
  }
  return due;
}

std::vector<model::TaskIndex> DelayedTries::take(model::TaskIndex first, model::TaskIndex last) {
  std::vector<model::TaskIndex> taken;
  for (auto it = tasks_.lower_bound(first); it != tasks_.end() && it->first < last;) {
    taken.push_back(it->first);
    order_.erase({it->second.at, it->first});
    it = tasks_.erase(it);
  }
  return taken;
}

Duration DelayedTries::spread(model::AttemptKey failed, Instant now) {
  const auto before = std::exchange(last_spread_, Failed{.task = failed.task, .at = now});
  const bool together = before && before->task != failed.task && now - before->at < kRetrySpread;
  return together ? spread_delay(failed) : Duration{0};
}

std::optional<Instant> DelayedTries::first() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

}  // namespace trainyard::schedule
