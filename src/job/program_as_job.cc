#include "job/program_as_job.h"

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

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

/// Names the keys of tasks in a message as the options that were typed: "--memory sets the amount"
/// for "'memory' sets the amount", "'--device cpu'" for "'device: cpu'".
std::string with_options(std::string message) {
  for (const std::string_view key : keys_of_task_options()) {
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
  for (text::Mistake& mistake : taken) mistake.message = with_options(std::move(mistake.message));
  return taken;
}

}  // namespace trainyard::job
