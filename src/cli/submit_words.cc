#include "cli/submit_words.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/run_words.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {
namespace {

constexpr const char* kSubmitExamples =
    "Examples:\n"
    "  trainyard submit sweep.yaml\n"
    "  trainyard submit --name vit --gpu-memory 10GB --time-limit 8h -- python train.py --lr 3e-4\n"
    "  trainyard submit --needs 45 -- 'python evaluate.py > scores.txt'\n"
    "  trainyard submit --snapshot sweep.yaml\n"
    "  trainyard submit more.yaml 46\n"
    "\n"
    "Into your queue on this host, which is started where there is none: each submission becomes "
    "a\n"
    "run of its own, in runs/<name> of this directory or a number after it, as soon as the "
    "machine\n"
    "has room, with this environment. Its number is printed. 'trainyard status' shows what there\n"
    "is, 'trainyard kill 46' takes one out or ends it, 'trainyard wait 46' waits for it.\n"
    "With --snapshot the code is copied now, so that you may edit on while it waits; what git "
    "ignores\n"
    "is linked there. 'retry' takes the copy, too.\n"
    "Where a run is named, that is at work, its tasks are added to that one: they have their\n"
    "directories under <run-dir>/submissions/<number>, may need groups of the run, and --set is\n"
    "for task.<key>=<value>.\n"
    "It is checked first, and nothing changes where it has a mistake.\n"
    "Exit codes: 0 added, 2 not added.";

/// What does not go together, for people; empty when all does.
std::string wrong_with_submit(const SubmitOptions& options) {
  if (std::string wrong = wrong_with_command(options.words, options.job_file); !wrong.empty()) {
    return wrong;
  }
  if (options.job_file.empty() && !options.words.is_command()) {
    return "which job file, or which command? 'trainyard submit sweep.yaml', or 'trainyard submit "
           "-- python train.py'";
  }
  if (!options.run_directory.empty() && !options.needs.empty()) {
    return "--needs is for the queue: what is added to a run says in its job file which groups it "
           "needs";
  }
  if (!options.run_directory.empty() && options.snapshot) {
    return "--snapshot is for the queue: what is added to a run works in the work tree itself";
  }
  if (!options.run_directory.empty() && !options.config_file.empty()) {
    return "--config is for the queue: a run has its own";
  }
  return {};
}

}  // namespace

SubmitWords::SubmitWords(CLI::App& app, const std::string& command_line) {
  submit_ = app.add_subcommand("submit", "Add a job file or a command to your queue, or to a run");
  submit_->add_option("job", options_.job_file, "The job file (YAML)")
      ->type_name(value_kinds::kJobFile);
  submit_
      ->add_option("run,--run-dir", options_.run_directory,
                   "A run at work that it is added to (default: your queue)")
      ->type_name(value_kinds::kRun)
      ->check(why_no_run_name);
  submit_
      ->add_option("--needs", options_.needs,
                   "Begins when this run has ended well; may be said again")
      ->type_name(value_kinds::kRun)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  submit_->add_flag("--snapshot", options_.snapshot, kSnapshotHelp);
  submit_->add_flag("--json", options_.json, "For programs");
  add_configuration(*submit_, options_.config_file, options_.settings);
  // Those of its tasks are all that a run takes in, and of a run of its own the usual ones.
  submit_->get_option("--set")->type_name(value_kinds::kTaskSetting);
  add_command_words(*submit_, options_.words);
  submit_->footer(kSubmitExamples);
  options_.command_line = command_line;
}

std::optional<ExitCode> SubmitWords::run(std::vector<std::string> command) {
  if (!submit_->parsed()) return std::nullopt;
  options_.words.command = std::move(command);
  const std::string wrong = wrong_with_submit(options_);
  return wrong.empty() ? submit_command(options_) : fail(wrong);
}

}  // namespace trainyard::cli
