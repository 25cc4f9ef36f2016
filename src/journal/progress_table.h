// The thinned table of the progress that attempts report: at most kProgressRowsMax rows an attempt,
// the first and the last always among them. If rows come faster than those kept so far, the newest
// replaces the last; when an attempt's rows are full every second one goes.
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

  /// The transaction was given up. The content of the table is read again when it is needed.
  void drop() { attempts_.clear(); }

 private:
  /// The rows in the table for the present attempt of a task.
  struct Attempt {
    std::uint32_t attempt = 0;
    int rows = 0;
    Instant first;        ///< Time of the first row.
    Instant last;         ///< Time of the last row.
    Instant before_last;  ///< Time of the row before it.
    Duration gap{0};      ///< Minimum time between kept rows.
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
