// What is behind a Job. For the files of this folder alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/job_binding.h"
#include "job/job_spec.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "settings/configuration.h"
#include "text/placeholder.h"

namespace trainyard::job {

struct Job::State {
  std::string text;
  std::string name;
  JobPaths paths;
  settings::Configuration configuration;
  model::Capacity capacity;
  std::vector<std::string> environment_names;  ///< Of the yard: those that matter here.
  JobSpec spec;
  std::shared_ptr<const model::Plan> plan;  ///< Shared with the event that adds it to a run.
  std::vector<std::string> notes;
  std::vector<std::uint32_t> group_starts;

  /// One task, with the values of all its placeholders but those of its directories.
  struct Bound {
    const GroupSpec* group = nullptr;
    const TaskSpec* task = nullptr;
    model::GroupIndex index;  ///< Of the group.
    text::Bindings bindings;
    std::string id;
  };
  [[nodiscard]] Bound bind(model::TaskIndex index) const;

  [[nodiscard]] std::string directory_of(const Bound& bound) const;
};

}  // namespace trainyard::job
