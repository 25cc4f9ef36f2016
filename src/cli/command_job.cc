#include "cli/command_job.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/result.h"
#include "job/task_keys.h"
#include "sys/files.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

/// A program that runs another one: the name is that one's.
constexpr std::array<std::string_view, 8> kInterpreters{"python", "bash", "sh",   "env",
                                                        "uv",     "node", "ruby", "perl"};
constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/// A text that YAML reads as it is.
std::string quoted_yaml(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A value of a key or a matrix, where a range must not be quoted.
std::string yaml_scalar(std::string_view text) {
  const bool plain =
      !text.empty() && kLetters.contains(text.front()) &&
      text.find_first_not_of(std::string(kLetters) + "._+-%@/:") == std::string_view::npos &&
      !text.ends_with(':') && text != "null" && text != "Null" && text != "NULL";
  return plain ? std::string(text) : quoted_yaml(text);
}

std::string stem_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(path.substr(0, std::max<std::size_t>(1, path.find('.'))));
}

/// What may be a directory under runs/.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char letter : text) {
    if (kLetters.contains(letter) || (!name.empty() && letter == '-')) name += letter;
  }
  return name.empty() ? "command" : name;
}

bool is_interpreter(const std::string& program) {
  return std::ranges::any_of(kInterpreters, [&program](std::string_view each) {
    return program.starts_with(each) &&
           program.substr(each.size()).find_first_not_of("0123456789.") == std::string::npos;
  });
}

std::string usual_name(const CommandWords& words) {
  if (words.command.empty()) return as_name(stem_of(words.each_line));
  std::vector<std::string> parts = words.command;
  if (parts.size() == 1) {
    parts.clear();
    for (std::string_view rest = words.command[0]; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(' '));
      if (!part.empty()) parts.emplace_back(part);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
  }
  for (const std::string& part : parts) {
    const std::string stem = stem_of(part);
    const bool passed = is_interpreter(stem) || part.starts_with('-') || part.contains('=');
    if (!passed) return as_name(stem);
  }
  return parts.empty() ? "command" : as_name(stem_of(parts.front()));
}

/// "lr: [1e-3, 3e-4]" for "lr=1e-3,3e-4", "seed: 0..3" for "seed=0..3".
Result<std::string> matrix_line(const std::string& said) {
  const std::size_t sign = said.find('=');
  if (sign == 0 || sign == std::string::npos || sign + 1 == said.size()) {
    return std::unexpected(
        Error{fmt::format("--matrix {}: must be a key and its values, as in lr=1e-3,3e-4", said)});
  }
  std::string values;
  std::string_view rest = std::string_view(said).substr(sign + 1);
  const bool single = !rest.contains(',');
  if (single && rest.contains("..")) {
    return fmt::format("      {}: {}\n", yaml_scalar(said.substr(0, sign)), yaml_scalar(rest));
  }
  while (true) {
    const std::string_view value = rest.substr(0, rest.find(','));
    values += (values.empty() ? "" : ", ") + quoted_yaml(value);
    if (value.size() == rest.size()) break;
    rest.remove_prefix(value.size() + 1);
  }
  return fmt::format("      {}: [{}]\n", yaml_scalar(said.substr(0, sign)), values);
}

Result<std::string> variables_line(const std::vector<std::string>& said) {
  std::string text = "    env:\n";
  for (const std::string& variable : said) {
    const std::size_t sign = variable.find('=');
    if (sign == 0 || sign == std::string::npos) {
      return std::unexpected(
          Error{fmt::format("--env {}: must be a name and a value, as in SEED=0", variable)});
    }
    text += fmt::format("      {}: {}\n", yaml_scalar(variable.substr(0, sign)),
                        quoted_yaml(variable.substr(sign + 1)));
  }
  return text;
}

Result<std::string> keys_text(const CommandWords& words, const std::string& directory) {
  std::string text;
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    const std::vector<std::string>& said = words.keys.at(std::to_underlying(info.key));
    if (info.key == job::TaskKey::WorkingDirectory) {
      const std::string where =
          said.empty() ? directory : sys::absolute_path(said.back(), directory);
      text += fmt::format("    working-directory: {}\n", quoted_yaml(without_placeholders(where)));
    } else if (info.key == job::TaskKey::Environment && !said.empty()) {
      const Result<std::string> variables = variables_line(said);
      if (!variables) return variables;
      text += *variables;
    } else if (!said.empty()) {
      // A flag without a value is true.
      text += fmt::format("    {}: {}\n", info.name,
                          said.back().empty() ? "true" : yaml_scalar(said.back()));
    }
  }
  return text;
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

Result<std::string> tasks_of_lines(const std::string& path, bool as_typed) {
  Result<std::string> lines =
      path == "-" ? sys::read_file("/dev/stdin", mib(16)) : text::read_text_file(path);
  if (!lines) return std::unexpected(Error(lines.error()).in("--each-line " + path));
  std::string text;
  int number = 0;
  for (std::string_view rest = *lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    text += fmt::format("      - {{id: \"{}\", command: {}}}\n", ++number,
                        command_text({std::string(line)}, as_typed));
  }
  if (text.empty()) return std::unexpected(Error{fmt::format("no command in '{}'", path)});
  return text;
}

}  // namespace

std::string CommandWords::first_option() const {
  if (!name.empty()) return "--name";
  if (!matrix.empty()) return "--matrix";
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    if (!keys.at(std::to_underlying(info.key)).empty()) return fmt::format("--{}", info.name);
  }
  return {};
}

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

Result<CommandJob> job_of_command(const CommandWords& words, const std::string& directory) {
  if (!words.command.empty() && !words.each_line.empty()) {
    return std::unexpected(Error{"a command after '--' and --each-line cannot be combined"});
  }
  // Without a matrix there is nothing that a brace could stand for, and all is as it was typed.
  const bool as_typed = words.matrix.empty();
  const std::string name = words.name.empty() ? usual_name(words) : words.name;
  std::string text =
      fmt::format("name: {0}\ngroups:\n  - name: {0}\n", quoted_yaml(without_placeholders(name)));
  const Result<std::string> keys = keys_text(words, directory);
  if (!keys) return std::unexpected(keys.error());
  text += *keys;
  if (!words.matrix.empty()) text += "    matrix:\n";
  for (const std::string& said : words.matrix) {
    const Result<std::string> line = matrix_line(said);
    if (!line) return std::unexpected(line.error());
    text += *line;
  }
  text += "    tasks:\n";
  if (words.command.empty()) {
    const Result<std::string> tasks = tasks_of_lines(words.each_line, as_typed);
    if (!tasks) return std::unexpected(tasks.error());
    return CommandJob{.name = name, .text = text + *tasks};
  }
  const std::string id = as_typed ? fmt::format("id: {}, ", quoted_yaml(name)) : "";
  text += fmt::format("      - {{{}command: {}}}\n", id, command_text(words.command, as_typed));
  return CommandJob{.name = name, .text = std::move(text)};
}

}  // namespace trainyard::cli
