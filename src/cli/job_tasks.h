// The job files of a run as the tasks of a yard: launches from their texts, their output for
// people, and submissions to the run.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/run_view.h"
#include "job/job.h"
#include "job/jobs.h"
#include "job/rounds.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/turn.h"
#include "run/printed_metrics.h"
#include "run/tasks.h"
#include "text/mistake.h"
#include "wire/control.h"
#include "wire/task.h"

namespace trainyard::cli {

class JobTasks final : public run::Tasks {
 public:
  explicit JobTasks(job::Job first) : jobs_(std::move(first)) {}

  [[nodiscard]] const job::Jobs& jobs() const { return jobs_; }

  /// Adds a submission of an earlier execution, by its own text, or a round that had begun in one,
  /// by the present text of the job file. `moved` is as in job::LoadOptions.
  std::expected<void, text::Mistakes> add_again(const journal::BatchRow& batch,
                                                std::optional<job::MovedDirectory> moved);

  /// The batches of all jobs that were added so far; `command_line` is that of this execution.
  [[nodiscard]] std::vector<journal::Batch> batches(const std::string& command_line) const;

  /// Called every turn, in addition to the output for people.
  void listen(std::move_only_function<void(const model::Turn&)> listener) {
    listener_ = std::move(listener);
  }

  /// From now on people see the run, until it is hidden; before, notes wait.
  void show();
  void hide();

  model::Launch launch(model::AttemptKey key, const model::Grant& grant) override;
  run::LinePattern pattern_of(model::TaskIndex task) override;
  std::optional<model::TaskIndex> find(std::string_view group, std::string_view id) override {
    return jobs_.find(group, id);
  }
  [[nodiscard]] std::string without_secrets(std::string text) const override;
  [[nodiscard]] std::string why_never_with(const model::RetryAsked& retry) const override {
    return jobs_.why_never_with(retry.task,
                                {.memory = retry.memory, .gpu_memory = retry.gpu_memory});
  }
  void hear(model::AttemptKey key, const wire::Message& message) override;
  void see(const model::Turn& turn) override;
  void note(std::string_view line) override;
  Result<Accepted> accept(const wire::Submit& submission, std::uint32_t number) override;
  [[nodiscard]] bool has_next_round() const override;
  std::optional<Accepted> next_round(std::uint32_t number) override;
  void drop_last() override;

  /// The reason why possible rounds were not begun, if the run is not whole without them. It is for
  /// people. `of_tasks`: tasks of the last round caused this, or the user, who has asked for only
  /// some. Nothing: no round is missing.
  struct RoundsLeft {
    std::string why;
    bool of_tasks = false;
  };
  [[nodiscard]] std::optional<RoundsLeft> rounds_left() const;
  [[nodiscard]] std::string not_done() const override;
  /// Only the tasks that the user has named are run, and no later round.
  void begin_no_more_rounds() { only_some_ = true; }
  /// Whether the last round has finished and no other comes.
  [[nodiscard]] bool rounds_are_over() const { return no_more_rounds_ && rounds_.is_over(); }

 private:
  std::expected<const job::Job*, text::Mistakes> add_round(std::uint32_t round,
                                                           std::uint32_t number);
  std::optional<std::string> result_of(const std::string& group, const std::string& id) const;
  std::expected<const job::Job*, text::Mistakes> read(const wire::Submit& submission,
                                                      std::uint32_t number,
                                                      std::optional<job::MovedDirectory> moved);

  job::Jobs jobs_;
  std::vector<journal::BatchSource> sources_;  ///< The sources of all jobs but the first, in order.
  job::Rounds rounds_;
  bool round_was_asked_for_ = false;  ///< The round after the finished one.
  bool no_more_rounds_ = false;       ///< The end condition of the repeat held, or the round was
                                      ///< the last.
  bool only_some_ = false;            ///< Only the selected tasks run.
  std::string round_trouble_;         ///< The reason why the next round cannot be decided or made.
  std::optional<RunView> view_;
  std::move_only_function<void(const model::Turn&)> listener_;
  std::vector<std::string> early_notes_;
  std::set<model::TaskIndex> unheard_;  ///< Tasks that sent messages that nothing here receives:
                                        ///< noted once.
};

}  // namespace trainyard::cli
