#include "cli/command_job.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/list_text.h"
#include "base/path_name.h"
#include "cli/command_words.h"
#include "job/matrix.h"
#include "job/program_as_job.h"
#include "sys/files.h"
#include "text/condition.h"
#include "text/file_name.h"
#include "text/placeholder.h"
#include "text/readable_json.h"
#include "text/shell_quote.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

constexpr const char* kDirectoryKey = "    working-directory: ";

/// A text in quotes that YAML reads verbatim.
std::string quoted_yaml(std::string_view text) { return text::one_line_json(text); }

/// A value of a key or a matrix, where a range must not be quoted.
std::string yaml_scalar(std::string_view text) {
  const bool plain =
      !text.empty() && kLetters.contains(text.front()) &&
      text.find_first_not_of(std::string(kLetters) + "._+-%@/:") == std::string_view::npos &&
      !text.ends_with(':') && text != "null" && text != "Null" && text != "NULL";
  return plain ? std::string(text) : quoted_yaml(text);
}

std::string usual_name(const CommandWords& words) {
  return text::run_name_for(
      words.command.empty() ? name_of_file(words.each_line) : command_name(words.command),
      "command");
}

/// A line of the job file, and what the user has typed for it.
struct Line {
  std::string text;
  std::string name = "the command";
};
using Lines = std::vector<Line>;

/// The part before the '=' of `option`, which must not be among `names` yet.
Result<std::string> take_name(const std::string& option, const std::string& said,
                              std::set<std::string>& names) {
  std::string name = said.substr(0, said.find('='));
  if (names.insert(name).second) return name;
  return std::unexpected(Error{fmt::format("{} {}: is set twice", option, name)});
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// "1e-3,1e-4" for "1e-3, 1e-4,".
std::string without_blanks(std::string_view values) {
  std::string text;
  for (const auto part : std::views::split(values, ',')) {
    const std::string_view value = trimmed(std::string_view(part));
    text += text.empty() || value.empty() ? "" : ",";
    text += value;
  }
  return text;
}

/// Empty if the values after `key` may be split at their commas. Brackets are those of a list in a
/// job file, or of a value that a comma would cut in two.
std::string why_no_values(std::string_view key, std::string_view values) {
  // Without quotes, the shell cuts '[1e-3, 1e-4]' at the space: such a list is not closed.
  const bool is_closed = values.ends_with(']');
  const std::string_view inner = values.substr(1, values.size() - (is_closed ? 2 : 1));
  const bool may_be_list = values.starts_with('[') && (is_closed || values.contains(','));
  if (may_be_list && inner.find_first_of("[]") == std::string_view::npos) {
    return fmt::format("must be values without brackets, as in {}={}", key, without_blanks(inner));
  }
  for (const auto part : std::views::split(values, ',')) {
    const std::string_view value(part);
    if (value.size() == values.size()) break;
    if (trimmed(value).empty()) return "has an empty value; write one as ''";
    for (const std::string_view pair : {"[]", "()", "{}"}) {
      if (std::ranges::count(value, pair.front()) == std::ranges::count(value, pair.back())) {
        continue;
      }
      return fmt::format(
          "a value cannot contain a comma, and '{}' has an open bracket; use a job "
          "file for such values",
          value);
    }
  }
  return {};
}

/// "0.1,0.2" for "0.1 0.2"; empty for other values, as "cosine 10".
std::string meant_numbers(std::string_view value) {
  std::string numbers;
  for (std::string_view rest = value; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
    if (!text::number_of(word)) return {};
    numbers += (numbers.empty() ? "" : ",") + std::string(word);
    rest = trimmed(rest.substr(word.size()));
  }
  return numbers.contains(',') ? numbers : std::string();
}

/// "0..3" for "0-3", which is a range in other programs; empty for other values, as "2024-12".
std::string meant_range(std::string_view value) {
  const std::size_t dash = value.find('-', 1);
  if (dash == std::string_view::npos) return {};
  std::string range = fmt::format("{}..{}", value.substr(0, dash), value.substr(dash + 1));
  const auto read = job::parse_range(range);
  return read && *read && (*read)->step > 0 ? range : std::string();
}

/// "lr: [1e-3, 3e-4]" for "lr=1e-3,3e-4", "seed: 0..3" for "seed=0..3".
Result<Lines> matrix_lines(const std::vector<std::string>& all) {
  if (all.empty()) return Lines{};
  const std::string option = "--matrix";
  Lines lines{{.text = "    matrix:", .name = option}};
  std::set<std::string> names;
  for (const std::string& said : all) {
    const std::size_t sign = said.find('=');
    const std::string key(trimmed(std::string_view(said).substr(0, sign)));
    const std::size_t after = sign == std::string::npos ? said.size() : sign + 1;
    std::string_view rest = trimmed(std::string_view(said).substr(after));
    if (key.empty() || rest.empty()) {
      return std::unexpected(Error{
          fmt::format("--matrix {}: must be a key and its values, as in lr=1e-3,3e-4", said)});
    }
    const Result<std::string> name = take_name(option, key + "=", names);
    if (!name) {
      return std::unexpected(
          Error{name.error().message + "; write all its values in one, as in lr=1e-3,3e-4"});
    }
    if (const std::string why = why_no_values(*name, rest); !why.empty()) {
      return std::unexpected(Error{fmt::format("--matrix {}: {}", said, why)});
    }
    if (const std::string numbers = meant_numbers(rest); !numbers.empty()) {
      return std::unexpected(Error{fmt::format(
          "--matrix {}: must be values with commas, as in {}={}", said, *name, numbers)});
    }
    if (const std::string range = meant_range(rest); !range.empty()) {
      return std::unexpected(
          Error{fmt::format("--matrix {}: must be a range, as in {}={}", said, *name, range)});
    }
    if (!rest.contains(',') && (rest.contains("..") || rest.starts_with("range("))) {
      if (!job::parse_range(rest)) {
        return std::unexpected(
            Error{fmt::format("--matrix {}: must be a range of whole numbers, as in seed=0..3, or "
                              "values with commas, as in lr=1e-3,3e-4",
                              said)});
      }
      lines.push_back({.text = fmt::format("      {}: {}", yaml_scalar(*name), yaml_scalar(rest)),
                       .name = option});
      continue;
    }
    std::string values;
    while (true) {
      const std::string_view typed = rest.substr(0, rest.find(','));
      const std::string_view value = trimmed(typed);
      values += values.empty() ? "" : ", ";
      const bool is_empty = value == "''" || value == "\"\"";
      values += value.contains("..") ? yaml_scalar(value) : quoted_yaml(is_empty ? "" : value);
      if (typed.size() == rest.size()) break;
      rest.remove_prefix(typed.size() + 1);
    }
    lines.push_back(
        {.text = fmt::format("      {}: [{}]", yaml_scalar(*name), values), .name = option});
  }
  return lines;
}

Result<Lines> variables_lines(const std::vector<std::string>& all) {
  const std::string option = "--env";
  Lines lines{{.text = "    env:", .name = option}};
  std::set<std::string> names;
  for (const std::string& variable : all) {
    const std::size_t sign = variable.find('=');
    if (sign == 0 || sign == std::string::npos) {
      return std::unexpected(
          Error{fmt::format("--env {}: must be a name and a value, as in SEED=0", variable)});
    }
    const Result<std::string> name = take_name(option, variable, names);
    if (!name) return std::unexpected(name.error());
    const std::string value = variable.substr(sign + 1);
    // The value is from a command line that was shown, and is typed again.
    if (value == kHidden) {
      return std::unexpected(
          Error{fmt::format("--env {}: type the value itself, which is hidden here", variable)});
    }
    lines.push_back({.text = fmt::format("      {}: {}", yaml_scalar(*name), quoted_yaml(value)),
                     .name = option});
  }
  return lines;
}

/// Text of which nothing is a placeholder for a job file, whatever it is.
std::string without_placeholders(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    const bool of_shell = i > 0 && text[i - 1] == '$';
    if (text[i] != '{' || of_shell) continue;
    plain += '{';
    // A name in braces is doubled on both sides; in other places the end stands for itself.
    const std::size_t end = text.find_first_not_of(std::string(kLetters) + "-", i + 1);
    const bool named = end != std::string::npos && end > i + 1 && text[end] == '}';
    if (!named) continue;
    plain += text.substr(i + 1, end - i) + "}";
    i = end;
  }
  return plain;
}

Result<Lines> keys_lines(const CommandWords& words, const std::string& directory) {
  Lines lines;
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    const std::vector<std::string>& said = words.keys.at(std::to_underlying(info.key));
    const std::string option = fmt::format("--{}", info.name);
    if (info.key == job::TaskKey::WorkingDirectory) {
      const std::string where = said.empty() ? directory : absolute_path(said.back(), directory);
      lines.push_back(
          {.text = kDirectoryKey + quoted_yaml(without_placeholders(where)), .name = option});
    } else if (info.key == job::TaskKey::Environment && !said.empty()) {
      Result<Lines> variables = variables_lines(said);
      if (!variables) return variables;
      std::ranges::move(*variables, std::back_inserter(lines));
    } else if (!said.empty()) {
      // A flag without a value is true.
      lines.push_back({.text = fmt::format("    {}: {}", info.name,
                                           said.back().empty() ? "true" : yaml_scalar(said.back())),
                       .name = option});
    }
  }
  return lines;
}

std::string command_text(const std::vector<std::string>& command, bool as_typed) {
  const auto written = [as_typed](const std::string& word) {
    return quoted_yaml(as_typed ? without_placeholders(word) : word);
  };
  if (command.size() == 1) return written(command[0]);
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "[" : ", ") + written(word);
  return text + "]";
}

Result<Lines> tasks_of_lines(const std::string& path, bool as_typed) {
  Result<std::string> lines =
      path == "-" ? sys::read_file("/dev/stdin", mib(16)) : text::read_text_file(path);
  if (!lines) return std::unexpected(Error(lines.error()).in("--each-line " + path));
  Lines tasks;
  int number = 0;
  for (std::string_view rest = *lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    tasks.push_back({.text = fmt::format("      - {{id: \"{}\", command: {}}}", ++number,
                                         command_text({std::string(line)}, as_typed)),
                     .name = "--each-line " + path});
  }
  if (tasks.empty()) return std::unexpected(Error{fmt::format("no command in '{}'", path)});
  return tasks;
}

/// The words up to a program that has options of these names itself: another trainyard.
std::span<const std::string> words_before_trainyard(const std::vector<std::string>& command) {
  const auto end = std::ranges::find_if(
      command, [](const std::string& word) { return word == "--" || word.ends_with("trainyard"); });
  return {command.begin(), end};
}

/// "'--matrix' and '--dry-run' after '--' belong to the command; write them before '--'", for
/// options of `run` that are not before '--' as well; empty: there are none.
std::string misplaced_options(const CommandWords& words) {
  const auto is_misplaced = [&words](std::string_view option) {
    if (option == "--dry-run") return true;
    if (option == "--matrix") return words.matrix.empty();
    return std::ranges::any_of(job::task_keys(), [&](const job::TaskKeyInfo& info) {
      return info.flag.is_ours && option == fmt::format("--{}", info.name) &&
             words.keys.at(std::to_underlying(info.key)).empty();
    });
  };
  std::vector<std::string> found;
  for (const std::string_view word : words_before_trainyard(words.command)) {
    const std::string_view name = word.substr(0, word.find('='));
    const bool is_new = std::ranges::find(found, name) == found.end();
    if (is_new && is_misplaced(name)) found.emplace_back(name);
  }
  if (found.empty()) return {};
  const bool is_one = found.size() == 1;
  const bool is_of_run = words.submits && std::ranges::find(found, "--dry-run") != found.end();
  return fmt::format("{} after '--' {} to the command; write {} before '--'{}",
                     list_text(found, {.quote = "'"}), is_one ? "belongs" : "belong",
                     is_one ? "it" : "them",
                     is_of_run ? " of 'trainyard run' ('submit' has no --dry-run)" : "");
}

/// Whether a word of the command has "{lr}" for the key "lr".
bool has_placeholder(const CommandWords& words, std::string_view key) {
  const std::string placeholder = fmt::format("{{{}}}", key);
  return std::ranges::any_of(words.command,
                             [&](const std::string& word) { return word.contains(placeholder); });
}

/// Whether a --matrix after '--' has the values of a placeholder in the command.
bool has_misplaced_matrix(const CommandWords& words) {
  if (!words.matrix.empty()) return false;
  const std::span<const std::string> command = words_before_trainyard(words.command);
  for (std::size_t at = 0; at < command.size(); ++at) {
    std::string_view values = command[at];
    if (values.starts_with("--matrix=")) {
      values.remove_prefix(values.find('=') + 1);
    } else if (values == "--matrix" && at + 1 < command.size()) {
      values = command[at + 1];
    } else {
      continue;
    }
    const std::size_t sign = values.find('=');
    if (sign == 0 || sign == std::string_view::npos) continue;
    if (has_placeholder(words, values.substr(0, sign))) return true;
  }
  return false;
}

/// "--launcher needs --ranks, ..."; empty if it has them. With --workers, the reader of the job
/// refuses the launcher.
std::string why_no_launcher(const CommandWords& words) {
  const auto typed = [&words](job::TaskKey key) { return words.keys.at(std::to_underlying(key)); };
  const std::vector<std::string> launcher = typed(job::TaskKey::Launcher);
  if (launcher.empty() || !typed(job::TaskKey::Ranks).empty()) return {};
  if (!typed(job::TaskKey::Workers).empty()) return {};
  return fmt::format(
      "--launcher needs --ranks, the number of processes that it starts: write "
      "--ranks 2 --launcher {}",
      text::shell_word(launcher.back()));
}

/// "lr" for "lr=1e-3"; empty where no key is before the first '='.
std::string_view matrix_key_of(std::string_view text) {
  const std::size_t sign = text.find('=');
  const std::string_view key = trimmed(text.substr(0, sign));
  return sign != std::string_view::npos && text::is_identifier(key) ? key : std::string_view();
}

/// "--matrix a=1,2 b=3: must be one key ..." for several keys with blanks between them; empty for
/// one. If the first value has a '=', as in "opt=a=1 b=2", such values are intended.
std::string why_several_keys(const std::string& said) {
  std::vector<std::string> keys;
  for (const auto part : std::views::split(trimmed(said), ' ')) {
    const std::string_view word(part);
    const std::string_view key = matrix_key_of(word);
    const bool is_meant = key.empty() || !matrix_key_of(word.substr(word.find('=') + 1)).empty();
    if (keys.empty() && is_meant) return {};
    if (keys.empty() || (!key.empty() && !trimmed(keys.back()).ends_with(','))) {
      keys.emplace_back(word);
    } else {
      keys.back() += fmt::format(" {}", word);
    }
  }
  if (keys.size() < 2) return {};
  std::string why = fmt::format("--matrix {}: must be one key and its values; write", said);
  for (const std::string& key : keys) why += " --matrix " + text::shell_word(trimmed(key));
  return why;
}

/// A --matrix whose values look like further keys with theirs: "lr=1e-3,seed=1".
struct SwallowedKeys {
  std::vector<std::string> keys;  ///< All but the first, which has them as values: "seed".
  std::string why;                ///< "--matrix lr=1e-3,seed=1: 'seed=1' is a value of 'lr'; ..."
};

/// If values have a '=' from the first one on, as in "opt=a=1,b=2", such values are intended.
std::optional<SwallowedKeys> swallowed_keys(const std::string& said) {
  SwallowedKeys found;
  std::string first;
  std::vector<std::string> split;
  for (const auto each : std::views::split(said, ',')) {
    const std::string_view part = trimmed(std::string_view(each));
    const std::string_view key = matrix_key_of(part);
    if (split.empty() && (key.empty() || !matrix_key_of(part.substr(part.find('=') + 1)).empty()))
      break;
    if (split.empty() || !key.empty()) {
      split.emplace_back(part);
    } else {
      split.back() += fmt::format(",{}", part);
    }
    if (split.size() > 1 && !key.empty()) {
      if (first.empty()) first = part;
      found.keys.emplace_back(key);
    }
  }
  if (found.keys.empty()) return std::nullopt;
  found.why = fmt::format("--matrix {}: '{}' is a value of '{}'; for another key, write", said,
                          first, matrix_key_of(said));
  for (const std::string& each : split) found.why += " --matrix " + text::shell_word(each);
  return found;
}

/// "'{lr}' stays as typed: there is no '--matrix lr=...'"; empty: no option has a placeholder.
std::string unfilled_placeholder(const CommandWords& words) {
  if (!words.matrix.empty()) return {};
  const std::string line = fmt::format("{}", fmt::join(words.command, " "));
  bool is_value = false;
  for (const auto part : std::views::split(line, ' ')) {
    const std::string_view word(part);
    const bool is_option = word.starts_with("--");
    // Other braces are seldom meant for a key: awk '{print}', and the shell's ${lr}.
    const bool may_have_key = (is_option || is_value) && !word.contains('$');
    is_value = is_option && !word.contains('=');
    if (!may_have_key) continue;
    for (const auto piece : std::views::split(word, '{') | std::views::drop(1)) {
      const std::string_view behind(piece);
      const std::string_view key = behind.substr(0, behind.find('}'));
      if (key.size() == behind.size() || !text::is_identifier(key)) continue;
      return fmt::format("'{{{0}}}' stays as typed: there is no '--matrix {0}=...'", key);
    }
  }
  return {};
}

}  // namespace

app::TypedCommand CommandWords::typed() const {
  const auto first_option = [this]() -> std::string {
    if (!name.empty()) return "--name";
    if (!matrix.empty()) return "--matrix";
    for (const job::TaskKeyInfo& info : job::task_keys()) {
      if (!keys.at(std::to_underlying(info.key)).empty()) return fmt::format("--{}", info.name);
    }
    return {};
  };
  return {.is_there = is_command(),
          .name = name,
          .first_option = first_option(),
          .has_condition = !keys.at(std::to_underlying(job::TaskKey::If)).empty()};
}

std::vector<std::string> CommandWords::warnings() const {
  std::vector<std::string> all{misplaced_options(*this), unfilled_placeholder(*this)};
  std::erase(all, std::string());
  for (const std::string& said : matrix) {
    if (auto swallowed = swallowed_keys(said)) all.push_back(std::move(swallowed->why));
  }
  return all;
}

std::string CommandWords::cpus_advice() const {
  if (!is_command()) {
    return "to run on the CPUs, remove 'gpus', 'gpu-memory' and 'device' from the job file";
  }
  std::vector<std::string> typed;
  for (const auto& [key, option] : std::array{std::pair{job::TaskKey::Gpus, "--gpus"},
                                              std::pair{job::TaskKey::GpuMemory, "--gpu-memory"},
                                              std::pair{job::TaskKey::Device, "--device"}}) {
    if (!keys.at(std::to_underlying(key)).empty()) typed.emplace_back(option);
  }
  if (typed.empty()) return {};
  return fmt::format("to run on the CPUs, leave out {}", list_text(typed));
}

std::string CommandWords::shown() const {
  if (each_line == "-") return "each line of standard input";
  if (!each_line.empty()) return "each line of " + each_line;
  // A single word is a command of the shell.
  if (command.size() == 1) return command.front();
  std::string line;
  for (const std::string& word : command) {
    line += (line.empty() ? "" : " ") + text::shell_word(word);
  }
  return line;
}

std::optional<std::string> directory_of_command(const std::string& text) {
  const std::string key = fmt::format("\n{}", kDirectoryKey);
  const std::size_t line = text.find(key);
  if (line == std::string::npos) return std::nullopt;
  const std::size_t begin = line + key.size();
  const auto written = nlohmann::json::parse(text.substr(begin, text.find('\n', begin) - begin),
                                             nullptr, /*allow_exceptions=*/false);
  if (!written.is_string()) return std::nullopt;
  // Braces are doubled there.
  return text::Template::read(written.get<std::string>(), {.names = {}}).text.fill({});
}

Result<CommandJob> job_of_command(const CommandWords& words, const std::string& directory) {
  if (!words.command.empty() && !words.each_line.empty()) {
    return std::unexpected(Error{"a command after '--' and --each-line cannot be combined"});
  }
  const bool is_blank = !words.command.empty() &&
                        words.command.front().find_first_not_of(" \t\r\n") == std::string::npos;
  if (is_blank) return std::unexpected(Error{"the command after '--' is empty"});
  // A single word with blanks is a command of the shell.
  if (words.command.size() == 1 && job::is_named_as_job(words.command.front()) &&
      !words.command.front().contains(' ')) {
    const std::string& file = words.command.front();
    // Before '--', a word that begins with '-' would be an option.
    return std::unexpected(
        Error{fmt::format("'{}' is a job file, not a command: trainyard {} {}", file,
                          words.submits ? "submit" : "run",
                          text::shell_word(file.starts_with('-') ? "./" + file : file))});
  }
  if (std::string why = why_no_launcher(words); !why.empty()) {
    return std::unexpected(Error{std::move(why)});
  }
  if (has_misplaced_matrix(words)) return std::unexpected(Error{misplaced_options(words)});
  for (const std::string& said : words.matrix) {
    if (std::string why = why_several_keys(said); !why.empty()) {
      return std::unexpected(Error{std::move(why)});
    }
    const auto swallowed = swallowed_keys(said);
    const auto is_used = [&words](const std::string& key) { return has_placeholder(words, key); };
    if (swallowed && std::ranges::any_of(swallowed->keys, is_used)) {
      return std::unexpected(Error{swallowed->why});
    }
  }
  if (!words.name.empty()) {
    if (const auto why = text::why_no_run_name(words.name)) {
      return std::unexpected(Error{fmt::format("--name: the name '{}' {}", words.name, *why)});
    }
  }
  // Without a matrix no brace is a placeholder, and all is as it was typed.
  const bool as_typed = words.matrix.empty();
  const std::string name = words.name.empty() ? usual_name(words) : words.name;
  const std::string of_name = words.name.empty() ? "the command" : "--name";
  const std::string quoted = quoted_yaml(without_placeholders(name));
  Lines lines{{.text = "name: " + quoted, .name = of_name},
              {.text = "groups:"},
              {.text = "  - name: " + quoted, .name = of_name}};
  const std::string id = as_typed ? fmt::format("id: {}, ", quoted_yaml(name)) : "";
  const auto tasks = [&]() -> Result<Lines> {
    if (words.command.empty()) return tasks_of_lines(words.each_line, as_typed);
    return Lines{{.text = fmt::format("      - {{{}command: {}}}", id,
                                      command_text(words.command, as_typed))}};
  };
  for (Result<Lines> part : {keys_lines(words, directory), matrix_lines(words.matrix),
                             Result<Lines>(Lines{{.text = "    tasks:"}}), tasks()}) {
    if (!part) return std::unexpected(std::move(part.error()));
    std::ranges::move(*part, std::back_inserter(lines));
  }
  CommandJob job{.name = name, .text = {}, .line_names = {}};
  for (Line& line : lines) {
    job.text += line.text + "\n";
    job.line_names.push_back(std::move(line.name));
  }
  return job;
}

}  // namespace trainyard::cli
