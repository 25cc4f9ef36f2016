// What earlier runs of a job file have taught: how much memory its tasks took, and how long they
// loaded and trained. Kept in a JSON file beside it (docs/job-file.md#what-is-learned). Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace trainyard::job {

/// Of a finished task; 0 where nobody saw it.
struct LearnedTask {
  Bytes memory;      ///< Its peak.
  Bytes gpu_memory;  ///< Its peak on one of its GPUs.
  Duration load{0};
  Duration train{0};

  friend bool operator==(const LearnedTask&, const LearnedTask&) = default;
};

class Learned {
 public:
  /// No more tasks are remembered; of a larger job the first ones.
  static constexpr std::size_t kTasksMax = 20'000;

  /// What to_json() made. An error for anything else: it is better to learn anew than to believe
  /// it.
  static Result<Learned> parse(std::string_view json);
  [[nodiscard]] std::string to_json() const;

  /// What is known of a task is replaced.
  void add(std::string_view group, std::string_view id, const LearnedTask& task);

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  /// Nothing more can be added that is not known already.
  [[nodiscard]] bool full() const { return tasks_ == kTasksMax; }
  [[nodiscard]] bool knows(std::string_view group) const { return groups_.contains(group); }

  /// What a task is expected to need: of memory the 95th percentile of its group and a tenth, of
  /// time the average. Where it took clearly more or less itself (a tenth of memory, a fourth of
  /// time), that counts instead, rounded (coarsely in a large group), so that tasks that are alike
  /// stay alike.
  [[nodiscard]] LearnedTask expected(std::string_view group, std::string_view id) const;

  /// What a task took itself, the last time.
  [[nodiscard]] LearnedTask taken(std::string_view group, std::string_view id) const;

 private:
  struct Group {
    std::map<std::string, LearnedTask, std::less<>> tasks;
    LearnedTask usual;  ///< Percentiles and averages, no margin.
    bool summed = false;
  };
  static void sum_up(Group& group);

  /// Sums are made when they are first asked for.
  mutable std::map<std::string, Group, std::less<>> groups_;
  std::size_t tasks_ = 0;
};

/// Where it is kept for a job file: <its directory>/.trainyard/<its name>.learned.json
std::string learned_path(std::string_view job_file);

}  // namespace trainyard::job
