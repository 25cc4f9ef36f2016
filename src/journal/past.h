// The state that earlier executions of a run had reached: the requests of tasks since their memory
// ran out, and the usage of tasks that have finished. By the numbers of their rows; a resumed run
// continues with it, but for new numbers in the job file.
//
// Reads and writes inside a transaction that the caller begins and ends. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::journal {

class Past {
 public:
  /// Number of finished tasks of a shape that are read, the last ones. The scheduler uses no more.
  static constexpr std::size_t kTakenMax = 256;

  /// To be read while the rows are as the last execution left them. `batches` are the numbers of
  /// those that continue, for SQL. A task that has failed for good begins with the request that it
  /// had reached, and with all its tries.
  static Result<Past> read(Database& database, const std::string& batches);

  /// The state that the task in this row had reached, as `task`. Nothing if it had reached nothing,
  /// or if the job file has another number now than it had: that number counts then, and is kept
  /// for later resumes.
  Result<std::optional<model::Reached>> reached_by(std::uint32_t row, model::TaskIndex task,
                                                   const model::Terms& terms);
  /// Forgets the state of the task in this row: it was edited, and is another task now.
  Result<void> forget(std::uint32_t row);

  /// The measured cost of sharing GPUs for the tasks of its shape, as those of `shape`.
  [[nodiscard]] std::optional<model::SharingMeasured> sharing_of(std::uint32_t row,
                                                                 model::ShapeIndex shape) const;

  /// The user's commands about the task in this row, as of `task`.
  [[nodiscard]] std::optional<model::SaidOfTask> said_of(std::uint32_t row,
                                                         model::TaskIndex task) const;

  /// The message of the last attempt of the task in this row that failed by itself, as of `task`;
  /// nothing if there is none, or the task has finished.
  [[nodiscard]] std::optional<model::FailedBefore> failed_with(std::uint32_t row,
                                                               model::TaskIndex task) const;

  /// Its usage, and the time when it had finished; nothing if that is too long ago.
  struct Taken {
    Instant ended;
    model::TakenBefore what;
  };
  [[nodiscard]] std::optional<Taken> taken_by(std::uint32_t row, model::TaskIndex task) const;

 private:
  /// The requests before anything was learned.
  struct Written {
    Bytes memory;
    Bytes gpu_memory;
  };
  struct Before {
    model::Reached reached;
    Written written;
  };

  explicit Past(Database& database) : database_(&database) {}
  Result<void> read_reached(const std::string& batches);
  Result<void> read_taken(const std::string& batches);
  Result<void> read_sharing(const std::string& batches);
  Result<void> read_said(const std::string& batches);
  Result<void> read_failed(const std::string& batches);

  Database* database_;
  std::unordered_map<std::uint32_t, Before> reached_;
  std::unordered_map<std::uint32_t, Taken> taken_;
  std::unordered_map<std::uint32_t, model::SharingMeasured> sharing_;
  std::unordered_map<std::uint32_t, model::SaidOfTask> said_;
  std::unordered_map<std::uint32_t, std::string> failed_;  ///< Their messages.
};

}  // namespace trainyard::journal
