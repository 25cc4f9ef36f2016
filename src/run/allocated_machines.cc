#include "run/allocated_machines.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"

namespace trainyard::run {
namespace {

constexpr Duration kLookEach{100};
constexpr Duration kLookForUseEach{1'000};
/// The leases of older allocations have ended long ago, so nothing waits for their end.
constexpr std::size_t kPastMax = 16;

}  // namespace

AllocatedMachines::AllocatedMachines(RemoteMachines& remotes, Options options)
    : remotes_(remotes), options_(std::move(options)) {
  places_.resize(static_cast<std::size_t>(std::max(options_.count, 1)));
}

AllocatedMachines::~AllocatedMachines() {
  for (const Place& place : places_) {
    if (place.timer) remotes_.loop().cancel(*place.timer);
  }
  if (looks_) remotes_.loop().cancel(*looks_);
}

Result<void> AllocatedMachines::wait_for_the_first(const std::function<bool()>& is_wanted) {
  for (Place& place : places_) ask(place);
  while (nodes_.empty()) {
    if (!is_any_requested()) return std::unexpected(Error{failure_});
    if (!is_wanted()) return std::unexpected(Error{"no task waits for it any more"});
    remotes_.loop().run_once(kLookEach);
  }
  return {};
}

bool AllocatedMachines::is_any_requested() const {
  return std::ranges::any_of(places_, [](const Place& it) { return it.allocation != nullptr; });
}

void AllocatedMachines::ask(Place& place) {
  place.timer.reset();
  place.allocation = std::make_unique<Allocation>(
      remotes_.loop(), options_.each,
      Allocation::Ears{.granted = [this, &place](const GrantedNodes& it) { granted(place, it); },
                       .ended = [this, &place](const std::string& why) { ended(place, why); },
                       .over = [this](const std::string& number) { over(number); },
                       .said = [this](const std::string& line) { options_.note(line); }});
  place.allocation->ask();
}

void AllocatedMachines::granted(Place& place, const GrantedNodes& nodes) {
  place.granted_at = sys::EventLoop::now();
  place.idle_since.reset();
  const std::string lasts =
      nodes.left ? fmt::format(", for {}", trainyard::to_text(*nodes.left)) : std::string();
  options_.note(
      fmt::format("allocation {} has {}{}", nodes.allocation, fmt::join(nodes.nodes, ", "), lasts));
  for (const std::string& node : nodes.nodes) lead_to(place, node, nodes);
}

/// Two allocations may have the same node at once: it is two machines then.
void AllocatedMachines::lead_to(const Place& place, const std::string& node,
                                const GrantedNodes& nodes) {
  std::string name = node;
  if (const auto known = nodes_.find(name); known != nodes_.end() && !known->second.rests) {
    name = fmt::format("{}-{}", node, nodes.allocation);
  }
  RemoteMachine::Options way = options_.lead(node, nodes.allocation);
  way.name = name;
  if (nodes.left) way.until = place.granted_at + *nodes.left;
  Node& entry = nodes_[name];
  entry.allocation = nodes.allocation;
  entry.rests = false;
  if (entry.machine != nullptr) return entry.machine->lead_by(std::move(way));
  entry.machine = &remotes_.add(std::move(way));
}

void AllocatedMachines::ended(Place& place, const std::string& why) {
  const std::optional<GrantedNodes>& nodes = place.allocation->nodes();
  const bool was_granted = nodes.has_value();
  const std::string number = nodes ? nodes->allocation : std::string();
  for (auto& [name, node] : nodes_) {
    if (!was_granted || node.allocation != number) continue;
    node.rests = true;
    node.machine->rest();
  }
  failure_ = why;
  std::erase_if(past_, [](const auto& it) { return it->is_over(); });
  if (past_.size() == kPastMax) past_.pop_front();
  past_.push_back(std::move(place.allocation));
  const bool was_of_use = was_granted && sys::EventLoop::now() - place.granted_at >= kOfUse;
  if (was_of_use) place.again_after = kAgainMin;
  if (was_granted) options_.note(fmt::format("allocation {} has ended: {}", number, why));
  // If none is left before the first was granted, the error of the wait has the reason.
  const bool is_in_error = nodes_.empty() && !is_any_requested();
  if (!was_granted && !is_in_error) {
    options_.note(fmt::format("an allocation is not granted: {}", why));
  }
  if (run_) plan_to_ask(place);
}

/// Allocations that were refused before the run began are requested again, too.
void AllocatedMachines::go_on(Run run, std::function<void(const std::string&)> note) {
  options_.note = std::move(note);
  run_ = std::move(run);
  for (Place& place : places_) {
    if (!place.allocation) plan_to_ask(place);
  }
  plan_to_look();
}

void AllocatedMachines::plan_to_ask(Place& place) {
  wait_to_ask(place);
  if (is_one_more_wanted()) {
    options_.note(
        fmt::format("requests another allocation in {}", trainyard::to_text(place.again_after)));
  }
  place.again_after = std::min(place.again_after * 2, kAgainMax);
}

void AllocatedMachines::wait_to_ask(Place& place) {
  place.timer = remotes_.loop().after(place.again_after, [this, &place] {
    if (is_one_more_wanted()) return ask(place);
    place.again_after = kAgainMin;
    wait_to_ask(place);
  });
}

/// Allocations that are already requested are for the tasks that wait.
bool AllocatedMachines::is_one_more_wanted() const {
  const auto asked = std::ranges::count_if(
      places_, [](const Place& place) { return place.allocation && !place.allocation->nodes(); });
  return run_ && run_->count_waiting() > static_cast<std::size_t>(asked);
}

void AllocatedMachines::plan_to_look() {
  looks_ = remotes_.loop().after(kLookForUseEach, [this] { look_for_use(); });
}

void AllocatedMachines::look_for_use() {
  const Duration now = sys::EventLoop::now();
  for (Place& place : places_) {
    if (!place.allocation) continue;
    const std::optional<GrantedNodes>& nodes = place.allocation->nodes();
    if (!nodes) continue;
    if (is_of_use(*place.allocation)) {
      place.idle_since.reset();
      continue;
    }
    if (!place.idle_since) place.idle_since = now;
    if (now - *place.idle_since < options_.idle_max) continue;
    options_.note(fmt::format(
        "allocation {} is released: no task runs there, and no waiting task could start there",
        nodes->allocation));
    place.allocation->give_back();
  }
  plan_to_look();
}

/// A machine of it that has not joined yet may be of use.
bool AllocatedMachines::is_of_use(const Allocation& allocation) const {
  return std::ranges::any_of(nodes_, [&](const auto& it) {
    const Node& node = it.second;
    if (node.rests || node.allocation != allocation.nodes()->allocation) return false;
    const auto index = node.machine->index();
    return !index || !run_ || run_->has_use_for(*index);
  });
}

/// The allocation has ended, so no task of it is running, even on nodes that could not be reached.
void AllocatedMachines::over(const std::string& allocation) {
  for (auto& [name, node] : nodes_) {
    const bool was_there = node.rests && node.allocation == allocation;
    if (was_there) node.machine->lose("its allocation has ended");
  }
}

}  // namespace trainyard::run
