#include <optional>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/known_runs.h"
#include "cli/look_ahead.h"
#include "job/job.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/this_process.h"
#include "tell/notice.h"
#include "tell/teller.h"
#include "text/text_file.h"

namespace trainyard::cli {

ExitCode post_not_started(const RunOptions& options, const std::string& reason) {
  const Result<job::LoadOptions> load = load_options_of(options);
  if (!load) return fail(load.error());
  const Result<std::string> text = options.job_text.empty()
                                       ? text::read_text_file(options.request.job_file())
                                       : options.job_text;
  if (!text) return fail(text.error());
  const job::JobNotify notify = job::Job::notify_of(*text, *load);
  for (const std::string& note : notify.notes) fail(note);
  if (notify.addresses.empty()) return ExitCode::Success;
  const std::string directory = options.request.directory();
  const tell::RunName run{.job = notify.job_name,
                          .number = number_of_run(directory),
                          .directory = run::real_directory(directory),
                          .host = sys::host_name()};
  Result<tell::Teller> teller = tell::Teller::start({.notify = notify.addresses,
                                                     .mail = {},
                                                     .mail_limits = {},
                                                     .run_directory = run.directory,
                                                     .job = run.job,
                                                     .host = run.host});
  if (!teller) return fail(teller.error());
  const std::string body = tell::json_of(
      {.run = run, .occasion = tell::NotStarted{.reason = reason}, .counts = std::nullopt});
  teller->begin(run, body);
  teller->finish("that it did not start", body);
  for (const std::string& line : teller->wait()) fail(line);
  return ExitCode::Success;
}

}  // namespace trainyard::cli
