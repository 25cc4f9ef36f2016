#include "cli/checked_job.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"
#include "base/nearest.h"
#include "base/path_name.h"
#include "cli/directory_claim.h"
#include "cli/known_runs.h"
#include "cli/machine_checks.h"
#include "hardware/capacity.h"
#include "hardware/gpu_watch.h"
#include "job/program_as_job.h"
#include "model/plan.h"
#include "model/terms.h"
#include "queue/queue_server.h"
#include "run/active_run.h"
#include "run/machine_keys.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/shell_quote.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

std::unexpected<text::Mistakes> mistaken(const Error& error, const std::string& file = {}) {
  return std::unexpected(text::Mistakes{{.file = file, .message = error.message}});
}

/// Fast, and without a change to this process, which may start the process that starts tasks.
model::Capacity memory_and_cpus() {
  return hardware::read_capacity({.own = {}, .raises_limits = false}).capacity;
}

/// The job may run on other machines: their resources are queried when the run begins.
bool is_for_other_machines(const std::string& text, const job::LoadOptions& load) {
  const auto configuration = job::Job::configuration_of(text, load);
  return configuration && !runs_only_here(*configuration);
}

model::Capacity any_capacity() {
  constexpr std::int64_t kAny = 1'000'000;
  model::Capacity any;
  any.memory = gb(kAny);
  any.cpus = model::cpus(kAny);
  return any;
}

bool needs_gpus(const job::Job& job) {
  return std::ranges::any_of(job.plan().shapes, [](const model::Shape& shape) {
    const model::Request request = model::request_of(shape.terms);
    return request.gpus > 0 || !request.where.gpu.empty();
  });
}

model::Capacity with_gpus(model::Capacity capacity) {
  const auto watch = hardware::GpuWatch::start({.environment = sys::environment()});
  if (watch) capacity.gpus = watch->list().gpus;
  capacity.no_gpus_reason = watch ? watch->list().none_reason : watch.error().message;
  return capacity;
}

/// For a job file that is missing: " (did you mean 'sweep.yaml'?)" for the nearest one in its
/// directory, else "; job files there: a.yaml, b.yaml". Empty where the directory has none.
std::string other_job_files(const std::string& job_file) {
  constexpr std::size_t kShown = 5;
  const std::filesystem::path missing = job_file;
  const std::filesystem::path directory = missing.parent_path();
  std::vector<std::filesystem::path> found;
  for (const std::string& each : sys::names_in(directory.empty() ? "." : directory.string())) {
    const std::filesystem::path name = each;
    const bool is_yaml = name.extension() == ".yaml" || name.extension() == ".yml";
    const bool is_there = sys::exists((directory / name).string());
    if (is_yaml && is_there && name != settings::kConfigurationFile) {
      found.push_back(directory / name);
    }
  }
  if (found.empty()) return {};
  std::ranges::sort(found);
  // With their endings, short names such as a.yaml and x.yaml would be near each other.
  std::vector<std::string> stems;
  for (const std::filesystem::path& each : found) stems.push_back(each.stem().string());
  const std::vector<std::string_view> candidates(stems.begin(), stems.end());
  if (const auto near = nearest(missing.stem().string(), candidates)) {
    const auto place = std::ranges::find(candidates, *near) - candidates.begin();
    return fmt::format(" (did you mean '{}'?)", found[static_cast<std::size_t>(place)].string());
  }
  const auto shown = [](const std::filesystem::path& path) { return path.string(); };
  return "; job files there: " + short_list_text(found | std::views::transform(shown), kShown);
}

/// The size of the disk of the nearest directory above that exists.
std::optional<Bytes> disk_size(const std::string& directory) {
  std::filesystem::path place = directory;
  while (!sys::exists(place) && place.has_relative_path()) place = place.parent_path();
  std::error_code wrong;
  const std::filesystem::space_info room = std::filesystem::space(place, wrong);
  if (wrong) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(room.capacity)};
}

}  // namespace

bool are_for_want_of_gpus(const text::Mistakes& mistakes, const model::Capacity& here) {
  return here.gpus.empty() && std::ranges::any_of(mistakes, &text::Mistake::lacks_gpu);
}

bool are_for_want_of_gpus(const text::Mistakes& mistakes) {
  return std::ranges::any_of(mistakes, &text::Mistake::lacks_gpu) &&
         are_for_want_of_gpus(mistakes, with_gpus({}));
}

void advise_cpus(const CommandWords& words) {
  const std::string advice = words.cpus_advice();
  if (!advice.empty()) sys::write_standard_error(fmt::format("trainyard: {}\n", advice));
}

Error unreadable_job(Error error, const std::string& job_file) {
  if (sys::exists(job_file)) return error;
  if (job::is_named_as_job(job_file)) {
    error.message += other_job_files(job_file);
  } else if (sys::exists(job_file + ".yaml")) {
    error.message += fmt::format(" (did you mean '{}.yaml'?)", job_file);
  } else if (find_run(job_file)) {
    error.message +=
        fmt::format("; {} continues that run",
                    text::quoted_command("trainyard run --resume " + text::shell_word(job_file)));
  } else {
    error.message += "; to run a command, write it after '--'";
  }
  return error;
}

Result<job::LoadOptions> load_options(const std::string& job_file, const std::string& config_file,
                                      const std::vector<std::string>& settings,
                                      const std::string& run_directory) {
  Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  return job::LoadOptions{.job_file = job_file,
                          .config_file = config_file,
                          .settings = settings,
                          .run_directory = run_directory,
                          .current_directory = *here,
                          .environment = sys::environment(),
                          .host = sys::host_name()};
}

void compare_with_this_machine(job::LoadOptions& load) {
  load.disk_size = disk_size;
  load.memory_now = hardware::memory_available();
}

std::expected<job::Job, text::Mistakes> load_job(const job::LoadOptions& load,
                                                 const model::Capacity& capacity) {
  std::error_code ignored;
  const std::string file = absolute_path(load.job_file, load.current_directory);
  if (std::filesystem::exists(file, ignored) || ignored) return job::Job::load(load, capacity);
  return mistaken(Error{"file not found" + other_job_files(load.job_file)}, load.job_file);
}

std::expected<CheckedJob, text::Mistakes> check_job(const JobWords& words) {
  Result<std::string> here = sys::current_directory();
  if (!here) return mistaken(here.error());
  const bool is_command = words.job_file.empty();
  CheckedJob checked{.directory = *here};
  std::string file = words.job_file;
  if (is_command) {
    Result<CommandJob> job = job_of_command(words.words, *here);
    if (!job) return mistaken(job.error());
    checked.text = std::move(job->text);
    checked.line_names = std::move(job->line_names);
    // The path of a job file with the same content.
    file = fmt::format("{}/{}", *here, kCommandFile);
  } else {
    checked.job_file = absolute_path(words.job_file, *here);
    Result<std::string> text =
        text::read_text_file(checked.job_file, run::links_at_job_file(checked.job_file));
    if (!text) return mistaken(unreadable_job(text.error(), words.job_file), words.job_file);
    checked.text = std::move(*text);
  }
  if (!words.config_file.empty()) {
    checked.config_file = absolute_path(words.config_file, *here);
  }
  Result<job::LoadOptions> load = load_options(file, words.config_file, words.settings);
  if (!load) return mistaken(load.error());
  load->gpus_unknown = true;
  load->only_shown = words.only_shown;
  load->line_names = checked.line_names;
  if (!is_command) load->starts_with = "submit";
  const bool is_here = !is_for_other_machines(checked.text, *load);
  if (is_here) compare_with_this_machine(*load);
  model::Capacity capacity = is_here ? memory_and_cpus() : any_capacity();
  // A task may request a machine by its name.
  if (is_here) load->machines = RunMachines{}.all(capacity);
  std::expected<job::Job, text::Mistakes> job = job::Job::parse(checked.text, *load, capacity);
  // The GPUs take a while to answer. The needs of a mistaken job are not known: if one mistake is
  // about the machine, a task may request too many GPUs as well.
  const bool may_lack_gpus = job ? words.checks_gpus && needs_gpus(*job)
                                 : std::ranges::any_of(job.error(), &text::Mistake::of_machine);
  if (is_here && may_lack_gpus) {
    load->gpus_unknown = false;
    capacity = with_gpus(std::move(capacity));
    load->machines = RunMachines{}.all(capacity);
    job = job::Job::parse(checked.text, *load, capacity);
  }
  if (!job) return std::unexpected(std::move(job.error()));
  checked.first = job->paths().run_directory;
  checked.files = job->files();
  checked.warnings = job->warnings();
  std::ranges::copy(job->notify_notes(), std::back_inserter(checked.warnings));
  std::ranges::move(words.words.warnings(), std::back_inserter(checked.warnings));
  if (words.checks_programs) {
    for (MissingProgram& missing : missing_programs(*job)) {
      if (!missing.comes_later) checked.warnings.push_back(std::move(missing.text));
    }
  }
  checked.needs_gpu = needs_gpus(*job);
  const auto request_of = [](const model::Shape& shape) { return shape.terms.request; };
  const auto requests = job->plan().shapes | std::views::transform(request_of);
  if (!requests.empty()) {
    checked.memory = std::ranges::min(requests, {}, &model::Request::memory).memory;
    checked.cpus = std::ranges::min(requests, {}, &model::Request::cpus).cpus;
  }
  return checked;
}

Result<job::JobFiles> kept_files_of(const std::string& run_directory) {
  const std::string path = run::kept_files_path(run_directory);
  const Result<std::optional<std::string>> text =
      sys::read_plain_file(path, mib(16), sys::Links::RefuseAny);
  if (!text) return std::unexpected(text.error());
  if (!*text) return job::JobFiles{};
  Result<job::JobFiles> kept = job::job_files_from(**text);
  if (!kept) return std::unexpected(std::move(kept.error()).in(path));
  return kept;
}

Result<void> take_from_queue(RunOptions& options) {
  if (!sys::variable(queue::kFromQueue)) return {};
  // Its tasks are not of the queue.
  sys::set_variable(std::string(queue::kFromQueue) + "=");
  options.queued = true;
  const std::string directory = options.request.directory();
  Result<job::JobFiles> files = kept_files_of(directory);
  if (!files) return std::unexpected(std::move(files.error()));
  options.job_files = std::move(*files);
  const std::string kept = run::kept_job_path(directory);
  if (kept == options.request.job_file()) return {};
  Result<std::optional<std::string>> text =
      sys::read_plain_file(kept, mib(16), sys::Links::RefuseAny);
  if (!text) return std::unexpected(std::move(text.error()));
  // Without a kept text, the job file counts as it is now.
  if (*text) options.job_text = std::move(**text);
  return {};
}

std::expected<RunOptions, text::Mistakes> with_command_job(RunOptions options) {
  const auto checked = check_job({.job_file = {},
                                  .words = options.words,
                                  .config_file = options.config_file,
                                  .settings = options.settings,
                                  .only_shown = options.dry_run});
  if (!checked) return std::unexpected(checked.error());
  options.request.job = app::JobFile{fmt::format("{}/{}", checked->directory, kCommandFile)};
  options.job_text = checked->text;
  options.line_names = checked->line_names;
  return options;
}

Result<RunOptions> with_kept_job(RunOptions options, const std::string& run_directory) {
  const Result<std::string> reserved = reserve_new_directory(
      {.first = run_directory, .marker = run::kept_job_path, .text = options.job_text});
  if (!reserved) return std::unexpected(reserved.error());
  options.request.job = app::JobFile{run::kept_job_path(*reserved)};
  options.request.place = app::NewRun{.directory = *reserved};
  return options;
}

std::expected<std::string, text::Mistakes> read_job(const RunOptions& options,
                                                    const job::LoadOptions& load) {
  if (!options.job_text.empty()) return options.job_text;
  const std::string path = absolute_path(load.job_file, load.current_directory);
  Result<std::string> text = text::read_text_file(path, run::links_at_job_file(path));
  if (!text) return mistaken(unreadable_job(text.error(), load.job_file), load.job_file);
  return *std::move(text);
}

std::expected<JobGround, text::Mistakes> ground_of_job(const RunOptions& options,
                                                       const std::string& job_text,
                                                       const job::LoadOptions& load) {
  const std::string file = absolute_path(load.job_file, load.current_directory);
  auto configuration = job::Job::configuration_of(job_text, load);
  if (!configuration) return std::unexpected(std::move(configuration.error()));
  std::string directory = std::filesystem::path(file).parent_path().string();
  // The job file of a command is kept in its run directory, while the command belongs to the
  // directory in which it was typed.
  if (run::is_kept_job_path(file)) directory = load.current_directory;
  JobGround ground{.configuration = std::move(*configuration), .directory = std::move(directory)};
  // The machines of a run that is active stay with it: their keys are not read.
  const std::string resumed = absolute_path(options.request.directory(), load.current_directory);
  if (options.request.resumes() && !run::active_process(resumed)) {
    ground.keys = run::read_machine_keys(resumed);
  }
  return ground;
}

std::expected<void, text::Mistakes> look_at_job(const std::string& job_text, job::LoadOptions load,
                                                const model::Capacity& here) {
  load.only_shown = true;
  std::expected<job::Job, text::Mistakes> job = job::Job::parse(job_text, load, here);
  if (!job) return std::unexpected(std::move(job.error()));
  return {};
}

}  // namespace trainyard::cli
