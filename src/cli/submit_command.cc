// `trainyard submit`: into the queue, or into a run that is named, by asking its yard.
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/known_runs.h"
#include "cli/queue_start.h"
#include "cli/queue_submit.h"
#include "cli/queued_runs.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "text/readable_json.h"
#include "text/text_file.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// A hundred thousand tasks take a few seconds, and others may be before it.
constexpr Duration kAnsweredWithin{300'000};

/// The file is read by the yard, by the settings that are in force there; here it only has to be
/// one.
Result<wire::Submit> submission_of(const SubmitOptions& options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  std::string path = absolute_path(options.job_file, *here);
  std::string text;
  std::vector<std::string> line_names;
  if (options.words.is_command()) {
    Result<CommandJob> job = job_of_command(options.words, *here);
    if (!job) return std::unexpected(std::move(job.error()));
    path = fmt::format("{}/{}", *here, kCommandFile);
    text = std::move(job->text);
    line_names = std::move(job->line_names);
  } else {
    Result<std::string> read = text::read_text_file(path);
    if (!read) {
      return std::unexpected(
          unreadable_job(std::move(read.error()), options.job_file).in(options.job_file));
    }
    text = std::move(*read);
  }
  return wire::Submit{.job_file = std::move(path),
                      .current_directory = *here,
                      .settings = options.settings,
                      .command_line = options.command_line,
                      .job_text = std::move(text),
                      .environment = sys::environment(),
                      .line_names = std::move(line_names)};
}

ExitCode tell_what_was_added(const wire::ControlReply& reply, const std::string& run, bool json) {
  if (!json) return answer(reply.text + "\n");
  nlohmann::ordered_json added;
  added["run_dir"] = run;
  added["submission"] = reply.number.value_or(0);
  added["text"] = reply.text;
  return answer(text::readable_json(added));
}

}  // namespace

ExitCode submit_command(const SubmitOptions& options) {
  const bool to_queue = options.run_directory.empty();
  if (to_queue) {
    if (const Result<void> outlives = check_queue_outlives_task(); !outlives) {
      return fail(outlives.error());
    }
  }
  const sys::OwnEnvironment own;
  if (to_queue) return submit_to_queue(options);
  const Result<wire::Submit> submission = submission_of(options);
  if (!submission) return fail(submission.error());
  const Result<std::string> run = find_run(options.run_directory, WhenSeveral::RefuseLive);
  if (!run) return fail(run.error());
  Result<journal::JournalReader> reader = open_run(*run);
  if (!reader && waits_in_queue(*run)) {
    return fail(
        fmt::format("{}; tasks can be added only to an active run", reader.error().message));
  }
  if (!reader) return fail(reader.error());
  const Result<std::string> socket = socket_of_run(*reader, *run);
  if (!socket) {
    return fail(fmt::format("{}; without a run, 'trainyard submit' adds to your queue",
                            socket.error().message));
  }
  // It may take a while, and the yard cannot make its log short under a view that is held.
  if (const Result<void> rested = reader->rest(); !rested) return fail(rested.error());
  const Result<wire::ControlReply> reply =
      link::ask(*socket, *submission,
                {.run = *run, .program = "trainyard submit", .within = kAnsweredWithin});
  if (!reply) return fail(reply.error());
  if (reply->outcome != wire::Outcome::Done) return fail(reply->text);
  return tell_what_was_added(*reply, *run, options.json);
}

}  // namespace trainyard::cli
