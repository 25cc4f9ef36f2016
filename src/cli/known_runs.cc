#include "cli/known_runs.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/path_name.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/console.h"
#include "cli/queued_runs.h"
#include "cli/selection_words.h"
#include "queue/queue_files.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "settings/configuration.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Seen from the current directory, which may be gone.
std::string absolute(const std::string& path) {
  const Result<std::string> here = sys::current_directory();
  return here ? absolute_path(path, *here) : path;
}

/// The largest number first.
std::vector<run::RunNumbers::Numbered> numbered_runs() {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  return numbers ? numbers->all() : std::vector<run::RunNumbers::Numbered>();
}

bool is_gone(const run::RunNumbers::Numbered& run) {
  return !is_directory(run.directory) && !goes_on_in_queue(run.directory, run.number);
}

app::KnownRun read_run(const std::string& directory, std::string real, std::uint32_t number,
                       bool is_running) {
  app::KnownRun run{.directory = directory,
                    .real = std::move(real),
                    .shown = seen_from_here(directory),
                    .number = number};
  run.is_running = is_running;
  run.is_queued = number != 0 && !run.is_running && goes_on_in_queue(directory, number);
  run.created_ms = queue::read_mark(directory).submitted_unix_ms;
  run.has_journal = sys::exists(run::journal_path(directory));
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(directory));
  if (!reader) {
    run.is_unreadable = run.has_journal;
    // The mark is gone with the directory of a submission.
    if (run.created_ms == 0) run.created_ms = time_of_submission(number);
    return run;
  }
  if (const auto executions = reader->executions(); executions && !executions->empty()) {
    const journal::ExecutionRow& last = executions->back();
    run.started_ms = last.started_unix_ms;
    if (last.ended) run.ended_ms = run.started_ms + (*last.ended - last.started).count();
    if (run.created_ms == 0) run.created_ms = executions->front().started_unix_ms;
  }
  return run;
}

/// Whether a directory has files of a run, which may have lost its journal.
bool has_files_of_run(const std::string& directory) {
  return sys::exists(run::journal_path(directory)) ||
         sys::exists(run::submission_path(directory)) || !run::has_begun(directory);
}

/// The directories that hold a run, or were made for a submission in the queue, each once, in no
/// order.
std::vector<app::KnownRun> runs_in(const std::vector<std::string>& directories) {
  if (directories.empty()) return {};
  std::map<std::string, std::uint32_t> numbers;
  for (run::RunNumbers::Numbered& run : numbered_runs()) {
    numbers.emplace(std::move(run.directory), run.number);
  }
  const std::vector<process::Watcher> watchers = process::find_watchers();
  std::set<std::string> seen;
  std::vector<app::KnownRun> runs;
  for (const std::string& directory : directories) {
    std::string real = run::real_directory(directory);
    const auto number = numbers.find(real);
    const bool is_active = run::active_process(directory, watchers).has_value();
    const bool is_run = is_active || has_files_of_run(directory) ||
                        (number != numbers.end() && is_known_without_directory(number->second));
    if (!is_run || !seen.insert(real).second) continue;
    runs.push_back(read_run(directory, std::move(real),
                            number == numbers.end() ? 0 : number->second, is_active));
  }
  return runs;
}

/// Whether a directory has a run, or is gone and was that of a submission that has not ended.
bool is_run(const std::string& directory) {
  if (holds_run(directory)) return true;
  const auto number = sys::exists(directory) ? std::nullopt : number_of_run(directory);
  return number && goes_on_in_queue(directory, *number);
}

std::vector<std::string> directories_in(const std::string& parent) {
  std::vector<std::string> directories;
  for (const std::string& name : sys::names_in(parent)) {
    directories.push_back(fmt::format("{}/{}", parent, name));
  }
  return directories;
}

/// The places of runs of this directory: in it, in the configured directory of runs, and others
/// that were started or submitted from here, as with a job file in another directory.
std::vector<std::string> places_of_here() {
  const Result<std::string> current = sys::current_directory();
  if (!current) return {};
  const std::string& here = *current;
  std::vector<std::string> directories = directories_in(here + "/runs");
  if (const auto numbers = run::RunNumbers::of_this_user()) {
    std::ranges::move(numbers->started_from(run::real_directory(here)),
                      std::back_inserter(directories));
  }
  const auto configuration =
      settings::load_configuration({.config_file = {}, .settings = {}, .current_directory = here});
  if (!configuration) return directories;
  const std::string& workdir = configuration->text(settings::Setting::Workdir);
  if (workdir == "auto" || workdir == here) return directories;
  std::ranges::move(directories_in(workdir + "/runs"), std::back_inserter(directories));
  return directories;
}

/// The directories of the runs of a job. 'runs/net-3' may be the third of the job 'net', and the
/// first of the job 'net-3'.
std::vector<std::string> paths_of_job(const job::JobRuns& job) {
  std::vector<std::string> places = run::run_directories_like(job.first);
  std::erase_if(places, [&job](const std::string& place) { return !is_run_of(place, job); });
  return places;
}

/// The directories of all numbered runs of a name, except those that are gone: the largest number
/// first.
std::vector<std::string> numbered_runs_named(std::string_view name) {
  std::vector<std::string> found;
  for (run::RunNumbers::Numbered& run : numbered_runs()) {
    if (has_name(run.directory, name) && !is_gone(run)) found.push_back(std::move(run.directory));
  }
  return found;
}

class JournalTasks final : public app::RunTasks {
 public:
  JournalTasks(std::string run, journal::JournalReader& reader)
      : run_(std::move(run)), reader_(&reader) {}
  JournalTasks(std::string run, journal::JournalReader&& reader)
      : run_(std::move(run)), own_(std::move(reader)), reader_(&*own_) {}

  Result<journal::JournalReader::Lookup> look_up(std::string_view name) override {
    return reader_->look_up(name);
  }
  Result<std::vector<journal::TaskRow>> all() override {
    std::vector<journal::TaskRow> rows;
    const Result<void> read = reader_->tasks({}, [&rows](journal::TaskRow row) {
      rows.push_back(std::move(row));
      return true;
    });
    if (!read) return std::unexpected(read.error());
    return rows;
  }
  bool is_over() override { return cli::is_over(*reader_, run_); }

 private:
  std::string run_;
  std::optional<journal::JournalReader> own_;
  journal::JournalReader* reader_;
};

class RunsOnDisk final : public app::RunFacts {
 public:
  [[nodiscard]] app::PathKind kind_of(const std::string& path) const override {
    std::error_code ignored;
    const fs::file_type type = fs::status(path, ignored).type();
    if (type == fs::file_type::regular) return app::PathKind::File;
    if (type != fs::file_type::directory) return app::PathKind::Missing;
    return holds_run(path) ? app::PathKind::RunDirectory : app::PathKind::Directory;
  }
  [[nodiscard]] bool has_runs_in(const std::string& directory) const override {
    return is_directory(directory + "/runs");
  }
  [[nodiscard]] std::optional<app::KnownRun> of_number(std::uint32_t number) const override {
    const std::optional<std::string> directory = directory_of_run(number);
    if (!directory) return std::nullopt;
    app::KnownRun run =
        read_run(*directory, *directory, number, run::active_process(*directory).has_value());
    run.is_gone = !holds_run(*directory) && !is_known_without_directory(number);
    return run;
  }
  [[nodiscard]] std::optional<app::KnownRun> in(const std::string& directory) const override {
    const std::string path = absolute(directory);
    if (!is_run(path)) return std::nullopt;
    return read_run(path, run::real_directory(path), number_of_run(path).value_or(0),
                    run::active_process(path).has_value());
  }
  [[nodiscard]] std::vector<app::KnownRun> below(const std::string& directory) const override {
    return runs_in(directories_in(absolute(directory) + "/runs"));
  }
  [[nodiscard]] Result<std::vector<app::KnownRun>> of_job(
      const std::string& job_file) const override {
    const Result<job::LoadOptions> options = load_options(job_file, {}, {}, {});
    if (!options) return std::unexpected(options.error());
    const Result<job::JobRuns> job = job::Job::runs_of(*options);
    if (!job) return std::unexpected(job.error());
    return runs_in(paths_of_job(*job));
  }
  [[nodiscard]] std::vector<app::KnownRun> here() const override {
    return runs_in(places_of_here());
  }
  [[nodiscard]] std::vector<app::KnownRun> here_named(const std::string& name) const override {
    std::vector<std::string> directories = places_of_here();
    // The directory of a submission that waits may be gone.
    const std::string runs = run::real_directory(absolute("runs"));
    for (std::string& each : numbered_runs_named(name)) {
      if (fs::path(each).parent_path() == runs) directories.push_back(std::move(each));
    }
    std::erase_if(directories, [&name](const std::string& each) {
      return !has_name(each, name) || !is_run(each);
    });
    return runs_in(directories);
  }
  [[nodiscard]] std::vector<app::KnownRun> anywhere_named(const std::string& name) const override {
    return runs_in(numbered_runs_named(name));
  }
  [[nodiscard]] std::optional<app::KnownRun> last() const override {
    const std::vector<run::RunNumbers::Numbered> runs = numbered_runs();
    const auto last = std::ranges::find_if_not(runs, is_gone);
    if (last == runs.end()) return std::nullopt;
    return read_run(last->directory, last->directory, last->number,
                    run::active_process(last->directory).has_value());
  }
  [[nodiscard]] Result<std::unique_ptr<app::RunTasks>> tasks_of(
      const std::string& run) const override {
    Result<journal::JournalReader> reader = open_run(run);
    if (!reader) return std::unexpected(std::move(reader.error()));
    return std::make_unique<JournalTasks>(run, *std::move(reader));
  }
};

SelectionWords unmarked(SelectionWords words) {
  for (std::string& word : words.words) word = without_mark(std::move(word));
  return words;
}

}  // namespace

const app::RunFacts& run_facts() {
  static const RunsOnDisk facts;
  return facts;
}

Result<std::string> find_run(const std::string& word, WhenSeveral when_several) {
  Result<app::FoundRun> found = app::choose_run(word, when_several, run_facts());
  if (!found) return std::unexpected(std::move(found.error()));
  return std::move(found->run);
}

std::unique_ptr<app::RunTasks> tasks_in(journal::JournalReader& reader, const std::string& run) {
  return std::make_unique<JournalTasks>(run, reader);
}

Result<std::vector<TasksOfRun>> read_selections(SelectionWords words) {
  return app::read_selections(unmarked(std::move(words)), run_facts());
}

Result<TasksOfRun> read_selection(SelectionWords words) {
  return app::read_selection(unmarked(std::move(words)), run_facts());
}

Result<std::vector<journal::TaskRow>> selected_tasks(journal::JournalReader& reader,
                                                     const TasksOfRun& selection,
                                                     SameName same_name) {
  return app::selected_tasks(*tasks_in(reader, selection.run), selection, same_name, run_facts());
}

std::string none_in_state(const TasksOfRun& selection) {
  return app::none_in_state(selection, run_facts());
}

bool holds_run(const std::string& directory) {
  return has_files_of_run(directory) || run::active_process(directory).has_value();
}

bool has_name(const std::string& run_directory, std::string_view name) {
  const std::string_view called =
      std::string_view(run_directory).substr(run_directory.rfind('/') + 1);
  if (called == name) return true;
  if (!run::is_directory_like(called, name)) return false;
  // 'net-3' may be the third run of the job 'net', or the first of the job 'net-3'.
  if (const queue::SubmissionMark mark = queue::read_mark(run_directory); !mark.name.empty()) {
    return mark.name == name;
  }
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return true;
  const Result<std::string> job_name = reader->job_name();
  return !job_name || *job_name == name;
}

bool is_run_of(const std::string& run_directory, const job::JobRuns& job) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) {
    const std::string name = queue::read_mark(run_directory).name;
    return name.empty() || name == fs::path(job.first).filename().string();
  }
  const auto executions = reader->executions();
  if (!executions || executions->empty()) return true;
  const journal::ExecutionRow& last = executions->back();
  const std::string job_file = run::path_after_move(
      last.job_file, {.was = last.run_directory, .is = run::real_directory(run_directory)});
  std::error_code ignored;
  if (job_file == job.job_file || fs::equivalent(job_file, job.job_file, ignored)) return true;
  return !sys::exists(job_file) && reader->job_name() == job.job_name;
}

std::vector<app::KnownRun> runs_of(const job::JobRuns& job) {
  std::vector<app::KnownRun> runs = runs_in(paths_of_job(job));
  app::order_by_start(runs);
  return runs;
}

std::optional<std::string> directory_of_run(std::uint32_t number) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  return numbers ? numbers->directory_of(number) : std::nullopt;
}

std::optional<std::uint32_t> number_of_run(const std::string& run_directory) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  return numbers ? numbers->number_of(run::real_directory(run_directory)) : std::nullopt;
}

app::KnownRun named_run(const std::string& run_directory) {
  return {.directory = run_directory,
          .real = {},
          .shown = seen_from_here(run_directory),
          .number = number_of_run(run_directory).value_or(0)};
}

std::string name_of_run(const std::string& run_directory) {
  return named_run(run_directory).name();
}

void explain_number(std::uint32_t number, const std::string& run_directory,
                    std::string_view outcome) {
  if (!sys::is_terminal(sys::kStandardError)) return;
  sys::write_standard_error(
      fmt::format("run {0} {1}: {2} ('trainyard status {0}', 'trainyard wait {0}')\n", number,
                  outcome, seen_from_here(run_directory)));
}

Result<journal::JournalReader> open_run(const std::string& run_directory) {
  constexpr Duration kBeginsWithin{10'000};
  constexpr Duration kNoteAfter{1'000};
  constexpr Duration kLookEvery{20};
  const std::string path = run::journal_path(run_directory);
  const Duration from = sys::EventLoop::now();
  bool is_noted = false;
  while (true) {
    // Checked before the journal is read: a yard that has exited has written it by now, if ever. The
    // lock alone counts, as no task of a run that is just beginning can have removed it.
    const bool lives =
        sys::RunLock::holder(run_directory).has_value() || is_about_to_begin(run_directory);
    Result<journal::JournalReader> reader = journal::JournalReader::open(path);
    if (reader) return reader;
    const Result<bool> begun = run::has_begun(run_directory);
    if (!begun) return std::unexpected(begun.error());
    if (*begun) return journal::JournalReader::open(path);
    if (!lives) {
      if (std::optional<Error> queued = why_not_begun(run_directory)) {
        return std::unexpected(std::move(*queued));
      }
      return reader;
    }
    const Duration waited = sys::EventLoop::now() - from;
    if (waited > kBeginsWithin) {
      return std::unexpected(
          Error{fmt::format("the run in '{}' is starting; try again in a moment", run_directory)});
    }
    if (waited > kNoteAfter && !std::exchange(is_noted, true)) {
      note(fmt::format("waiting for the run in '{}', which is starting", run_directory));
    }
    sys::let_pass(kLookEvery);
  }
}

Result<std::string> socket_of_run(journal::JournalReader& reader, const std::string& run) {
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(executions.error());
  const std::optional<std::int64_t> holder = run::active_process(run);
  const auto refuse = [&run](std::string_view why) {
    return std::unexpected(Error{fmt::format("{} {}", name_of_run(run), why)});
  };
  if (executions->empty()) return refuse("is not running");
  const journal::ExecutionRow& last = executions->back();
  if (!holder && !last.ended) {
    return refuse(
        fmt::format("is not running: {} shows how to resume it", command_for_run("status", run)));
  }
  if (!holder) {
    if (!last.is_interrupted() || last.is_of_program()) return refuse("has ended");
    std::string cure = how_queue_resumes(run);
    if (cure.empty()) cure = command_for_run("run --resume", run) + " resumes it";
    return refuse("has ended: interrupted; " + cure);
  }
  if (last.ended) return refuse("has no active tasks now");
  if (sys::is_suspended(*holder)) {
    return refuse(fmt::format(
        "is suspended, as by Ctrl-Z, and does not respond; 'kill -CONT {}' resumes it", *holder));
  }
  if (!last.socket_path.empty()) return last.socket_path;
  return refuse("has no control socket; the reason was printed when it started");
}

bool is_over(journal::JournalReader& reader, const std::string& run) {
  const auto executions = reader.executions();
  return executions && !executions->empty() && !run::active_process(run);
}

}  // namespace trainyard::cli
