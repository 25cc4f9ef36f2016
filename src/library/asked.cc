#include "library/asked.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "job/task_environment.h"
#include "trainyard/bytes.h"

namespace trainyard::library {
namespace {

// As a person would write the value into a job file, so that it is read by the same rules: bytes
// with their unit, but for a few, which are surely no memory; a number, a time, a word.
std::string text_of(Bytes value) {
  constexpr std::int64_t kSurelyMeant = 1'000;
  return fmt::format("{}{}", value.count, value.count >= kSurelyMeant ? "B" : "");
}
std::string text_of(double value) {
  // A third of a CPU is as many thousandths as there are.
  return std::isfinite(value) ? fmt::format("{:.3f}", value) : fmt::format("{}", value);
}
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::chrono::milliseconds value) {
  return value.count() == 0 ? "0" : fmt::format("{}ms", value.count());
}

using Said = std::vector<std::pair<job::TaskKey, std::string>>;

template <class Value>
void add(Said& said, job::TaskKey key, const std::optional<Value>& value) {
  if (value) said.emplace_back(key, text_of(*value));
}

void add(Said& said, job::TaskKey key, const std::string& value) {
  if (!value.empty()) said.emplace_back(key, value);
}

void add_least(Said& said, job::TaskKey key, const std::optional<Bytes>& value) {
  if (value) said.emplace_back(key, "at least " + text_of(*value));
}

Said said_by(const TaskOptions& options) {
  using enum job::TaskKey;
  Said said;
  add(said, Memory, options.memory);
  add_least(said, Memory, options.memory_at_least);
  if (options.memory_hard) said.emplace_back(MemoryLimit, *options.memory_hard ? "hard" : "none");
  add(said, Preemptible, options.preemptible);
  add(said, Priority, options.priority);
  add(said, Signal, options.signal);
  add(said, Cpus, options.cpus);
  add(said, Disk, options.disk);
  add(said, Gpus, options.gpus);
  add(said, GpuMemory, options.gpu_memory);
  add_least(said, GpuMemory, options.gpu_memory_at_least);
  add(said, GpuMemoryLimit, options.gpu_memory_limit);
  add(said, GpuUtilization, options.gpu_utilization);
  add(said, MaxPerGpu, options.max_per_gpu);
  add(said, Device, options.device);
  add(said, Ranks, options.ranks);
  add(said, job::TaskKey::Duration, options.duration);
  add(said, TimeLimit, options.time_limit);
  add(said, Retries, options.retries);
  add(said, OomRetries, options.oom_retries);
  if (options.retry_on_time_limit) {
    said.emplace_back(RetryOn, *options.retry_on_time_limit ? "time-limit" : "");
  }
  add(said, RetryDelay, options.retry_delay);
  add(said, StartAfter, options.start_after);
  return said;
}

}  // namespace

namespace {

/// An amount is what it says, or it may grow.
Result<void> check_memory(const TaskOptions& options) {
  if (options.memory && options.memory_at_least) {
    return std::unexpected(Error{"memory: cannot be combined with memory_at_least"});
  }
  if (options.gpu_memory && options.gpu_memory_at_least) {
    return std::unexpected(Error{"gpu_memory: cannot be combined with gpu_memory_at_least"});
  }
  return {};
}

Result<void> check_environment(const TaskOptions& options) {
  const auto wrong = [](std::string_view name, std::string_view why) {
    return std::unexpected(Error{fmt::format("environment: '{}' {}", name, why)});
  };
  for (const auto& [name, value] : options.environment) {
    if (const auto why = job::why_not_to_set(name)) return wrong(name, *why);
    if (value.contains('\0')) return wrong(name, "has a value with a NUL in it");
    if (name.size() + value.size() + 2 > job::kVariableMax)
      return wrong(name, "has more than 128 KiB");
  }
  return {};
}

}  // namespace

Result<AskedOfTask> asked_of(const TaskOptions& own, const TaskOptions& group) {
  AskedOfTask found{.asked = {},
                    .device_goes_first = !own.device.empty() && !own.gpus && !own.gpu_memory &&
                                         !own.gpu_memory_at_least};
  for (const TaskOptions* const options : {&group, &own}) {
    if (Result<void> fine = check_environment(*options); !fine) {
      return std::unexpected(std::move(fine.error()));
    }
    if (Result<void> fine = check_memory(*options); !fine) {
      return std::unexpected(std::move(fine.error()));
    }
    for (const auto& [key, text] : said_by(*options)) {
      const job::TaskKeyInfo& info = job::info_of(key);
      Result<void> taken = info.take(text, found.asked);
      if (!taken) return std::unexpected(std::move(taken.error()).in(std::string(info.name)));
    }
  }
  // A task of the library has two phases: it loads, and then waits for its device.
  found.asked.terms.two_phase = true;
  return found;
}

}  // namespace trainyard::library
