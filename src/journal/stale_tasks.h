// Of the tasks that have finished, those that did so before what they need has begun anew, now or
// in an execution before: what they were made from is not what there is. Pure.
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

/// When the last attempt of a task ran: nothing where it never started, or has not ended.
struct LastRun {
  std::optional<Instant> started;
  std::optional<Instant> ended;
};

/// Of a task that was not needed there is none: nothing was made from it, and it was decided anew
/// each time that what it needs had ended.
LastRun last_run(model::Verdict verdict, std::optional<Instant> started,
                 std::optional<Instant> ended);

/// By task of the plan: whether anything that it needs, or that these need, begins anew, or has
/// started or ended after it had started. Those that begin anew themselves are none of them. Costs
/// O(tasks + needs) where what is needed comes first in the plan, and as often that as it does not.
std::vector<bool> find_stale(const model::Plan& plan, const std::vector<bool>& begins_anew,
                             const std::vector<LastRun>& last_runs);

/// How many of each group there are, for people.
class StaleGroups {
 public:
  struct Of {
    bool runs_again = false;
  };
  void add(model::GroupIndex group, Of of);
  /// `cure` says how those that are kept are run again.
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
