#include "cli/telling.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/known_runs.h"
#include "cli/resumed_run.h"
#include "job/job.h"
#include "model/ids.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "settings/periods.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "tell/finish_command.h"
#include "tell/mail_plan.h"
#include "text/text_file.h"

namespace trainyard::cli {
namespace {

/// The time that the end waits for others before it says so.
constexpr Duration kSilently{1'000};

tell::Outcome outcome_of(ExitCode code) {
  switch (code) {
    case ExitCode::Success:
      return tell::Outcome::Finished;
    case ExitCode::TaskFailed:
      return tell::Outcome::Failed;
    case ExitCode::Interrupted:
    case ExitCode::Terminated:
      return tell::Outcome::Interrupted;
    case ExitCode::Usage:
    case ExitCode::NotDone:
      break;
  }
  return tell::Outcome::NotDone;
}

}  // namespace

Telling::Telling(const job::Jobs& jobs)
    : jobs_(jobs), watch_([&jobs](model::TaskIndex task) { return jobs.name_of(task); }) {
  const job::Job& job = jobs_.first();
  run_ = {.job = job.name(),
          .number = std::nullopt,
          .directory = job.paths().run_directory,
          .host = sys::host_name()};
  if (!job.on_finish().empty()) {
    directory_ = sys::open_directory(run_.directory, {}).value_or(sys::Descriptor());
  }
  warn_of_password();
  start_teller();
}

void Telling::start_teller() {
  const job::Job& job = jobs_.first();
  tell::MailWish mail = tell::mail_wish(job.configuration());
  if (!mail.why_not.empty()) notes_.push_back(std::move(mail.why_not));
  if (job.notify().empty() && !mail.server) return;
  Result<tell::Teller> teller = tell::Teller::start(
      {.notify = job.notify(),
       .mail = std::move(mail.server),
       .mail_limits = mail.limits,
       .run_directory = run_.directory,
       .job = run_.job,
       .host = run_.host,
       .patience_at_end =
           job.configuration().period(settings::kNotifyEnd, tell::TellerOptions().patience_at_end),
       .pause_at_end =
           job.configuration().period(settings::kNotifyAgain, tell::TellerOptions().pause_at_end)});
  if (teller) {
    teller_.emplace(std::move(*teller));
  } else {
    notes_.push_back(std::move(teller.error().message));
  }
}

/// A password that others may read is not secret.
void Telling::warn_of_password() {
  using settings::Setting;
  const settings::Configuration& configuration = jobs_.first().configuration();
  if (configuration.text(Setting::SmtpPassword).empty()) return;
  const std::string file = configuration.mistake(Setting::SmtpPassword, {}).file;
  std::error_code failed;
  const auto permissions = std::filesystem::status(file, failed).permissions();
  using std::filesystem::perms;
  const bool open = (permissions & (perms::group_read | perms::others_read)) != perms::none;
  if (failed || permissions == perms::unknown || !open) return;
  notes_.push_back(fmt::format(
      "other users can read '{0}', which has smtp.password; 'chmod 600 {0}' protects it", file));
}

std::string Telling::json_of(const tell::Occasion& occasion) const {
  return tell::json_of({.run = run_, .occasion = occasion, .counts = watch_.counts()});
}

void Telling::post(const std::string& what, const tell::Occasion& occasion) {
  if (teller_) teller_->post(what, json_of(occasion));
}

void Telling::begin(std::optional<std::uint32_t> number) {
  run_.number = number;
  if (!teller_) return;
  // The number of tasks that will have ended is not known now.
  const tell::Ended died{.outcome = tell::Outcome::Died, .exit_code = std::nullopt};
  teller_->begin(run_, tell::json_of({.run = run_, .occasion = died, .counts = std::nullopt}));
}

std::vector<std::string> Telling::see(const model::Turn& turn) {
  if (!teller_ && jobs_.first().on_finish().empty()) return {};
  for (const tell::Sight& sight : watch_.see(turn)) {
    match(
        sight, [this](const tell::FirstFailure& it) { post("the first failure", it); },
        [this](const tell::NothingRuns& it) { post("that nothing runs", it); },
        [this](const tell::GroupEnded& it) {
          if (teller_) teller_->mail(it.group);
        });
  }
  return teller_ ? teller_->hear() : std::vector<std::string>();
}

void Telling::end(ExitCode code) {
  const tell::Ended ended{.outcome = outcome_of(code), .exit_code = static_cast<int>(code)};
  // The recipients are notified while the command runs.
  if (teller_) teller_->finish("the end", json_of(ended));
  const job::Job& job = jobs_.first();
  if (!job.on_finish().empty()) {
    // Another run may be at the former path of this one.
    if (std::string now = sys::path_of(directory_); !now.empty()) run_.directory = std::move(now);
    const auto trouble =
        tell::run_finish_command({.command = job.on_finish(),
                                  .directory = job.paths().directory,
                                  .log = run::on_finish_log_path(run_.directory)},
                                 tell::finish_variables(run_, watch_.counts(), ended));
    if (trouble) {
      note(fmt::format("{}; see {}", *trouble, run::on_finish_log_path(run_.directory)));
    }
  }
  if (!teller_) return;
  if (!teller_->ends_within(kSilently)) {
    note("sending the notifications takes a while; Ctrl-C stops waiting for it");
  }
  for (const std::string& line : teller_->wait()) note(line);
}

ExitCode post_not_started(const RunOptions& options, const std::string& reason) {
  const Result<job::LoadOptions> load = load_options_of(options);
  if (!load) return fail(load.error());
  const std::string job_file = options.request.job_file();
  const Result<std::string> text =
      options.job_text.empty() ? text::read_text_file(job_file, run::links_at_job_file(job_file))
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
