#include "cli/earlier_machines.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "cli/known_runs.h"
#include "run/machine_keys.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "settings/configuration.h"
#include "settings/periods.h"
#include "sys/clock.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

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
