// `trainyard learned`: the estimates from runs of a job file, next to its own values.
#include <array>
#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/path_name.h"
#include "base/result.h"
#include "cli/checked_job.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "job/keep_learned.h"
#include "job/learned.h"
#include "job/learned_view.h"
#include "journal/reader.h"
#include "report/learned_report.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/mistake.h"
#include "text/readable_json.h"

namespace trainyard::cli {
namespace {

struct LearnedOptions {
  const CLI::App* learned = nullptr;
  const CLI::App* forget = nullptr;
  std::string job_file;  ///< Empty: that of the latest run under ./runs.
  std::string config_file;
  std::vector<std::string> settings;
  std::vector<std::string> what;  ///< For `forget`: groups, and tasks as <group>/<id>; empty: all.
  bool json = false;
};

/// Whether the job file is named by one of its runs, or by the directory of one.
bool is_named_by_run(const LearnedOptions& options) {
  if (options.job_file.empty()) return false;
  if (!sys::exists(options.job_file)) return app::names_run(options.job_file, run_facts());
  return run_facts().kind_of(options.job_file) == app::PathKind::RunDirectory;
}

/// The job file that the options name by its path or, for a command, by its run; without a name
/// that of the latest run. The job file of a command is in its run directory.
Result<std::string> job_file_of(const LearnedOptions& options,
                                WhenSeveral when_several = WhenSeveral::TakeLatest) {
  const bool is_run = is_named_by_run(options);
  if (!options.job_file.empty() && !is_run) return options.job_file;
  if (!is_run && run_facts().here().empty()) {
    return std::unexpected(Error{"no run found under ./runs: name a job file"});
  }
  const Result<std::string> run = find_run(options.job_file, when_several);
  if (!run) return std::unexpected(run.error());
  Result<journal::JournalReader> reader = open_run(*run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(executions.error());
  if (executions->empty() || executions->back().is_of_program()) {
    return std::unexpected(
        Error{fmt::format("'{}' has no job file; name a job file instead", *run)});
  }
  const journal::ExecutionRow& last = executions->back();
  const std::string job_file = run::path_after_move(
      last.job_file, {.was = last.run_directory, .is = run::real_directory(*run)});
  // The estimates are those of all runs of the job file, and the name of one run could mean its own
  // alone. A command has no other name than that of one of its runs.
  if (is_run && !run::is_kept_job_path(job_file)) {
    return std::unexpected(Error{fmt::format("'{}' is a run: name its job file, '{}'",
                                             options.job_file, seen_from_here(job_file))});
  }
  return seen_from_here(job_file);
}

ExitCode learned_show_command(const LearnedOptions& options) {
  const Result<std::string> job_file = job_file_of(options);
  Result<job::LoadOptions> load =
      job_file ? load_options(*job_file, options.config_file, options.settings)
               : Result<job::LoadOptions>(std::unexpected(job_file.error()));
  if (!load) return fail(load.error());
  load->only_shown = true;
  const std::expected<job::Job, text::Mistakes> job =
      load_job(*load, hardware::find_this_machine().reading.capacity);
  if (!job) return fail(job.error());
  const std::string kept_in = job->paths().learned;
  const Result<job::Learned> learned = job::load_learned(kept_in);
  const report::LearnedPage page{
      .job_file = *job_file,
      .kept_in = seen_from_here(kept_in),
      .note = learned ? std::string() : learned.error().message,
      .used = job->configuration().flag(settings::Setting::SchedulerAutoAdjust),
      .here = job->here(),
      .view = job::view_learned(*job, learned.value_or(job::Learned{}))};
  return answer(options.json ? report::learned_json(page) : report::learned_text(page));
}

/// Returns how many tasks that was.
std::size_t forget_one(job::Learned& learned, std::string_view what) {
  const std::size_t slash = what.find('/');
  return slash == std::string_view::npos
             ? learned.forget(what)
             : learned.forget(what.substr(0, slash), what.substr(slash + 1));
}

std::string groups_of(const job::Learned& learned) {
  std::set<std::string, std::less<>> names;
  learned.each([&](std::string_view group, std::string_view, const job::Learned::Taken&) {
    names.emplace(group);
  });
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text.empty() ? "no group has estimates" : "groups with estimates: " + text;
}

ExitCode learned_forget_command(const LearnedOptions& options) {
  const Result<std::string> job_file = job_file_of(options, WhenSeveral::RefuseLive);
  if (!job_file) return fail(job_file.error());
  const Result<std::string> here = sys::current_directory();
  if (!here) return fail(here.error());
  const std::string path = absolute_path(*job_file, *here);
  // The estimates of a command are found by the name of its job. Without the name only those in its
  // own run directory can be found.
  const Result<job::LoadOptions> load = load_options(*job_file, {}, {});
  const Result<job::JobRuns> job =
      load ? job::Job::runs_of(*load) : Result<job::JobRuns>(std::unexpected(load.error()));
  const std::string kept_in = job::learned_path(path, job ? job->job_name : std::string());
  const bool has_estimates = sys::exists(kept_in);
  if (!job && run::is_kept_job_path(path) && !has_estimates) {
    return fail(fmt::format("{}; nothing was deleted", job.error().message));
  }
  if (!sys::exists(path) && !has_estimates) {
    return fail(
        fmt::format("'{}' not found: name the job file first, as in 'trainyard learned forget "
                    "sweep.yaml train'",
                    *job_file));
  }
  Result<job::Learned> learned = job::load_learned(kept_in);
  // Estimates that cannot be read can only be forgotten as a whole.
  if (!learned && !options.what.empty()) return fail(learned.error(), ExitCode::TaskFailed);
  const bool unreadable = !learned;
  job::Learned kept = std::move(learned).value_or(job::Learned{});
  std::size_t count = options.what.empty() ? kept.forget() : 0;
  for (const std::string& what : options.what) {
    const std::size_t forgotten = forget_one(kept, what);
    if (forgotten == 0) {
      return fail(fmt::format("no learned estimates of '{}' in {}, nothing was deleted; {}", what,
                              *job_file, groups_of(kept)),
                  ExitCode::TaskFailed);
    }
    count += forgotten;
  }
  if (count == 0 && !unreadable) {
    return fail(fmt::format("no learned estimates in {}", *job_file), ExitCode::TaskFailed);
  }
  if (const Result<void> saved = job::save_learned(kept, kept_in); !saved) {
    return fail(saved.error(), ExitCode::TaskFailed);
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"job_file", *job_file}, {"forgotten", count}};
    return answer(text::readable_json(json));
  }
  return answer(unreadable ? fmt::format("removed the unreadable estimates of {}\n", *job_file)
                           : fmt::format("removed the learned estimates of {} task{} of {}\n",
                                         count, count == 1 ? "" : "s", *job_file));
}

void add_job(CLI::App& command, LearnedOptions& options) {
  command
      .add_option("job", options.job_file, "Job file (default: that of the latest run in ./runs)")
      ->type_name(value_kinds::kJobFile)
      ->check(empty_job_file_error);
  add_json(command, options.json);
}

ExitCode learned_command(const LearnedOptions& options) {
  // A command that is typed wrong is a job file to CLI11.
  constexpr std::array<std::string_view, 2> kCommands{"show", "forget"};
  const bool is_file = sys::exists(options.job_file);
  const auto meant = is_file ? std::nullopt : nearest(options.job_file, kCommands);
  if (meant && options.learned->get_subcommands().empty()) {
    return fail(fmt::format("unknown command '{}' (did you mean '{}'?)", options.job_file, *meant));
  }
  return options.forget->parsed() ? learned_forget_command(options) : learned_show_command(options);
}

CLI::App* add_learned(CLI::App& app, LearnedOptions& options) {
  CLI::App* const learned =
      app.add_subcommand("learned", "Show or delete learned estimates of memory and time");
  learned->group(command_groups::kWatch);
  add_job(*learned, options);
  add_configuration(*learned, options.config_file, options.settings);
  learned->footer(
      "Examples:\n"
      "  trainyard learned sweep.yaml\n"
      "  trainyard learned forget sweep.yaml train\n"
      "\n"
      "Exit codes: 0 done, 1 not done, 2 the command line or the job file is wrong.");
  CLI::App* show = learned->add_subcommand("show", "Compare the job file with what tasks used");
  add_job(*show, options);
  add_configuration(*show, options.config_file, options.settings);
  show->footer(
      "Examples:\n"
      "  trainyard learned\n"
      "  trainyard learned show sweep.yaml --json\n"
      "\n"
      "SUGGESTED is a value for the job file: 'memory: 2.2GB'. It is '-' if the present value is\n"
      "within 10 % of it, or comes from the matrix. Hard limits, and values whose estimate is\n"
      "uncertain, are only raised.");
  CLI::App* const forget = learned->add_subcommand("forget", "Delete learned estimates");
  add_job(*forget, options);
  forget->add_option("what", options.what, "Groups, or tasks as <group>/<id> (default: all)")
      ->type_name(value_kinds::kName);
  forget->footer(
      "Examples:\n"
      "  trainyard learned forget sweep.yaml\n"
      "  trainyard learned forget sweep.yaml train\n"
      "  trainyard learned forget sweep.yaml train/lr=0.1,seed=2\n"
      "\n"
      "The journals of runs stay: a resumed run uses the estimates in its journal.\n"
      "Exit codes: 0 deleted, 1 nothing is known, 2 the command line is wrong.");
  options.learned = learned;
  options.forget = forget;
  return learned;
}

}  // namespace

Entry learned_entry() { return entry({"learned"}, add_learned, learned_command); }

}  // namespace trainyard::cli
