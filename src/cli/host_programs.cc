#include "cli/host_programs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <fstream>
#include <ios>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "base/time.h"
#include "cli/version.h"
#include "run/file_mover.h"
#include "settings/machine_entries.h"
#include "sys/stream_program.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

struct AtWork {
  std::string host;
  sys::StreamProgram program;
  std::optional<int> exit_code = std::nullopt;
};

void say_who_is_waited_for(std::string_view what, const std::vector<AtWork>& all) {
  for (const AtWork& each : all) {
    if (each.exit_code) continue;
    sys::write_standard_error(fmt::format("trainyard: {}: copying {} there\n", each.host, what));
  }
}

/// Their output must be read: a full pipe would block them.
void wait_for(std::string_view what, std::vector<AtWork>& all) {
  constexpr Duration kPause{50};
  constexpr std::chrono::seconds kSayEvery{5};
  auto next = std::chrono::steady_clock::now() + kSayEvery;
  const auto is_at_work = [](const AtWork& it) { return !it.exit_code; };
  while (std::ranges::any_of(all, is_at_work)) {
    for (AtWork& each : all) {
      if (each.exit_code) continue;
      static_cast<void>(each.program.last_errors());
      each.exit_code = each.program.exit_code(kPause);
    }
    if (std::chrono::steady_clock::now() < next) continue;
    next += kSayEvery;
    say_who_is_waited_for(what, all);
  }
}

/// A word in the quotes that rsync reads in its remote shell.
std::string in_quotes(std::string_view word) {
  if (word.find_first_of(" '\"") == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

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

std::vector<NotBrought> bring(std::string_view what, const std::vector<HostProgram>& programs) {
  std::vector<AtWork> all;
  std::vector<NotBrought> wrong;
  for (const HostProgram& each : programs) {
    Result<sys::StreamProgram> program = sys::StreamProgram::start(each.command);
    if (program) {
      all.push_back({.host = each.host, .program = std::move(*program)});
    } else {
      wrong.push_back({.host = each.host, .what = what, .why = program.error().message});
    }
  }
  wait_for(what, all);
  for (AtWork& each : all) {
    // rsync exits with 24 if a file was deleted while it read the directory, as editors do.
    constexpr int kSomeVanished = 24;
    const int code = each.exit_code.value_or(0);
    if (code == 0 || code == kSomeVanished) continue;
    wrong.push_back({.host = each.host,
                     .what = what,
                     .why = run::why_it_moved_nothing(each.program.last_errors(), code)});
  }
  return wrong;
}

std::string text_of(const NotBrought& it) {
  return fmt::format("{}: cannot copy {} there: {}", it.host, it.what, it.why);
}

std::vector<std::string> words_of_ssh(const settings::Configuration& configuration) {
  std::vector<std::string> command = settings::words(configuration, settings::Setting::AgentSsh);
  for (const char* const word : {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"}) {
    command.emplace_back(word);
  }
  return command;
}

std::vector<std::string> words_of_rsync(const settings::Configuration& configuration) {
  std::string shell;
  for (const std::string& word : words_of_ssh(configuration)) {
    shell += (shell.empty() ? "" : " ") + in_quotes(word);
  }
  return {"rsync",          "--recursive",        "--links",      "--times",
          "--protect-args", "--modify-window=-1", "--timeout=60", "--rsh=" + shell};
}

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
