// `trainyard kill`: asks the yard at work to end one task.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_task.h"
#include "cli/run_place.h"
#include "io/control_client.h"
#include "io/files.h"
#include "journal/reader.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// A task has ten seconds between TERM and KILL, and the answer comes when it is gone.
constexpr Duration kWithin{30'000};

ExitCode tell(const wire::ControlReply& reply, const std::string& name) {
  switch (reply.outcome) {
    case wire::Outcome::Done:
      print(fmt::format("{} has been ended\n", name));
      return ExitCode::Success;
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
  Result<JournalReader> reader = JournalReader::open(journal_path(*run));
  if (!reader) return fail(reader.error());
  const Result<TaskRow> task = find_task(*reader, options.task);
  if (!task) return fail(task.error());
  const Result<std::vector<ExecutionRow>> executions = reader->executions();
  if (!executions) return fail(executions.error());
  if (!io::RunLock::holder(*run) || executions->empty()) {
    return fail(fmt::format("the run in '{}' is not running", *run));
  }
  const Result<wire::ControlReply> reply =
      io::ask(executions->back().socket_path, wire::Kill{.group = task->group_name, .id = task->id},
              {.run = *run, .program = "trainyard kill", .within = kWithin});
  if (!reply) return fail(reply.error(), ExitCode::TaskFailed);
  return tell(*reply, fmt::format("{}/{}", task->group_name, task->id));
}

}  // namespace trainyard::cli
