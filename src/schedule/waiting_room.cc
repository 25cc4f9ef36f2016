#include "schedule/waiting_room.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::schedule {

void WaitingRoom::add(model::TaskIndex task, model::ShapeIndex shape, model::GroupIndex group,
                      const model::Request& request) {
  const auto [it, fresh] =
      index_.try_emplace({shape, request}, static_cast<std::uint32_t>(lanes_.size()));
  if (fresh) {
    lanes_.push_back({.shape = shape, .group = group, .request = request, .tasks = {}});
  }
  Lane& lane = lanes_[it->second];
  if (!lane.tasks.empty()) step_back(it->second);
  // Nearly always at the end; a task that comes back goes where it was.
  const auto precedence = [this](model::TaskIndex each) { return precedence_of(each); };
  const auto place = std::ranges::upper_bound(lane.tasks, precedence_of(task), {}, precedence);
  lane.tasks.insert(place, task);
  stand(it->second);
  ++waiting_[shape];
}

void WaitingRoom::set_priority(model::TaskIndex task, int priority) {
  if (priority == 0) return;
  if (task.value >= priorities_.size()) priorities_.resize(std::size_t{task.value} + 1, 0);
  priorities_[task.value] = priority;
}

void WaitingRoom::set_turns(std::vector<std::int64_t> turns) {
  turns_ = std::move(turns);
  order_.clear();
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    std::ranges::sort(lanes_[index].tasks, {},
                      [this](model::TaskIndex each) { return precedence_of(each); });
    if (!lanes_[index].tasks.empty()) stand(index);
  }
}

model::TaskIndex WaitingRoom::take_head(std::uint32_t index) {
  Lane& lane = lanes_[index];
  check(!lane.tasks.empty(), "only a lane with somebody in it is looked at");
  const model::TaskIndex head = lane.tasks.front();
  // The node goes on to stand for the next head: no allocation for each start.
  auto node = order_.extract({.precedence = precedence_of(head), .lane = index});
  lane.tasks.pop_front();
  if (!lane.tasks.empty()) {
    node.value() = {.precedence = precedence_of(lane.tasks.front()), .lane = index};
    order_.insert(std::move(node));
  }
  leave(lane.shape);
  return head;
}

void WaitingRoom::remove(model::TaskIndex task) {
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    const auto precedence = [this](model::TaskIndex each) { return precedence_of(each); };
    const auto found = std::ranges::lower_bound(lane.tasks, precedence_of(task), {}, precedence);
    if (found == lane.tasks.end() || *found != task) continue;
    step_back(index);
    lane.tasks.erase(found);
    if (!lane.tasks.empty()) stand(index);
    leave(lane.shape);
    return;
  }
  check(false, "a task is removed from where it waits");
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

}  // namespace trainyard::schedule
