// The numbers of a task that differ from the job file: learned from earlier runs or from this one,
// or reached by the task itself before the run was resumed. For the dry run. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "job/job.h"
#include "model/ids.h"
#include "model/plan.h"
#include "schedule/estimates.h"

namespace trainyard::report {

class LearnedNumbers {
 public:
  /// `plan` is the job's, or that of a run that is resumed. Both must outlive it.
  LearnedNumbers(const job::Job& job, const model::Plan& plan);

  /// Lines of a name and its text; none if all numbers are as configured.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> lines(model::TaskIndex task) const;

  /// `learned` and `reached`, as docs/reports.md has them.
  void add_to(nlohmann::ordered_json& json, model::TaskIndex task) const;

 private:
  /// The amount learned in this run so far; 0: nothing.
  [[nodiscard]] schedule::Peak of_this_run(model::TaskIndex task) const;

  const job::Job& job_;
  const model::Plan& plan_;
  schedule::Estimates estimates_;
  std::map<model::TaskIndex, const model::Reached*> reached_;
};

}  // namespace trainyard::report
