// `trainyard machines`: whether a run could use the named machines, their resources, and the parts
// of a job there.
#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/host_programs.h"
#include "cli/machine_checks.h"
#include "cli/run_machines.h"
#include "cli/shared_words.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "job/program_as_job.h"
#include "job/task_keys.h"
#include "journal/reader.h"
#include "model/launch.h"
#include "model/resources.h"
#include "report/machine_text.h"
#include "report/terminal_text.h"
#include "run/machine_look.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "settings/configuration.h"
#include "settings/machine_entries.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/mistake.h"
#include "text/shell_quote.h"
#include "wire/agent.h"

namespace trainyard::cli {
namespace {

struct SeenMachine {
  std::string name;
  std::string host;     ///< The machine's own name.
  std::string program;  ///< The program that answers there.
  model::Capacity capacity;
  std::string wrong;  ///< The reason why it cannot be checked; empty: it was.
  Duration clock_ahead{0};
  Bytes disk_free;
  std::vector<MachineCheck> checks;

  [[nodiscard]] bool will_do() const {
    return wrong.empty() && std::ranges::none_of(checks, [](const MachineCheck& each) {
             return each.state == MachineCheck::State::Bad;
           });
  }
};

SeenMachine seen_of(const run::RemoteMachine& remote) {
  SeenMachine seen{.name = remote.name(), .wrong = remote.failure()};
  if (remote.hello() == nullptr) {
    if (seen.wrong.empty()) seen.wrong = "no response";
    return seen;
  }
  seen.host = remote.hello()->host;
  seen.program = remote.hello()->program;
  seen.capacity = remote.hello()->capacity;
  seen.clock_ahead = remote.clock_ahead();
  return seen;
}

/// By the name that people know it by in a run.
model::NamedMachine named(const SeenMachine& seen) {
  return {.name = seen.name == kLocal ? seen.host : seen.name, .capacity = seen.capacity};
}

/// Reaches the machines, and queries their resources: nothing of it stays there afterwards.
class MachineLookout {
 public:
  /// Waits until all have answered, or cannot.
  MachineLookout(std::vector<run::RemoteMachine::Options> ways, bool local_too) {
    // The problems of each are read below.
    static_cast<void>(remotes_.connect(std::move(ways)));
    for (std::size_t i = 0; i < remotes_.count(); ++i) all_.push_back(seen_of(remotes_.at(i)));
    // This one last, as it takes no time.
    if (local_too) {
      all_.push_back({.name = std::string(kLocal),
                      .host = sys::host_name(),
                      .program = kProgram,
                      .capacity = hardware::find_this_machine().reading.capacity});
    }
  }

  /// The machines that answer, with this one last if it is among them.
  [[nodiscard]] std::vector<model::NamedMachine> machines() const {
    std::vector<model::NamedMachine> found;
    for (const SeenMachine& seen : all_) {
      if (seen.wrong.empty()) found.push_back(named(seen));
    }
    return found;
  }

  /// The capacity that a job is made for: the most that any of them has.
  [[nodiscard]] model::Capacity capacity() const { return model::most_of({}, machines()); }

  /// All machines, with the checks for a job; null: for any run on this ground. Things that could
  /// not be copied are reported with their machine.
  [[nodiscard]] std::vector<SeenMachine> look(const job::Job* job, const JobGround& ground,
                                              const std::vector<NotBrought>& not_brought) {
    std::vector<MachineQuestion> questions;
    std::vector<wire::AgentLook> looks;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      questions.push_back(question_for(i, job, ground));
      looks.push_back(questions.back().look);
    }
    std::vector<wire::AgentLook> others(
        looks.begin(), looks.begin() + static_cast<std::ptrdiff_t>(remotes_.count()));
    // The problems of each are read below.
    static_cast<void>(remotes_.look(std::move(others)));
    const std::optional<MachineCheck> tasks =
        job != nullptr ? check_of_tasks(*job, machines()) : std::nullopt;
    std::vector<SeenMachine> all = all_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SeenMachine& machine = all[i];
      if (!machine.wrong.empty()) {
        // The reason why its agent could not be copied is nearer to the cause than that it is
        // missing.
        const auto failed = std::ranges::find(not_brought, machine.name, &NotBrought::host);
        if (failed != not_brought.end()) machine.wrong = text_of(*failed);
        continue;
      }
      const bool is_other = i < remotes_.count();
      if (is_other && remotes_.at(i).seen() == nullptr) {
        machine.wrong = remotes_.at(i).failure();
        if (machine.wrong.empty()) machine.wrong = "no answer to the check of the machine";
        continue;
      }
      const wire::AgentSeen seen =
          is_other ? *remotes_.at(i).seen() : run::look_at_machine(looks[i]);
      machine.disk_free = seen.disk_free;
      machine.checks = checks_of(questions[i], seen);
      machine.checks.push_back(check_of_gpus(machine.capacity));
      if (tasks) machine.checks.push_back(*tasks);
      add_checks_of_entry(machine, ground, not_brought);
      if (is_other) machine.checks.push_back(check_of_clock(machine.clock_ahead));
    }
    return all;
  }

 private:
  /// The question for a machine. The job file itself need not exist on a machine to which it is not
  /// copied.
  [[nodiscard]] MachineQuestion question_for(std::size_t index, const job::Job* job,
                                             const JobGround& ground) const {
    const bool is_other = index < remotes_.count();
    const model::Elsewhere elsewhere =
        is_other ? remotes_.at(index).grant().elsewhere : model::Elsewhere();
    if (job == nullptr) return question_about(ground.directory, elsewhere);
    const model::NamedMachine machine = named(all_[index]);
    MachineQuestion question = question_about(
        {.job = *job, .machine = machine, .elsewhere = elsewhere, .with_imports = true});
    if (!elsewhere.work.there.empty()) return question;
    Fingerprint print;
    print.add(job->text());
    question.look.file = job->paths().file;
    question.look.file_print = print.value();
    return question;
  }

  void add_checks_of_entry(SeenMachine& machine, const JobGround& ground,
                           const std::vector<NotBrought>& not_brought) const {
    for (const settings::MachineEntry& said : settings::machines(ground.configuration)) {
      if (said.host != machine.name) continue;
      if (auto limits = check_of_limits(said, machine.capacity)) {
        machine.checks.push_back(std::move(*limits));
      }
      if (said.directory.empty()) continue;
      const auto failed = std::ranges::find_if(not_brought, [&said](const NotBrought& it) {
        return it.host == said.host && it.what == kCode;
      });
      machine.checks.push_back(check_of_sync(failed == not_brought.end() ? "" : failed->why));
    }
  }

  run::RemoteMachines remotes_;
  std::vector<SeenMachine> all_;
};

/// The machine as a row of a run's journal.
journal::MachineRow row_of(const SeenMachine& seen) {
  journal::MachineRow row{.name = seen.name,
                          .cpus = seen.capacity.cpus,
                          .memory = seen.capacity.memory,
                          .joined = {},
                          .gone = {},
                          .why = {},
                          .gpus = {}};
  for (const model::Gpu& gpu : seen.capacity.gpus) {
    row.gpus.push_back(
        {.machine = seen.name, .label = gpu.label(), .name = gpu.name, .memory = gpu.memory});
  }
  return row;
}

std::string painted(MachineCheck::State state, bool colours) {
  const std::string_view word = word_of(state);
  if (!colours) return std::string(word);
  using enum MachineCheck::State;
  const char* const colour = state == Good ? "32" : state == Warning ? "33" : "31";
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, word);
}

std::string table_of_machines(const std::vector<SeenMachine>& all, bool colours) {
  std::size_t width = 0;
  for (const SeenMachine& seen : all) width = std::max(width, seen.name.size());
  std::string text;
  for (const SeenMachine& seen : all) {
    const std::string words =
        seen.wrong.empty()
            ? fmt::format("{}, {}, {}", seen.host, report::machine_text(row_of(seen)), seen.program)
            : seen.wrong;
    text += fmt::format(
        "{:<{}}  {}  {}\n", seen.name, width,
        painted(seen.will_do() ? MachineCheck::State::Good : MachineCheck::State::Bad, colours),
        report::plain(words));
    for (const MachineCheck& check : seen.checks) {
      text += fmt::format("  {:<9}  {}  {}\n", check.name, painted(check.state, colours),
                          report::plain(check.says));
    }
  }
  return text;
}

nlohmann::json json_of_checks(const SeenMachine& seen) {
  nlohmann::json checks = nlohmann::json::array();
  for (const MachineCheck& check : seen.checks) {
    using enum MachineCheck::State;
    const char* const state = check.state == Good      ? "ok"
                              : check.state == Warning ? "warning"
                                                       : "no";
    checks.push_back({{"check", check.name}, {"state", state}, {"says", check.says}});
  }
  return checks;
}

std::string json_of_machines(const std::vector<SeenMachine>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const SeenMachine& seen : all) {
    if (!seen.wrong.empty()) {
      list.push_back({{"name", seen.name}, {"ok", false}, {"wrong", seen.wrong}});
      continue;
    }
    nlohmann::json gpus = nlohmann::json::array();
    for (const model::Gpu& gpu : seen.capacity.gpus) {
      gpus.push_back({{"name", gpu.name}, {"memory_bytes", gpu.memory.count}});
    }
    list.push_back({{"name", seen.name},
                    {"ok", seen.will_do()},
                    {"host", seen.host},
                    {"program", seen.program},
                    {"cpus", model::as_number(seen.capacity.cpus)},
                    {"memory_bytes", seen.capacity.memory.count},
                    {"gpus", std::move(gpus)},
                    {"disk_free_bytes", seen.disk_free.count},
                    {"clock_ahead_ms", seen.clock_ahead.count()},
                    {"checks", json_of_checks(seen)}});
  }
  return nlohmann::json{{"machines", std::move(list)}}.dump(2) + "\n";
}

/// The job as it would be made for these machines. Tasks that fit on none of them are reported with
/// the machines.
std::expected<job::Job, text::Mistakes> job_for(const MachineLookout& lookout,
                                                job::LoadOptions load) {
  load.only_shown = true;
  load.machines = lookout.machines();
  return job::Job::load(load, lookout.capacity());
}

/// Without a job file that of any run that is started here.
std::expected<JobGround, text::Mistakes> ground_for(const job::LoadOptions& load) {
  if (!load.job_file.empty()) {
    const std::expected<std::string, text::Mistakes> text = read_job({}, load);
    if (!text) return std::unexpected(text.error());
    return ground_of_job({}, *text, load);
  }
  auto configuration = settings::load_configuration({.config_file = load.config_file,
                                                     .settings = load.settings,
                                                     .current_directory = load.current_directory,
                                                     .task_keys = job::keys_of_task_options()});
  if (!configuration) return std::unexpected(std::move(configuration.error()));
  return JobGround{.configuration = std::move(*configuration), .directory = load.current_directory};
}

struct MachinesOptions {
  std::string job_file;
  std::string on;
  std::string config_file;
  std::vector<std::string> settings;
  bool json = false;
};

CLI::App* add_machines(CLI::App& app, MachinesOptions& options) {
  CLI::App* machines = app.add_subcommand("machines", "Check the machines that a run would use");
  machines->group(command_groups::kMachine);
  machines->add_option("job", options.job_file, "Job file whose tasks the machines must suit")
      ->type_name(value_kinds::kJobFile);
  machines
      ->add_option("--on", options.on, "Hosts: lab1,me@lab2,local\n(default: setting 'machines')")
      ->type_name(value_kinds::kHosts)
      ->check(value_of_setting(settings::Setting::Machines));
  add_json(*machines, options.json);
  add_configuration(*machines, options.config_file, options.settings);
  machines->footer(
      "Examples:\n"
      "  trainyard machines\n"
      "  trainyard machines --on lab1,me@lab2,local\n"
      "  trainyard machines sweep.yaml --on lab1,me@lab2\n"
      "\n"
      "Prints the resources of each machine and a line for each check: ok, !! (warning) or NO,\n"
      "with the reason. The checks: directory, programs of the tasks, preloaded modules, GPUs, "
      "disk\n"
      "and clock. Code is copied there if the setting 'machines' says so.\n"
      "Exit codes: 0 a run can use all machines, 2 it cannot.");
  return machines;
}

ExitCode machines_command(const MachinesOptions& options) {
  std::vector<std::string> said = options.settings;
  if (!options.on.empty()) said.push_back("machines=" + options.on);
  if (!options.job_file.empty() && !job::is_named_as_job(options.job_file) &&
      !sys::exists(options.job_file)) {
    return fail(
        fmt::format("job file '{0}' not found; if '{0}' is a host, type: trainyard "
                    "machines --on {1}",
                    options.job_file, text::shell_word(options.job_file)));
  }
  Result<job::LoadOptions> load = load_options(options.job_file, options.config_file, said);
  if (!load) return fail(load.error());
  const std::expected<JobGround, text::Mistakes> ground = ground_for(*load);
  if (!ground) return fail(ground.error());
  Result<std::vector<run::RemoteMachine::Options>> ways = ways_to_machines(*ground);
  if (!ways) return fail(ways.error());
  if (asks_slurm(ground->configuration)) note("slurm: nodes are requested when a run starts");
  const Result<std::vector<NotBrought>> not_brought = equip_machines(*ground);
  if (!not_brought) return fail(not_brought.error());
  MachineLookout lookout(std::move(*ways), runs_here(ground->configuration));
  std::optional<job::Job> job;
  if (!options.job_file.empty()) {
    std::expected<job::Job, text::Mistakes> read = job_for(lookout, std::move(*load));
    if (!read) return fail(read.error());
    job.emplace(std::move(*read));
  }
  const std::vector<SeenMachine> all = lookout.look(job ? &*job : nullptr, *ground, *not_brought);
  const bool colours = sys::takes_colour(sys::kStandardOutput);
  const ExitCode printed =
      options.json ? answer(json_of_machines(all)) : answer_bytes(table_of_machines(all, colours));
  return std::ranges::all_of(all, &SeenMachine::will_do) ? printed : ExitCode::Usage;
}

}  // namespace

Entry machines_entry() { return entry({"machines"}, add_machines, machines_command); }

}  // namespace trainyard::cli
