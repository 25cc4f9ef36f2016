// The run in a file: SQLite, append-only events, tables for `status` kept in the same transaction.
// Writes only; people read through journal/reader.h, from any process, at any time.
//
// One thread, one process: the run directory's lock (io/files.h) is held while it is open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/options.h"
#include "journal/recorder.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"

namespace trainyard {

/// What is written down about one execution of the program over a run directory.
struct Execution {
  std::string command_line;  ///< Without secrets: reports show it.
  std::string version;       ///< trainyard's.
  std::string host;
  std::int64_t yard_pid = 0;
  std::int64_t keeper_pid = 0;
  std::string socket_path;  ///< Where `trainyard kill` reaches the yard; empty when nowhere.
  std::int64_t started_unix_ms = 0;   ///< Wall clock, for people only.
  std::string job_file;               ///< Absolute path.
  std::string job_text;               ///< As it was.
  std::string config_file;            ///< --config, absolute; empty when it was not given.
  std::vector<std::string> settings;  ///< Each --set, but for secrets.
  std::string configuration;          ///< What was in force, as `config show` prints it.
  std::vector<Gpu> gpus;              ///< Those that tasks may have.
  std::string git_commit;             ///< Of the working directory; empty outside git.
  std::string git_diff;               ///< Against that commit, at most 1 MiB.
};

/// How the names of the plan are asked for, one by one, so that nobody holds them all.
struct PlanNames {
  std::string job_name;
  std::move_only_function<std::string(TaskIndex) const> task_id;
  std::move_only_function<std::vector<std::pair<std::string, std::string>>(TaskIndex) const>
      matrix_values;
  std::move_only_function<std::uint64_t(TaskIndex) const> fingerprint;
};

class Journal final : public Recorder {
 public:
  /// Whether there is a run at `path`: false when there is no journal, or only what a yard left
  /// that was killed while it made one, so that create() is right. An error when what lies there is
  /// none of ours, from another version, or damaged.
  static Result<bool> has_begun(const std::string& path);

  /// Makes a journal and writes down the plan. A kill leaves all of it or a place that has not
  /// begun. An error when a run has begun there. Costs about 4 microseconds a task.
  static Result<std::unique_ptr<Journal>> create(const std::string& path, const Plan& plan,
                                                 const PlanNames& names, const Execution& execution,
                                                 JournalOptions options = {});

  /// Opens an old one for another execution with a plan that may have been edited. Tasks are known
  /// again by group and id. `plan` comes back with `finished_before` and `first_attempt` filled in.
  struct Resumed {
    std::unique_ptr<Journal> journal;
    Plan plan;
    Instant at;                        ///< Where the time of the run goes on.
    int finished = 0;                  ///< How many need not run again.
    std::vector<std::string> changes;  ///< What the edit changed, for people, at most 20 lines.
  };
  static Result<Resumed> resume(const std::string& path, Plan plan, const PlanNames& names,
                                const Execution& execution, JournalOptions options = {});

  /// What resume() would find out, and nothing is written. No yard may be at work on it.
  struct Preview {
    Plan plan;
    int finished = 0;
    std::vector<std::string> changes;
  };
  static Result<Preview> preview(const std::string& path, Plan plan, const PlanNames& names,
                                 JournalOptions options = {});

  ~Journal() override;

  Result<void> commit(const Turn& turn) override;

  /// Writes down that the execution has ended, and how. Nothing is committed after that.
  Result<void> close(Instant at, const std::string& how);

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
