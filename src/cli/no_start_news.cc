#include "cli/no_start_news.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
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

bool NoStartNews::post(sys::ProgramToStart program, std::string log) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back({.program = std::move(program), .log = std::move(log)});
  start_next();
  return true;
}

void NoStartNews::start_next() {
  while (!waiting_.empty() && posting_.size() < kPostingMax) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Result<sys::Descriptor> log = sys::open_log(next.log, sys::IfThere::Append);
    // If the directory is gone, no notification is possible.
    if (!log) continue;
    Result<sys::StartedProgram> started = sys::start_program(next.program, *log);
    if (!started) continue;
    const std::int64_t pid = started->pid;
    const int ended = started->ended.get();
    posting_.emplace(pid, std::move(*started));
    loop_.watch_readable(ended, [this, pid] { see_end(pid); });
  }
}

void NoStartNews::see_end(std::int64_t pid) {
  const auto found = posting_.find(pid);
  if (found == posting_.end()) return;
  loop_.unwatch(found->second.ended.get());
  static_cast<void>(sys::end_of_program(pid));
  posting_.erase(found);
  start_next();
}

}  // namespace trainyard::cli
