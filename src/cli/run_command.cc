// `trainyard run`: where the parts are put together.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/keep_learned.h"
#include "cli/load_options.h"
#include "cli/resume_options.h"
#include "cli/run_place.h"
#include "cli/run_view.h"
#include "cli/version.h"
#include "config/configuration.h"
#include "config/dry_run.h"
#include "config/job.h"
#include "config/mistake.h"
#include "config/shell_quote.h"
#include "io/capacity.h"
#include "io/clock.h"
#include "io/control_server.h"
#include "io/control_socket.h"
#include "io/delegated_group.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/frame_server.h"
#include "io/gpu_watch.h"
#include "io/helper_command.h"
#include "io/keeper.h"
#include "io/process_table.h"
#include "io/terminal.h"
#include "io/this_machine.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/place.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/turn.h"
#include "run/drive.h"
#include "run/local_machine.h"
#include "run/run_directory.h"
#include "schedule/scheduler.h"
#include "wire/control.h"
#include "wire/task.h"

namespace trainyard::cli {
namespace {

/// How many tasks a dry run writes out; of more than these nobody reads them all.
constexpr std::int64_t kDryRunTasksMax = 1000;

/// What stands in the journal at its beginning: the plan, and where the time goes on.
struct Begun {
  std::unique_ptr<Journal> journal;
  Plan plan;
  Instant at;
  std::vector<std::string> notes;
};

std::string output_of(std::vector<std::string> arguments, const std::string& directory) {
  Result<io::HelperOutput> output =
      io::run_helper({.arguments = std::move(arguments), .directory = directory});
  // A diff that is too long is ended, and the first of it is kept.
  if (!output || (output->exit_code != 0 && !output->cut)) return {};
  return std::move(output->text);
}

/// The diff as git itself makes it: what a person has configured to look at diffs with may print
/// anything, start programs, and wait for somebody.
std::vector<std::string> diff_command() {
  return {"git",           "--no-optional-locks", "diff", "--no-ext-diff",
          "--no-textconv", "--no-color",          "HEAD"};
}

/// All but the control socket, which is made last: until the journal knows where it is, nobody
/// takes it away after a kill.
Execution describe(const RunOptions& options, const Job& job, const io::Keeper& keeper) {
  std::string commit = output_of({"git", "rev-parse", "HEAD"}, job.places().directory);
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  std::string config_file = options.config_file;
  if (!config_file.empty()) {
    config_file = io::absolute_path(config_file, io::current_directory().value_or("/"));
  }
  std::vector<std::string> settings = options.settings;
  std::erase_if(settings, sets_a_secret);
  return {.command_line = options.command_line,
          .version = kVersion,
          .host = io::host_name(),
          .yard_pid = getpid(),
          .keeper_pid = keeper.pid(),
          .socket_path = {},
          .started_unix_ms = io::unix_milliseconds(),
          .job_file = job.places().file,
          .job_text = job.text(),
          .config_file = std::move(config_file),
          .settings = std::move(settings),
          .configuration = show(job.configuration()),
          .gpus = job.capacity().gpus,
          .git_commit = commit,
          .git_diff = commit.empty() ? "" : output_of(diff_command(), job.places().directory)};
}

PlanNames names_of(const Job& job) {
  return {.job_name = job.name(),
          .task_id = [&job](TaskIndex task) { return job.task_id(task); },
          .matrix_values = [&job](TaskIndex task) { return job.matrix_values(task); },
          .fingerprint = [&job](TaskIndex task) { return job.fingerprint(task); }};
}

/// What a resumed run tells first.
std::vector<std::string> notes_on_resume(const RunOptions& options, int finished, std::size_t tasks,
                                         std::vector<std::string> changes) {
  std::vector<std::string> notes{
      fmt::format("resumed: {} of {} tasks have finished and are kept", finished, tasks)};
  if (!options.taken_over.empty()) {
    notes.push_back(fmt::format("as in the last execution: {}", options.taken_over));
  }
  std::ranges::move(changes, std::back_inserter(notes));
  return notes;
}

JournalOptions journal_options(const RunOptions& options) {
  return {.edited = options.rerun_changed ? Edited::RunAgain : Edited::KeepResult};
}

Result<Begun> begin_journal(const RunOptions& options, const Job& job, const Execution& execution) {
  const std::string path = journal_path(job.places().run_directory);
  const Result<bool> begun = Journal::has_begun(path);
  if (!begun) return std::unexpected(begun.error());
  if (options.resume.empty() || !*begun) {
    Result<std::unique_ptr<Journal>> journal =
        Journal::create(path, job.plan(), names_of(job), execution);
    if (!journal) return std::unexpected(std::move(journal.error()));
    return Begun{.journal = std::move(*journal), .plan = job.plan(), .at = {}, .notes = {}};
  }
  Result<Journal::Resumed> resumed =
      Journal::resume(path, job.plan(), names_of(job), execution, journal_options(options));
  if (!resumed) return std::unexpected(std::move(resumed.error()));
  const std::size_t tasks = resumed->plan.tasks.size();
  return Begun{
      .journal = std::move(resumed->journal),
      .plan = std::move(resumed->plan),
      .at = resumed->at,
      .notes = notes_on_resume(options, resumed->finished, tasks, std::move(resumed->changes))};
}

/// Of a run that takes the next directory, this is the one that is free now.
Result<LoadOptions> load_options_of(const RunOptions& options) {
  Result<LoadOptions> load =
      load_options(options.job_file, options.config_file, options.settings,
                   options.resume.empty() ? options.run_directory : options.resume);
  if (!load || !options.next) return load;
  const Result<JobRuns> job = Job::runs_of(*load);
  if (!job) return std::unexpected(job.error());
  load->run_directory = free_run_directory(job->first);
  return load;
}

/// One loud line where GPUs stand idle beside tasks that train on the CPUs; else empty.
std::string idle_gpus_note(const Plan& plan, const Capacity& capacity) {
  const bool wanted =
      std::ranges::any_of(plan.shapes, [](const Shape& it) { return it.request.gpus > 0; });
  if (wanted || capacity.gpus.empty()) return {};
  return fmt::format(
      "NO TASK ASKS FOR A GPU, and {} here: all train on the CPUs. Say 'gpus: 1' or "
      "'gpu-memory: 4GB' in the job file",
      capacity.gpus.size() == 1 ? "1 is" : fmt::format("{} are", capacity.gpus.size()));
}

/// One execution: everything that lives from the first task to the last.
class Session {
 public:
  Session(const RunOptions& options, Job job, io::Keeper keeper, io::ThisMachine machine)
      : options_(options),
        job_(std::move(job)),
        keeper_(std::make_unique<io::Keeper>(std::move(keeper))),
        capacity_(std::move(machine.reading)),
        gpus_(std::move(machine.gpus)) {}

  ExitCode run();

 private:
  bool open_group();
  void listen();
  void serve(const wire::ControlRequest& request, io::Reply reply);
  void watch_signals();
  void tell_unwritten(const std::optional<Error>& why);
  ExitCode finish(const Result<void>& driven, Instant at);
  [[nodiscard]] std::string how_to_go_on() const;

  const RunOptions& options_;
  Job job_;
  std::unique_ptr<io::Keeper> keeper_;
  io::CapacityReading capacity_;
  io::EventLoop loop_;
  std::optional<io::GpuWatch> gpus_;
  std::unique_ptr<io::FrameServer> server_;
  std::optional<io::ControlServer> control_;
  std::unique_ptr<Journal> journal_;
  std::optional<LocalMachine> machine_;
  std::optional<RunView> view_;
  io::DelegatedGroup group_;     ///< For tasks that have limits of their own.
  std::set<TaskIndex> unheard_;  ///< Who sent what nobody listens to: told once.
  bool interrupted_ = false;
};

ExitCode Session::run() {
  Execution execution = describe(options_, job_, *keeper_);
  listen();
  if (server_) execution.socket_path = server_->path();
  if (!server_ && std::ranges::any_of(job_.plan().shapes, &Shape::two_phase)) {
    return fail(Error{"two-phase tasks need a socket, and none could be made"});
  }
  Result<Begun> begun = begin_journal(options_, job_, execution);
  if (!begun) return fail(begun.error());
  journal_ = std::move(begun->journal);

  Limits limits_in_force = limits(job_.configuration(), capacity_.capacity);
  limits_in_force.kernel_keeps_limits = open_group();
  machine_.emplace(
      loop_, *keeper_,
      LocalMachine::Options{
          .capacity = capacity_.capacity,
          .begins = begun->at,
          .sample_every = sample_interval(job_.configuration()),
          .launch = [this](AttemptKey key,
                           const std::vector<GpuIndex>& gpus) { return job_.launch(key, gpus); },
          .frames = server_.get(),
          .on_message =
              [this](AttemptKey key, const wire::Message& message) {
                if (!view_ || !unheard_.insert(key.task).second) return;
                view_->note(fmt::format("{}: sends '{}', and nobody listens",
                                        job_.task_id(key.task), message.command));
              },
          .on_note =
              [this](const std::string& text) {
                if (view_) view_->note(text);
              },
          .delegated_group = group_.path,
          .gpus = gpus_ ? &*gpus_ : nullptr});
  watch_signals();
  view_.emplace(job_, begun->plan);
  if (options_.next || options_.resumes) {
    view_->note("run-dir: " + seen_from_here(job_.places().run_directory));
  }
  for (const std::string& note : capacity_.notes) view_->note("machine: " + note);
  for (const std::string& note : begun->notes) view_->note(note);
  for (const std::string& note : job_.notes()) view_->note(note);
  if (const std::string idle = idle_gpus_note(job_.plan(), capacity_.capacity); !idle.empty()) {
    view_->note(idle);
  }
  Instant last = begun->at;
  std::vector<Observer> observers;
  observers.emplace_back([&](const Turn& turn) {
    last = turn.events.back().at;
    view_->on(turn);
  });
  Scheduler scheduler(begun->plan, limits_in_force, capacity_.capacity);
  const Result<void> driven =
      drive(scheduler, *machine_, *journal_, observers,
            {.tell = [this](const std::optional<Error>& why) { tell_unwritten(why); }});
  view_->finish();
  return finish(driven, last);
}

/// True where the kernel keeps the limits of tasks that have a hard one.
bool Session::open_group() {
  if (std::ranges::none_of(job_.plan().shapes, &Shape::memory_hard)) return false;
  group_ = io::find_delegated_group();
  if (group_.path.empty()) return false;
  const Result<void> opened = io::open_delegated_group(group_);
  if (!opened) {
    capacity_.notes.push_back(fmt::format("memory-limit: hard is kept by looking each second: {}",
                                          opened.error().message));
  }
  return opened.has_value();
}

void Session::listen() {
  Result<std::unique_ptr<io::FrameServer>> server =
      io::FrameServer::listen(loop_, {.program = kProgram,
                                      .parents = io::socket_parents(),
                                      .on_trouble = [this](std::string_view what) {
                                        if (view_)
                                          view_->note(fmt::format("control socket: {}", what));
                                      }});
  if (server) {
    server_ = std::move(*server);
    control_.emplace(*server_, io::ControlLimits{},
                     [this](const wire::ControlRequest& request, io::Reply reply) {
                       serve(request, std::move(reply));
                     });
  } else {
    io::write_text(io::kStandardError,
                   fmt::format("trainyard: 'trainyard kill' will not reach this run: {}\n",
                               server.error().message));
  }
}

void Session::serve(const wire::ControlRequest& request, io::Reply reply) {
  match(
      request, [&](const wire::Ping&) { reply({.outcome = wire::Outcome::Done, .text = {}}); },
      [&](const wire::Kill& kill) {
        const std::optional<TaskIndex> task = job_.find(kill.group, kill.id);
        if (!task || !machine_) {
          reply({.outcome = wire::Outcome::NoSuchTask, .text = {}});
          return;
        }
        machine_->ask_to_kill(*task, [reply = std::move(reply)](bool done) mutable {
          reply({.outcome = done ? wire::Outcome::Done : wire::Outcome::NotRunning, .text = {}});
        });
      });
}

void Session::watch_signals() {
  // A lost terminal does not end the run, and neither does a reader of its output that goes away.
  loop_.watch_signals({SIGINT, SIGTERM, SIGHUP, SIGPIPE}, [this](int signal) {
    if (signal != SIGINT && signal != SIGTERM) return;
    interrupted_ = true;
    machine_->ask_to_interrupt();
  });
}

void Session::tell_unwritten(const std::optional<Error>& why) {
  if (!view_) return;
  view_->note(why ? fmt::format("journal: {}: nothing new starts until it can be written again, "
                                "and after a minute of this the run ends",
                                why->message)
                  : "journal: it is written again");
}

ExitCode Session::finish(const Result<void>& driven, Instant at) {
  const bool keeper_gone = machine_ && machine_->keeper_gone();
  // What is left of the tasks is ended before anything is said about them.
  machine_.reset();
  keeper_.reset();
  gpus_.reset();
  control_.reset();
  server_.reset();
  view_.reset();
  // Nothing of ours runs any more: Ctrl-C ends what is left, which is telling what was.
  loop_.forget_signals({SIGINT, SIGTERM});
  if (keeper_gone) {
    const Result<int> ended =
        io::end_processes_with("TRAINYARD_RUN_DIR=" + job_.places().run_directory, Duration{5'000});
    if (!ended) fail(ended.error());
  }
  const std::string how = !driven        ? "gave up: " + driven.error().message
                          : interrupted_ ? "interrupted"
                          : keeper_gone  ? "the keeper died"
                                         : "ended";
  const Result<void> closed = journal_->close(at, how);
  journal_.reset();
  if (!driven) {
    return fail(fmt::format("{}; {}", driven.error().message, how_to_go_on()),
                interrupted_ ? ExitCode::Interrupted : ExitCode::TaskFailed);
  }
  if (!closed) return fail(closed.error(), ExitCode::TaskFailed);
  if (job_.configuration().flag(Setting::SchedulerAutoAdjust)) {
    const Result<void> kept = keep_learned(job_.places().run_directory, job_.places().file);
    if (!kept) fail(fmt::format("what was learned is not kept: {}", kept.error().message));
  }
  const ExitCode result = show_results(job_.places().run_directory, options_.json);
  if (keeper_gone && !interrupted_) {
    return fail(fmt::format("the keeper of the task processes died; {}", how_to_go_on()),
                ExitCode::TaskFailed);
  }
  return interrupted_ ? ExitCode::Interrupted : result;
}

std::string Session::how_to_go_on() const {
  return fmt::format("go on with 'trainyard run --resume {}'",
                     shell_word(seen_from_here(job_.places().run_directory)));
}

Result<RunOptions> filled_in(const RunOptions& typed) {
  return typed.resumes ? fill_in_resumed(typed) : typed;
}

/// What going on with a run would do; nothing where it was killed before it had begun, so that all
/// of it is still to be done.
Result<std::optional<ResumedPlan>> look_ahead(const RunOptions& options, const Job& job) {
  const std::string& run_directory = job.places().run_directory;
  const Result<io::RunLock> lock = look_into_old_place(run_directory);
  if (!lock) return std::unexpected(lock.error());
  const Result<bool> begun = Journal::has_begun(journal_path(run_directory));
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return std::nullopt;
  Result<Journal::Preview> preview = Journal::preview(journal_path(run_directory), job.plan(),
                                                      names_of(job), journal_options(options));
  if (!preview) return std::unexpected(std::move(preview.error()));
  const std::size_t tasks = preview->plan.tasks.size();
  return ResumedPlan{
      .plan = std::move(preview->plan),
      .notes = notes_on_resume(options, preview->finished, tasks, std::move(preview->changes))};
}

ExitCode dry_run(const RunOptions& options, const LoadOptions& load) {
  const io::ThisMachine machine = io::find_this_machine();
  const std::expected<Job, Mistakes> job = Job::load(load, machine.reading.capacity);
  if (!job) return fail(job.error());
  std::optional<ResumedPlan> resumed;
  if (!options.resume.empty()) {
    Result<std::optional<ResumedPlan>> ahead = look_ahead(options, *job);
    if (!ahead) return fail(ahead.error());
    resumed = std::move(*ahead);
  }
  const ResumedPlan* const plan = resumed ? &*resumed : nullptr;
  print(options.json ? dry_run_json(*job, kDryRunTasksMax, plan)
                     : dry_run_text(*job, kDryRunTasksMax, plan));
  return ExitCode::Success;
}

}  // namespace

ExitCode run_command(const RunOptions& typed) {
  if (typed.dry_run) {
    const Result<RunOptions> options = filled_in(typed);
    if (!options) return fail(options.error());
    const Result<LoadOptions> load = load_options_of(*options);
    return load ? dry_run(*options, *load) : fail(load.error());
  }
  // First of all: the keeper must not inherit a thread, a database or a socket.
  Result<io::Keeper> keeper = io::Keeper::fork({});
  if (!keeper) return fail(keeper.error(), ExitCode::TaskFailed);
  const Result<RunOptions> options = filled_in(typed);
  if (!options) return fail(options.error());
  io::ThisMachine machine = io::find_this_machine();
  while (true) {
    const Result<LoadOptions> load = load_options_of(*options);
    if (!load) return fail(load.error());
    std::expected<Job, Mistakes> job = Job::load(*load, machine.reading.capacity);
    if (!job) return fail(job.error());
    const std::string run_directory = job->places().run_directory;
    const Result<io::RunLock> lock = options->resume.empty()
                                         ? take_new_place({.run_directory = run_directory,
                                                           .typed = !options->run_directory.empty(),
                                                           .command_line = options->command_line,
                                                           .job = {.job_name = job->name(),
                                                                   .job_file = job->places().file,
                                                                   .first = run_directory}})
                                         : take_old_place(run_directory);
    if (lock) {
      return Session(*options, std::move(*job), std::move(*keeper), std::move(machine)).run();
    }
    // Somebody else was quicker: the next one.
    if (options->next && io::RunLock::holder(run_directory)) continue;
    return fail(lock.error());
  }
}

}  // namespace trainyard::cli
