// A job file, read and checked: what the scheduler plans with (Plan), and what a task is started
// with (Launch), made on demand so that a matrix of 100,000 cells stays small.
//
// Not the run: it holds no state of one. Immutable after load(), so any thread may read it.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/configuration.h"
#include "config/mistake.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

/// Where a job file's places lie. All absolute.
struct JobPlaces {
  std::string file;       ///< The job file.
  std::string directory;  ///< Its directory: where commands run by default.
  std::string run_directory;
};

/// Where the runs of a job go.
struct JobRuns {
  std::string job_name;
  std::string job_file;  ///< Absolute.
  std::string first;     ///< The directory of the first; those of the next ones are numbered.
};

struct LoadOptions {
  std::string job_file;
  std::string config_file;            ///< --config; empty: ./trainyard.yaml if there is one.
  std::vector<std::string> settings;  ///< --set key=value, in order.
  std::string run_directory;          ///< --run-dir; empty: the job file's, else runs/<name>.
  std::string current_directory;      ///< Absolute; what relative paths on the command line mean.
  /// The names of the variables that the yard itself was started with: what it has, OMP_NUM_THREADS
  /// for one, is not set for tasks.
  std::vector<std::string> environment_names;
};

class Job {
 public:
  /// Reads, expands and checks a job file with its configuration. All mistakes at once. `capacity`
  /// is the machine, for "can never hold". Costs about 2 microseconds a task.
  static std::expected<Job, Mistakes> load(const LoadOptions& options, const Capacity& capacity);

  /// The same for text that is already in memory, as a resumed run's job file is. options.job_file
  /// stands for it in mistakes, and says where it lies; it is not read.
  static std::expected<Job, Mistakes> parse(std::string_view text, const LoadOptions& options,
                                            const Capacity& capacity);

  /// Where the job file's runs go, whatever else may be wrong with it. An error where it cannot be
  /// read.
  static Result<JobRuns> runs_of(const LoadOptions& options);

  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& text() const;  ///< The job file as it was.
  [[nodiscard]] const JobPlaces& places() const;
  [[nodiscard]] const Configuration& configuration() const;
  [[nodiscard]] const Capacity& capacity() const;  ///< What it was checked against.

  /// For people: where what is written and what was learned differ.
  [[nodiscard]] const std::vector<std::string>& notes() const;

  /// The configuration with this capacity: what the scheduler is to keep.
  [[nodiscard]] Limits limits() const;

  /// Groups, shapes and tasks, all to be run from attempt 1.
  [[nodiscard]] const Plan& plan() const;

  [[nodiscard]] std::string task_id(TaskIndex task) const;
  [[nodiscard]] GroupIndex group_of(TaskIndex task) const;
  [[nodiscard]] std::optional<TaskIndex> find(std::string_view group, std::string_view id) const;

  /// <run-dir>/<group>/<id>, or <run-dir>/<id> without task.directory-grouping.
  [[nodiscard]] std::string task_directory(TaskIndex task) const;

  /// The matrix values of a task in the order of the job file, as typed; empty without a matrix.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> matrix_values(
      TaskIndex task) const;

  /// Everything that is needed to start an attempt on these GPUs (none where it wants none, gets
  /// them later, or only looks). Cannot fail: load() has checked it.
  [[nodiscard]] Launch launch(AttemptKey key, const std::vector<GpuIndex>& gpus = {}) const;

  /// A hash over command, environment, working directory, GPUs and ranks of a task as the job file
  /// says them, to see whether an edited job file changed what it computes. Not over its place in
  /// the file, where the run directory is, the defaults, nor how much memory and how many CPUs it
  /// is promised: these are raised for the tasks that lacked them.
  [[nodiscard]] std::uint64_t fingerprint(TaskIndex task) const;

 private:
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
