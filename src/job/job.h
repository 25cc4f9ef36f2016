// A job file, read and checked: the plan of the scheduler (Plan), and the start of a task (Launch),
// made on demand so that a matrix of 100,000 cells stays small.
//
// Not the run: it holds no state of one. Immutable after load(), so any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
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
#include "job/task_keys.h"
#include "job/term_text.h"
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
#include "wire/agent.h"

namespace trainyard::job {

/// A script that an interpreter is to read.
struct ScriptOfTasks {
  std::string name;         ///< As in the command, relative to the task's directory: "train.py".
  std::string first_task;   ///< A task that runs it, for people.
  bool comes_later = true;  ///< All its tasks wait for others, which may make it.
  std::size_t tasks = 0;    ///< The number of tasks that run it, of the first 200 of each group.

  friend bool operator==(const ScriptOfTasks&, const ScriptOfTasks&) = default;
};

/// A program that tasks of a job run, for a check beforehand whether a machine has it.
struct ProgramOfTasks {
  wire::SoughtProgram program;
  std::vector<model::ShapeIndex> shapes;  ///< The shapes of the tasks that run it.
  std::string first_task;                 ///< A task that runs it, for people: "train/lr=0.1".
  /// Each of them waits for others, which may be what makes it.
  bool comes_later = true;
  /// The scripts that are known beforehand, where the program is an interpreter.
  std::vector<ScriptOfTasks> scripts = {};

  friend bool operator==(const ProgramOfTasks&, const ProgramOfTasks&) = default;
};

/// The paths of a job file and its run. All absolute.
struct JobPaths {
  std::string file;       ///< The job file.
  std::string directory;  ///< Its directory: where commands run by default.
  std::string run_directory;
  std::string learned;  ///< The file of its learned estimates.
};

/// The place for the runs of a job.
struct JobRuns {
  std::string job_name;
  std::string job_file;  ///< Absolute.
  std::string first;     ///< The directory of the first run; those of the next runs are numbered.
};

/// The addresses to notify about the run of a job.
struct JobNotify {
  std::string job_name;
  std::vector<text::WebAddress> addresses;
  std::vector<std::string> notes;  ///< See Job::notify_notes().
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
  std::string current_directory;      ///< Absolute; relative paths on the command line start here.
  /// The variables that the yard itself was started with, as NAME=value. A variable that is among
  /// them, such as OMP_NUM_THREADS, is not set for tasks.
  std::vector<std::string> environment;
  /// For a file that is added to a run: its batch number, and the facts about the run.
  struct Submission {
    std::uint32_t number = 2;
    /// The configuration in force in the run. The `config:` and `--set` of the submission may
    /// change only settings of its own tasks.
    const settings::Configuration* configuration = nullptr;
    /// The groups of all earlier batches, in order: this batch may need them.
    std::vector<const model::PlannedGroup*> groups;
  };
  std::optional<Submission> submission = std::nullopt;
  /// The name of this machine; estimates from another machine are reported as such.
  std::string host;
  /// The job is only shown and not run, for example on a laptop: a task that this machine can never
  /// hold is a note then, and not a mistake.
  bool only_shown = false;
  /// The GPUs of this machine were not queried: tasks are not compared with them.
  bool gpus_unknown = false;
  /// The size of the disk that a directory, which need not exist yet, is or would be on. A task
  /// that requests more can never run here. Empty: the job is not compared with a disk.
  std::function<std::optional<Bytes>(const std::string& directory)> disk_size = {};
  /// The machines of the run: each task must fit on one of them. None: on what `capacity` says,
  /// whatever it is called.
  std::vector<model::NamedMachine> machines = {};
  /// The name in mistakes of a machine that is only planned: "the planned machine (4x24GB)". Empty:
  /// `capacity` is this machine's.
  std::string machine_text = {};
  /// The memory of this machine that is available now, for the cure of a request that is too large.
  std::optional<Bytes> memory_now = {};
  /// The contents of files that the job file names; these count, whatever the files contain now.
  JobFiles files;
  /// For the text of a command: the option behind each line, which mistakes name. Empty: a file's.
  std::vector<std::string> line_names = {};
  /// "run" or "submit", which can start a program that is given as the job file; else empty.
  std::string starts_with = {};
  /// The directory of a command whose run was copied or moved with it. Tasks are still compared by
  /// the paths in the file: they are the same tasks.
  std::optional<MovedDirectory> moved_directory = {};
};

/// The JSON object that a task of the run has left, by its group as people call it and its id;
/// nothing where it left none.
using ResultOf =
    std::function<std::optional<std::string>(const std::string& group, const std::string& id)>;

/// A command for the shell whose values are variables, as a person would write it.
struct WrittenCommand {
  std::vector<std::pair<std::string, std::string>> variables;  ///< The launch's variables.
  /// With the values in their places, quoted; nothing if a value is in a here-document, where
  /// quotes do not keep one of its lines from being the document's end.
  std::optional<std::vector<std::string>> arguments;
};

class Job {
 public:
  /// Reads, expands and checks a job file with its configuration. All mistakes at once. `capacity`
  /// is the machine, for "can never hold". Costs about 2 microseconds a task.
  static std::expected<Job, text::Mistakes> load(const LoadOptions& options,
                                                 const model::Capacity& capacity);

  /// The same for text that is already in memory, such as a resumed run's job file.
  /// options.job_file is its name in mistakes, and gives its directory; it is not read.
  static std::expected<Job, text::Mistakes> parse(std::string_view text, const LoadOptions& options,
                                                  const model::Capacity& capacity);

  /// The configuration that a job file of this text has, before there are machines to make it for,
  /// whatever else may be wrong with it.
  static std::expected<settings::Configuration, text::Mistakes> configuration_of(
      const std::string& text, const LoadOptions& options);

  /// The place for the job file's runs, whatever else may be wrong with the file. An error if it
  /// cannot be read.
  static Result<JobRuns> runs_of(const LoadOptions& options);

  /// The addresses to notify about its run, whatever else may be wrong with the text or the
  /// configuration.
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
  [[nodiscard]] const model::Capacity& capacity() const;  ///< The capacity that the job was checked
                                                          ///< against.
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
  /// Whether some task can never run on the machine because it requests GPUs. Always false for a
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

  /// The machine that the job was loaded for, for to_text(LearnedFrom, ...).
  [[nodiscard]] const LearnedFor& here() const;
  /// All that earlier runs have taught; nothing where that is switched off.
  [[nodiscard]] const Learned& learned() const;

  /// The configuration with this capacity: the policy that the scheduler keeps to.
  [[nodiscard]] model::Policy policy() const;

  /// Groups, shapes and tasks, all to be run from attempt 1.
  [[nodiscard]] const model::Plan& plan() const;
  [[nodiscard]] std::shared_ptr<const model::Plan> shared_plan() const;

  /// The repeat of the file; nothing if it has none.
  struct Repeat {
    std::uint32_t rounds_max = 1;
    std::string until;        ///< As configured; empty: all rounds are run.
    std::uint32_t round = 0;  ///< The round of this job.
  };
  [[nodiscard]] std::optional<Repeat> repeat() const;
  /// Whether a task belongs to a round, and not to a group before the repeat.
  [[nodiscard]] bool is_repeated(model::TaskIndex task) const;
  /// Its groups, in the order of the plan, with their `keep`.
  [[nodiscard]] std::vector<KeptGroup> kept_groups() const;
  /// The same file as a later round of its repeat: a separate job of only the repeated groups.
  /// `groups_before` are the groups of all batches before, in order. A placeholder that is wrong in
  /// this round alone is a mistake.
  struct RoundOptions {
    std::uint32_t round = 1;
    std::uint32_t batch = 2;
    std::vector<const model::PlannedGroup*> groups_before;
  };
  [[nodiscard]] std::expected<Job, text::Mistakes> later_round(const RoundOptions& options) const;
  /// Whether the repeat's `until` holds after this round, by the results of its tasks. False
  /// without an `until`; an error if the value to compare is missing or is not a number.
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

  /// Everything that is needed to start an attempt on these GPUs (none for a task that wants none,
  /// gets them later, or is only shown). load() has checked it, so it fails only where it needs a
  /// value of a missing result: Launch::cannot_start says so. Without `result_of` such a value is
  /// left as configured. A task that is to be capped to a part of its GPUs costs a read of the
  /// files next to its Python.
  [[nodiscard]] model::Launch launch(model::AttemptKey key, const model::Grant& grant = {},
                                     const ResultOf& result_of = {}) const;

  /// The ways to cap the task to a part of a GPU, and the reason if there are none.
  [[nodiscard]] Cappers cappers(model::TaskIndex task) const;

  /// A command for the shell in a form to read and paste; nothing if it has no values, or is not
  /// for the shell.
  [[nodiscard]] std::optional<WrittenCommand> written_command(model::TaskIndex task) const;

  /// The programs of the tasks that are to be run, each once, as far as their commands alone name
  /// them. Reads the first 200 tasks of each group. Leaves out a program that a run makes in its
  /// own directory. `only` names tasks ("group/id") and leaves out all others; empty: all count.
  [[nodiscard]] std::vector<ProgramOfTasks> programs(const std::set<std::string>& only = {}) const;

  /// The workers of a task that is a parallel run; the count is 0 for any other task.
  [[nodiscard]] Workers workers(model::TaskIndex task) const;

  /// A hash over command, environment, working directory, GPUs, ranks and workers of a task in the
  /// job file, to see whether an edited job file changed its result. Does not include its place in
  /// the file, the run directory, the defaults, nor its reserved memory and CPUs: these are raised
  /// for tasks that were short of them.
  [[nodiscard]] std::uint64_t fingerprint(model::TaskIndex task) const;

  /// By which learned estimates know the command of a task (job_binding.h).
  [[nodiscard]] std::int64_t command_fingerprint(model::TaskIndex task) const;
  /// Calls Learned::set_commands() for each group, as was done for learned().
  void compare_commands(Learned& learned) const;

 private:
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::job
