#include "run/active_run.h"

#include <expected>
#include <vector>

#include <fmt/format.h>

namespace trainyard::run {
namespace {

std::optional<std::int64_t> yard_of(const std::string& run_directory,
                                    std::span<const process::Watcher> watchers) {
  const auto directory = process::directory_at(run_directory);
  for (const process::Watcher& watcher : watchers) {
    if (watcher.yard != 0 && watcher.directory == directory) return watcher.yard;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> active_process(const std::string& run_directory) {
  const std::optional<std::int64_t> holder = sys::RunLock::holder(run_directory);
  return holder ? holder : yard_of(run_directory, process::find_watchers());
}

std::optional<std::int64_t> active_process(const std::string& run_directory,
                                           std::span<const process::Watcher> watchers) {
  const std::optional<std::int64_t> holder = sys::RunLock::holder(run_directory);
  return holder ? holder : yard_of(run_directory, watchers);
}

Result<sys::RunLock> lock_run(const std::string& run_directory) {
  Result<sys::RunLock> lock = sys::RunLock::take(run_directory);
  if (!lock) return lock;
  const auto yard = yard_of(run_directory, process::find_watchers());
  if (!yard) return lock;
  return std::unexpected(Error{fmt::format("'{}' is in use by process {}", run_directory, *yard)});
}

}  // namespace trainyard::run
