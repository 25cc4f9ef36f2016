// A job file, read and checked: what the scheduler plans with (Plan), and what a task is started
// with (Launch), made on demand so that a matrix of 100,000 cells stays small.
//
// Not the run: it holds no state of one. Immutable after load(), so any thread may read it.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "job/gpu_caps.h"
#include "job/job_files.h"
#include "job/keep.h"
#include "job/learned.h"
#include "job/sought_programs.h"
#include "job/task_keys.h"
#include "job/workers_text.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "run/code_copy.h"
#include "settings/configuration.h"
#include "text/mistake.h"
#include "text/task_pattern.h"
#include "text/web_address.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Where what belongs to a job file lies. All absolute.
struct JobPaths {
  std::string file;       ///< The job file.
  std::string directory;  ///< Its directory: where commands run by default.
  std::string run_directory;
  std::string learned;  ///< The file of its learned estimates.
};

/// Where the runs of a job go.
struct JobRuns {
  std::string job_name;
  std::string job_file;  ///< Absolute.
  std::string first;     ///< The directory of the first; those of the next ones are numbered.
};

/// Who is notified of the run of a job.
struct JobNotify {
  std::string job_name;
  std::vector<text::WebAddress> addresses;
  std::vector<std::string> notes;  ///< As Job::notify_notes().
};

/// A directory in which tasks run that has another place now than the job file says.
struct MovedDirectory {
  std::string was;  ///< Absolute.
  std::string is;
};

struct LoadOptions {
  std::string job_file;
  std::string config_file;            ///< --config; empty: ./trainyard.yaml if there is one.
  std::vector<std::string> settings;  ///< --set key=value, in order.
  std::string run_directory;          ///< --run-dir; empty: the job file's, else runs/<name>.
  std::string current_directory;      ///< Absolute; what relative paths on the command line mean.
  /// The variables that the yard itself was started with, as NAME=value: what it has,
  /// OMP_NUM_THREADS for one, is not set for tasks.
  std::vector<std::string> environment;
  /// For a file that is added to a run: which batch it becomes, and what it finds there.
  struct Submission {
    std::uint32_t number = 2;
    /// What is in force there. Its `config:` and `--set` may change what is about its own tasks.
    const settings::Configuration* configuration = nullptr;
    /// The groups of all earlier batches, in order: this batch may need them.
    std::vector<const model::PlannedGroup*> groups;
  };
  std::optional<Submission> submission = std::nullopt;
  /// The name of this machine; what another one has taught is told as such.
  std::string host;
  /// The job is looked at and not run, on a laptop say: a task that this machine can never hold is
  /// a note then, and no mistake.
  bool only_shown = false;
  /// This machine's GPUs were not asked for: whether they can hold a task is not looked at.
  bool gpus_unknown = false;
  /// The size of the disk that a directory, which need not exist yet, is or would be on. A task
  /// that requests more can never run here. Empty: the job is not compared with a disk.
  std::function<std::optional<Bytes>(const std::string& directory)> disk_size = {};
  /// The machines of the run: each task must fit on one of them. None: on what `capacity` says,
  /// whatever it is called.
  std::vector<model::NamedMachine> machines = {};
  /// How mistakes call the machine of `capacity`: "the planned machine (4x24GB)". Empty: this
  /// machine.
  std::string machine_text = {};
  /// What files say that the job file names, whatever stands there now.
  JobFiles files;
  /// For the text of a command: the option behind each line, which mistakes name. Empty: a file's.
  std::vector<std::string> line_names = {};
  /// "run" or "submit", which can start a program that is given as the job file; else empty.
  std::string starts_with = {};
  /// The directory of a command whose run was copied or moved with it. What tasks are compared by
  /// is as the file says: they are the same tasks.
  std::optional<MovedDirectory> moved_directory = {};
};

/// The JSON object that a task of the run has left, by its group as people call it and its id;
/// nothing where it left none.
using ResultOf =
    std::function<std::optional<std::string>(const std::string& group, const std::string& id)>;

/// A command for the shell whose values are variables, as a person would write it.
struct WrittenCommand {
  std::vector<std::pair<std::string, std::string>> variables;  ///< Those of the launch.
  /// With the values in their places, quoted; nothing where a value stands in a here-document, in
  /// which no quotes keep a line of it from being the document's end.
  std::optional<std::vector<std::string>> arguments;
};

class Job {
 public:
  /// Reads, expands and checks a job file with its configuration. All mistakes at once. `capacity`
  /// is the machine, for "can never hold". Costs about 2 microseconds a task.
  static std::expected<Job, text::Mistakes> load(const LoadOptions& options,
                                                 const model::Capacity& capacity);

  /// The same for text that is already in memory, as a resumed run's job file is. options.job_file
  /// stands for it in mistakes, and says where it lies; it is not read.
  static std::expected<Job, text::Mistakes> parse(std::string_view text, const LoadOptions& options,
                                                  const model::Capacity& capacity);

  /// The configuration that a job file of this text has, before there are machines to make it for,
  /// whatever else may be wrong with it.
  static std::expected<settings::Configuration, text::Mistakes> configuration_of(
      const std::string& text, const LoadOptions& options);

  /// Where the job file's runs go, whatever else may be wrong with it. An error where it cannot be
  /// read.
  static Result<JobRuns> runs_of(const LoadOptions& options);

  /// Who is notified of its run, whatever else may be wrong with the text or the configuration.
  static JobNotify notify_of(std::string_view text, const LoadOptions& options);

  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& text() const;  ///< The job file as it was.
  /// And the files that it names, as they were read.
  [[nodiscard]] const JobFiles& files() const;
  [[nodiscard]] const JobPaths& paths() const;
  [[nodiscard]] const settings::Configuration& configuration() const;
  [[nodiscard]] const model::Capacity& capacity() const;  ///< What it was checked against.
  [[nodiscard]] const std::vector<model::NamedMachine>& machines() const;  ///< The same.

  /// The addresses that are notified of the run, and the shell command that runs when it has ended;
  /// empty: none. In a file that is submitted to a run they have no effect.
  [[nodiscard]] const std::vector<text::WebAddress>& notify() const;
  /// For people: variables of `notify` that hold no address. They are among the notes(), too.
  [[nodiscard]] const std::vector<std::string>& notify_notes() const;
  [[nodiscard]] const std::string& on_finish() const;
  /// Removes the secret parts of the addresses from a text that may quote the file.
  [[nodiscard]] std::string without_secrets(std::string text) const;

  /// For people: differences between the file and the learned estimates, tasks that can never run
  /// here, and warnings().
  [[nodiscard]] const std::vector<std::string>& notes() const;
  /// Whether some task can never run on the machine because it requests GPUs. Always false of a
  /// job that is to be run, where this is a mistake.
  [[nodiscard]] bool lacks_gpu() const;
  /// Notes that users need to read the results: matrix keys that change nothing, and variables by
  /// which tasks leave the GPUs that are reserved for them. Empty for a later round, which would
  /// have those of the first.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  /// Learned estimates that are reserved for a task, with their sources. A number that the file or
  /// the settings give has none.
  struct LearnedNumbers {
    std::optional<Expected<Bytes>> memory;
    std::optional<Expected<Bytes>> gpu_memory;
    std::optional<Expected<Duration>> duration;
  };
  [[nodiscard]] LearnedNumbers learned_numbers(model::TaskIndex task) const;
  /// The value of a key of a task in the file, or of its group; nothing where neither has the key.
  struct SaidValue {
    text::Place place;
    std::string text;    ///< With its placeholders.
    bool fixed = false;  ///< It has none.
  };
  [[nodiscard]] std::optional<SaidValue> said_value(model::TaskIndex task, TaskKey key) const;
  /// By group: how much of a GPU keeps one of its tasks busy that is alone there, by what earlier
  /// runs measured, in thousandths; 0: they did not.
  [[nodiscard]] const std::vector<int>& gpu_shares() const;

  /// Where the job was looked at: for to_text(LearnedFrom, ...).
  [[nodiscard]] const LearnedFor& here() const;
  /// All that earlier runs have taught; nothing where that is switched off.
  [[nodiscard]] const Learned& learned() const;

  /// The configuration with this capacity: what the scheduler is to keep.
  [[nodiscard]] model::Policy policy() const;

  /// Groups, shapes and tasks, all to be run from attempt 1.
  [[nodiscard]] const model::Plan& plan() const;
  [[nodiscard]] std::shared_ptr<const model::Plan> shared_plan() const;

  /// What the file says of a part that is repeated; nothing: it repeats none.
  struct Repeat {
    std::uint32_t rounds_max = 1;
    std::string until;        ///< As it is written; empty: all rounds are run.
    std::uint32_t round = 0;  ///< Which one this is.
  };
  [[nodiscard]] std::optional<Repeat> repeat() const;
  /// Whether a task is of a round, and not of what stands before the repeat.
  [[nodiscard]] bool is_repeated(model::TaskIndex task) const;
  /// Its groups, in the order of the plan, with what is to be kept of them.
  [[nodiscard]] std::vector<KeptGroup> kept_groups() const;
  /// The same file once more, as a later round of its repeat: a job of its own, of the groups that
  /// are repeated alone. `groups_before` are those of all batches before, in order. What a
  /// placeholder makes wrong in this round alone is a mistake.
  struct RoundOptions {
    std::uint32_t round = 1;
    std::uint32_t batch = 2;
    std::vector<const model::PlannedGroup*> groups_before;
  };
  [[nodiscard]] std::expected<Job, text::Mistakes> later_round(const RoundOptions& options) const;
  /// Whether what ends the repeat holds after this round, by what its tasks left. Never without an
  /// `until`; an error where what is to be compared is not there, or is no number.
  [[nodiscard]] Result<bool> until_holds(const ResultOf& result_of) const;

  /// Selects the tasks that the patterns mean, and all tasks of a needed group of which no task was
  /// selected; the others do not run. Returns an error for a pattern that means no task. Costs
  /// O(tasks * patterns). Must be called before the plan is shared.
  Result<void> choose(const std::vector<text::TaskPattern>& patterns);

  /// Its commands run in the copy of their work tree from now on, wherever they would run in that.
  void work_in(run::CodeCopy copy);
  [[nodiscard]] const std::optional<run::CodeCopy>& code_copy() const;

  [[nodiscard]] std::string task_id(model::TaskIndex task) const;
  [[nodiscard]] model::GroupIndex group_of(model::TaskIndex task) const;
  [[nodiscard]] std::optional<model::TaskIndex> find(std::string_view group,
                                                     std::string_view id) const;

  /// Absolute (run/run_directory.h).
  [[nodiscard]] std::string task_directory(model::TaskIndex task) const;

  /// The matrix values of a task in the order of the job file, as typed; empty without a matrix.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> matrix_values(
      model::TaskIndex task) const;

  /// Everything that is needed to start an attempt on these GPUs (none where it wants none, gets
  /// them later, or only looks). Cannot fail, as load() has checked it, but where it needs a value
  /// of a result that is not there: Launch::cannot_start says so. Without `result_of` such a value
  /// is left as it is written. One that is to be kept to a part of its GPUs costs a look at the
  /// files beside its Python.
  [[nodiscard]] model::Launch launch(model::AttemptKey key, const model::Grant& grant = {},
                                     const ResultOf& result_of = {}) const;

  /// What would keep it to a part of a GPU, and why nothing would.
  [[nodiscard]] Cappers cappers(model::TaskIndex task) const;

  /// How a command for the shell can be read and pasted; nothing where it has no values, or is
  /// none.
  [[nodiscard]] std::optional<WrittenCommand> written_command(model::TaskIndex task) const;

  /// Which programs its tasks run that are to be run, each once, as far as their commands name them
  /// alone: of each group the first 200 tasks are looked at, and none that a run makes in its own
  /// directory is sought.
  [[nodiscard]] std::vector<ProgramOfTasks> programs() const;

  /// The workers of a task that is a parallel run; the count is 0 for any other task.
  [[nodiscard]] Workers workers(model::TaskIndex task) const;

  /// A hash over command, environment, working directory, GPUs, ranks and workers of a task as the
  /// job file says them, to see whether an edited job file changed what it computes. Not over its
  /// place in the file, where the run directory is, the defaults, nor how much memory and how many
  /// CPUs it is promised: these are raised for the tasks that lacked them.
  [[nodiscard]] std::uint64_t fingerprint(model::TaskIndex task) const;
  /// What it was when memory and CPUs still counted: journals of that time have it.
  [[nodiscard]] std::uint64_t older_fingerprint(model::TaskIndex task) const;

  /// By which learned estimates know the command of a task (job_binding.h).
  [[nodiscard]] std::int64_t command_fingerprint(model::TaskIndex task) const;
  /// Calls Learned::set_commands() for each group, as was done for learned().
  void compare_commands(Learned& learned) const;

 private:
  [[nodiscard]] std::uint64_t fingerprint(model::TaskIndex task, bool with_reservations) const;
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::job
