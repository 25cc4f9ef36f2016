// The keepers and guards of the runs on this machine, found by their working directory
// (Keeper::note_ends): the directory of their run, wherever that has been moved. A task can replace
// the lock and the journal of its run, but not the working directory of another process.
//
//   if (!watchers_of("runs/sweep").empty()) ...  // The run is active, or has just died.
//
// Processes that this user cannot look into are not found, nor are those of other machines and of
// the other side of a PID namespace. Reads /proc, starts nothing, stops nothing. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/time.h"

namespace trainyard::process {

/// Names a directory on this machine, whatever its path becomes.
struct DirectoryIdentity {
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  uid_t owner = 0;

  friend bool operator==(const DirectoryIdentity&, const DirectoryIdentity&) = default;
};
/// Returns the directory at `path`, or nothing if there is no directory. Does not ask the server of
/// a network file system where the kernel knows the answer.
std::optional<DirectoryIdentity> directory_at(const std::string& path);

struct Watcher {
  std::int64_t pid = 0;
  std::string name;             ///< kKeeperName or kGuardName.
  DirectoryIdentity directory;  ///< The directory of its run.
  /// The process of the run: its parent, if that has the directory open, as a sys::RunLock has. 0
  /// where the run has died, and for a keeper whose guard lives.
  std::int64_t yard = 0;
};

/// Returns the keepers and guards of this user, and those of the owner of their run directory.
/// Costs about 10 microseconds for each process on the machine.
std::vector<Watcher> find_watchers();

/// Returns those of the run in this directory.
std::vector<Watcher> watchers_of(const std::string& run_directory,
                                 std::vector<Watcher> watchers = find_watchers());

/// Waits at most `most` for the exit of all watchers of the run in this directory, whose yard has
/// died: they kill the tasks that the keeper has started, and note the ends. Returns false if one
/// is still running. After a second, calls `on_wait`, which may be empty, once with one of them.
bool wait_for_watchers(const std::string& run_directory, Duration most,
                       const std::function<void(const Watcher&)>& on_wait = {});

}  // namespace trainyard::process
