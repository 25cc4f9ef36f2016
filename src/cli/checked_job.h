// A check of a job file, or of a command in its place, before anything is made of it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "cli/run_machines.h"
#include "job/job.h"
#include "job/job_files.h"
#include "model/resources.h"
#include "text/mistake.h"

namespace trainyard::cli {

struct JobWords {
  std::string job_file;
  const CommandWords& words;
  std::string config_file;
  std::vector<std::string> settings;
  bool only_shown = false;  ///< See job::LoadOptions.
  /// Compares tasks with the GPUs of this machine also if nothing else of it is too small. The
  /// driver is queried only if a task may need a GPU, from a process that is forked for it.
  bool checks_gpus = false;
  /// Warns of programs that this machine lacks. Costs a disk access for each.
  bool checks_programs = false;
};

struct CheckedJob {
  std::string text;
  std::vector<std::string> line_names;  ///< See CommandJob; empty: a job file.
  job::JobFiles files;                  ///< The files that it names.
  std::string job_file;                 ///< Absolute; empty: a command.
  std::string config_file;              ///< Absolute, or empty.
  std::string directory;                ///< The working directory.
  std::string first;                    ///< The directory of its first run.
  /// Warnings on the job, its addresses and its command, then missing programs.
  std::vector<std::string> warnings;
  bool needs_gpu = false;  ///< Some task of it.
  Bytes memory;            ///< The smallest request of its tasks.
  model::Cpus cpus;        ///< The smallest request of its tasks.
};

/// Whether tasks of a job lack a GPU because `here` has none.
bool are_for_want_of_gpus(const text::Mistakes& mistakes, const model::Capacity& here);

/// Whether tasks of a job lack a GPU because this machine has none. The driver is queried only if a
/// mistake is about GPUs.
bool are_for_want_of_gpus(const text::Mistakes& mistakes);

/// Prints how to run such a job without GPUs.
void advise_cpus(const CommandWords& words);

/// The error of a job file that cannot be read, with the job file, the run or the command that may
/// be meant.
Error unreadable_job(Error error, const std::string& job_file);

/// The options to load a job file by typed paths, which are seen from the current directory. An error
/// if that is gone.
Result<job::LoadOptions> load_options(const std::string& job_file, const std::string& config_file,
                                      const std::vector<std::string>& settings,
                                      const std::string& run_directory = {});

/// Sets what a job is compared with where its run uses this machine alone.
void compare_with_this_machine(job::LoadOptions& load);

/// The job of a job file. The error of a file that is missing names the nearest one there.
std::expected<job::Job, text::Mistakes> load_job(const job::LoadOptions& load,
                                                 const model::Capacity& capacity);

/// Reads and checks a job. An error has all its mistakes, and the tasks that this machine can never
/// run; for a job on other machines such tasks are found when the run begins.
std::expected<CheckedJob, text::Mistakes> check_job(const JobWords& words);

/// The text of a run's job file: the text that replaces it, else that of the file. A run reads it
/// once, as the file may be edited while the run waits for its machines.
std::expected<std::string, text::Mistakes> read_job(const RunOptions& options,
                                                    const job::LoadOptions& load);

/// The configuration, directory and machine keys of a job, which are known before the machines are.
std::expected<JobGround, text::Mistakes> ground_of_job(const RunOptions& options,
                                                       const std::string& job_text,
                                                       const job::LoadOptions& load);

/// Checks a job for mistakes that no machine can cure, before the run waits for its machines.
std::expected<void, text::Mistakes> look_at_job(const std::string& job_text, job::LoadOptions load,
                                                const model::Capacity& here);

/// The files that the job file of a run named when it was submitted, with their text of that time;
/// none where none are kept.
Result<job::JobFiles> kept_files_of(const std::string& run_directory);

/// Sets the text of the job file, and of the files that it names, to the submitted ones, if the
/// queue starts this run. An error if one of them is refused, as it is a link or has a second name.
Result<void> take_from_queue(RunOptions& options);

/// Options for the run of a command, whose job file is text in memory: nothing is written.
std::expected<RunOptions, text::Mistakes> with_command_job(RunOptions options);

/// Writes the job file of a command into a new directory: run_directory, or the next that is free.
Result<RunOptions> with_kept_job(RunOptions options, const std::string& run_directory);

}  // namespace trainyard::cli
