#include "cli/typed_mistakes.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "cli/command_job.h"
#include "cli/did_you_mean.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/program_as_job.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

/// A command as far as it was understood, and how it is typed: "trainyard client progress".
struct Command {
  const CLI::App* app = nullptr;
  std::string name;
};

Command innermost(const CLI::App& app) {
  Command command{.app = &app, .name = app.get_name()};
  while (!command.app->get_subcommands().empty()) {
    command.app = command.app->get_subcommands().front();
    command.name += " " + command.app->get_name();
  }
  return command;
}

/// The first line below "Examples:" of its help, else how to see its help.
std::string first_example(const Command& command) {
  constexpr std::string_view kHead = "Examples:\n  ";
  const std::string footer = command.app->get_footer();
  const std::size_t head = footer.find(kHead);
  if (head == std::string::npos) return command.name + " --help";
  const std::size_t start = head + kHead.size();
  return footer.substr(start, footer.find('\n', start) - start);
}

/// Where the program of `run python3 fit.py` is among the words: the first word that is neither an
/// option nor the value of one, unless it is named as a job file.
std::optional<std::size_t> place_of_program(const CLI::App& command,
                                            std::span<const char* const> words) {
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string word = words[at];
    if (!word.starts_with('-')) {
      return job::is_named_as_job(word) ? std::nullopt : std::optional(at);
    }
    const CLI::Option* const option = command.get_option_no_throw(word.substr(0, word.find('=')));
    if (option == nullptr) return std::nullopt;
    const bool has_next = at + 1 < words.size() && !word.contains('=');
    const bool may_lack = option->get_items_expected_min() == 0;
    const bool next_is_value = has_next && option->get_items_expected_max() > 0 &&
                               (!may_lack || !std::string_view(words[at + 1]).starts_with('-'));
    if (next_is_value) ++at;
  }
  return std::nullopt;
}

/// "trainyard run --cpus 2 -- python3 fit.py --lr 0.1"; empty where no program was typed.
std::string with_separator(const CLI::App& app, const TypedWords& typed) {
  const std::span<const char* const> words = typed.words;
  if (typed.has_command || words.size() < 3 || !takes_command(words[1])) return {};
  const auto program = place_of_program(*app.get_subcommand_ptr(std::string(words[1])), words);
  if (!program) return {};
  std::string line = app.get_name();
  for (std::size_t i = 1; i < words.size(); ++i) {
    line += fmt::format("{} {}", i == *program ? " --" : "", text::shell_word(words[i]));
  }
  return line;
}

/// A word that nothing takes, and the word after it.
struct ExtraWord {
  std::string word;
  std::string next;
};

/// The first of them, in the order in which they were typed.
ExtraWord extra_word(const CLI::App& app, std::span<const char* const> words) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const auto is_extra = [&extras](const char* word) {
    return std::ranges::find(extras, std::string_view(word)) != extras.end();
  };
  const auto first = std::ranges::find_if(words.subspan(1), is_extra);
  if (first == words.end()) return {.word = extras.front(), .next = {}};
  return {.word = *first, .next = first + 1 == words.end() ? "" : *(first + 1)};
}

/// The cure where `extra` is a value of a --matrix that was typed with blanks; else empty.
std::string split_matrix(std::span<const char* const> words, const std::string& extra) {
  const auto place = std::ranges::find(words, std::string_view(extra));
  const auto before = std::ranges::subrange(words.begin(), place) | std::views::reverse;
  const auto option = std::ranges::find_if(
      before, [](const char* word) { return std::string_view(word).starts_with('-'); });
  if (option == before.end() || std::string_view(*option) != "--matrix") return {};
  std::vector<std::string> values;
  for (auto word = option.base(); word != words.end(); ++word) {
    if (std::string_view(*word).starts_with('-')) break;
    values.emplace_back(*word);
  }
  if (std::ranges::count_if(values, [](const std::string& it) { return it.contains('='); }) > 1) {
    return {};
  }
  return split_matrix_cure(values);
}

/// Whether a command was typed where this command takes a job file: "plan -- python3 fit.py".
bool is_command_for_job_file(const CLI::App& command, std::span<const char* const> words) {
  const CLI::Option* const job = command.get_option_no_throw("job");
  if (job == nullptr || !job->get_required() || takes_command(command.get_name())) return false;
  const auto separator = std::ranges::find(words, std::string_view("--"));
  if (separator != words.end()) return true;
  const std::vector<std::string> given = job->results();
  return !given.empty() && !job::is_named_as_job(given.front());
}

/// Whether "1" and this word are a size or a time, by the kind of an option: "GB", "h".
bool is_unit(const std::string& kind, const std::string& word) {
  if (word.empty() || word.find_first_of("0123456789.") != std::string::npos) return false;
  if (kind == value_kinds::kSize) return parse_bytes("1" + word).has_value();
  return kind == value_kinds::kTime && parse_duration("1" + word).has_value();
}

/// The cure where `next` belongs to the value before it: a setting or a pattern in two words. Empty:
/// it may be a job file.
std::string split_words(const std::string& option, const std::string& value,
                        const std::string& next) {
  if (next.empty() || next.starts_with('-') || job::is_named_as_job(next)) return {};
  if (option == "--set" && !value.contains('=')) {
    return fmt::format("--set {0} {1}: write the key and its value as one word: --set {0}={1}",
                       text::shell_word(value), text::shell_word(next));
  }
  if (option != "--only" || !value.contains('=') || !next.contains('=')) return {};
  return fmt::format(
      "--only {0} {1}: write --only {0},{1} (both) or --only {0} --only {1} (either)",
      text::shell_word(value), text::shell_word(next));
}

std::string missing_command(const Command& command) {
  std::vector<std::string> uses;
  for (const CLI::App* each : command.app->get_subcommands({})) {
    uses.push_back(fmt::format("'{} {}'", command.name, each->get_name()));
  }
  const std::string last = uses.back();
  uses.pop_back();
  return fmt::format("no command given: use {} or {}", fmt::join(uses, ", "), last);
}

/// `name` is that of an argument or an option: "job", "--priority".
std::string missing_argument(const Command& command, const std::string& name) {
  const std::string example = first_example(command);
  if (name.starts_with('-')) return fmt::format("{} is required: use '{}'", name, example);
  const bool is_job = command.app->get_option(name)->get_type_name() == value_kinds::kJobFile;
  return fmt::format("no {} given: use '{}'", is_job ? "job file" : name, example);
}

/// `name` is the option as typed.
std::string missing_value(const std::string& name, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == value_kinds::kNumber) return name + " needs a number";
  return fmt::format("{} needs a value: {}", name, type);
}

/// Whether the value of an option was typed as an argument, without its name.
bool is_argument(const CLI::Option& option, std::span<const char* const> words,
                 const std::string& name) {
  return option.get_positional() && std::ranges::none_of(words, [&name](const char* word) {
           return std::string_view(word).starts_with(name);
         });
}

/// An option as the user typed it: its name, or the word of an argument that also has a name.
std::string typed_name(const Command& command, std::span<const char* const> words,
                       const std::string& name) {
  const CLI::Option* const option = command.app->get_option(name);
  return is_argument(*option, words, name) ? fmt::format("'{}'", option->results().front()) : name;
}

/// Returns nullptr if the command has no command of this name.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&name](const CLI::App* command) { return command->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

}  // namespace

std::string missing_value_mistake(const CLI::App& app, std::span<const char* const> words) {
  const CLI::App* command = &app;
  for (std::size_t at = 1; at + 1 < words.size(); ++at) {
    const std::string word = words[at];
    if (word == "--") break;
    if (!word.starts_with('-')) {
      const CLI::App* const next = find_command(*command, word);
      // Words after the program of `ranks` and `parallel` are the program's.
      if (next == nullptr && command->get_prefix_command()) break;
      if (next != nullptr) command = next;
      continue;
    }
    const CLI::Option* const option = command->get_option_no_throw(word);
    if (option == nullptr || option->get_items_expected_min() == 0) continue;
    const std::string value = words[at + 1];
    const bool is_option = value.starts_with("--") && command->get_option_no_throw(value.substr(
                                                          0, value.find('='))) != nullptr;
    // Options of another program may have the same names.
    const bool may_be_option = option->get_type_name() == value_kinds::kOptions;
    if (is_option && !may_be_option) return missing_value(word, *option);
    const bool is_number =
        !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && at + 2 < words.size() && is_unit(option->get_type_name(), words[at + 2])) {
      return fmt::format("{} {} {}: write the value and its unit as one word: {}{}", word, value,
                         words[at + 2], value, words[at + 2]);
    }
    const std::string next = at + 2 < words.size() ? words[at + 2] : "";
    if (std::string split = split_words(word, value, next); !split.empty()) return split;
    ++at;
  }
  return {};
}

std::string typed_mistake(const CLI::App& app, const TypedWords& typed,
                          const CLI::ParseError& error) {
  const Command command = innermost(app);
  const std::string usage = fmt::format("\n'{} --help' shows the usage", command.name);
  const std::string what = error.what();
  const std::string separated = with_separator(app, typed);
  const std::string cure =
      separated.empty() ? "" : fmt::format("a command goes after '--': {}", separated);
  if (std::string unknown = unknown_word(app, typed.words, cure); !unknown.empty()) return unknown;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto [extra, next] = extra_word(app, typed.words);
    if (std::string limit = parallel_option(*command.app, extra, next); !limit.empty()) {
      return limit;
    }
    if (is_command_for_job_file(*command.app, typed.words)) {
      return fmt::format("'{}' takes a job file, not a command: use '{}'", command.name,
                         first_example(command));
    }
    const std::string matrix = typed.has_command ? split_matrix(typed.words, extra) : "";
    const std::string& better = matrix.empty() ? cure : matrix;
    if (!better.empty()) return fmt::format("unexpected argument '{}'; {}", extra, better);
    if (!extra.starts_with('-')) return fmt::format("unexpected argument '{}'{}", extra, usage);
    return unknown_option(*command.app, extra);
  }
  if (command.app == &app) return "no command given; 'trainyard --help' lists the commands";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const bool is_command = command.app->get_require_subcommand_min() > 0;
    return is_command ? missing_command(command)
                      : missing_argument(command, what.substr(0, what.find(" is required")));
  }
  constexpr std::string_view kExcludes = " excludes ";
  if (const std::size_t at = what.find(kExcludes);
      at != std::string::npos && dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return fmt::format("{} cannot be combined with {}{}",
                       typed_name(command, typed.words, what.substr(0, at)),
                       typed_name(command, typed.words, what.substr(at + kExcludes.size())), usage);
  }
  const std::string option = what.substr(0, what.find(':'));
  if (what.starts_with(option + ": 1 required ")) {
    return missing_value(option, *command.app->get_option(option));
  }
  if (what.starts_with(option + ": At Most 1 ")) return option + " can be given only once";
  const CLI::Option* const checked = command.app->get_option_no_throw(option);
  if (checked != nullptr && is_argument(*checked, typed.words, option) &&
      dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    return what.substr(option.size() + std::string_view(": ").size()) + usage;
  }
  return what + usage;
}

}  // namespace trainyard::cli
