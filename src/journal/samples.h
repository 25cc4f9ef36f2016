// The thinned table of what the machine looked like: at most kSampleRowsMax rows, however long the
// run. The last row is always the last sample; when the table is full every second row goes, and
// samples that come closer together than twice the distance before replace the last row.
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/event.h"

namespace trainyard::journal {

class SampleTable {
 public:
  /// Goes on with what is in the table.
  static Result<SampleTable> open(Database& database);

  /// Writes one down, inside the caller's transaction.
  Result<void> add(Instant at, const model::Sampled& sample);

  /// After the transaction: what was added is there, or not.
  void keep() { kept_ = present_; }
  void drop() { present_ = kept_; }

 private:
  struct State {
    int rows = 0;
    std::int64_t last_number = 0;
    Instant last;         ///< When the last row was taken.
    Instant before_last;  ///< When the row before it was.
    Duration gap{0};      ///< How far apart rows are kept.
  };

  SampleTable(Database& database, Statement insert, Statement replace, State state)
      : database_(&database),
        insert_(std::move(insert)),
        replace_(std::move(replace)),
        present_(state),
        kept_(state) {}
  Result<void> thin();

  Database* database_;
  Statement insert_;
  Statement replace_;
  State present_;
  State kept_;
};

}  // namespace trainyard::journal
