// The receivers of events: the events that each worker wants, and its possible senders. Pure; one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "trainyard/parallel.h"
#include "wire/worker.h"

namespace trainyard::workers {

class Routes {
 public:
  /// So many names a worker may want, and so many topics there may be.
  static constexpr std::size_t kWantsMax = 10'000;
  static constexpr std::size_t kTopicsMax = 100'000;

  /// `hub` is the middle of a star: the node that exchanges events with all others.
  Routes(Topology topology, int hub) : topology_(topology), hub_(hub) {}

  /// A name, or a pattern. The topics that it wants from now on and did not before. An error: too
  /// many.
  Result<std::vector<std::uint64_t>> want(int node, const std::string& name);
  void want_not(int node, const std::string& name);
  /// Removes a worker that is gone, with all that it wants.
  void forget(int node);

  /// Somebody sends it. An error: another name has its number, or it carries another type than
  /// somebody has said.
  Result<void> tell_topic(const wire::TopicWord& word);
  /// nullptr if no worker has announced it.
  [[nodiscard]] const wire::TopicWord* find(std::uint64_t topic) const;

  /// All that have this name, or match it as a pattern.
  [[nodiscard]] std::vector<std::uint64_t> topics_of(const std::string& name) const;

  /// Who wants it, in order of their numbers, whoever sends it. Good until something changes.
  const std::vector<int>& wanting(std::uint64_t topic);
  [[nodiscard]] bool hears(int from, int to) const;
  /// Whether `wanted` is the name of an event, or a pattern that it matches.
  [[nodiscard]] static bool matches(const std::string& wanted, const std::string& name);
  /// Whether the node wants the topic by this name or pattern, and wanted the topic by no other one
  /// before it.
  [[nodiscard]] bool wants_first(int node, const std::string& name, std::uint64_t topic) const;

 private:
  [[nodiscard]] bool wants(int node, const std::string& name) const;

  struct Want {
    bool is_pattern = false;
    std::uint64_t number = 0;  ///< In the order in which they came.
  };
  struct Wants {
    std::map<std::string, Want> names;
  };
  Topology topology_;
  int hub_;
  std::map<int, Wants> wants_;
  std::uint64_t wants_made_ = 0;
  std::map<std::uint64_t, wire::TopicWord> topics_;
  std::unordered_map<std::uint64_t, std::vector<int>> known_;
};

/// The workers of a role that may still send to one worker, so that it does not wait for events that
/// cannot come.
struct Senders {
  /// "worker 1 (collector)"
  std::vector<std::string> left;
  /// Why nothing can come any more; empty while something may.
  std::string why_none;
};

/// Workers with that role whose events `own` receives. `over` has the last message about those that
/// have finished.
Senders senders_of(const wire::RollWord& word, const std::map<int, wire::PeerWord>& over, int own,
                   std::string_view role);

/// The first names and the number of the others.
std::string listed(const std::vector<std::string>& names);

}  // namespace trainyard::workers
