#include "cli/resumed_run.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/path_name.h"
#include "cli/checked_job.h"
#include "cli/command_job.h"
#include "cli/console.h"
#include "cli/directory_claim.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/shared_words.h"
#include "job/job_files.h"
#include "process/code_asker.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/shell_quote.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

using sys::exists;

Error no_run(const std::string& run_directory) {
  const std::string seen = seen_from_here(run_directory);
  std::string cure = resume_run_in(seen);
  if (cure.empty()) {
    cure = fmt::format("to start one there, run a job file with {}",
                       text::quoted_command("--run-dir " + text::shell_word(seen)));
  }
  const bool was_killed = exists(run::journal_path(run_directory));
  return Error{fmt::format("no run found in '{}': {}; {}", seen,
                           was_killed ? "it was killed before it started" : "it has no journal",
                           cure)};
}

/// Empty for a run that was killed before it had begun.
Result<std::vector<journal::ExecutionRow>> executions_in(const std::string& run_directory) {
  const std::string journal = run::journal_path(run_directory);
  const Result<bool> begun = run::has_begun(run_directory);
  // A task can remove the journal of its run while that is active.
  if ((!begun || !exists(journal)) && run::active_process(run_directory)) {
    const Result<sys::RunLock> lock = lock_old_directory(run_directory);
    if (!lock) return std::unexpected(lock.error());
  }
  if (!begun) return std::unexpected(begun.error());
  if (!exists(journal)) {
    return std::unexpected(why_not_begun(run_directory).value_or(no_run(run_directory)));
  }
  if (!*begun) return {};
  Result<journal::JournalReader> reader = journal::JournalReader::open(journal);
  if (!reader) return std::unexpected(std::move(reader.error()));
  return reader->executions();
}

std::string_view key_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

/// The present path of a file of the last execution. For a run that was copied or moved it is the
/// file at the same place relative to the run directory, never the file of the original run.
/// `cure` names another file. An error where there is no such file.
Result<std::string> find_file(std::string_view what, const std::string& path,
                              const run::RunMove& move, std::string_view cure) {
  std::string now = run::path_after_move(path, move);
  if (exists(now)) return now;
  if (now == path) {
    return std::unexpected(Error{fmt::format(
        "the {} of the run, '{}', was not found; name another after {}", what, now, cure)});
  }
  return std::unexpected(Error{
      fmt::format("the run was copied or moved here from '{}', and its {} '{}' was not found: put "
                  "it there, or name one, such as '{}', after {}",
                  move.was, what, now, path, cure)});
}

Result<void> take_over_files(RunOptions& options, const journal::ExecutionRow& last,
                             const std::string& here, const run::RunMove& move) {
  if (last.is_of_program()) {
    return std::unexpected(
        Error{fmt::format("the run in '{}' belongs to a program with trainyard's library: run that "
                          "program again to resume it",
                          seen_from_here(options.request.directory()))});
  }
  const std::string resume =
      "trainyard run --resume " + text::shell_word(seen_from_here(options.request.directory()));
  // The command that names another file keeps the one that was typed.
  std::string typed = resume;
  const std::string typed_job_file = options.request.job_file();
  if (!typed_job_file.empty()) typed += " " + text::shell_word(typed_job_file);
  if (!options.config_file.empty()) typed += " --config " + text::shell_word(options.config_file);
  const auto find = [&](std::string_view what, const std::string& path,
                        std::string_view option) -> Result<std::string> {
    Result<std::string> found =
        find_file(what, path, move, text::quoted_command(fmt::format("{}{}", typed, option)));
    if (found && *found != path) {
      options.resume_notes.push_back(
          fmt::format("the run was copied or moved here from '{}': its {} is '{}' now", move.was,
                      what, *found));
    }
    return found;
  };
  const std::string before = run::path_after_move(last.job_file, move);
  std::error_code ignored;
  if (std::holds_alternative<app::JobOfRun>(options.request.job)) {
    // The text that the queue has kept replaces that of the file.
    Result<std::string> job_file = options.job_text.empty() ? find("job file", last.job_file, "")
                                                            : Result<std::string>(before);
    if (!job_file) return std::unexpected(std::move(job_file.error()));
    options.request.job = app::JobFile{std::move(*job_file)};
  } else if (exists(before) && !run::is_kept_job_path(last.job_file) &&
             !std::filesystem::equivalent(before, options.request.job_file(), ignored)) {
    const std::string seen = seen_from_here(before);
    options.resume_notes.push_back(
        fmt::format("its last execution ran '{}': to return to that, type {}", seen,
                    text::quoted_command(fmt::format("{} {}", resume, text::shell_word(seen)))));
  }
  if (!options.config_file.empty() || last.config_file.empty()) return {};
  Result<std::string> config_file = find("configuration file", last.config_file, " --config");
  if (!config_file) return std::unexpected(std::move(config_file.error()));
  if (*config_file == absolute_path(settings::kConfigurationFile, here)) return {};
  options.config_file = std::move(*config_file);
  options.taken_over = "--config " + options.config_file;
  return {};
}

/// Takes the files that the job file names as they were when it was submitted, as long as the job
/// file itself has not been edited since.
Result<void> take_over_kept_files(RunOptions& options, const std::string& run_directory) {
  if (!options.job_text.empty()) return {};
  const Result<std::string> kept =
      text::read_text_file(run::kept_job_path(run_directory), sys::Links::RefuseAny);
  const std::string job_file = options.request.job_file();
  const Result<std::string> now = text::read_text_file(job_file, run::links_at_job_file(job_file));
  if (!kept || !now || *kept != *now) return {};
  Result<job::JobFiles> files = kept_files_of(run_directory);
  if (!files) return std::unexpected(std::move(files.error()));
  options.job_files = std::move(*files);
  return {};
}

/// The directory of the tasks of a command that was copied or moved together with the run. Nothing
/// where `job_text` is another kind of job file, or where the directory is still in its place.
std::optional<job::MovedDirectory> find_moved_directory(const std::string& job_text,
                                                        const run::RunMove& move) {
  const std::optional<std::string> was = directory_of_command(job_text);
  if (!was) return std::nullopt;
  std::string is = run::directory_after_move(*was, move);
  // A working directory that was not copied with the run is still that of the original.
  if (is == *was || !exists(is)) return std::nullopt;
  return job::MovedDirectory{.was = *was, .is = std::move(is)};
}

/// The job file of a command is in its run directory, and names the directory of its tasks as it
/// was in the first execution. Only the first execution in another place says where it is now.
void take_over_directory(RunOptions& options, const std::vector<journal::ExecutionRow>& executions,
                         const std::string& run_directory) {
  const std::string real = run::real_directory(run_directory);
  const std::string& was = executions.front().run_directory;
  const std::string kept = run::kept_job_path(real);
  if (run::real_directory(options.request.job_file()) != kept) return;
  const Result<std::string> text = text::read_text_file(kept, sys::Links::RefuseAny);
  if (!text) return;
  options.moved_directory = find_moved_directory(*text, {.was = was, .is = real});
  if (!options.moved_directory || executions.back().run_directory == real) return;
  options.resume_notes.push_back(
      fmt::format("the run was copied or moved here from '{}': its working directory is '{}' now",
                  was, options.moved_directory->is));
}

/// A setting as the user gives it: as the option of 'run' that sets it, if there is one.
std::string typed_setting(const std::string& setting) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTypedOptions{
      {{"machines", "--on"}, {"slurm.options", "--slurm"}, {"slurm.allocations", "--allocations"}}};
  if (setting == "agent.local=true") return "--survive";
  const std::string_view key = key_of(setting);
  for (const auto& [name, option] : kTypedOptions) {
    if (key == name) return fmt::format("{} {}", option, setting.substr(key.size() + 1));
  }
  return "--set " + setting;
}

/// Puts the old settings first, so that a new one for the same key replaces its old one.
void take_over_settings(RunOptions& options, std::vector<std::string> old) {
  std::erase_if(old, [&options](std::string_view setting) {
    return std::ranges::find(options.settings, key_of(setting), key_of) != options.settings.end();
  });
  for (const std::string& setting : old) {
    options.taken_over += (options.taken_over.empty() ? "" : " ") + typed_setting(setting);
  }
  options.settings.insert(options.settings.begin(), old.begin(), old.end());
}

/// The directory of the run that a word names.
Result<std::string> find_named_run(const std::string& word) {
  Result<std::string> run = find_run(word, WhenSeveral::RefuseLive);
  // A directory without a run may be that of one that was killed before it had begun.
  const bool has_run = run || run_facts().kind_of(word) == app::PathKind::RunDirectory;
  return has_run || !exists(word) ? run : Result<std::string>(word);
}

/// The directory of the latest run of the job file. Adds a note where the job file has several.
Result<std::string> find_latest_run(RunOptions& options) {
  const std::string job_file = options.request.job_file();
  const Result<job::LoadOptions> load =
      load_options(job_file, options.config_file, options.settings, {});
  if (!load) return std::unexpected(load.error());
  const Result<job::JobRuns> job = job::Job::runs_of(*load);
  if (!job) return std::unexpected(unreadable_job(job.error(), job_file));
  const std::vector<app::KnownRun> runs = runs_of(*job);
  if (runs.size() > 1) {
    options.resume_notes.push_back("resuming " +
                                   app::name_of_latest(runs.front().name(), runs.size()));
  }
  if (!runs.empty()) return runs.front().directory;
  if (exists(run::journal_path(job->first))) {
    const std::string job_word = text::shell_word(job_file);
    const std::string resume =
        is_run_of_command(job->first)
            ? std::string()
            : fmt::format("resume that with {}, or ",
                          text::quoted_command(
                              fmt::format("trainyard run --resume {} {}",
                                          text::shell_word(seen_from_here(job->first)), job_word)));
    return std::unexpected(Error{
        fmt::format("no run of '{}' found in '{}', which has another run: {}start one with {}",
                    job_file, job->first, resume,
                    text::quoted_command(fmt::format("trainyard run {} --new", job_word)))});
  }
  return std::unexpected(
      Error{fmt::format("no run of '{}' found in '{}': start one with {}", job_file, job->first,
                        text::quoted_command("trainyard run " + text::shell_word(job_file)))});
}

/// The directory of the run to resume.
Result<std::string> find_resumed(RunOptions& options) {
  if (const auto* const named = std::get_if<app::NamedRun>(&options.request.place)) {
    return find_named_run(named->word);
  }
  if (std::holds_alternative<app::LatestRun>(options.request.place)) {
    return find_latest_run(options);
  }
  return options.request.directory();
}

/// Fills in what `options` leave open: the run that they resume, and from its last execution the
/// job file, --config, and its --set before the new ones. An error, with the cure, where there is
/// no run, or where one of its files is gone.
Result<RunOptions> fill_in_resumed(RunOptions options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  Result<std::string> run = find_resumed(options);
  if (!run) return std::unexpected(std::move(run.error()));
  const std::string run_directory = absolute_path(*run, *here);
  options.request.place = app::RunInDirectory{std::move(*run)};
  const Result<std::vector<journal::ExecutionRow>> executions = executions_in(run_directory);
  if (!executions) return std::unexpected(executions.error());
  if (executions->empty()) {
    if (options.request.job_file().empty()) return std::unexpected(no_run(run_directory));
    return options;
  }
  const journal::ExecutionRow& last = executions->back();
  const run::RunMove move{.was = last.run_directory, .is = run::real_directory(run_directory)};
  if (Result<void> files = take_over_files(options, last, *here, move); !files) {
    return std::unexpected(std::move(files.error()));
  }
  if (Result<void> files = take_over_kept_files(options, run_directory); !files) {
    return std::unexpected(std::move(files.error()));
  }
  take_over_directory(options, *executions, run_directory);
  take_over_settings(options, last.settings);
  return options;
}

}  // namespace

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

/// "cd /data/own && " for a run that was started from another directory: its command line means the
/// files there. Empty also where that directory is not known.
std::string way_to_start_of(const std::string& run) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  const std::optional<std::uint32_t> number = number_of_run(run);
  const std::optional<std::string> start =
      numbers && number ? numbers->start_of(*number) : std::nullopt;
  const Result<std::string> here = sys::current_directory();
  if (!start || !here || *start == run::real_directory(*here)) return {};
  return fmt::format("cd {} && ", text::shell_word(*start));
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

std::optional<app::NewRunCommand> new_run_of(journal::JournalReader& reader, const std::string& run,
                                             const std::vector<std::string>& only) {
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions || executions->empty() || executions->back().is_of_program()) return {};
  const std::string& job_file = executions->back().job_file;
  // The job file of a command is in the directory of its run, where another run would be nested.
  if (job_file == run::kept_job_path(run::real_directory(run))) {
    if (sys::exists(run::submission_path(run))) return {};
    return app::NewRunCommand{.command = way_to_start_of(run) + executions->front().command_line,
                              .is_of_command = true};
  }
  std::string command =
      fmt::format("trainyard run {} --new", text::shell_word(seen_from_here(job_file)));
  for (const std::string& pattern : only) command += " --only " + text::shell_word(pattern);
  return app::NewRunCommand{.command = std::move(command)};
}

std::string run_again_note(const std::string& run, std::size_t tasks) {
  // Each code costs a call of git.
  constexpr std::size_t kCodesMax = 4;
  Result<journal::JournalReader> reader = open_run(run);
  if (!reader) return {};
  const std::optional<app::NewRunCommand> again = new_run_of(*reader, run);
  if (!again) return {};
  const std::string how = again->is_of_command
                              ? "to run its command again, in another run, type: " + again->command
                              : text::quoted_command(again->command) +
                                    " runs all tasks with the code as it is now, in another run";
  const auto codes = reader->finished_codes();
  if (!codes) return how;
  std::size_t changed = 0;
  for (std::size_t i = 0; i < std::min(codes->size(), kCodesMax); ++i) {
    const std::optional<bool> has = process::has_changed((*codes)[i].code);
    // A git that is missing or slow is so for the other codes as well.
    if (!has) break;
    if (*has) changed += static_cast<std::size_t>((*codes)[i].tasks);
  }
  if (changed == 0) return how;
  std::string who = fmt::format("{} of them", changed);
  if (changed == tasks) who = tasks == 1 ? "it" : "they";
  return fmt::format("the code has changed since {} ran (files that git tracks); {}", who, how);
}

}  // namespace trainyard::cli
