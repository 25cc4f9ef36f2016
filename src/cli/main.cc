// The command line: reads it, calls one function, says its exit code.
#include <cstddef>
#include <deque>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/client_words.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/completion_words.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/drain_words.h"
#include "cli/exit_code.h"
#include "cli/learned_words.h"
#include "cli/manual_page.h"
#include "cli/ranks_words.h"
#include "cli/results_words.h"
#include "cli/retry_words.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "cli/wish_words.h"
#include "model/rank_share.h"
#include "sys/descriptor.h"
#include "sys/other_end.h"
#include "sys/terminal.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kHelp = "help";

/// What may be said to every command that reads the configuration.
void add_configuration(CLI::App& command, std::string& file, std::vector<std::string>& settings) {
  command.add_option("--config", file, "Configuration file (default: ./trainyard.yaml)")
      ->type_name(value_kinds::kFile);
  command.add_option("--set", settings, "A setting, as in --set scheduler.max-process=4")
      ->type_name(value_kinds::kSetting)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

/// The one way to say which run is meant.
void add_run_name(CLI::App& command, std::string& run) {
  command
      .add_option("run,--run-dir", run,
                  "Which run: its number, its name, its directory, or its job file\n"
                  "(default: the latest under ./runs, one at work first)")
      ->type_name(value_kinds::kRun);
}

struct CommandLine {
  RunOptions run;
  StatusOptions status;
  LogsOptions logs;
  KillOptions kill;
  SubmitOptions submit;
  DevicesOptions devices;
  PlanOptions plan;
  ConfigOptions config;
  CleanWords clean;
};

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Run the tasks of a job file");
  run->add_option("job", options.job_file, "The job file (YAML)")->type_name(value_kinds::kJobFile);
  run->add_option("--run-dir", options.run_directory,
                  "Where logs and results go (default: the job file's, else runs/<name>)")
      ->type_name(value_kinds::kRun);
  run->add_option("--resume", options.resume,
                  "Go on with the last run of the job file, or with the one in this directory:\n"
                  "finished tasks are kept")
      ->type_name(value_kinds::kRun)
      ->expected(0, 1);
  run->add_flag("--new", options.next,
                "Start another run beside those that are there: in runs/<name>-2, -3, ...");
  run->add_option("--only", options.only,
                  "Run these tasks alone, and the groups that they need: lr=1e-3,seed=0, 'train/*'")
      ->type_name(value_kinds::kPattern)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  run->add_flag("--rerun-changed", options.rerun_changed,
                "With --resume: also tasks that had finished before the job file was edited");
  run->add_flag(
      "--until-stdin-closes", options.until_stdin_closes,
      "Stay at work when all tasks have ended, for what is submitted next, until standard\n"
      "input, a pipe, is closed; what has not ended then is ended as by Ctrl-C");
  run->add_flag("--dry-run", options.dry_run, "Show what would be run, and run nothing");
  run->add_flag("--json", options.json, "Print the results as JSON");
  add_configuration(*run, options.config_file, options.settings);
  run->footer(
      "Examples:\n"
      "  trainyard run sweep.yaml\n"
      "  trainyard run sweep.yaml --dry-run\n"
      "  trainyard run sweep.yaml --run-dir runs/second --set scheduler.max-process=4\n"
      "  trainyard run sweep.yaml --resume\n"
      "  trainyard run sweep.yaml --new\n"
      "  trainyard run sweep.yaml --only lr=1e-3,seed=0\n"
      "  trainyard run --resume runs/sweep moved.yaml --set scheduler.max-process=8\n"
      "\n"
      "--resume takes the job file, --config and --set of the last execution. Another job file or\n"
      "--config takes their place; --set overrides the settings before, key by key.\n"
      "Ctrl-C ends the run: running tasks get TERM (before it the signal that they ask for), then\n"
      "KILL; a second Ctrl-C ends them at once.\n" +
      std::string(kExitCodes));
  return run;
}

/// What does not go together, for people; empty when all does.
std::string wrong_with_run(const RunOptions& options) {
  if (options.resumes && options.next) {
    return "--resume goes on with a run and --new starts another one: say one of them";
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(options.job_file, ignored)) {
    return fmt::format(
        "'{}' is a directory and no job file: 'trainyard run --resume {}' goes on "
        "with the run in it",
        options.job_file, text::shell_word(options.job_file));
  }
  if (!options.only.empty() && options.resumes) {
    return "--only begins a run with some of its tasks: of one that has begun 'trainyard retry' "
           "takes them";
  }
  if (options.rerun_changed && !options.resumes) {
    return "--rerun-changed goes with --resume: a new run runs all tasks";
  }
  if (!options.resume.empty() && !options.run_directory.empty()) {
    return "--resume names the run directory already: leave --run-dir out";
  }
  if (options.until_stdin_closes && !sys::has_other_end(sys::kStandardInput)) {
    return "--until-stdin-closes is for a program that holds the other end of a pipe, and standard "
           "input is none";
  }
  if (!options.job_file.empty() || !options.resume.empty()) return {};
  if (options.resumes && !options.run_directory.empty()) return {};
  return options.resumes
             ? "which run? 'trainyard run sweep.yaml --resume', or 'trainyard run --resume "
               "<run-dir>'"
             : "which job file? 'trainyard run sweep.yaml', or 'trainyard run sweep.yaml --resume'";
}

ExitCode checked_run(const RunOptions& options) {
  const std::string wrong = wrong_with_run(options);
  return wrong.empty() ? run_command(options) : fail(wrong);
}

CLI::App* add_status(CLI::App& app, StatusOptions& options) {
  CLI::App* status = app.add_subcommand("status", "Show what a run is doing, or has done");
  add_run_name(*status, options.run_directory);
  status->add_flag("--json", options.json, "For programs");
  status->add_flag("--watch,-w", options.watch, "Show it again each second until the run ends");
  status->add_flag("--all,-a", options.all, "Every task, not only those that run or failed");
  status->footer(
      "Examples:\n"
      "  trainyard status\n"
      "  trainyard status 46 --watch\n"
      "  trainyard status ~/experiments/sweep.yaml\n"
      "  trainyard status runs/sweep --json --all");
  return status;
}

/// What is wrong with a number of an attempt, for people; empty when nothing is.
std::string wrong_with_attempt(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const bool some = word.find_first_not_of('0') != std::string::npos;
  if (digits && some && word.size() <= 6) return {};
  return fmt::format("'{}' is no attempt: they count 1, 2, 3, ...", word);
}

CLI::App* add_logs(CLI::App& app, LogsOptions& options) {
  CLI::App* logs = app.add_subcommand("logs", "Show what tasks wrote");
  add_selection(*logs, options.words, options.run_directory);
  logs->add_option("--attempt", options.attempt,
                   "The attempt whose logs are shown (default: the last)")
      ->type_name(value_kinds::kNumber)
      ->check(wrong_with_attempt);
  logs->add_flag("--follow,-f", options.follow, "Go on until the task ends");
  logs->add_flag("--stdout", options.only_stdout, "Standard output alone (with --stderr: both)");
  logs->add_flag("--stderr", options.only_stderr, "Standard error alone");
  logs->add_option("--rank", options.rank, "Of a task with ranks, the log of this one alone")
      ->type_name(value_kinds::kNumber)
      ->check(CLI::Range(0, model::kRanksMax));
  logs->footer(
      "Progress bars that draw over themselves are folded to what is left of them.\n"
      "Examples:\n"
      "  trainyard logs lr=0.1,seed=2\n"
      "  trainyard logs train/lr=0.1,seed=2 -f\n"
      "  trainyard logs 46 lr=0.1,seed=2\n"
      "  trainyard logs 46 :failed\n"
      "  trainyard logs lr=0.1,seed=2 --attempt 1 --stderr\n"
      "  trainyard logs lr=0.1,seed=2 --rank 3");
  return logs;
}

CLI::App* add_kill(CLI::App& app, KillOptions& options) {
  CLI::App* kill = app.add_subcommand("kill", "End tasks of a run; the others go on");
  add_selection(*kill, options.words, options.run_directory);
  kill->footer(
      "Examples:\n"
      "  trainyard kill train/lr=0.1,seed=2\n"
      "  trainyard kill 46/lr=0.1\n"
      "  trainyard kill 46 'seed=*' :waiting");
  return kill;
}

CLI::App* add_submit(CLI::App& app, SubmitOptions& options) {
  CLI::App* submit = app.add_subcommand("submit", "Add a job file to a run that is at work");
  submit->add_option("job", options.job_file, "The job file (YAML)")
      ->type_name(value_kinds::kJobFile)
      ->required();
  add_run_name(*submit, options.run_directory);
  submit->add_option("--set", options.settings, "A setting for its tasks: --set task.<key>=<value>")
      ->type_name(value_kinds::kTaskSetting)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  submit->add_flag("--json", options.json, "For programs");
  submit->footer(
      "Examples:\n"
      "  trainyard submit more.yaml\n"
      "  trainyard submit more.yaml runs/sweep\n"
      "\n"
      "It is checked first, and nothing changes where it has a mistake. What is answered is "
      "written\n"
      "down: 'trainyard run --resume' goes on with it. Its tasks find the environment of this "
      "command,\n"
      "have their directories under <run-dir>/submissions/<number>, and may need groups of the "
      "run.\n"
      "Exit codes: 0 added, 2 not added.");
  return submit;
}

CLI::App* add_clean(CLI::App& app, CleanWords& words) {
  CLI::App* clean = app.add_subcommand("clean", "Delete what old runs have left behind");
  clean->add_option("run", words.runs, "Which runs, as of 'status' (default: those here)")
      ->type_name(value_kinds::kRun);
  clean->add_option("--older", words.older, "Those that ended so long ago: 30d")
      ->type_name(value_kinds::kTime);
  clean->add_option("--keep", words.keep, "What stays of them, with their journals and reports")
      ->type_name("results|logs")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  clean->add_flag("--dry-run", words.dry_run, "Show what would be deleted, and delete nothing");
  clean->add_flag("--json", words.json, "For programs");
  clean->footer(
      "Examples:\n"
      "  trainyard clean --older 30d --dry-run\n"
      "  trainyard clean --older 30d --keep results\n"
      "  trainyard clean 46 runs/first\n"
      "  trainyard clean 46 --keep results,logs\n"
      "\n"
      "What the run's journal knows is deleted: directories of tasks, reports, the journal. What\n"
      "else lies there stays, and so does a run that is at work. Nothing is asked.\n"
      "Exit codes: 0 done, 1 something could not be deleted, 2 nothing was done.");
  return clean;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "Show how long a job would take, and run nothing");
  plan->add_option("job", options.job_file, "The job file (YAML)")
      ->type_name(value_kinds::kJobFile)
      ->required();
  plan->add_option("--gpus", options.gpus, "On such GPUs: 4x24GB, 80GB, 0; several are compared")
      ->type_name(value_kinds::kCards);
  plan->add_option("--memory", options.memory, "With so much memory: 64GB")
      ->type_name(value_kinds::kSize);
  plan->add_option("--cpus", options.cpus, "With so many CPUs: 16")
      ->type_name(value_kinds::kNumber);
  plan->add_option("--html", options.html, "Write a page with a timeline there")
      ->type_name(value_kinds::kFile);
  plan->add_flag("--json", options.json, "For programs");
  add_configuration(*plan, options.config_file, options.settings);
  plan->footer(
      "Examples:\n"
      "  trainyard plan sweep.yaml\n"
      "  trainyard plan sweep.yaml --gpus 4x24GB --memory 64GB --cpus 16 --html plan.html\n"
      "  trainyard plan sweep.yaml --gpus 1x24GB 2x24GB 1x80GB\n"
      "\n"
      "The real scheduler plays the run through. How long tasks take is what the job file says\n"
      "('duration'), or what earlier runs have taught.");
  return plan;
}

CLI::App* add_devices(CLI::App& app, DevicesOptions& options) {
  CLI::App* devices =
      app.add_subcommand("devices", "Show the GPUs here, what is on them, and what is reserved");
  add_run_name(*devices, options.run_directory);
  devices->add_flag("--json", options.json, "For programs");
  devices->footer(
      "Examples:\n"
      "  trainyard devices\n"
      "  trainyard devices runs/sweep --json\n"
      "\n"
      "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES say which may be used.");
  return devices;
}

CLI::App* add_doctor(CLI::App& app, ConfigOptions& options) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "Say what of this machine tasks may have, and why");
  add_configuration(*doctor, options.config_file, options.settings);
  doctor->footer(
      "Examples:\n"
      "  trainyard doctor\n"
      "  trainyard doctor --set remain-limit.memory=8GB\n"
      "\n"
      "Exit codes: 0 shown, 1 standard output cannot be written, 2 the configuration is wrong.");
  return doctor;
}

/// Returns `config init`; the other one is `config show`.
CLI::App* add_config(CLI::App& app, ConfigOptions& options) {
  CLI::App* config = app.add_subcommand("config", "Show or make a configuration");
  config->require_subcommand(1);
  config->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config init");
  CLI::App* show = config->add_subcommand("show", "What is in force, and where it came from");
  show->add_option("job", options.job_file, "A job file whose 'config:' counts too")
      ->type_name(value_kinds::kJobFile);
  show->add_flag("--json", options.json, "For programs");
  add_configuration(*show, options.config_file, options.settings);
  show->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config show sweep.yaml --set scheduler.max-process=4 --json");
  CLI::App* init = config->add_subcommand("init", "Write ./trainyard.yaml with the defaults");
  init->add_flag("--force", options.force, "Write over one that is there");
  init->footer(
      "Examples:\n"
      "  trainyard config init\n"
      "  trainyard config init --force");
  return init;
}

/// What a person is not shown: `manual` prints the page for man(1).
CLI::App* add_manual(CLI::App& app, std::string& date) {
  CLI::App* manual = app.add_subcommand("manual", "")->group("");
  manual->add_option("date", date);
  return manual;
}

/// `help run` is `run --help`, and `help` alone `--help`: what people type first. False: it is
/// something else.
bool move_help_to_the_end(std::vector<const char*>& words) {
  if (words.size() < 2 || std::string_view(words[1]) != kHelp) return false;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return true;
}

ExitCode main(int argc, const char* const* argv) {
  CLI::App app{"Runs many training tasks on the machine you have."};
  app.name("trainyard");
  app.set_version_flag("--version", kProgram);
  app.require_subcommand(1);
  app.footer("'trainyard help <command>' says more. Start with: trainyard run sweep.yaml\n" +
             std::string(kExitCodes));

  CommandLine line;
  line.run.command_line = shown_command_line({argv, static_cast<std::size_t>(argc)});
  line.submit.command_line = line.run.command_line;
  const CLI::App* run = add_run(app, line.run);
  const CLI::App* status = add_status(app, line.status);
  const CLI::App* logs = add_logs(app, line.logs);
  const CLI::App* kill = add_kill(app, line.kill);
  const CLI::App* submit = add_submit(app, line.submit);
  const CLI::App* devices = add_devices(app, line.devices);
  const CLI::App* plan = add_plan(app, line.plan);
  const CLI::App* clean = add_clean(app, line.clean);
  LearnedWords learned(app);
  DrainWords drain(app);
  RetryWords retry(app, line.run.command_line);
  WishWords wishes(app);
  ResultsWords results(app);
  ClientWords client(app);
  const RanksWords ranks(app);
  const CLI::App* doctor = add_doctor(app, line.config);
  const CLI::App* init = add_config(app, line.config);
  const CompletionWords completion(app);
  app.add_subcommand(std::string(kHelp), "Show how a command is used: help run")
      ->footer(
          "Examples:\n"
          "  trainyard help run\n"
          "  trainyard help client progress");
  std::string date;
  const CLI::App* manual = add_manual(app, date);
  if (const std::optional<ExitCode> asked =
          answer_shell(app, {argv, static_cast<std::size_t>(argc)})) {
    return *asked;
  }

  std::vector<const char*> typed(argv, argv + argc);
  if (move_help_to_the_end(typed)) {
    // CLI11 shows the help of all rather than say that it knows no such command.
    const std::string unknown = unknown_word(app, typed);
    if (!unknown.empty()) return fail(unknown);
  }
  try {
    std::string sort;
    std::deque<std::string> kept;
    const std::vector<const char*> words = with_kept_brackets(
        app, ResultsWords::with_joined_sort(RanksWords::without_separator(typed), sort), kept);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream help;
      app.exit(error, help, help);
      return answer(help.str());
    }
    const std::string unknown = unknown_word(app, typed);
    return fail(unknown.empty()
                    ? fmt::format("{}\n'trainyard --help' shows how it is used", error.what())
                    : unknown);
  }
  line.run.resumes = run->count("--resume") > 0;
  if (run->parsed()) return checked_run(line.run);
  if (status->parsed()) return status_command(line.status);
  if (logs->parsed()) return logs_command(line.logs);
  if (kill->parsed()) return kill_command(line.kill);
  if (submit->parsed()) return submit_command(line.submit);
  if (devices->parsed()) return devices_command(line.devices);
  if (plan->parsed()) return plan_command(line.plan);
  if (clean->parsed()) return clean_command(line.clean);
  if (doctor->parsed()) return doctor_command(line.config);
  if (const std::optional<ExitCode> done = learned.run()) return *done;
  if (const std::optional<ExitCode> done = drain.run()) return *done;
  if (const std::optional<ExitCode> done = retry.run()) return *done;
  if (const std::optional<ExitCode> done = wishes.run()) return *done;
  if (const std::optional<ExitCode> done = results.run()) return *done;
  if (const std::optional<ExitCode> done = client.run()) return *done;
  if (const std::optional<ExitCode> done = completion.run()) return *done;
  if (manual->parsed()) return answer(manual_page(app, date));
  // It has the exit code of the command.
  if (const std::optional<int> code = ranks.run()) return static_cast<ExitCode>(*code);
  return init->parsed() ? config_init_command(line.config) : config_show_command(line.config);
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  trainyard::sys::open_standard_descriptors();
  return static_cast<int>(trainyard::cli::main(argc, argv));
}
