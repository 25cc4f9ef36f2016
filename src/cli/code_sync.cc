#include "cli/code_sync.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/path_name.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

/// A name means the one below the directory, a pattern any of its kind.
std::string exclusion(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  const bool is_pattern = path.find_first_of("*?[") != std::string_view::npos;
  return fmt::format("--exclude={}{}", is_pattern ? "" : "/", path);
}

/// Exclusions of the directories with runs: runs are not code, and go where they are needed.
std::vector<std::string> exclusions_of_runs(const JobGround& ground) {
  std::vector<std::string> words{"--exclude=/runs", "--exclude=/.trainyard"};
  const std::string& workdir = ground.configuration.text(settings::Setting::Workdir);
  if (lies_in(workdir, ground.directory) && workdir.size() > ground.directory.size()) {
    words.push_back(exclusion(workdir.substr(ground.directory.size() + 1)));
  }
  return words;
}

/// The command that brings what an entry says of the directory. Runs are left out.
std::vector<std::string> words_that_sync(const settings::MachineEntry& machine,
                                         const JobGround& ground) {
  std::vector<std::string> words = words_of_rsync(ground.configuration);
  // An older rsync does not make the directories above.
  words.push_back(
      fmt::format("--rsync-path=mkdir -p {} && rsync", text::shell_word(machine.directory)));
  // Names from "/./" on are the same on both sides. The directory may belong to another user, and a
  // link there to a larger disk stays one.
  words.insert(words.end(),
               {"--relative", "--executability", "--omit-dir-times", "--keep-dirlinks"});
  for (const std::string& path : machine.sync) {
    if (path.starts_with('!')) words.push_back(exclusion(std::string_view(path).substr(1)));
  }
  std::ranges::move(exclusions_of_runs(ground), std::back_inserter(words));
  for (const std::string& path : machine.sync) {
    if (!path.starts_with('!'))
      words.push_back(fmt::format("{}/./{}", ground.directory, path == "." ? "" : path));
  }
  words.push_back(fmt::format("{}:{}/", machine.host, machine.directory));
  return words;
}

/// The command that finds out whether files could be brought, where nothing is.
std::vector<std::string> words_that_look(const settings::MachineEntry& machine,
                                         const JobGround& ground) {
  std::vector<std::string> words = words_of_rsync(ground.configuration);
  words.insert(words.end(), {"--list-only", "--exclude=*",
                             fmt::format("{}:{}/", machine.host, machine.directory)});
  return words;
}

}  // namespace

bool syncs(const settings::Configuration& configuration) {
  return std::ranges::any_of(
      settings::machines(configuration),
      [](const settings::MachineEntry& machine) { return !machine.directory.empty(); });
}

std::vector<NotBrought> sync_code(const JobGround& ground) {
  std::vector<HostProgram> programs;
  for (const settings::MachineEntry& machine : settings::machines(ground.configuration)) {
    if (machine.directory.empty()) continue;
    programs.push_back({.host = machine.host,
                        .command = machine.sync.empty() ? words_that_look(machine, ground)
                                                        : words_that_sync(machine, ground)});
  }
  return bring(kCode, programs);
}

}  // namespace trainyard::cli
