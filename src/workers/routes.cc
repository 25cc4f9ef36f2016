#include "workers/routes.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fnmatch.h>

#include <fmt/format.h>

#include "base/list_text.h"
#include "workers/roll.h"

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

namespace {

constexpr std::size_t kNamesMax = 8;

Topology topology_of(std::string_view text) {
  for (const Topology each : {Topology::Star, Topology::Alone}) {
    if (text == to_text(each)) return each;
  }
  return Topology::Mesh;
}

std::string end_of(const std::string& name, const wire::PeerWord& word) {
  return fmt::format("{} has ended ({}{}{})", name, word.outcome, word.why.empty() ? "" : ": ",
                     word.why);
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  return short_list_text(names, kNamesMax);
}

Senders senders_of(const wire::RollWord& word, const std::map<int, wire::PeerWord>& over, int own,
                   std::string_view role) {
  Roll roll;
  for (const wire::RollWord::Worker& each : word.workers) roll.add(each.node, each.roles);
  const Routes routes(topology_of(word.topology), word.hub);
  Senders senders;
  std::vector<std::string> ended;
  std::vector<std::string> unheard;
  for (const auto& [node, member] : roll.members()) {
    // A worker without roles has every role, and sends as none of them.
    const bool sends = std::ranges::find(member.roles, role) != member.roles.end();
    if (node == own || !sends) continue;
    std::string name = roll.name_of(node);
    const auto end = over.find(node);
    if (!routes.hears(node, own)) {
      unheard.push_back(std::move(name));
    } else if (end != over.end()) {
      ended.push_back(end_of(name, end->second));
    } else {
      senders.left.push_back(std::move(name));
    }
  }
  // Whoever comes from another machine has another node than all of these.
  const int unknown = wire::kNodesMax;
  if (word.awaited > 0 && routes.hears(unknown, own)) {
    senders.left.push_back(fmt::format("{} workers that have not joined yet", word.awaited));
  }
  if (!senders.left.empty()) return senders;
  if (!ended.empty()) {
    senders.why_none = fmt::format("nothing more comes of the role '{}': {}", role, listed(ended));
  } else if (!unheard.empty()) {
    senders.why_none = fmt::format(
        "nothing comes of the role '{}': in the topology '{}' worker {} does not hear {}", role,
        word.topology, own, listed(unheard));
  } else {
    senders.why_none =
        fmt::format("nothing comes of the role '{}': no other worker of the run has it", role);
  }
  return senders;
}

}  // namespace trainyard::workers
