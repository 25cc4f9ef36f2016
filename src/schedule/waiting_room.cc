#include "schedule/waiting_room.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard {

void WaitingRoom::add(TaskIndex task, ShapeIndex shape, GroupIndex group, const Request& request) {
  const auto [it, fresh] =
      index_.try_emplace({shape, request}, static_cast<std::uint32_t>(lanes_.size()));
  if (fresh) {
    lanes_.push_back({.shape = shape, .group = group, .request = request, .tasks = {}});
  }
  Lane& lane = lanes_[it->second];
  if (!lane.tasks.empty()) order_.erase({lane.tasks.front(), it->second});
  // Nearly always at the end; a task that comes back goes where it was.
  const auto place = std::ranges::upper_bound(lane.tasks, task);
  lane.tasks.insert(place, task);
  order_.insert({lane.tasks.front(), it->second});
  ++waiting_[shape];
}

TaskIndex WaitingRoom::take_head(std::uint32_t index) {
  Lane& lane = lanes_[index];
  check(!lane.tasks.empty(), "only a lane with somebody in it is looked at");
  const TaskIndex head = lane.tasks.front();
  // The node goes on to stand for the next head: no allocation for each start.
  auto node = order_.extract({head, index});
  lane.tasks.pop_front();
  if (!lane.tasks.empty()) {
    node.value() = {lane.tasks.front(), index};
    order_.insert(std::move(node));
  }
  leave(lane.shape);
  return head;
}

void WaitingRoom::remove(TaskIndex task) {
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    const auto found = std::ranges::lower_bound(lane.tasks, task);
    if (found == lane.tasks.end() || *found != task) continue;
    order_.erase({lane.tasks.front(), index});
    lane.tasks.erase(found);
    if (!lane.tasks.empty()) order_.insert({lane.tasks.front(), index});
    leave(lane.shape);
    return;
  }
  check(false, "a task is removed from where it waits");
}

std::vector<TaskIndex> WaitingRoom::clear(GroupIndex group) {
  std::vector<TaskIndex> gone;
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    if (lane.group != group || lane.tasks.empty()) continue;
    order_.erase({lane.tasks.front(), index});
    gone.insert(gone.end(), lane.tasks.begin(), lane.tasks.end());
    waiting_[lane.shape] -= static_cast<std::uint32_t>(lane.tasks.size());
    lane.tasks = {};
  }
  std::ranges::sort(gone);
  return gone;
}

std::uint32_t WaitingRoom::waiting_in(ShapeIndex shape) const {
  const auto found = waiting_.find(shape);
  return found == waiting_.end() ? 0 : found->second;
}

}  // namespace trainyard
