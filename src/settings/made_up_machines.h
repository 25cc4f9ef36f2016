// How people write machines that are not here: "8x(4x80GB, 64 CPUs, 512GB) + 2x(64 CPUs, 256GB)".
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/resources.h"

namespace trainyard::settings {

/// So many machines there may be in all, and so many GPUs in one.
constexpr int kMadeUpMachinesMax = 1'000;
constexpr int kMadeUpGpusMax = 1'000;

/// Machines that are alike.
struct MadeUpMachines {
  int count = 1;
  std::vector<Bytes> gpus;          ///< The memory of each.
  std::optional<model::Cpus> cpus;  ///< Nothing: nobody said.
  std::optional<Bytes> memory;      ///< Of the host; the same.

  friend bool operator==(const MadeUpMachines&, const MadeUpMachines&) = default;
};

/// At least one kind. The error says where in the text it is wrong, and what would be right.
Result<std::vector<MadeUpMachines>> parse_made_up_machines(std::string_view text);

/// "8x(4x80GB, 64 CPUs, 512GB)": as it is written.
std::string to_text(const MadeUpMachines& kind);

}  // namespace trainyard::settings
