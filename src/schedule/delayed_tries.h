// Tasks that wait for the time of their first or next try. They ask for nothing until then.
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
  /// `memory` is what its try asks for. A task is added once.
  void add(model::TaskIndex task, Instant at, Bytes memory);

  [[nodiscard]] bool holds(model::TaskIndex task) const { return tasks_.contains(task); }
  struct Waiting {
    Instant at;
    Bytes memory;
  };
  /// What it waited for; nothing where it was not here.
  std::optional<Waiting> remove(model::TaskIndex task);

  struct Due {
    model::TaskIndex task;
    Bytes memory;
  };
  /// Those whose time has come, the earliest first; they are here no more.
  std::vector<Due> take_due(Instant now);

  /// All tasks from `first` up to `last`, which is not one of them, in their order; they are here
  /// no more.
  std::vector<model::TaskIndex> take(model::TaskIndex first, model::TaskIndex last);

  /// The delay of a task that has none of its own and failed now: tasks that failed together, as by
  /// a database that was locked, are not retried together.
  Duration spread(model::AttemptKey failed, Instant now);

  /// When the next one is due.
  [[nodiscard]] std::optional<Instant> first() const;

 private:
  std::map<model::TaskIndex, Waiting> tasks_;
  std::set<std::pair<Instant, model::TaskIndex>> order_;  ///< Of tasks_, by time.
  struct Failed {
    model::TaskIndex task;
    Instant at;
  };
  std::optional<Failed> last_spread_;  ///< The last task of spread().
};

}  // namespace trainyard::schedule
