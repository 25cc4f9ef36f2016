// `trainyard submit`: into the queue, or into a run that is named, by asking its yard.
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/run_request.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/code_snapshot.h"
#include "cli/command_job.h"
#include "cli/command_words.h"
#include "cli/console.h"
#include "cli/directory_claim.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queue_return.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/job_files.h"
#include "job/task_keys.h"
#include "job/term_text.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "model/priority.h"
#include "model/terms.h"
#include "queue/queue_files.h"
#include "run/code_copy.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/this_process.h"
#include "text/readable_json.h"
#include "text/text_file.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

struct SubmitOptions {
  std::string job_file;
  CommandWords words;         ///< A command in its place.
  std::string run_directory;  ///< Empty: it comes into the queue.
  std::string config_file;
  std::vector<std::string> needs;  ///< Runs that are to end first.
  std::vector<std::string> settings;
  std::string command_line;  ///< As typed, without secrets: for the journal.
  bool snapshot = false;     ///< In a copy of the work tree in its present state.
  bool json = false;
};

std::string said_last(const SubmitOptions& options, job::TaskKey key) {
  const auto& said = options.words.keys.at(std::to_underlying(key));
  return said.empty() ? std::string() : said.back();
}

/// Takes the keys of its task that the queue applies.
Result<void> take_order(const SubmitOptions& options, queue::Submission& submission) {
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

/// For its user alone, as the journal that has it as well.
Result<void> keep_text(const std::string& path, const std::string& text) {
  const auto file = sys::open_file(path, {.flags = O_WRONLY | O_CREAT | O_TRUNC});
  if (!file) return std::unexpected(file.error().error);
  return sys::write_all(file->descriptor, text, path);
}

Result<queue::Submission> submission_for(const SubmitOptions& options, const CheckedJob& job) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return std::unexpected(numbers.error());
  const Result<std::vector<app::FoundRun>> needed = app::needed_runs(options.needs, run_facts());
  if (!needed) return std::unexpected(needed.error());
  std::vector<std::uint32_t> needs;
  for (const app::FoundRun& run : *needed) {
    if (const std::string which = which_run_note(run); !which.empty()) note(which);
    needs.push_back(run.number);
  }
  Result<queue::Submission> made = with_own_shell({.job_file = job.job_file,
                                                   .config_file = job.config_file,
                                                   .settings = options.settings,
                                                   .command_line = options.command_line,
                                                   .directory = job.directory,
                                                   .needs_gpu = job.needs_gpu,
                                                   .memory = job.memory,
                                                   .cpus = job.cpus,
                                                   .needs = std::move(needs),
                                                   .submitted_unix_ms = sys::unix_milliseconds()});
  if (!made) return made;
  queue::Submission& submission = *made;
  if (const Result<void> taken = take_order(options, submission); !taken) {
    return std::unexpected(taken.error());
  }
  const queue::SubmissionMark mark{.name = std::filesystem::path(job.first).filename().string(),
                                   .submitted_unix_ms = submission.submitted_unix_ms};
  Result<std::string> reserved = reserve_new_directory(
      {.first = job.first,
       .marker = run::submission_path,
       .text = queue::to_text(mark),
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
  forget_directory(submission.run_directory);
  return std::unexpected(number.error());
}

/// Takes back the number of a submission that is refused.
void forget_number(std::uint32_t number) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (numbers) numbers->forget(number);
}

/// The default directory for the tasks of a job.
std::string directory_of_tasks(const CheckedJob& job) {
  return job.job_file.empty() ? job.directory
                              : std::filesystem::path(job.job_file).parent_path().string();
}

ExitCode tell_number(const queue::Submission& submission, bool json) {
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
void note_skip(const queue::QueueFiles& files, const queue::Submission& submission) {
  const Result<void> starts = check_needs(files, submission);
  if (starts) return;
  note(fmt::format("skipped: {}{}", starts.error().message,
                   submission.run_if == model::RunIf::Success
                       ? "; a submission with '--if failure' runs after a failure"
                       : ""));
}

/// Checks it, keeps a directory and a number for it, puts it into the queue, and prints the number.
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
  const Result<queue::QueueFiles> files =
      open_queue({.config_file = options.config_file, .settings = options.settings});
  if (!files) return fail(files.error());
  const Result<queue::Submission> submission = submission_for(options, *job);
  if (!submission) return fail(submission.error());
  if (options.snapshot) {
    const auto copied = make_snapshot(
        {.directory = directory_of_tasks(*job), .run_directory = submission->run_directory});
    if (!copied) {
      forget_number(submission->number);
      return copied.error();
    }
  }
  if (const Result<void> added = files->add(*submission); !added) {
    forget_number(submission->number);
    if (options.snapshot) run::drop_code_copy(submission->run_directory);
    forget_directory(submission->run_directory);
    return fail(added.error());
  }
  serve_submissions(*files, 1);
  const ExitCode code = tell_number(*submission, options.json);
  note_skip(*files, *submission);
  return code;
}

/// A hundred thousand tasks take a few seconds, and others may be before it.
constexpr Duration kAnsweredWithin{300'000};

/// The file is read by the yard, by the settings that are in force there; here it only has to be
/// one.
Result<wire::Submit> submission_of(const SubmitOptions& options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  std::string path = absolute_path(options.job_file, *here);
  std::string text;
  std::vector<std::string> line_names;
  if (options.words.is_command()) {
    Result<CommandJob> job = job_of_command(options.words, *here);
    if (!job) return std::unexpected(std::move(job.error()));
    path = fmt::format("{}/{}", *here, kCommandFile);
    text = std::move(job->text);
    line_names = std::move(job->line_names);
  } else {
    Result<std::string> read = text::read_text_file(path, run::links_at_job_file(path));
    if (!read) {
      return std::unexpected(
          unreadable_job(std::move(read.error()), options.job_file).in(options.job_file));
    }
    text = std::move(*read);
  }
  return wire::Submit{.job_file = std::move(path),
                      .current_directory = *here,
                      .settings = options.settings,
                      .command_line = options.command_line,
                      .job_text = std::move(text),
                      .environment = sys::environment(),
                      .line_names = std::move(line_names)};
}

ExitCode tell_what_was_added(const wire::ControlReply& reply, const std::string& run, bool json) {
  if (!json) return answer(reply.text + "\n");
  nlohmann::ordered_json added;
  added["run_dir"] = run;
  added["submission"] = reply.number.value_or(0);
  added["text"] = reply.text;
  return answer(text::readable_json(added));
}

ExitCode submit_command(const SubmitOptions& options) {
  const bool to_queue = options.run_directory.empty();
  if (to_queue) {
    if (const Result<void> outlives = check_queue_outlives_task(); !outlives) {
      return fail(outlives.error());
    }
  }
  const sys::OwnEnvironment own;
  if (to_queue) return submit_to_queue(options);
  const Result<wire::Submit> submission = submission_of(options);
  if (!submission) return fail(submission.error());
  const Result<std::string> run = find_run(options.run_directory, WhenSeveral::RefuseLive);
  if (!run) return fail(run.error());
  Result<journal::JournalReader> reader = open_run(*run);
  if (!reader && waits_in_queue(*run)) {
    return fail(
        fmt::format("{}; tasks can be added only to an active run", reader.error().message));
  }
  if (!reader) return fail(reader.error());
  const Result<std::string> socket = socket_of_run(*reader, *run);
  if (!socket) {
    return fail(fmt::format("{}; without a run, 'trainyard submit' adds to your queue",
                            socket.error().message));
  }
  // The request may take a while, and an open read transaction keeps the yard from shortening the
  // journal's log.
  if (const Result<void> rested = reader->rest(); !rested) return fail(rested.error());
  const Result<wire::ControlReply> reply =
      link::ask(*socket, *submission,
                {.run = *run, .program = "trainyard submit", .within = kAnsweredWithin});
  if (!reply) return fail(reply.error());
  if (reply->outcome != wire::Outcome::Done) return fail(reply->text);
  return tell_what_was_added(*reply, *run, options.json);
}

constexpr const char* kQueueGroup = "Queue";

constexpr const char* kSubmitExamples =
    "Examples:\n"
    "  trainyard submit sweep.yaml\n"
    "  trainyard submit --name vit --gpu-memory 10GB -- python3 train.py --lr 3e-4\n"
    "  trainyard submit --needs 45 -- 'python3 evaluate.py > scores.txt'\n"
    "  trainyard submit --snapshot sweep.yaml\n"
    "  trainyard submit more.yaml 46\n"
    "\n"
    "Without RUN: adds a run to your queue on this machine, starts the queue if needed, and\n"
    "prints the run's number. When there is room, the run starts in the present directory, with\n"
    "the present environment.\n"
    "With RUN: adds tasks to that active run; --set takes only keys that start with 'task.'.\n"
    "The run's own job file is submission 1, so the first submission to it is submission 2. The\n"
    "directories of its tasks are under <run-dir>/submissions/<number>.\n"
    "The job is checked first; a job with a mistake is not added.\n"
    "Exit codes: 0 added, 2 not added.";

/// The reason why the words cannot be combined; empty if they can.
std::string wrong_words(const SubmitOptions& options) {
  CommandWords words = options.words;
  // With --needs, --if is the required outcome of the needed runs, and no key of a command.
  if (!options.needs.empty()) words.keys.at(std::to_underlying(job::TaskKey::If)).clear();
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(options.job_file, ignored);
  return app::wrong_with_submit(
      {.job_file = options.job_file,
       .command = words.typed(),
       .run_directory = options.run_directory,
       .needs_runs = !options.needs.empty(),
       .snapshot = options.snapshot,
       .has_config = !options.config_file.empty(),
       .is_runner = is_runner(options.job_file),
       .directory_message = is_directory ? directory_as_job_file(options.job_file) : ""},
      run_facts());
}

class SubmitWords {
 public:
  SubmitWords(CLI::App& app, const std::string& command_line);
  std::optional<ExitCode> run(std::vector<std::string> command);

 private:
  CLI::App* submit_;
  SubmitOptions options_;
};

SubmitWords::SubmitWords(CLI::App& app, const std::string& command_line) {
  submit_ = app.add_subcommand("submit", "Add a job file or command to the queue, or to a run");
  submit_->group(command_groups::kRun);
  // The usage explains it.
  submit_->add_option("job", options_.job_file, "")->type_name(value_kinds::kJobFile);
  submit_
      ->add_option("run,--run-dir", options_.run_directory,
                   "Active run that gets the tasks (default: your queue)")
      ->type_name(value_kinds::kRun)
      ->check(empty_run_error);
  add_command_words(*submit_, options_.words);
  submit_
      ->add_option("--needs", options_.needs,
                   "Start after RUN succeeds (see help task-options); repeatable")
      ->group(kQueueGroup)
      ->type_name(value_kinds::kRun)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  submit_->add_flag("--snapshot", options_.snapshot, kSnapshotHelp)->group(kQueueGroup);
  add_json(*submit_, options_.json);
  add_configuration(*submit_, options_.config_file, options_.settings);
  submit_->get_option("--set")->description("Override a setting; not a key of a task; repeatable");
  submit_->footer(kSubmitExamples);
  options_.words.submits = true;
  options_.command_line = command_line;
}

std::optional<ExitCode> SubmitWords::run(std::vector<std::string> command) {
  if (!submit_->parsed()) return std::nullopt;
  options_.words.command = std::move(command);
  const std::string wrong = wrong_words(options_);
  return wrong.empty() ? submit_command(options_) : fail(wrong);
}

}  // namespace

Entry submit_entry(const std::string& command_line) {
  return entry<SubmitWords>({"submit"}, command_line);
}

}  // namespace trainyard::cli
