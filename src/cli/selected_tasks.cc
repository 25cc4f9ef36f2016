#include "cli/selected_tasks.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "cli/console.h"
#include "cli/find_run.h"
#include "cli/known_runs.h"
#include "job/program_as_job.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

text::TaskNames all_names_of(const journal::TaskRow& row) {
  return {.group = row.group_name,
          .group_in_file = row.group_in_file,
          .id = row.id,
          .keys = row.matrix};
}

text::TaskChoice choice_among(const std::vector<journal::TaskRow>& rows,
                              const TasksOfRun& selection) {
  return {selection.patterns, [&rows](const auto& look_at) {
            for (const journal::TaskRow& row : rows) look_at(all_names_of(row));
          }};
}

/// The run of this directory with the largest number that has tasks of this pattern.
std::optional<std::string> run_here_with(const text::TaskPattern& pattern) {
  std::optional<std::string> newest;
  for (std::string& run : runs_here()) {
    Result<journal::JournalReader> reader = journal::JournalReader::open(run::journal_path(run));
    if (!reader) continue;
    const TasksOfRun meant{.run = run, .patterns = {pattern}, .states = {}};
    if (tasks_of_patterns(*reader, meant).empty()) continue;
    if (!newest || number_of_run(*newest) < number_of_run(run)) newest = std::move(run);
  }
  return newest;
}

/// "; run 13 ('runs/sweep') has it: type 13/lr=0.1", the cure only where no word names the run and
/// the command can be used for that run.
std::string run_that_has_it(const std::string& run, const TasksOfRun& selection,
                            const std::string& pattern) {
  std::string text = fmt::format("; {} has it", name_of_run(run));
  if (selection.needs_active && !sys::RunLock::holder(run)) return text + ", but is not active";
  if (!selection.named.empty()) return text;
  const std::optional<std::uint32_t> number = number_of_run(run);
  const std::string word = number ? fmt::format("{}", *number) : seen_from_here(run);
  return text + ": type " + text::shell_word(fmt::format("{}/{}", word, pattern));
}

/// "; some that exist: runs/a, runs/b"; empty where there is no run.
std::string some_runs_here() {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> runs;
  std::ranges::transform(runs_here() | std::views::take(kShown), std::back_inserter(runs),
                         seen_from_here);
  return runs.empty() ? std::string() : fmt::format("; some that exist: {}", fmt::join(runs, ", "));
}

/// The error for a word that matches no task of a run, whose tasks are `rows`.
Error no_such_task(journal::JournalReader& reader, const TasksOfRun& selection,
                   const std::string& pattern, const std::vector<journal::TaskRow>& rows) {
  if (const std::optional<std::uint32_t> number = unknown_number_in(pattern)) {
    return no_run_of_number(*number);
  }
  std::error_code ignored;
  if (pattern.starts_with("runs/") && !std::filesystem::exists(pattern, ignored)) {
    return Error{fmt::format("no run directory '{}'{}", pattern, some_runs_here())};
  }
  if (job::is_named_as_job(pattern) && !std::filesystem::exists(pattern, ignored)) {
    return no_such_job_file(pattern);
  }
  std::string text = fmt::format("task '{}' not found", pattern);
  const Result<text::TaskPattern> read = text::TaskPattern::read(pattern);
  if (!known_runs(pattern).empty()) {
    text += fmt::format(" in '{}'; '{}' is a run, and only one run is allowed here",
                        seen_from_here(selection.run), pattern);
  } else if (const auto other = read ? run_here_with(*read) : std::nullopt) {
    text += fmt::format(" in '{}'{}", seen_from_here(selection.run),
                        run_that_has_it(*other, selection, pattern));
  } else if (const std::string instead = selection_instead(pattern); !instead.empty()) {
    text += fmt::format(" in '{}'{}", seen_from_here(selection.run), instead);
  } else if (const auto lookup = reader.look_up(pattern); lookup && !lookup->near.empty()) {
    // The word may be a run that is gone: the suggestion is a task.
    const bool may_be_run = pattern.find_first_of("/=") == std::string::npos;
    if (may_be_run) {
      text += fmt::format(" in '{}', and no run has this name", seen_from_here(selection.run));
    }
    for (const std::string& near : lookup->near) {
      text +=
          fmt::format("{} '{}'", &near == &lookup->near.front() ? " (did you mean" : " or", near);
    }
    text += "?)";
  } else {
    text += fmt::format(" in '{}'", seen_from_here(selection.run));
    std::vector<text::TaskNames> names;
    std::ranges::transform(rows, std::back_inserter(names), all_names_of);
    if (const std::string values = text::values_instead(pattern, names); !values.empty()) {
      text += values;
    } else if (std::filesystem::is_directory(pattern, ignored)) {
      text += fmt::format(", and no run has started in the directory '{}'", pattern);
    } else if (const auto run = find_run(pattern); !run && job::is_named_as_job(pattern)) {
      return run.error();
    } else {
      text += ", and no run has this name" + some_runs_here();
    }
  }
  return Error{std::move(text)};
}

Error several_of_name(const std::string& name, const std::vector<journal::TaskRow>& rows,
                      const std::vector<std::size_t>& places) {
  std::vector<std::string> names;
  for (const std::size_t place : places) names.push_back(text::shell_word(shown_name(rows[place])));
  return Error{fmt::format("several tasks have the name '{}': type {}", name,
                           list_text(names, {.word = "or"}))};
}

/// "; 4 are :held", the selected tasks on hold where :waiting selects none; else empty.
std::string held_instead(TasksOfRun selection) {
  if (std::ranges::find(selection.states, report::TaskState::Waiting) == selection.states.end()) {
    return {};
  }
  selection.states = {report::TaskState::OnHold};
  Result<journal::JournalReader> reader = open_run(selection.run);
  if (!reader) return {};
  const auto held = selected_tasks(*reader, selection, SameName::MeansAll);
  if (!held || held->empty()) return {};
  return fmt::format("; {} {} :held", held->size(), held->size() == 1 ? "is" : "are");
}

/// The rows among which the selected tasks are. A single task that is selected by its name is
/// looked up, so that a run with very many tasks is not read as a whole.
Result<std::vector<journal::TaskRow>> rows_to_look_at(journal::JournalReader& reader,
                                                      const TasksOfRun& selection) {
  if (selection.patterns.size() == 1) {
    Result<journal::JournalReader::Lookup> lookup =
        reader.look_up(selection.patterns.front().text());
    if (!lookup) return std::unexpected(std::move(lookup.error()));
    if (!lookup->found.empty()) return std::move(lookup->found);
  }
  std::vector<journal::TaskRow> rows;
  const Result<void> read = reader.tasks({}, [&rows](journal::TaskRow row) {
    rows.push_back(std::move(row));
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return rows;
}

}  // namespace

std::string selection_instead(std::string_view word) {
  if (word == "all") return "; for all tasks, type '*'";
  const Result<report::TaskState> state = report::read_task_state(word);
  if (!state) return {};
  return fmt::format("; a state begins with a colon: type :{}", report::task_state_word(*state));
}

bool has_died(journal::JournalReader& reader, const std::string& run) {
  const auto executions = reader.executions();
  return executions && !executions->empty() && !executions->back().ended &&
         !sys::RunLock::holder(run);
}

std::string which_run_note(const TasksOfRun& selection) {
  if (!selection.unreadable.empty()) {
    return fmt::format("the journal of {} cannot be read; this is {}",
                       name_of_run(selection.unreadable), name_of_run(selection.run));
  }
  const std::string& name = selection.named;
  const bool is_path = name.contains('/') || name.starts_with('.') || job::is_named_as_job(name);
  if (name.empty() || is_path) return {};
  const bool is_sure = selection.candidates < 2 && selection.newer_in_queue.empty();
  if (is_sure && !selection.is_elsewhere) return {};
  std::string text = fmt::format("'{}' is ", name);
  if (!selection.newer_in_queue.empty()) {
    text += fmt::format("{}, which is active; {} is in your queue", name_of_run(selection.run),
                        name_of_run(selection.newer_in_queue));
  } else if (selection.candidates < 2) {
    text += name_of_run(selection.run);
  } else {
    text += name_of_latest_run(selection.run, selection.candidates);
  }
  if (selection.is_elsewhere) text += "; no run of this directory has this name";
  return text;
}

Result<std::string> newest_run_of(const std::string& named) {
  Result<FoundRun> run = choose_run(named, WhenSeveral::TakeNewest);
  if (!run) return std::unexpected(std::move(run.error()));
  const std::string which = which_run_note({.run = run->directory,
                                            .patterns = {},
                                            .states = {},
                                            .named = named,
                                            .is_elsewhere = run->is_elsewhere});
  if (!which.empty()) note(which);
  return std::move(run->directory);
}

std::string none_in_state(const TasksOfRun& selection) {
  std::string states;
  for (const report::TaskState state : selection.states) {
    states += fmt::format("{}:{}", states.empty() ? "" : " or ", report::task_state_word(state));
  }
  const std::string run = seen_from_here(selection.run);
  if (states.empty()) return fmt::format("'{}' has no tasks", run);
  return fmt::format("{} of '{}' is {}{}",
                     selection.patterns.empty() ? "no task" : "none of the selected tasks", run,
                     states, held_instead(selection));
}

std::string how_to_name_all(std::string_view command, const TasksOfRun& selection) {
  return fmt::format("For all of them, type: trainyard {} {} '*'", command,
                     text::shell_word(seen_from_here(selection.run)));
}

std::set<model::TaskIndex> named_tasks(const TasksOfRun& selection,
                                       const std::vector<journal::TaskRow>& selected) {
  if (!selection.states.empty()) return {};
  const text::TaskChoice choice = choice_among(selected, selection);
  std::set<model::TaskIndex> named;
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.by_name && meant.tasks.size() == 1) named.insert(selected[meant.tasks.front()].index);
  }
  return named;
}

std::vector<model::TaskIndex> tasks_of_patterns(journal::JournalReader& reader,
                                                const TasksOfRun& selection) {
  const auto rows = rows_to_look_at(reader, selection);
  if (!rows) return {};
  const text::TaskChoice choice = choice_among(*rows, selection);
  if (!std::ranges::all_of(choice.meant(), [](const auto& each) { return !each.tasks.empty(); })) {
    return {};
  }
  const std::vector<bool> chosen = choice.chosen();
  std::vector<model::TaskIndex> tasks;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (chosen[i]) tasks.push_back((*rows)[i].index);
  }
  return tasks;
}

Result<std::vector<journal::TaskRow>> selected_tasks(journal::JournalReader& reader,
                                                     const TasksOfRun& selection,
                                                     SameName same_name) {
  Result<std::vector<journal::TaskRow>> rows = rows_to_look_at(reader, selection);
  if (!rows) return rows;
  const text::TaskChoice choice = choice_among(*rows, selection);
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.tasks.empty()) {
      return std::unexpected(no_such_task(reader, selection, meant.text, *rows));
    }
    if (meant.by_name && meant.tasks.size() > 1 && same_name == SameName::Refuse) {
      return std::unexpected(several_of_name(meant.text, *rows, meant.tasks));
    }
  }
  const std::vector<bool> chosen = choice.chosen();
  const bool died = has_died(reader, selection.run);
  std::vector<journal::TaskRow> selected;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!chosen[i]) continue;
    journal::TaskRow& row = (*rows)[i];
    if (died) report::mark_lost(row);
    const bool in_state = selection.states.empty() ||
                          std::ranges::any_of(selection.states, [&row](report::TaskState state) {
                            return report::is_in(row.standing, state);
                          });
    if (in_state) selected.push_back(std::move(row));
  }
  return selected;
}

std::string names_and_what(const std::vector<journal::TaskRow>& tasks, std::string_view what) {
  constexpr std::size_t kNamedMax = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(tasks.size(), kNamedMax); ++i) {
    text += fmt::format("{} {}\n", report::plain(shown_name(tasks[i])), what);
  }
  if (tasks.size() > kNamedMax) {
    text += fmt::format("and {} more\n", tasks.size() - kNamedMax);
  }
  return text;
}

std::string names_and_words(const std::vector<journal::TaskRow>& tasks) {
  constexpr std::size_t kNamedMax = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(tasks.size(), kNamedMax); ++i) {
    text += fmt::format("{}{} is {}", i == 0 ? "" : ", ", shown_name(tasks[i]),
                        model::word_for(tasks[i].standing));
  }
  if (tasks.size() > kNamedMax) text += fmt::format(", and {} more", tasks.size() - kNamedMax);
  return text;
}

}  // namespace trainyard::cli
