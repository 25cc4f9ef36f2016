#include "cli/run_outcome.h"

#include <expected>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/run_result.h"
#include "cli/console.h"
#include "cli/run_view.h"
#include "journal/reader.h"
#include "model/status.h"
#include "run/begun.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

Result<std::optional<int>> code_of_one_task(journal::JournalReader& reader) {
  std::vector<journal::TaskRow> rows;
  const Result<void> read =
      reader.tasks({.group = std::nullopt, .at_most = 2}, [&rows](journal::TaskRow row) {
        rows.push_back(std::move(row));
        return true;
      });
  if (!read) return std::unexpected(read.error());
  if (rows.size() != 1) return std::nullopt;
  const model::Standing& standing = rows.front().standing;
  const bool own = standing.verdict == model::Verdict::Failed && standing.exit_code > 0;
  return own ? std::optional(standing.exit_code) : std::nullopt;
}

std::string way_on(const std::string& run_directory) {
  return text::quoted_command("trainyard run --resume " +
                              text::shell_word(seen_from_here(run_directory))) +
         " resumes it";
}

}  // namespace

Result<RunOutcome> outcome_of(const std::string& run_directory) {
  using Stage = RunOutcome::Stage;
  if (sys::RunLock::holder(run_directory)) return RunOutcome{.stage = Stage::AtWork};
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return RunOutcome{.stage = Stage::NotBegun};
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(executions.error());
  if (executions->empty() || !executions->back().ended) {
    return RunOutcome{.stage = Stage::Died, .why = "it died; " + way_on(run_directory)};
  }
  const std::string& how = executions->back().how;
  if (run::is_interrupted(how)) {
    return RunOutcome{
        .stage = Stage::Interrupted,
        .code = how == run::kTerminated ? ExitCode::Terminated : ExitCode::Interrupted,
        .why = fmt::format("{}; {}", how, way_on(run_directory))};
  }
  const bool lacks_something = how.starts_with(run::kNotAllDone);
  if (how != run::kEnded && !lacks_something) {
    return RunOutcome{.stage = Stage::Over, .why = how};
  }
  const Result<ExitCode> verdict = verdict_of(*reader, {});
  if (!verdict) return std::unexpected(verdict.error());
  const Result<std::optional<int>> own = code_of_one_task(*reader);
  if (!own) return std::unexpected(own.error());
  const ExitCode code =
      lacks_something && *verdict == ExitCode::Success ? ExitCode::NotDone : *verdict;
  std::string why = how;
  if (!lacks_something) {
    const Result<std::vector<journal::GroupRow>> groups = reader->groups();
    if (!groups) return std::unexpected(groups.error());
    why = app::shortfall_text(*groups);
    if (code == ExitCode::NotDone) why += "; " + way_on(run_directory);
  }
  return RunOutcome{.stage = Stage::Over, .code = code, .task_code = *own, .why = std::move(why)};
}

}  // namespace trainyard::cli
