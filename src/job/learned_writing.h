// The learned numbers that are written into a job file's own lines, and those that are not. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "job/learned.h"
#include "job/learned_view.h"

namespace trainyard::job {

struct LearnedWriting {
  std::string text;  ///< The text of the job file with the numbers in it.
  /// "job.yaml:9:13: group 'train': gpu-memory: 4GB becomes 6.8GB", one for each number.
  std::vector<std::string> written;
  std::vector<std::string> refused;  ///< The numbers that cannot be written safely, each with its
                                     ///< place and the reason.
  /// Learned numbers of keys that the file does not have: "group 'train': memory: 127MB".
  std::vector<std::string> not_said;
};

/// `text` is the job file as it was when the job was loaded, `file` its name for people, `here` the
/// machine of the job. A number within 10 % of the learned one stays. It is only raised if it is a
/// hard limit, or if the learned one is uncertain: a peak of a single process, or from another GPU
/// model.
LearnedWriting write_learned(const LearnedView& view, std::string_view text,
                             const std::string& file, const LearnedFor& here);

/// The form that a person would write: three digits, rounded up; "1.14GB", "3.6s", "90s", "2h30m".
std::string size_to_write(Bytes size);
std::string time_to_write(Duration time);

}  // namespace trainyard::job
