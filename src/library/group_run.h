// The run of one group: its tasks from their first start to their last end, with the results
// written back to them.
//
// One thread. Forks in its run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "hardware/this_machine.h"
#include "job/learned.h"
#include "journal/journal.h"
#include "library/program_run.h"
#include "library/task_state.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "process/keeper.h"
#include "process/promise_board.h"
#include "run/tasks.h"
#include "run/yard_run.h"
#include "settings/configuration.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"
#include "trainyard/yard.h"
#include "wire/control.h"
#include "wire/task.h"

namespace trainyard::library {

/// Who hears what happens. All are there.
struct GroupEars {
  std::function<void(std::string_view)> note;
  /// Called with each message of a task.
  std::function<void(const Task&, const wire::Message&)> message;
  std::function<void(const Task&)> status;
  std::function<void(const Task&, const model::Progressed&)> progress;
};

struct GroupRunOptions {
  std::string learned_path;  ///< Where what runs have taught is kept.
  bool beside_threads = false;
  std::stop_token stop;
  std::uint64_t yard = 0;  ///< Whose tasks they become.
};

class GroupRun final : public run::Tasks {
 public:
  /// All must outlive it.
  GroupRun(ProgramRun& where, const TaskGroup& group, const settings::Configuration& configuration,
           const GroupRunOptions& options, const GroupEars& ears);

  /// Runs tasks of the group. An error says why it could not, and nothing of it has run then.
  Result<RunSummary> run(const std::vector<Task*>& tasks);

  /// For callbacks of run(): false when it is none of its tasks, or has ended.
  bool cancel(const Task& task);

  // Callbacks of the yard.
  model::Launch launch(model::AttemptKey key, const model::Grant& grant) override;
  std::optional<model::TaskIndex> find(std::string_view group, std::string_view id) override;
  [[nodiscard]] std::string why_no_retry() const override {
    return "a program retries its tasks itself";
  }
  void hear(model::AttemptKey key, const wire::Message& message) override;
  void see(const model::Turn& turn) override;
  void note(std::string_view line) override { ears_.note(line); }
  Result<Accepted> accept(const wire::Submit& submission, std::uint32_t number) override;
  void drop_last() override {}

 private:
  Result<void> prepare(const std::vector<Task*>& tasks);
  void open_promises();
  [[nodiscard]] Result<process::Keeper> fork_keeper() const;
  Result<void> begin();
  [[nodiscard]] std::vector<journal::Batch> batches() const;
  Result<void> keep(const std::vector<std::shared_ptr<const model::Plan>>& plans);
  Result<void> finish(const run::Ending& ending);
  void see(const model::Event& event);
  void see(Instant at, const model::TaskChanged& change);
  [[nodiscard]] Task& task(model::TaskIndex index) const { return *tasks_.at(index.value); }
  [[nodiscard]] const std::string& part_of(model::TaskIndex index) const;
  [[nodiscard]] std::string directory_of(model::TaskIndex index) const;

  ProgramRun& where_;
  const TaskGroup& group_;
  const settings::Configuration& configuration_;
  const GroupRunOptions& options_;
  const GroupEars& ears_;
  hardware::ThisMachine machine_;
  model::Capacity capacity_;
  job::Learned learned_;
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<const model::Plan>> plans_;  ///< Of each part.
  model::Plan plan_;                                       ///< Of all of them.
  std::vector<Task*> tasks_;                               ///< Of all of them.
  std::optional<process::PromiseBoard> promises_;          ///< Until the yard has it.
  std::unique_ptr<run::YardRun> yard_;
  RunSummary summary_;
};

}  // namespace trainyard::library
