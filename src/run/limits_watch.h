// What the runs of this user may have of the GPUs at present: by the hour (`limits`), and less what
// somebody wants back (`trainyard drain`). Looks at the clock of people and at files; belongs to
// the thread of the loop.
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
  /// `directories`: where drains are; none: nowhere.
  LimitsWatch(model::GpuLimits limits, std::vector<std::string> directories)
      : limits_(std::move(limits)), directories_(std::move(directories)) {}

  /// Nothing where it is as it was told last, or was never otherwise than without any limit.
  std::optional<model::LimitsChanged> look(std::span<const model::Gpu> gpus);

 private:
  model::GpuLimits limits_;
  std::vector<std::string> directories_;
  model::LimitsChanged told_;
};

/// What holds at a moment, of what is written. Pure.
model::LimitsChanged limits_now(const model::GpuLimitNow& limit,
                                std::span<const model::Drain> drains,
                                std::span<const model::Gpu> gpus, std::int64_t unix_s);

}  // namespace trainyard::run
