#include "cli/agent_copy.h"

#include <cstddef>
#include <expected>
#include <fstream>
#include <ios>
#include <string_view>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "cli/version.h"
#include "settings/machine_entries.h"
#include "sys/this_process.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kCache = "\"${XDG_CACHE_HOME:-$HOME/.cache}\"/trainyard";

/// Fingerprint of a file. Reads the whole file in some hundredths of a second; called once a run.
Result<std::string> print_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Fingerprint print;
  std::vector<char> piece(std::size_t{1} << 20);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    print.add(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount())));
  }
  if (!file.eof()) return std::unexpected(Error{fmt::format("cannot read '{}'", path)});
  return fmt::format("{:016x}", print.value());
}

/// For a shell there.
Result<std::string> place_of_copy(const std::string& program) {
  Result<std::string> print = print_of(program);
  if (!print) return print;
  std::string name = fmt::format("{}-{}", kProgram, *print);
  for (char& c : name) c = c == ' ' ? '-' : c;
  return fmt::format("{}/{}", kCache, name);
}

/// Several processes may copy it there at the same time.
std::string line_that_takes(const std::string& place) {
  return fmt::format(
      "p={}; test -x \"$p\" || {{ mkdir -p {} && cat > \"$p.$$\" && chmod 755 \"$p.$$\" && "
      "mv \"$p.$$\" \"$p\"; }} || {{ rm -f \"$p.$$\"; exit 1; }}",
      place, kCache);
}

}  // namespace

Result<std::string> agent_program(const settings::Configuration& configuration) {
  if (!configuration.flag(settings::Setting::AgentCopy)) {
    return configuration.text(settings::Setting::AgentProgram);
  }
  const Result<std::string> program = sys::own_program();
  return program ? place_of_copy(*program) : program;
}

Result<std::vector<NotBrought>> copy_agents(const settings::Configuration& configuration) {
  if (!configuration.flag(settings::Setting::AgentCopy)) return {};
  const Result<std::string> program = sys::own_program();
  if (!program) return std::unexpected(program.error());
  const Result<std::string> place = place_of_copy(*program);
  if (!place) return std::unexpected(place.error());
  std::vector<HostProgram> programs;
  for (const settings::MachineEntry& machine : settings::machines(configuration)) {
    if (!machine.is_reached_by_ssh()) continue;
    std::string line = "exec";
    std::vector<std::string> words = words_of_ssh(configuration);
    words.insert(words.end(), {machine.host, line_that_takes(*place)});
    for (const std::string& word : words) line += " " + text::shell_word(word);
    programs.push_back(
        {.host = machine.host,
         .command = {"/bin/sh", "-c", fmt::format("{} < {}", line, text::shell_word(*program))}});
  }
  return bring("trainyard", programs);
}

}  // namespace trainyard::cli
