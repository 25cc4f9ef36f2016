// Finds finished tasks that are out of date: a task that they need has run again since they
// finished, or starts over in this execution, so that its results are not those they have used.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::journal {

/// The times of the last attempt of a task: nothing if it never started, or has not ended.
struct LastRun {
  std::optional<Instant> started;
  std::optional<Instant> ended;
};

/// A task that was not needed has no last run: no other task has used results of it, and whether it
/// runs is decided again each time that the tasks it needs have ended.
LastRun last_run(model::Verdict verdict, std::optional<Instant> started,
                 std::optional<Instant> ended);

/// For each task of the plan, whether it is out of date: a task that it needs, directly or through
/// others, starts over, or has started or ended after the task itself had started. A task that
/// starts over itself is not out of date. Costs O(tasks + needs) if tasks come behind those that
/// they need in the plan, and that much once more for each time that they do not.
std::vector<bool> find_stale(const model::Plan& plan, const std::vector<bool>& begins_anew,
                             const std::vector<LastRun>& last_runs);

/// The number of out-of-date tasks of each group, as lines for users.
class StaleGroups {
 public:
  struct Of {
    bool runs_again = false;
  };
  void add(model::GroupIndex group, Of of);
  /// `cure` says how to run the tasks again whose results are kept.
  [[nodiscard]] std::vector<std::string> lines(const model::Plan& plan,
                                               std::string_view cure) const;

 private:
  struct Counts {
    int kept = 0;
    int again = 0;
  };
  std::map<model::GroupIndex, Counts> counts_;
};

}  // namespace trainyard::journal
