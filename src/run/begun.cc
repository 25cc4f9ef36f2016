#include "run/begun.h"

#include <expected>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "journal/journal.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

/// A directory that a user names for a new run may be any of theirs, and large.
constexpr int kEntriesMax = 5000;

/// No run leaves anything else: a pipe in such a place is not ours.
bool is_a_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// True if a run was started or submitted there: these files stay when its journal is gone.
bool has_marks_of_a_run(const std::string& run_directory) {
  return is_a_file(run_directory + "/lock") || is_a_file(kept_job_path(run_directory));
}

/// True if a task has left its output in the directory, or below it in a directory that belongs to
/// no other run.
bool holds_a_task(const std::string& run_directory) {
  std::error_code error;
  int left = kEntriesMax;
  for (std::filesystem::recursive_directory_iterator entry(run_directory, error), end;
       !error && entry != end && left > 0; entry.increment(error), --left) {
    if (entry.depth() > 0 && entry->path().filename() == log_name("stdout", 1)) return true;
    std::error_code ignored;
    // Files in the copy of the code are not the output of a task of this run.
    const bool is_code = entry.depth() == 0 && entry->path().filename() == kCodeCopy;
    if (is_code ||
        (entry->is_directory(ignored) && sys::exists(journal_path(entry->path().string())))) {
      entry.disable_recursion_pending();
    }
  }
  return false;
}

}  // namespace

Result<bool> has_begun(const std::string& run_directory) {
  const std::string journal = journal_path(run_directory);
  Result<bool> begun = journal::Journal::has_begun(journal);
  if (!begun || *begun) return begun;
  if (!is_a_file(reports_directory(run_directory) + "/index.html") &&
      !(has_marks_of_a_run(run_directory) && holds_a_task(run_directory))) {
    return false;
  }
  return std::unexpected(Error{fmt::format(
      "'{}' contains files of a run, but its journal '{}' {}. The run cannot be "
      "resumed, and no other run may overwrite its results. Start another run, with --new "
      "for a job file, or move the directory away",
      run_directory, journal, sys::exists(journal) ? "is empty or damaged" : "is gone")});
}

std::string why_not_for_runs(const std::string& directory) {
  if (!sys::exists(directory)) return {};
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return "is not a directory";
  const bool is_empty = std::filesystem::is_empty(directory, error);
  // An unreadable directory is refused when the run is made in it.
  if (is_empty || error || has_marks_of_a_run(directory)) return {};
  const bool has_run = sys::exists(journal_path(directory)) ||
                       sys::exists(submission_path(directory)) ||
                       is_a_file(reports_directory(directory) + "/index.html");
  return has_run ? "" : "is not empty and contains no run";
}

}  // namespace trainyard::run
