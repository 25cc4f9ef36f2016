// `trainyard submit`: into the queue, or into a run that is named, by asking its yard.
#include <expected>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/run_request.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/command_job.h"
#include "cli/command_name.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queue_start.h"
#include "cli/queue_submit.h"
#include "cli/queued_runs.h"
#include "cli/shared_words.h"
#include "cli/typed_mistakes.h"
#include "cli/value_kinds.h"
#include "job/program_as_job.h"
#include "job/task_keys.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "text/readable_json.h"
#include "text/shell_quote.h"
#include "text/text_file.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

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
    Result<std::string> read = text::read_text_file(path);
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
  // It may take a while, and the yard cannot make its log short under a view that is held.
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
    "prints the run's number. The run starts in this directory and environment when there is\n"
    "room.\n"
    "With RUN: adds tasks to that active run. Its own job file is submission 1, so the first\n"
    "submission to it is submission 2. The directories of the tasks are under\n"
    "<run-dir>/submissions/<number>. There, --set takes only keys that start with 'task.'.\n"
    "The job is checked first; a job with a mistake is not added.\n"
    "Exit codes: 0 added, 2 not added.";

/// The options that cannot be combined, for people; empty if there are none.
std::string wrong_with_submit(const SubmitOptions& options) {
  CommandWords words = options.words;
  // It says then what must have become of the needed runs, whatever the submission runs.
  if (!options.needs.empty()) words.keys.at(std::to_underlying(job::TaskKey::If)).clear();
  if (std::string wrong = app::wrong_with_command(words.typed(), options.job_file, "submit");
      !wrong.empty()) {
    return wrong;
  }
  if (words.typed().has_condition) return "--if has no effect without --needs RUN";
  if (options.job_file.empty() && !options.words.is_command()) {
    return "no job file or command given: use 'trainyard submit sweep.yaml' or 'trainyard submit "
           "-- python3 train.py'";
  }
  std::error_code ignored;
  const bool is_swapped = !options.job_file.empty() && !job::is_named_as_job(options.job_file) &&
                          job::is_named_as_job(options.run_directory) &&
                          !std::filesystem::is_regular_file(options.job_file, ignored);
  if (is_swapped) {
    return fmt::format("the job file comes first: trainyard submit {} {}",
                       text::shell_word(options.run_directory), text::shell_word(options.job_file));
  }
  if (job::is_named_as_job(options.job_file) && job::is_named_as_job(options.run_directory) &&
      !std::filesystem::is_directory(options.run_directory, ignored)) {
    return fmt::format(
        "unexpected argument '{}'; {}", options.run_directory,
        one_job_at_a_time({options.job_file, options.run_directory}, "trainyard submit"));
  }
  // A run of the program has its name, and would be offered to be resumed.
  if (!options.run_directory.empty() && is_runner(options.job_file) &&
      !std::filesystem::exists(options.job_file, ignored)) {
    return fmt::format(
        "unexpected argument '{}'; a command goes after '--': trainyard submit -- {} {}",
        options.run_directory, text::shell_word(options.job_file),
        text::shell_word(options.run_directory));
  }
  if (std::filesystem::is_directory(options.job_file, ignored)) {
    return directory_as_job_file(options.job_file);
  }
  if (!options.run_directory.empty() && !options.needs.empty()) {
    return "--needs cannot be used when adding to a run; use 'needs' in the job file";
  }
  if (!options.run_directory.empty() && options.snapshot) {
    return "--snapshot cannot be used when adding to a run: its tasks use the work tree";
  }
  if (!options.run_directory.empty() && !options.config_file.empty()) {
    return "--config cannot be used when adding to a run, which has its own configuration";
  }
  return {};
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
  const std::string wrong = wrong_with_submit(options_);
  return wrong.empty() ? submit_command(options_) : fail(wrong);
}

}  // namespace

Entry submit_entry(const std::string& command_line) {
  return entry<SubmitWords>({"submit"}, command_line);
}

}  // namespace trainyard::cli
