// Which of a task's numbers are not as somebody wrote them: what earlier runs have taught, or this
// one, and what the task had reached itself before the run was resumed. For the dry run. Pure.
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

  /// Lines of a name and what stands behind it; none where all is as it is written.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> lines(model::TaskIndex task) const;

  /// `learned` and `reached`, as docs/reports.md has them.
  void add_to(nlohmann::ordered_json& json, model::TaskIndex task) const;

 private:
  /// What this run has taught so far; 0 where it has taught nothing.
  [[nodiscard]] schedule::Peak of_this_run(model::TaskIndex task) const;

  const job::Job& job_;
  const model::Plan& plan_;
  schedule::Estimates estimates_;
  std::map<model::TaskIndex, const model::Reached*> reached_;
};

}  // namespace trainyard::report
