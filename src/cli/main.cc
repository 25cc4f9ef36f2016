// The command line: reads it, calls one function, says its exit code.
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/agent_words.h"
#include "cli/client_words.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/completion_words.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/drain_words.h"
#include "cli/exit_code.h"
#include "cli/learned_words.h"
#include "cli/machines_words.h"
#include "cli/manual_page.h"
#include "cli/parallel_words.h"
#include "cli/queue_words.h"
#include "cli/ranks_words.h"
#include "cli/replay_words.h"
#include "cli/results_words.h"
#include "cli/retry_words.h"
#include "cli/run_words.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/submit_words.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "cli/wish_words.h"
#include "cli/with_command.h"
#include "model/rank_share.h"
#include "sys/descriptor.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kHelp = "help";

struct CommandLine {
  StatusOptions status;
  LogsOptions logs;
  KillOptions kill;
  DevicesOptions devices;
  PlanOptions plan;
  ConfigOptions config;
  CleanWords clean;
};

CLI::App* add_status(CLI::App& app, StatusOptions& options) {
  CLI::App* status = app.add_subcommand("status", "Show what a run is doing, or has done");
  add_selection(*status, options.words, options.run_directory);
  status->add_flag("--json", options.json, "For programs");
  status->add_flag("--watch,-w", options.watch, "Show it again each second until the run ends");
  status->add_flag("--all,-a", options.all, "Every task, not only those that run or failed");
  status->footer(
      "Examples:\n"
      "  trainyard status\n"
      "  trainyard status 46 --watch\n"
      "  trainyard status 46 :failed lr=1e-3\n"
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
      "What the run's journal knows is deleted: directories of tasks, reports, the journal; and "
      "the\n"
      "copy of the code that it had. What else lies there stays, and so does a run that is at "
      "work.\n"
      "Nothing is asked.\n"
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
  plan->add_option("--machines", options.machines,
                   "On such machines: '8x(4x80GB, 64 CPUs, 512GB) + 2x(64 CPUs, 256GB)'")
      ->type_name(value_kinds::kMachines);
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
      "  trainyard plan sweep.yaml --machines '4x(8x80GB)' '8x(4x80GB, 64 CPUs, 512GB)'\n"
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

/// All commands, in the order in which the help shows them.
class Commands {
 public:
  Commands(CLI::App& app, const std::string& command_line)
      : run_(app, command_line),
        status_(add_status(app, line_.status)),
        logs_(add_logs(app, line_.logs)),
        kill_(add_kill(app, line_.kill)),
        submit_(app, command_line),
        queue_(app),
        devices_(add_devices(app, line_.devices)),
        machines_(app),
        plan_(add_plan(app, line_.plan)),
        clean_(add_clean(app, line_.clean)),
        learned_(app),
        drain_(app),
        retry_(app, command_line),
        wishes_(app),
        results_(app),
        client_(app),
        ranks_(app),
        parallel_(app),
        replay_(app),
        agent_(app),
        doctor_(add_doctor(app, line_.config)),
        init_(add_config(app, line_.config)),
        completion_(app) {
    app.add_subcommand(std::string(kHelp), "Show how a command is used: help run")
        ->footer(
            "Examples:\n"
            "  trainyard help run\n"
            "  trainyard help client progress");
    manual_ = add_manual(app, date_);
  }

  /// Runs the one that was typed; `command` is what stands behind --.
  ExitCode run(const CLI::App& app, const std::vector<std::string>& command) {
    if (const std::optional<ExitCode> done = run_.run(command)) return *done;
    if (status_->parsed()) return status_command(line_.status);
    if (logs_->parsed()) return logs_command(line_.logs);
    if (kill_->parsed()) return kill_command(line_.kill);
    if (const std::optional<ExitCode> done = submit_.run(command)) return *done;
    if (const std::optional<ExitCode> done = queue_.run()) return *done;
    if (devices_->parsed()) return devices_command(line_.devices);
    if (const std::optional<ExitCode> done = machines_.run()) return *done;
    if (plan_->parsed()) return plan_command(line_.plan);
    if (clean_->parsed()) return clean_command(line_.clean);
    if (doctor_->parsed()) return doctor_command(line_.config);
    if (const std::optional<ExitCode> done = learned_.run()) return *done;
    if (const std::optional<ExitCode> done = drain_.run()) return *done;
    if (const std::optional<ExitCode> done = retry_.run()) return *done;
    if (const std::optional<ExitCode> done = wishes_.run()) return *done;
    if (const std::optional<ExitCode> done = results_.run()) return *done;
    if (const std::optional<ExitCode> done = client_.run()) return *done;
    if (const std::optional<ExitCode> done = replay_.run()) return *done;
    if (const std::optional<ExitCode> done = agent_.run()) return *done;
    if (const std::optional<ExitCode> done = completion_.run()) return *done;
    if (manual_->parsed()) return answer(manual_page(app, date_));
    // It has the exit code of the command.
    if (const std::optional<int> code = ranks_.run()) return static_cast<ExitCode>(*code);
    if (const std::optional<int> code = parallel_.run()) return static_cast<ExitCode>(*code);
    return init_->parsed() ? config_init_command(line_.config) : config_show_command(line_.config);
  }

 private:
  CommandLine line_;
  RunWords run_;
  const CLI::App* status_;
  const CLI::App* logs_;
  const CLI::App* kill_;
  SubmitWords submit_;
  QueueWords queue_;
  const CLI::App* devices_;
  MachinesWords machines_;
  const CLI::App* plan_;
  const CLI::App* clean_;
  LearnedWords learned_;
  DrainWords drain_;
  RetryWords retry_;
  WishWords wishes_;
  ResultsWords results_;
  ClientWords client_;
  RanksWords ranks_;
  ParallelWords parallel_;
  ReplayWords replay_;
  AgentWords agent_;
  const CLI::App* doctor_;
  const CLI::App* init_;
  CompletionWords completion_;
  const CLI::App* manual_ = nullptr;
  std::string date_;
};

/// Reads what was typed. An exit code where that is all: it is wrong, or asks for help.
std::optional<ExitCode> read_typed(CLI::App& app, std::vector<const char*>& typed) {
  if (move_help_to_the_end(typed)) {
    // CLI11 shows the help of all rather than say that it knows no such command.
    const std::string unknown = unknown_word(app, typed);
    if (!unknown.empty()) return fail(unknown);
  }
  try {
    std::string sort;
    std::deque<std::string> kept;
    const std::vector<const char*> words = with_kept_brackets(
        app, ResultsWords::with_joined_sort(without_separator(app, typed), sort), kept);
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
  return std::nullopt;
}

ExitCode main(int argc, const char* const* argv) {
  CLI::App app{"Runs many training tasks on the machine you have."};
  app.name("trainyard");
  app.set_version_flag("--version", kProgram);
  app.require_subcommand(1);
  app.footer("'trainyard help <command>' says more. Start with: trainyard run sweep.yaml\n" +
             std::string(kExitCodes));
  const std::span<const char* const> all{argv, static_cast<std::size_t>(argc)};
  Commands commands(app, shown_command_line(all));
  if (const std::optional<ExitCode> asked = answer_shell(app, all)) return *asked;
  std::vector<std::string> command;
  std::vector<const char*> typed = without_command({argv, argv + argc}, command);
  if (const std::optional<ExitCode> done = read_typed(app, typed)) return *done;
  return commands.run(app, command);
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  trainyard::sys::open_standard_descriptors();
  return static_cast<int>(trainyard::cli::main(argc, argv));
}
