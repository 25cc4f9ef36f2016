// Of the tasks that have finished, those that did so before what they need, which begins anew: what
// they were made from is not what there will be. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::journal {

/// By task of the plan: whether anything that it needs, or that these need, begins anew. Those that
/// begin anew themselves are none of them. Costs O(tasks + needs) where what is needed comes first
/// in the plan, and as often that as it does not.
std::vector<bool> find_stale(const model::Plan& plan, const std::vector<bool>& begins_anew);

/// How many of each group there are, for people.
class StaleGroups {
 public:
  struct Of {
    bool runs_again = false;
  };
  void add(model::GroupIndex group, Of of);
  [[nodiscard]] std::vector<std::string> lines(const model::Plan& plan) const;

 private:
  struct Counts {
    int kept = 0;
    int again = 0;
  };
  std::map<model::GroupIndex, Counts> counts_;
};

}  // namespace trainyard::journal
