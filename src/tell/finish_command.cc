#include "tell/finish_command.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "sys/stoppable_command.h"
#include "text/shell_reader.h"

namespace trainyard::tell {

std::vector<std::string> finish_variables(const RunName& run, const Counts& counts,
                                          const Ended& ended) {
  return {fmt::format("TRAINYARD_RUN={}", run.number ? fmt::format("{}", *run.number) : ""),
          fmt::format("TRAINYARD_JOB={}", run.job),
          fmt::format("TRAINYARD_RUN_DIR={}", run.directory),
          fmt::format("TRAINYARD_OUTCOME={}", word_of(ended.outcome)),
          fmt::format("TRAINYARD_EXIT_CODE={}", ended.exit_code.value_or(0)),
          fmt::format("TRAINYARD_TASKS={}", counts.tasks),
          fmt::format("TRAINYARD_FINISHED={}", counts.finished),
          fmt::format("TRAINYARD_FAILED={}", counts.failed),
          fmt::format("TRAINYARD_SKIPPED={}", counts.skipped),
          fmt::format("TRAINYARD_STOPPED={}", counts.stopped)};
}

namespace {

/// It has an end also where nobody is left to end it: the run may be killed meanwhile.
std::vector<std::string> with_a_bound_of_its_own(const FinishCommand& command) {
  const auto seconds = [](Duration time) {
    return fmt::format("{:.3f}", static_cast<double>(time.count()) / 1000);
  };
  std::vector<std::string> words{"timeout", "-k", seconds(command.grace),
                                 seconds(command.most + command.margin)};
  std::ranges::move(text::bash_command(command.command), std::back_inserter(words));
  return words;
}

}  // namespace

std::optional<std::string> run_finish_command(const FinishCommand& command,
                                              std::vector<std::string> variables) {
  const Result<sys::CommandEnd> end =
      sys::run_stoppable({.arguments = with_a_bound_of_its_own(command),
                          .environment = std::move(variables),
                          .directory = command.directory,
                          .output = command.log,
                          .deadline = command.most,
                          .grace = command.grace,
                          .stops_on_signals = true},
                         {});
  const auto message = [](std::string what) { return "on-finish: " + std::move(what); };
  if (!end) return message(end.error().message);
  if (end->asked_by != 0) return message("was interrupted, and stopped");
  if (end->late) {
    return message(fmt::format("did not exit within {}, and was killed", to_text(command.most)));
  }
  if (end->signal != 0) return message(fmt::format("was killed by signal {}", end->signal));
  if (end->exit_code != 0) return message(fmt::format("exited with code {}", end->exit_code));
  return std::nullopt;
}

}  // namespace trainyard::tell
