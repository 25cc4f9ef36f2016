// `trainyard clean`: deletes files of runs that are not needed any more.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/clean_request.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/run_machines.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/learned.h"
#include "journal/journal_file.h"
#include "journal/reader.h"
#include "queue/queue_files.h"
#include "report/digest.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/clean_run.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

/// The most processes that a command to kill them names.
constexpr std::size_t kPidsInCure = 10;

struct OldRun {
  std::string directory;
  std::int64_t ended_unix_ms = 0;  ///< Or when it last wrote anything, where it died.
  std::string in_use = {};         ///< For users: the reason why it cannot be deleted now; empty:
                                   ///< it can.
};

/// Adds to the error of a journal what is left where its file itself is at fault: without it, the
/// files of the run are not known.
Error with_way_without_journal(Error error, const std::string& directory) {
  const bool is_intact =
      error.of_machine || journal::refuse_access(run::journal_path(directory), journal::Use::Read);
  if (is_intact) return error;
  error.message += fmt::format(
      ". Without the journal, trainyard cannot tell which files in '{}' belong to the run: nothing "
      "was deleted",
      seen_from_here(directory));
  // Elsewhere, as with '--run-dir .', other files of the user may be next to the journal.
  if (std::filesystem::path(directory).parent_path().filename() == "runs") {
    error.message += fmt::format("; to delete the directory with all its files, type: rm -r {}",
                                 text::shell_word(seen_from_here(directory)));
  }
  return error;
}

/// A run whose journal can be read, or a submission that never became one. `watchers` are all of the
/// machine.
Result<OldRun> look_at_old_run(const std::string& directory,
                               const std::vector<process::Watcher>& watchers) {
  // A task may have put the link in the place of its run: it leads to another one.
  std::error_code not_a_link;
  const std::filesystem::path target = std::filesystem::read_symlink(directory, not_a_link);
  if (!not_a_link) {
    return OldRun{.directory = directory,
                  .in_use = fmt::format("'{}' is a symbolic link to '{}'; name the run itself",
                                        seen_from_here(directory), target.string())};
  }
  if (const std::optional<std::int64_t> ended = time_of_no_start(directory)) {
    return OldRun{.directory = directory, .ended_unix_ms = *ended};
  }
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(directory));
  if (!reader) {
    // To the reader, an empty journal is that of a run that was killed before it started.
    const Result<bool> begun = run::has_begun(directory);
    return std::unexpected(
        with_way_without_journal(begun ? reader.error() : begun.error(), directory));
  }
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(with_way_without_journal(executions.error(), directory));
  const Result<Instant> last = reader->last_instant();
  if (!last) return std::unexpected(with_way_without_journal(last.error(), directory));
  if (executions->empty()) {
    return std::unexpected(Error{fmt::format("the run in '{}' has not started", directory)});
  }
  const journal::ExecutionRow& execution = executions->back();
  const Instant ended = execution.ended.value_or(*last);
  OldRun run{.directory = directory,
             .ended_unix_ms = execution.started_unix_ms + (ended - execution.started).count()};
  const Duration left = time_left_for_tasks(directory, execution, *last);
  if (left > Duration{0}) {
    run.in_use = fmt::format(
        "tasks of the run in '{}' may run for another {}: nothing was deleted; {} continues them",
        directory, trainyard::to_text(left), command_for_run("run --resume", directory));
  } else if (const auto its = process::watchers_of(directory, watchers); !its.empty()) {
    run.in_use = fmt::format("process {} ({}) of {} is still ending its tasks: nothing was deleted",
                             its.front().pid, its.front().name, name_of_run(directory));
  } else if (const auto pids = run::processes_left(directory, execution); !pids.empty()) {
    const std::string cure = pids.size() > kPidsInCure
                                 ? std::string("end them")
                                 : fmt::format("end them with 'kill {}'", fmt::join(pids, " "));
    run.in_use = fmt::format("{} died, and {}: nothing was deleted; {}, or resume the run",
                             name_of_run(directory), report::processes_left_text(pids), cure);
  }
  return run;
}

/// The command to delete all runs, if the names are those of all files, as the shell writes them
/// for *.
std::string cure_of_all(const std::vector<std::string>& names) {
  const auto is_file = [](const std::string& name) {
    return !name.contains('/') && sys::exists(name);
  };
  const bool are_files = names.size() > 1 && std::ranges::all_of(names, is_file);
  if (names.front() != "*" && !are_files) return {};
  return "; " + other_way("clean", "*", {});
}

struct FoundRuns {
  std::vector<OldRun> runs;
  bool some_unreadable = false;
};

/// The named runs: an error if one of them is active or not known.
Result<FoundRuns> named_runs(const std::vector<std::string>& names) {
  FoundRuns found;
  const std::vector<process::Watcher> watchers = process::find_watchers();
  for (const std::string& name : names) {
    if (name.empty()) return std::unexpected(Error{"'' is not the name of a run"});
    const Result<std::string> directory = find_run(name, WhenSeveral::Refuse);
    if (!directory) {
      return std::unexpected(
          Error{app::with_cure_of_list(name, "", directory.error()).message + cure_of_all(names)});
    }
    if (run::active_process(*directory, watchers)) {
      return std::unexpected(
          Error{fmt::format("{} is active: nothing was deleted", name_of_run(*directory))});
    }
    if (goes_on_in_queue(*directory)) {
      return std::unexpected(Error{fmt::format(
          "{} is in your queue: nothing was deleted; {} removes it", name_of_run(*directory),
          text::quoted_command("trainyard kill " + text::shell_word(name)))});
    }
    Result<OldRun> run = look_at_old_run(*directory, watchers);
    if (!run) return std::unexpected(std::move(run.error()));
    if (!run->in_use.empty()) return std::unexpected(Error{run->in_use});
    const bool again = std::ranges::any_of(
        found.runs, [&run](const OldRun& other) { return other.directory == run->directory; });
    if (!again) found.runs.push_back(std::move(*run));
  }
  return found;
}

/// The directory of a run that is listed, perhaps by a link to it in the same directory.
std::string own_directory(const app::KnownRun& run) {
  const std::filesystem::path listed = run.directory;
  const std::string own =
      (listed.parent_path() / std::filesystem::path(run.real).filename()).string();
  return run::real_directory(own) == run.real ? own : run.directory;
}

/// The runs here that are not active. Runs that cannot be read are left alone, with a note.
FoundRuns find_old_runs() {
  FoundRuns found;
  std::vector<app::KnownRun> runs = run_facts().here();
  std::ranges::sort(runs, {},
                    [](const app::KnownRun& run) { return std::tuple(run.number, run.directory); });
  const std::vector<process::Watcher> watchers = process::find_watchers();
  for (const app::KnownRun& here : runs) {
    if (here.is_active() || !holds_run(here.directory)) continue;
    Result<OldRun> run = look_at_old_run(own_directory(here), watchers);
    if (run && run->in_use.empty()) {
      found.runs.push_back(std::move(*run));
      continue;
    }
    fail(fmt::format("'{}' is not deleted: {}", here.shown,
                     run ? run->in_use : run.error().message));
    found.some_unreadable = found.some_unreadable || !run;
  }
  return found;
}

/// The files of learned estimates that end with a run: its own, and the one that runs of commands
/// of its name share, if it is the last of them.
std::vector<std::string> learned_files(const std::string& run_directory) {
  const std::string kept = run::kept_job_path(run_directory);
  std::string name = queue::read_mark(run_directory).name;
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (name.empty() && reader) name = reader->job_name().value_or("");
  std::vector<std::string> files{job::learned_path(kept)};
  const std::filesystem::path runs = std::filesystem::path(run_directory).parent_path();
  const auto shares = [&](const std::string& other) {
    return std::filesystem::path(other).filename() !=
               std::filesystem::path(run_directory).filename() &&
           holds_run(other) && has_name(other, name);
  };
  if (std::ranges::none_of(run::run_directories_like((runs / name).string()), shares)) {
    files.push_back(job::learned_path(kept, name));
  }
  return files;
}

/// Reports the links next to deleted runs that led to them: no journal names these links, so they
/// stay.
void report_links_to_deleted(const std::vector<app::CleanedRun>& runs) {
  std::set<std::filesystem::path> gone;
  std::set<std::filesystem::path> parents;
  for (const app::CleanedRun& run : runs) {
    if (!run.cleaned.is_gone) continue;
    gone.emplace(run.run.directory);
    parents.emplace(std::filesystem::path(run.run.directory).parent_path());
  }
  for (const std::filesystem::path& parent : parents) {
    for (const std::string& name : sys::names_in(parent.string())) {
      std::error_code not_a_link;
      const std::filesystem::path target = std::filesystem::read_symlink(parent / name, not_a_link);
      if (not_a_link) continue;
      std::filesystem::path led_to = (parent / target).lexically_normal();
      if (!led_to.has_filename()) led_to = led_to.parent_path();
      if (!gone.contains(led_to)) continue;
      note(fmt::format("'{}' stays: a symbolic link to the deleted run '{}'",
                       seen_from_here((parent / name).string()), target.string()));
    }
  }
}

ExitCode clean_command(const app::CleanWords& words) {
  const Result<app::CleanRequest> request = app::read_clean_request(words);
  if (!request) return fail(request.error());
  const Result<FoundRuns> found = words.runs.empty() ? find_old_runs() : named_runs(words.runs);
  if (!found) return fail(found.error());
  const std::int64_t now = sys::unix_milliseconds();
  app::CleanOutcome outcome{.some_ended = !found->runs.empty(), .failed = found->some_unreadable};
  for (const OldRun& run : found->runs) {
    if (const auto& older = request->older; older && run.ended_unix_ms > now - older->count()) {
      continue;
    }
    run::CleanOptions options = request->options;
    options.learned = learned_files(run.directory);
    const Result<run::Cleaned> cleaned = run::clean_run(run.directory, options);
    app::CleanedRun row{
        .run = named_run(run.directory),
        .ended_unix_ms = run.ended_unix_ms,
        .is_done = cleaned.has_value(),
        .cleaned = cleaned ? *cleaned : run::Cleaned{.failed = {cleaned.error().message}}};
    for (const std::string& why : row.cleaned.failed) fail(fmt::format("not deleted: {}", why));
    outcome.failed = outcome.failed || !row.cleaned.failed.empty();
    outcome.runs.push_back(std::move(row));
  }
  report_links_to_deleted(outcome.runs);
  const ExitCode answered = answer(words.json ? app::clean_json(words, outcome)
                                              : app::clean_text(request->options, outcome, now));
  if (!outcome.failed) return answered;
  const bool some_done = std::ranges::any_of(outcome.runs, &app::CleanedRun::is_done);
  return some_done || outcome.runs.empty() ? ExitCode::TaskFailed : ExitCode::Usage;
}

CLI::App* add_clean(CLI::App& app, app::CleanWords& words) {
  CLI::App* clean = app.add_subcommand("clean", "Delete files of runs that have ended");
  clean->group(command_groups::kChange);
  clean->add_option("run", words.runs, "Runs to delete (default: those --older selects)")
      ->type_name(value_kinds::kRun);
  clean->add_option("--older", words.older, "Select runs that ended at least this long ago: 30d")
      ->group(option_groups::kSelection)
      ->type_name(value_kinds::kTime);
  clean->add_option("--keep", words.keep, "Keep these files, journals and reports; repeatable")
      ->group(option_groups::kSelection)
      ->type_name("results|logs")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  clean->add_flag("--dry-run", words.dry_run, "Show what would be deleted, and delete nothing")
      ->group(option_groups::kOutput);
  add_json(*clean, words.json);
  clean->footer(
      "Examples:\n"
      "  trainyard clean --older 0s --dry-run\n"
      "  trainyard clean --older 30d --dry-run\n"
      "  trainyard clean --older 30d --keep results\n"
      "  trainyard clean 46 runs/first\n"
      "  trainyard clean 46 --keep results,logs\n"
      "\n"
      "Deletes task directories, with the checkpoints and models in them, the reports, the "
      "journal\n"
      "and the copy of the code. Other files in the run directory stay, and so does an active "
      "run.\n"
      "A submission that never started has no journal: the files that trainyard wrote are "
      "deleted.\n"
      "Does not prompt before it deletes.\n"
      "A number or a path also selects a run of another directory; a name does not. If several "
      "runs\n"
      "have the name, nothing is deleted: use a number or a directory.\n"
      "Exit codes: 0 done, 1 something could not be deleted, 2 nothing was done.");
  return clean;
}

}  // namespace

Entry clean_entry() { return entry({"clean"}, add_clean, clean_command); }

}  // namespace trainyard::cli
