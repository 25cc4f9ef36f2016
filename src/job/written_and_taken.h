// The differences between the needs in a job file and the measurements of its tasks. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace trainyard::job {

class WrittenAndTaken {
 public:
  /// Maximum number of notes for each group.
  static constexpr std::size_t kNotesMax = 3;

  /// Compares the number in the job file with the measured use of a task; `taken` is 0 if it was
  /// not measured.
  void see(const std::string& group, const std::string& key, Bytes written, Bytes taken);

  /// A duration in the job file that does not count in this run, and the measured one of a task.
  void see(const std::string& group, Duration written, Duration measured);

  /// The amount in the job file does not count in this run: `reserved` does, for a kind of its
  /// tasks.
  void raised(const std::string& group, const std::string& key, Bytes written, Bytes reserved);

  /// For people, one line for each number in the file: if its tasks took more, or less than three
  /// quarters, and for each such duration.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  struct Seen {
    Bytes most;
    Bytes reserved_least;  ///< 0: the amount in the file is reserved.
    Bytes reserved_most;
  };
  struct Measured {
    Duration least{0};
    Duration most{0};
  };
  std::map<std::tuple<std::string, std::string, Bytes>, Seen> seen_;  ///< By the amount in the
                                                                      ///< file.
  std::map<std::pair<std::string, Duration>, Measured> durations_;    ///< The same.
};

}  // namespace trainyard::job
