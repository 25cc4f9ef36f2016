#include "cli/shared_words.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/list_text.h"
#include "cli/command_job.h"
#include "cli/help_format.h"
#include "cli/value_kinds.h"
#include "job/task_keys.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::cli {

void add_configuration(CLI::App& command, std::string& file, std::vector<std::string>& settings) {
  command.add_option("--config", file, "Configuration file (default: ./trainyard.yaml)")
      ->type_name(value_kinds::kFile);
  command.add_option("--set", settings, "Setting: scheduler.max-process=4; repeatable")
      ->type_name(value_kinds::kSetting)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON")->group(option_groups::kOutput);
}

std::string empty_run_error(const std::string& typed) {
  return typed.empty() ? "'' is not the name of a run" : "";
}

std::string empty_job_file_error(const std::string& typed) {
  return typed.empty() ? "'' is not a job file" : "";
}

std::string resume_run_in(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (!sys::exists(run::journal_path(it->path().string()))) continue;
    const std::string run = (std::filesystem::path(directory) / "NAME").lexically_normal().string();
    return text::quoted_command("trainyard run --resume " + text::shell_word(run)) +
           " continues a run in it";
  }
  return {};
}

std::string directory_as_job_file(const std::string& typed) {
  constexpr std::size_t kNamedMax = 3;
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(typed, error), end; !error && it != end;
       it.increment(error)) {
    const std::filesystem::path path = it->path().lexically_normal();
    const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
    if (is_yaml && path.filename() != settings::kConfigurationFile) files.push_back(path.string());
  }
  std::ranges::sort(files);
  const std::string what = fmt::format("'{}' is a directory, not a job file", typed);
  if (files.size() > kNamedMax) return what + "; name one of the .yaml files in it";
  if (!files.empty()) {
    return fmt::format("{} (did you mean {}?)", what,
                       list_text(files, {.word = "or", .quote = "'"}));
  }
  const std::string cure = resume_run_in(typed);
  return fmt::format("{}; {}", what, cure.empty() ? "it contains no .yaml file" : cure);
}

void add_command_words(CLI::App& command, CommandWords& words) {
  const bool is_topic = command.get_name() == kTaskOptionsTopic;
  const auto add = [&](const std::string& name, auto& into, const job::TaskFlag& flag) {
    const bool is_short = !flag.short_about.empty() && !is_topic;
    return command.add_option(name, into, std::string(is_short ? flag.short_about : flag.about))
        ->group(is_short ? option_groups::kTask
                         : fmt::format("{}{}", option_groups::kTaskPrefix, flag.group))
        ->type_name(std::string(flag.kind));
  };
  constexpr std::string_view kCommands = "Commands";
  add("--name", words.name,
      {.group = kCommands,
       .kind = value_kinds::kName,
       .about = "Name of the run (default: the script or program)",
       .short_about = "Name of the run (default: the script or program)"})
      ->check([](const std::string& typed) {
        return typed.empty() ? std::string("'' is not a valid name") : std::string();
      });
  add("--matrix", words.matrix,
      {.group = kCommands,
       .kind = value_kinds::kResult,
       .about = "A task per value: lr=1,2 or seed=0..3; repeatable",
       .short_about = "A task per value: lr=1,2 or seed=0..3; repeatable"})
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add("--each-line", words.each_line,
      {.group = kCommands,
       .kind = value_kinds::kFile,
       .about = "One task for each line, a shell command; '-': standard input"});
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    CLI::Option* const option =
        add(fmt::format("--{}", info.name), words.keys.at(std::to_underlying(info.key)), info.flag)
            ->expected(info.flag.may_be_bare ? 0 : 1, 1)
            ->allow_extra_args(false);
    if (info.key == job::TaskKey::Environment) option->take_all();
  }
}

void add_task_options_topic(CLI::App& app, CommandWords& words) {
  CLI::App* const topic =
      app.add_subcommand(kTaskOptionsTopic, "Options of a task, for run and submit");
  topic->group(command_groups::kPlumbing);
  add_command_words(*topic, words);
  topic->footer(
      "Examples:\n"
      "  trainyard run --gpu-memory 10GB --time-limit 8h -- python3 train.py --lr 3e-4\n"
      "  trainyard run --matrix lr=1e-3,3e-4 --matrix seed=0..3 -- ./run.sh {lr} {seed}\n"
      "  trainyard submit --each-line commands.txt\n"
      "\n"
      "In a job file these are keys of a task: see docs/job-file.md.\n"
      "Without --memory, a task reserves what finished tasks of its group used in this run, plus\n"
      "20 % (10 % after five tasks), or in earlier runs of the job file ('trainyard learned'),\n"
      "plus 10 %. Without such tasks, it reserves up to 2 GB a CPU. Earlier runs in which every\n"
      "task took less than a second do not count.\n"
      "Up to half of --retry-delay is added to each delay, so that retries do not coincide.\n"
      "Sizes: 1 GB is 1000 MB; 1 GiB or 1G is 1024 MiB. Output is in GB: 4G is shown as 4.3 GB.\n"
      "The command is one task and runs in the current directory. A single word after '--' runs\n"
      "in bash. Braces are replaced only with --matrix. Each command is a new run, in\n"
      "runs/<name>, then runs/<name>-2 and so on, or with '--run-dir x' in x, then x-2.\n"
      "A script with --two-phase must report that it has loaded and trained ('import trainyard'),\n"
      "or the task fails. Numbers of --metrics are added to the result that the task writes.");
}

bool takes_command(const std::string& command) { return command == "run" || command == "submit"; }

std::vector<const char*> without_command(const std::vector<const char*>& words,
                                         std::vector<std::string>& command) {
  if (words.size() < 2 || !takes_command(words[1])) return words;
  const auto separator = std::ranges::find(words, std::string_view("--"),
                                           [](const char* word) { return std::string_view(word); });
  if (separator == words.end()) return words;
  command.assign(separator + 1, words.end());
  return {words.begin(), separator};
}

}  // namespace trainyard::cli
