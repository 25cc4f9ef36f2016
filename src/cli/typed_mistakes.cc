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
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/list_text.h"
#include "cli/did_you_mean.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/matrix.h"
#include "job/program_as_job.h"
#include "text/condition.h"
#include "text/placeholder.h"
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

/// Where the first word of `run` is that is neither an option nor the value of one.
std::optional<std::size_t> place_of_argument(const CLI::App& command,
                                             std::span<const char* const> words) {
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string word = words[at];
    if (!word.starts_with('-')) return at;
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

/// Where the program of `run python3 fit.py` is among the words: the first argument, unless it is
/// named as a job file.
std::optional<std::size_t> place_of_program(const CLI::App& command,
                                            std::span<const char* const> words) {
  const std::optional<std::size_t> at = place_of_argument(command, words);
  return at && job::is_named_as_job(words[*at]) ? std::nullopt : at;
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

/// The cure where `next` belongs to the value before it: a setting, a pattern or the keys of a
/// table in two words. Empty: it may be a job file.
std::string split_words(const std::string& option, const std::string& value,
                        const std::string& next) {
  if (next.empty() || next.starts_with('-') || job::is_named_as_job(next)) return {};
  if (option == "--set" && !value.contains('=')) {
    return fmt::format("--set {0} {1}: write the key and its value as one word: --set {0}={1}",
                       text::shell_word(value), text::shell_word(next));
  }
  if (option == "--pivot" && text::is_identifier(value) && text::is_identifier(next)) {
    return fmt::format("--pivot {0} {1}: write both keys as one word: --pivot {0},{1}",
                       text::shell_word(value), text::shell_word(next));
  }
  if (option != "--only" || !value.contains('=') || !next.contains('=')) return {};
  return fmt::format(
      "--only {0} {1}: write --only {0},{1} (both) or --only {0} --only {1} (either)",
      text::shell_word(value), text::shell_word(next));
}

/// Whether this is a number or a range of a --matrix: "1e-3," of a list, "0..3".
bool is_numeric(std::string_view word) {
  const std::size_t first = word.find_first_not_of("[,");
  if (first == std::string_view::npos) return false;
  word = word.substr(first, word.find_last_not_of("],") + 1 - first);
  return text::number_of(word).has_value() || job::parse_range(word).has_value();
}

/// Whether this is a key of a --matrix and the beginning of its values: "lr=1e-3".
bool has_key(std::string_view word) {
  const std::size_t sign = word.find('=');
  return sign != std::string_view::npos && text::is_identifier(word.substr(0, sign));
}

/// Whether the word at `at` is a key between the values of one key and its own: "seed" in "lr 1e-3
/// seed 1 2".
bool is_key_between(std::span<const std::string> words, std::size_t at) {
  const std::string& before = words[at - 1];
  return text::is_identifier(words[at]) && is_numeric(before.substr(before.find('=') + 1)) &&
         at + 1 < words.size() && is_numeric(words[at + 1]);
}

/// "lr=1e-3,1e-4" for a key and its values in several words, in brackets or not.
std::string joined_values(std::span<const std::string> words) {
  std::string typed = fmt::format("{}", fmt::join(words, " "));
  // The key ends with the first word, or before what stands for '='.
  const std::size_t key = std::min(typed.find_first_of("=,: "), typed.size());
  const std::size_t values = std::min(typed.find_first_not_of("=,: ", key), typed.size());
  if (words.size() > 1) typed.replace(key, values - key, "=");
  std::string text;
  bool begins_value = false;
  for (const char byte : typed) {
    // Commas or blanks are between the values, in brackets or not.
    const bool is_between = std::string_view(" \t,[]").contains(byte);
    if (!is_between && begins_value && !text.empty() && !text.ends_with('=')) text += ',';
    if (!is_between) text += byte;
    begins_value = is_between;
  }
  return text;
}

/// "lr=1e-3" and "seed=1,2" for "lr 1e-3 seed 1 2"; empty where it is not clear which words are
/// keys, as in "opt adam lr 1".
std::vector<std::string> joined_matrix(std::span<const std::string> words) {
  std::vector<std::string> keys;
  for (std::size_t first = 0; first < words.size();) {
    std::size_t end = first + 1;
    while (end < words.size() && !has_key(words[end]) && !is_key_between(words, end)) ++end;
    const auto values = words.subspan(first + 1, end - first - 1);
    const auto is_name = [](const std::string& word) { return text::is_identifier(word); };
    if (std::ranges::any_of(values, is_name) && std::ranges::any_of(values, is_numeric)) return {};
    keys.push_back(joined_values(words.subspan(first, end - first)));
    first = end;
  }
  return keys;
}

/// Number of words after --matrix that are surely keys and values, where no '--' says which words
/// are the command.
std::size_t sure_length(std::span<const std::string> words) {
  std::size_t length = 1;
  while (length < words.size() &&
         (words[length] == "=" || is_numeric(words[length]) || has_key(words[length]) ||
          words[length - 1].ends_with(',') || is_key_between(words, length))) {
    ++length;
  }
  return length;
}

/// "matrix: {lr: [1e-3], seed: [1, 2]}" for "lr=1e-3" and "seed=1,2"; empty where a value may need
/// quotes in a job file.
std::string as_key_of_job(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& each : keys) {
    const std::size_t sign = std::min(each.find('='), each.size() - 1);
    std::string values;
    for (const auto part : std::views::split(std::string_view(each).substr(sign + 1), ',')) {
      const std::string value(std::string_view{part});
      if (!is_numeric(value) && !text::is_identifier(value)) return {};
      values += (values.empty() ? "" : ", ") + value;
    }
    text += fmt::format("{}{}: [{}]", text.empty() ? "" : ", ", each.substr(0, sign), values);
  }
  return keys.empty() ? std::string() : "matrix: {" + text + "}";
}

/// The mistake where a --matrix was typed with blanks, as in "--matrix lr 1e-3 seed 1 2"; `at` is
/// the place of the option among the words. Empty: it is one word.
std::string split_matrix(const CLI::App& command, const TypedWords& typed, std::size_t at) {
  const std::span<const char* const> words = typed.words;
  std::vector<std::string> after;
  for (const std::string_view word : words.subspan(at + 1)) {
    if (word.starts_with('-') || job::is_named_as_job(std::string(word))) break;
    after.emplace_back(word);
  }
  if (after.empty()) return {};
  const auto argument = place_of_argument(command, words);
  const bool has_job = argument && job::is_named_as_job(words[*argument]);
  const std::size_t length = typed.has_command || has_job ? after.size() : sure_length(after);
  const bool begins_program = length < after.size();
  if (length == 1 && (has_key(after[0]) || !begins_program)) return {};
  const auto values = std::span<const std::string>(after).first(length);
  const std::string typed_values = fmt::format("--matrix {}", fmt::join(values, " "));
  std::vector<std::string> keys;
  if (length > 1) keys = joined_matrix(values);
  if (has_job && !typed.has_command) {
    const std::string key = as_key_of_job(keys);
    return fmt::format(
        "{}: --matrix needs a command after '--'; in the job file '{}' it is a key{}", typed_values,
        words[*argument], key.empty() ? key : ": '" + key + "'");
  }
  const char* const behind = typed.has_command ? "" : ", and the command after '--'";
  // The command of "lr 1 sleep 5" looks like a key with its value.
  const bool may_have_program = !typed.has_command && !begins_program && keys.size() > 1;
  if (keys.empty() || may_have_program) {
    return fmt::format(
        "{}: write --matrix before each key, and commas between its values{}, as in 'trainyard {} "
        "--matrix lr=1e-3,3e-4 --matrix seed=0..3 -- python3 train.py'",
        typed_values, behind, command.get_name());
  }
  std::string line;
  for (const std::string& key : keys) {
    line += fmt::format("{}--matrix {}", line.empty() ? "" : " ", text::shell_word(key));
  }
  if (begins_program) {
    std::string before = "trainyard ";
    for (const char* const word : words.subspan(1, at - 1)) before += text::shell_word(word) + " ";
    line = before + line + " --";
    for (const char* const word : words.subspan(at + 1 + length)) {
      line += " " + text::shell_word(word);
    }
  }
  return fmt::format("{}: write {}{}: {}", typed_values,
                     keys.size() == 1 ? "the key and its values as one word with commas"
                                      : "--matrix before each key, and commas between its values",
                     begins_program ? behind : "", line);
}

std::string missing_command(const Command& command) {
  std::vector<std::string> uses;
  for (const CLI::App* each : command.app->get_subcommands({})) {
    uses.push_back(fmt::format("{} {}", command.name, each->get_name()));
  }
  return "no command given: use " + list_text(uses, {.word = "or", .quote = "'"});
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

std::string missing_value_mistake(const CLI::App& app, const TypedWords& typed) {
  const std::span<const char* const> words = typed.words;
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
    if (word == "--matrix") {
      if (std::string split = split_matrix(*command, typed, at); !split.empty()) return split;
    }
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
    if (is_command_for_job_file(*command.app, typed.words)) {
      return fmt::format("'{}' takes a job file, not a command: use '{}'", command.name,
                         first_example(command));
    }
    if (!cure.empty()) return fmt::format("unexpected argument '{}'; {}", extra, cure);
    if (!extra.starts_with('-')) return fmt::format("unexpected argument '{}'{}", extra, usage);
    return unknown_option(*command.app, extra, next);
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
