#include "cli/directory_claim.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/known_runs.h"
#include "journal/journal_file.h"
#include "journal/reader.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/run_directory.h"
#include "run/yard_run.h"
#include "sys/open_file.h"
#include "sys/process_scan.h"
#include "text/shell_quote.h"
#include "text/task_pattern.h"

namespace trainyard::cli {
namespace {

std::unexpected<ClaimRefusal> refuse_claim(Error error) {
  return std::unexpected(ClaimRefusal{.error = std::move(error)});
}

std::unexpected<ClaimRefusal> refuse_taken(std::string message) {
  return std::unexpected(ClaimRefusal{.error = Error{std::move(message)}, .is_taken = true});
}

/// The lock of a run directory; where another run or another user has it, the error names the ways
/// out.
std::expected<sys::RunLock, ClaimRefusal> lock_directory(const std::string& run_directory,
                                                         const std::string& command_line = {}) {
  Result<sys::RunLock> lock = run::lock_run(run_directory);
  if (lock) return *std::move(lock);
  const auto refuse_as_begun = [&run_directory](Error error) {
    return std::unexpected(ClaimRefusal{.error = std::move(error),
                                        .is_taken = run::has_begun(run_directory).value_or(false)});
  };
  if (std::optional<Error> refused =
          journal::refuse_access(run::journal_path(run_directory), journal::Use::Write)) {
    if (!command_line.empty()) refused->message += fmt::format("; {}", kRunElsewhere);
    return refuse_as_begun(*std::move(refused));
  }
  const std::optional<std::int64_t> holder = run::active_process(run_directory);
  // The run that held the lock may have ended since.
  if (!holder) return refuse_as_begun(std::move(lock.error()));
  const std::string another = command_line.empty()
                                  ? ""
                                  : fmt::format("; to start another run, type {}",
                                                text::quoted_command(command_line + " --new"));
  if (sys::is_suspended(*holder)) {
    return refuse_taken(
        fmt::format("{}, which is suspended, as by Ctrl-Z: 'kill -CONT {}' resumes it{}",
                    lock.error().message, *holder, another));
  }
  const std::string watch =
      fmt::format("trainyard status {} --watch", text::shell_word(seen_from_here(run_directory)));
  return refuse_taken(fmt::format("{}: to watch it, type {}{}", lock.error().message,
                                  text::quoted_command(watch), another));
}

/// The command that runs the selected tasks of the run in this directory, as far as they have not
/// finished. Nothing where the run has no such tasks.
std::string retry_text(const NewDirectory& directory) {
  TasksOfRun only{{.run = directory.run_directory}};
  for (const std::string& typed : directory.only) {
    Result<text::TaskPattern> pattern = text::TaskPattern::read(typed);
    if (pattern) only.patterns.push_back(std::move(*pattern));
  }
  Result<journal::JournalReader> reader = open_run(directory.run_directory);
  if (!reader) return {};
  const auto tasks = selected_tasks(*reader, only, SameName::MeansAll);
  if (!tasks) return {};
  if (std::ranges::all_of(*tasks, app::is_finished))
    return " The selected tasks have finished there.";
  std::string text = " To run the selected tasks that have not finished, type\n  trainyard retry ";
  text += text::shell_word(seen_from_here(directory.run_directory));
  for (const std::string& pattern : directory.only) text += " " + text::shell_word(pattern);
  return text;
}

/// Makes the directory of a new run. The error ends in how the run is put elsewhere.
Result<void> make_run_directory(const std::string& run_directory, std::string_view elsewhere) {
  Result<void> made = sys::make_directories(run_directory);
  if (!made) made.error().message += fmt::format("; {}", elsewhere);
  return made;
}

/// The command that continues the run in this directory, which is one of the job: the job file alone
/// would mean the last of several. `retry` takes tasks, --resume takes no --only.
std::string continue_text(const NewDirectory& directory) {
  if (!directory.only.empty()) return retry_text(directory);
  const bool one_of_several =
      !directory.typed && run::run_directories_like(directory.run_directory).size() > 1;
  const std::string run = text::shell_word(seen_from_here(directory.run_directory));
  // A resumed run takes no --snapshot: it keeps its copy of the code.
  constexpr std::string_view kSnapshotWord = " --snapshot ";
  std::string command = directory.command_line + " ";
  if (const std::size_t at = command.find(kSnapshotWord); at != std::string::npos) {
    command.erase(at, kSnapshotWord.size() - 1);
  }
  return fmt::format(" To resume it, type\n  {}--resume{}", command,
                     one_of_several ? " " + run : "");
}

}  // namespace

bool is_run_of_command(const std::string& run_directory) {
  Result<journal::JournalReader> reader = open_run(run_directory);
  if (!reader) return false;
  const auto executions = reader->executions();
  return executions && !executions->empty() && run::is_kept_job_path(executions->back().job_file);
}

std::expected<ClaimedDirectory, ClaimRefusal> claim_new_directory(const NewDirectory& directory) {
  const std::string& run_directory = directory.run_directory;
  if (Result<void> made = make_run_directory(run_directory, kRunElsewhere); !made) {
    return refuse_claim(std::move(made.error()));
  }
  auto lock = lock_directory(run_directory, directory.command_line);
  if (!lock) return std::unexpected(std::move(lock.error()));
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun) return refuse_claim(begun.error());
  if (!*begun) return ClaimedDirectory{.lock = *std::move(lock)};
  const std::string another =
      fmt::format("\nTo start another run, in '{}', type\n  {} --new",
                  run::free_run_directory(run_directory), directory.command_line);
  if (is_run_of(run_directory, directory.job)) {
    return refuse_taken(fmt::format("'{}' already contains a run.{}{}", run_directory,
                                    continue_text(directory), another));
  }
  if (is_run_of_command(run_directory)) {
    return refuse_taken(
        fmt::format("'{}' already contains a run, of a command.{}", run_directory, another));
  }
  return refuse_taken(
      fmt::format("'{}' already contains a run, of another job file.{}\nTo resume that run with "
                  "this job file, type\n  trainyard run --resume {} {}",
                  run_directory, another, text::shell_word(seen_from_here(run_directory)),
                  text::shell_word(seen_from_here(directory.job.job_file))));
}

Result<sys::RunLock> lock_old_directory(const std::string& run_directory) {
  auto lock = lock_directory(run_directory);
  if (!lock) return std::unexpected(std::move(lock.error().error));
  return *std::move(lock);
}

std::expected<ClaimedDirectory, ClaimRefusal> claim_old_directory(
    const std::string& run_directory, const std::vector<std::string>& agents) {
  auto lock = lock_directory(run_directory);
  if (!lock) return std::unexpected(std::move(lock.error()));
  const Result<void> clear = run::clear_up(run_directory, agents, note);
  if (!clear) return refuse_claim(clear.error());
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun) return refuse_claim(begun.error());
  return ClaimedDirectory{.lock = *std::move(lock), .has_begun = *begun};
}

Result<std::string> reserve_new_directory(const DirectoryReservation& reservation) {
  while (true) {
    std::string directory = run::free_run_directory(reservation.first);
    if (Result<void> made = make_run_directory(directory, reservation.elsewhere); !made) {
      return std::unexpected(std::move(made.error()));
    }
    const std::string path = reservation.marker(directory);
    // For its user alone: the job of a command has the values of --env.
    const auto file = sys::open_file(path, {.flags = O_WRONLY | O_CREAT | O_EXCL});
    // Another process was faster: the next one.
    if (!file && file.error().number == EEXIST) continue;
    if (!file) {
      // Files there would be those of a process that was faster.
      std::error_code ignored;
      std::filesystem::remove(directory, ignored);
      return std::unexpected(file.error().error);
    }
    const Result<void> written = sys::write_all(file->descriptor, reservation.text, path);
    if (written) return directory;
    forget_directory(directory);
    return std::unexpected(written.error());
  }
}

void forget_directory(const std::string& run_directory) {
  std::error_code ignored;
  for (const std::string& path :
       {run::kept_job_path(run_directory), run::kept_files_path(run_directory),
        run::submission_path(run_directory), run_directory + "/lock", run_directory}) {
    std::filesystem::remove(path, ignored);
  }
  const std::filesystem::path above = std::filesystem::path(run_directory).parent_path();
  if (above.filename() == "runs") std::filesystem::remove(above, ignored);
}

}  // namespace trainyard::cli
