#include "cli/new_run.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "cli/console.h"
#include "cli/known_runs.h"
#include "process/code_asker.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

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
