#include "workers/senders.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainyard/parallel.h"
#include "workers/roll.h"
#include "workers/routes.h"

namespace trainyard::workers {
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
  if (names.size() <= kNamesMax) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more",
                     fmt::join(names.begin(), names.begin() + std::ptrdiff_t{kNamesMax}, ", "),
                     names.size() - kNamesMax);
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
