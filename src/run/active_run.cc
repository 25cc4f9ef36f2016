#include "run/active_run.h"

#include <expected>
#include <vector>

#include <fmt/format.h>

#include "run/run_directory.h"

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
  // Each word of a command may be a run, and most are none: all processes are read only for a
  // directory.
  const bool may_be_active = !holder && process::directory_at(run_directory);
  return may_be_active ? yard_of(run_directory, process::find_watchers()) : holder;
}

std::optional<std::int64_t> active_process(const std::string& run_directory,
                                           std::span<const process::Watcher> watchers) {
  const std::optional<std::int64_t> holder = sys::RunLock::holder(run_directory);
  return holder ? holder : yard_of(run_directory, watchers);
}

Result<sys::RunLock> lock_run(const std::string& run_directory, PlaceOfLock place) {
  // Before the lock opens the directory: this process may have inherited the guard of a dead run, as
  // process 1 of a container does, and would be taken for the process of the run.
  if (const auto yard = yard_of(run_directory, process::find_watchers())) {
    return std::unexpected(
        Error{fmt::format("'{}' is in use by process {}", run_directory, *yard)});
  }
  // Before its first task, what is in the directory belongs to the user.
  const bool has_run = sys::exists(journal_path(run_directory));
  return has_run && place == PlaceOfLock::Clear ? sys::RunLock::clear_and_take(run_directory)
                                                : sys::RunLock::take(run_directory);
}

}  // namespace trainyard::run
