// `trainyard run` on the command line.
#include <expected>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/run_request.h"
#include "base/result.h"
#include "cli/checked_job.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/run_machines.h"
#include "cli/shared_words.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "queue/queue_server.h"
#include "settings/configuration.h"
#include "sys/other_end.h"
#include "sys/terminal.h"

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
    "Ctrl-C: tasks get SIGTERM, SIGKILL after 10 s or if repeated. SIGHUP is ignored.\n";

/// The options of `run` that are settings by another name, as typed.
struct TypedMachines {
  std::string on;
  std::string slurm;      ///< Options of salloc.
  bool survives = false;  ///< Tasks run on when their run is killed.
};

CLI::App* add_run(CLI::App& app, app::TypedRun& typed, TypedMachines& machines,
                  RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Run the tasks of a job file, or a command");
  run->group(command_groups::kRun);
  // The usage explains it.
  run->add_option("job", typed.job_file, "")->type_name(value_kinds::kJobFile);
  add_command_words(*run, options.words);
  const auto add_here = [](CLI::Option* option) { return option->group("This run"); };
  add_here(run->add_option("--resume", typed.resume,
                           "Run failed and unfinished tasks of JOB-FILE or RUN"))
      ->type_name(value_kinds::kRun)
      ->expected(0, 1);
  add_here(run->add_flag("--rerun-changed", typed.choices.reruns_changed,
                         "Rerun finished tasks whose job-file entry changed"));
  add_here(run->add_flag("--new", typed.is_new, "Start another run: runs/<name>-2, -3, ..."));
  add_here(run->add_option("--run-dir", typed.run_directory,
                           "Directory (default: runs/<name> next to JOB-FILE)"))
      ->type_name(value_kinds::kRun);
  add_here(run->add_option("--only", typed.choices.only,
                           "Run these tasks and the groups they need; repeatable"))
      ->type_name(value_kinds::kPattern)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_here(run->add_flag("--detach,-d", typed.choices.detaches,
                         "Run in background; log: <run-dir>/trainyard.run.log"));
  add_here(run->add_flag("--survive", machines.survives,
                         "Keep tasks running 1m (agent.lease) after kill -9"));
  add_here(run->add_flag("--snapshot", typed.choices.snapshot, kSnapshotHelp));
  add_here(run->add_flag("--until-stdin-closes", typed.choices.until_input_closes,
                         "Stop the run when standard input closes"));
  const auto add_machines = [](CLI::Option* option) {
    return option->group(option_groups::kMachines);
  };
  add_machines(
      run->add_option("--on", machines.on, "Hosts: lab1,me@lab2, local (this one), slurm (nodes)"))
      ->type_name(value_kinds::kHosts)
      ->check(value_of_setting(settings::Setting::Machines));
  add_machines(
      run->add_option("--slurm", machines.slurm, "Request Slurm nodes with these salloc options"))
      ->type_name(value_kinds::kOptions)
      ->check(value_of_setting(settings::Setting::SlurmOptions));
  add_machines(run->add_option("--allocations", options.allocations,
                               "Number of concurrent Slurm allocations (default: 1)"))
      ->type_name(value_kinds::kNumber)
      ->check(value_of_setting(settings::Setting::SlurmAllocations));
  run->add_flag("--dry-run", options.dry_run, "Check the job file and show what would run")
      ->group(option_groups::kOutput);
  run->add_flag("--json", options.json, "Print what 'status --json' prints, when the run ends")
      ->group(option_groups::kOutput);
  add_configuration(*run, options.config_file, options.settings);
  run->footer(std::string(kRunExamples) + kExitCodes);
  return run;
}

CLI::App* add_post_not_started(CLI::App& app, app::TypedRun& typed, RunOptions& options,
                               std::string& reason) {
  CLI::App* post = app.add_subcommand(queue::kPostNotStarted, "")->group("");
  post->add_option("--reason", reason)->required();
  post->add_option("job", typed.job_file)->required();
  post->add_option("--run-dir", typed.run_directory)->required();
  add_configuration(*post, options.config_file, options.settings);
  return post;
}

app::RunSurroundings surroundings_of(const app::TypedRun& typed) {
  app::RunSurroundings found{.job_file = run_facts().kind_of(typed.job_file),
                             .resume = run_facts().kind_of(typed.resume)};
  if (found.job_file == app::PathKind::Directory) {
    found.directory_message = directory_as_job_file(typed.job_file);
  }
  found.input_can_close = sys::has_other_end(sys::kStandardInput);
  return found;
}

/// Adds the settings that the typed options stand for. An error for --slurm where --on excludes it.
Result<void> add_machine_settings(const CLI::App& run, const TypedMachines& typed,
                                  RunOptions& options) {
  std::string machines = typed.on;
  if (run.count("--slurm") > 0) {
    if (run.count("--on") > 0 && !machines.contains(kSlurm)) {
      return std::unexpected(Error{fmt::format(
          "--slurm needs the host 'slurm', and '--on {}' does not contain it; use '--on {},slurm'",
          machines, machines)});
    }
    options.settings.push_back("slurm.options=" + typed.slurm);
    if (run.count("--on") == 0) machines = kSlurm;
  }
  if (!machines.empty()) options.settings.push_back("machines=" + machines);
  if (typed.survives) options.settings.emplace_back("agent.local=true");
  if (run.count("--allocations") > 0) {
    options.settings.push_back("slurm.allocations=" + options.allocations);
  }
  return {};
}

class RunWords {
 public:
  RunWords(CLI::App& app, const std::string& command_line);
  std::optional<ExitCode> run(std::vector<std::string> command);

 private:
  CLI::App* run_;
  CLI::App* post_not_started_;
  app::TypedRun typed_;
  TypedMachines machines_;
  RunOptions options_;
  std::string reason_;  ///< The reason why a submission did not start.
};

RunWords::RunWords(CLI::App& app, const std::string& command_line) {
  run_ = add_run(app, typed_, machines_, options_);
  post_not_started_ = add_post_not_started(app, typed_, options_, reason_);
  options_.command_line = command_line;
}

std::optional<ExitCode> RunWords::run(std::vector<std::string> command) {
  if (post_not_started_->parsed()) {
    options_.request = {.job = app::JobFile{typed_.job_file},
                        .place = app::NewRun{.directory = typed_.run_directory}};
    if (const Result<void> taken = take_from_queue(options_); !taken) return fail(taken.error());
    return post_not_started(options_, reason_);
  }
  if (!run_->parsed()) return std::nullopt;
  options_.words.command = std::move(command);
  if (const Result<void> added = add_machine_settings(*run_, machines_, options_); !added) {
    return fail(added.error());
  }
  typed_.command = options_.words.typed();
  typed_.resumes = run_->count("--resume") > 0;
  typed_.prints_json = options_.json;
  Result<app::RunRequest> request = app::request_run(typed_, surroundings_of(typed_));
  if (!request) return fail(request.error());
  options_.request = std::move(*request);
  if (const Result<void> taken = take_from_queue(options_); !taken) {
    return fail(taken.error(), taken.error().of_machine ? ExitCode::NotDone : ExitCode::Usage);
  }
  return run_command(options_);
}

}  // namespace

Entry run_entry(const std::string& command_line) {
  return entry<RunWords>({"run", queue::kPostNotStarted}, command_line);
}

}  // namespace trainyard::cli
