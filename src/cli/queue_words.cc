#include "cli/queue_words.h"

#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/shared_words.h"

namespace trainyard::cli {

QueueWords::QueueWords(CLI::App& app) {
  wait_ = app.add_subcommand("wait", "Wait until a run has ended");
  add_run_name(*wait_, wait_options_.run);
  wait_->footer(
      "Examples:\n"
      "  trainyard wait 46\n"
      "  trainyard wait runs/sweep\n"
      "\n"
      "The exit code is that of the run, as of 'trainyard run'; of a run with one task it is the\n"
      "task's own. 75 where it waits in a queue that is not up.");
  up_ = app.add_subcommand("up", "Start your queue on this host, or go on with it");
  add_configuration(*up_, up_options_.config_file, up_options_.settings);
  up_->footer(
      "Examples:\n"
      "  trainyard up\n"
      "  trainyard up --set yard.state=/var/tmp\n"
      "\n"
      "'submit' does it by itself. What was at work when the machine went down goes on, and what\n"
      "had finished is kept. Exit codes: 0 it is up, 2 it cannot be.");
  down_ = app.add_subcommand("down", "End your queue on this host");
  CLI::Option* drain = down_->add_flag("--drain", down_options_.drain,
                                       "Begin nothing more, and go when what is at work has ended");
  down_
      ->add_flag("--now", down_options_.now,
                 "End what is at work, as by Ctrl-C: it goes on with the next 'up' or 'submit'")
      ->excludes(drain);
  down_->footer(
      "Examples:\n"
      "  trainyard down\n"
      "  trainyard down --drain\n"
      "  trainyard down --now\n"
      "\n"
      "Where runs are at work it ends nothing unless it is told how. What waits stays in the\n"
      "queue. Exit codes: 0 done, or it was not up; 2 runs are at work, and nothing was done.");
}

std::optional<ExitCode> QueueWords::run() {
  // It may be that of a task.
  if (wait_->parsed()) return static_cast<ExitCode>(wait_command(wait_options_));
  if (up_->parsed()) return up_command(up_options_);
  if (down_->parsed()) return down_command(down_options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
