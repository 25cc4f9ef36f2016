#include "cli/results_words.h"

#include <cstddef>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/console.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

ResultsWords::ResultsWords(CLI::App& app) {
  results_ = app.add_subcommand("results", "Show task results as a table: sort, average, pivot");
  results_->group(command_groups::kWatch);
  add_selection(*results_, options_.words, options_.run_directory,
                "Tasks or run (default: the latest run)");
  const auto in_table = [](CLI::Option* option) { return option->group("Table"); };
  in_table(
      results_->add_option("--over", options_.over, "Keys to average over: seed, or fold,seed"))
      ->type_name(value_kinds::kKeyColumns)
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(results_->add_option("--where", options_.where,
                                "Rows to show: 'lr<1e-3', 'acc>86%', 'status=oom'; repeatable"))
      ->type_name(value_kinds::kCondition)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(
      results_->add_option("--sort", options_.sort, "Sort by a column; -test_acc: largest first"))
      ->type_name(value_kinds::kColumn);
  CLI::Option* const pivot = in_table(results_->add_option("--pivot", options_.pivot,
                                                           "Keys for rows and columns: lr,batch"))
                                 ->type_name(value_kinds::kPivot)
                                 ->delimiter(',')
                                 ->expected(1)
                                 ->allow_extra_args(false)
                                 ->take_all();
  in_table(results_->add_option("--show", options_.show, "Column in the cells of --pivot"))
      ->type_name(value_kinds::kColumn)
      ->needs(pivot);
  CLI::Option* const csv = results_->add_flag("--csv", options_.csv, "Print CSV");
  CLI::Option* const markdown =
      results_->add_flag("--markdown", options_.markdown, "Print Markdown");
  csv->group(option_groups::kOutput)->excludes(markdown);
  markdown->group(option_groups::kOutput);
  add_json(*results_, options_.json);
  results_->get_option("--json")->excludes(csv)->excludes(markdown);
  pivot->excludes(results_->get_option("--sort"));
  results_->footer(
      std::string("Examples:\n"
                  "  trainyard results\n"
                  "  trainyard results --over seed --sort -test_acc\n"
                  "  trainyard results runs/sweep runs/sweep-2 --where 'lr<1e-3' --csv\n"
                  "  trainyard results 46 'optimizer=adam*'\n"
                  "  trainyard results --pivot lr,seed --show test_acc\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Several runs share a table. In a narrow terminal, columns without room are left out and\n"
      "named below it. Averages are mean ± standard deviation over finished tasks: 'time' over\n"
      "all of them, a result over those that reported it. 'tasks' is the number of tasks with a\n"
      "result. '(2 of 3)' after an average: 2 of the 3 tasks with a result have this number.\n"
      "Combinations of values without a task are listed below the averages, except those that\n"
      "'run --only' left out. With --where, none are listed.\n"
      "--where takes <, <=, >, >=, = and !=, but no patterns; TASKS takes patterns:\n"
      "'optimizer=adam*'.\n"
      "'status' is compared with a state (failed, oom) or a word of the table ('EXIT 3'), in any\n"
      "case. 'time' is the sum over all attempts, as TIME in the table at the end of a run.\n"
      "Exit codes: 0 shown, 1 standard output cannot be written, 2 no such run or column.");
}

std::vector<const char*> ResultsWords::with_joined_sort(const std::vector<const char*>& words,
                                                        std::string& kept) {
  std::vector<const char*> joined;
  joined.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool sort = std::string_view(words[i]) == "--sort" && i + 1 < words.size();
    if (!sort || !std::string_view(words[i + 1]).starts_with('-') || !kept.empty()) {
      joined.push_back(words[i]);
      continue;
    }
    kept = std::string("--sort=") + words[i + 1];
    joined.push_back(kept.c_str());
    ++i;
  }
  return joined;
}

std::optional<ExitCode> ResultsWords::run() {
  if (!results_->parsed()) return std::nullopt;
  if (results_->count("--sort") > 0 && options_.sort.empty()) {
    return fail("--sort needs a column: --sort -acc sorts by 'acc', largest first");
  }
  if (results_->count("--pivot") > 0 && options_.pivot.size() != 2) {
    return fail("--pivot needs two keys, for rows and columns: --pivot lr,batch");
  }
  if (results_->count("--pivot") > 0 && results_->count("--over") > 0) {
    return fail(
        "--over cannot be combined with --pivot, which averages over all keys that are neither "
        "rows nor columns");
  }
  return results_command(options_);
}

}  // namespace trainyard::cli
