#include "pipeline/retained_events.h"

#include <iterator>
#include <utility>

#include <fnmatch.h>

namespace trainyard::pipeline {

void RetainedEvents::keep(std::string_view name, RetainedEvent event) {
  all_.insert_or_assign(std::string(name), std::make_shared<const RetainedEvent>(std::move(event)));
}

RetainedEvents::All RetainedEvents::matching(const std::string& name, bool is_pattern) const {
  All found;
  for (const auto& [event, kept] : all_) {
    const bool matches = is_pattern ? fnmatch(name.c_str(), event.c_str(), 0) == 0 : event == name;
    if (matches) found.emplace(event, kept);
  }
  return found;
}

void RetainedEvents::forget_unheard(const std::function<bool(const std::string& name)>& is_heard) {
  for (auto it = all_.begin(); it != all_.end();) {
    const bool goes = it->second->is_of_others && !is_heard(it->first);
    it = goes ? all_.erase(it) : std::next(it);
  }
}

void LateEvents::expect(RetainedEvents::All events) {
  any_ = !events.empty();
  events_ = std::move(events);
}

void LateEvents::hear(const Hear& hear) {
  while (any_.load(std::memory_order_acquire)) {
    const std::scoped_lock lock(mutex_);
    if (events_.empty()) {
      any_ = false;
      return;
    }
    const auto first = events_.extract(events_.begin());
    hear(first.key(), *first.mapped());
  }
}

void LateEvents::drop(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(name);
  if (found != events_.end()) events_.erase(found);
}

}  // namespace trainyard::pipeline
