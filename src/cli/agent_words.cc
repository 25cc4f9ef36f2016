// `trainyard agent`: the program that a yard starts on another machine, by ssh.
#include <expected>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "hardware/this_machine.h"
#include "link/control_socket.h"
#include "model/resources.h"
#include "process/keeper.h"
#include "run/agent_server.h"
#include "run/machine_keys.h"
#include "run/machine_look.h"
#include "settings/machine_entries.h"
#include "settings/setting_value.h"
#include "sys/depart.h"
#include "sys/descriptor.h"
#include "sys/private_directory.h"
#include "sys/pump.h"
#include "sys/remove_below.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "wire/agent.h"

namespace trainyard::cli {
namespace {

/// The directory of the agents' sockets for this user: the first usable one that is not removed at
/// logout, as agents last longer.
Result<std::string> directory_of_agents() {
  std::string why;
  for (const std::string& parent : link::socket_parents()) {
    if (parent.starts_with("/run/user/")) continue;
    std::string path = fmt::format("{}/trainyard-agents-{}", parent, sys::own_user());
    const Result<void> made = sys::make_own_directory(path);
    if (made) return path;
    why += (why.empty() ? "" : "; ") + made.error().message;
  }
  return std::unexpected(Error{"no place for the socket of an agent: " + why});
}

struct AgentService {
  bool ends_with_stream = false;
  hardware::MachineLimits limits;
};

/// A run's directory that was this machine's alone, and the one above it where it was the last.
void forget(const std::filesystem::path& directory) {
  const std::filesystem::path above = directory.parent_path();
  static_cast<void>(sys::remove_below(
      {.root = above.string(), .directory = directory.filename().string(), .kept = {}}));
  std::error_code ignored;
  std::filesystem::remove(directory, ignored);
  std::filesystem::remove(above, ignored);
}

/// The process that lasts, until the yard is over with it.
ExitCode serve(const std::string& path, const AgentService& service, sys::Departure departure) {
  if (service.ends_with_stream) sys::end_with_parent();
  // First of all: the keeper must not inherit a socket or a thread.
  Result<process::Keeper> keeper = process::Keeper::fork({.adopts_orphans = true});
  if (!keeper) return fail(keeper.error());
  hardware::ThisMachine machine = hardware::find_this_machine(service.limits);
  Result<sys::Descriptor> listener = link::listen_privately(path);
  if (!listener) return fail(listener.error());
  const Result<sys::Descriptor> log = sys::open_log(path + ".log", sys::IfThere::Append);
  if (!log) return fail(log.error());
  // Renames the process for `ps`: the process that was started with the typed words exits soon.
  sys::rename_process("trainyard-agent");
  departure.begun("listens", *log);
  std::string not_needed;
  {
    run::AgentServer agent({.keeper = std::move(*keeper),
                            .machine = std::move(machine),
                            .listener = std::move(*listener),
                            .program = kProgram});
    agent.run();
    not_needed = agent.directory_to_forget();
  }
  if (!not_needed.empty()) forget(not_needed);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::filesystem::remove(path + ".log", ignored);
  return ExitCode::Success;
}

/// Connects standard input and output with the agent. When the stream is cut this process exits and
/// the agent keeps running.
ExitCode pump_to(const sys::Descriptor& socket) {
  // The greeting of a shell may not have ended its line.
  if (const ExitCode said = answer("\n"); said != ExitCode::Success) return said;
  sys::pump({.from = sys::kStandardInput, .to = socket.get()},
            {.from = socket.get(), .to = sys::kStandardOutput});
  return ExitCode::Success;
}

ExitCode reach_agent(const std::string& key, const AgentService& service) {
  const Result<std::string> directory = directory_of_agents();
  if (!directory) return fail(directory.error());
  const std::string path = fmt::format("{}/{}", *directory, key);
  if (const Result<sys::Descriptor> socket = link::connect_privately(path)) return pump_to(*socket);
  Result<std::variant<sys::Departure, sys::Departed>> departed = sys::depart();
  if (!departed) return fail(departed.error());
  if (auto* const departure = std::get_if<sys::Departure>(&*departed)) {
    return serve(path, service, std::move(*departure));
  }
  const auto& heard = std::get<sys::Departed>(*departed);
  if (heard.word.empty()) return static_cast<ExitCode>(heard.exit_code);
  const Result<sys::Descriptor> socket = link::connect_privately(path);
  return socket ? pump_to(*socket) : fail(socket.error());
}

Result<hardware::MachineLimits> limits_of(const std::string& cpus, const std::string& memory,
                                          const std::string& gpus) {
  hardware::MachineLimits limits;
  if (!cpus.empty()) {
    const Result<model::Cpus> said = settings::parse_cpus(cpus);
    if (!said) return std::unexpected(Error(said.error()).in("--cpus"));
    limits.cpus = *said;
  }
  if (!memory.empty()) {
    const Result<Bytes> said = parse_bytes(memory);
    if (!said) return std::unexpected(Error(said.error()).in("--memory"));
    limits.memory = *said;
  }
  if (gpus == "none") limits.gpus.emplace();
  if (gpus.empty() || gpus == "all" || gpus == "none") return limits;
  Result<std::vector<std::string>> cards = settings::parse_cards(gpus);
  if (!cards) return std::unexpected(std::move(cards.error()).in("--gpus"));
  limits.gpus = std::move(*cards);
  return limits;
}

/// One question about this machine, a line, and the answer: see run/agent_server.h.
ExitCode answer_one_question() {
  std::string line;
  std::getline(std::cin, line);
  const Result<wire::YardSays> said = wire::yard_says(line);
  const auto* const look = said ? std::get_if<wire::AgentLook>(&said->what) : nullptr;
  if (look == nullptr) return fail(said ? "it is no question what is here" : said.error().message);
  return answer(wire::to_line(wire::AgentSays{.what = run::look_at_machine(*look)}) + "\n");
}

struct AgentOptions {
  bool stdio = false;
  bool step = false;
  std::string cpus;
  std::string memory;
  std::string gpus;
  bool look = false;
  std::string key;
};

CLI::App* add_agent(CLI::App& app, AgentOptions& options) {
  CLI::App* agent =
      app.add_subcommand("agent", "Run tasks on this machine for a run on another one");
  agent->group(command_groups::kPlumbing);
  agent->add_flag("--stdio", options.stdio, "Communicate over standard input and output");
  agent->add_option("--key", options.key, "Key of the run: letters and digits")
      ->type_name(value_kinds::kKey);
  agent->add_flag("--step", options.step, "Exit when the stream closes, as a step of a Slurm job");
  agent->add_option("--cpus", options.cpus, "Maximum number of CPUs")
      ->type_name(value_kinds::kNumber);
  agent->add_option("--memory", options.memory, "Maximum memory")->type_name(value_kinds::kSize);
  agent->add_option("--gpus", options.gpus, "Allowed GPUs: all, none, or 0,1")
      ->type_name(value_kinds::kCards);
  agent->add_flag("--look", options.look, "Answer one question from standard input, and exit");
  agent->footer(
      "Examples:\n"
      "  trainyard run --on lab1,lab2 sweep.yaml\n"
      "  trainyard agent --stdio --key a1b2\n"
      "\n"
      "'trainyard run --on lab1' starts the agent by ssh. The agent lives as long as the run, "
      "also\n"
      "while the connection is down: see docs/machines.md.");
  return agent;
}

ExitCode agent_command(const AgentOptions& options) {
  if (options.look) return answer_one_question();
  if (!options.stdio) {
    return fail("'trainyard agent' cannot be used alone: 'trainyard run --on HOST' starts it");
  }
  if (!run::is_machine_key(options.key)) {
    return fail(fmt::format("'--key {}': must be 1 to {} letters and digits", options.key,
                            run::kMachineKeyMax));
  }
  const Result<hardware::MachineLimits> limits =
      limits_of(options.cpus, options.memory, options.gpus);
  if (!limits) return fail(limits.error());
  return reach_agent(options.key, {.ends_with_stream = options.step, .limits = *limits});
}

}  // namespace

Entry agent_entry() { return entry({"agent"}, add_agent, agent_command); }

}  // namespace trainyard::cli
