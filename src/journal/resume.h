// Takes over the state of earlier executions for a resumed run, with a job file that may have been
// edited since: the identity of tasks, the finished ones, the lost attempts.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/sqlite.h"
#include "journal/turn_writer.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::journal {

struct TakenOver {
  Bookkeeping book;
  /// The plan of each batch, with its `before` and `first_attempt` set.
  std::vector<std::shared_ptr<const model::Plan>> plans;
  Instant at;  ///< The time of the run at which it continues.
  int finished = 0;
  Journal::NotKept not_kept;
  std::vector<std::string> changes;
  std::set<model::AttemptKey> goes_on;  ///< The found attempts that go on.
  std::set<std::uint32_t> edited;       ///< The rows of tasks that the job file says otherwise now.
};

/// Makes the tables say what is so when the new execution begins, inside the caller's transaction.
/// `batches` are those that it runs, in order.
Result<TakenOver> take_over(Database& database, const std::vector<Batch>& batches,
                            const Execution& execution, const JournalOptions& options);

}  // namespace trainyard::journal
