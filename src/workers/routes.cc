#include "workers/routes.h"

#include <algorithm>
#include <expected>

#include <fnmatch.h>

#include <fmt/format.h>

namespace trainyard::workers {
namespace {

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

bool is_match(const std::string& wanted, bool pattern, const std::string& name) {
  return wanted == name || (pattern && fnmatch(wanted.c_str(), name.c_str(), 0) == 0);
}

}  // namespace

bool Routes::matches(const std::string& wanted, const std::string& name) {
  return is_match(wanted, is_pattern(wanted), name);
}

bool Routes::wants(int node, const std::string& name) const {
  const auto found = wants_.find(node);
  return found != wants_.end() && std::ranges::any_of(found->second.names, [&](const auto& it) {
           return is_match(it.first, it.second.is_pattern, name);
         });
}

Result<std::vector<std::uint64_t>> Routes::want(int node, const std::string& name) {
  if (wants_[node].names.size() >= kWantsMax) {
    return std::unexpected(Error{fmt::format("it wants more than {} names of events", kWantsMax)});
  }
  std::vector<std::uint64_t> added;
  const bool pattern = is_pattern(name);
  for (const auto& [topic, word] : topics_) {
    if (is_match(name, pattern, word.name) && !wants(node, word.name)) added.push_back(topic);
  }
  wants_[node].names.emplace(name, Want{.is_pattern = pattern, .number = ++wants_made_});
  known_.clear();
  return added;
}

void Routes::want_not(int node, const std::string& name) {
  wants_[node].names.erase(name);
  known_.clear();
}

void Routes::forget(int node) {
  wants_.erase(node);
  known_.clear();
}

Result<void> Routes::tell_topic(const wire::TopicWord& word) {
  const std::uint64_t topic = wire::topic_of(word.name);
  const auto found = topics_.find(topic);
  if (found == topics_.end()) {
    if (topics_.size() >= kTopicsMax) {
      return std::unexpected(
          Error{fmt::format("there are more than {} names of events", kTopicsMax)});
    }
    topics_.emplace(topic, word);
    return {};
  }
  if (found->second.name != word.name) {
    return std::unexpected(Error{fmt::format("the names of events '{}' and '{}' have one number",
                                             found->second.name, word.name)});
  }
  if (found->second.type != word.type) {
    return std::unexpected(Error{fmt::format("event '{}' carries {} elsewhere, and {} here",
                                             word.name, found->second.type, word.type)});
  }
  return {};
}

const wire::TopicWord* Routes::find(std::uint64_t topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> Routes::topics_of(const std::string& name) const {
  std::vector<std::uint64_t> topics;
  const bool pattern = is_pattern(name);
  for (const auto& [topic, word] : topics_) {
    if (is_match(name, pattern, word.name)) topics.push_back(topic);
  }
  return topics;
}

const std::vector<int>& Routes::wanting(std::uint64_t topic) {
  const auto [entry, is_new] = known_.try_emplace(topic);
  if (!is_new) return entry->second;
  const wire::TopicWord* const word = find(topic);
  for (const auto& [node, wanted] : wants_) {
    if (word != nullptr && wants(node, word->name)) entry->second.push_back(node);
  }
  return entry->second;
}

bool Routes::wants_first(int node, const std::string& name, std::uint64_t topic) const {
  const auto wants = wants_.find(node);
  const wire::TopicWord* const word = find(topic);
  if (wants == wants_.end() || word == nullptr) return false;
  const auto by = wants->second.names.find(name);
  if (by == wants->second.names.end()) return false;
  return std::ranges::none_of(wants->second.names, [&](const auto& it) {
    return it.second.number < by->second.number &&
           is_match(it.first, it.second.is_pattern, word->name);
  });
}

bool Routes::hears(int from, int to) const {
  if (from == to) return false;
  switch (topology_) {
    case Topology::Mesh:
      return true;
    case Topology::Star:
      return from == hub_ || to == hub_;
    case Topology::Alone:
      return false;
  }
  return false;
}

}  // namespace trainyard::workers
