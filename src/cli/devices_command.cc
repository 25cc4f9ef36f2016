// `trainyard devices`: the GPUs, what is on them, and what a run has promised of them.
#include <cstddef>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_run.h"
#include "io/environment.h"
#include "io/files.h"
#include "io/gpu_driver.h"
#include "io/gpu_watch.h"
#include "io/process_owner.h"
#include "journal/reader.h"
#include "report/devices.h"

namespace trainyard::cli {
namespace {

/// What the run has promised that is named, or else the one at work, if one is.
Result<void> add_promises(const std::string& named, report::DevicesView& view) {
  const Result<std::string> run = find_run(named);
  const bool lives = run && io::RunLock::holder(*run).has_value();
  if (!named.empty() && !run) return std::unexpected(run.error());
  if (!lives) return {};
  Result<JournalReader> reader = open_run(*run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  view.run_directory = seen_from_here(*run);
  return reader->tasks({.running = true}, [&view](TaskRow row) {
    view.tasks.push_back(std::move(row));
    return true;
  });
}

}  // namespace

ExitCode devices_command(const DevicesOptions& options) {
  Result<io::GpuWatch> watch = io::GpuWatch::start({.environment = io::environment()});
  if (!watch) return fail(watch.error());
  const io::GpuList& list = watch->list();
  report::DevicesView view{
      .devices = {}, .none_reason = list.none_reason, .notes = list.notes, .tasks = {}};
  const std::vector<io::GpuState> states = watch->look_now();
  for (std::size_t i = 0; i < list.gpus.size(); ++i) {
    const io::GpuState& state = states.at(i);
    report::DeviceView device{.gpu = list.gpus[i],
                              .present = state.present,
                              .processes_known = state.processes_known,
                              .utilization = state.utilization,
                              .used = state.used,
                              .processes = {}};
    for (const io::GpuProcess& process : state.processes) {
      if (!process.memory_known) continue;  // All that is shown is who has how much.
      device.processes.push_back({.pid = process.pid,
                                  .memory = process.memory,
                                  .other_user = io::other_user_of(process.pid)});
    }
    view.devices.push_back(std::move(device));
  }
  if (const Result<void> added = add_promises(options.run_directory, view); !added) {
    return fail(added.error());
  }
  print(options.json ? devices_json(view) : devices_text(view));
  return ExitCode::Success;
}

}  // namespace trainyard::cli
