#include "cli/look_ahead.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "cli/command_job.h"
#include "cli/directory_claim.h"
#include "cli/load_options.h"
#include "cli/resume_options.h"
#include "journal/reader.h"
#include "run/begun.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::cli {

Result<RunOptions> fill_in(const RunOptions& typed) {
  return typed.request.resumes() ? fill_in_resumed(typed) : typed;
}

Result<job::LoadOptions> load_options_of(const RunOptions& options) {
  const app::RunRequest& request = options.request;
  Result<job::LoadOptions> load =
      load_options(request.job_file(), options.config_file, options.settings, request.directory());
  if (load) load->starts_with = "run";
  if (load) load->files = options.job_files;
  if (load) load->line_names = options.line_names;
  if (load) load->moved_directory = options.moved_directory;
  if (!load || !request.takes_next_free()) return load;
  const Result<job::JobRuns> job = job::Job::runs_of(*load);
  if (!job) return std::unexpected(job.error());
  load->run_directory = run::free_run_directory(job->first);
  return load;
}

journal::JournalOptions journal_options(const RunOptions& options) {
  const bool all = options.retries.empty() && options.reruns.empty();
  journal::JournalOptions chosen{
      .edited = options.request.choices.reruns_changed ? journal::Edited::RunAgain
                                                       : journal::Edited::KeepResult,
      .unfinished = all ? journal::Unfinished::RunAgain : journal::Unfinished::Stay,
      .retried = options.retried_rows,
      .by_request = !options.retries.empty(),
      .fresh = options.fresh};
  if (options.reruns.empty()) return chosen;
  chosen.edited = journal::Edited::RunAgain;
  for (const RunOptions::Rerun& rerun : options.reruns) {
    if (!chosen.again) chosen.again.emplace();
    chosen.again->insert(rerun.task.value);
  }
  return chosen;
}

std::vector<wire::Retry> asked_for(const RunOptions& options) {
  if (!options.retries.empty()) return options.retries;
  std::vector<wire::Retry> asked;
  for (const RunOptions::Rerun& rerun : options.reruns) {
    asked.push_back({.group = rerun.group, .id = rerun.id});
  }
  return asked;
}

namespace {

/// The move of the run directory since the batch was added.
run::RunMove move_since(const journal::BatchRow& batch,
                        const std::vector<journal::ExecutionRow>& executions,
                        const std::string& directory) {
  run::RunMove move{.was = {}, .is = run::real_directory(directory)};
  for (const journal::ExecutionRow& execution : executions) {
    if (move.was.empty() || execution.started < batch.added) move.was = execution.run_directory;
  }
  return move;
}

/// The present path of the job file of a submission to this run. Its text is kept, so the file need
/// not exist, but its tasks work in its directory. For a run that was copied or moved, that is the
/// one at the same place relative to the run directory, never the original.
Result<std::string> job_file_now(const std::string& then, const run::RunMove& move) {
  std::string now = run::path_after_move(then, move);
  const std::string place = std::filesystem::path(now).parent_path().string();
  if (now == then || sys::exists(place)) return now;
  return std::unexpected(
      Error{fmt::format("the run was copied or moved here from '{}', and the directory of '{}', "
                        "which was submitted to it, was not found at '{}': copy it there",
                        move.was, then, place)});
}

}  // namespace

std::expected<std::vector<std::string>, text::Mistakes> add_submitted(
    JobTasks& tasks, const std::string& directory) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(directory));
  const Result<std::vector<journal::BatchRow>> batches =
      reader ? reader->batches() : std::unexpected(reader.error());
  const auto failed = [](const Error& error) {
    return std::unexpected(text::Mistakes{{.file = {}, .message = error.message}});
  };
  if (!batches) return failed(batches.error());
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return failed(executions.error());
  std::vector<std::string> notes;
  for (journal::BatchRow batch : *batches) {
    if (batch.number == 1) continue;
    const run::RunMove move = move_since(batch, *executions, directory);
    Result<std::string> job_file = job_file_now(batch.source.job_file, move);
    if (!job_file) return failed(job_file.error());
    batch.source.job_file = std::move(*job_file);
    // A submitted file means the directories that it names.
    const bool is_command = std::filesystem::path(batch.source.job_file).filename() == kCommandFile;
    const auto moved =
        is_command ? find_moved_directory(batch.source.job_text, move) : std::nullopt;
    // Only the first execution in another place says so.
    if (moved && executions->back().run_directory != move.is) {
      std::string note = fmt::format(
          "the run was copied or moved here from '{}': the working directory of commands "
          "submitted to it is '{}' now",
          move.was, moved->is);
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
    std::expected<void, text::Mistakes> added = tasks.add_again(batch, moved);
    if (added) continue;
    if (batch.source.job_text.empty()) return std::unexpected(std::move(added.error()));
    // The submission was valid when it was accepted: the user must look at the groups that it
    // needs.
    for (text::Mistake& mistake : added.error()) {
      mistake.message += fmt::format(
          " (submission {} of this run: restore what it needs in the job file)", batch.number);
    }
    return std::unexpected(std::move(added.error()));
  }
  return notes;
}

Result<std::optional<journal::Journal::Preview>> look_ahead(const RunOptions& options,
                                                            JobTasks& tasks) {
  const std::string run_directory = tasks.jobs().first().paths().run_directory;
  const Result<sys::RunLock> lock = lock_old_directory(run_directory);
  if (!lock) return std::unexpected(lock.error());
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return std::nullopt;
  if (Result<void> known = run::check_attempts_are_known(run_directory); !known) {
    return std::unexpected(std::move(known.error()));
  }
  auto submitted = add_submitted(tasks, run_directory);
  if (!submitted) {
    return std::unexpected(Error{submitted.error().front().message});
  }
  Result<journal::Journal::Preview> preview = journal::Journal::preview(
      run::journal_path(run_directory), tasks.batches(options.command_line),
      journal_options(options), run::noted_ends(run_directory).ends);
  if (!preview) return std::unexpected(std::move(preview.error()));
  std::ranges::move(preview->changes, std::back_inserter(*submitted));
  preview->changes = *std::move(submitted);
  return *std::move(preview);
}

}  // namespace trainyard::cli
