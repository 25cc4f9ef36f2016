// Whether a run is active, and the lock of its directory. A task can remove or replace the lock, as
// it can every file of its run: the keeper and the guard of the run count as well
// (process/watchers.h).
//
// Reads files and /proc. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "process/watchers.h"
#include "sys/files.h"

namespace trainyard::run {

/// The process that runs the run in this directory; nothing where none does. 0 for one that cannot
/// be named: it took the lock only just, or on another machine. Takes no lock. Costs a scan of the
/// machine's processes where nothing is locked.
std::optional<std::int64_t> active_process(const std::string& run_directory);
/// Returns the process of one of many runs, by the result of one scan: process::find_watchers().
std::optional<std::int64_t> active_process(const std::string& run_directory,
                                           std::span<const process::Watcher> watchers);

/// The treatment of what a task of the run has put in the place of its lock.
enum class PlaceOfLock : std::uint8_t {
  Clear,  ///< It is removed.
  Leave,  ///< The lock is refused.
};

/// Takes the lock of a run directory, which must be there. An error says which process holds it.
Result<sys::RunLock> lock_run(const std::string& run_directory,
                              PlaceOfLock place = PlaceOfLock::Clear);

}  // namespace trainyard::run
