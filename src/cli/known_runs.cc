#include "cli/known_runs.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/queued_runs.h"
#include "journal/reader.h"
#include "run/queue_files.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

/// The name of a run: that of its directory.
std::string_view name_in(std::string_view directory) {
  return directory.substr(directory.rfind('/') + 1);
}

bool is_still_there(const run::RunNumbers::Numbered& run) {
  std::error_code ignored;
  return std::filesystem::is_directory(run.directory, ignored) ||
         goes_on_in_queue(run.directory, run.number);
}

}  // namespace

std::vector<std::string> known_runs(std::string_view name) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers || name.empty() || name.contains('/')) return {};
  if (const std::optional<std::uint32_t> number = run::read_run_number(name)) {
    const std::optional<std::string> directory = numbers->directory_of(*number);
    return directory ? std::vector{*directory} : std::vector<std::string>();
  }
  std::vector<std::string> found;
  for (const run::RunNumbers::Numbered& run : numbers->all()) {
    if (has_name(run.directory, name) && is_still_there(run)) found.push_back(run.directory);
  }
  return found;
}

std::optional<std::string> last_known_run() {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return std::nullopt;
  for (const run::RunNumbers::Numbered& run : numbers->all()) {
    if (is_still_there(run)) return run.directory;
  }
  return std::nullopt;
}

bool has_name(const std::string& run_directory, std::string_view name) {
  const std::string_view called = name_in(run_directory);
  if (called == name) return true;
  if (!run::is_directory_like(called, name)) return false;
  // 'net-3' may be the third run of the job 'net', or the first of the job 'net-3'.
  if (const run::SubmissionMark mark = run::read_mark(run_directory); !mark.name.empty()) {
    return mark.name == name;
  }
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return true;
  const Result<std::string> job_name = reader->job_name();
  return !job_name || *job_name == name;
}

std::vector<std::string> started_from(const std::string& directory) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return {};
  return numbers->started_from(run::real_directory(directory));
}

std::optional<std::uint32_t> unknown_number_in(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('/'));
  const std::optional<std::uint32_t> number = run::read_run_number(name);
  return number && known_runs(name).empty() ? number : std::nullopt;
}

Error no_run_of_number(std::uint32_t number) {
  const std::optional<std::string> last = last_known_run();
  return Error{fmt::format("run {} not found{}", number,
                           last ? "; the last one is " + name_of_run(*last) : "")};
}

std::optional<std::uint32_t> number_of_run(const std::string& run_directory) {
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  return numbers ? numbers->number_of(run::real_directory(run_directory)) : std::nullopt;
}

std::string name_of_run(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const std::string seen = seen_from_here(run_directory);
  return number ? fmt::format("run {} ('{}')", *number, seen) : fmt::format("'{}'", seen);
}

std::string name_of_latest_run(const std::string& run_directory, std::size_t candidates) {
  return fmt::format("{}, the latest of {} runs", name_of_run(run_directory), candidates);
}

void explain_number(std::uint32_t number, const std::string& run_directory,
                    std::string_view outcome) {
  if (!sys::is_terminal(sys::kStandardError)) return;
  sys::write_standard_error(
      fmt::format("run {0} {1}: {2} (trainyard status {0}, trainyard wait {0})\n", number, outcome,
                  seen_from_here(run_directory)));
}

}  // namespace trainyard::cli
