// The request of one `trainyard run`: what is run, and where, made once from the typed words; and
// the words of `submit` that cannot be combined.
//
// Plain values. It neither reads the disk nor finds a run: the caller says what is at the typed
// paths. Any thread.
//
//   Result<RunRequest> request = request_run({.job_file = "sweep.yaml", .resumes = true}, {});
//   request->resumes();  // true: the latest run of sweep.yaml
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/run_facts.h"
#include "base/result.h"

namespace trainyard::app {

/// A command in the place of a job file, and the words around it.
struct TypedCommand {
  bool is_there = false;       ///< A command after '--', or --each-line.
  std::string name;            ///< --name; may be empty.
  std::string first_option;    ///< The first typed option that only a command has, as in "--cpus";
                               ///< may be empty.
  bool has_condition = false;  ///< --if
};

/// Choices that mean the same for every job and place.
struct RunChoices {
  std::vector<std::string> only;    ///< Patterns of the tasks that run; empty: all tasks.
  bool reruns_changed = false;      ///< Finished tasks run again if they have changed.
  bool snapshot = false;            ///< Tasks run in a copy of the work tree.
  bool detaches = false;            ///< The run continues without its terminal.
  bool until_input_closes = false;  ///< The run stops when standard input closes.

  bool operator==(const RunChoices&) const = default;
};

/// The words after `trainyard run`, as far as they say what is run, where and
/// how. Text that was not typed is empty.
struct TypedRun {
  std::string job_file;
  TypedCommand command;
  bool resumes = false;       ///< --resume, with or without a value.
  std::string resume;         ///< Value of --resume.
  bool is_new = false;        ///< --new
  std::string run_directory;  ///< --run-dir
  bool prints_json = false;   ///< --json
  RunChoices choices;
};

/// The state of the machine that decides what typed words mean.
struct RunSurroundings {
  PathKind job_file = PathKind::Missing;  ///< The kind of TypedRun::job_file.
  PathKind resume = PathKind::Missing;    ///< The kind of TypedRun::resume.
  /// The message for a job file that is a PathKind::Directory: it names the job files in it.
  std::string directory_message;
  bool input_can_close = true;  ///< Standard input is a pipe or a socket.
};

/// The path of a job file, relative to the current directory or absolute.
struct JobFile {
  std::string path;
  bool operator==(const JobFile&) const = default;
};
/// A command, for which a job file is yet to be made.
struct Command {
  bool operator==(const Command&) const = default;
};
/// The job file of the last execution of the resumed run, which is yet to be read.
struct JobOfRun {
  bool operator==(const JobOfRun&) const = default;
};

/// A run that starts.
struct NewRun {
  std::string directory;         ///< From --run-dir; empty: the job decides.
  bool takes_next_free = false;  ///< In that directory if it is free, else in the next free one of
                                 ///< those numbered after it.
  bool operator==(const NewRun&) const = default;
};
/// Resumes the run of this number, name or directory, which is yet to be found.
struct NamedRun {
  std::string word;
  bool operator==(const NamedRun&) const = default;
};
/// Resumes the latest run of the job file, which is yet to be found.
struct LatestRun {
  bool operator==(const LatestRun&) const = default;
};
/// Resumes the run in this directory.
struct RunInDirectory {
  std::string directory;
  bool operator==(const RunInDirectory&) const = default;
};

/// The job to run, its place, and the choices. Whatever is yet to be found is replaced once it is
/// found: a complete request has a JobFile, and a NewRun or a RunInDirectory.
struct RunRequest {
  std::variant<JobOfRun, JobFile, Command> job;
  std::variant<NewRun, NamedRun, LatestRun, RunInDirectory> place;
  RunChoices choices;

  [[nodiscard]] bool resumes() const { return !std::holds_alternative<NewRun>(place); }
  [[nodiscard]] bool is_command() const { return std::holds_alternative<Command>(job); }
  /// The path of the job file; empty while it is yet to be made or read.
  [[nodiscard]] std::string job_file() const;
  /// The directory of the run, or the word of a NamedRun; empty where the job decides.
  [[nodiscard]] std::string directory() const;
  /// Whether a run starts in the first free one of several directories.
  [[nodiscard]] bool takes_next_free() const {
    const auto* const starts = std::get_if<NewRun>(&place);
    return starts != nullptr && starts->takes_next_free;
  }
  /// Whether the user chose the directory of a run that starts.
  [[nodiscard]] bool names_new_directory() const { return !resumes() && !directory().empty(); }

  bool operator==(const RunRequest&) const = default;
};

/// The request of the typed words. The error of words that cannot be combined names the cure.
Result<RunRequest> request_run(const TypedRun& typed, const RunSurroundings& surroundings);

/// The reason why a command, the options that only a command has, and a job file cannot be
/// combined after `trainyard <subcommand>`; empty if they can.
std::string wrong_with_command(const TypedCommand& command, const std::string& job_file,
                               std::string_view subcommand);

/// The words after `trainyard submit`, as far as they say what is submitted, and where to. Text that
/// was not typed is empty.
struct TypedSubmit {
  std::string job_file;
  TypedCommand command;                ///< Without its --if if --needs was typed.
  std::string run_directory;           ///< The active run that gets the tasks; empty: the queue.
  bool needs_runs = false;             ///< --needs
  bool snapshot = false;               ///< --snapshot
  bool has_config = false;             ///< --config
  bool is_runner = false;              ///< The job file has the name of a program such as python3.
  std::string directory_message = {};  ///< As in RunSurroundings; empty: not a directory.
};

/// The reason why the words cannot be combined, with the cure; empty if they can.
std::string wrong_with_submit(const TypedSubmit& typed, const RunFacts& facts);

/// "one job file at a time: for job in a.yaml b.yaml; do trainyard plan "$job"; done".
std::string one_job_at_a_time(const std::vector<std::string>& files, std::string_view command);

}  // namespace trainyard::app
