#include "cli/selection_words.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/value_kinds.h"

namespace trainyard::cli {

void add_selection(CLI::App& command, std::vector<std::string>& words, std::string& run_directory,
                   const Unsaid& unsaid) {
  command
      .add_option(
          "what", words,
          fmt::format(
              "Tasks: an id, <group>/<id>, values of the matrix (lr=0.1), a pattern\n"
              "('train/*'), a state (:failed). And their run, as 46, 46/lr=0.1, runs/sweep\n"
              "or sweep.yaml (default: {})",
              unsaid.text))
      ->type_name(value_kinds::kTasks)
      // Else '[xy]' would be a list of one word, 'xy', and no pattern.
      ->allow_extra_args(false);
  command.add_option("--run-dir", run_directory, "The run, where a word may be a task as well")
      ->type_name(value_kinds::kRun);
}

}  // namespace trainyard::cli
