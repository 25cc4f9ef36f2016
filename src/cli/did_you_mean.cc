#include "cli/did_you_mean.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/list_text.h"
#include "base/nearest.h"
#include "cli/command_words.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
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
    {.cure = "'trainyard run sweep.yaml' runs a job file, 'trainyard run -- python3 train.py' a "
             "command",
     .words = "train",
     .commands = "trainyard"},
    {.cure = "'trainyard run --dry-run' checks a job file",
     .words = "validate check",
     .commands = "trainyard"},
    {.cure = "'trainyard logs -f' follows the output of tasks",
     .words = "attach",
     .commands = "trainyard"},
    {.cure = "'trainyard drain gpu:2 --end' makes a GPU available again",
     .words = "undrain",
     .commands = "trainyard"},
    {.cure = "for the last lines, end the command with: | tail -n {}",
     .words = "tail lines -n",
     .commands = "logs"},
    {.cure = "for the first lines, end the command with: | head -n {}",
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
    {.cure = "for all tasks of a run, write RUN '*'",
     .words = "all",
     .commands = "kill retry hold release update"},
    {.cure = "'trainyard clean --older 0s --dry-run' shows what would be deleted of all runs here",
     .words = "all *",
     .commands = "clean"},
    {.cure = "name the tasks without an option: trainyard retry RUN lr=1e-3",
     .words = "only",
     .commands = "retry"},
    {.cure = "name the tasks without an option: trainyard logs lr=1e-3",
     .words = "task tasks",
     .commands = "logs"},
    {.cure = "'--gpus 1' requests a GPU; to use only GPU 0, write CUDA_VISIBLE_DEVICES=0 before "
             "'trainyard'",
     .words = "gpu",
     .commands = "run submit"},
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

/// The kind of the first argument of a command, as in its help; empty: it takes none.
std::string argument_kind(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) return option->get_type_name();
  }
  return {};
}

/// Whether an option is one of a task, which `run` and `submit` take with a command.
bool is_of_task(const CLI::App& app, const std::string& option) {
  const CLI::App* const topic = find_command(app, kTaskOptionsTopic);
  return topic != nullptr && topic->get_option_no_throw(option) != nullptr;
}

/// Whether a command only shows runs or waits for them.
bool only_reads(const CLI::App& command) {
  return command.get_group() == command_groups::kWatch || command.get_name() == "wait";
}

/// The command that has an option ("--resume") and takes the same arguments as `here`, or any
/// arguments if `here` is the program itself: `here` if it has the option. Null: none has it.
/// The command changes no runs if `here` only reads, and is `clean` only if `here` is. Commands
/// around a program, such as `parallel`, are left out: they need more words.
const CLI::App* command_with(const CLI::App& app, const CLI::App& here, const std::string& option) {
  const std::string kind = here.get_parent() == &app ? argument_kind(here) : "";
  // Words after a command without arguments, such as `ranks`, are those of a program.
  if (&here != &app && kind.empty()) return nullptr;
  if (here.get_option_no_throw(option) != nullptr) return &here;
  // Next to a job file, `run` refuses options of a task.
  if (kind == value_kinds::kJobFile && is_of_task(app, option)) return nullptr;
  for (const CLI::App* const command : commands_of(app)) {
    const bool fits = &here == &app || argument_kind(*command) == kind;
    const std::string& group = command->get_group();
    const bool is_listed = !group.empty() && group != command_groups::kPlumbing;
    // A typing mistake must not lead to a command that does harm.
    const bool is_harmless = command->get_name() != "clean" && !command->get_prefix_command() &&
                             (!only_reads(here) || only_reads(*command));
    if (fits && is_listed && is_harmless && command->get_option_no_throw(option) != nullptr)
      return command;
  }
  return nullptr;
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
    const CLI::App* const command = find_command(app, words[at]);
    if (command == nullptr || takes_next_word(*command, words[at - 1])) continue;
    if (command->get_option_no_throw(name) == nullptr) return {};
    std::string line = fmt::format("{} {}", app.get_name(), words[at]);
    for (const char* const word : words.subspan(1, at - 1)) line += " " + text::shell_word(word);
    for (const char* const word : words.subspan(at + 1)) line += " " + text::shell_word(word);
    return line;
  }
  return {};
}

/// "trainyard retry 46 lr=0.1": the words after a command in a line of `command`, without the
/// options that it does not have, and their values.
std::string line_of(const CLI::App& app, const CLI::App& command,
                    std::span<const char* const> words) {
  std::string line = fmt::format("{} {}", app.get_name(), command.get_name());
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string word = words[at];
    const bool is_kept = !word.starts_with('-') ||
                         command.get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
    if (is_kept) line += " " + text::shell_word(word);
    const bool has_value = std::ranges::any_of(
        commands_of(app), [&word](const CLI::App* each) { return takes_next_word(*each, word); });
    if (has_value && ++at < words.size() && is_kept) line += " " + text::shell_word(words[at]);
  }
  return line;
}

/// The cure for an option ("--lr") of another command, or of the user's program, in `here`; empty:
/// no cure is known. `program` has the words after '--', which the other command gets, too.
std::string option_elsewhere(const CLI::App& app, const CLI::App& here,
                             std::span<const char* const> words, std::size_t option,
                             std::span<const std::string> program) {
  if (std::string line = line_with_option(app, here, words, option); !line.empty()) {
    if (!program.empty()) line += " --";
    for (const std::string& word : program) line += " " + text::shell_word(word);
    return text::quoted_command(line) + " takes it";
  }
  const std::string command = here.get_name();
  const std::string typed = words[option];
  const std::string name = typed.substr(0, typed.find('='));
  const std::string key = name.substr(2);
  const std::string next = option + 1 < words.size() ? words[option + 1] : "";
  const auto keys = job::keys_of_task_options();
  if (command == "retry" && std::ranges::find(keys, key) != keys.end()) {
    return fmt::format("change '{}' in the job file, then type: {}", key,
                       line_of(app, here, words.subspan(2)));
  }
  const bool has_job = std::ranges::any_of(
      words.subspan(2), [](const char* word) { return job::is_named_as_job(word); });
  const std::string value = name != typed ? typed.substr(name.size() + 1) : next;
  if (!has_job || !takes_command(command) || !text::is_identifier(key) || value.empty() ||
      value.starts_with('-') || job::is_named_as_job(value)) {
    return {};
  }
  std::string text = "an option of your program belongs to its command in the job file";
  if (here.get_option_no_throw("--only") != nullptr) {
    text += fmt::format(
        ", and {} selects tasks by a matrix value",
        text::quoted_command("--only " + text::shell_word(fmt::format("{}={}", key, value))));
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

/// "unknown option '--foo'; 'trainyard run --help' lists the options", for one or several words.
std::string only_help(std::string_view what, const std::vector<std::string>& words,
                      std::string_view command) {
  return fmt::format("unknown {0}{1} {2}; '{3} --help' lists the {0}s", what,
                     words.size() == 1 ? "" : "s", list_text(words, {.quote = "'"}), command);
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
  return only_help(what, {std::string(word)}, command);
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

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&name](const CLI::App* command) { return command->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

std::string line_with_option(const CLI::App& app, const CLI::App& here,
                             std::span<const char* const> words, std::size_t at) {
  const std::string word = words[at];
  const std::string typed = word.starts_with('-') ? word : "--" + word;
  const std::string name = typed.substr(0, typed.find('='));
  const CLI::App* const command = command_with(app, here, name);
  if (command == nullptr) return {};
  const std::size_t begin = std::min<std::size_t>(at, 2);
  const std::span<const char* const> after = words.subspan(begin);
  const CLI::Option& option = *command->get_option_no_throw(name);
  const std::string kind = option.get_type_name();
  const bool lacks_value = option.get_items_expected_max() > 0 && name == typed;
  std::vector<const char*> line(after.size() + 1, kind.c_str());
  std::ranges::copy(after, line.begin());
  line[at - begin] = typed.c_str();
  if (after.size() != 1 || !lacks_value) line.pop_back();
  return line_of(app, *command, line);
}

std::string as_command(std::span<const char* const> words) {
  const std::string script = job::command_of_script(words.front());
  std::string text = script.empty() ? text::shell_word(words.front()) : script;
  for (const char* const word : words.subspan(1)) text += " " + text::shell_word(word);
  return text;
}

std::string unknown_word(const CLI::App& app, std::span<const char* const> words,
                         std::string_view cure, std::span<const std::string> program) {
  const CLI::App* here = &app;
  std::string command = app.get_name();
  for (std::size_t at = 1; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--") break;
    const std::vector<const CLI::App*> commands = commands_of(*here);
    if (word.starts_with('-')) {
      const bool is_long = word.starts_with("--");
      const std::string name(word.substr(0, is_long ? word.find('=') : std::string_view::npos));
      if (const CLI::Option* const option = here->get_option_no_throw(name)) {
        // Its value may look like an option, as in --slurm '--nodes=2'.
        if (option->get_items_expected_min() > 0 && name == word) ++at;
        continue;
      }
      if (!is_long && (commands.empty() || takes_values(*here))) continue;
      if (!cure.empty()) return fmt::format("unknown option '{}'; {}", name, cure);
      if (const std::string line = here == &app ? after_command(app, words, at) : "";
          !line.empty()) {
        return fmt::format("options follow the command: {}", line);
      }
      const auto message = [&](std::size_t place) {
        const std::string_view typed = words[place];
        const bool may_be_elsewhere = typed.starts_with("--") && here != &app;
        return unknown("option",
                       typed_option(typed, place + 1 < words.size() ? words[place + 1] : ""),
                       options_of(*here), command,
                       may_be_elsewhere ? option_elsewhere(app, *here, words, place, program) : "");
      };
      const std::string first = message(at);
      std::vector<std::string> names{std::string(typed_option(word, "").name)};
      if (first != only_help("option", names, command)) return first;
      // Options with a cure of their own come after these have been corrected.
      for (std::size_t place = at + 1; place < words.size() && words[place] != "--"sv; ++place) {
        if (takes_next_word(*here, words[place])) {
          ++place;
          continue;
        }
        const std::string further(typed_option(words[place], "").name);
        const bool is_unknown = further.starts_with("--") &&
                                here->get_option_no_throw(further) == nullptr &&
                                message(place) == only_help("option", {further}, command);
        if (is_unknown && std::ranges::find(names, further) == names.end()) {
          names.push_back(further);
        }
      }
      return only_help("option", names, command);
    }
    // The word is a value if no commands are left.
    if (commands.empty()) continue;
    const CLI::App* const next = find_command(*here, std::string(word));
    if (next == nullptr) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* known : commands) {
        names.push_back(known->get_name());
        for (const std::string& alias : known->get_aliases()) names.push_back(alias);
      }
      const std::vector<std::string_view> near(names.begin(), names.end());
      if (takes_values(*here) && !nearest(word, near)) continue;
      const std::string option = fmt::format("--{}", word);
      if (here->get_option_no_throw(option) != nullptr) {
        return fmt::format("unknown command '{}' (did you mean '{}'?)", word, option);
      }
      const bool has_way = !other_way(command, word, "").empty();
      if (const CLI::App* const meant = command_with(app, *here, option);
          meant != nullptr && here == &app && !has_way && !nearest(word, near)) {
        // With its value missing, the command and this option would show no help.
        if (words.back() == "--help"sv) {
          return fmt::format(
              "unknown command '{}'; '{} help {}' shows the option '{}'", word, command,
              is_of_task(app, option) ? kTaskOptionsTopic : meant->get_name(), option);
        }
        return fmt::format("unknown command '{}' (did you mean {}?)", word,
                           text::quoted_command(line_with_option(app, app, words, at)));
      }
      if (here == &app && job::is_named_as_job(std::string(word))) {
        return fmt::format("unknown command '{}' (did you mean {}?)", word,
                           text::quoted_command(command + " run " + text::shell_word(word)));
      }
      if (here == &app && !nearest(word, near) && is_program(word)) {
        return fmt::format(
            "unknown command '{}'; to run a program, write it after 'run --': {} run -- {}", word,
            command, as_command(words.subspan(at)));
      }
      return unknown("command", {.name = word}, names, command);
    }
    here = next;
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
    const CLI::App* const next = find_command(*here, std::string(word));
    if (next == nullptr) {
      return fmt::format("unexpected argument '{}'; '{} help{}' shows the help of one command",
                         word, app.get_name(), topic);
    }
    here = next;
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
