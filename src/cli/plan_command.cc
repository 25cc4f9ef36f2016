// `trainyard plan`: plays a run through before it begins.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/load_options.h"
#include "cli/machine_checks.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/gpu_driver.h"
#include "hardware/process_owner.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "job/keep_learned.h"
#include "job/program_as_job.h"
#include "model/event.h"
#include "model/gpu_stranger.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "plan/expected_courses.h"
#include "plan/play_run.h"
#include "report/plan_report.h"
#include "run/neighbours.h"
#include "schedule/scheduler.h"
#include "settings/made_up_machines.h"
#include "settings/setting_value.h"
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
  std::vector<std::string> gpus;      ///< "4x24GB": instead of the GPUs here; several are compared.
  std::vector<std::string> machines;  ///< "8x(4x80GB, 64 CPUs)": the same, of several.
  std::string memory;                 ///< "64GB"; empty: that of this machine, like `cpus`.
  std::string cpus;                   ///< "16"
  std::string html;                   ///< The path of the page with the timeline; empty: no page.
  bool json = false;
};

constexpr int kGpusMax = 1'000;

/// Without model names: those are not known.
std::vector<model::Gpu> made_up_gpus(const std::vector<Bytes>& memories) {
  std::vector<model::Gpu> gpus;
  for (const Bytes memory : memories) {
    const int number = static_cast<int>(gpus.size());
    gpus.push_back({.number = number,
                    .uuid = fmt::format("GPU-{}", number),
                    .name = {},
                    .pci = fmt::format("{:04}", number),
                    .memory = memory});
  }
  return gpus;
}

/// "4x24GB": four alike; "24GB": one; "0": none.
Result<std::vector<model::Gpu>> parse_gpus(std::string_view text) {
  std::vector<model::Gpu> gpus;
  if (text == "0") return gpus;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
    return std::unexpected(
        Error{fmt::format("--gpus: '{}' does not say how much memory a GPU has (did you mean "
                          "'{}x24GB'?)",
                          text, text)});
  }
  int count = 1;
  std::string_view memory = text;
  const std::size_t times = text.find('x');
  if (times != std::string_view::npos) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + times, count);
    if (error != std::errc{} || rest != text.data() + times || count < 1 || count > kGpusMax) {
      return std::unexpected(
          Error{fmt::format("--gpus: '{}' is not valid; write it as in 4x24GB", text)});
    }
    memory = text.substr(std::min(text.find_first_not_of(' ', times + 1), text.size()));
  }
  // "4xA100": an A100 has 40 GB or 80 GB.
  if (memory.empty() || !std::string_view("0123456789.").contains(memory.front())) {
    return std::unexpected(Error{
        fmt::format("--gpus: '{}' is not valid; name the memory of each GPU, as in 4x24GB", text)});
  }
  const Result<Bytes> each = parse_bytes(memory);
  if (!each) return std::unexpected(Error{fmt::format("--gpus: {}", each.error().message)});
  return made_up_gpus(std::vector<Bytes>(static_cast<std::size_t>(count), *each));
}

/// "4x24GB": a machine with it has the GPUs for each task of the job, with a margin.
std::string gpus_for_job(job::LoadOptions load, const model::Capacity& here) {
  load.only_shown = true;
  const auto job = job::Job::load(load, here);
  int count = 1;
  std::int64_t memory = 24;
  if (job) {
    for (const model::Shape& shape : job->plan().shapes) {
      const model::Request& request = shape.terms.request;
      count = std::max(count, request.gpus);
      if (request.gpu) count = std::max(count, static_cast<int>(request.gpu->value) + 1);
      memory = std::max(memory, request.gpu_memory.count * 5 / 4 / gb(1).count);
    }
  }
  return fmt::format("{}x{}GB", count, memory);
}

/// The machine with the typed amounts in the place of its own.
Result<model::Capacity> machine_for(const PlanOptions& options, model::Capacity here,
                                    const std::string* gpus) {
  if (!options.memory.empty()) {
    const Result<Bytes> memory = parse_bytes(options.memory);
    if (!memory) return std::unexpected(Error{fmt::format("--memory: {}", memory.error().message)});
    here.memory = *memory;
  }
  if (!options.cpus.empty()) {
    const Result<model::Cpus> cpus = settings::parse_cpus(options.cpus);
    if (!cpus) return std::unexpected(Error{fmt::format("--cpus: {}", cpus.error().message)});
    here.cpus = *cpus;
  }
  std::erase_if(here.gpus, [](const model::Gpu& gpu) { return gpu.late; });
  if (gpus != nullptr) {
    Result<std::vector<model::Gpu>> made_up = parse_gpus(*gpus);
    if (!made_up) return std::unexpected(std::move(made_up.error()));
    here.gpus = std::move(*made_up);
    here.no_gpus_reason.clear();
  }
  // A machine that is made up has no limit of this one's.
  here.processes_max = 0;
  return here;
}

std::string name_of(const PlanOptions& options, const std::string* gpus) {
  const bool here = options.memory.empty() && options.cpus.empty() && gpus == nullptr;
  if (here) return std::string(schedule::kThisMachine);
  std::string name;
  const auto add = [&name](std::string_view what) {
    name += fmt::format("{}{}", name.empty() ? "" : ", ", what);
  };
  if (gpus != nullptr) add(*gpus == "0" ? "no GPU" : *gpus);
  if (!options.memory.empty()) add(options.memory + " of memory");
  if (!options.cpus.empty()) add(options.cpus + (options.cpus == "1" ? " CPU" : " CPUs"));
  return name;
}

/// Maximum number of tasks of later rounds that a plan simulates.
constexpr std::size_t kTasksOfRoundsMax = 20'000;

/// A job with all the rounds of its repeat: the maximum number, if nothing ends them.
struct WholeJob {
  job::Job job;  ///< The job at the beginning.
  model::Plan plan;
  std::vector<std::string> names;  ///< The names of its tasks.
  std::vector<int> gpu_shares;
  std::uint32_t rounds = 0;  ///< The number of rounds that are played; 0: nothing is repeated.
};

void add(const job::Job& next, WholeJob& whole) {
  model::append(whole.plan, next.plan());
  for (std::uint32_t task = 0; task < next.plan().tasks.size(); ++task) {
    const model::PlannedGroup& group = next.plan().groups[next.group_of({task}).value];
    whole.names.push_back(fmt::format("{}/{}", group.shown(), next.task_id({task})));
  }
  whole.gpu_shares.insert(whole.gpu_shares.end(), next.gpu_shares().begin(),
                          next.gpu_shares().end());
}

std::expected<WholeJob, text::Mistakes> with_its_rounds(job::Job job) {
  WholeJob whole{.job = std::move(job), .plan = {}, .names = {}, .gpu_shares = {}};
  add(whole.job, whole);
  const auto repeat = whole.job.repeat();
  if (!repeat) return whole;
  for (whole.rounds = 1; whole.rounds < repeat->rounds_max; ++whole.rounds) {
    if (whole.plan.tasks.size() > kTasksOfRoundsMax) break;
    std::vector<const model::PlannedGroup*> before;
    before.reserve(whole.plan.groups.size());
    for (const model::PlannedGroup& group : whole.plan.groups) before.push_back(&group);
    auto round = whole.job.later_round(
        {.round = whole.rounds, .batch = whole.rounds + 1, .groups_before = std::move(before)});
    if (!round) return std::unexpected(std::move(round.error()));
    add(*round, whole);
  }
  return whole;
}

/// Describes the job once, by the first machine that it was checked against.
void describe_job(const WholeJob& whole, const plan::Expected& expected, report::PlanView& view) {
  const job::Job& job = whole.job;
  view.task_ids = whole.names;
  view.job = job.name();
  std::vector<std::string> notes = job.notes();
  if (const auto repeat = job.repeat()) {
    notes.push_back(
        fmt::format("{} of at most {} rounds {} simulated{}", whole.rounds, repeat->rounds_max,
                    whole.rounds == 1 ? "is" : "are",
                    repeat->until.empty() ? "" : ", as if " + repeat->until + " never held"));
  }
  if (expected.unknown > 0) {
    notes.push_back(fmt::format(
        "the duration of {} of {} tasks is unknown: {} each is assumed. Set 'duration: "
        "10m' in the job file, or run it once: runs with a task of {} or more are learned",
        expected.unknown, whole.plan.tasks.size(), exact_text(expected.assumed),
        exact_text(job::kTrainedLeast)));
  }
  view.notes.insert(view.notes.begin(), notes.begin(), notes.end());
}

/// One machine to play the job on, or several.
struct Place {
  std::string name;
  std::vector<report::PlannedKind> kinds;
  std::string host;    ///< The name of the machine; empty: they are made up.
  std::string silent;  ///< "GPU 1 does not answer, and is left out"; empty: all do.
  plan::PlayOptions options;

  /// One machine of each kind.
  [[nodiscard]] std::vector<model::NamedMachine> one_of_each() const {
    std::vector<model::NamedMachine> machines;
    machines.reserve(kinds.size());
    for (const report::PlannedKind& kind : kinds) {
      machines.push_back({.name = host, .capacity = kind.capacity});
    }
    return machines;
  }
  [[nodiscard]] std::vector<model::NamedMachine> all() const {
    std::vector<model::NamedMachine> machines;
    for (const report::PlannedKind& kind : kinds) {
      machines.insert(machines.end(), kind.machines, {.name = host, .capacity = kind.capacity});
    }
    return machines;
  }
  /// The most that any of them has.
  [[nodiscard]] model::Capacity most() const {
    return model::most_of(kinds.front().capacity, one_of_each());
  }
};

/// Advice on the GPUs of this machine if the job would wait for memory that others use there.
std::string without_others(const std::string& job_file, const Place& place) {
  const std::vector<model::GpuReading>& others = place.options.others;
  const auto taken = [](const model::GpuReading& gpu) { return gpu.used > Bytes{}; };
  const auto computes = [](const model::GpuReading& gpu) { return gpu.other_user.has_value(); };
  if (std::ranges::none_of(others, taken)) return "";
  const std::vector<model::Gpu>& gpus = place.kinds.front().capacity.gpus;
  const auto free = std::ranges::max_element(gpus, {}, &model::Gpu::memory);
  return fmt::format(
      ". The processes on the GPUs now are assumed to stay: {} simulates the job on free GPUs{}",
      text::quoted_command(fmt::format("trainyard plan {} --gpus {}x{}MiB",
                                       text::shell_word(job_file), gpus.size(),
                                       free->memory.count >> 20)),
      std::ranges::any_of(others, computes)
          ? ", '--set other-users=share' next to processes of other users"
          : "");
}

/// Adds a note, once, that `where` is ignored, because machines of the command line have no names.
void note_where(const model::Plan& plan, std::vector<std::string>& notes) {
  const std::string note =
      "'where' is ignored on machines that only the command line describes: they have no names";
  const bool said = std::ranges::any_of(plan.shapes, [](const model::Shape& shape) {
    return !shape.terms.request.where.says_nothing();
  });
  if (said && std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

/// A sentence behind another one, where there is one to say.
std::string and_then(const std::string& message, const std::string& sentence) {
  return sentence.empty() ? message : fmt::format("{}. {}", message, sentence);
}

/// Plays the job there and adds it to the view; if that fails, adds the reason and returns the
/// mistakes.
std::expected<void, text::Mistakes> add_played_run(job::LoadOptions load, Place place,
                                                   report::PlanView& view,
                                                   std::vector<WholeJob>& jobs,
                                                   report::PlanProgress& progress) {
  load.machines = place.one_of_each();
  if (place.name != schedule::kThisMachine) {
    load.machine_text = fmt::format("the planned machine ({})", place.name);
  }
  // A machine that is made up has a disk of unknown size.
  if (!place.host.empty()) compare_with_this_machine(load);
  std::expected<job::Job, text::Mistakes> loaded = load_job(load, place.most());
  std::expected<WholeJob, text::Mistakes> job =
      loaded ? with_its_rounds(std::move(*loaded)) : std::unexpected(std::move(loaded.error()));
  if (!job) {
    view.runs.push_back({.machine = std::move(place.name),
                         .kinds = std::move(place.kinds),
                         .run = {},
                         .why_not = and_then(job.error().front().message, place.silent)});
    for (text::Mistake& mistake : job.error()) {
      if (mistake.of_machine) mistake.message = and_then(mistake.message, place.silent);
    }
    return std::unexpected(std::move(job.error()));
  }
  const plan::Expected expected = plan::expected_of(job->plan, job->gpu_shares);
  // The scheduler itself chooses the order, by what it knows.
  model::Policy policy = job->job.policy();
  // Tasks take what is expected of them, so there is nothing to learn from them.
  policy.auto_adjust = false;
  policy.gpu_settle_max = {};
  // The time is read once for this number of tasks, of which some thousand are played in a second.
  constexpr std::size_t kTellEvery = 64;
  place.options.on_finished = [&progress](std::size_t finished) {
    if (finished % kTellEvery == 0) progress.on(finished, sys::EventLoop::now());
  };
  const std::size_t tasks = job->plan.tasks.size();
  progress.begin(place.name, tasks, sys::EventLoop::now());
  const std::vector<model::NamedMachine> machines = place.all();
  Result<plan::PlayedRun> run =
      plan::play_run(job->plan, policy, machines, expected.courses, place.options);
  report::PlannedRun planned{.machine = place.name, .kinds = place.kinds, .run = {}, .why_not = {}};
  if (!run) {
    planned.why_not =
        and_then(run.error().message + without_others(load.job_file, place), place.silent);
    view.runs.push_back(planned);
    return std::unexpected(
        text::Mistakes{{.file = load.job_file, .message = std::move(planned.why_not)}});
  }
  if (jobs.empty()) describe_job(*job, expected, view);
  if (place.host.empty()) note_where(job->plan, view.notes);
  planned.run = std::move(*run);
  progress.begin(planned.machine + ", where sharing gains nothing", tasks, sys::EventLoop::now());
  const auto worst = plan::play_run(job->plan, policy, machines,
                                    plan::at_the_worst(job->plan, expected.courses), place.options);
  if (worst) planned.at_the_worst = worst->ended - Instant{};
  jobs.push_back(std::move(*job));
  planned.plan = &jobs.back().plan;
  view.runs.push_back(std::move(planned));
  return {};
}

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

/// The GPUs that are not known yet, as they have never answered.
std::string silent_among(const model::Capacity& here) {
  std::string labels;
  int count = 0;
  for (const model::Gpu& gpu : here.gpus) {
    if (!gpu.late) continue;
    labels += fmt::format("{}{}", labels.empty() ? "" : ", ", gpu.label());
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("GPU{} {} {} NOT ANSWER, and {} left out here ('trainyard devices')",
                     count == 1 ? "" : "s", labels, count == 1 ? "DOES" : "DO",
                     count == 1 ? "is" : "are");
}

/// "8x(4x80GB, 64 CPUs)"; amounts that are left out are as for one machine.
Result<Place> place_of(const PlanOptions& options, const model::Capacity& here,
                       const std::string& text) {
  const auto kinds = settings::parse_made_up_machines(text);
  if (!kinds) return std::unexpected(Error(kinds.error()).in("--machines"));
  const Result<model::Capacity> usual = machine_for(options, here, nullptr);
  if (!usual) return std::unexpected(usual.error());
  Place place{.name = text, .kinds = {}, .host = {}, .silent = {}, .options = {}};
  for (const settings::MadeUpMachines& kind : *kinds) {
    model::Capacity capacity = *usual;
    capacity.cpus = kind.cpus.value_or(usual->cpus);
    capacity.memory = kind.memory.value_or(usual->memory);
    capacity.gpus = made_up_gpus(kind.gpus);
    capacity.no_gpus_reason.clear();
    place.kinds.push_back({.text = settings::to_text(kind),
                           .machines = static_cast<std::uint32_t>(kind.count),
                           .capacity = std::move(capacity)});
  }
  return place;
}

/// Whether the plan is for this machine, without other GPUs or machines.
bool is_for_here(const PlanOptions& options) {
  return options.gpus.empty() && options.machines.empty();
}

/// The requested machines.
Result<std::vector<Place>> places(const PlanOptions& options, hardware::ThisMachine& machine,
                                  std::vector<std::string>& notes) {
  const model::Capacity& here = machine.reading.capacity;
  std::vector<Place> found;
  const auto add = [&](const std::string* gpus) -> Result<void> {
    Result<model::Capacity> capacity = machine_for(options, here, gpus);
    if (!capacity) return std::unexpected(std::move(capacity.error()));
    found.push_back({.name = name_of(options, gpus),
                     .kinds = {{.text = {}, .machines = 1, .capacity = std::move(*capacity)}},
                     .host = gpus == nullptr ? sys::host_name() : "",
                     .silent = gpus == nullptr ? silent_among(here) : "",
                     .options = {}});
    return {};
  };
  if (is_for_here(options)) {
    if (Result<void> added = add(nullptr); !added) return std::unexpected(std::move(added.error()));
    found.back().options.others = strangers_on(machine, notes);
    if (!found.back().silent.empty()) notes.push_back(found.back().silent);
  }
  for (const std::string& gpus : options.gpus) {
    if (Result<void> added = add(&gpus); !added) return std::unexpected(std::move(added.error()));
  }
  for (const std::string& text : options.machines) {
    Result<Place> place = place_of(options, here, text);
    if (!place) return std::unexpected(std::move(place.error()));
    found.push_back(*std::move(place));
  }
  return found;
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
  report::PlanView view;
  Result<std::vector<Place>> machines = places(options, machine, view.notes);
  if (!machines) return fail(machines.error());
  std::vector<WholeJob> jobs;
  jobs.reserve(machines->size());  // The runs of the view point at the plans of their jobs.
  std::optional<text::Mistakes> mistakes;
  report::PlanProgress progress(sys::can_redraw(sys::kStandardError), [](std::string_view text) {
    static_cast<void>(sys::write_text(sys::kStandardError, text));
  });
  for (Place& place : *machines) {
    auto added = add_played_run(*load, std::move(place), view, jobs, progress);
    if (!added && !mistakes) mistakes = std::move(added.error());
  }
  progress.finish();
  if (jobs.empty() && mistakes) {
    const ExitCode code = fail(*mistakes);
    if (is_for_here(options) && are_for_want_of_gpus(*mistakes, machine.reading.capacity)) {
      const std::string line =
          fmt::format("trainyard plan {} --gpus {}", text::shell_word(options.job_file),
                      gpus_for_job(*load, machine.reading.capacity));
      sys::write_standard_error(
          fmt::format("trainyard: plan for a machine with GPUs: {}\n", text::quoted_command(line)));
    }
    return code;
  }
  if (!options.html.empty()) {
    const Result<void> written = sys::replace_file(options.html, report::plan_html(view));
    if (!written) return fail(written.error());
  }
  const std::string timeline =
      options.html.empty() ? std::string() : fmt::format("timeline: {}\n", options.html);
  const ExitCode code =
      answer(options.json ? report::plan_json(view) : report::plan_text(view) + timeline);
  if (is_for_here(options)) {
    for (const MissingProgram& missing : missing_programs(jobs.front().job)) warn(missing.text);
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
  of_hardware(plan->add_option("--gpus", options.gpus,
                               "GPUs to compare: 4x24GB 80GB 0\n(default: this machine's)"))
      ->type_name(value_kinds::kCards);
  of_hardware(plan->add_option("--machines", options.machines,
                               "Machines: '8x(4x80GB, 64 CPUs, 512GB) + 2x(64 CPUs, 256GB)'"))
      ->type_name(value_kinds::kMachines);
  of_hardware(
      plan->add_option("--memory", options.memory, "Memory: 64GB (default: this machine's)"))
      ->type_name(value_kinds::kSize);
  of_hardware(plan->add_option("--cpus", options.cpus, "CPUs: 16 (default: this machine's)"))
      ->type_name(value_kinds::kNumber);
  plan->add_option("--html", options.html, "Write a page with a timeline to this file")
      ->type_name(value_kinds::kFile)
      ->group(option_groups::kOutput);
  add_json(*plan, options.json);
  add_configuration(*plan, options.config_file, options.settings);
  plan->footer(
      "Examples:\n"
      "  trainyard plan sweep.yaml\n"
      "  trainyard plan sweep.yaml --gpus 4x24GB --memory 64GB --cpus 16 --html plan.html\n"
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
