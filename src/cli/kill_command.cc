// `trainyard kill`: asks the yard at work to end one task.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_run.h"
#include "cli/find_task.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// A task has ten seconds between TERM and KILL, and the answer comes when it is gone.
constexpr Duration kWithin{30'000};

/// Whether a task that has been ended had a process in this execution. What the journal says counts
/// after the yard has answered: it writes down before it answers.
bool has_started(journal::JournalReader& reader, const journal::TaskRow& task) {
  if (const Result<void> fresh = reader.refresh(); !fresh) return true;
  const Result<std::optional<journal::TaskRow>> now = reader.find(task.group_name, task.id);
  if (!now) return true;
  const std::optional<journal::TaskRow>& row = *now;
  return !row || row->started.has_value();
}

ExitCode tell(const wire::ControlReply& reply, const std::string& name, bool started) {
  switch (reply.outcome) {
    case wire::Outcome::Done:
      return answer(
          fmt::format("{} {}\n", name, started ? "has been ended" : "will not be started"));
    case wire::Outcome::NotRunning:
      return fail(fmt::format("{} is not running: it has ended already", name),
                  ExitCode::TaskFailed);
    case wire::Outcome::NoSuchTask:
      return fail(fmt::format("the run knows no task {}", name));
    case wire::Outcome::Error:
      break;
  }
  return fail(reply.text, ExitCode::TaskFailed);
}

}  // namespace

ExitCode kill_command(const KillOptions& options) {
  const Result<std::string> run = find_run(options.run_directory, WhenSeveralLive::Refuse);
  if (!run) return fail(run.error());
  Result<journal::JournalReader> reader = open_run(*run);
  if (!reader) return fail(reader.error());
  const Result<journal::TaskRow> task = find_task(*reader, options.task);
  if (!task) return fail(task.error());
  const Result<std::string> socket = socket_of_run(*reader, *run);
  if (!socket) return fail(socket.error());
  // It may take a while, and the yard cannot make its log short under a view that is held.
  if (const Result<void> rested = reader->rest(); !rested) return fail(rested.error());
  const Result<wire::ControlReply> reply =
      link::ask(*socket, wire::Kill{.group = task->group_name, .id = task->id},
                {.run = *run, .program = "trainyard kill", .within = kWithin});
  if (!reply) return fail(reply.error(), ExitCode::TaskFailed);
  return tell(*reply, fmt::format("{}/{}", task->group_name, task->id),
              has_started(*reader, *task));
}

}  // namespace trainyard::cli
