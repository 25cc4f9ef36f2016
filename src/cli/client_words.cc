#include "cli/client_words.h"

#include <CLI/CLI.hpp>

#include "cli/help_format.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

ClientWords::ClientWords(CLI::App& app) {
  CLI::App* client =
      app.add_subcommand("client", "Report progress and results from a task's script");
  client->group(command_groups::kPlumbing);
  client->require_subcommand(1);
  client->footer(
      "Examples:\n"
      "  trainyard client wait-device\n"
      "  trainyard client progress 0.4 loss=0.31\n"
      "  trainyard client result acc=0.98\n"
      "\n"
      "A task with 'two-phase: true' loads data, then waits for a device:\n"
      "  ./load.sh\n"
      "  device=$(trainyard client wait-device) || exit\n"
      "  ./train.sh --device \"$device\"\n"
      "Every task may report progress and results. Outside of a run, wait-device prints 'cpu' at\n"
      "once.");
  wait_ = client->add_subcommand("wait-device", "Wait for a device, and print it");
  wait_->add_flag("--after-out-of-memory", wait_options_.after_out_of_memory,
                  "Report that the training ran out of memory; retry with more");
  wait_->footer(
      "Examples:\n"
      "  trainyard client wait-device\n"
      "\n"
      "Prints the device: cpu or cuda:0. With --after-out-of-memory, trainyard reads in the "
      "task's\n"
      "standard error which memory ran out and how much was requested (in its standard output if\n"
      "standard error is empty). Without a message there, it was GPU memory if the task has a "
      "GPU.\n"
      "Exit codes: 0 train now, 1 the run has ended, or refuses.");
  progress_ = client->add_subcommand("progress", "Report the progress of the training");
  progress_->add_option("fraction", progress_options_.fraction, "Fraction done, from 0 to 1")
      ->type_name(value_kinds::kNumber)
      ->check(number_within(0.0, 1.0))
      ->required();
  progress_->add_option("values", progress_options_.values, "Current values: loss=0.31")
      ->type_name(value_kinds::kResult);
  progress_->footer("Examples:\n  trainyard client progress 0.4 loss=0.31 epoch=2");
  result_ = client->add_subcommand("result", "Add values to the result of the task");
  result_->add_option("values", result_options_.values, "Values: acc=0.98")
      ->type_name(value_kinds::kResult)
      ->required();
  result_->footer(
      "Examples:\n"
      "  trainyard client result acc=0.98 model=resnet 'confusion=[[9,1],[0,10]]'\n"
      "\n"
      "A value that is valid JSON is stored as JSON, any other value as text. nan and inf become\n"
      "null.");
}

std::optional<ExitCode> ClientWords::run() {
  if (wait_->parsed()) return client_wait_command(wait_options_);
  if (progress_->parsed()) return client_progress_command(progress_options_);
  if (result_->parsed()) return client_result_command(result_options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
