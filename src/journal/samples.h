// The two thinned tables of a journal, whose size does not grow with the length of the run: the
// samples of the machines, and the progress that attempts report. For the thread of the journal.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/event.h"
#include "model/ids.h"

namespace trainyard::journal {

/// The samples of all machines together: at most kSampleRowsMax rows. A sample of one machine adds
/// a row for all: the sums of their last samples, and the mean of how busy other processes kept
/// their CPUs. The last row is always the last sample. When the table is full, every second row is
/// removed, and samples that come closer together than twice the distance before replace the last
/// row.
class SampleTable {
 public:
  /// Goes on with what is in the table.
  static Result<SampleTable> open(Database& database);

  /// The number of CPUs of a machine from now on, for the mean. A machine without a number has one.
  void join(const model::MachineJoined& joined);
  /// Its last sample does not count any more.
  void leave(model::MachineIndex machine) { looks_.erase(machine); }

  /// Writes one down, inside the caller's transaction.
  Result<void> add(Instant at, const model::Sampled& sample);

  /// After the transaction: what was added is there, or not.
  void keep() { kept_ = present_; }
  void drop() { present_ = kept_; }

 private:
  struct Look {
    Bytes available;
    Bytes of_tasks;
    double cpu_used_by_others = 0;
  };
  struct State {
    int rows = 0;
    std::int64_t last_number = 0;
    Instant last;         ///< Time of the last row.
    Instant before_last;  ///< Time of the row before it.
    Duration gap{0};      ///< Minimum time between kept rows.
  };

  SampleTable(Database& database, Statement insert, Statement replace, State state)
      : database_(&database),
        insert_(std::move(insert)),
        replace_(std::move(replace)),
        present_(state),
        kept_(state) {}
  [[nodiscard]] Look together() const;
  Result<void> thin();

  Database* database_;
  Statement insert_;
  Statement replace_;
  State present_;
  State kept_;
  // The last reading of each machine. Kept also if the transaction that writes it fails.
  std::map<model::MachineIndex, Look> looks_;
  std::map<model::MachineIndex, double> cpus_;
};

/// Maximum number of rows for the progress of an attempt.
constexpr int kProgressRowsMax = 256;

/// The progress of each attempt: at most kProgressRowsMax rows, always with the first and the last.
/// A row that comes faster than the rows before it replaces the last one. When an attempt has all
/// its rows, every second one is removed.
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
