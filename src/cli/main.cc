// The command line: reads it, calls one function, says its exit code.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/typed_mistakes.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "cli/with_command.h"
#include "model/rank_share.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/this_process.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kHelp = "help";

CLI::App* add_status(CLI::App& app, StatusOptions& options) {
  CLI::App* status = app.add_subcommand("status", "Show the state of a run and its tasks");
  status->group(command_groups::kWatch);
  add_selection(*status, options.words, options.run_directory);
  const auto in_output = [](CLI::Option* option) { option->group(option_groups::kOutput); };
  in_output(
      status->add_flag("--watch,-w", options.watch, "Refresh each second until the run ends"));
  in_output(status->add_flag("--all,-a", options.all,
                             "List all tasks of the run, not only running and failed ones"));
  add_json(*status, options.json);
  status->footer(std::string("Examples:\n"
                             "  trainyard status\n"
                             "  trainyard status 46 --watch\n"
                             "  trainyard status 46 :failed lr=1e-3\n"
                             "  trainyard status ~/experiments/sweep.yaml\n"
                             "  trainyard status runs/sweep --json --all\n"
                             "\n") +
                 kSelectionHelp);
  return status;
}

/// The message for a wrong attempt number; empty for a right one.
std::string wrong_with_attempt(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const bool some = word.find_first_not_of('0') != std::string::npos;
  if (digits && some && word.size() <= 6) return {};
  return fmt::format("'{}' is not an attempt number (1, 2, 3, ...)", word);
}

CLI::App* add_logs(CLI::App& app, LogsOptions& options) {
  CLI::App* logs = app.add_subcommand("logs", "Show the output of tasks");
  logs->group(command_groups::kWatch);
  add_selection(*logs, options.words, options.run_directory, kTasksNeededHelp);
  const auto of_output = [](CLI::Option* option) { return option->group(option_groups::kOutput); };
  of_output(logs->add_flag("--follow,-f", options.follow, "Follow the output until the task ends"));
  of_output(logs->add_option("--attempt", options.attempt, "Attempt number (default: the last)"))
      ->type_name(value_kinds::kNumber)
      ->check(wrong_with_attempt);
  of_output(logs->add_option("--rank", options.rank, "Only this rank of a task with ranks"))
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(0, model::kRanksMax));
  of_output(logs->add_flag("--stdout", options.only_stdout,
                           "Only standard output (with --stderr: both)"));
  of_output(logs->add_flag("--stderr", options.only_stderr, "Only standard error"));
  logs->footer(
      std::string("Examples:\n"
                  "  trainyard logs lr=0.1,seed=2\n"
                  "  trainyard logs train/lr=0.1,seed=2 -f\n"
                  "  trainyard logs 46 lr=0.1,seed=2\n"
                  "  trainyard logs 46 :failed\n"
                  "  trainyard logs lr=0.1,seed=2 --attempt 1 --stderr\n"
                  "  trainyard logs lr=0.1,seed=2 --rank 3\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "In a run with several tasks, name a task. Progress bars that redraw a line are shown as\n"
      "their last state.");
  return logs;
}

CLI::App* add_kill(CLI::App& app, KillOptions& options) {
  CLI::App* kill = app.add_subcommand("kill", "Kill tasks of a run, and skip tasks that need them");
  kill->alias("cancel")->group(command_groups::kChange);
  add_selection(*kill, options.words, options.run_directory, kTasksNeededHelp);
  kill->add_flag("--dry-run", options.dry_run, "Show the selected tasks, and kill nothing")
      ->group(option_groups::kOutput);
  kill->footer(
      std::string("Examples:\n"
                  "  trainyard kill train/lr=0.1,seed=2\n"
                  "  trainyard kill 46/lr=0.1\n"
                  "  trainyard kill 46 'seed=*' :waiting\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "'kill 46/train' kills all tasks of the group 'train'.\n"
      "A running task gets SIGTERM, then SIGKILL after 10 s. With 'signal: USR1@120' it gets "
      "SIGUSR1\n"
      "120 s before SIGTERM. The command waits for its end: up to 30 s, plus the time of "
      "'signal'.\n"
      "Ctrl-C stops only the waiting.\n"
      "A killed task counts as failed; 'retry' and 'run --resume' run it again. A task without an\n"
      "attempt is SKIPPED: 'run --resume' runs it, and 'retry' only if it is named. Other tasks "
      "continue. With\n"
      "'fail-fast: true', the rest of its group is killed or skipped.\n"
      "Exit codes: 0 done, 1 partly done, 2 nothing done, 130 Ctrl-C. It is 1, too, if all "
      "selected\n"
      "tasks of an active run had already ended, or it did not respond in time; 2 if it is\n"
      "suspended.");
  return kill;
}

CLI::App* add_clean(CLI::App& app, CleanWords& words) {
  CLI::App* clean = app.add_subcommand("clean", "Delete files of runs that have ended");
  clean->group(command_groups::kChange);
  clean->add_option("run", words.runs, "Runs to delete (default: those --older selects)")
      ->type_name(value_kinds::kRun);
  clean->add_option("--older", words.older, "Select runs that ended at least this long ago: 30d")
      ->group(option_groups::kSelection)
      ->type_name(value_kinds::kTime);
  clean->add_option("--keep", words.keep, "Keep these files, and the journals and reports")
      ->group(option_groups::kSelection)
      ->type_name("results|logs")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  clean->add_flag("--dry-run", words.dry_run, "Show what would be deleted, and delete nothing")
      ->group(option_groups::kOutput);
  add_json(*clean, words.json);
  clean->footer(
      "Examples:\n"
      "  trainyard clean --older 0s --dry-run\n"
      "  trainyard clean --older 30d --dry-run\n"
      "  trainyard clean --older 30d --keep results\n"
      "  trainyard clean 46 runs/first\n"
      "  trainyard clean 46 --keep results,logs\n"
      "\n"
      "Deletes task directories, with the checkpoints and models in them, the reports, the "
      "journal\n"
      "and the copy of the code. Other files in the run directory stay, and so does an active "
      "run.\n"
      "A submission that never started has no journal: the files that trainyard wrote are "
      "deleted.\n"
      "Asks no questions.\n"
      "A number or a path also selects a run of another directory; a name does not. If several "
      "runs\n"
      "have the name, nothing is deleted: use a number or a directory.\n"
      "Exit codes: 0 done, 1 something could not be deleted, 2 nothing was done.");
  return clean;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "Estimate how long a job takes, and run nothing");
  plan->group(command_groups::kRun);
  plan->add_option("job", options.job_file, "Job file (YAML)")
      ->type_name(value_kinds::kJobFile)
      ->check(empty_job_file_error)
      ->required();
  const auto of_hardware = [](CLI::Option* option) { return option->group("Hardware"); };
  of_hardware(plan->add_option("--gpus", options.gpus,
                               "GPUs: 4x24GB, 80GB or 0; several (after spaces) are compared"))
      ->type_name(value_kinds::kCards);
  of_hardware(plan->add_option("--machines", options.machines,
                               "Machines: '8x(4x80GB, 64 CPUs, 512GB) + 2x(64 CPUs, 256GB)'"))
      ->type_name(value_kinds::kMachines);
  of_hardware(
      plan->add_option("--memory", options.memory, "Memory: 64GB (default: this machine's)"))
      ->type_name(value_kinds::kSize);
  of_hardware(plan->add_option("--cpus", options.cpus, "CPUs: 16 (default: this machine's)"))
      ->type_name(value_kinds::kNumber);
  plan->add_option("--html", options.html, "Write a page with a timeline to this file")
      ->type_name(value_kinds::kFile)
      ->group(option_groups::kOutput);
  add_json(*plan, options.json);
  add_configuration(*plan, options.config_file, options.settings);
  plan->footer(
      "Examples:\n"
      "  trainyard plan sweep.yaml\n"
      "  trainyard plan sweep.yaml --gpus 4x24GB --memory 64GB --cpus 16 --html plan.html\n"
      "  trainyard plan sweep.yaml --gpus 1x24GB 2x24GB 1x80GB\n"
      "  trainyard plan sweep.yaml --machines '4x(8x80GB)' '8x(4x80GB, 64 CPUs, 512GB)'\n"
      "\n"
      "The real scheduler simulates the run. Task durations come from the job file ('duration'),\n"
      "or from earlier runs.");
  return plan;
}

CLI::App* add_devices(CLI::App& app, DevicesOptions& options) {
  CLI::App* devices = app.add_subcommand("devices", "Show GPUs, their processes and reservations");
  devices->group(command_groups::kMachine);
  devices
      ->add_option("run,--run-dir", options.run_directory,
                   "Run number, name, directory or job file\n"
                   "(default: the active run in ./runs, else the latest)")
      ->type_name(value_kinds::kRun)
      ->check(empty_run_error);
  add_json(*devices, options.json);
  devices->footer(
      "Examples:\n"
      "  trainyard devices\n"
      "  trainyard devices runs/sweep --json\n"
      "\n"
      "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES limit the usable GPUs.");
  return devices;
}

CLI::App* add_doctor(CLI::App& app, ConfigOptions& options) {
  CLI::App* doctor = app.add_subcommand("doctor", "Show which resources tasks may use, and why");
  doctor->group(command_groups::kMachine);
  add_configuration(*doctor, options.config_file, options.settings);
  doctor->footer(
      "Examples:\n"
      "  trainyard doctor\n"
      "  trainyard doctor --set remain-limit.memory=8GB\n"
      "\n"
      "Exit codes: 0 shown, 1 no task can start, or standard output cannot be written, 2 the\n"
      "configuration is wrong.");
  return doctor;
}

/// Returns `config init`; the other one is `config show`.
CLI::App* add_config(CLI::App& app, ConfigOptions& options) {
  CLI::App* config = app.add_subcommand("config", "Show or create the configuration");
  config->group(command_groups::kSetup);
  config->require_subcommand(1);
  config->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config init\n"
      "  trainyard config init --force    # overwrites ./trainyard.yaml");
  CLI::App* show = config->add_subcommand("show", "Show all settings, and where each was set");
  show->add_option("job", options.job_file, "Job file whose 'config:' section applies")
      ->type_name(value_kinds::kJobFile);
  add_json(*show, options.json);
  add_configuration(*show, options.config_file, options.settings);
  show->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config show sweep.yaml --set scheduler.max-process=4 --json");
  CLI::App* init = config->add_subcommand("init", "Write ./trainyard.yaml with the defaults");
  init->add_flag("--force", options.force, "Overwrite an existing file");
  init->footer(
      "Examples:\n"
      "  trainyard config init\n"
      "  trainyard config init --force");
  return init;
}

/// `help run` is `run --help`, and `help` alone `--help`: people type this first. False: the words
/// are something else.
bool move_help_to_the_end(std::vector<const char*>& words) {
  if (words.size() < 2 || std::string_view(words[1]) != kHelp) return false;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return true;
}

Runner add_config_commands(CLI::App& app) {
  auto options = std::make_unique<ConfigOptions>();
  const CLI::App* const init = add_config(app, *options);
  return [options = std::move(options),
          init](const std::vector<std::string>& /*command*/) -> std::optional<ExitCode> {
    if (!init->get_parent()->parsed()) return std::nullopt;
    return init->parsed() ? config_init_command(*options) : config_show_command(*options);
  };
}

Runner add_help(CLI::App& app) {
  CLI::App* help = app.add_subcommand(std::string(kHelp), "Show the help of a command");
  help->footer(
          "Examples:\n"
          "  trainyard help run\n"
          "  trainyard help task-options\n"
          "  trainyard help client progress")
      ->group(command_groups::kSetup);
  // Only for its help: move_help_to_the_end() leaves no words.
  help->add_option("command")->type_name("COMMAND")->description("Command to explain");
  // Its words are not used: the topic is only for its help.
  auto words = std::make_unique<CommandWords>();
  add_task_options_topic(app, *words);
  return [words = std::move(words),
          &app](const std::vector<std::string>& /*command*/) -> std::optional<ExitCode> {
    if (!app.got_subcommand(kTaskOptionsTopic)) return std::nullopt;
    return answer(app.help());
  };
}

/// All commands, in the order in which the help shows them.
std::vector<Entry> all_entries(const std::string& command_line) {
  std::vector<Entry> all;
  all.push_back(run_entry(command_line));
  all.push_back(submit_entry(command_line));
  all.push_back(retry_entry(command_line));
  all.push_back(entry({"plan"}, add_plan, plan_command));
  all.push_back(queue_entry());
  all.push_back(ranks_entry());
  all.push_back(parallel_entry());
  all.push_back(entry({"status"}, add_status, status_command));
  all.push_back(entry({"logs"}, add_logs, logs_command));
  all.push_back(results_entry());
  all.push_back(learned_entry());
  all.push_back(entry({"kill", "cancel"}, add_kill, kill_command));
  all.push_back(wish_entry());
  all.push_back(entry({"clean"}, add_clean, clean_command));
  all.push_back(entry({"devices"}, add_devices, devices_command));
  all.push_back(drain_entry());
  all.push_back(machines_entry());
  all.push_back(entry({"doctor"}, add_doctor, doctor_command));
  all.push_back({.names = {"config"}, .add = add_config_commands});
  all.push_back(client_entry());
  all.push_back(replay_entry());
  all.push_back(agent_entry());
  all.push_back(completion_entry());
  all.push_back({.names = {}, .add = add_help});
  return all;
}

/// The program's command line with some of the commands.
class Program {
 public:
  explicit Program(std::span<const Entry> entries);

  CLI::App& app() { return app_; }

  /// Runs the typed command; `command` has the words after --.
  ExitCode run(const std::vector<std::string>& command);

 private:
  CLI::App app_{"Run many training tasks on one machine or several"};
  std::vector<Runner> runners_;
};

Program::Program(std::span<const Entry> entries) {
  app_.formatter(help_format());
  app_.name("trainyard");
  app_.option_defaults()->disable_flag_override();
  app_.set_version_flag("--version", kProgram);
  app_.require_subcommand(1);
  app_.footer(
      "Start with: trainyard run sweep.yaml. Help of a command: trainyard help run.\n"
      "Ended runs here: trainyard clean --older 0s --dry-run (deletes nothing).\n" +
      std::string(kExitCodes));
  for (const Entry& each : entries) runners_.push_back(each.add(app_));
}

ExitCode Program::run(const std::vector<std::string>& command) {
  for (Runner& runner : runners_) {
    if (const std::optional<ExitCode> done = runner(command)) return *done;
  }
  check(false, "a command that was typed has a runner");
  return ExitCode::NotDone;
}

/// The unknown command of "trainyard list --help", of which CLI11 shows the help of the program;
/// empty if the commands before the first option are known.
std::string unknown_command(const CLI::App& app, const std::vector<const char*>& typed) {
  const auto option = std::ranges::find_if(
      typed, [](const char* word) { return std::string_view(word).starts_with('-'); });
  return unknown_word(app, {typed.begin(), option});
}

/// A command line, split at the '--' of `run` and `submit`.
struct Typed {
  std::vector<const char*> words;
  std::vector<std::string> command;  ///< Behind the '--'.
  bool has_separator = false;
};

/// Gives the words to the app; the error that CLI11 throws is the caller's.
void parse(CLI::App& app, const std::vector<const char*>& typed) {
  std::string sort;
  std::deque<std::string> kept;
  const std::vector<const char*> words =
      with_kept_brackets(app, with_joined_sort(without_separator(app, typed), sort), kept);
  app.parse(static_cast<int>(words.size()), words.data());
}

/// Whether all words are valid, and none asks for help.
bool takes(CLI::App& app, const Typed& typed) {
  const TypedWords all{.words = typed.words, .has_command = typed.has_separator};
  if (!missing_value_mistake(app, all).empty()) return false;
  try {
    parse(app, typed.words);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

/// Reads the typed words. An exit code if nothing remains to do: a mistake, or a request for help.
std::optional<ExitCode> read_typed(CLI::App& app, Typed& typed) {
  if (move_help_to_the_end(typed.words)) {
    // CLI11 would show the help of all instead of an error for the unknown command.
    const std::string unknown = unknown_topic(app, typed.words);
    if (!unknown.empty()) return fail(unknown);
  }
  const TypedWords all{.words = typed.words, .has_command = typed.has_separator};
  if (const std::string missing = missing_value_mistake(app, all); !missing.empty()) {
    return fail(missing);
  }
  try {
    parse(app, typed.words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return fail(typed_mistake(app, all, error));
    }
    if (const std::string unknown = unknown_command(app, typed.words); !unknown.empty()) {
      return fail(unknown);
    }
    std::ostringstream help;
    app.exit(error, help, help);
    return answer(help.str());
  }
  return std::nullopt;
}

ExitCode run(Program& program, const Typed& typed) {
  if (typed.has_separator && typed.command.empty()) return fail("no command after '--'");
  try {
    return program.run(typed.command);
  } catch (const sys::EventLoopError& error) {
    return fail(error.what(), ExitCode::NotDone);
  }
}

ExitCode main(int argc, const char* const* argv) {
  const std::span<const char* const> all{argv, static_cast<std::size_t>(argc)};
  const std::vector<Entry> entries = all_entries(shown_command_line(all));
  Typed typed;
  typed.words = without_command({argv, argv + argc}, typed.command);
  typed.has_separator = typed.words.size() < all.size();
  const std::string_view first = all.size() > 1 ? all[1] : "";
  // One command is set up in a fraction of the time of all, and nearly all that is typed is right.
  // For a mistake and for help all are needed: they name other commands.
  const auto has_first = [first](const Entry& each) {
    return std::ranges::find(each.names, first) != each.names.end();
  };
  if (const auto found = std::ranges::find_if(entries, has_first); found != entries.end()) {
    Program alone(std::span(&*found, 1));
    if (takes(alone.app(), typed)) return run(alone, typed);
  }
  Program program(entries);
  if (const std::optional<ExitCode> asked = answer_shell(program.app(), all)) return *asked;
  if (const std::optional<ExitCode> done = read_typed(program.app(), typed)) return *done;
  return run(program, typed);
}

/// The kernel sends SIGBUS to a process that reads what a mapped file has no more. SQLite maps
/// journal.db-shm, which every task of the run can cut short; the journal itself stays whole.
[[noreturn]] void end_for_cut_file(int /*signal*/) {
  constexpr std::string_view kText =
      "trainyard: a file was cut short while trainyard used it, as when a task empties "
      "journal.db-shm of its run: 'trainyard run --resume' continues the run\n";
  sys::end_at_once(kText, static_cast<int>(ExitCode::NotDone));
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  trainyard::sys::open_standard_descriptors();
  trainyard::sys::survive_file_size_limit();
  // Programs that it starts have the default again, and so has the keeper.
  std::signal(SIGBUS, trainyard::cli::end_for_cut_file);
  return static_cast<int>(trainyard::cli::main(argc, argv));
}
