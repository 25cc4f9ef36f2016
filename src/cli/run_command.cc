// The part that `trainyard run` adds to a yard, which run/yard_run.h assembles.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/list_text.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/code_snapshot.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/directory_claim.h"
#include "cli/disk_keeping.h"
#include "cli/exit_code.h"
#include "cli/job_tasks.h"
#include "cli/known_runs.h"
#include "cli/machine_checks.h"
#include "cli/outer_task.h"
#include "cli/queued_runs.h"
#include "cli/resumed_run.h"
#include "cli/run_machines.h"
#include "cli/run_view.h"
#include "cli/telling.h"
#include "cli/version.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "job/keep_learned.h"
#include "journal/journal.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "plan/expected_courses.h"
#include "process/code_asker.h"
#include "process/keeper.h"
#include "process/promise_board.h"
#include "queue/rules/queue_news.h"
#include "report/dry_run.h"
#include "report/sharing_note.h"
#include "report/status_text.h"
#include "report/terminal_text.h"
#include "run/begun.h"
#include "run/code_copy.h"
#include "run/neighbours.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "run/yard_run.h"
#include "settings/configuration.h"
#include "settings/periods.h"
#include "sys/depart.h"
#include "sys/descriptor.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/start_program.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "text/mistake.h"
#include "text/task_pattern.h"

namespace trainyard::cli {
namespace {

/// Prints why the run does not begin. Returns its exit code: where the machine is short of
/// something, the same command may succeed later.
ExitCode refuse(const Error& error) {
  return fail(error, error.of_machine ? ExitCode::NotDone : ExitCode::Usage);
}

/// The maximum number of tasks that a dry run writes out; nobody reads more than these.
constexpr std::int64_t kDryRunTasksMax = 1000;

/// The path of the configuration file that was read, or nothing. Without `said` it is that of the
/// current directory.
std::string configuration_file(const std::string& said) {
  std::string path = absolute_path(said.empty() ? settings::kConfigurationFile : said,
                                   sys::current_directory().value_or("/"));
  return said.empty() && !sys::exists(path) ? std::string() : path;
}

/// Adds to an execution what the yard itself does not know (run::YardRun::execution).
journal::Execution describe(const RunOptions& options, const job::Job& job,
                            journal::Execution execution) {
  std::vector<std::string> settings = options.settings;
  std::erase_if(settings, sets_a_secret);
  execution.command_line = options.command_line;
  execution.version = kVersion;
  execution.job_file = job.paths().file;
  execution.job_text = job.without_secrets(job.text());
  execution.config_file = configuration_file(options.config_file);
  execution.settings = std::move(settings);
  execution.configuration = settings::show(job.configuration());
  const std::optional<run::CodeCopy>& copy = job.code_copy();
  const std::string where = copy ? copy->path : job.paths().directory;
  if (auto found = process::find_code(where)) {
    execution.git_diff = job.without_secrets(std::move(found->diff));
    execution.git_commit = found->code.commit;
    execution.code = std::move(found->code);
  }
  return execution;
}

using Plans = std::vector<std::shared_ptr<const model::Plan>>;

/// The first line of a resumed run that keeps no result.
std::string no_task_kept(const journal::Journal::NotKept& not_kept) {
  std::vector<std::string> why;
  if (const int again = not_kept.run_again; again > 0) {
    why.push_back(fmt::format("{} {} again", report::counted(again, "finished task"),
                              again == 1 ? "runs" : "run"));
  }
  if (const int gone = not_kept.gone; gone > 0) {
    why.push_back(fmt::format("{} {} no longer in the job file",
                              report::counted(gone, "finished task"), gone == 1 ? "is" : "are"));
  }
  if (why.empty()) return "resumed: no task had finished";
  return fmt::format("resumed: all tasks of the job file run; {}", list_text(why));
}

/// "2 tasks stay on hold until 'trainyard release runs/sweep'"; empty if none is on hold.
std::string held_note(const Plans& plans, const std::string& run_directory) {
  std::ptrdiff_t held = 0;
  for (const auto& plan : plans) {
    held += std::ranges::count_if(plan->said, [&plan](const model::SaidOfTask& said) {
      return said.on_hold && plan->tasks[said.task.value].is_open();
    });
  }
  if (held == 0) return {};
  return fmt::format("{} {} on hold until {}", report::counted(held, "task"),
                     held == 1 ? "stays" : "stay", command_for_run("release", run_directory));
}

/// The lines that a resumed run prints first. `job` is the job that it was started with.
std::vector<std::string> notes_on_resume(const RunOptions& options, const job::Job& job,
                                         int finished, const journal::Journal::NotKept& not_kept,
                                         const Plans& plans, std::vector<std::string> changes) {
  std::size_t tasks = 0;
  for (const auto& plan : plans) tasks += plan->tasks.size();
  std::string kept = no_task_kept(not_kept);
  // A repeat may have later rounds that have no tasks yet.
  const bool is_done = finished > 0 && std::cmp_equal(finished, tasks) && !job.repeat();
  if (is_done) {
    kept = fmt::format("nothing to run: {} {} finished", all_tasks_text(tasks),
                       tasks == 1 ? "has" : "have");
  } else if (finished > 0) {
    kept = fmt::format("resumed: {} of {} task{} finished before, and will not run again", finished,
                       tasks, tasks == 1 ? "" : "s");
  }
  std::vector<std::string> notes{std::move(kept)};
  if (!options.taken_over.empty()) {
    notes.push_back(fmt::format("as in the last execution: {}", options.taken_over));
  }
  std::ranges::copy(options.resume_notes, std::back_inserter(notes));
  std::ranges::move(changes, std::back_inserter(notes));
  if (std::string held = held_note(plans, job.paths().run_directory); !held.empty()) {
    notes.push_back(std::move(held));
  }
  if (is_done) {
    std::string again = run_again_note(job.paths().run_directory, tasks);
    if (!again.empty()) notes.push_back(std::move(again));
  }
  return notes;
}

/// One loud line if GPUs are idle while tasks train on the CPUs; else empty. `cure` says how a task
/// requests a GPU.
std::string idle_gpus_note(const model::Plan& plan, const model::Capacity& capacity,
                           std::string_view cure) {
  const bool wanted = std::ranges::any_of(
      plan.shapes, [](const model::Shape& it) { return it.terms.request.gpus > 0; });
  if (wanted || capacity.gpus.empty()) return {};
  return fmt::format(
      "NO TASK REQUESTS A GPU, and this machine has {}: all tasks run on the CPUs. {} to use {}",
      capacity.gpus.size(), cure, capacity.gpus.size() == 1 ? "it" : "them");
}

/// One execution: the part that `trainyard run` adds to a yard.
class Session {
 public:
  /// With `departure`, it continues without its terminal.
  Session(const RunOptions& options, job::Job job, const ClaimedDirectory& claimed,
          run::YardParts parts, std::optional<sys::Departure> departure)
      : options_(options),
        has_begun_(claimed.has_begun),
        departure_(std::move(departure)),
        tasks_(std::move(job)),
        notes_(parts.machine.reading.notes),
        telling_(tasks_.jobs()),
        disk_(tasks_),
        yard_(tasks_, std::move(parts),
              {.directory = this->job().paths().run_directory,
               .program = kProgram,
               .policy = this->job().policy(),
               .sample_every = settings::sample_interval(this->job().configuration()),
               .log_max = settings::log_max(this->job().configuration()),
               .gpu_limits = settings::gpu_limits(this->job().configuration()),
               .records_all = settings::records_all(this->job().configuration()),
               .runs_here = runs_here(this->job().configuration()),
               .ends_on_signals = true,
               .outlives_session = options.request.choices.detaches || options.queued,
               .opens_control_group = true,
               .lasts_as_long_as = options.request.choices.until_input_closes
                                       ? std::optional(sys::kStandardInput)
                                       : std::nullopt}) {
    if (!options.request.choices.only.empty()) tasks_.begin_no_more_rounds();
  }

  ExitCode run();

 private:
  [[nodiscard]] const job::Job& job() const { return tasks_.jobs().first(); }
  [[nodiscard]] const std::string& directory() const { return job().paths().run_directory; }
  std::optional<ExitCode> listen();
  std::optional<ExitCode> begin();
  Result<sys::Descriptor> open_log() const;
  void leave(const sys::Descriptor& log);
  ExitCode finish(const run::Ending& ending);
  void keep_what_was_learned();
  [[nodiscard]] std::string how_to_go_on() const;
  [[nodiscard]] bool is_of_command() const {
    return job().paths().file == run::kept_job_path(directory());
  }

  const RunOptions& options_;
  const bool has_begun_;  ///< A run has begun in the directory before: this execution resumes it.
  std::optional<sys::Departure> departure_;
  JobTasks tasks_;
  std::vector<std::string> notes_;           ///< Told when people see the run.
  std::shared_ptr<const model::Plan> plan_;  ///< The plan of the job file, and the facts known
                                             ///< about it.
  Telling telling_;  ///< Before what the process that it forks must not have.
  DiskKeeping disk_;
  run::YardRun yard_;
};

ExitCode Session::run() {
  std::set<std::string> retried;
  for (const wire::Retry& each : options_.retries) retried.insert(each.group + "/" + each.id);
  for (const MissingProgram& missing : missing_programs(job(), retried)) {
    // If earlier tasks may make the program, a message would be false for a valid run.
    if (!missing.comes_later) warn(missing.text);
  }
  if (const std::optional<ExitCode> failed = listen()) return *failed;
  if (const std::optional<ExitCode> failed = begin()) return *failed;
  for (const std::string& note : notes_) tasks_.note("machine: " + note);
  for (const std::string& note : job().notes()) tasks_.note(note);
  const std::string idle =
      idle_gpus_note(job().plan(), job().capacity(),
                     is_of_command() ? "Write '--gpus 1' or '--gpu-memory 4GB' before '--'"
                                     : "Set 'gpus: 1' or 'gpu-memory: 4GB' in the job file");
  if (!idle.empty()) tasks_.note(idle);
  if (const std::string sharing = report::sharing_note(*plan_, job().capacity());
      !sharing.empty()) {
    tasks_.note(sharing);
  }
  for (const std::string& note : telling_.notes()) tasks_.note(note);
  telling_.begin(yard_.number());
  queue::QueueNews news;
  tasks_.listen([this, &news](const model::Turn& turn) {
    // A queue that is gone finds out what there is when it comes back.
    if (const auto word = options_.queued ? news.see(turn) : std::nullopt) {
      static_cast<void>(sys::write_text(sys::kWordPlace, *word));
    }
    for (const std::string& line : telling_.see(turn)) tasks_.note(line);
    disk_.see(turn);
  });
  const run::Ending ending = yard_.run();
  disk_.finish();
  const ExitCode code = finish(ending);
  // Until now a signal would have left the reports half written. Who is told may not answer.
  yard_.let_go_of_signals();
  telling_.end(code);
  return code;
}

/// A run whose tasks do not need the socket continues without one.
std::optional<ExitCode> Session::listen() {
  const Result<void> listens = yard_.listen();
  if (listens) return std::nullopt;
  if (std::ranges::any_of(job().plan().shapes,
                          [](const model::Shape& it) { return it.terms.two_phase; })) {
    return fail(Error{fmt::format("cannot make the socket that two-phase tasks need: {}",
                                  listens.error().message)});
  }
  note("'trainyard kill' and 'submit' cannot reach this run: " + listens.error().message);
  return std::nullopt;
}

/// Records the tasks to run, and prints notes about those that are not new.
std::optional<ExitCode> Session::begin() {
  journal::Execution execution = describe(options_, job(), yard_.execution());
  const Result<sys::Descriptor> log = open_log();
  if (!log) return refuse(log.error());
  std::vector<std::string> notes;
  if (!has_begun_) {
    // The number of rounds is not known beforehand.
    const auto forecast = job().repeat() ? std::nullopt
                                         : plan::forecast_run(job().plan(), job().policy(),
                                                              job().capacity(), job().gpu_shares());
    if (forecast) {
      execution.forecast = forecast->free;
      execution.forecast_at_the_worst = forecast->at_the_worst;
    }
    const Result<void> begins =
        yard_.begin(job().name(), tasks_.batches(options_.command_line).front(), execution);
    if (!begins) return refuse(begins.error());
    plan_ = job().shared_plan();
  } else {
    auto submitted = add_submitted(tasks_, directory());
    if (!submitted) return fail(submitted.error());
    // Before anything is written down: nothing is done where one of them is not there.
    if (const Result<void> asked = yard_.retry(options_.retries); !asked) {
      return refuse(asked.error());
    }
    Result<run::YardRun::Resumed> resumed =
        yard_.go_on(tasks_.batches(options_.command_line), execution, journal_options(options_));
    if (!resumed) return refuse(resumed.error());
    forget_end_in_queue(directory());
    if (options_.on_resumed) options_.on_resumed();
    plan_ = resumed->plans.front();
    std::ranges::move(resumed->changes, std::back_inserter(*submitted));
    notes = notes_on_resume(options_, job(), resumed->finished, resumed->not_kept, resumed->plans,
                            *std::move(submitted));
  }
  leave(*log);
  tasks_.show();
  tasks_.note(report::run_line(yard_.number(), seen_from_here(directory())));
  for (const std::string& note : notes) tasks_.note(note);
  return std::nullopt;
}

/// Opens the log where the run continues without its terminal; called before the run is recorded.
Result<sys::Descriptor> Session::open_log() const {
  if (!departure_) return sys::Descriptor();
  return sys::open_log(run::run_log_path(directory()), sys::IfThere::Append);
}

/// Reports the number of the run to the terminal; later output goes to the log.
void Session::leave(const sys::Descriptor& log) {
  if (!departure_) return;
  const std::optional<std::uint32_t> number = yard_.number();
  departure_->begun(number ? std::to_string(*number) : directory(), log);
}

ExitCode Session::finish(const run::Ending& ending) {
  tasks_.hide();
  if (ending.gave_up) {
    return fail(fmt::format("{}; {}", ending.gave_up->message, how_to_go_on()),
                ending.interrupted ? interrupted_by(ending.signal) : ExitCode::NotDone);
  }
  if (ending.not_closed) return fail(*ending.not_closed, ExitCode::NotDone);
  keep_what_was_learned();
  const ExitCode shown = show_results(directory(), {.json = options_.json,
                                                    .retries = asked_for(options_),
                                                    .warnings = tasks_.jobs().warnings(),
                                                    .is_of_command = is_of_command()});
  const auto left = ending.interrupted ? std::nullopt : tasks_.rounds_left();
  if (left) fail(Error{left->why});
  const bool is_short = (left && !left->of_tasks) || !ending.files_left.empty();
  const ExitCode result = is_short && shown == ExitCode::Success ? ExitCode::NotDone : shown;
  if (ending.keeper_gone && !ending.interrupted) {
    return fail(fmt::format("the process that starts tasks is gone; {}", how_to_go_on()),
                ExitCode::NotDone);
  }
  if (!ending.cannot_start.empty() && !ending.interrupted) {
    return fail(fmt::format("{}; {}", ending.cannot_start, how_to_go_on()), ExitCode::NotDone);
  }
  return ending.interrupted ? interrupted_by(ending.signal) : result;
}

void Session::keep_what_was_learned() {
  std::map<std::string, std::set<std::uint32_t>> batches;  // By the file that it is kept in.
  for (std::uint32_t batch = 0; batch < tasks_.jobs().count(); ++batch) {
    const job::Job& each = tasks_.jobs().at(batch);
    if (!each.configuration().flag(settings::Setting::SchedulerAutoAdjust)) continue;
    batches[each.paths().learned].insert(batch + 1);
  }
  const Duration trained_least =
      tasks_.jobs().first().configuration().period(settings::kTrainedLeast, job::kTrainedLeast);
  const auto command_of = [this](std::uint32_t batch, model::TaskIndex task) {
    return tasks_.jobs().at(batch - 1).command_fingerprint(task);
  };
  for (const auto& [path, of_it] : batches) {
    const Result<void> kept =
        job::keep_learned(directory(), of_it, path, trained_least, command_of);
    if (!kept) fail(fmt::format("cannot save the learned estimates: {}", kept.error().message));
  }
}

std::string Session::how_to_go_on() const {
  return "resume it with " + command_for_run("run --resume", directory());
}

/// Preview of resuming a run. Nothing where the run was killed before it began: all of it is still
/// to be done.
Result<std::optional<report::ResumedPlan>> preview(const RunOptions& options, JobTasks& tasks) {
  Result<std::optional<journal::Journal::Preview>> ahead = look_ahead(options, tasks);
  if (!ahead) return std::unexpected(std::move(ahead.error()));
  std::optional<journal::Journal::Preview>& found = *ahead;
  if (!found) return std::nullopt;
  journal::Journal::Preview preview = *std::move(found);
  const std::vector<std::string> ends = run::lines_about_ends(preview.ends);
  preview.changes.insert(preview.changes.begin(), ends.begin(), ends.end());
  std::vector<std::string> notes =
      notes_on_resume(options, tasks.jobs().at(0), preview.finished, preview.not_kept,
                      preview.plans, std::move(preview.changes));
  std::size_t submissions = 0;
  for (std::uint32_t i = 1; i < tasks.jobs().count(); ++i) {
    if (!tasks.jobs().at(i).repeat()) ++submissions;
  }
  if (submissions > 0) {
    notes.push_back(submissions == 1
                        ? "1 submission to the run resumes as well"
                        : fmt::format("{} submissions to the run resume as well", submissions));
  }
  if (const std::size_t rounds = preview.plans.size() - 1 - submissions; rounds > 0) {
    notes.push_back(fmt::format("rounds 1 to {} of the repeat resume as well", rounds));
  }
  return report::ResumedPlan{.plan = *preview.plans.front(), .notes = std::move(notes)};
}

/// The tasks that --only names, alone.
Result<void> choose_tasks(const RunOptions& options, job::Job& job) {
  std::vector<text::TaskPattern> patterns;
  for (const std::string& word : options.request.choices.only) {
    Result<text::TaskPattern> pattern = text::TaskPattern::read(word);
    if (!pattern) return std::unexpected(std::move(pattern.error()));
    patterns.push_back(std::move(*pattern));
  }
  return patterns.empty() ? Result<void>() : job.choose(patterns);
}

Result<void> check_allocations(const RunOptions& options, const JobGround& ground) {
  if (options.allocations.empty() || asks_slurm(ground.configuration)) return {};
  return std::unexpected(
      Error{"--allocations has no effect: the run requests no Slurm nodes (--slurm does)"});
}

ExitCode dry_run(const RunOptions& options, job::LoadOptions load) {
  const std::expected<std::string, text::Mistakes> text = read_job(options, load);
  if (!text) return fail(text.error());
  const hardware::ThisMachine machine = hardware::find_this_machine();
  // The names of other machines are known once the run has reached them.
  const auto ground = ground_of_job(options, *text, load);
  const Result<void> used = ground ? check_allocations(options, *ground) : Result<void>();
  if (!used) return fail(used.error());
  if (ground && runs_only_here(ground->configuration)) {
    load.machines = RunMachines{}.all(machine.reading.capacity);
  }
  std::expected<job::Job, text::Mistakes> job =
      job::Job::parse(*text, load, machine.reading.capacity);
  if (!job) return fail(job.error());
  if (const Result<void> chosen = choose_tasks(options, *job); !chosen) {
    return fail(chosen.error());
  }
  if (const Result<void> looked = look_at_snapshot(options, *job); !looked) {
    return fail(looked.error());
  }
  JobTasks tasks(std::move(*job));
  std::optional<report::ResumedPlan> resumed;
  if (options.request.resumes()) {
    Result<std::optional<report::ResumedPlan>> ahead = preview(options, tasks);
    if (!ahead) return fail(ahead.error());
    resumed = std::move(*ahead);
  }
  const report::ResumedPlan* const plan = resumed ? &*resumed : nullptr;
  const job::Job& first = tasks.jobs().first();
  const std::string command = options.words.is_command() ? options.words.shown() : "";
  const ExitCode code =
      answer(options.json ? report::dry_run_json(first, kDryRunTasksMax, plan, command)
                          : report::dry_run_text(first, kDryRunTasksMax, plan, command));
  // The last lines are the ones that a user sees of a long output.
  for (const MissingProgram& missing : missing_programs(first)) warn(missing.text);
  if (first.lacks_gpu() && machine.reading.capacity.gpus.empty()) advise_cpus(options.words);
  return code;
}

/// Prints the mistakes of a job, and the way to run it where this machine has no GPU for it.
ExitCode fail_job(const text::Mistakes& mistakes, const RunOptions& options,
                  const model::Capacity& capacity) {
  const ExitCode code = fail(mistakes);
  if (are_for_want_of_gpus(mistakes, capacity)) advise_cpus(options.words);
  return code;
}

/// The parts that must exist before there is a job.
struct Grounds {
  std::optional<process::PromiseBoard> promises;
  process::Keeper keeper;
  hardware::ThisMachine machine;
  std::optional<process::CodeAsker> codes;
};

/// First of all: the keeper must not inherit a thread, a database or a socket.
Result<Grounds> lay_grounds() {
  Result<std::optional<process::PromiseBoard>> board = run::open_promises();
  const std::string no_board = board ? std::string() : board.error().message;
  std::optional<process::PromiseBoard> promises =
      board ? *std::move(board) : std::optional<process::PromiseBoard>();
  Result<process::Keeper> keeper = process::Keeper::fork(
      {.held = promises ? promises->descriptor() : -1, .adopts_orphans = true});
  if (!keeper) return std::unexpected(std::move(keeper.error()));
  Grounds grounds{.promises = std::move(promises),
                  .keeper = std::move(*keeper),
                  .machine = hardware::find_this_machine(),
                  .codes = std::nullopt};
  if (!no_board.empty()) grounds.machine.reading.notes.push_back(no_board);
  Result<process::CodeAsker> codes = process::CodeAsker::start();
  if (codes) grounds.codes.emplace(std::move(*codes));
  if (!codes) grounds.machine.reading.notes.push_back(codes.error().message);
  return grounds;
}

std::expected<ClaimedDirectory, ClaimRefusal> claim_directory(const RunOptions& options,
                                                              const RunMachines& machines,
                                                              const job::Job& job) {
  const std::string& run_directory = job.paths().run_directory;
  if (options.request.resumes()) {
    return claim_old_directory(run_directory, machines.keys_of_others());
  }
  return claim_new_directory(
      {.run_directory = run_directory,
       .typed = options.request.names_new_directory(),
       .command_line = options.command_line,
       .only = options.request.choices.only,
       .job = {.job_name = job.name(), .job_file = job.paths().file, .first = run_directory}});
}

ExitCode run_here(const RunOptions& typed, const std::vector<OuterTaskName>& outer,
                  std::optional<sys::Departure> departure) {
  Result<Grounds> grounds = lay_grounds();
  if (!grounds) return refuse(grounds.error());
  Result<RunOptions> options = fill_in(typed);
  if (!options) return refuse(options.error());
  Result<job::LoadOptions> load = load_options_of(*options);
  if (!load) return refuse(load.error());
  const std::expected<std::string, text::Mistakes> text = read_job(*options, *load);
  if (!text) return fail(text.error());
  const model::Capacity here = grounds->machine.reading.capacity;
  const std::expected<JobGround, text::Mistakes> ground = ground_of_job(*options, *text, *load);
  if (!ground || takes_more_than_a_look(ground->configuration)) {
    const auto good = look_at_job(*text, *load, here);
    if (!good) return fail(good.error());
  }
  if (!ground) return fail(ground.error());
  if (const Result<void> used = check_allocations(*options, *ground); !used) {
    return fail(used.error());
  }
  grounds->keeper.set_silence_max(
      ground->configuration.period(settings::kKeeperSilence, grounds->keeper.silence_max()));
  Result<RunMachines> machines =
      reach_machines(*ground, [&] { return !departure || departure->is_awaited(); });
  if (!machines) return refuse(machines.error());
  load->machines = machines->all(here);
  // On several machines a task may find a disk that is larger than the one here.
  if (!machines->remotes) compare_with_this_machine(*load);
  while (true) {
    std::expected<job::Job, text::Mistakes> job =
        job::Job::parse(*text, *load, machines->capacity(here));
    if (!job) return fail_job(job.error(), *options, machines->capacity(here));
    Result<void> will_do = choose_tasks(*options, *job);
    if (will_do) will_do = check_machines(*machines, *job, here);
    // Without a ledger no task waits for the reservations of another run.
    if (will_do && grounds->promises && !machines->remotes) {
      will_do = check_fits_beside(outer, *job, here);
    }
    if (!will_do) return refuse(will_do.error());
    const std::string first = job->paths().run_directory;
    const bool names_new = typed.request.names_new_directory();
    if (const std::string why_not = names_new ? run::why_not_for_runs(first) : "";
        !why_not.empty()) {
      return fail(fmt::format("--run-dir: '{}' {}; name a new or an empty directory",
                              seen_from_here(first), why_not));
    }
    if (options->words.is_command()) {
      options = with_kept_job(*std::move(options), first);
      if (!options) return refuse(options.error());
      load->job_file = options->request.job_file();
      load->run_directory = options->request.directory();
      if (names_new && load->run_directory != first) {
        fail(fmt::format("'{}' already contains a run: this run is in '{}'", seen_from_here(first),
                         seen_from_here(load->run_directory)));
      }
      job = job::Job::parse(*text, *load, machines->capacity(here));
      if (!job) return fail(job.error());
    }
    const auto claimed = claim_directory(*options, *machines, *job);
    if (claimed) {
      if (claimed->has_begun) {
        const Result<void> waited =
            wait_for_earlier_machines(job->paths().run_directory, *machines);
        if (!waited) return refuse(waited.error());
      }
      if (const auto failed = enter_snapshot(*options, *job, departure)) return *failed;
      if (const Result<void> begun = begin_on_machines(*machines, *job); !begun) {
        return refuse(begun.error());
      }
      return Session(*options, std::move(*job), *claimed,
                     {.promises = std::move(grounds->promises),
                      .keeper = std::move(grounds->keeper),
                      .machine = std::move(grounds->machine),
                      .codes = std::move(grounds->codes),
                      .remotes = std::move(machines->remotes),
                      .allocated = std::move(machines->allocated)},
                     std::move(departure))
          .run();
    }
    if (!options->request.takes_next_free() || !claimed.error().is_taken) {
      return refuse(claimed.error().error);
    }
    // Another process was faster: the next free one.
    const Result<job::LoadOptions> next = load_options_of(*options);
    if (!next) return refuse(next.error());
    load->run_directory = next->run_directory;
  }
}

/// Prints what the number means by which the process in the background has named its run.
void explain_background_run(const std::string& word) {
  const std::optional<std::uint32_t> number = run::read_run_number(word);
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  const std::optional<std::string> directory =
      number && numbers ? numbers->directory_of(*number) : std::nullopt;
  if (directory) explain_number(*number, *directory, "started in the background");
}

}  // namespace

ExitCode run_command(const RunOptions& said) {
  if (said.request.choices.detaches && sys::is_in_task()) {
    return fail(
        "-d has no effect in a task: a run that a task starts stops when the task ends. Use "
        "'trainyard run' without -d, or 'trainyard submit'");
  }
  const std::vector<OuterTaskName> outer = outer_task_names();
  const sys::OwnEnvironment own;
  const auto made = said.request.is_command() ? with_command_job(said) : said;
  if (!made) return fail(made.error());
  for (const std::string& warning : said.words.warnings()) warn(warning);
  const RunOptions& typed = *made;
  if (typed.dry_run) {
    const Result<RunOptions> options = fill_in(typed);
    if (!options) return refuse(options.error());
    Result<job::LoadOptions> load = load_options_of(*options);
    if (!load) return refuse(load.error());
    load->only_shown = true;
    compare_with_this_machine(*load);
    return dry_run(*options, *std::move(load));
  }
  if (!typed.request.choices.detaches) return run_here(typed, outer, std::nullopt);
  Result<std::variant<sys::Departure, sys::Departed>> departed = sys::depart();
  if (!departed) return refuse(departed.error());
  const auto* const heard = std::get_if<sys::Departed>(&*departed);
  if (heard == nullptr) {
    return run_here(typed, outer, std::get<sys::Departure>(std::move(*departed)));
  }
  // The process that was started reports the word of the one that continues.
  if (heard->word.empty()) return static_cast<ExitCode>(heard->exit_code);
  const ExitCode code = answer(heard->word + "\n");
  explain_background_run(heard->word);
  return code;
}

}  // namespace trainyard::cli
