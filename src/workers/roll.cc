#include "workers/roll.h"

#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trainyard::workers {

std::string_view to_text(Presence presence) {
  static constexpr std::array<std::string_view, 5> kWords{"awaited", "joined", "settled",
                                                          "finished", "failed"};
  return kWords.at(static_cast<std::size_t>(presence));
}

void Roll::set(int node, Presence presence) {
  Member& member = members_.at(node);
  member.presence = presence;
  if (presence == Presence::Settled) member.settled_once = true;
}

bool Roll::counts(int node) const {
  const Presence presence = at(node).presence;
  return presence != Presence::Finished && presence != Presence::Failed;
}

int Roll::settled() const {
  return static_cast<int>(
      std::ranges::count_if(members_, [](const auto& it) { return it.second.settled_once; }));
}

bool Roll::is_open() const {
  return unknown_ == 0 && std::ranges::all_of(members_, [this](const auto& it) {
           return it.second.settled_once || !counts(it.first);
         });
}

std::string Roll::name_of(int node) const {
  const std::vector<std::string>& roles = at(node).roles;
  if (roles.empty()) return fmt::format("worker {}", node);
  return fmt::format("worker {} ({})", node, fmt::join(roles, ", "));
}

std::set<std::string> Roll::roles() const {
  std::set<std::string> all;
  for (const auto& [node, member] : members_) all.insert(member.roles.begin(), member.roles.end());
  return all;
}

bool Roll::plays(int node, const std::vector<std::string>& roles) const {
  const std::vector<std::string>& mine = at(node).roles;
  return roles.empty() || mine.empty() || std::ranges::any_of(mine, [&](const std::string& role) {
           return std::ranges::find(roles, role) != roles.end();
         });
}

}  // namespace trainyard::workers
