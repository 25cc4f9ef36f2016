#include "cli/did_you_mean.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest.h"
#include "cli/command_name.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "job/program_as_job.h"
#include "job/task_keys.h"
#include "settings/configuration.h"
#include "text/placeholder.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

using namespace std::string_view_literals;

/// Advice for words of other tools, for which a command has no name.
struct OtherWay {
  std::string_view cure;      ///< "{}" is the number that was typed.
  std::string_view words;     ///< Separated by blanks, without "--".
  std::string_view commands;  ///< Separated by blanks; "trainyard" for words in place of a command.
};
constexpr std::string_view kRuns =
    "'trainyard status' shows active runs, 'trainyard clean --older 0s --dry-run' lists ended ones";
constexpr auto kOtherWays = std::to_array<OtherWay>({
    {.cure = kRuns, .words = "ls list runs history", .commands = "trainyard"},
    {.cure = "'trainyard run --dry-run' checks a job file",
     .words = "validate check",
     .commands = "trainyard"},
    {.cure = "'trainyard logs -f' follows the output of tasks",
     .words = "attach",
     .commands = "trainyard"},
    {.cure = "'trainyard drain gpu:2 --end' makes a GPU available again",
     .words = "undrain",
     .commands = "trainyard"},
    {.cure = "'trainyard logs ... | tail -n 20' shows the last lines",
     .words = "tail lines -n",
     .commands = "logs"},
    {.cure = "'trainyard results ... | head -n 20' shows the first lines",
     .words = "head limit lines -n",
     .commands = "results"},
    {.cure = "the output of tasks is in the run directory, and 'trainyard logs' shows it",
     .words = "output -o",
     .commands = "run submit"},
    {.cure = "'trainyard results --csv > results.csv' writes a file",
     .words = "output -o",
     .commands = "results"},
    {.cure = "the job file needs no option before it",
     .words = "file -f",
     .commands = "run submit plan"},
    {.cure = "'trainyard run --detach' prints only the number of the run",
     .words = "quiet -q",
     .commands = "run"},
    {.cure = "'--set scheduler.max-process={}' limits the tasks that run at once",
     .words = "jobs max-parallel max-procs parallel -j -n",
     .commands = "run submit plan"},
    {.cure = "'trainyard submit --needs RUN' starts after another run",
     .words = "dependency depends-on after",
     .commands = "run"},
    {.cure = "'timeout 1h trainyard wait ...' waits for at most an hour",
     .words = "timeout",
     .commands = "wait"},
    {.cure = "tasks always get SIGTERM, then SIGKILL: 'trainyard kill TASK'",
     .words = "-9 -15 -KILL -TERM -s signal",
     .commands = "kill"},
    {.cure = "to kill all tasks of a run, type: trainyard kill RUN '*'",
     .words = "all",
     .commands = "kill"},
    {.cure = "'trainyard clean --older 0s --dry-run' shows what would be deleted of all runs here",
     .words = "all *",
     .commands = "clean"},
    {.cure = "name the tasks without an option: trainyard retry RUN lr=1e-3",
     .words = "only",
     .commands = "retry"},
    {.cure = "name the tasks without an option: trainyard logs lr=1e-3",
     .words = "task tasks",
     .commands = "logs"},
    {.cure = "without names of tasks, 'trainyard retry' runs all failed ones again",
     .words = "failed retry-failed resume-failed rerun-failed",
     .commands = "run retry"},
    {.cure = "'fail-fast: true' in a group of the job file kills its tasks when one fails",
     .words = "halt",
     .commands = "run submit plan"},
    {.cure = "'--over seed' averages over the key 'seed', for each combination of the other keys",
     .words = "group-by by mean",
     .commands = "results"},
    {.cure = "'--sort -COLUMN' shows the tasks with the largest value in this column first",
     .words = "best top",
     .commands = "results"},
    {.cure = "'--where acc>0.9' shows only the tasks that meet a condition",
     .words = "filter",
     .commands = "results"},
    {.cure = "'--csv', '--markdown' and '--json' set the format",
     .words = "format",
     .commands = "results"},
    {.cure = "name the state without an option, as :failed",
     .words = "failed",
     .commands = "status logs"},
    {.cure = "'trainyard hold' keeps waiting tasks of a run from starting",
     .words = "hold",
     .commands = "run"},
    {.cure = "'trainyard submit --needs RUN' starts after another run",
     .words = "hold",
     .commands = "submit"},
    {.cure = "'trainyard run --on HOSTS' runs a job on other machines",
     .words = "nodes -N",
     .commands = "submit"},
});

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

/// Whether a word that is not a command of `app` may be a value.
bool takes_values(const CLI::App& app) {
  return std::ranges::any_of(app.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

/// Null if there is no such command.
const CLI::App* command_of(const CLI::App& app, std::string_view name) {
  for (const CLI::App* const command : commands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

/// The option of this command: "--resume" of `run`. Null if there is no such command or option.
const CLI::Option* option_of(const CLI::App& app, std::string_view name,
                             const std::string& option) {
  const CLI::App* const command = command_of(app, name);
  return command == nullptr ? nullptr : command->get_option_no_throw(option);
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

/// Whether the word after this one is its value: "--run-dir", but not "--json" or "--set=a=b".
bool takes_next_word(const CLI::App& command, const std::string& word) {
  const CLI::Option* const option =
      word.starts_with('-') ? command.get_option_no_throw(word) : nullptr;
  return option != nullptr && option->get_items_expected_min() > 0;
}

/// "trainyard status --json", for an option before the command that has it; else empty.
std::string after_command(const CLI::App& app, std::span<const char* const> words,
                          std::size_t option) {
  const std::string typed = words[option];
  const std::string name = typed.substr(0, typed.find('='));
  for (std::size_t at = option + 1; at < words.size(); ++at) {
    const auto commands = app.get_subcommands(
        [&](const CLI::App* command) { return command->check_name(words[at]); });
    if (commands.empty() || takes_next_word(*commands.front(), words[at - 1])) continue;
    if (commands.front()->get_option_no_throw(name) == nullptr) return {};
    std::string line = fmt::format("{} {}", app.get_name(), words[at]);
    for (const char* const word : words.subspan(1, at - 1)) line += " " + text::shell_word(word);
    for (const char* const word : words.subspan(at + 1)) line += " " + text::shell_word(word);
    return line;
  }
  return {};
}

/// "trainyard retry 46 lr=0.1": the words of the command at `words[1]` as a line of the command
/// `name`, without the option at `option`, its value, and options that `name` does not have.
std::string line_without(const CLI::App& app, std::string_view name,
                         std::span<const char* const> words, std::size_t option, bool has_value) {
  const CLI::App* const from = command_of(app, words[1]);
  std::string line = fmt::format("{} {}", app.get_name(), name);
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string word = words[at];
    const bool is_removed = at == option;
    const bool takes_next =
        is_removed ? has_value : from != nullptr && takes_next_word(*from, word);
    const bool is_kept = !is_removed && (!word.starts_with('-') ||
                                         option_of(app, name, word.substr(0, word.find('='))));
    if (is_kept) line += " " + text::shell_word(word);
    if (takes_next && ++at < words.size() && is_kept) line += " " + text::shell_word(words[at]);
  }
  return line;
}

/// What to do instead of an option ("--lr") of another command, or of the user's program, in a
/// command that is at `words[1]`; empty: there is nothing to say about it.
std::string option_elsewhere(const CLI::App& app, std::span<const char* const> words,
                             std::size_t option) {
  const std::string_view command = words[1];
  const std::string typed = words[option];
  const std::string name = typed.substr(0, typed.find('='));
  const std::string key = name.substr(2);
  const std::string next = option + 1 < words.size() ? words[option + 1] : "";
  const auto takes_it = [&app, &name](std::string_view other) {
    const CLI::Option* const meant = option_of(app, other, name);
    return meant != nullptr && meant->get_items_expected_min() > 0;
  };
  const bool has_next = name == typed && !next.empty();
  const std::string setting =
      text::shell_word(typed) + (has_next ? " " + text::shell_word(next) : "");
  if (command == "update" && takes_it("retry")) {
    return fmt::format("'{} {}' sets it when a task runs again",
                       line_without(app, "retry", words, option, has_next), setting);
  }
  if (command == "retry" && takes_it("update")) {
    return fmt::format("'{} {}' sets it", line_without(app, "update", words, option, has_next),
                       setting);
  }
  if (command == "retry") {
    const auto keys = job::task_keys();
    const auto found = std::ranges::find(keys, key, &job::TaskKeyInfo::name);
    if (found != keys.end()) {
      const bool has_value = has_next && !found->flag.may_be_bare;
      return fmt::format("change '{}' in the job file, then type: {}", key,
                         line_without(app, "retry", words, option, has_value));
    }
  }
  const bool has_job = std::ranges::any_of(
      words.subspan(2), [](const char* word) { return job::is_named_as_job(word); });
  const std::string value = name != typed ? typed.substr(name.size() + 1) : next;
  if (!has_job || !takes_command(std::string(command)) || !text::is_identifier(key) ||
      value.empty() || value.starts_with('-') || job::is_named_as_job(value)) {
    return {};
  }
  std::string text = "an option of your program belongs to its command in the job file";
  if (option_of(app, command, "--only") != nullptr) {
    text += fmt::format(", and '--only {}' selects tasks by a matrix value",
                        text::shell_word(fmt::format("{}={}", key, value)));
  }
  return text;
}

/// Whether a word is surely a program or a script: "python3", "./train", "fit.py".
bool is_program(std::string_view word) {
  return is_runner(word) || word.contains('/') ||
         !job::command_of_script(std::string(word)).empty();
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

/// The setting that an unknown option names: "scheduler.max-process" for "--max-process". Nothing for
/// a command without --set, and for a single word, which may be an option of any program.
std::optional<std::string_view> setting_near(std::string_view option,
                                             const std::vector<std::string>& options) {
  constexpr std::string_view kScheduler = "scheduler.";
  if (!option.starts_with("--") || std::ranges::find(options, "--set") == options.end()) return {};
  std::vector<std::string_view> names;
  std::vector<std::string_view> keys;
  const auto add = [&](std::string_view name, std::string_view key) {
    if (name.find_first_of(".-") == std::string_view::npos) return;
    names.push_back(name);
    keys.push_back(key);
  };
  for (const settings::SettingInfo& setting : settings::settings()) {
    add(setting.key, setting.key);
    if (setting.key.starts_with(kScheduler)) {
      add(setting.key.substr(kScheduler.size()), setting.key);
    }
  }
  const std::optional<std::string_view> near = nearest(option.substr(2), names);
  if (!near) return std::nullopt;
  return keys[static_cast<std::size_t>(std::ranges::find(names, *near) - names.begin())];
}

/// A word that looks like an option: "--jobs", "--jobs=8", "-j8", and the word after it.
struct TypedOption {
  std::string_view name;
  /// The number that was typed for it, else one as an example: of a limit, 0 means none.
  std::string_view number = "4";
};

TypedOption typed_option(std::string_view word, std::string_view next) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t end = std::min(word.find('='), word.size());
  const bool is_short = end > 2 && !word.starts_with("--") && !kDigits.contains(word[1]);
  if (is_short && word.find_first_not_of(kDigits, 2) == std::string_view::npos) end = 2;
  TypedOption typed{.name = word.substr(0, end)};
  const std::string_view value = end == word.size() ? next : word.substr(end + (word[end] == '='));
  const bool is_number =
      !value.empty() && value.find_first_not_of(kDigits) == std::string_view::npos;
  if (is_number && value.find_first_not_of('0') != std::string_view::npos) typed.number = value;
  return typed;
}

/// `elsewhere` stands in the place of the help where nothing is near; may be empty.
std::string unknown(std::string_view what, const TypedOption& typed,
                    const std::vector<std::string>& right, std::string_view command,
                    const std::string& elsewhere = {}) {
  const std::string_view word = typed.name;
  const std::vector<std::string_view> candidates(right.begin(), right.end());
  const bool is_short = word.starts_with('-') && !word.starts_with("--");
  const std::string begin = (is_short ? "-" : "") + std::string(word);
  const std::string way = other_way(command.substr(command.rfind(' ') + 1), word, typed.number);
  if (!way.empty()) return fmt::format("unknown {} '{}'; {}", what, word, way);
  std::optional<std::string_view> near = nearest(word, candidates);
  if (!near) near = completed(begin, candidates);
  if (near) return fmt::format("unknown {} '{}' (did you mean '{}'?)", what, word, *near);
  if (const auto setting = setting_near(word, right)) {
    return fmt::format("unknown {} '{}' (did you mean '--set {}=...'?)", what, word, *setting);
  }
  if (!elsewhere.empty()) return fmt::format("unknown {} '{}'; {}", what, word, elsewhere);
  return fmt::format("unknown {} '{}'; '{} --help' lists them", what, word, command);
}

}  // namespace

std::string other_way(std::string_view command, std::string_view word, std::string_view number) {
  const auto way = std::ranges::find_if(kOtherWays, [&](const OtherWay& other) {
    return is_among(command, other.commands) && is_among(word, other.words);
  });
  if (way == kOtherWays.end()) return {};
  std::string cure(way->cure);
  if (const std::size_t at = cure.find("{}"); at != std::string::npos) cure.replace(at, 2, number);
  return cure;
}

std::string as_command(std::span<const char* const> words) {
  const std::string script = job::command_of_script(words.front());
  std::string text = script.empty() ? text::shell_word(words.front()) : script;
  for (const char* const word : words.subspan(1)) text += " " + text::shell_word(word);
  return text;
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
      if (const CLI::Option* const meant = option_of(app, "run", std::string(name));
          meant != nullptr && takes_command(here->get_name())) {
        return fmt::format("unknown option '{}' (did you mean '{}'?)", name,
                           as_run(app, *meant, words.subspan(2, at - 2), words.subspan(at + 1)));
      }
      if (const std::string line = here == &app ? after_command(app, words, at) : "";
          !line.empty()) {
        return fmt::format("options follow the command: {}", line);
      }
      const std::string_view next = at + 1 < words.size() ? words[at + 1] : "";
      return unknown("option", typed_option(word, next), options, command,
                     here == &app ? std::string() : option_elsewhere(app, words, at));
    }
    const std::vector<const CLI::App*> commands = commands_of(*here);
    // The word is a value if no commands are left.
    if (commands.empty()) continue;
    if (word.starts_with('-')) {
      // CLI11 would say that a command is missing.
      const bool is_known = here->get_option_no_throw(std::string(word)) != nullptr;
      if (is_known || takes_values(*here)) continue;
      if (const std::string line = here == &app ? after_command(app, words, at) : "";
          !line.empty()) {
        return fmt::format("options follow the command: {}", line);
      }
      return unknown("option", typed_option(word, {}), options_of(*here), command);
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
      if (const CLI::Option* const meant = option_of(app, "run", fmt::format("--{}", word));
          meant != nullptr && here == &app && !nearest(word, near)) {
        // With its value missing, `run` and this option would show no help.
        if (words.back() == "--help"sv) {
          const bool is_of_task = option_of(app, kTaskOptionsTopic, meant->get_name()) != nullptr;
          return fmt::format("unknown command '{}'; '{} help {}' shows the option '{}'", word,
                             command, is_of_task ? kTaskOptionsTopic : "run", meant->get_name());
        }
        return fmt::format("unknown command '{}' (did you mean '{}'?)", word,
                           as_run(app, *meant, {}, words.subspan(at + 1)));
      }
      if (here == &app && job::is_named_as_job(std::string(word))) {
        return fmt::format("unknown command '{0}' (did you mean '{1} run {0}'?)", word, command);
      }
      if (here == &app && !nearest(word, near) && is_program(word)) {
        return fmt::format(
            "unknown command '{}'; to run a program, write it after 'run --': {} run -- {}", word,
            command, as_command(words.subspan(at)));
      }
      return unknown("command", {.name = word}, names, command);
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
    if (word == "--help" || word == "-h") continue;
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

std::string unknown_option(const CLI::App& command, std::string_view word, std::string_view next) {
  std::string name = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != nullptr;
       above = above->get_parent()) {
    name = above->get_name() + " " + name;
  }
  return unknown("option", typed_option(word, next), options_of(command), name);
}

}  // namespace trainyard::cli
