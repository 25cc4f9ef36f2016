#include "cli/run_machines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/path_name.h"
#include "cli/known_runs.h"
#include "cli/machine_checks.h"
#include "cli/version.h"
#include "model/plan.h"
#include "model/terms.h"
#include "report/terminal_text.h"
#include "settings/machine_entries.h"
#include "settings/periods.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/helper_command.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "sys/token.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

constexpr const char* kNodeList = "SLURM_JOB_NODELIST";

constexpr std::array<std::string_view, 7> kHoldNothing{"--no-shell", "--",        "--help", "-h",
                                                       "--usage",    "--version", "-V"};

constexpr const char* kSeeItsEnd =
    "scontrol show config | grep -q 'proctrack/cgroup' || exit; "
    "while ! { rest=$(squeue -h -j \"$1\" -o %T) && [ -z \"$rest\" ]; }; do sleep 1; done "
    "2> /dev/null; echo over";

/// The controller may be away for a while, and is then queried repeatedly.
constexpr const char* kTell =
    "left=$(timeout 8 squeue -h -j \"$SLURM_JOB_ID\" -o %L); "
    "echo \"${SLURM_JOB_ID:-0}\" \"${left:-UNLIMITED}\" $(scontrol show hostnames)";

constexpr const char* kAndHold = "; exec cat > /dev/null";

constexpr const char* kAskAndHold =
    "exec 3<&0; salloc \"$@\" <&3 3<&- & held=$!; "
    "ended() { exec 3<&- < /dev/null > /dev/null; sleep 1; "
    "kill -TERM $held; sleep 2; kill -KILL $held; exit 1; }; "
    "trap ended TERM; exec < /dev/null 3<&-; wait $held";

/// Whether this process is in an allocation.
bool inside_slurm() { return sys::variable(kNodeList).has_value(); }

/// The nodes of the present allocation, by their names in Slurm, and the time left of it. An error
/// outside of an allocation, or if `scontrol` does not say.
Result<run::GrantedNodes> slurm_nodes() {
  if (!inside_slurm()) {
    return std::unexpected(
        Error{fmt::format("'{}' means the nodes of a Slurm allocation, and trainyard runs in none; "
                          "to request one, type: trainyard run --slurm '--nodes=2 --time=8:00:00' "
                          "...",
                          kSlurm)});
  }
  const Result<sys::HelperOutput> shown =
      sys::run_helper({.arguments = {"/bin/sh", "-c", kTell}, .directory = "/"});
  if (!shown) return std::unexpected(Error(shown.error()).in("the nodes of the allocation"));
  const std::size_t end = std::min(shown->text.find('\n'), shown->text.size());
  Result<run::GrantedNodes> nodes = run::granted_nodes(shown->text.substr(0, end));
  if (nodes) return nodes;
  return std::unexpected(Error{
      fmt::format("'scontrol show hostnames' printed no node of {}", *sys::variable(kNodeList))});
}

/// The words that run a program on a node, with all that the allocation has there, alongside the
/// other steps of the job; the words of the program follow. An empty allocation is the present one.
std::vector<std::string> words_of_srun(const std::string& node, const std::string& allocation) {
  std::vector<std::string> words{"srun",    "--overlap",       "--nodes=1",         "--ntasks=1",
                                 "--mem=0", "--cpu-bind=none", "--nodelist=" + node};
  if (!allocation.empty()) words.push_back("--jobid=" + allocation);
  return words;
}

/// The words that request an allocation with these options, print what was granted
/// (run/allocation.h), and hold it until standard input ends. An error if salloc would hold
/// nothing with one of the options, or an option was meant to be quoted.
///
/// A shell starts salloc: a salloc that gets SIGTERM while its program exits may loop for ever
/// without a pause (22.05). So the shell sends SIGTERM only a moment after the input of salloc has
/// ended, which is enough if salloc holds an allocation, and SIGKILL after that.
Result<std::vector<std::string>> words_of_salloc(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (std::ranges::find(kHoldNothing, option) != kHoldNothing.end()) {
      return std::unexpected(Error{fmt::format(
          "slurm.options: with '{}', salloc keeps no nodes; write a request, as in '--nodes=2 "
          "--time=8:00:00'",
          option)});
    }
    if (option.find_first_of("\"'") == std::string::npos) continue;
    return std::unexpected(Error{fmt::format(
        "slurm.options: {}: options are split at spaces, and cannot have quotes", option)});
  }
  std::vector<std::string> words{
      "/bin/sh", "-c", kAskAndHold, "sh", "--job-name=trainyard", "--kill-command=TERM"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"/bin/sh", "-c", std::string(kTell) + kAndHold});
  return words;
}

/// The words that print "over" when nothing of an allocation runs any more. They print nothing as
/// long as that is not known, and never if Slurm may lose track of a process that it should end:
/// only with control groups (ProctrackType) it does not.
std::vector<std::string> words_that_see_its_end(const std::string& allocation) {
  return {"/bin/sh", "-c", kSeeItsEnd, "sh", allocation};
}

std::string agent_line(const std::string& program, const std::string& key) {
  return fmt::format("exec {} agent --stdio --key {}", program, key);
}

/// The limits that the agent sets for its machine.
std::string limit_words(const settings::MachineEntry& machine) {
  std::string words;
  if (machine.cpus) {
    words += fmt::format(" --cpus {:.12g}", model::as_number(*machine.cpus));
  }
  if (machine.memory) words += fmt::format(" --memory {}B", machine.memory->count);
  if (!machine.gpus.empty()) words += fmt::format(" --gpus {}", machine.gpus);
  return words;
}

/// A command line that runs the machine's setup and then the agent in one shell, so that the agent
/// and its tasks find the variables that the setup sets. The output of the setup does not mix with
/// the messages between agent and yard. A setup that exits the shell is reported as failed.
std::string with_setup(const settings::MachineEntry& machine, const std::string& directory,
                       const std::string& agent) {
  if (machine.setup.empty()) return agent;
  constexpr int kFailed = run::RemoteMachine::kSetupFailed;
  return fmt::format(
      "trap 'exit {}' 0; cd {} >&2 || exit; eval {} < /dev/null >&2 || exit; trap - 0; {}", kFailed,
      text::shell_word(directory), text::shell_word(machine.setup), agent);
}

/// The command that leads to a machine's agent.
std::vector<std::string> words_to_agent(const settings::MachineEntry& machine,
                                        const std::string& agent, const JobGround& ground) {
  std::vector<std::string> command = words_of_ssh(ground.configuration);
  command.push_back(machine.host);
  const std::string& directory = machine.directory.empty() ? ground.directory : machine.directory;
  command.push_back(with_setup(machine, directory, agent + limit_words(machine)));
  return command;
}

/// Text from other programs, a line each, without anything that would act on a terminal.
std::string shown_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string shown;
  for (std::string line; std::getline(lines, line);) {
    shown += (shown.empty() ? "" : "\n") + report::plain(line);
  }
  return shown;
}

Error as_shown(const Error& error) {
  Error shown{shown_lines(error.message)};
  for (const std::string& other : error.others) shown.add(shown_lines(other));
  return shown;
}

/// With the key of a new agent, or that of the agent of a dead execution.
run::RemoteMachine::Options way_to(const std::string& name, const JobGround& ground) {
  const auto known = ground.keys.find(name);
  return {
      .name = name,
      .key = known == ground.keys.end() ? sys::random_token() : known->second,
      .command = {},
      .program = kProgram,
      .lease = ground.configuration.duration(settings::Setting::AgentLease),
      .end_max = ground.configuration.period(settings::kMachineEnd, run::RemoteMachine::kEndMax),
      .silence_max =
          ground.configuration.period(settings::kMachineSilence, run::RemoteMachine::kSilenceMax)};
}

run::RemoteMachine::Options way_by_ssh(const settings::MachineEntry& machine,
                                       const std::string& program, const JobGround& ground) {
  run::RemoteMachine::Options way = way_to(machine.host, ground);
  way.command = words_to_agent(machine, agent_line(program, way.key), ground);
  if (machine.directory.empty()) return way;
  way.unshared = {.rsync = words_of_rsync(ground.configuration),
                  .host = machine.host,
                  .directory = machine.directory,
                  .here = ground.directory};
  return way;
}

/// To an agent on this machine.
Result<run::RemoteMachine::Options> way_here(const JobGround& ground) {
  const Result<std::string> program = sys::own_program();
  if (!program) return std::unexpected(program.error());
  run::RemoteMachine::Options way = way_to(sys::host_name(), ground);
  way.command = {*program, "agent", "--stdio", "--key", way.key};
  return way;
}

run::RemoteMachine::Options way_by_srun(const std::string& node, const std::string& allocation,
                                        const settings::Configuration& configuration) {
  run::RemoteMachine::Options way = way_to(node, {.configuration = configuration, .directory = {}});
  way.command = words_of_srun(node, allocation);
  way.command.insert(
      way.command.end(),
      {"/bin/sh", "-c",
       agent_line(configuration.text(settings::Setting::AgentProgram), way.key) + " --step"});
  return way;
}

/// Before people see the run.
void say_of_slurm(const std::string& text) {
  sys::write_standard_error(fmt::format("trainyard: slurm: {}\n", report::plain(text)));
}

Result<run::AllocatedMachines::Options> asked_of_slurm(
    const settings::Configuration& configuration) {
  Result<std::vector<std::string>> ask =
      words_of_salloc(settings::words(configuration, settings::Setting::SlurmOptions));
  if (!ask) return std::unexpected(std::move(ask.error()));
  run::AllocatedMachines::Options options{
      .each = {.ask = std::move(*ask), .see_its_end = words_that_see_its_end},
      .count = configuration.count(settings::Setting::SlurmAllocations),
      .lead =
          [configuration](const std::string& node, const std::string& allocation) {
            return way_by_srun(node, allocation, configuration);
          },
      .note = say_of_slurm};
  options.idle_max = configuration.period(settings::kAllocationIdle, options.idle_max);
  return options;
}

bool names(const settings::Configuration& configuration, std::string_view host) {
  return std::ranges::any_of(
      settings::machines(configuration),
      [host](const settings::MachineEntry& machine) { return machine.host == host; });
}

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

/// Whether any machine has its own directory.
bool syncs(const settings::Configuration& configuration) {
  return std::ranges::any_of(
      settings::machines(configuration),
      [](const settings::MachineEntry& machine) { return !machine.directory.empty(); });
}

/// Brings the code of a job to the machines that have a directory of their own for it: by rsync,
/// before their agents are started. Nothing is deleted there.
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

/// The time that tasks on other machines run on without contact to their yard, plus the time they
/// take to end: as configured for that execution, or the default if that can no longer be read.
Duration time_after(const journal::ExecutionRow& execution) {
  const auto loaded = settings::load_configuration({.config_file = execution.config_file,
                                                    .settings = execution.settings,
                                                    .current_directory = "/"});
  const settings::Configuration configuration = loaded ? *loaded : settings::Configuration();
  return configuration.duration(settings::Setting::AgentLease) +
         configuration.period(settings::kMachineEnd, run::RemoteMachine::kEndMax);
}

}  // namespace

std::vector<std::string> RunMachines::keys_of_others() const {
  return remotes ? remotes->keys_of_others() : std::vector<std::string>();
}

model::Capacity RunMachines::capacity(const model::Capacity& here) const {
  return remotes ? model::most_of(runs_here ? here : model::Capacity{}, all(here)) : here;
}

std::vector<model::NamedMachine> RunMachines::all(const model::Capacity& here) const {
  std::vector<model::NamedMachine> found;
  if (runs_here || !remotes) found.push_back({.name = sys::host_name(), .capacity = here});
  if (!remotes) return found;
  const std::vector<model::Capacity> theirs = remotes->capacities();
  // Machines that Slurm grants later are not among those that a job is made for.
  for (std::size_t i = 0; i < std::min(theirs.size(), names.size()); ++i) {
    found.push_back({.name = names[i], .capacity = theirs[i]});
  }
  return found;
}

bool asks_slurm(const settings::Configuration& configuration) {
  return names(configuration, kSlurm) && !inside_slurm() &&
         !settings::words(configuration, settings::Setting::SlurmOptions).empty();
}

bool runs_here(const settings::Configuration& configuration) {
  return names(configuration, kLocal) && !configuration.flag(settings::Setting::AgentLocal);
}

bool runs_only_here(const settings::Configuration& configuration) {
  const std::vector only_here{settings::MachineEntry{.host = std::string(kLocal)}};
  return settings::machines(configuration) == only_here;
}

Result<std::vector<NotBrought>> equip_machines(const JobGround& ground) {
  Result<std::vector<NotBrought>> not_brought = copy_agents(ground.configuration);
  if (not_brought) std::ranges::move(sync_code(ground), std::back_inserter(*not_brought));
  return not_brought;
}

bool takes_more_than_a_look(const settings::Configuration& configuration) {
  return asks_slurm(configuration) || syncs(configuration) ||
         configuration.flag(settings::Setting::AgentCopy);
}

Result<std::vector<run::RemoteMachine::Options>> ways_to_machines(const JobGround& ground) {
  const settings::Configuration& configuration = ground.configuration;
  const Result<std::string> program = agent_program(configuration);
  if (!program) return std::unexpected(program.error());
  std::vector<run::RemoteMachine::Options> machines;
  for (const settings::MachineEntry& machine : settings::machines(configuration)) {
    if (machine.host == kLocal && runs_here(configuration)) continue;
    if (machine.host == kLocal) {
      Result<run::RemoteMachine::Options> here = way_here(ground);
      if (!here) return std::unexpected(std::move(here.error()));
      machines.push_back(*std::move(here));
      continue;
    }
    if (machine.is_reached_by_ssh()) {
      machines.push_back(way_by_ssh(machine, *program, ground));
      continue;
    }
    if (asks_slurm(configuration)) continue;
    const Result<run::GrantedNodes> granted = slurm_nodes();
    if (!granted) return std::unexpected(granted.error());
    const Duration now = sys::EventLoop::now();
    const std::optional<Duration> left = granted->left;
    for (const std::string& node : granted->nodes) {
      machines.push_back(way_by_srun(node, /*allocation=*/{}, configuration));
      if (left) machines.back().until = now + *left;
    }
  }
  return machines;
}

Result<RunMachines> reach_machines(const JobGround& ground,
                                   const std::function<bool()>& is_wanted) {
  const settings::Configuration& configuration = ground.configuration;
  RunMachines found;
  found.runs_here = runs_here(configuration);
  const bool asks = asks_slurm(configuration);
  Result<std::vector<run::RemoteMachine::Options>> machines = ways_to_machines(ground);
  if (!machines) return std::unexpected(std::move(machines.error()));
  if (machines->empty() && !asks) return found;
  const Result<std::vector<NotBrought>> not_brought = equip_machines(ground);
  if (!not_brought) return std::unexpected(not_brought.error());
  if (!not_brought->empty()) {
    Error wrong;
    for (const NotBrought& each : *not_brought) wrong.add(text_of(each));
    return std::unexpected(as_shown(wrong));
  }
  found.remotes = std::make_unique<run::RemoteMachines>();
  if (asks) {
    Result<run::AllocatedMachines::Options> asked = asked_of_slurm(configuration);
    if (!asked) return std::unexpected(std::move(asked.error()));
    say_of_slurm("requests nodes: " + configuration.text(settings::Setting::SlurmOptions));
    found.allocated = std::make_unique<run::AllocatedMachines>(*found.remotes, std::move(*asked));
    const Result<void> granted = found.allocated->wait_for_the_first(is_wanted);
    if (!granted) return std::unexpected(as_shown(Error(granted.error()).in("slurm")));
  }
  const Result<void> reached = found.remotes->connect(std::move(*machines));
  if (!reached) return std::unexpected(as_shown(reached.error()));
  for (std::size_t i = 0; i < found.remotes->count(); ++i) {
    found.names.push_back(found.remotes->at(i).name());
  }
  return found;
}

Result<void> check_machines(const RunMachines& machines, const job::Job& job,
                            const model::Capacity& here) {
  if (!machines.remotes) return {};
  const bool is_one = machines.all(here).size() == 1 && !machines.allocated;
  for (const model::Shape& shape : job.plan().shapes) {
    if (is_one || !shape.terms.request.gpu) continue;
    return std::unexpected(
        Error{fmt::format("group '{}': 'device' names a GPU by its number, which a run on several "
                          "machines cannot use; write 'gpus: 1', and select with 'where'",
                          job.plan().groups.at(shape.group.value).name)});
  }
  return look_before_run(machines, job, here);
}

Result<void> begin_on_machines(const RunMachines& machines, const job::Job& job) {
  if (!machines.remotes) return {};
  for (std::size_t i = 0; job.code_copy() && i < machines.remotes->count(); ++i) {
    if (!machines.remotes->at(i).has_own_directories()) continue;
    return std::unexpected(
        Error{fmt::format("{}: --snapshot cannot be used with a machine that has a separate "
                          "'directory', where the copy of the code is not; leave out one of them",
                          machines.remotes->at(i).name())});
  }
  const Result<void> begun =
      machines.remotes->begin({.run_directory = job.paths().run_directory,
                               .proof = {},
                               .token = {},
                               .sample_every = settings::sample_interval(job.configuration()),
                               .log_max = settings::log_max(job.configuration())});
  if (!begun) return std::unexpected(as_shown(begun.error()));
  return {};
}

Duration time_left_for_tasks(const std::string& run_directory,
                             const journal::ExecutionRow& execution, Instant last) {
  if (execution.ended || run::read_machine_keys(run_directory).empty()) return Duration{0};
  const std::int64_t died_unix_ms = execution.started_unix_ms + (last - execution.started).count();
  return Duration{died_unix_ms - sys::unix_milliseconds()} + time_after(execution);
}

Result<void> wait_for_earlier_machines(const std::string& run_directory, const RunMachines& here) {
  Result<journal::JournalReader> reader = open_run(run_directory);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(executions.error());
  if (executions->empty() || executions->back().ended) return {};
  const Result<std::vector<journal::MachineRow>> machines = reader->machines();
  if (!machines) return std::unexpected(machines.error());
  std::vector<std::string> left;
  for (const journal::MachineRow& machine : *machines) {
    const bool is_named = std::ranges::find(here.names, machine.name) != here.names.end();
    const bool was_local = machine.name == executions->back().host;
    if (!is_named && !was_local) left.push_back(machine.name);
  }
  if (left.empty()) return {};
  // The time of its death is unknown: it may have been a moment ago.
  const Duration most = time_after(executions->back());
  sys::write_standard_error(
      fmt::format("trainyard: tasks of the last execution may still run on {} for another {}, and "
                  "the run waits for their end ('--on {}' uses these machines and does not wait)\n",
                  fmt::join(left, ", "), trainyard::to_text(most), fmt::join(left, ",")));
  here.remotes ? here.remotes->let_pass(most) : sys::let_pass(most);
  return {};
}

}  // namespace trainyard::cli
