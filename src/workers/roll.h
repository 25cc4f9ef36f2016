// The workers of a parallel run, and the presence of each. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace trainyard::workers {

enum class Presence : std::uint8_t {
  Awaited,   ///< It has not connected yet, or is to come again.
  Joined,    ///< Connected.
  Settled,   ///< And listens to all that it wants from the beginning.
  Finished,  ///< It has ended well.
  Failed,    ///< And not well, and does not come again.
};
/// "awaited", "joined", ...
std::string_view to_text(Presence presence);

struct Member {
  std::vector<std::string> roles;
  Presence presence = Presence::Awaited;
  bool settled_once = false;
};

class Roll {
 public:
  void add(int node, std::vector<std::string> roles) {
    members_[node] = {.roles = std::move(roles)};
  }
  void set(int node, Presence presence);

  /// Sets the number of workers of other machines that have yet to come and have no number yet.
  void expect(int unknown) { unknown_ = unknown; }
  [[nodiscard]] int unknown() const { return unknown_; }

  [[nodiscard]] const std::map<int, Member>& members() const { return members_; }
  [[nodiscard]] const Member& at(int node) const { return members_.at(node); }
  /// Returns whether the worker is there, or will come.
  [[nodiscard]] bool counts(int node) const;
  /// How many have said that they listen, of all that there ever were.
  [[nodiscard]] int settled() const;
  /// Nobody is waited for any more before what is sent may go.
  [[nodiscard]] bool is_open() const;
  /// "worker 2 (collector)"
  [[nodiscard]] std::string name_of(int node) const;
  /// Those that are given to a worker.
  [[nodiscard]] std::set<std::string> roles() const;
  /// Whether it has one of these roles, as Worker::has_role: one without roles has every role. No
  /// roles asked for: yes.
  [[nodiscard]] bool plays(int node, const std::vector<std::string>& roles) const;

 private:
  std::map<int, Member> members_;
  int unknown_ = 0;
};

}  // namespace trainyard::workers
