// The processes that ask the driver of the GPUs, of which one may hang or crash.
//
// One is forked early, when there is no other thread yet, and never touches a driver: it forks the
// one that does, and another in its place whenever that is wanted. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hardware/gpu_driver.h"
#include "sys/descriptor.h"

namespace trainyard::hardware {

class GpuAsker {
 public:
  /// Forks the first of them; no driver is asked yet.
  static Result<GpuAsker> start(const GpuSources& sources);

  GpuAsker(GpuAsker&& other) noexcept;
  GpuAsker& operator=(GpuAsker&&) = delete;
  /// Ends them.
  ~GpuAsker();

  /// Has one that asks the driver, in the place of the one before, which is killed. The end of a
  /// socket over which it sends its list at once, and then the states of these for each byte that
  /// it hears, for unpack_list() and unpack_states(), as sys::send_packed does. It is closed where
  /// there is no such process any more: it has died, or the one before hangs in the driver so that
  /// it cannot be killed. `chosen`: those that the environment leaves, in its order; else all.
  [[nodiscard]] Result<sys::Descriptor> another(bool chosen);

  /// The process that was forked first.
  [[nodiscard]] std::int64_t pid() const { return pid_; }

 private:
  GpuAsker(std::int64_t pid, sys::Descriptor words) : pid_(pid), words_(std::move(words)) {}

  std::int64_t pid_ = 0;
  sys::Descriptor words_;
};

// The state of the GPUs, as bytes between the process that asks the driver and the process that
// reads it. Pure; any thread.

GpuList unpack_list(std::string_view text);

/// Reads the states of `count` GPUs.
std::vector<GpuState> unpack_states(std::string_view text, std::size_t count);

}  // namespace trainyard::hardware
