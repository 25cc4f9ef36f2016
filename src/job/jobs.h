// The job files of a run: its own, and those that were submitted to it. Their groups and tasks are
// numbered consecutively, in the order in which the files came, as in the scheduler and the
// journal.
//
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"
#include "job/lack.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {

class Jobs {
 public:
  explicit Jobs(Job first);

  /// A submitted file; `environment` is that of who submitted it, as NAME=value. A Job that was
  /// added stays where it is.
  const Job& add(Job job, std::vector<std::string> environment);
  /// The last one is not added after all.
  void drop_last();

  [[nodiscard]] const Job& first() const { return entries_.front().job; }
  /// The number of jobs.
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(entries_.size()); }
  [[nodiscard]] const Job& at(std::uint32_t index) const { return entries_[index].job; }

  /// All groups so far, in order. They stay where they are until their file is dropped.
  [[nodiscard]] std::vector<const model::PlannedGroup*> groups() const;

  /// The warnings of all files, each once.
  [[nodiscard]] std::vector<std::string> warnings() const;

  /// The reason why a task can never start with these amounts on any machine of the run; empty: it
  /// can.
  [[nodiscard]] std::string why_never_with(model::TaskIndex task,
                                           const RetryAmounts& amounts) const;

  [[nodiscard]] const model::Terms& terms_of(model::TaskIndex task) const;

  /// The name for people of a task's group, and the task's id: "train (2)/lr=1".
  [[nodiscard]] std::string name_of(model::TaskIndex task) const;
  [[nodiscard]] std::string id_of(model::TaskIndex task) const;

  /// Absolute.
  [[nodiscard]] std::string task_directory(model::TaskIndex task) const;

  /// The number of the task's batch, and its place in the plan of that.
  struct Place {
    std::uint32_t batch = 1;
    model::TaskIndex in_batch;
  };
  [[nodiscard]] Place place_of(model::TaskIndex task) const;

  /// A group by what people call it, and a task of it by its id.
  [[nodiscard]] std::optional<model::TaskIndex> find(std::string_view group,
                                                     std::string_view id) const;

  /// The pattern that finds metrics in what a task prints; nothing where its file says none.
  [[nodiscard]] std::optional<std::string> metrics_of(model::TaskIndex task) const;

  [[nodiscard]] model::Launch launch(model::AttemptKey key, const model::Grant& grant,
                                     const ResultOf& result_of) const;

 private:
  struct Entry {
    Job job;
    std::vector<std::string> environment;
    model::PlanStart start;  ///< The first numbers of its groups and tasks in the run.
  };
  /// The entry to which a task belongs, the number of the task there, and the number of the batch.
  struct Owner {
    const Entry& entry;
    model::TaskIndex task;
    std::uint32_t batch = 1;
  };
  [[nodiscard]] Owner owner_of(model::TaskIndex task) const;

  std::deque<Entry> entries_;
};

}  // namespace trainyard::job
