// NVIDIA's management library, opened by its name when the program runs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "hardware/gpu_driver.h"

namespace trainyard::hardware {

/// Opens the library and lists what it shows. An error says why there is nothing to show, for
/// people ("no NVIDIA driver", "NVIDIA's driver fails: Driver/library version mismatch"); a driver
/// that shows no GPU is one, too. May take seconds, and hang with a driver that does. While a GPU
/// does not answer, the library is restarted with at least `restart_pause` between two restarts.
Result<std::unique_ptr<GpuDriver>> open_nvml(const std::string& library, Duration restart_pause);

}  // namespace trainyard::hardware
