#include "cli/shared_words.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command_job.h"
#include "cli/value_kinds.h"
#include "job/task_keys.h"

namespace trainyard::cli {
namespace {

constexpr const char* kOfCommand = "Of a command behind '--', as the keys of a task";

struct FlagWords {
  const char* kind;
  const char* about;
};

/// By TaskKey.
constexpr std::array<FlagWords, job::kTaskKeys> kFlags{{
    {.kind = value_kinds::kSize, .about = "Memory that is reserved for it: 3GB, 'at least 3GB'"},
    {.kind = "none|hard", .about = "Whether it is ended when it takes more memory than that"},
    {.kind = "true|false", .about = "Whether it may be interrupted when memory runs short"},
    {.kind = value_kinds::kNumber, .about = "The larger goes first of those that wait"},
    {.kind = value_kinds::kSignal,
     .about = "What it gets so many seconds before any TERM: USR1@120"},
    {.kind = "true|false", .about = "Whether another try goes on from what this one has saved"},
    {.kind = value_kinds::kNumber, .about = "How many CPUs it uses"},
    {.kind = value_kinds::kSize, .about = "How much of the run's disk is kept for it: 20GB"},
    {.kind = value_kinds::kNumber,
     .about = "How many GPUs, its own unless it says how much memory it takes"},
    {.kind = value_kinds::kSize, .about = "Memory on each GPU, which it then shares: 10GB, auto"},
    {.kind = "none|soft|hard",
     .about = "Whether it is kept to what of a shared GPU nobody else has"},
    {.kind = value_kinds::kShare, .about = "How much of a GPU it uses when it is alone there: 40%"},
    {.kind = value_kinds::kNumber,
     .about = "How many tasks may be on its GPU, it included; 0 is any number"},
    {.kind = value_kinds::kDevice, .about = "cpu, cuda, or cuda:1"},
    {.kind = "machine=NAME,gpu=NAME",
     .about = "On which machines and GPUs it may run: machine=lab*, gpu=H100"},
    {.kind = value_kinds::kTime, .about = "How long it is expected to take"},
    {.kind = value_kinds::kTime, .about = "How long it may take: 8h"},
    {.kind = value_kinds::kNumber, .about = "How often more it is tried after it has failed"},
    {.kind = value_kinds::kNumber, .about = "The same after memory ran out (2)"},
    {.kind = "time-limit", .about = "What --retries counts beside: time-limit"},
    {.kind = value_kinds::kTime, .about = "How long the first of these waits"},
    {.kind = value_kinds::kTime, .about = "Starts no earlier than so long after the run began"},
    {.kind = "success|failure|always", .about = "What must have become of what it needs"},
    {.kind = value_kinds::kNumber, .about = "How many processes it is"},
    {.kind = "built-in|mpirun|torchrun|srun", .about = "What starts these"},
    {.kind = "NUMBER|ROLE=NUMBER,...",
     .about = "How many workers that hear each other it is: 4, learner=1,collector=2"},
    {.kind = "true|false", .about = "It loads first, and then waits for a device to train on"},
    {.kind = value_kinds::kPattern,
     .about = "Finds numbers in what it prints: 'loss=(?P<loss>[0-9.e-]+)'"},
    {.kind = value_kinds::kResult, .about = "A variable of its environment; may be said again"},
    {.kind = value_kinds::kFile, .about = "The directory where it runs (default: this one)"},
}};

/// Which may stand without a value.
bool may_be_bare(job::TaskKey key) {
  return key == job::TaskKey::TwoPhase || key == job::TaskKey::Preempt ||
         key == job::TaskKey::Checkpoint;
}

}  // namespace

void add_configuration(CLI::App& command, std::string& file, std::vector<std::string>& settings) {
  command.add_option("--config", file, "Configuration file (default: ./trainyard.yaml)")
      ->type_name(value_kinds::kFile);
  command.add_option("--set", settings, "A setting, as in --set scheduler.max-process=4")
      ->type_name(value_kinds::kSetting)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void add_run_name(CLI::App& command, std::string& run) {
  command
      .add_option("run,--run-dir", run,
                  "Which run: its number, its name, its directory, or its job file\n"
                  "(default: the latest under ./runs, one at work first)")
      ->type_name(value_kinds::kRun)
      ->check(why_no_run_name);
}

std::string why_no_run_name(const std::string& typed) {
  return typed.empty() ? "'' names no run" : "";
}

void add_command_words(CLI::App& command, CommandWords& words) {
  const auto add = [&command](const std::string& name, auto& into, const char* about) {
    return command.add_option(name, into, about)->group(kOfCommand);
  };
  add("--each-line", words.each_line,
      "A file with a command for the shell in each line; '-' reads them here")
      ->type_name(value_kinds::kFile);
  add("--name", words.name, "What the run is called (default: as the program)")
      ->type_name(value_kinds::kName);
  add("--matrix", words.matrix,
      "A task for each value, {lr} in the command: lr=1e-3,3e-4; may be said again")
      ->type_name(value_kinds::kResult)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    const FlagWords& flag = kFlags.at(std::to_underlying(info.key));
    add(fmt::format("--{}", info.name), words.keys.at(std::to_underlying(info.key)), flag.about)
        ->type_name(flag.kind)
        ->expected(may_be_bare(info.key) ? 0 : 1, 1)
        ->allow_extra_args(false)
        ->take_all();
  }
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
