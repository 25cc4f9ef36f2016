// Processes on a GPU that are none of our tasks', and who of them is to have it for himself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "model/promises.h"

namespace trainyard::model {

struct GpuStranger {
  std::optional<std::uint32_t> user;  ///< Another one than ours; nothing: ours, or not known.
  std::string program;                ///< Its name, at most 15 bytes of it.
  std::optional<Bytes> memory;        ///< Of the GPU; nothing: the driver hides it.
  bool draws = false;                 ///< A display server, or what draws for one.
};

/// The other user who computes on the GPU of this UUID; of several, the one whose process takes the
/// most memory. Who only draws does not compute, nor who is known to have a context of less than
/// 100 MB, as monitors do; NVIDIA's MPS does the work of others, who are not told apart.
///
/// A user whose runs have reserved some of the GPU computes there only when that user's processes
/// have 100 MB more than that together: what a run has reserved is in the ledger already. Processes
/// whose memory the driver hides are taken for those of the runs.
std::optional<std::uint32_t> who_computes(std::span<const GpuStranger> strangers,
                                          const std::string& uuid,
                                          std::span<const Neighbour> neighbours);

}  // namespace trainyard::model
