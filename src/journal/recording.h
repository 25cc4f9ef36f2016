// All events and decisions of an execution's scheduler, as rows of `recorded`: a recorded run can
// be played again, to find a bug.
//
// The rows grow with each look at the machine, by some fifty bytes for each task that runs and a
// hundred for each GPU, and nothing thins them: a run is recorded only on request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "journal/sqlite.h"
#include "model/plan.h"
#include "model/turn.h"

namespace trainyard::journal {

/// Writes inside a transaction that the caller begins and ends. One thread.
class Recording {
 public:
  /// From here on an execution is recorded, by this policy.
  static Result<Recording> begin(Database& database, std::int64_t execution,
                                 const model::Policy& policy);

  Result<void> add(const model::Turn& turn);

 private:
  Recording(std::int64_t execution, Statement insert)
      : execution_(execution), insert_(std::move(insert)) {}

  std::int64_t execution_;
  Statement insert_;
};

/// Reads one, also that of a living run: the rows at the time when it was opened. One thread.
class RecordingReader {
 public:
  /// Opens the recording of an execution, by default that of the last one. An error if the
  /// execution was not recorded.
  static Result<RecordingReader> open(const std::string& path,
                                      std::optional<std::int64_t> execution);

  [[nodiscard]] std::int64_t execution() const { return execution_; }
  /// In the form of wire/events.h.
  [[nodiscard]] const std::string& policy() const { return policy_; }

  /// An event and its decision, in the forms of wire/events.h.
  struct Row {
    std::string event;
    std::string decision;
  };
  /// The next; nothing when that was all.
  Result<std::optional<Row>> next();

 private:
  RecordingReader(std::int64_t execution, std::string policy, Database database, Statement rows)
      : execution_(execution),
        policy_(std::move(policy)),
        database_(std::move(database)),
        rows_(std::move(rows)) {}

  std::int64_t execution_;
  std::string policy_;
  Database database_;
  Statement rows_;  // After the database.
};

}  // namespace trainyard::journal
