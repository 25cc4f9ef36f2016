#include "cli/typed_mistakes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/run_request.h"
#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/list_text.h"
#include "cli/did_you_mean.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/matrix.h"
#include "job/program_as_job.h"
#include "sys/files.h"
#include "text/condition.h"
#include "text/placeholder.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

using namespace std::string_view_literals;

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

/// The place of the first word of `run` that is neither an option nor the value of one.
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

/// " --matrix x=1,2 -- echo '{x}'" for "echo {} ::: 1 2", as GNU parallel has it; empty for a
/// command without one ":::", or with values that are not plain.
std::string with_matrix(std::span<const char* const> words) {
  const auto separator = std::ranges::find(words, ":::"sv);
  if (separator == words.begin() || words.end() - separator < 2) return {};
  std::string values;
  for (const std::string value : std::ranges::subrange(separator + 1, words.end())) {
    const bool is_plain = text::shell_word(value) == value && !value.contains(',');
    // A second ":::" would be a second key.
    if (!is_plain || value.starts_with(":::")) return {};
    values += (values.empty() ? "" : ",") + value;
  }
  std::vector<std::string> command;
  bool has_place = false;
  for (std::string word : std::ranges::subrange(words.begin(), separator)) {
    for (std::size_t at = word.find("{}"); at != std::string::npos; at = word.find("{}")) {
      word.replace(at, 2, "{x}");
      has_place = true;
    }
    command.push_back(std::move(word));
  }
  if (!has_place) command.emplace_back("{x}");
  std::vector<const char*> pointers;
  std::ranges::transform(command, std::back_inserter(pointers), &std::string::c_str);
  return fmt::format(" --matrix x={} -- {}", values, as_command(pointers));
}

/// "trainyard run --cpus 2 -- python3 fit.py --lr 0.1"; empty where no program was typed.
std::string with_separator(const CLI::App& app, const TypedWords& typed) {
  const std::span<const char* const> words = typed.words;
  if (typed.has_command || words.size() < 3 || !takes_command(words[1])) return {};
  const auto program = place_of_argument(*app.get_subcommand(std::string(words[1])), words);
  if (!program || job::is_named_as_job(words[*program])) return {};
  std::string line = app.get_name();
  for (const char* const word : words.first(*program).subspan(1)) {
    line += " " + text::shell_word(word);
  }
  const auto typed_command = words.subspan(*program);
  std::vector<const char*> command(typed_command.begin(), typed_command.end());
  if (command.front() == ":::"sv) command.insert(command.begin(), "COMMAND");
  if (const std::string matrix = with_matrix(command); !matrix.empty()) return line + matrix;
  return fmt::format("{} -- {}", line, as_command(command));
}

/// "write a name with blanks in quotes: trainyard run 'my sweep.yaml'", where the words up to a job
/// file are together the name of a file; else empty.
std::string with_quotes(const Command& command, std::span<const char* const> words) {
  if (command.app->get_option_no_throw("job") == nullptr) return {};
  const auto first = place_of_argument(*command.app, words);
  if (!first) return {};
  std::string file = words[*first];
  for (std::size_t at = *first + 1; at < words.size(); ++at) {
    file += fmt::format(" {}", words[at]);
    if (!job::is_named_as_job(words[at]) || !sys::exists(file)) continue;
    std::string line = "trainyard";
    for (const char* const word : words.first(*first).subspan(1)) {
      line += " " + text::shell_word(word);
    }
    line += " " + text::shell_word(file);
    for (const char* const word : words.subspan(at + 1)) line += " " + text::shell_word(word);
    return fmt::format("write a name with blanks in quotes: {}", line);
  }
  return {};
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

/// app::one_job_at_a_time() if only job files were typed, as the shell does for *.yaml; else empty.
std::string loop_over_jobs(const Command& command, std::span<const char* const> words) {
  const bool takes_job = command.app->get_option_no_throw("job") != nullptr;
  if (!takes_job || !std::ranges::all_of(words.subspan(2), job::is_named_as_job)) return {};
  return app::one_job_at_a_time(
      {words.begin() + 2, words.end()},
      takes_command(command.app->get_name()) ? "trainyard submit" : command.name);
}

/// Whether "1" and this word are a size or a time, by the kind of an option: "GB", "h".
bool is_unit(const std::string& kind, const std::string& word) {
  if (word.empty() || word.find_first_of("0123456789.") != std::string::npos) return false;
  if (kind == value_kinds::kSize) return parse_bytes("1" + word).has_value();
  return kind == value_kinds::kTime && parse_duration("1" + word).has_value();
}

bool is_number(const std::string& word) {
  return text::number_of(word).has_value() || job::parse_range(word).has_value();
}

/// " --matrix lr=1,2" for a key and its values with blanks, or as in Python or YAML: "lr 1 2",
/// "{lr: [1, 2]}". A further key is followed by '=' or ':'. Empty: it is not clear which words are
/// keys.
std::string joined_matrix(std::string_view typed) {
  std::string plain;
  for (std::size_t at = 0; at < typed.size(); ++at) {
    // The colon of "cuda:0" belongs to a value.
    const std::string_view rest = typed.substr(at + 1);
    const bool ends_key = typed[at] == ':' && (rest.empty() || " [("sv.contains(rest.front()));
    if (ends_key || typed[at] == '=') {
      plain.erase(plain.find_last_not_of(' ') + 1);
      plain += "= ";
    } else {
      plain += " ,[]{}()'\""sv.contains(typed[at]) ? ' ' : typed[at];
    }
  }
  std::string cure;
  std::string key;
  bool are_numbers = false;
  for (const auto part : std::views::split(plain, ' ')) {
    const std::string word{std::string_view(part)};
    if (word.empty()) continue;
    const bool begins = cure.ends_with('=');
    if (key.empty() || word.ends_with('=')) {
      const std::string name = word.substr(0, word.find('='));
      if (begins || !text::is_identifier(name)) return {};
      // bash makes "lr=1 lr=2" of "lr={1,2}".
      if (name != key) cure += fmt::format(" --matrix {}=", name);
      key = name;
      continue;
    }
    // A word after a number is a key, such as 'seed' in "lr 1 seed 2".
    if (begins) are_numbers = is_number(word);
    if (is_number(word) != are_numbers || text::shell_word(word) != word) return {};
    cure += (begins ? "" : ",") + word;
  }
  return cure.ends_with('=') ? std::string() : cure;
}

/// Whether a --matrix in several words is whole after the first, so that the next is a program.
/// "seed" in "lr=1 seed 2" may be a key.
bool is_whole_matrix(std::span<const std::string> words) {
  const std::string& first = words[0];
  const std::string& next = words[1];
  const bool may_be_key = text::is_identifier(next) && words.size() > 2 && is_number(words[2]);
  return first.contains('=') && !first.ends_with('=') && !first.ends_with(',') &&
         first.find_first_of("[{(") == std::string::npos && !next.contains('=') &&
         !is_number(next) && !may_be_key;
}

/// The message for the option at `at` whose value was typed in several words; empty: the first is
/// whole, and the next may be a job file.
std::string split_value(const CLI::App& command, const CLI::Option& option, const TypedWords& typed,
                        std::size_t at) {
  std::vector<std::string> words;
  for (const std::string word : typed.words.subspan(at + 1)) {
    if (word.starts_with('-') || job::is_named_as_job(word)) break;
    words.push_back(word);
  }
  if (words.size() < 2 || words[0].empty()) return {};
  const std::string name = typed.words[at];
  const std::string& first = words[0];
  const std::string& next = words[1];
  const bool is_matrix = name == "--matrix";
  if (is_matrix && !typed.has_command) {
    if (is_whole_matrix(words)) return {};
    return fmt::format(
        "--matrix needs a command after '--', as in 'trainyard {} --matrix lr=1e-3,3e-4 --matrix "
        "seed=0..3 -- python3 train.py'; in a job file it is a key",
        command.get_name());
  }
  std::string cure;
  if (is_matrix) {
    cure = joined_matrix(fmt::format("{}", fmt::join(words, " ")));
    cure = cure.empty() ? ", as in --matrix lr=1e-3,3e-4 --matrix seed=0..3" : ":" + cure;
  } else if (first.find_first_not_of("0123456789.") == std::string::npos &&
             is_unit(option.get_type_name(), next)) {
    cure = fmt::format(": {} {}{}", name, first, next);
  } else if (option.get_type_name() == value_kinds::kSize && first == "at" && next == "least" &&
             words.size() > 2) {
    cure = fmt::format(": {} 'at least {}'", name, words[2]);
  } else if (name == "--set" && !first.contains('=') && words.back() != "=") {
    const std::string setting =
        fmt::format("{}={}", first.substr(0, first.find(':')), next == "=" ? words[2] : next);
    cure = fmt::format(": {} {}", name, text::shell_word(setting));
  } else if (name == "--sort" && (next == "asc" || next == "desc")) {
    cure = fmt::format(": {} {}{}", name, next == "desc" ? "-" : "", text::shell_word(first));
  } else if (name == "--pivot" && text::is_identifier(first) && text::is_identifier(next)) {
    cure = fmt::format(": {} {},{}", name, first, next);
  } else if (name == "--only" && first.contains('=') && next.contains('=')) {
    cure = fmt::format(": {0} {1},{2} (both) or {0} {1} {0} {2} (either)", name,
                       text::shell_word(first), text::shell_word(next));
  }
  if (cure.empty()) return {};
  return fmt::format("each value of {} must be one word{}", name, cure);
}

std::string missing_command(const Command& command) {
  std::vector<std::string> uses;
  for (const CLI::App* each : command.app->get_subcommands({})) {
    uses.push_back(fmt::format("{} {}", command.name, each->get_name()));
  }
  return "no command given: use " + list_text(uses, {.word = "or", .quote = "'"});
}

/// The typed words, with the option `name` as the example has it behind them: "trainyard update
/// lr=0.1 --priority 10". The example alone where only the command was typed.
std::string with_option(const std::string& example, const std::string& name,
                        std::span<const char* const> words) {
  constexpr std::size_t kProgramAndCommand = 2;
  const std::size_t option = example.find(fmt::format(" {} ", name));
  if (option == std::string::npos || words.size() <= kProgramAndCommand) return example;
  std::string line = "trainyard";
  for (const char* const word : words.subspan(1)) line += " " + text::shell_word(word);
  return line + example.substr(option);
}

/// The line for "memory=3GB" in a line of `update`, as Slurm's scontrol takes it: "trainyard retry 1
/// --memory=3GB"; else empty. Other commands have options that are keys of a matrix, such as 'rank'.
std::string line_with_amount(const Command& command, std::span<const char* const> words) {
  if (command.app->get_name() != "update") return {};
  const CLI::App& app = *command.app->get_parent();
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string word = words[at];
    if (word.starts_with('-') || !word.contains('=')) continue;
    const std::string option = "--" + word.substr(0, word.find('='));
    for (const CLI::App* const each : {command.app, find_command(app, "retry")}) {
      if (each->get_option_no_throw(option) != nullptr) {
        return line_with_option(app, *each, words, at);
      }
    }
  }
  return {};
}

/// `name` is that of an argument or an option: "job", "--priority".
std::string missing_argument(const Command& command, const std::string& name,
                             std::span<const char* const> words) {
  const std::string example = first_example(command);
  if (name.starts_with('-')) {
    const std::string line = line_with_amount(command, words);
    if (!line.empty()) {
      return fmt::format("{} is required (did you mean {}?)", name, text::quoted_command(line));
    }
    return fmt::format("{} is required: use {}", name,
                       text::quoted_command(with_option(example, name, words)));
  }
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
    // "--run-dir=", as of an empty variable: CLI11 would take the next word.
    const std::string name = word.substr(0, word.size() - (word.ends_with('=') ? 1 : 0));
    const CLI::Option* const option = command->get_option_no_throw(name);
    if (option == nullptr) continue;
    if (name != word && option->get_items_expected_max() > 0) return missing_value(name, *option);
    const std::string value = words[at + 1];
    if ((word == "--csv" && value.ends_with(".csv")) ||
        (word == "--markdown" && value.ends_with(".md"))) {
      return fmt::format("{0} takes no file: {0} > {1}", word, text::shell_word(value));
    }
    if (option->get_items_expected_min() == 0) continue;
    const bool is_option = value.starts_with("--") && command->get_option_no_throw(value.substr(
                                                          0, value.find('='))) != nullptr;
    // Options of another program may have the same names.
    const bool may_be_option = option->get_type_name() == value_kinds::kOptions;
    if (is_option && !may_be_option) return missing_value(word, *option);
    if (std::string split = split_value(*command, *option, typed, at); !split.empty()) return split;
    if (word == "--set" && !value.contains('=') && job::is_named_as_job(value)) {
      return fmt::format("--set takes KEY=VALUE, not '{}'", value);
    }
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
  std::string cure = with_quotes(command, typed.words);
  if (cure.empty() && !separated.empty()) {
    cure = fmt::format("a command goes after '--': {}", separated);
  }
  if (std::string unknown = unknown_word(app, typed.words, cure, typed.command); !unknown.empty()) {
    return unknown;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto [extra, next] = extra_word(app, typed.words);
    if (!cure.empty()) return fmt::format("unexpected argument '{}'; {}", extra, cure);
    if (extra == "--" && command.app->get_option_no_throw("job") != nullptr) {
      const auto separator = std::ranges::find(typed.words, "--"sv);
      const std::vector<const char*> program(separator + 1, typed.words.end());
      return fmt::format(
          "'{}' takes a job file, not a command; to check a command, type: trainyard "
          "run --dry-run -- {}",
          command.name, as_command(program));
    }
    if (extra.starts_with('-')) return unknown_option(*command.app, extra, next);
    if (command.app->get_option_no_throw("--only") != nullptr && extra.contains('=')) {
      return fmt::format("unexpected argument '{}'; {} selects tasks", extra,
                         text::quoted_command("--only " + text::shell_word(extra)));
    }
    const std::string loop = loop_over_jobs(command, typed.words);
    return fmt::format("unexpected argument '{}'{}{}", extra, loop.empty() ? usage : "; ", loop);
  }
  if (command.app == &app) return "no command given; 'trainyard --help' lists the commands";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const bool is_command = command.app->get_require_subcommand_min() > 0;
    return is_command
               ? missing_command(command)
               : missing_argument(command, what.substr(0, what.find(" is required")), typed.words);
  }
  constexpr std::string_view kExcludes = " excludes ";
  if (const std::size_t at = what.find(kExcludes);
      at != std::string::npos && dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return fmt::format("{} cannot be combined with {}{}",
                       typed_name(command, typed.words, what.substr(0, at)),
                       typed_name(command, typed.words, what.substr(at + kExcludes.size())), usage);
  }
  constexpr std::string_view kHasValue = " was given a disallowed flag override";
  if (what.ends_with(kHasValue)) {
    return fmt::format("--{} takes no value", what.substr(0, what.size() - kHasValue.size()));
  }
  const std::string option = what.substr(0, what.find(':'));
  if (what.starts_with(option + ": 1 required ")) {
    return missing_value(option, *command.app->get_option(option));
  }
  if (what.starts_with(option + ": At Most 1 ")) return option + " can be given only once";
  const CLI::Option* const checked = command.app->get_option_no_throw(option);
  if (checked != nullptr && is_argument(*checked, typed.words, option) &&
      dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    const std::string why = what.substr(option.size() + std::string_view(": ").size());
    // The message for an unknown option names the help, or a cure.
    return why.starts_with("unknown option") ? why : why + usage;
  }
  return what + usage;
}

}  // namespace trainyard::cli
