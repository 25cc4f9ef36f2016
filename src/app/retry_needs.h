// The needs between the tasks of a run, for `trainyard retry`: the tasks that were skipped because
// of others, the tasks that are refused as a need has not succeeded, and those that come first.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "model/ids.h"

namespace trainyard::app {

class RetryNeeds {
 public:
  /// The groups and the tasks are in the order of the run, whose task needs are `needs`.
  RetryNeeds(std::vector<journal::GroupRow> groups, std::vector<journal::TaskNeedRow> needs,
             std::vector<journal::TaskRow> tasks);

  /// Adds the tasks that were skipped because of these tasks, and the finished tasks that need one
  /// of them. This includes tasks that 'fail-fast' and 'try-first' skipped in the group of a failed
  /// one. Adds as well the skipped tasks that these need and that would run now, so that these do
  /// not run before them.
  void add_cascade(std::vector<journal::TaskRow>& tasks) const;

  /// Puts needed tasks before those that need them, and keeps the order of the run otherwise. A
  /// group of a job file may need one that comes later in the file.
  void put_needed_first(std::vector<journal::TaskRow>& tasks) const;

  /// The tasks that have finished and are out of date.
  [[nodiscard]] std::vector<journal::TaskRow> out_of_date() const;

  /// An error names a task that would not run, as it needs one without success that is not among
  /// the tasks, and the command that retries all that is needed. Such a task was skipped
  /// because of a need, or `needs_success`, or the run began without it and without its needs. `run`
  /// is the run in a shell. `needs_success` returns whether a task runs only after a success: it is
  /// called only for tasks with a need that stays without success, and may return false if that is
  /// not known.
  [[nodiscard]] Result<void> check(
      const std::vector<journal::TaskRow>& tasks, std::string_view run,
      const std::function<bool(const journal::TaskRow&)>& needs_success) const;

 private:
  class Cascade;
  [[nodiscard]] const journal::TaskRow* row_behind(model::TaskIndex task) const;
  [[nodiscard]] std::set<model::TaskIndex> with_needed(
      const std::vector<const journal::TaskRow*>& tasks,
      const std::set<model::TaskIndex>& chosen) const;
  [[nodiscard]] Error refusal(const std::vector<const journal::TaskRow*>& refused,
                              const std::set<model::TaskIndex>& chosen, std::string_view run) const;

  std::vector<journal::GroupRow> groups_;
  std::vector<journal::TaskNeedRow> needs_;
  /// The tasks that have ended without the outcome that others wait for.
  std::map<model::TaskIndex, journal::TaskRow> bad_;
  std::map<model::TaskIndex, journal::TaskRow> not_selected_;  ///< The run began without them.
  std::map<model::TaskIndex, journal::TaskRow> finished_;      ///< The tasks of groups that need
                                                               ///< others.
};

}  // namespace trainyard::app
