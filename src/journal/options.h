// Options for a journal that is not written as usual.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "model/ids.h"

namespace trainyard::journal {

/// The way in which turns are written.
enum class LogKind : std::uint8_t {
  ByFileSystem,  ///< Ahead, unless the file system is one that several machines share.
  Ahead,         ///< A write-ahead log: a turn does not wait for the disk, or for readers.
  Rollback,      ///< Each turn waits for the disk.
};

/// The treatment of a task that has finished and was edited since, when its run continues.
enum class Edited : std::uint8_t { KeepResult, RunAgain };

/// The treatment of tasks that have ended without having finished, when their run continues.
enum class Unfinished : std::uint8_t {
  RunAgain,
  Stay,  ///< As they are, until a user retries one of them.
};

/// The treatment of the batches of a run that an execution is not given.
enum class OtherBatches : std::uint8_t {
  AreGone,  ///< Their groups and tasks are no longer in the job file.
  Stay,     ///< As they are, and the execution neither counts nor runs them.
};

/// An attempt that a machine still has, which a dead execution has started there.
struct FoundAttempt {
  std::uint32_t row = 0;  ///< The number of its task.
  model::AttemptKey key;  ///< Its task then, among all batches.
};

struct JournalOptions {
  Edited edited = Edited::KeepResult;
  /// With RunAgain: the rows of the finished tasks that run again, whatever was edited. Without it
  /// all run again that were edited or that are behind such.
  std::optional<std::set<std::uint32_t>> again;
  Unfinished unfinished = Unfinished::RunAgain;
  /// With Stay: the rows of the unfinished tasks that the caller retries all the same.
  std::set<std::uint32_t> retried;
  /// The caller requests a retry of each of these, and of what is to run again of those that have
  /// finished. These count as stopped until then: none may start before what it needs is retried.
  bool by_request = false;
  bool fresh = false;  ///< The retried tasks start without the checkpoints with which they failed.
  OtherBatches others = OtherBatches::AreGone;
  /// They go on where their tasks are what they were, and nothing of their groups has changed.
  std::vector<FoundAttempt> found;
  LogKind log = LogKind::ByFileSystem;
  int pages_max = 0;  ///< For tests: as if the disk had so many pages of a kibibyte; 0: no limit.
};

}  // namespace trainyard::journal
