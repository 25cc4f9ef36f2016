#include "cli/shared_words.h"

#include <algorithm>
#include <array>
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

namespace trainyard::cli {
namespace {

struct FlagWords {
  const char* group;  ///< The group in `trainyard help task-options`.
  const char* kind;
  const char* about;
  /// The text in the help of `run` and `submit`; null: not listed there.
  const char* short_about = nullptr;
};

/// By TaskKey.
constexpr std::array<FlagWords, job::kTaskKeys> kFlags{{
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kSize,
     .about = "Reserved memory: 3GB, 'at least 3GB' (default: see below)",
     .short_about = "Memory: 3GB (default: learned, or up to 2 GB a CPU)"},
    {.group = option_groups::kTaskResources,
     .kind = "none|hard",
     .about = "Kill a task above its memory, no retry (default: none)"},
    {.group = option_groups::kTaskScheduling,
     .kind = "true|false",
     .about = "Interrupt and retry when memory is short (default: true)"},
    {.group = option_groups::kTaskScheduling,
     .kind = value_kinds::kNumber,
     .about = "Priority, -1000 to 1000, larger starts first (default: 0)"},
    {.group = option_groups::kTaskScheduling,
     .kind = value_kinds::kSignal,
     .about = "Send SIGUSR1 120 s before SIGTERM: USR1@120 (default: none)"},
    {.group = option_groups::kTaskRetries,
     .kind = "true|false",
     .about = "Retries continue from its checkpoints (default: false)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kNumber,
     .about = "CPUs: 2, 0.5 (default: 1, or a share per GPU task)",
     .short_about = "CPUs: 2, 0.5 (default: 1, or a share per GPU task)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kSize,
     .about = "Disk space to reserve: 20GB (default: 0)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kNumber,
     .about = "Number of GPUs, whole or with --gpu-memory (default: 0)",
     .short_about = "Number of whole GPUs (default: 0)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kSize,
     .about = "Reserved memory on each GPU, which is shared: 10GB, auto",
     .short_about = "Share a GPU and reserve this memory: 10GB, auto"},
    {.group = option_groups::kTaskResources,
     .kind = "none|soft|hard",
     .about = "Cap the task's memory on a shared GPU (default: soft)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kShare,
     .about = "Share of a GPU that the task uses when alone there: 40%"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kNumber,
     .about = "Maximum tasks on its GPU: 1 to 32 (default: no limit)"},
    {.group = option_groups::kTaskResources,
     .kind = value_kinds::kDevice,
     .about = "Device: cpu, cuda, or cuda:1 (default: by --gpus)"},
    {.group = option_groups::kTaskResources,
     .kind = "machine=NAME,gpu=NAME",
     .about = "Machines and GPUs: machine=lab*, gpu=H100 (default: any)"},
    {.group = option_groups::kTaskScheduling,
     .kind = value_kinds::kTime,
     .about = "Expected run time, to order tasks: 30m (default: learned)"},
    {.group = option_groups::kTaskScheduling,
     .kind = value_kinds::kTime,
     .about = "Time limit of an attempt: 8h (default: 0, no limit)",
     .short_about = "Time limit of an attempt: 8h (default: 0, no limit)"},
    {.group = option_groups::kTaskRetries,
     .kind = value_kinds::kNumber,
     .about = "Retries after a failure, not a timeout (default: 0)",
     .short_about = "Retries after a failure, not a timeout (default: 0)"},
    {.group = option_groups::kTaskRetries,
     .kind = value_kinds::kNumber,
     .about = "Number of retries after running out of memory (default: 2)"},
    {.group = option_groups::kTaskRetries,
     .kind = "time-limit",
     .about = "Also use --retries when the time limit is exceeded"},
    {.group = option_groups::kTaskRetries,
     .kind = value_kinds::kTime,
     .about = "Delay before a retry, doubled each time: 30s (default: 0)"},
    {.group = option_groups::kTaskScheduling,
     .kind = value_kinds::kTime,
     .about = "Wait this long after the start of the run: 1h (default: 0)"},
    {.group = option_groups::kTaskNeeds,
     .kind = "success|failure|always",
     .about = "Required outcome of the needed runs (default: success)"},
    {.group = option_groups::kTaskProcesses,
     .kind = value_kinds::kNumber,
     .about = "Number of ranks: processes of one data-parallel task"},
    {.group = option_groups::kTaskProcesses,
     .kind = "built-in|mpirun|torchrun|srun",
     .about = "Launcher of the ranks, with --ranks (default: built-in)"},
    {.group = option_groups::kTaskProcesses,
     .kind = "NUMBER|ROLE=NUMBER,...",
     .about = "Number of workers: 4, or learner=1,collector=2"},
    {.group = option_groups::kTaskProcesses,
     .kind = "true|false",
     .about = "Load data, then wait for a device (default: false)"},
    {.group = option_groups::kTaskOutput,
     .kind = value_kinds::kPattern,
     .about = "Read numbers from the output: 'loss=(?P<loss>[0-9.e-]+)'"},
    {.group = option_groups::kTaskOutput,
     .kind = value_kinds::kResult,
     .about = "Environment variable; repeatable"},
    {.group = option_groups::kTaskOutput,
     .kind = value_kinds::kDirectory,
     .about = "Working directory (default: this one)"},
}};

/// Whether the key may be given without a value.
bool may_be_bare(job::TaskKey key) {
  return key == job::TaskKey::TwoPhase || key == job::TaskKey::Preemptible ||
         key == job::TaskKey::Checkpoint;
}

}  // namespace

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

std::string directory_as_job_file(const std::string& typed) {
  constexpr std::size_t kNamedMax = 3;
  std::vector<std::string> files;
  bool has_runs = false;
  std::error_code error;
  for (std::filesystem::directory_iterator it(typed, error), end; !error && it != end;
       it.increment(error)) {
    const std::filesystem::path path = it->path().lexically_normal();
    std::error_code ignored;
    const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
    if (is_yaml && path.filename() != settings::kConfigurationFile) files.push_back(path.string());
    has_runs = has_runs || std::filesystem::exists(run::journal_path(path.string()), ignored);
  }
  std::ranges::sort(files);
  const std::string what = fmt::format("'{}' is a directory, not a job file", typed);
  if (files.size() > kNamedMax) return what + "; name one of the .yaml files in it";
  if (!files.empty()) {
    return fmt::format("{} (did you mean {}?)", what,
                       list_text(files, {.word = "or", .quote = "'"}));
  }
  if (!has_runs) return what + "; it contains no .yaml file";
  return fmt::format("{}; 'trainyard run --resume {}' continues a run in it", what,
                     (std::filesystem::path(typed) / "NAME").lexically_normal().string());
}

void add_command_words(CLI::App& command, CommandWords& words) {
  const bool is_topic = command.get_name() == kTaskOptionsTopic;
  const auto add = [&](const std::string& name, auto& into, const FlagWords& flag) {
    const bool is_short = flag.short_about != nullptr && !is_topic;
    return command.add_option(name, into, is_short ? flag.short_about : flag.about)
        ->group(is_short ? option_groups::kTask : flag.group)
        ->type_name(flag.kind);
  };
  add("--name", words.name,
      {.group = option_groups::kTaskCommand,
       .kind = value_kinds::kName,
       .about = "Name of the run (default: the script or program)",
       .short_about = "Name of the run (default: the script or program)"})
      ->check([](const std::string& typed) {
        return typed.empty() ? std::string("'' is not a valid name") : std::string();
      });
  add("--matrix", words.matrix,
      {.group = option_groups::kTaskCommand,
       .kind = value_kinds::kResult,
       .about = "A task per value: lr=1,2 or seed=0..3; repeatable",
       .short_about = "A task per value: lr=1,2 or seed=0..3; repeatable"})
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add("--each-line", words.each_line,
      {.group = option_groups::kTaskCommand,
       .kind = value_kinds::kFile,
       .about = "One task for each line, a shell command; '-': standard input"});
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    add(fmt::format("--{}", info.name), words.keys.at(std::to_underlying(info.key)),
        kFlags.at(std::to_underlying(info.key)))
        ->expected(may_be_bare(info.key) ? 0 : 1, 1)
        ->allow_extra_args(false)
        ->take_all();
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
      "  trainyard run --matrix lr=1e-3,3e-4 --matrix seed=0..3 -- ./train.sh {lr} {seed}\n"
      "  trainyard submit --each-line commands.txt\n"
      "\n"
      "In a job file these are keys of a task: see docs/job-file.md.\n"
      "Without --memory a task reserves 10 % more than finished tasks of its group used in this\n"
      "run or in earlier runs of the job file ('trainyard learned'). While fewer than five have\n"
      "finished, it is 20 %. Without such tasks it reserves up to 2 GB a CPU. Earlier runs\n"
      "without a task of a second or longer do not count.\n"
      "Up to half of --retry-delay is added to each delay, so that retries do not coincide.\n"
      "Sizes: 1 GB is 1000 MB; 1 GiB or 1G is 1024 MiB. Output is in GB: 4G is shown as 4.3 GB.\n"
      "The command is one task and runs in the current directory. A single word after '--' runs\n"
      "in bash. Braces are replaced only with --matrix. Each command is a new run:\n"
      "runs/<name>, then runs/<name>-2 and so on. With '--run-dir x' it is x, then x-2.\n"
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
