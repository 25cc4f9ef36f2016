#include "cli/selection_words.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/did_you_mean.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

const char* const kSelectionHelp =
    "Tasks: id, <group>/<id>, a group (all its tasks), matrix values (lr=0.1), a pattern\n"
    "('train/*') or a state (:failed).\n"
    "An exact id is matched first: seed=1 selects by value only if no task has this id.\n"
    "Values: lr=0.1,seed=1 selects by both, lr=0.1 seed=1 by either. A state keeps only the\n"
    "selected tasks in that state.\n"
    "Run: 46, sweep, last, runs/sweep or sweep.yaml. Tasks of a run: 46/lr=0.1. A name is the\n"
    "latest run of that name: the active one, else the one that was started or resumed last.\n"
    "If several runs are active, commands that change a run require its name. Runs of this\n"
    "directory come first; to change a run of another directory, type its number or path.";
const char* const kTasksOrRunHelp = "Tasks or run (default: active, else latest run in ./runs)";
const char* const kTasksNeededHelp = "Tasks, '*' for all (default run: active, else latest)";

namespace {

/// The name of the option.
constexpr const char* kWords = "what";

}  // namespace

void add_selection(CLI::App& command, std::vector<std::string>& words, std::string& run_directory,
                   const std::string& help) {
  // CLI11 takes -9 for a number, and so for a word.
  command.add_option(kWords, words, help)
      ->type_name(value_kinds::kTasks)
      ->check([&command](const std::string& word) {
        return word.starts_with('-') ? unknown_option(command, word) : std::string();
      });
  command.add_option("--run-dir", run_directory, "Run, if its name could also be a task")
      ->group(option_groups::kSelection)
      ->type_name(value_kinds::kRun)
      ->check(empty_run_error);
}

namespace {

/// Before a word that begins with a bracket; no user types it.
constexpr char kMark = '\x01';

/// Whether a command has the words above.
bool is_selecting(const CLI::App& app, const std::string& name) {
  const auto commands =
      app.get_subcommands([&name](const CLI::App* command) { return command->check_name(name); });
  if (commands.empty()) return false;
  const CLI::Option* const words = commands.front()->get_option_no_throw(kWords);
  return words != nullptr && words->get_type_name() == value_kinds::kTasks;
}

}  // namespace

std::vector<const char*> with_kept_brackets(const CLI::App& app,
                                            const std::vector<const char*>& words,
                                            std::deque<std::string>& kept) {
  const bool selects = words.size() > 1 && is_selecting(app, words[1]);
  std::vector<const char*> all = words;
  for (const char*& word : all) {
    const std::string_view text = word;
    if (!selects || !text.starts_with('[') || !text.ends_with(']')) continue;
    kept.push_back(kMark + std::string(text));
    word = kept.back().c_str();
  }
  return all;
}

std::string without_mark(std::string word) {
  if (word.starts_with(kMark)) word.erase(0, 1);
  return word;
}

}  // namespace trainyard::cli
