// What of the learned numbers goes into a job file's own lines, and what does not. Pure.
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
  std::string text;  ///< Of the job file, with the numbers in it.
  /// "job.yaml:9:13: group 'train': gpu-memory: 4GB becomes 6.8GB", one for each number.
  std::vector<std::string> written;
  std::vector<std::string> refused;  ///< What cannot be written safely, with its place, and why.
  /// Learned numbers of keys that the file does not have: "group 'train': memory: 127MB".
  std::vector<std::string> not_said;
};

/// `text` is the job file as it was when the job was loaded, `file` its name for people, `here` the
/// machine of the job. A number within 10 % of the learned one stays; one that is not sure, as its
/// peak is that of a process alone, or is known of another card, or is a hard limit, is only
/// raised.
LearnedWriting write_learned(const LearnedView& view, std::string_view text,
                             const std::string& file, const LearnedFor& here);

/// As a person would write it: three digits, rounded up; "1.14GB", "3.6s", "90s", "2h30m".
std::string size_to_write(Bytes size);
std::string time_to_write(Duration time);

}  // namespace trainyard::job
