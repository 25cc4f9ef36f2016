// The state that earlier executions of a run had reached: the requests of tasks since their memory
// ran out, and the usage of tasks that have finished. By the numbers of their rows; a resumed run
// continues with it, but for new numbers in the job file.
//
// Reads and writes inside a transaction that the caller begins and ends. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/options.h"
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

/// The attempts of a dead execution that still run on some machine: they go on, and their rows stay,
/// if their tasks are the same.
class GoingOn {
 public:
  /// Keeps the rows of those that run as far as the journal knows: before the execution is closed,
  /// which takes them for lost.
  static Result<GoingOn> set_aside(Database& database, const std::vector<FoundAttempt>& found);

  /// If some attempts ran on without a yard, the time of the run has gone on as well, by the wall
  /// clock: two days at most. To be called once the execution is closed.
  Result<void> let_time_pass(std::int64_t unix_ms, Instant& at) const;

  /// If the attempt of this row is still running, and its task is the same, it is not lost. Its row
  /// is put back, and it waits for the event that it continues, with that attempt.
  Result<void> go_on_with(std::uint32_t row, model::TaskIndex task, model::PlannedTask& planned);

  /// All of these.
  [[nodiscard]] const std::set<model::AttemptKey>& go_on() const { return go_on_; }

 private:
  explicit GoingOn(Database& database) : database_(&database) {}

  Database* database_;
  std::map<std::uint32_t, model::AttemptKey> kept_;  ///< By the numbers of their rows.
  std::set<model::AttemptKey> go_on_;
};

}  // namespace trainyard::journal
