#include "cli/job_tasks.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/console.h"
#include "model/plan.h"
#include "run/run_directory.h"
#include "sys/environment.h"
#include "text/metric_pattern.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

journal::TaskNames names_of(const job::Job& job) {
  return {.task_id = [&job](model::TaskIndex task) { return job.task_id(task); },
          .matrix_values = [&job](model::TaskIndex task) { return job.matrix_values(task); },
          .fingerprint = [&job](model::TaskIndex task) { return job.fingerprint(task); }};
}

std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// "submission 2: 5 tasks in 2 groups: 4 of train, 1 of eval; 'eval' needs 'data', which was there
/// before". `jobs` are those of the run, including this one.
std::string told(const job::Job& job, std::uint32_t number, const job::Jobs& jobs,
                 const std::vector<const model::PlannedGroup*>& groups_before) {
  const model::Plan& plan = job.plan();
  std::string names;
  std::string needs;
  std::vector<int> tasks(plan.groups.size());
  for (const model::PlannedTask& task : plan.tasks) {
    ++tasks[plan.shapes[task.shape.value].group.value];
  }
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const model::PlannedGroup& group = plan.groups[i];
    names += fmt::format("{}{} of {}", i == 0 ? "" : ", ", tasks[i], group.shown_in_list());
    for (const model::GroupIndex earlier : group.needs_earlier) {
      needs += fmt::format("; '{}' needs '{}', which was there before", group.shown(),
                           groups_before[earlier.value]->shown());
    }
  }
  std::string warnings;
  for (const std::string& warning : job.warnings()) warnings += "; " + warning;
  const bool tells = !job.notify().empty() || !job.on_finish().empty();
  return fmt::format(
      "submission {}: {} in {}: {}{}{}{}{}", number, counted(plan.tasks.size(), "task"),
      counted(plan.groups.size(), "group"), names, needs,
      jobs.first().code_copy() ? "; its tasks use the work tree, not the run's copy of the code"
                               : "",
      tells ? "; its 'notify' and 'on-finish' have no effect: the run has its own" : "", warnings);
}

/// The job of the last round so far.
const job::Job& last_job_of(const job::Jobs& jobs) {
  std::uint32_t index = jobs.count() - 1;
  while (index > 0 && !jobs.at(index).repeat()) --index;
  return jobs.at(index);
}

std::uint32_t last_round_of(const job::Jobs& jobs) {
  const auto repeat = last_job_of(jobs).repeat();
  return repeat ? repeat->round : 0;
}

}  // namespace

std::expected<const job::Job*, text::Mistakes> JobTasks::read(
    const wire::Submit& submission, std::uint32_t number,
    std::optional<job::MovedDirectory> moved) {
  const job::Job& first = jobs_.first();
  job::LoadOptions options{.job_file = submission.job_file,
                           .config_file = {},
                           .settings = submission.settings,
                           .run_directory = first.paths().run_directory,
                           .current_directory = submission.current_directory,
                           .environment = submission.environment};
  options.line_names = submission.line_names;
  options.machines = first.machines();
  options.moved_directory = std::move(moved);
  options.submission = {
      .number = number, .configuration = &first.configuration(), .groups = jobs_.groups()};
  std::expected<job::Job, text::Mistakes> job =
      job::Job::parse(submission.job_text, options, first.capacity());
  if (!job) return std::unexpected(std::move(job.error()));
  if (job->repeat()) {
    return std::unexpected(
        text::Mistakes{{.file = submission.job_file,
                        .message = "'repeat' cannot be used in a file that is submitted to a run; "
                                   "start it with 'trainyard run'"}});
  }
  sources_.push_back({.command_line = submission.command_line,
                      .job_file = submission.job_file,
                      .job_text = job->without_secrets(submission.job_text),
                      .config_file = {},
                      .settings = submission.settings,
                      .environment = submission.environment});
  return &jobs_.add(std::move(*job), submission.environment);
}

/// A batch without its own text is the next round of the job file.
std::expected<void, text::Mistakes> JobTasks::add_again(const journal::BatchRow& batch,
                                                        std::optional<job::MovedDirectory> moved) {
  const journal::BatchSource& source = batch.source;
  if (source.job_text.empty()) {
    const std::uint32_t round = last_round_of(jobs_) + 1;
    if (!jobs_.first().repeat()) {
      return std::unexpected(text::Mistakes{
          {.file = jobs_.first().paths().file,
           .message = fmt::format("no longer has 'repeat', but round {} has started; restore "
                                  "'repeat', or start another run with --new",
                                  round)}});
    }
    if (const auto job = add_round(round, batch.number); !job) {
      return std::unexpected(job.error());
    }
    return {};
  }
  const auto job = read({.job_file = source.job_file,
                         .current_directory = "/",
                         .settings = source.settings,
                         .command_line = source.command_line,
                         .job_text = source.job_text,
                         .environment = source.environment},
                        batch.number, std::move(moved));
  if (!job) return std::unexpected(job.error());
  return {};
}

std::expected<const job::Job*, text::Mistakes> JobTasks::add_round(std::uint32_t round,
                                                                   std::uint32_t number) {
  std::expected<job::Job, text::Mistakes> job =
      jobs_.first().later_round({.round = round, .batch = number, .groups_before = jobs_.groups()});
  if (!job) return std::unexpected(std::move(job.error()));
  sources_.push_back({.command_line = {},
                      .job_file = job->paths().file,
                      .job_text = {},
                      .config_file = {},
                      .settings = {},
                      .environment = {}});
  return &jobs_.add(std::move(*job), {});
}

bool JobTasks::has_next_round() const {
  return rounds_.is_over() && !round_was_asked_for_ && !no_more_rounds_ && !only_some_;
}

std::optional<run::Tasks::Accepted> JobTasks::next_round(std::uint32_t number) {
  round_was_asked_for_ = true;
  const std::uint32_t round = rounds_.round();
  const auto repeat = jobs_.first().repeat();
  if (!repeat) return std::nullopt;
  const Result<bool> holds = last_job_of(jobs_).until_holds(
      [this](const std::string& group, const std::string& id) { return result_of(group, id); });
  round_trouble_.clear();
  if (!holds) {
    round_trouble_ =
        fmt::format("repeat: {}: no round starts after round {}", holds.error().message, round);
    return std::nullopt;
  }
  no_more_rounds_ = *holds || round + 1 >= repeat->rounds_max;
  if (*holds) {
    note(fmt::format("repeat: {} holds after round {}, so no further round starts", repeat->until,
                     round));
  } else if (no_more_rounds_ && !repeat->until.empty()) {
    note(fmt::format("repeat: {} does not hold after round {}, the last of {}", repeat->until,
                     round, repeat->rounds_max));
  }
  if (no_more_rounds_) return std::nullopt;
  const auto job = add_round(round + 1, number);
  if (!job) {
    round_trouble_ =
        fmt::format("repeat: round {} cannot begin: {}", round + 1, text_of(job.error()));
    return std::nullopt;
  }
  return Accepted{.batch = {.number = number,
                            .plan = (*job)->shared_plan(),
                            .names = names_of(**job),
                            .source = sources_.back()},
                  .told = {}};
}

std::string JobTasks::not_done() const {
  const std::optional<RoundsLeft> left = rounds_left();
  return left && !left->of_tasks ? left->why : std::string();
}

std::optional<JobTasks::RoundsLeft> JobTasks::rounds_left() const {
  const auto repeat = jobs_.first().repeat();
  if (!repeat || no_more_rounds_) return std::nullopt;
  if (!round_trouble_.empty()) return RoundsLeft{.why = round_trouble_};
  const std::uint32_t round = rounds_.round();
  if (round + 1 >= repeat->rounds_max) return std::nullopt;
  const std::string run = text::shell_word(seen_from_here(jobs_.first().paths().run_directory));
  if (rounds_.is_over() && only_some_) {
    return RoundsLeft{
        .why = fmt::format("repeat: no round starts after round {}, as only some tasks were "
                           "selected; continue with {}",
                           round, text::quoted_command("trainyard run --resume " + run)),
        .of_tasks = true};
  }
  if (rounds_.is_over()) {
    return RoundsLeft{.why = fmt::format("repeat: no round could be added after round {}", round)};
  }
  return RoundsLeft{
      .why = fmt::format("repeat: round {} has not finished, so no other of at most {} rounds "
                         "starts; continue with {}",
                         round, repeat->rounds_max,
                         text::quoted_command(fmt::format("trainyard retry {} --cascade", run))),
      .of_tasks = true};
}

Result<run::Tasks::Accepted> JobTasks::accept(const wire::Submit& submission,
                                              std::uint32_t number) {
  const auto groups_before = jobs_.groups();
  const auto job = read(submission, number, std::nullopt);
  if (!job) return std::unexpected(Error{text_of(job.error())});
  return Accepted{.batch = {.number = number,
                            .plan = (*job)->shared_plan(),
                            .names = names_of(**job),
                            .source = sources_.back()},
                  .told = told(**job, number, jobs_, groups_before)};
}

void JobTasks::drop_last() {
  jobs_.drop_last();
  sources_.pop_back();
}

std::vector<journal::Batch> JobTasks::batches(const std::string& command_line) const {
  std::vector<journal::Batch> batches;
  for (std::uint32_t i = 0; i < jobs_.count(); ++i) {
    const job::Job& job = jobs_.at(i);
    journal::BatchSource source;
    if (i == 0) {
      source.command_line = command_line;
      source.job_file = job.paths().file;
    } else {
      source = sources_[i - 1];
    }
    batches.push_back({.number = i + 1,
                       .plan = job.shared_plan(),
                       .names = names_of(job),
                       .source = std::move(source)});
  }
  return batches;
}

void JobTasks::show() {
  view_.emplace(jobs_);
  for (const std::string& note : std::exchange(early_notes_, {})) view_->note(note);
}

void JobTasks::hide() {
  if (view_) view_->finish();
  view_.reset();
}

void JobTasks::note(std::string_view line) {
  if (view_) return view_->note(line);
  early_notes_.emplace_back(line);
}

void JobTasks::see(const model::Turn& turn) {
  rounds_.see(turn, jobs_);
  // One of its tasks is retried, or the next round has begun.
  if (!rounds_.is_over()) round_was_asked_for_ = false;
  if (view_) view_->on(turn);
  if (listener_) listener_(turn);
}

/// Results are read from the journal: a task's result is there before a task that needs it starts.
model::Launch JobTasks::launch(model::AttemptKey key, const model::Grant& grant) {
  return jobs_.launch(key, grant, [this](const std::string& group, const std::string& id) {
    return result_of(group, id);
  });
}

std::optional<std::string> JobTasks::result_of(const std::string& group,
                                               const std::string& id) const {
  const std::optional<model::TaskIndex> task = jobs_.find(group, id);
  if (!task) return std::nullopt;
  auto reader =
      journal::JournalReader::open(run::journal_path(jobs_.first().paths().run_directory));
  if (!reader) return std::nullopt;
  const auto [batch, in_batch] = jobs_.place_of(*task);
  return reader->find_result(batch, in_batch).value_or(std::nullopt);
}

run::LinePattern JobTasks::pattern_of(model::TaskIndex task) {
  const std::optional<std::string> text = jobs_.metrics_of(task);
  if (!text) return {};
  auto pattern = text::MetricPattern::compile(*text);
  check(pattern.has_value(), "a pattern that was checked when the job was loaded");
  return [pattern = std::move(*pattern)](std::string_view line) { return pattern.find_in(line); };
}

std::string JobTasks::without_secrets(std::string text) const {
  for (std::uint32_t i = 0; i < jobs_.count(); ++i) {
    text = jobs_.at(i).without_secrets(std::move(text));
  }
  return text;
}

void JobTasks::hear(model::AttemptKey key, const wire::Message& message) {
  if (!unheard_.insert(key.task).second) return;
  note(fmt::format("{}: sends '{}', which nothing receives", jobs_.id_of(key.task),
                   message.command));
}

}  // namespace trainyard::cli
