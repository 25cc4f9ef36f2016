#include "workers/run_logs.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "sys/files.h"
#include "wire/parallel_record.h"

namespace trainyard::workers {
namespace {

constexpr const char* kLockName = ".workers.lock";

/// worker-3.log, worker-3.2.log
bool is_log(std::string_view name) {
  constexpr std::string_view kBefore = "worker-";
  constexpr std::string_view kBehind = ".log";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return false;
  const std::string_view numbers =
      name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
  return !numbers.empty() && numbers.find_first_not_of("0123456789.") == std::string_view::npos &&
         std::ranges::count(numbers, '.') <= 1;
}

}  // namespace

Result<RunLogs> RunLogs::take(const std::string& directory) {
  auto lock = sys::RunLock::take(directory, kLockName);
  if (!lock) {
    return std::unexpected(Error{fmt::format(
        "{}: each parallel run needs a directory of its own for its logs", lock.error().message)});
  }
  RunLogs logs(directory);
  logs.lock_ = std::move(*lock);
  for (const std::string& name : sys::names_in(directory)) {
    if (!is_log(name) && name != wire::kRecordName) continue;
    std::error_code error;  // One that stays is written over.
    std::filesystem::remove(std::filesystem::path(directory) / name, error);
  }
  return logs;
}

std::string RunLogs::path_of(int node, std::uint32_t life) const {
  if (life > 1) return fmt::format("{}/worker-{}.{}.log", directory_, node, life);
  return fmt::format("{}/worker-{}.log", directory_, node);
}

}  // namespace trainyard::workers
