// What `trainyard learned` shows: the numbers that a job file says, those that its tasks took, and
// what the next run would reserve. Text for people, JSON for programs. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "job/learned.h"
#include "job/learned_view.h"
#include "job/learned_writing.h"

namespace trainyard::report {

struct LearnedPage {
  std::string job_file;  ///< As people name it.
  std::string kept_in;   ///< The file that what was learned is kept in.
  std::string note;      ///< Why that file cannot be read; empty: it can, or there is none.
  bool used = true;      ///< Runs use what was learned.
  job::LearnedFor here;
  job::LearnedView view;
};

/// At most so many tasks of a group whose numbers differ are shown.
constexpr std::size_t kLearnedCellsShown = 40;

std::string learned_text(const LearnedPage& page);
std::string learned_json(const LearnedPage& page);

/// Whether the job file was written, or only what would be is shown.
std::string learned_writing_json(const LearnedPage& page, const job::LearnedWriting& writing,
                                 const std::string& diff, bool is_written);

}  // namespace trainyard::report
