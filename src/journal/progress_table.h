// The thinned table of how far attempts said that they were: at most kProgressRowsMax rows an
// attempt, the first and the last always among them. Of what comes faster than the rows kept so far
// the newest replaces the last; when an attempt's rows are full every second one goes.
//
// Belongs to the thread of the journal.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/event.h"

namespace trainyard::journal {

constexpr int kProgressRowsMax = 256;

class ProgressTable {
 public:
  static Result<ProgressTable> open(Database& database);

  /// Writes one down for the task with that number, inside the caller's transaction.
  Result<void> add(Instant at, std::uint32_t task_number, const model::Progressed& progress);
  /// The task has its verdict: nothing more comes.
  void forget(std::uint32_t task_number) { attempts_.erase(task_number); }

  /// The transaction was given up. What is in the table is looked up again when it is needed.
  void drop() { attempts_.clear(); }

 private:
  /// What is in the table of the present attempt of a task.
  struct Attempt {
    std::uint32_t attempt = 0;
    int rows = 0;
    Instant first;        ///< When the first row was told.
    Instant last;         ///< When the last one was.
    Instant before_last;  ///< When the one before it was.
    Duration gap{0};      ///< How far apart rows are kept.
  };

  ProgressTable(Statement put, Statement remove, Statement thin, Statement look)
      : put_(std::move(put)),
        remove_(std::move(remove)),
        thin_(std::move(thin)),
        look_(std::move(look)) {}

  Result<Attempt> look(std::uint32_t task_number, std::uint32_t attempt);
  Result<void> thin(std::uint32_t task_number, Attempt& attempt);

  Statement put_;
  Statement remove_;
  Statement thin_;
  Statement look_;
  std::map<std::uint32_t, Attempt> attempts_;  ///< By task number.
};

}  // namespace trainyard::journal
