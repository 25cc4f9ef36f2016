// The files that the workers of a parallel run print to: worker-<node>.log, of a later life
// worker-<node>.<life>.log, in a directory that one run has at a time.
//
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "sys/files.h"

namespace trainyard::workers {

class RunLogs {
 public:
  /// In a directory that nobody else knows.
  static RunLogs in_private(std::string directory) { return RunLogs(std::move(directory)); }
  /// The directory must be there. Removes the record of a former run, and the logs of the workers
  /// that it lists. An error: another process has the directory, or a file in it that has such a
  /// name is of no former run; nothing is removed then. The file .workers.lock stays.
  static Result<RunLogs> take(const std::string& directory);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// The lock of the directory. A process that has a copy of it keeps other runs out, too.
  [[nodiscard]] int lock_descriptor() const { return lock_ ? lock_->descriptor() : -1; }
  [[nodiscard]] std::string path_of(int node, std::uint32_t life) const;

 private:
  explicit RunLogs(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
  std::optional<sys::RunLock> lock_;
};

}  // namespace trainyard::workers
