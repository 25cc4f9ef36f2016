#include "cli/results_words.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

ResultsWords::ResultsWords(CLI::App& app) {
  results_ = app.add_subcommand("results", "Show what tasks came to: sorted, averaged, turned");
  add_selection(*results_, options_.words, options_.run_directory,
                {.text = "the latest run; several stand in one table"});
  results_->add_option("--over", options_.over, "Keys to average over: seed, or fold,seed")
      ->type_name(value_kinds::kColumn)
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  results_->add_option("--where", options_.where, "Rows to keep: 'lr<1e-3', 'status=FINISHED'")
      ->type_name(value_kinds::kCondition)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  results_->add_option("--sort", options_.sort, "By a column; -acc: the largest first")
      ->type_name(value_kinds::kColumn);
  CLI::Option* const pivot =
      results_
          ->add_option("--pivot", options_.pivot, "Two keys, for rows and for columns: lr,batch")
          ->type_name(value_kinds::kColumn)
          ->delimiter(',')
          ->expected(2);
  results_->add_option("--show", options_.show, "With --pivot: the field that is shown")
      ->type_name(value_kinds::kColumn)
      ->needs(pivot);
  CLI::Option* const csv = results_->add_flag("--csv", options_.csv, "For spreadsheets");
  CLI::Option* const markdown =
      results_->add_flag("--markdown", options_.markdown, "For pages and pull requests");
  results_->add_flag("--json", options_.json, "For programs")->excludes(csv)->excludes(markdown);
  csv->excludes(markdown);
  pivot->excludes(results_->get_option("--over"))->excludes(results_->get_option("--sort"));
  results_->footer(
      "Examples:\n"
      "  trainyard results\n"
      "  trainyard results --over seed --sort -acc\n"
      "  trainyard results runs/sweep runs/sweep-2 --where 'lr<1e-3' --csv\n"
      "  trainyard results 46 'optimizer=adam*'\n"
      "  trainyard results --pivot lr,batch --show acc\n"
      "\n"
      "What is averaged is shown as mean ± deviation of those tasks that left a number. Cells of\n"
      "the matrix that are not there, or left none, are named beneath.\n"
      "Exit codes: 0 shown, 1 standard output cannot be written, 2 there is no such run or "
      "column.");
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
  return results_command(options_);
}

}  // namespace trainyard::cli
