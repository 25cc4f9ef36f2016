// How values are read that are neither an amount of memory nor a length of time with a unit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/terms.h"
#include "settings/configuration.h"

namespace trainyard::settings {

/// `true` or `false`. The error for `yes`, `on` and the like says which was meant.
Result<bool> parse_flag(std::string_view text);

/// Above 0 to 1, or above 0% to 100%.
Result<double> parse_share(std::string_view text);

/// How many tasks are tried before the others: 0 or 1.
Result<bool> parse_try_first(std::string_view text);

/// A whole number from 0 to 1,000,000,000.
Result<int> parse_count(std::string_view text);
/// How many GPUs: as a count. The error for a part of one says what shares a GPU.
Result<int> parse_gpus(std::string_view text);
/// How many tasks may share a GPU: from 0, which is any number, to model::kMaxPerGpuMost.
Result<int> parse_max_per_gpu(std::string_view text);
/// How many processes a task is: from 1 to model::kRanksMax.
Result<int> parse_ranks(std::string_view text);
/// So many allocations may be asked for at once.
constexpr int kAllocationsMax = 64;

/// A bare number is seconds; else as parse_duration().
Result<Duration> parse_seconds(std::string_view text);

/// A number of CPUs from 0 to 100,000 with at most three decimals.
Result<model::Cpus> parse_cpus(std::string_view text);

/// How much memory a task wants.
struct MemoryWish {
  bool learned = false;  ///< It may grow by what tasks of its kind are seen to take,
  Bytes bytes;           ///< from here on; 0: nobody knows how much that is.

  friend bool operator==(const MemoryWish&, const MemoryWish&) = default;
};
/// `4GB`, or `at least 4GB`, which may grow.
Result<MemoryWish> parse_memory(std::string_view text);
/// The same of a GPU, where it may be `auto`: all of it is to be learned.
Result<MemoryWish> parse_gpu_memory(std::string_view text);

/// `hard` or `none`: whether a task that takes more memory than it was promised is ended.
Result<bool> parse_memory_limit(std::string_view text);

/// `none`, `soft` or `hard`: whether a task is kept to its part of a GPU that it shares.
Result<model::GpuMemoryLimit> parse_gpu_memory_limit(std::string_view text);

/// The requested device: `cpu`, `cuda` or `cuda:<index>`.
struct DeviceWish {
  bool cpu = false;                    ///< Else a GPU,
  std::optional<model::GpuIndex> gpu;  ///< and this one.
};
Result<DeviceWish> parse_device(std::string_view text);

/// Reads a value of a kind; what comes back is how it is kept. The error says what would be right.
Result<std::string> parse_setting(SettingKind kind, std::string_view text);

}  // namespace trainyard::settings
