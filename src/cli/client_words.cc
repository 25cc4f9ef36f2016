#include "cli/client_words.h"

#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

ClientWords::ClientWords(CLI::App& app) {
  CLI::App* client =
      app.add_subcommand("client", "For scripts: say how it goes, wait for a device");
  client->require_subcommand(1);
  client->footer(
      "In a task with 'two-phase: true':\n"
      "  ./load.sh\n"
      "  device=$(trainyard client wait-device) || exit\n"
      "  ./train.sh --device \"$device\"\n"
      "  trainyard client result acc=0.98\n"
      "\n"
      "'progress' and 'result' are for every task. Run by hand the same script goes on at once, "
      "on\n"
      "the CPU.\n"
      "Examples:\n"
      "  trainyard client wait-device\n"
      "  trainyard client progress 0.4 loss=0.31\n"
      "  trainyard client result acc=0.98");
  wait_ = client->add_subcommand("wait-device", "Wait until a device is granted, and print it");
  wait_->add_flag("--after-out-of-memory", wait_options_.after_out_of_memory,
                  "The training ran out of memory, and is to be retried with more");
  wait_->footer(
      "Prints the device: cpu\n"
      "Example:\n  trainyard client wait-device\n"
      "Of what memory it ran out, and how much it wanted, is read where the task's errors go; "
      "where\n"
      "nothing is said there it is that of the GPU of a task that has one.\n"
      "Exit codes: 0 train now, 1 the yard is gone, or refuses.");
  progress_ = client->add_subcommand("progress", "Say how far the training is");
  progress_->add_option("fraction", progress_options_.fraction, "From 0 to 1")
      ->type_name(value_kinds::kNumber)
      ->check(CLI::Range(0.0, 1.0))
      ->required();
  progress_->add_option("values", progress_options_.values, "What it has come to: loss=0.31")
      ->type_name(value_kinds::kResult);
  progress_->footer("Example:\n  trainyard client progress 0.4 loss=0.31 epoch=2");
  result_ = client->add_subcommand("result", "Add to the result of the task");
  result_->add_option("values", result_options_.values, "As in acc=0.98")
      ->type_name(value_kinds::kResult)
      ->required();
  result_->footer(
      "A value that is JSON counts as such, any other as text; nan and inf, which JSON does not\n"
      "have, become null.\n"
      "Example:\n  trainyard client result acc=0.98 model=resnet 'confusion=[[9,1],[0,10]]'");
}

std::optional<ExitCode> ClientWords::run() {
  if (wait_->parsed()) return client_wait_command(wait_options_);
  if (progress_->parsed()) return client_progress_command(progress_options_);
  if (result_->parsed()) return client_result_command(result_options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
