#include "app/task_logs.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "model/status.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// "has not started", or what became of a task that ended before its first attempt: "did not start
/// and is SKIPPED: needs group 'train', where a task failed".
std::string text_without_attempt(const journal::TaskRow& task) {
  if (task.standing.verdict == model::Verdict::None) return "has not started";
  return fmt::format("did not start and is {}{}{}", model::word_for(task.standing),
                     task.message.empty() ? "" : ": ", report::plain(task.message));
}

bool is_last_attempt(const LogRequest& request, const journal::TaskRow& task) {
  return request.attempt == 0 || std::cmp_equal(request.attempt, task.attempt);
}

/// Whether the output that is missing now may still come.
bool may_print(const LogRequest& request, const journal::TaskRow& task) {
  return is_last_attempt(request, task) && !request.follow &&
         task.standing.verdict == model::Verdict::None;
}

}  // namespace

Result<void> check_log_request(const LogRequest& request, const TasksOfRun& selection,
                               const std::vector<journal::TaskRow>& tasks) {
  if (request.rank >= 0 && (request.only_stdout || request.only_stderr)) {
    return std::unexpected(Error{
        "--rank cannot be combined with --stdout or --stderr: each rank from 1 on has one log"});
  }
  if (tasks.size() > 1 && request.follow) {
    return std::unexpected(
        Error{fmt::format("only one task can be followed at a time; name one, as in {}",
                          text::quoted_command(fmt::format(
                              "trainyard logs {} {} -f", text::shell_word(selection.shown),
                              text::shell_word(shown_name(tasks.front())))))});
  }
  if (tasks.size() > 1 && selection.is_all()) {
    return std::unexpected(Error{fmt::format("which of the {} tasks of '{}'? {}", tasks.size(),
                                             selection.shown, how_to_name_all("logs", selection))});
  }
  return {};
}

std::string why_no_log(const LogRequest& request, const journal::TaskRow& task) {
  const auto attempt = static_cast<std::uint32_t>(request.attempt);
  const bool may_start = request.follow && task.standing.verdict == model::Verdict::None;
  if (attempt <= task.attempt && (task.attempt > 0 || may_start)) return {};
  return task.attempt == 0 ? fmt::format("{} {}", shown_name(task), text_without_attempt(task))
                           : fmt::format("{} has had {}", shown_name(task),
                                         report::counted(task.attempt, "attempt"));
}

std::string none_has_log(const LogRequest& request, const std::vector<journal::TaskRow>& tasks) {
  constexpr std::size_t kNamedMax = 3;
  std::string why;
  for (const journal::TaskRow& task : tasks | std::views::take(kNamedMax)) {
    why += (why.empty() ? "" : ", ") + why_no_log(request, task);
  }
  if (tasks.size() > kNamedMax) why += fmt::format(", and {} more", tasks.size() - kNamedMax);
  return "no selected task has such a log: " + why;
}

bool is_log_gone(const LogRequest& request, const journal::TaskRow& before,
                 const journal::TaskRow& now, const ShownLogs& shown) {
  const bool did_not_start =
      is_last_attempt(request, before) && before.standing.failure == model::Failure::CannotStart;
  return !shown.have_text && !shown.have_file && now.attempt > 0 && !did_not_start &&
         !may_print(request, before);
}

std::string note_after_logs(const LogRequest& request, const journal::TaskRow& before,
                            const journal::TaskRow& now, const ShownLogs& shown) {
  if (is_last_attempt(request, before) && before.standing.failure == model::Failure::CannotStart) {
    return fmt::format("{} did not start: {}", shown_name(before), report::plain(before.message));
  }
  if (shown.have_text) return {};
  return fmt::format("{}: {}", shown_name(before),
                     may_print(request, before)                 ? "no output yet"
                     : now.attempt == 0                         ? text_without_attempt(now)
                     : is_log_gone(request, before, now, shown) ? "its log was deleted, as by "
                                                                  "'trainyard clean', or is on "
                                                                  "another machine"
                                                                : "no output");
}

}  // namespace trainyard::app
