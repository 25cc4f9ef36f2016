#include "cli/run_words.h"

#include <expected>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "cli/checked_job.h"
#include "cli/command_job.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/find_run.h"
#include "cli/help_format.h"
#include "cli/no_start_news.h"
#include "cli/shared_words.h"
#include "cli/slurm_nodes.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "job/job_files.h"
#include "job/program_as_job.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/environment.h"
#include "sys/other_end.h"
#include "sys/terminal.h"
#include "text/shell_quote.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  trainyard run sweep.yaml\n"
    "  trainyard run sweep.yaml --dry-run\n"
    "  trainyard run sweep.yaml --resume\n"
    "  trainyard run sweep.yaml --only lr=1e-3,seed=0\n"
    "  trainyard run --gpus 1 --matrix lr=1e-3,3e-4 -- python3 train.py --lr {lr}\n"
    "\n"
    "Ctrl-C sends tasks SIGTERM, and SIGKILL after 10 s. Ctrl-C again kills at once.\n";

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Run the tasks of a job file, or a command");
  run->group(command_groups::kRun);
  // The usage explains it.
  run->add_option("job", options.job_file, "")->type_name(value_kinds::kJobFile);
  add_command_words(*run, options.words);
  const auto add_here = [](CLI::Option* option) { return option->group("This run"); };
  add_here(run->add_option("--resume", options.resume,
                           "Run failed and unfinished tasks of JOB-FILE or RUN"))
      ->type_name(value_kinds::kRun)
      ->expected(0, 1);
  add_here(run->add_flag("--rerun-changed", options.rerun_changed,
                         "Rerun finished tasks whose job-file entry changed"));
  add_here(run->add_flag("--new", options.next, "Start another run: runs/<name>-2, -3, ..."));
  add_here(run->add_option("--run-dir", options.run_directory,
                           "Default: runs/<name> next to JOB-FILE, or here"))
      ->type_name(value_kinds::kRun);
  add_here(run->add_option("--only", options.only,
                           "Run these tasks and the groups they need; repeatable"))
      ->type_name(value_kinds::kPattern)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_here(run->add_flag("--detach,-d", options.detach,
                         "Run in background; log: <run-dir>/trainyard.run.log"));
  add_here(run->add_flag("--survive", options.survives,
                         "Keep tasks for 1 min after kill -9, for --resume"));
  add_here(run->add_flag("--snapshot", options.snapshot, kSnapshotHelp));
  add_here(run->add_flag("--until-stdin-closes", options.until_stdin_closes,
                         "Stop the run when standard input closes"));
  const auto add_machines = [](CLI::Option* option) {
    return option->group(option_groups::kMachines);
  };
  add_machines(run->add_option("--on", options.machines,
                               "Hosts: lab1,me@lab2, local (this one), slurm (nodes)"))
      ->type_name(value_kinds::kHosts)
      ->check(value_of_setting(settings::Setting::Machines));
  add_machines(
      run->add_option("--slurm", options.slurm, "Request Slurm nodes with these salloc options"))
      ->type_name(value_kinds::kOptions)
      ->check(value_of_setting(settings::Setting::SlurmOptions));
  add_machines(run->add_option("--allocations", options.allocations,
                               "Number of concurrent Slurm allocations (default: 1)"))
      ->type_name(value_kinds::kNumber)
      ->check(value_of_setting(settings::Setting::SlurmAllocations));
  run->add_flag("--dry-run", options.dry_run, "Check the job file and show what would run")
      ->group(option_groups::kOutput);
  run->add_flag("--json", options.json, "Print the results as JSON")->group(option_groups::kOutput);
  add_configuration(*run, options.config_file, options.settings);
  run->footer(std::string(kRunExamples) + kExitCodes);
  return run;
}

CLI::App* add_post_not_started(CLI::App& app, RunOptions& options, std::string& reason) {
  CLI::App* post = app.add_subcommand(kPostNotStarted, "")->group("");
  post->add_option("--reason", reason)->required();
  post->add_option("job", options.job_file)->required();
  post->add_option("--run-dir", options.run_directory)->required();
  add_configuration(*post, options.config_file, options.settings);
  return post;
}

/// The options that cannot be combined, for people; empty if there are none.
std::string wrong_with_run(const RunOptions& options) {
  if (options.resumes && options.next) {
    return "--resume and --new cannot be combined: --resume continues a run, --new starts another "
           "one";
  }
  if (std::string wrong = wrong_with_command(options.words, options.job_file, "run");
      !wrong.empty()) {
    return wrong;
  }
  if (options.words.is_command() && options.resumes) {
    std::string run = options.resume.empty() ? options.run_directory : options.resume;
    if (run.empty() && !options.words.name.empty()) run = "runs/" + options.words.name;
    return fmt::format(
        "--resume cannot be used with a command: 'trainyard run --resume {}' continues a run of a "
        "command",
        run.empty() ? "<run-dir>" : text::shell_word(run));
  }
  if (options.words.is_command() && (options.next || !options.only.empty())) {
    return "--new and --only cannot be used with a command: they need a job file";
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(options.job_file, ignored)) {
    if (!holds_run(options.job_file)) return directory_as_job_file(options.job_file);
    return fmt::format(
        "'{}' is a directory, not a job file; 'trainyard run --resume {}' continues the run in it",
        options.job_file, text::shell_word(options.job_file));
  }
  if (!options.only.empty() && options.resumes) {
    std::string retry =
        "trainyard retry " +
        text::shell_word(options.resume.empty() ? options.job_file : options.resume);
    for (const std::string& pattern : options.only) retry += " " + text::shell_word(pattern);
    return fmt::format(
        "--only cannot be combined with --resume; to run tasks of a run that has started, use '{}'",
        retry);
  }
  if (options.snapshot && options.resumes) {
    return "--snapshot cannot be combined with --resume: a resumed run keeps its copy of the code, "
           "or uses the work tree";
  }
  if (options.rerun_changed && !options.resumes) {
    return "--rerun-changed needs --resume: a new run runs all tasks";
  }
  if (!options.resume.empty() && !options.run_directory.empty()) {
    return "--run-dir cannot be combined with '--resume <run-dir>'";
  }
  if (options.detach && options.until_stdin_closes) {
    return "--detach and --until-stdin-closes cannot be combined: --detach closes standard input";
  }
  if (options.until_stdin_closes && !sys::has_other_end(sys::kStandardInput)) {
    return "--until-stdin-closes needs a pipe or a socket as standard input";
  }
  if (!options.job_file.empty() || !options.resume.empty()) return {};
  if (options.words.is_command()) return {};
  if (options.resumes && !options.run_directory.empty()) return {};
  return options.resumes ? "no run given: use 'trainyard run sweep.yaml --resume' or 'trainyard "
                           "run --resume <run-dir>'"
                         : "no job file given: use 'trainyard run sweep.yaml', 'trainyard run -- "
                           "python3 train.py' or 'trainyard run sweep.yaml --resume'";
}

/// Sets the text of the job file, and of the files that it names, to the submitted ones, if the
/// queue starts this run.
Result<void> take_from_queue(RunOptions& options) {
  if (!sys::variable(kFromQueue)) return {};
  // Its tasks are not of the queue.
  sys::set_variable(std::string(kFromQueue) + "=");
  options.queued = true;
  const std::string& directory = options.resume.empty() ? options.run_directory : options.resume;
  Result<job::JobFiles> files = kept_files_of(directory);
  if (!files) return std::unexpected(std::move(files.error()));
  options.job_files = std::move(*files);
  const std::string kept = run::kept_job_path(directory);
  if (kept == options.job_file) return {};
  if (Result<std::string> text = text::read_text_file(kept)) options.job_text = std::move(*text);
  return {};
}

}  // namespace

std::string wrong_with_command(const CommandWords& words, const std::string& job_file,
                               std::string_view command) {
  if (words.is_command() && !job_file.empty()) {
    return fmt::format(
        "the job file '{}' and a command cannot be combined; leave out one of them{}", job_file,
        job::is_named_as_job(job_file) ? "" : ", or put a value with blanks in quotes");
  }
  const std::string option = words.first_option();
  if (words.is_command() || option.empty()) return {};
  if (!job_file.empty() && !job::is_named_as_job(job_file)) {
    const char* const program = job_file.c_str();
    return fmt::format("{0} needs a command after '--', as in 'trainyard {1} {0} ... -- {2}'",
                       option, command, as_command(std::span(&program, 1)));
  }
  return fmt::format(
      "{0} needs a command after '--', as in 'trainyard {1} {0} ... -- python3 train.py'; in a job "
      "file it is a key",
      option, command);
}

RunWords::RunWords(CLI::App& app, const std::string& command_line) {
  run_ = add_run(app, options_);
  post_not_started_ = add_post_not_started(app, options_, reason_);
  options_.command_line = command_line;
}

std::optional<ExitCode> RunWords::run(std::vector<std::string> command) {
  if (post_not_started_->parsed()) {
    if (const Result<void> taken = take_from_queue(options_); !taken) return fail(taken.error());
    return post_not_started(options_, reason_);
  }
  if (!run_->parsed()) return std::nullopt;
  options_.words.command = std::move(command);
  if (run_->count("--slurm") > 0) {
    if (run_->count("--on") > 0 && !options_.machines.contains(kSlurm)) {
      return fail(fmt::format(
          "--slurm needs the host 'slurm', and '--on {}' does not contain it; use '--on {},slurm'",
          options_.machines, options_.machines));
    }
    options_.settings.push_back("slurm.options=" + options_.slurm);
    if (run_->count("--on") == 0) options_.machines = kSlurm;
  }
  if (!options_.machines.empty()) {
    options_.settings.push_back("machines=" + options_.machines);
  }
  if (options_.survives) options_.settings.emplace_back("agent.local=true");
  if (run_->count("--allocations") > 0) {
    options_.settings.push_back("slurm.allocations=" + options_.allocations);
  }
  options_.resumes = run_->count("--resume") > 0;
  if (const Result<void> taken = take_from_queue(options_); !taken) return fail(taken.error());
  const std::string wrong = wrong_with_run(options_);
  return wrong.empty() ? run_command(options_) : fail(wrong);
}

}  // namespace trainyard::cli
