#include "cli/did_you_mean.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest.h"
#include "cli/command_name.h"
#include "cli/shared_words.h"
#include "job/program_as_job.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Whether a word that is none of its commands may be a value.
bool takes_values(const CLI::App& app) {
  return std::ranges::any_of(app.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

/// The option of `run` of this name: "--resume". Null if `run` has no such option.
const CLI::Option* option_of_run(const CLI::App& app, const std::string& option) {
  for (const CLI::App* const command : commands_of(app)) {
    if (command->get_name() == "run") return command->get_option_no_throw(option);
  }
  return nullptr;
}

/// "trainyard run --resume runs/a": the option of `run` as it can be typed, in its place among the
/// words around it. Without other words its value has the name of its kind: RUN.
std::string as_run(const CLI::App& app, const CLI::Option& option,
                   std::span<const char* const> before, std::span<const char* const> after) {
  std::string line = app.get_name() + " run";
  for (const char* const word : before) line += " " + text::shell_word(word);
  line += " " + option.get_name();
  for (const char* const word : after) line += " " + text::shell_word(word);
  const bool takes_value = option.get_items_expected_max() > 0;
  if (before.empty() && after.empty() && takes_value) line += " " + option.get_type_name();
  return line;
}

/// Whether a word is surely a program or a script: "python3", "./train", "fit.py".
bool is_program(std::string_view word) {
  return is_runner(word) || word.contains('/') ||
         !job::command_of_script(std::string(word)).empty();
}

/// " python3 fit.py --lr 0.1", for the words of a command.
std::string as_command(std::span<const char* const> words) {
  const std::string script = job::command_of_script(words.front());
  std::string text = " " + (script.empty() ? text::shell_word(words.front()) : script);
  for (const char* const word : words.subspan(1)) text += " " + text::shell_word(word);
  return text;
}

/// The only one of them that `begin` begins.
std::optional<std::string_view> completed(std::string_view begin,
                                          const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> found;
  for (const std::string_view candidate : candidates) {
    if (!candidate.starts_with(begin)) continue;
    if (found) return std::nullopt;
    found = candidate;
  }
  return found;
}

/// What does the work of an option, or a command, that other tools have.
struct OtherWay {
  std::string_view command;
  std::string_view option;
  std::string_view cure;
};
constexpr std::string_view kOutputOfTasks =
    "the output of tasks is in the run directory, and 'trainyard logs' shows it";
constexpr std::string_view kNoSignal =
    "tasks always get SIGTERM, then SIGKILL: 'trainyard kill TASK'";
constexpr std::string_view kLastLines = "'trainyard logs ... | tail -n 20' shows the last lines";
constexpr std::string_view kRuns =
    "'trainyard status' shows active runs, 'trainyard clean --older 0s --dry-run' lists ended ones";
constexpr std::array<OtherWay, 20> kOtherWays{
    {{.command = "trainyard", .option = "ls", .cure = kRuns},
     {.command = "trainyard", .option = "list", .cure = kRuns},
     {.command = "trainyard", .option = "runs", .cure = kRuns},
     {.command = "trainyard", .option = "history", .cure = kRuns},
     {.command = "trainyard logs", .option = "--tail", .cure = kLastLines},
     {.command = "trainyard logs", .option = "--lines", .cure = kLastLines},
     {.command = "trainyard logs", .option = "-n", .cure = kLastLines},
     {.command = "trainyard run", .option = "--output", .cure = kOutputOfTasks},
     {.command = "trainyard submit", .option = "--output", .cure = kOutputOfTasks},
     {.command = "trainyard wait",
      .option = "--timeout",
      .cure = "'timeout 1h trainyard wait ...' waits for at most an hour"},
     {.command = "trainyard kill", .option = "-9", .cure = kNoSignal},
     {.command = "trainyard kill", .option = "-15", .cure = kNoSignal},
     {.command = "trainyard kill", .option = "-KILL", .cure = kNoSignal},
     {.command = "trainyard kill", .option = "-TERM", .cure = kNoSignal},
     {.command = "trainyard kill", .option = "-s", .cure = kNoSignal},
     {.command = "trainyard kill", .option = "--signal", .cure = kNoSignal},
     {.command = "trainyard kill",
      .option = "--all",
      .cure = "to kill all tasks of a run, type: trainyard kill RUN '*'"},
     {.command = "trainyard retry",
      .option = "--only",
      .cure = "name the tasks without an option: trainyard retry RUN lr=1e-3"},
     {.command = "trainyard retry",
      .option = "--failed",
      .cure = "without names of tasks, 'trainyard retry' runs all failed ones again"},
     {.command = "trainyard update",
      .option = "--memory",
      .cure = "'trainyard retry --memory' sets it for failed tasks that run again"}}};

std::string unknown(std::string_view what, std::string_view word,
                    const std::vector<std::string>& right, std::string_view command) {
  const std::vector<std::string_view> candidates(right.begin(), right.end());
  const bool is_short = word.starts_with('-') && !word.starts_with("--");
  const std::string begin = (is_short ? "-" : "") + std::string(word);
  for (const OtherWay& way : kOtherWays) {
    if (way.command != command || way.option != word) continue;
    return fmt::format("unknown {} '{}'; {}", what, word, way.cure);
  }
  std::optional<std::string_view> near = nearest(word, candidates);
  if (!near) near = completed(begin, candidates);
  return near ? fmt::format("unknown {} '{}' (did you mean '{}'?)", what, word, *near)
              : fmt::format("unknown {} '{}'; '{} --help' lists them", what, word, command);
}

}  // namespace

std::string parallel_option(const CLI::App& command, std::string_view word, std::string_view next) {
  constexpr std::array<std::string_view, 4> kOptions{"--jobs", "--max-parallel", "--max-procs",
                                                     "--parallel"};
  const bool is_short =
      word.starts_with("-j") && word.find_first_not_of("=0123456789", 2) == std::string_view::npos;
  const std::string_view name = word.substr(0, is_short ? 2 : word.find('='));
  if (!is_short && std::ranges::find(kOptions, name) == kOptions.end()) return {};
  if (command.get_option_no_throw("--set") == nullptr) return {};
  std::string_view count = word.substr(name.size());
  if (count.starts_with('=')) count.remove_prefix(1);
  if (count.empty()) count = next;
  const bool is_count =
      !count.empty() && count.find_first_not_of("0123456789") == std::string_view::npos;
  return fmt::format(
      "unknown option '{}'; '--set scheduler.max-process={}' limits the tasks that run at once",
      is_short ? word : name, is_count ? count : "4");
}

std::string unknown_word(const CLI::App& app, std::span<const char* const> words,
                         std::string_view cure) {
  const CLI::App* here = &app;
  std::string command = app.get_name();
  for (std::size_t at = 1; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--") break;
    if (word.starts_with("--")) {
      const std::string_view name = word.substr(0, word.find('='));
      const std::vector<std::string> options = options_of(*here);
      if (std::ranges::find(options, name) != options.end()) {
        // Its value may look like an option, as in --slurm '--nodes=2'.
        const CLI::Option* const option = here->get_option_no_throw(std::string(name));
        if (option != nullptr && option->get_items_expected_min() > 0 && name == word) ++at;
        continue;
      }
      if (!cure.empty()) return fmt::format("unknown option '{}'; {}", name, cure);
      if (const CLI::Option* const meant = option_of_run(app, std::string(name));
          meant != nullptr && takes_command(here->get_name())) {
        return fmt::format("unknown option '{}' (did you mean '{}'?)", name,
                           as_run(app, *meant, words.subspan(2, at - 2), words.subspan(at + 1)));
      }
      const std::string_view value = at + 1 < words.size() ? words[at + 1] : "";
      if (std::string limit = parallel_option(*here, word, value); !limit.empty()) return limit;
      return unknown("option", name, options, command);
    }
    const std::vector<const CLI::App*> commands = commands_of(*here);
    // Where there are no commands left it is a value.
    if (commands.empty()) continue;
    if (word.starts_with('-')) {
      // CLI11 would say that a command is missing.
      const bool is_known = here->get_option_no_throw(std::string(word)) != nullptr;
      if (is_known || takes_values(*here)) continue;
      return unknown("option", word, options_of(*here), command);
    }
    const auto next = std::ranges::find_if(
        commands, [&word](const CLI::App* it) { return it->check_name(std::string(word)); });
    if (next == commands.end()) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* known : commands) {
        names.push_back(known->get_name());
        for (const std::string& alias : known->get_aliases()) names.push_back(alias);
      }
      const std::vector<std::string_view> near(names.begin(), names.end());
      if (takes_values(*here) && !nearest(word, near)) continue;
      const std::vector<std::string> options = options_of(*here);
      if (const std::string option = fmt::format("--{}", word);
          std::ranges::find(options, option) != options.end()) {
        return fmt::format("unknown command '{}' (did you mean '{}'?)", word, option);
      }
      if (const CLI::Option* const meant = option_of_run(app, fmt::format("--{}", word));
          meant != nullptr && here == &app && !nearest(word, near)) {
        return fmt::format("unknown command '{}' (did you mean '{}'?)", word,
                           as_run(app, *meant, {}, words.subspan(at + 1)));
      }
      if (here == &app && job::is_named_as_job(std::string(word))) {
        return fmt::format("unknown command '{0}' (did you mean '{1} run {0}'?)", word, command);
      }
      if (here == &app && !nearest(word, near) && is_program(word)) {
        return fmt::format(
            "unknown command '{}'; to run a program, write it after 'run --': {} run --{}", word,
            command, as_command(words.subspan(at)));
      }
      return unknown("command", word, names, command);
    }
    here = *next;
    command += " " + here->get_name();
  }
  return {};
}

std::string unknown_topic(const CLI::App& app, std::span<const char* const> words) {
  if (std::string unknown = unknown_word(app, words); !unknown.empty()) return unknown;
  const CLI::App* here = &app;
  std::string topic;
  for (const std::string_view word : words.subspan(1)) {
    if (word.starts_with('-')) break;
    const std::vector<const CLI::App*> commands = commands_of(*here);
    const auto next = std::ranges::find_if(
        commands, [&word](const CLI::App* it) { return it->check_name(std::string(word)); });
    if (next == commands.end()) {
      return fmt::format("unexpected argument '{}'; '{} help{}' shows the help of one command",
                         word, app.get_name(), topic);
    }
    here = *next;
    topic += " " + here->get_name();
  }
  return {};
}

std::string unknown_option(const CLI::App& command, std::string_view word) {
  std::string name = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != nullptr;
       above = above->get_parent()) {
    name = above->get_name() + " " + name;
  }
  return unknown("option", word.substr(0, word.find('=')), options_of(command), name);
}

}  // namespace trainyard::cli
