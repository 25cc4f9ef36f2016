#include "library/asked.h"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "job/task_environment.h"

namespace trainyard::library {
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
    for (const job::TaskKeyInfo& info : job::task_keys()) {
      const auto text = info.option == nullptr ? std::nullopt : info.option(*options);
      if (!text) continue;
      Result<void> taken = info.take(*text, found.asked);
      if (!taken) return std::unexpected(std::move(taken.error()).in(std::string(info.name)));
    }
  }
  // A task of the library has two phases: it loads, and then waits for its device.
  found.asked.terms.two_phase = true;
  return found;
}

}  // namespace trainyard::library
