// What is behind a Job. For the files of this folder alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/configuration.h"
#include "config/job.h"
#include "config/job_binding.h"
#include "config/job_spec.h"
#include "config/placeholder.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

struct Job::State {
  std::string text;
  std::string name;
  JobPlaces places;
  Configuration configuration;
  Capacity capacity;
  std::vector<std::string> environment_names;  ///< Of the yard: those that matter here.
  JobSpec spec;
  Plan plan;
  std::vector<std::string> notes;
  std::vector<std::uint32_t> group_starts;

  /// One task, with the values of all its placeholders but those of its directories.
  struct Bound {
    const GroupSpec* group = nullptr;
    const TaskSpec* task = nullptr;
    Bindings bindings;
    std::string id;
  };
  [[nodiscard]] Bound bind(TaskIndex index) const;

  [[nodiscard]] std::string directory_of(const GroupSpec& group, const std::string& id) const;
};

}  // namespace trainyard
