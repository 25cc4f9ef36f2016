#include "cli/queue_words.h"

#include <CLI/CLI.hpp>

#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

QueueWords::QueueWords(CLI::App& app) {
  wait_ = app.add_subcommand("wait", "Wait until runs have ended");
  wait_->group(command_groups::kRun);
  CLI::Option* const runs =
      wait_
          ->add_option("run,--run-dir", wait_options_.runs,
                       "Run numbers, names, directories or job files\n"
                       "(default: all active or queued runs here, and the last)")
          ->type_name(value_kinds::kRun)
          ->check(empty_run_error);
  wait_->add_flag("--all,-a", wait_options_.all, "Wait for all your runs on this machine")
      ->excludes(runs);
  wait_->footer(
      "Examples:\n"
      "  trainyard wait\n"
      "  trainyard wait 46\n"
      "  trainyard wait 46 47 runs/sweep\n"
      "  trainyard wait --all\n"
      "\n"
      "A name means the run created last with this name, even if it has not started.\n"
      "Exit code of one run: that of 'trainyard run', see its help. But a run of one task has\n"
      "that of the task if it exits by itself, or 128 and the signal if it crashes. A kill or a\n"
      "time limit gives 1. If the run waits in a queue that is not up, the code is 75. If it was\n"
      "not needed, as with 'submit --if failure' after no failure, the code is 0.\n"
      "Exit code of several runs: 1 a task failed, 75 no task failed but a run is incomplete, 0\n"
      "all succeeded. Without RUN, the run created last here counts even if it has ended. If all\n"
      "other runs succeeded, its exit code is returned.");
  up_ = app.add_subcommand("up", "Start the queue on this machine");
  up_->group(command_groups::kMachine);
  add_configuration(*up_, up_options_.config_file, up_options_.settings);
  up_->get_option("--set")->description("Set the directory of a new queue: yard.state=/var/tmp");
  up_->footer(
      "Examples:\n"
      "  trainyard up\n"
      "  trainyard up --set yard.state=/var/tmp\n"
      "\n"
      "yard.state is the directory of the queue, on a disk of this machine. It is set when the\n"
      "queue is created, and cannot be changed later.\n"
      "Other settings belong to runs: give them to 'submit', or write them in the job file.\n"
      "'submit' starts the queue, too. After a reboot, runs of the queue resume and keep their\n"
      "finished tasks. Exit codes: 0 the queue is up, 2 it cannot start.");
  down_ = app.add_subcommand("down", "Stop the queue on this machine");
  down_->group(command_groups::kMachine);
  constexpr const char* kActiveRuns = "Active runs";
  CLI::Option* drain = down_->add_flag("--drain", down_options_.drain,
                                       "Start no more runs; stop when the active ones have ended");
  drain->group(kActiveRuns);
  down_
      ->add_flag("--now", down_options_.now,
                 "Stop active runs as Ctrl-C does; the next 'up' resumes them")
      ->group(kActiveRuns)
      ->excludes(drain);
  down_->footer(
      "Examples:\n"
      "  trainyard down\n"
      "  trainyard down --drain\n"
      "  trainyard down --now\n"
      "\n"
      "Refuses while runs are active, unless --drain or --now is given. --drain returns at once;\n"
      "'up' stops the drain. Waiting runs stay in the queue.\n"
      "Exit codes: 0 done, or the queue was not up; 2 runs are active, nothing was done.");
}

std::optional<ExitCode> QueueWords::run() {
  // It may be that of a task.
  if (wait_->parsed()) return static_cast<ExitCode>(wait_command(wait_options_));
  if (up_->parsed()) return up_command(up_options_);
  if (down_->parsed()) return down_command(down_options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
