#include "job/program_as_job.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/path_name.h"
#include "job/task_keys.h"
#include "text/file_name.h"
#include "text/shell_quote.h"

namespace trainyard::job {
namespace {

std::string extension_of(const std::string& path) {
  return std::filesystem::path(path).extension().string();
}

bool is_executable(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::perms permissions = std::filesystem::status(path, ignored).permissions();
  return permissions != std::filesystem::perms::unknown &&
         (permissions & std::filesystem::perms::owner_exec) != std::filesystem::perms::none;
}

/// The command that runs a program; empty for another file.
std::string command_of_program(const LoadOptions& options, const text::YamlDocument& document) {
  const std::string& file = options.job_file;
  if (document.has_written("#SBATCH ")) return "bash " + text::shell_word(file);
  if (is_named_as_job(file)) return {};
  if (std::string script = command_of_script(file); !script.empty()) return script;
  const std::string word = text::shell_word(file);
  if (!is_executable(absolute_path(file, options.current_directory))) return {};
  return file.contains('/') ? word : "./" + word;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Whether the user typed this word, or text with this key, as a value or as the name of one, such
/// as a key of a matrix.
bool is_typed(const text::YamlNode& node, std::string_view word) {
  if (node.kind == text::YamlKind::Text && node.text.starts_with(word)) {
    const std::string_view rest = std::string_view(node.text).substr(word.size());
    return rest.empty() || rest.starts_with(": ");
  }
  const bool is_mapping = node.kind == text::YamlKind::Mapping;
  for (std::size_t i = is_mapping ? 1 : 0; i < node.items.size(); i += is_mapping ? 2 : 1) {
    const text::YamlNode& value = *node.items[i];
    if (is_typed(value, word) || (is_mapping && value.find(word) != nullptr)) return true;
  }
  return false;
}

/// Names the keys of tasks in a message as the options that were typed: "--memory sets the amount"
/// for "'memory' sets the amount", "'--device cpu'" for "'device: cpu'".
std::string with_options(std::string message, const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    replace_all(message, fmt::format("'{}'", key), fmt::format("--{}", key));
    replace_all(message, fmt::format("'{}: ", key), fmt::format("'--{} ", key));
  }
  return message;
}

}  // namespace

std::string command_of_script(const std::string& path) {
  if (extension_of(path) == ".py") return "python3 " + text::shell_word(path);
  return extension_of(path) == ".sh" ? "bash " + text::shell_word(path) : std::string();
}

bool is_named_as_job(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

std::optional<text::Mistake> program_mistake(const LoadOptions& options,
                                             const text::YamlDocument& document) {
  const text::YamlNode* const root = document.root();
  const bool is_job = root != nullptr && root->find("groups") != nullptr;
  const std::string command = is_job ? std::string() : command_of_program(options, document);
  if (command.empty()) return std::nullopt;
  text::Mistake mistake{.file = options.job_file, .message = "is a program, not a job file"};
  if (!options.starts_with.empty()) {
    mistake.message +=
        fmt::format("; write it after '--': trainyard {} -- {}", options.starts_with, command);
  }
  return mistake;
}

text::Mistakes take_mistakes(text::MistakeList mistakes, const LoadOptions& options,
                             const text::YamlDocument& document) {
  const auto program = program_mistake(options, document);
  if (program) return {*program};
  text::Mistakes taken = std::move(mistakes).take();
  if (!document.has_options()) return taken;
  // The name 'memory' of a job is no option.
  std::vector<std::string_view> keys;
  for (const std::string_view key : keys_of_task_options()) {
    const bool is_value = document.root() != nullptr && is_typed(*document.root(), key);
    if (!taken.empty() && !is_value) keys.push_back(key);
  }
  for (text::Mistake& mistake : taken) {
    // A configuration file and --set have keys, not options.
    const bool is_elsewhere =
        !mistake.file.empty() &&
        std::ranges::find(options.line_names, mistake.file) == options.line_names.end();
    if (is_elsewhere) continue;
    mistake.message = with_options(std::move(mistake.message), keys);
  }
  return taken;
}

}  // namespace trainyard::job
