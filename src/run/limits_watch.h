// The GPUs that the runs of this user may have at present: by the hour (`limits`), and less those
// that a user wants back (`trainyard drain`). Reads the wall clock and files; belongs to the thread
// of the loop.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/event.h"
#include "model/gpu_limits.h"
#include "model/resources.h"

namespace trainyard::run {

class LimitsWatch {
 public:
  /// `directories`: those of drains; empty: none.
  LimitsWatch(model::GpuLimits limits, std::vector<std::string> directories)
      : limits_(std::move(limits)), directories_(std::move(directories)) {}

  /// Nothing if it is the same as the last result, or was never other than without any limit.
  std::optional<model::LimitsChanged> look(std::span<const model::Gpu> gpus);

 private:
  model::GpuLimits limits_;
  std::vector<std::string> directories_;
  model::LimitsChanged told_;
};

/// The limits at a moment, from the written ones. Pure.
model::LimitsChanged limits_now(const model::GpuLimitNow& limit,
                                std::span<const model::Drain> drains,
                                std::span<const model::Gpu> gpus, std::int64_t unix_s);

}  // namespace trainyard::run
