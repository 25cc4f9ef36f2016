// `trainyard doctor`: the resources and limits in force here, and their causes.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "hardware/capacity.h"
#include "hardware/this_machine.h"
#include "job/task_keys.h"
#include "model/plan.h"
#include "model/resources.h"
#include "process/memory_group.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/mistake.h"

namespace trainyard::cli {
namespace {

struct DoctorOptions {
  std::string config_file;
  std::vector<std::string> settings;
};

/// The current state, and the reasons why tasks cannot use more.
std::string now_text(const hardware::CapacityReading& reading) {
  const model::Capacity& capacity = reading.capacity;
  std::string text = fmt::format("memory free now: {}\n", to_text(hardware::memory_available()));
  if (capacity.processes_max > 0) {
    text +=
        fmt::format("at most {} {} at once: {}\n", capacity.processes_max,
                    capacity.processes_max == 1 ? "task" : "tasks", capacity.processes_max_reason);
  }
  for (const std::string& note : reading.notes) text += fmt::format("because of {}\n", note);
  if (!capacity.gpus.empty()) return text;
  const std::string& why = capacity.no_gpus_reason;
  return text + fmt::format("GPUs: none{}\n", why.empty() ? "" : fmt::format(" ({})", why));
}

/// The way in which memory limits are enforced, and the reason.
std::string enforcement_text() {
  const process::DelegatedGroup group = process::find_delegated_group();
  if (group.path.empty()) {
    return fmt::format("memory-limit: hard is enforced by a check each second ({})\n",
                       group.why_not);
  }
  return fmt::format("memory-limit: hard is enforced by the kernel (control group '{}')\n",
                     group.path);
}

ExitCode doctor_command(const DoctorOptions& options) {
  const auto here = sys::current_directory();
  if (!here) return fail(here.error());
  const auto configuration =
      settings::load_configuration({.config_file = options.config_file,
                                    .settings = options.settings,
                                    .current_directory = *here,
                                    .task_keys = job::keys_of_task_options()});
  if (!configuration) return fail(configuration.error());
  const hardware::ThisMachine machine = hardware::find_this_machine();
  const model::Policy in_force = settings::policy(*configuration, machine.reading.capacity);
  const model::Capacity& capacity = machine.reading.capacity;
  const ExitCode shown =
      answer(settings::machine_text(capacity, in_force) + now_text(machine.reading) +
             settings::gpus_text(capacity, in_force) + enforcement_text());
  const auto none = settings::no_memory_left(*configuration, capacity.memory, "this machine");
  if (!none) return shown;
  return fail(text::to_text(*none) + ": no task can start", ExitCode::TaskFailed);
}

CLI::App* add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App* doctor = app.add_subcommand("doctor", "Show which resources tasks may use, and why");
  doctor->group(command_groups::kMachine);
  add_configuration(*doctor, options.config_file, options.settings);
  doctor->footer(
      "Examples:\n"
      "  trainyard doctor\n"
      "  trainyard doctor --set remain-limit.memory=8GB\n"
      "\n"
      "Exit codes: 0 shown, 1 no task can start, or standard output cannot be written, 2 the\n"
      "configuration is wrong.");
  return doctor;
}

}  // namespace

Entry doctor_entry() { return entry({"doctor"}, add_doctor, doctor_command); }

}  // namespace trainyard::cli
