#include "app/run_result.h"

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::app {
namespace {

/// The counts of all groups.
journal::GroupRow sum_of(const std::vector<journal::GroupRow>& groups) {
  journal::GroupRow sum;
  for (const journal::GroupRow& group : groups) {
    sum.tasks += group.tasks;
    sum.finished += group.finished;
    sum.failed += group.failed;
    sum.skipped += group.skipped;
    sum.not_needed += group.not_needed;
    sum.not_selected += group.not_selected;
    sum.stopped += group.stopped;
  }
  return sum;
}

}  // namespace

run::ExitCode exit_code_of(const std::vector<journal::GroupRow>& groups) {
  const journal::GroupRow sum = sum_of(groups);
  if (sum.failed + sum.skipped > 0) return run::ExitCode::TaskFailed;
  const bool is_done = sum.finished + sum.not_needed + sum.not_selected == sum.tasks;
  return is_done ? run::ExitCode::Success : run::ExitCode::NotDone;
}

std::string shortfall_text(const std::vector<journal::GroupRow>& groups) {
  const journal::GroupRow sum = sum_of(groups);
  const std::string of_all = "of " + report::counted(sum.tasks, "task");
  if (sum.failed > 0) {
    return fmt::format("{} {} failed{}", sum.failed, of_all,
                       sum.skipped > 0 ? fmt::format(", {} skipped", sum.skipped) : "");
  }
  if (sum.skipped > 0) return fmt::format("{} {} skipped", sum.skipped, of_all);
  return fmt::format("{} {} finished{}", sum.finished, of_all,
                     sum.stopped > 0 ? fmt::format(", {} stopped", sum.stopped) : "");
}

}  // namespace trainyard::app
