#include "cli/queue_submit.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "cli/checked_job.h"
#include "cli/code_snapshot.h"
#include "cli/command_job.h"
#include "cli/console.h"
#include "cli/directory_claim.h"
#include "cli/known_runs.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "job/job_files.h"
#include "job/run_if.h"
#include "job/task_keys.h"
#include "model/priority.h"
#include "model/terms.h"
#include "run/queue_files.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "schedule/queue_choice.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/this_process.h"
#include "text/readable_json.h"

namespace trainyard::cli {
namespace {

std::string said_last(const SubmitOptions& options, job::TaskKey key) {
  const auto& said = options.words.keys.at(std::to_underlying(key));
  return said.empty() ? std::string() : said.back();
}

/// Takes the keys of its task that the queue applies.
Result<void> take_order(const SubmitOptions& options, run::Submission& submission) {
  if (const std::string said = said_last(options, job::TaskKey::Priority); !said.empty()) {
    const Result<int> priority = model::parse_priority(said);
    if (!priority) return std::unexpected(Error(priority.error()).in("--priority"));
    submission.priority = *priority;
  }
  const std::string condition = said_last(options, job::TaskKey::If);
  if (condition.empty()) return {};
  const Result<model::RunIf> run_if = job::parse_run_if(condition);
  if (!run_if) return std::unexpected(Error(run_if.error()).in("--if"));
  submission.run_if = *run_if;
  return {};
}

/// The numbers of the runs that the submission needs.
Result<std::vector<std::uint32_t>> needed_numbers(const SubmitOptions& options) {
  std::vector<std::uint32_t> needed;
  for (const std::string& said : options.needs) {
    const auto wrong = [&said](std::string_view why) {
      return std::unexpected(Error{fmt::format("--needs {}: {}", said, why)});
    };
    if (said.empty()) return wrong("'' is not the name of a run");
    std::optional<std::uint32_t> number = run::read_run_number(said);
    if (const auto unknown = app::unknown_number(said, run_facts())) return wrong(unknown->message);
    if (!number) {
      const Result<std::string> directory = newest_run_of(said);
      if (!directory) {
        return wrong(app::with_cure_of_list(said, "--needs ", directory.error()).message);
      }
      number = number_of_run(*directory);
      if (!number) return wrong("it has no number");
    }
    needed.push_back(*number);
  }
  return needed;
}

/// For its user alone, as the journal that has it as well.
Result<void> keep_text(const std::string& path, const std::string& text) {
  const auto file = sys::open_file(path, {.flags = O_WRONLY | O_CREAT | O_TRUNC});
  if (!file) return std::unexpected(file.error().error);
  return sys::write_all(file->descriptor, text, path);
}

Result<run::Submission> submission_for(const SubmitOptions& options, const CheckedJob& job) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return std::unexpected(numbers.error());
  Result<std::vector<std::uint32_t>> needs = needed_numbers(options);
  if (!needs) return std::unexpected(std::move(needs.error()));
  Result<run::Submission> made = with_own_shell({.job_file = job.job_file,
                                                 .config_file = job.config_file,
                                                 .settings = options.settings,
                                                 .command_line = options.command_line,
                                                 .directory = job.directory,
                                                 .needs_gpu = job.needs_gpu,
                                                 .memory = job.memory,
                                                 .cpus = job.cpus,
                                                 .needs = std::move(*needs),
                                                 .submitted_unix_ms = sys::unix_milliseconds()});
  if (!made) return made;
  run::Submission& submission = *made;
  if (const Result<void> taken = take_order(options, submission); !taken) {
    return std::unexpected(taken.error());
  }
  const run::SubmissionMark mark{.name = std::filesystem::path(job.first).filename().string(),
                                 .submitted_unix_ms = submission.submitted_unix_ms};
  Result<std::string> reserved = reserve_new_directory(
      {.first = job.first,
       .marker = run::submission_path,
       .text = run::to_text(mark),
       .elsewhere = options.words.is_command()
                        ? "'--set workdir=DIR' puts runs in DIR/runs"
                        : "'run-dir: DIR' in the job file puts the run in DIR"});
  if (!reserved) return std::unexpected(reserved.error());
  submission.run_directory = run::real_directory(*reserved);
  const std::string kept = run::kept_job_path(submission.run_directory);
  if (submission.job_file.empty()) submission.job_file = kept;
  Result<void> written = keep_text(kept, job.text);
  if (written && !job.files.empty()) {
    written = keep_text(run::kept_files_path(submission.run_directory), job::to_json(job.files));
  }
  const Result<std::uint32_t> number =
      written ? numbers->give(submission.run_directory, run::real_directory(job.directory))
              : std::unexpected(written.error());
  if (number) {
    submission.number = *number;
    return made;
  }
  std::error_code ignored;
  std::filesystem::remove_all(submission.run_directory, ignored);
  return std::unexpected(number.error());
}

/// The default directory for the tasks of a job.
std::string directory_of_tasks(const CheckedJob& job) {
  return job.job_file.empty() ? job.directory
                              : std::filesystem::path(job.job_file).parent_path().string();
}

ExitCode tell_number(const run::Submission& submission, bool json) {
  if (!json) {
    const ExitCode code = answer(fmt::format("{}\n", submission.number));
    explain_number(submission.number, submission.run_directory, "submitted");
    return code;
  }
  nlohmann::ordered_json printed;
  printed["run_number"] = submission.number;
  printed["run_directory"] = submission.run_directory;
  return answer(text::readable_json(printed));
}

/// Prints why the queue skips a submission at once, if the end of the runs that it needs has decided
/// that already.
void note_skip(const run::QueueFiles& files, const run::Submission& submission) {
  const schedule::QueueChoice choice =
      schedule::choose_next({run::queued(submission)}, {},
                            [&files](std::uint32_t needed) { return fate_of_run(files, needed); });
  for (const schedule::SkippedSubmission& skipped : choice.skip) {
    const std::string cure =
        skipped.needed == 0
            ? std::string()
            : fmt::format(
                  "; 'trainyard retry {} --cascade' runs both, and a submission with '--if "
                  "failure' runs after a failure",
                  skipped.needed);
    note(fmt::format("run {} is skipped: {}{}", skipped.number, skipped.why, cure));
  }
}

}  // namespace

ExitCode submit_to_queue(const SubmitOptions& options) {
  // The queue checks the outcome of the runs that a submission needs.
  CommandWords words = options.words;
  if (!options.needs.empty()) words.keys.at(std::to_underlying(job::TaskKey::If)).clear();
  const auto job = check_job({.job_file = options.job_file,
                              .words = words,
                              .config_file = options.config_file,
                              .settings = options.settings,
                              .checks_gpus = true,
                              // A run that this one needs may make its programs.
                              .checks_programs = options.needs.empty()});
  if (!job) {
    const ExitCode code = fail(job.error());
    if (are_for_want_of_gpus(job.error())) advise_cpus(words);
    return code;
  }
  for (const std::string& warning : job->warnings) warn(warning);
  const Result<run::QueueFiles> files =
      open_queue({.config_file = options.config_file, .settings = options.settings});
  if (!files) return fail(files.error());
  const Result<run::Submission> submission = submission_for(options, *job);
  if (!submission) return fail(submission.error());
  if (options.snapshot) {
    const auto copied = make_snapshot(
        {.directory = directory_of_tasks(*job), .run_directory = submission->run_directory});
    if (!copied) return copied.error();
  }
  if (const Result<void> added = files->add(*submission); !added) {
    std::error_code ignored;
    std::filesystem::remove_all(submission->run_directory, ignored);
    return fail(added.error());
  }
  serve_submissions(*files, 1);
  const ExitCode code = tell_number(*submission, options.json);
  note_skip(*files, *submission);
  return code;
}

}  // namespace trainyard::cli
