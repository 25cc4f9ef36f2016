// `trainyard devices`: the GPUs, their processes, and the reservations of a run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/gpu_driver.h"
#include "hardware/gpu_watch.h"
#include "hardware/process_owner.h"
#include "journal/reader.h"
#include "model/gpu_limits.h"
#include "model/promises.h"
#include "process/drain_file.h"
#include "process/promise_board.h"
#include "report/devices.h"
#include "run/active_run.h"
#include "run/neighbours.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/files.h"

namespace trainyard::cli {
namespace {

struct DevicesOptions {
  std::string run_directory;  ///< The run whose reservations are shown; empty: the active run.
  bool json = false;
};

/// Adds the reservations of the named run; without a name those of the active run, if there is one.
Result<void> add_promises(const std::string& named, report::DevicesView& view) {
  const Result<std::string> run = find_run(named);
  const bool lives = run && run::active_process(*run).has_value();
  if (!named.empty() && !run) return std::unexpected(run.error());
  if (!lives) return {};
  Result<journal::JournalReader> reader = open_run(*run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  view.run_directory = seen_from_here(*run);
  const Result<std::vector<journal::MachineRow>> machines = reader->machines();
  if (!machines) return std::unexpected(machines.error());
  // GPUs of other machines have the same numbers as the GPUs of this one.
  const std::string here = machines->size() > 1 ? sys::host_name() : std::string();
  return reader->tasks({.running = true}, [&view, &here](journal::TaskRow row) {
    if (here.empty() || row.machine == here) view.tasks.push_back(std::move(row));
    return true;
  });
}

report::DeviceProcess view_of(const hardware::GpuProcess& process) {
  hardware::ProcessOwner owner = hardware::owner_of(process.pid);
  report::DeviceProcess view{.pid = process.pid,
                             .memory = process.memory,
                             .user = std::move(owner.user),
                             .command = std::move(owner.command),
                             .task = {},
                             .run_directory = {},
                             .other_user = hardware::other_user_of(process.pid)};
  if (owner.task.empty()) return view;
  view.task = fmt::format("{}/{}", owner.group, owner.task);
  view.run_directory = seen_from_here(owner.run_directory);
  return view;
}

std::int64_t current_unix_s() {
  constexpr std::int64_t kMilliseconds = 1'000;
  return sys::unix_milliseconds() / kMilliseconds;
}

/// The run whose tasks are shown one by one is not among the other runs.
void add_neighbours(report::DevicesView& view) {
  view.neighbours = run::yards_here();
  const std::int64_t now = current_unix_s();
  for (const model::Neighbour& it : view.neighbours) report::add_drop_outs(view, it, now);
  const std::string& shown = view.run_directory;
  const std::string name = shown.substr(shown.rfind('/') + 1);
  std::erase_if(view.neighbours, [&](const model::Neighbour& it) {
    return !shown.empty() && it.is_ours && it.its.name == name;
  });
}

/// Adds the drains that are in force now, of root and of this user.
void add_drains(report::DevicesView& view) {
  view.midnight_unix_s = sys::last_midnight_unix_s();
  const std::int64_t now = current_unix_s();
  for (model::Drain& drain : process::read_drains(process::PromiseBoard::usual_directories())) {
    if (drain.until_unix_s != 0 && drain.until_unix_s <= now) continue;
    report::DeviceView* const device = report::find_device(view, drain.uuid);
    if (device != nullptr) device->drained = std::move(drain);
  }
}

/// A task that was forked from what had its modules loaded has the environment of that.
void name_tasks(report::DevicesView& view) {
  for (report::DeviceView& device : view.devices) {
    for (report::DeviceProcess& process : device.processes) {
      if (!process.task.empty() || process.user.empty()) continue;
      std::vector<std::int64_t> line = hardware::ancestors_of(process.pid);
      line.push_back(process.pid);
      for (const journal::TaskRow& row : view.tasks) {
        if (std::ranges::find(line, row.pid) == line.end()) continue;
        process.task = fmt::format("{}/{}", row.group_name, row.id);
        process.run_directory = view.run_directory;
      }
    }
  }
}

ExitCode devices_command(const DevicesOptions& options) {
  Result<hardware::GpuWatch> watch = hardware::GpuWatch::start({.environment = sys::environment()});
  if (!watch) return fail(watch.error());
  const hardware::GpuList& list = watch->list();
  report::DevicesView view{
      .devices = {}, .none_reason = list.none_reason, .notes = list.notes, .tasks = {}};
  const std::vector<hardware::GpuState> states = watch->look_now();
  for (std::size_t i = 0; i < list.gpus.size(); ++i) {
    const hardware::GpuState& state = states.at(i);
    report::DeviceView device{.gpu = list.gpus[i],
                              .present = state.present,
                              .processes_known = state.processes_known,
                              .utilization = state.utilization,
                              .used = state.used,
                              .processes = {}};
    for (const hardware::GpuProcess& process : state.processes) {
      if (!process.memory_known) continue;  // All that is shown is who has how much.
      device.processes.push_back(view_of(process));
    }
    view.devices.push_back(std::move(device));
  }
  if (const Result<void> added = add_promises(options.run_directory, view); !added) {
    return fail(added.error());
  }
  add_neighbours(view);
  add_drains(view);
  name_tasks(view);
  return answer(options.json ? report::devices_json(view) : report::devices_text(view));
}

CLI::App* add_devices(CLI::App& app, DevicesOptions& options) {
  CLI::App* devices = app.add_subcommand("devices", "Show GPUs, their processes and reservations");
  devices->group(command_groups::kMachine);
  devices
      ->add_option("run,--run-dir", options.run_directory,
                   "Run number, name, directory or job file\n"
                   "(default: the active run in ./runs, else the latest)")
      ->type_name(value_kinds::kRun)
      ->check(empty_run_error);
  add_json(*devices, options.json);
  devices->footer(
      "Examples:\n"
      "  trainyard devices\n"
      "  trainyard devices runs/sweep --json\n"
      "\n"
      "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES limit the usable GPUs.");
  return devices;
}

}  // namespace

Entry devices_entry() { return entry({"devices"}, add_devices, devices_command); }

}  // namespace trainyard::cli
