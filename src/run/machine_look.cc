#include "run/machine_look.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "base/path_name.h"
#include "base/result.h"
#include "model/launch.h"
#include "process/start.h"
#include "process/start_failure.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/helper_command.h"
#include "sys/token.h"

namespace trainyard::run {
namespace {

namespace dirs = std::filesystem;

/// Maximum size of a file that is compared on both machines.
constexpr Bytes kSameFileMax = mib(16);

/// Looks for the package only: its content could not be found without importing it. A script looks
/// in its own directory first, and not in that where it is started.
constexpr const char* kFindModules =
    "import importlib.util, sys\n"
    "if sys.argv[1]:\n"
    "    sys.path[:1 if sys.path[:1] == [''] else 0] = [sys.argv[1]]\n"
    "for name in sys.argv[2:]:\n"
    "    try:\n"
    "        found = importlib.util.find_spec(name.partition('.')[0]) is not None\n"
    "    except ValueError:\n"
    "        found = True\n"
    "    if not found: print(name)\n";

/// Why tasks could not write in the directory; empty if they can. It is tried by writing a file, as
/// permissions alone do not decide it.
std::string why_not_writable(const std::string& directory) {
  if (!sys::exists(directory)) return fmt::format("'{}' not found", directory);
  std::error_code wrong;
  if (!dirs::is_directory(directory, wrong))
    return fmt::format("'{}' is not a directory", directory);
  const std::string path = fmt::format("{}/.trainyard-{}", directory, sys::random_token());
  if (const Result<void> written = sys::replace_file(path, "looked\n"); !written) {
    return written.error().message;
  }
  dirs::remove(path, wrong);
  return {};
}

std::string why_not_the_same(const std::string& path, std::uint64_t print) {
  // Another user of that machine may have put a pipe there.
  const Result<std::optional<std::string>> text = sys::read_plain_file(path, kSameFileMax);
  if (!text) return text.error().message;
  if (!*text) return fmt::format("'{}' not found", path);
  Fingerprint seen;
  seen.add(**text);
  if (seen.value() == print) return {};
  return fmt::format("'{}' is another file there: it must be on a disk that both machines share",
                     path);
}

/// With what stands before a command so that it finds these variables.
std::vector<std::string> with_environment(const std::vector<std::string>& environment,
                                          std::vector<std::string> command) {
  std::vector<std::string> words{"env"};
  words.insert(words.end(), environment.begin(), environment.end());
  std::ranges::move(command, std::back_inserter(words));
  return words;
}

/// True if bash, which runs commands that are a text, knows the program without a file: `source`,
/// `time`, or a function of its environment.
bool is_of_shell(const wire::SoughtProgram& sought) {
  const Result<sys::HelperOutput> asked = sys::run_helper(
      {.arguments = with_environment(sought.environment,
                                     {"/bin/bash", "-c", "command -v \"$1\"", "bash", sought.name}),
       .directory = sought.directory});
  return asked && asked->exit_code == 0;
}

bool is_program(const std::string& path) {
  std::error_code wrong;
  const dirs::file_status status = dirs::status(path, wrong);
  constexpr dirs::perms kAnybodys =
      dirs::perms::owner_exec | dirs::perms::group_exec | dirs::perms::others_exec;
  return dirs::is_regular_file(status) && (status.permissions() & kAnybodys) != dirs::perms::none;
}

/// The file that it is, or in the words of its start why there is none.
Result<std::string> file_of(const wire::SoughtProgram& sought) {
  const std::vector<std::string> places = places_of(sought);
  int wrong_with_it = ENOENT;
  for (const std::string& place : places) {
    std::string seen = absolute_path(place, sought.directory);
    if (!is_program(seen)) continue;
    if (!process::is_python_for_shell(seen)) return seen;
    wrong_with_it = ENOEXEC;
    break;
  }
  const bool is_there = sys::exists(absolute_path(sought.name, sought.directory));
  if (is_there && wrong_with_it == ENOENT) wrong_with_it = EACCES;
  model::Launch launch;
  launch.arguments = {sought.name};
  launch.working_directory = sought.directory;
  return std::unexpected(process::explain(
      launch, places, {.step = process::StartStep::Program, .error = wrong_with_it}));
}

/// Finds the modules that a Python would not find.
void look_for_modules(const wire::SoughtProgram& sought, const std::string& python,
                      wire::FoundProgram& found) {
  std::vector<std::string> command{python, "-c", kFindModules, sought.import_directory};
  command.insert(command.end(), sought.modules.begin(), sought.modules.end());
  const Result<sys::HelperOutput> asked =
      sys::run_helper({.arguments = with_environment(sought.environment, std::move(command)),
                       .directory = sought.directory,
                       .deadline = kImportsMax});
  if (!asked || asked->exit_code != 0) {
    found.cannot_ask = asked ? fmt::format("{} ended with exit code {}", python, asked->exit_code)
                             : asked.error().message;
    return;
  }
  std::istringstream lines(asked->text);
  for (std::string line; std::getline(lines, line);) found.missing.push_back(line);
}

wire::FoundProgram look_for(const wire::SoughtProgram& sought, bool may_ask_for_modules) {
  wire::FoundProgram found;
  std::error_code wrong;
  if (!dirs::is_directory(sought.directory, wrong)) {
    found.why_not = sys::exists(sought.directory)
                        ? fmt::format("'{}' is not a directory", sought.directory)
                        : fmt::format("directory '{}' not found", sought.directory);
    return found;
  }
  if (sought.name.empty()) return found;
  const Result<std::string> file = file_of(sought);
  if (!file) {
    const bool by_shell = sought.by_shell && !sought.name.contains('/') && is_of_shell(sought);
    if (!by_shell) found.why_not = file.error().message;
    return found;
  }
  if (sought.modules.empty()) return found;
  if (may_ask_for_modules) {
    look_for_modules(sought, *file, found);
  } else {
    found.cannot_ask = "there was no time left to ask it";
  }
  return found;
}

}  // namespace

std::vector<std::string> places_of(const wire::SoughtProgram& sought) {
  std::vector<const char*> environment;
  const std::string path = "PATH=" + sys::variable("PATH").value_or("");
  if (path.size() > std::string_view("PATH=").size()) environment.push_back(path.c_str());
  for (const std::string& each : sought.environment) environment.push_back(each.c_str());
  return process::places_of_program(sought.name, environment);
}

wire::FoundProgram look_for_program(const wire::SoughtProgram& sought) {
  return look_for(sought, true);
}

wire::AgentSeen look_at_machine(const wire::AgentLook& look) {
  const Duration begun = sys::EventLoop::now();
  wire::AgentSeen seen;
  seen.no_directory = why_not_writable(look.directory);
  if (!look.file.empty()) seen.no_file = why_not_the_same(look.file, look.file_print);
  std::error_code wrong;
  const dirs::space_info room = dirs::space(look.directory, wrong);
  if (!wrong) seen.disk_free = Bytes{static_cast<std::int64_t>(room.available)};
  for (const wire::SoughtProgram& sought : look.programs) {
    const bool has_time = sys::EventLoop::now() - begun < kLookMax - 2 * kImportsMax;
    seen.programs.push_back(look_for(sought, has_time));
  }
  return seen;
}

}  // namespace trainyard::run
