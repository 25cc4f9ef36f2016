// `trainyard plan`: plays a run through before it begins.
#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/job_forecast.h"
#include "app/planned_machines.h"
#include "base/bytes.h"
#include "base/result.h"
#include "cli/checked_job.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/machine_checks.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/gpu_driver.h"
#include "hardware/process_owner.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "job/program_as_job.h"
#include "model/event.h"
#include "model/gpu_stranger.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "report/plan_report.h"
#include "run/neighbours.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/mistake.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

struct PlanOptions {
  std::string job_file;
  std::string config_file;
  std::vector<std::string> settings;
  app::MachineWords machines;
  std::string html;  ///< The path of the page with the timeline; empty: no page.
  bool json = false;
};

/// The present use of this machine's GPUs, which the plan assumes to stay.
std::vector<model::GpuReading> strangers_on(hardware::ThisMachine& machine,
                                            std::vector<std::string>& notes) {
  std::vector<model::GpuReading> readings;
  if (!machine.gpus) return readings;
  const std::vector<model::Neighbour> neighbours = run::yards_here();
  const std::vector<hardware::GpuState> states = machine.gpus->look_now();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const model::Gpu& gpu = machine.reading.capacity.gpus[i];
    if (gpu.late) continue;
    const hardware::GpuState& state = states[i];
    std::vector<model::GpuStranger> strangers;
    std::ranges::transform(state.processes, std::back_inserter(strangers), hardware::stranger_of);
    readings.push_back({.present = state.present,
                        .used = state.used,
                        .of_strangers = state.used,
                        .processes_known = state.processes_known,
                        .utilization = state.utilization,
                        .other_user = model::who_computes(strangers, gpu.uuid, neighbours)});
    if (!state.processes.empty()) {
      notes.push_back(
          fmt::format("GPU {}: processes on it now use {} and are assumed to stay ('trainyard "
                      "devices' lists them)",
                      gpu.label(), to_text(state.used)));
    }
  }
  return readings;
}

/// The job as read for these machines. The disk is compared only with that of this machine.
std::expected<job::Job, text::Mistakes> load_for(job::LoadOptions load,
                                                 const app::PlannedMachines& machines) {
  if (!machines.host.empty()) compare_with_this_machine(load);
  return load_job(load, machines.most());
}

ExitCode plan_command(const PlanOptions& options) {
  if (!job::is_named_as_job(options.job_file) && !sys::exists(options.job_file)) {
    return fail(fmt::format("'{}' not found; 'trainyard plan' takes a job file, not a command",
                            options.job_file));
  }
  const Result<job::LoadOptions> load =
      load_options(options.job_file, options.config_file, options.settings);
  if (!load) return fail(load.error());
  hardware::ThisMachine machine = hardware::find_this_machine();
  const bool is_for_here = options.machines.is_for_here();
  std::vector<std::string> notes;
  app::MachineNow now{.host = sys::host_name(), .capacity = machine.reading.capacity};
  if (is_for_here) now.others = strangers_on(machine, notes);
  const auto machines = app::planned_machines(options.machines, now);
  if (!machines) return fail(machines.error());
  report::PlanProgress progress(sys::can_redraw(sys::kStandardError), [](std::string_view text) {
    static_cast<void>(sys::write_text(sys::kStandardError, text));
  });
  const app::JobForecast forecast =
      app::forecast_job(*load, *machines, std::move(notes),
                        {.load = load_for, .now = sys::EventLoop::now, .progress = progress});
  if (forecast.jobs.empty()) {
    const ExitCode code = fail(forecast.mistakes);
    if (is_for_here && are_for_want_of_gpus(forecast.mistakes, now.capacity)) {
      job::LoadOptions shown = *load;
      shown.only_shown = true;
      const auto job = job::Job::load(shown, now.capacity);
      const std::string line =
          fmt::format("trainyard plan {} --gpus {}", text::shell_word(options.job_file),
                      app::gpus_for(job ? job->plan() : model::Plan{}));
      note("plan for a machine with GPUs: " + text::quoted_command(line));
    }
    return code;
  }
  if (!options.html.empty()) {
    const Result<void> written = sys::replace_file(options.html, report::plan_html(forecast.view));
    if (!written) return fail(written.error());
  }
  const std::string timeline =
      options.html.empty() ? std::string() : fmt::format("timeline: {}\n", options.html);
  const ExitCode code = answer(options.json ? report::plan_json(forecast.view)
                                            : report::plan_text(forecast.view) + timeline);
  if (is_for_here) {
    for (const MissingProgram& missing : missing_programs(forecast.jobs.front().job))
      warn(missing.text);
  }
  return code;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "Estimate how long a job takes, and run nothing");
  plan->group(command_groups::kRun);
  plan->add_option("job", options.job_file, "Job file (YAML)")
      ->type_name(value_kinds::kJobFile)
      ->check(empty_job_file_error)
      ->required();
  const auto of_hardware = [](CLI::Option* option) { return option->group("Hardware"); };
  of_hardware(plan->add_option("--gpus", options.machines.gpus,
                               "GPUs to compare: 4x24GB 80GB 0\n(default: this machine's)"))
      ->type_name(value_kinds::kCards);
  of_hardware(plan->add_option("--machines", options.machines.machines,
                               "Machines: '8x(4x80GB, 64 CPUs, 512GB) + 2x(64 CPUs, 256GB)'"))
      ->type_name(value_kinds::kMachines);
  of_hardware(plan->add_option("--memory", options.machines.memory,
                               "Memory: 64GB (default: this machine's)"))
      ->type_name(value_kinds::kSize);
  of_hardware(
      plan->add_option("--cpus", options.machines.cpus, "CPUs: 16 (default: this machine's)"))
      ->type_name(value_kinds::kNumber);
  plan->add_option("--html", options.html, "Write a page with a timeline to this file")
      ->type_name(value_kinds::kFile)
      ->group(option_groups::kOutput);
  add_json(*plan, options.json);
  add_configuration(*plan, options.config_file, options.settings);
  plan->footer(
      "Examples:\n"
      "  trainyard plan sweep.yaml\n"
      "  trainyard plan sweep.yaml --html plan.html\n"
      "  trainyard plan sweep.yaml --gpus 4x24GB --memory 64GB --cpus 16\n"
      "  trainyard plan sweep.yaml --gpus 1x24GB 2x24GB 1x80GB\n"
      "  trainyard plan sweep.yaml --machines '4x(8x80GB)' '8x(4x80GB, 64 CPUs, 512GB)'\n"
      "\n"
      "The real scheduler simulates the run. Task durations come from the job file ('duration'),\n"
      "or from earlier runs.");
  return plan;
}

}  // namespace

Entry plan_entry() { return entry({"plan"}, add_plan, plan_command); }

}  // namespace trainyard::cli
