// Nodes that a batch system has given for a time, as the program that asked for them says it: one
// line, "12 1-02:03:04 node1 node2": the number of the allocation, how much time is left of it as
// Slurm's squeue shows that ("%L"), and the names of its nodes. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace trainyard::run {

/// Maximum number of nodes of an allocation.
constexpr std::size_t kNodesMax = 4096;

struct GrantedNodes {
  std::string allocation;        ///< Its number: digits.
  std::optional<Duration> left;  ///< Nothing: it has no end that is known, as of "UNLIMITED".
  std::vector<std::string> nodes;

  friend bool operator==(const GrantedNodes&, const GrantedNodes&) = default;
};

/// Reads any text, from an untrusted source.
Result<GrantedNodes> granted_nodes(std::string_view line);

}  // namespace trainyard::run
