// The output of `trainyard learned`: the numbers in a job file, the measurements of its tasks, the
// amounts that the next run would reserve, and better numbers for the job file. Text for people, JSON for programs. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "job/learned.h"
#include "job/learned_view.h"

namespace trainyard::report {

struct LearnedPage {
  std::string job_file;  ///< The name for people.
  std::string kept_in;   ///< The file with the learned estimates.
  std::string note;      ///< The reason why that file cannot be read; empty: it can, or it does not
                         ///< exist.
  bool used = true;      ///< Runs use the learned estimates.
  job::LearnedFor here;
  job::LearnedView view;
};

/// The maximum number of tasks shown of a group whose numbers differ.
constexpr std::size_t kLearnedCellsShown = 40;

std::string learned_text(const LearnedPage& page);
std::string learned_json(const LearnedPage& page);

}  // namespace trainyard::report
