// Processes on a GPU that are none of our tasks', and who of them is to have it for himself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"

namespace trainyard::model {

struct GpuStranger {
  std::optional<std::uint32_t> user;  ///< Another one than ours; nothing: ours, or not known.
  std::string program;                ///< Its name, at most 15 bytes of it.
  std::optional<Bytes> memory;        ///< Of the GPU; nothing: the driver hides it.
  bool draws = false;                 ///< A display server, or what draws for one.
};

/// The other user who computes on the GPU; of several, the one whose process takes the most memory.
/// Who only draws does not compute, nor who is known to have a context of less than 100 MB, as
/// monitors do; NVIDIA's MPS does the work of others, who are not told apart.
std::optional<std::uint32_t> who_computes(std::span<const GpuStranger> strangers);

}  // namespace trainyard::model
