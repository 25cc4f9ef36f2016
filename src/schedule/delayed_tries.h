// Tasks that wait for the time of their first or next try. They request nothing until then.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"

namespace trainyard::schedule {

class DelayedTries {
 public:
  /// `memory` is the request of the try. A task is added once.
  void add(model::TaskIndex task, Instant at, Bytes memory);

  [[nodiscard]] bool holds(model::TaskIndex task) const { return tasks_.contains(task); }
  struct Waiting {
    Instant at;
    Bytes memory;
  };
  /// The try that the task waited for; nothing if it was not here.
  std::optional<Waiting> remove(model::TaskIndex task);

  struct Due {
    model::TaskIndex task;
    Bytes memory;
  };
  /// Removes and returns the tasks whose time has come, the earliest first.
  std::vector<Due> take_due(Instant now);

  /// Removes and returns all tasks from `first` up to, but without, `last`, in their order.
  std::vector<model::TaskIndex> take(model::TaskIndex first, model::TaskIndex last);

  /// The delay of a task that has none of its own and failed now: tasks that failed together, as by
  /// a database that was locked, are not retried together.
  Duration spread(model::AttemptKey failed, Instant now);

  /// When the next one is due.
  [[nodiscard]] std::optional<Instant> first() const;

 private:
  std::map<model::TaskIndex, Waiting> tasks_;
  std::set<std::pair<Instant, model::TaskIndex>> order_;  ///< The same tasks by time.
  struct Failed {
    model::TaskIndex task;
    Instant at;
  };
  std::optional<Failed> last_spread_;  ///< The last task of spread().
};

}  // namespace trainyard::schedule
