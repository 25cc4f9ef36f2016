#include "workers/run_logs.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
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

/// Names up to the first point of the logs that a former parallel run has left, as its record says.
/// Nothing: there is no record of one.
std::optional<std::set<std::string>> stems_of_former_run(const std::string& directory) {
  const auto text = sys::read_plain_file(fmt::format("{}/{}", directory, wire::kRecordName),
                                         Bytes{static_cast<std::int64_t>(wire::kRecordBytesMax)},
                                         sys::Links::Refuse);
  if (!text || !*text) return std::nullopt;
  const auto record = wire::read_parallel_record(**text);
  if (!record) return std::nullopt;
  std::set<std::string> stems;
  for (const wire::WorkerRecord& each : record->workers) {
    stems.insert(fmt::format("worker-{}", each.node));
  }
  return stems;
}

}  // namespace

Result<RunLogs> RunLogs::take(const std::string& directory) {
  auto lock = sys::RunLock::take(directory, kLockName);
  if (!lock) {
    return std::unexpected(Error{fmt::format(
        "{}: each parallel run needs a directory of its own for its logs; choose another directory "
        "(--logs)",
        lock.error().message)});
  }
  const auto stems = stems_of_former_run(directory);
  std::vector<std::string> former_logs;
  for (const std::string& name : sys::names_in(directory)) {
    const bool is_record = name == wire::kRecordName;
    if (!is_record && !is_log(name)) continue;
    if (!stems || (!is_record && !stems->contains(name.substr(0, name.find('.'))))) {
      return std::unexpected(Error{fmt::format(
          "'{}/{}' is not of a former parallel run and would be lost: choose another directory "
          "(--logs), or move the file",
          directory, name)});
    }
    if (!is_record) former_logs.push_back(name);
  }
  // The record goes last: a log without one is refused.
  bool any_stays = false;
  for (const std::string& name : former_logs) {
    std::error_code error;  // One that stays is written over.
    std::filesystem::remove(std::filesystem::path(directory) / name, error);
    any_stays = any_stays || error;
  }
  std::error_code error;
  if (!any_stays) {
    std::filesystem::remove(std::filesystem::path(directory) / wire::kRecordName, error);
  }
  RunLogs logs(directory);
  logs.lock_ = std::move(*lock);
  return logs;
}

std::string RunLogs::path_of(int node, std::uint32_t life) const {
  if (life > 1) return fmt::format("{}/worker-{}.{}.log", directory_, node, life);
  return fmt::format("{}/worker-{}.log", directory_, node);
}

}  // namespace trainyard::workers
