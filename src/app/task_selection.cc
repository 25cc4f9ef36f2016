#include "app/task_selection.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "job/program_as_job.h"
#include "report/digest.h"
#include "report/terminal_text.h"
#include "run/run_numbers.h"
#include "text/condition.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// The run at the start of a word, and the rest of the word.
struct RunInWord {
  std::string word;  ///< All of it.
  std::string run;   ///< As choose_run() takes it.
  std::string tasks;
  bool is_path = false;  ///< A word that cannot be meant as a task: it has a slash, or is a file.
};

/// The meaning of each word by itself.
struct ReadWords {
  std::vector<RunInWord> runs;
  std::vector<text::TaskPattern> patterns;
  std::vector<report::TaskState> states;
};

/// "; a state begins with a colon: type :failed" for the word "failed", and "; for all tasks, type
/// '*'" for "all"; empty for other words.
std::string instead_of(std::string_view word) {
  if (word == "all") return "; for all tasks, type '*'";
  const Result<report::TaskState> state = report::read_task_state(word);
  if (!state) return {};
  return fmt::format("; a state begins with a colon: type :{}", report::task_state_word(*state));
}

text::TaskNames all_names_of(const journal::TaskRow& row) {
  return {.group = row.group_name,
          .group_in_file = row.group_in_file,
          .id = row.id,
          .keys = row.matrix};
}

text::TaskChoice choice_among(const std::vector<journal::TaskRow>& rows,
                              const std::vector<text::TaskPattern>& patterns) {
  return {patterns, [&rows](const auto& visit) {
            for (const journal::TaskRow& row : rows) visit(all_names_of(row));
          }};
}

/// The rows among which the selected tasks are. A single task that is selected by its name is
/// looked up, so that a run of many tasks is not read as a whole.
Result<std::vector<journal::TaskRow>> rows_to_search(
    RunTasks& tasks, const std::vector<text::TaskPattern>& patterns) {
  if (patterns.size() == 1) {
    Result<journal::JournalReader::Lookup> lookup = tasks.look_up(patterns.front().text());
    if (!lookup) return std::unexpected(std::move(lookup.error()));
    if (!lookup->found.empty()) return std::move(lookup->found);
  }
  return tasks.all();
}

/// The tasks of a run that a word means, all of them for an empty word. None where the word means
/// nothing there, or the journal cannot be read. Does not search other runs, as selected_tasks()
/// does.
std::vector<journal::TaskRow> tasks_meant(const std::string& run, const std::string& word,
                                          const RunFacts& facts) {
  std::vector<text::TaskPattern> patterns;
  if (!word.empty()) {
    Result<text::TaskPattern> pattern = text::TaskPattern::read(word);
    if (!pattern) return {};
    patterns.push_back(std::move(*pattern));
  }
  const Result<std::unique_ptr<RunTasks>> tasks = facts.tasks_of(run);
  auto rows = tasks ? rows_to_search(**tasks, patterns) : std::unexpected(tasks.error());
  if (!rows) return {};
  const std::vector<bool> chosen = choice_among(*rows, patterns).chosen();
  std::vector<journal::TaskRow> meant;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (chosen[i]) meant.push_back(std::move((*rows)[i]));
  }
  return meant;
}

/// Whether a word means a task of this run. In the run that the word itself may stand for, a name
/// of its group means the same: all of it.
bool means_a_task(const std::string& run, const std::string& word, bool of_itself,
                  const RunFacts& facts) {
  if (!of_itself) return !tasks_meant(run, word, facts).empty();
  const Result<std::unique_ptr<RunTasks>> tasks = facts.tasks_of(run);
  const auto lookup = tasks ? (*tasks)->look_up(word) : std::unexpected(tasks.error());
  return lookup && !lookup->found.empty();
}

/// A run by its path, with the tasks behind it: "runs/digits/train/lr=0.1".
std::optional<RunInWord> path_in(const std::string& word, const RunFacts& facts) {
  constexpr int kSlashesOfTask = 2;
  std::string path = word;
  std::string tasks;
  for (int i = 0; i <= kSlashesOfTask; ++i) {
    const std::optional<KnownRun> run = facts.in(path);
    const bool is_file = !run && facts.kind_of(path) == PathKind::File;
    // A directory of tasks, within a run, looks like a run that has lost its journal.
    const bool has_run = tasks.empty() ? run || facts.has_runs_in(path) : run && run->has_journal;
    if (is_file || has_run) {
      return RunInWord{.word = word,
                       .run = path,
                       .tasks = tasks,
                       .is_path = is_file || path.contains('/') || path.starts_with('.')};
    }
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) break;
    const std::string last = path.substr(slash + 1);
    tasks = tasks.empty() ? last : fmt::format("{}/{}", last, tasks);
    path.resize(slash);
  }
  return std::nullopt;
}

std::optional<RunInWord> run_in(const std::string& word, const RunFacts& facts) {
  if (std::optional<RunInWord> path = path_in(word, facts)) return path;
  const std::size_t slash = std::min(word.find('/'), word.size());
  const std::string name = word.substr(0, slash);
  if (!names_run(name, facts)) return std::nullopt;
  return RunInWord{
      .word = word, .run = name, .tasks = word.substr(std::min(slash + 1, word.size()))};
}

Result<void> add_pattern(const std::string& word, std::vector<text::TaskPattern>& patterns) {
  Result<text::TaskPattern> pattern = text::TaskPattern::read(word);
  if (!pattern && !word.contains('/')) return std::unexpected(std::move(pattern.error()));
  if (!pattern) {
    return std::unexpected(
        Error{fmt::format("no run found in '{}', and it is not a valid name of a task", word)});
  }
  patterns.push_back(std::move(*pattern));
  return {};
}

Result<ReadWords> read_words(const SelectionWords& all, const RunFacts& facts) {
  ReadWords read;
  for (const std::string& word : all.words) {
    if (word.empty()) return std::unexpected(Error{"'' is not the name of a run or a task"});
    if (word.starts_with(':')) {
      const Result<report::TaskState> state = report::read_task_state(word.substr(1));
      if (!state) return std::unexpected(state.error());
      read.states.push_back(*state);
    } else if (auto run = all.run_directory.empty() ? run_in(word, facts) : std::nullopt) {
      read.runs.push_back(std::move(*run));
    } else if (Result<void> added = add_pattern(word, read.patterns); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return read;
}

/// Decides which of several words that may be a run are tasks of the first one, which is the first
/// word that can be nothing else than a run, or the first. Where one run is allowed, all words but
/// paths are; where several are, those that mean a task of that run.
Result<void> take_tasks_of_first(ReadWords& read, const SelectionWords& words, bool is_one,
                                 const RunFacts& facts) {
  if (read.runs.size() < 2) return {};
  const auto sure = std::ranges::find_if(read.runs, &RunInWord::is_path);
  const RunInWord first = sure == read.runs.end() ? read.runs.front() : *sure;
  Result<FoundRun> run = is_one ? FoundRun{} : choose_run(first.run, words.when_several, facts);
  if (!run) return std::unexpected(std::move(run.error()));
  bool is_first_taken = false;
  std::vector<RunInWord> runs;
  for (RunInWord& word : read.runs) {
    const bool is_first = word.word == first.word && !std::exchange(is_first_taken, true);
    const bool is_run =
        is_first || word.is_path ||
        (!is_one && (word.run == first.run || !means_a_task(run->run, word.word, false, facts)));
    if (is_run && is_one && !is_first) {
      // The shell writes the names of the files here in the place of '*'.
      const bool may_be_star =
          std::ranges::none_of(std::vector{first.word, word.word}, [&](const auto& each) {
            return each.contains('/') || facts.kind_of(each) == PathKind::Missing;
          });
      return std::unexpected(
          Error{fmt::format("only one run is allowed here, not '{}' and '{}'{}", first.word,
                            word.word, may_be_star ? "; for all tasks, write '*' in quotes" : "")});
    }
    if (is_run) {
      runs.push_back(std::move(word));
    } else if (Result<void> added = add_pattern(word.word, read.patterns); !added) {
      return added;
    }
  }
  read.runs = std::move(runs);
  return {};
}

/// The first word that selects no task in any run here, so that no run need be named for it.
/// Nothing if one of the runs has no tasks yet: it may have such a task.
std::optional<std::string> word_without_meaning(const std::vector<text::TaskPattern>& patterns,
                                                const RunFacts& facts) {
  const std::vector<KnownRun> runs = facts.here();
  if (runs.empty() || !std::ranges::all_of(runs, &KnownRun::has_journal)) return std::nullopt;
  for (const text::TaskPattern& pattern : patterns) {
    const bool has_meaning = std::ranges::any_of(runs, [&](const KnownRun& run) {
      return !tasks_meant(run.directory, pattern.text(), facts).empty();
    });
    if (!has_meaning) return pattern.text();
  }
  return std::nullopt;
}

std::vector<model::TaskIndex> indices_of(const std::vector<journal::TaskRow>& rows) {
  std::vector<model::TaskIndex> indices;
  std::ranges::transform(rows, std::back_inserter(indices), &journal::TaskRow::index);
  return indices;
}

/// A number or a bare name of a run may be a task of the run that is taken without a name.
Result<void> check_not_a_task(const RunInWord& word, const RunFacts& facts) {
  if (word.is_path) return {};
  const Result<FoundRun> other = choose_run({}, WhenSeveral::TakeLatest, facts);
  const Result<FoundRun> run = choose_run(word.run, WhenSeveral::TakeLatest, facts);
  if (!other || !run || !means_a_task(other->run, word.word, other->run == run->run, facts)) {
    return {};
  }
  const std::vector<journal::TaskRow> meant = tasks_meant(other->run, word.word, facts);
  // "sweep/lr=1" of the run sweep and of its group sweep are the same, and so are the run vit and
  // its only task vit.
  if (other->run == run->run &&
      indices_of(tasks_meant(run->run, word.tasks, facts)) == indices_of(meant)) {
    return {};
  }
  const bool is_group =
      std::ranges::find(meant, word.word, &journal::TaskRow::group_name) != meant.end();
  return std::unexpected(Error{fmt::format(
      "'{}' is ambiguous: {}, and a {} of {}; write {} for the run, or {} for the {}", word.word,
      run->name, is_group ? "group" : "task", other->name,
      text::quoted_command("--run-dir " + text::shell_word(run->shown)),
      text::quoted_command(fmt::format("--run-dir {} {}", text::shell_word(other->shown),
                                       text::shell_word(word.word))),
      is_group ? "group" : "task")});
}

/// The run of this directory with the largest number that has tasks of this pattern.
std::optional<KnownRun> run_here_with(const std::string& pattern, const RunFacts& facts) {
  std::vector<KnownRun> runs = facts.here();
  std::erase_if(runs, [&](const KnownRun& run) {
    return !run.has_journal || tasks_meant(run.directory, pattern, facts).empty();
  });
  const auto newest = std::ranges::max_element(runs, {}, &KnownRun::number);
  return newest == runs.end() ? std::nullopt : std::optional(*newest);
}

/// Whether a word means tasks of the run that is taken without a name. This is "train/lr=0.1" as
/// its table shows the task, also if a run has the name of its group, and "train" if only runs of
/// other directories have this name. Where those are refused, it is also a task of an earlier run of
/// this directory: the error about the task names that run.
bool is_of_current_run(const RunInWord& word, WhenSeveral when_several, const RunFacts& facts) {
  if (word.is_path || run::read_run_number(word.run)) return false;
  const Result<FoundRun> named = choose_run(word.run, WhenSeveral::TakeLatest, facts);
  const bool is_elsewhere = named && named->is_elsewhere;
  if (word.tasks.empty() && !is_elsewhere) return false;
  const Result<FoundRun> current = choose_run({}, WhenSeveral::TakeLatest, facts);
  if (!current) return false;
  if (means_a_task(current->run, word.word, named && named->run == current->run, facts)) {
    return true;
  }
  const bool refuses =
      when_several == WhenSeveral::RefuseLive || when_several == WhenSeveral::Refuse;
  return refuses && is_elsewhere && run_here_with(word.word, facts).has_value();
}

/// Adds a named run. One run may be named by several words: of it the tasks of any of them, or all.
Result<void> add_selected(FoundRun run, const RunInWord& word, const ReadWords& read,
                          std::vector<TasksOfRun>& selections) {
  auto selected = std::ranges::find(selections, run.run, &TasksOfRun::run);
  const bool is_known = selected != selections.end();
  if (!is_known) {
    selections.push_back(TasksOfRun{std::move(run), read.patterns, read.states});
    selected = std::prev(selections.end());
  }
  const bool means_all = is_known && selected->patterns.size() == read.patterns.size();
  if (word.tasks.empty()) selected->patterns = read.patterns;
  return word.tasks.empty() || means_all ? Result<void>()
                                         : add_pattern(word.tasks, selected->patterns);
}

/// A name means the latest of its runs, not the one in runs/<name>. An error where another word
/// names that latest run too: the table would lack one of the two runs that are meant.
Result<void> check_named_once(const std::vector<FoundRun>& runs,
                              const std::vector<RunInWord>& words, const RunFacts& facts) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string own = fmt::format("runs/{}", words[i].run);
    const std::optional<KnownRun> in_own = words[i].is_path ? std::nullopt : facts.in(own);
    if (!in_own || in_own->name() == runs[i].name) continue;
    for (const FoundRun& other : runs) {
      if (other.run != runs[i].run || other.named == runs[i].named) continue;
      return std::unexpected(
          Error{fmt::format("'{}' and '{}' both mean {}; type {} for the run in that directory",
                            runs[i].named, other.named, other.name, text::shell_word(own))});
    }
  }
  return {};
}

/// Whether a word may be the name of a run that is gone, and not only a pattern for tasks.
bool may_name_run(const std::string& word) {
  return word.find_first_of("/=*?[,") == std::string::npos;
}

/// The error for a word that can only mean a run, where `run`, which is taken without a name, has no
/// tasks that can be read: that run is not meant. Nothing where there is no such word.
std::optional<Error> error_of_words(const std::vector<text::TaskPattern>& patterns,
                                    const Result<FoundRun>& run, const RunFacts& facts) {
  for (const text::TaskPattern& pattern : patterns) {
    const std::string& word = pattern.text();
    const PathKind kind = facts.kind_of(word);
    if (kind == PathKind::Directory && word.contains('/') && !(run && facts.tasks_of(run->run))) {
      const auto named = choose_run(word, WhenSeveral::TakeLatest, facts);
      if (!named) return named.error();
    }
    if (run) continue;
    if (auto unknown = unknown_number(word, facts)) return unknown;
    if (kind == PathKind::Missing && job::is_named_as_job(word)) return no_such_job_file(word);
  }
  if (run && !patterns.empty() && may_name_run(patterns.front().text())) {
    const std::optional<KnownRun> latest = facts.in(run->run);
    if (latest && latest->is_unreadable) {
      return Error{
          fmt::format("no run has the name '{}', and the tasks of {} cannot be read: {} says why",
                      patterns.front().text(), run->name,
                      text::quoted_command("trainyard status " + text::shell_word(run->shown)))};
    }
  }
  const auto word = run ? std::nullopt : word_without_meaning(patterns, facts);
  if (!word) return std::nullopt;
  return Error{fmt::format("no run has the name '{}', and no run here has such a task{}", *word,
                           instead_of(*word))};
}

/// Adds ", as in: trainyard kill runs/b '*'" to the error of a run that was to be named because
/// several are active: the latest of them that has the tasks. Adds nothing where none has.
Error with_example(Error error, const SelectionWords& words,
                   const std::vector<text::TaskPattern>& patterns, const RunFacts& facts) {
  if (words.command.empty() || !words.run_directory.empty()) return error;
  std::vector<KnownRun> runs = facts.here();
  order_by_start(runs);
  const auto fits = std::ranges::find_if(runs, [&](const KnownRun& run) {
    return run.is_running == runs.front().is_running &&
           std::ranges::all_of(patterns, [&](const text::TaskPattern& pattern) {
             return means_a_task(run.directory, pattern.text(), false, facts);
           });
  });
  if (fits == runs.end()) return error;
  error.message +=
      fmt::format(", as in: trainyard {} {}", words.command, text::shell_word(fits->shown));
  for (const std::string& word : words.words) error.message += " " + text::shell_word(word);
  return error;
}

Result<std::vector<TasksOfRun>> selections_of(ReadWords read, const SelectionWords& words,
                                              const RunFacts& facts) {
  // Next to a word for all tasks, a word is their run.
  const bool has_all =
      std::ranges::find(read.patterns, "*", &text::TaskPattern::text) != read.patterns.end();
  const auto is_task = [&](const RunInWord& word) {
    return is_of_current_run(word, words.when_several, facts);
  };
  if (!has_all && std::ranges::all_of(read.runs, is_task)) {
    for (const RunInWord& word : std::exchange(read.runs, {})) {
      if (Result<void> added = add_pattern(word.word, read.patterns); !added) {
        return std::unexpected(std::move(added.error()));
      }
    }
  }
  std::vector<TasksOfRun> selections;
  std::vector<FoundRun> runs;
  for (const RunInWord& word : read.runs) {
    // Next to another run, too, the word is a run.
    const bool may_be_task = read.runs.size() == 1 && !has_all;
    Result<void> sure = may_be_task ? check_not_a_task(word, facts) : Result<void>();
    if (!sure) return std::unexpected(std::move(sure.error()));
    Result<FoundRun> run = choose_run(word.run, words.when_several, facts);
    if (!run) return std::unexpected(std::move(run.error()));
    runs.push_back(*run);
    if (Result<void> added = add_selected(std::move(*run), word, read, selections); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  if (Result<void> once = check_named_once(runs, read.runs, facts); !once) {
    return std::unexpected(std::move(once.error()));
  }
  if (!selections.empty()) return selections;
  Result<FoundRun> run = choose_run(words.run_directory, words.when_several, facts);
  if (words.run_directory.empty()) {
    auto wrong = error_of_words(read.patterns, run, facts);
    if (wrong) return std::unexpected(std::move(*wrong));
  }
  if (!run)
    return std::unexpected(with_example(std::move(run.error()), words, read.patterns, facts));
  return std::vector{TasksOfRun{std::move(*run), std::move(read.patterns), std::move(read.states)}};
}

/// "; run 13 ('runs/sweep') has it: type 13/lr=0.1", the cure only where no word names the run and
/// the command can be used for that run.
std::string run_that_has_it(const KnownRun& run, const TasksOfRun& selection,
                            const std::string& pattern) {
  std::string text = fmt::format("; {} has it", run.name());
  if (selection.needs_active && !run.is_running) return text + ", but is not active";
  if (!selection.named.empty()) return text;
  const std::string word = run.number != 0 ? std::to_string(run.number) : run.shown;
  return text + ": type " + text::shell_word(fmt::format("{}/{}", word, pattern));
}

/// "; existing runs: runs/b, runs/a", the newest first; empty where there is no run.
std::string some_runs_here(const RunFacts& facts) {
  constexpr std::size_t kShown = 5;
  std::vector<KnownRun> runs = facts.here();
  if (runs.empty()) return "";
  order_by_age(runs);
  return "; existing runs: " +
         short_list_text(runs | std::views::transform(&KnownRun::shown), kShown);
}

/// " (did you mean 'a' or 'b'?)"
std::string did_you_mean(const std::vector<std::string>& near) {
  return fmt::format(" (did you mean {}?)", list_text(near, {.word = "or", .quote = "'"}));
}

/// The error for a word that matches no task of a run, whose tasks are `rows`.
Error no_such_task(RunTasks& tasks, const TasksOfRun& selection, const std::string& pattern,
                   const std::vector<journal::TaskRow>& rows, const RunFacts& facts) {
  if (auto unknown = unknown_number(pattern, facts)) return std::move(*unknown);
  const PathKind kind = facts.kind_of(pattern);
  if (kind == PathKind::Missing && job::is_named_as_job(pattern)) return no_such_job_file(pattern);
  if (kind == PathKind::Missing && pattern.starts_with("runs/")) {
    return Error{fmt::format("no run directory '{}'{}", pattern, some_runs_here(facts))};
  }
  const std::string text = fmt::format("task '{}' not found", pattern);
  const std::string in_run = fmt::format("{} in '{}'", text, selection.shown);
  const auto other = kind == PathKind::RunDirectory ? std::nullopt : run_here_with(pattern, facts);
  if (other) return Error{in_run + run_that_has_it(*other, selection, pattern)};
  if (kind == PathKind::RunDirectory || names_run(pattern, facts)) {
    return Error{fmt::format("{}; a run is named '{}', but this command takes only one run", in_run,
                             pattern)};
  }
  if (const std::string instead = instead_of(pattern); !instead.empty()) {
    return Error{in_run + instead};
  }
  if (const auto lookup = tasks.look_up(pattern); lookup && !lookup->near.empty()) {
    // The word may be a run that is gone: the suggestion is a task.
    return Error{(may_name_run(pattern) ? in_run + ", and no run has this name" : text) +
                 did_you_mean(lookup->near)};
  }
  std::vector<text::TaskNames> names;
  std::ranges::transform(rows, std::back_inserter(names), all_names_of);
  if (const std::string values = text::values_instead(pattern, names); !values.empty()) {
    return Error{in_run + values};
  }
  if (kind == PathKind::Directory) {
    return Error{fmt::format("{}, and no run has started in the directory '{}'", in_run, pattern)};
  }
  if (kind == PathKind::File && job::is_named_as_job(pattern)) {
    const auto run = choose_run(pattern, WhenSeveral::TakeLatest, facts);
    if (!run) return run.error();
  }
  return Error{in_run + ", and no run has this name" + some_runs_here(facts)};
}

Error several_of_name(const std::string& name, const std::vector<journal::TaskRow>& rows,
                      const std::vector<std::size_t>& places) {
  std::vector<std::string> names;
  names.reserve(places.size());
  for (const std::size_t place : places) names.push_back(text::shell_word(shown_name(rows[place])));
  return Error{fmt::format("several tasks have the name '{}': type {}", name,
                           list_text(names, {.word = "or"}))};
}

/// "; 4 are :held", the selected tasks on hold where :waiting selects none; else empty.
std::string held_instead(TasksOfRun selection, const RunFacts& facts) {
  if (std::ranges::find(selection.states, report::TaskState::Waiting) == selection.states.end()) {
    return {};
  }
  selection.states = {report::TaskState::OnHold};
  const Result<std::unique_ptr<RunTasks>> tasks = facts.tasks_of(selection.run);
  if (!tasks) return {};
  const auto held = selected_tasks(**tasks, selection, SameName::MeansAll, facts);
  if (!held || held->empty()) return {};
  return fmt::format("; {} {} :held", held->size(), held->size() == 1 ? "is" : "are");
}

Result<std::vector<TasksOfRun>> read_all(const SelectionWords& words, bool is_one,
                                         const RunFacts& facts) {
  Result<ReadWords> read = read_words(words, facts);
  if (!read) return std::unexpected(std::move(read.error()));
  if (Result<void> taken = take_tasks_of_first(*read, words, is_one, facts); !taken) {
    return std::unexpected(std::move(taken.error()));
  }
  return selections_of(std::move(*read), words, facts);
}

}  // namespace

Result<std::vector<TasksOfRun>> read_selections(const SelectionWords& words,
                                                const RunFacts& facts) {
  return read_all(words, false, facts);
}

Result<TasksOfRun> read_selection(const SelectionWords& words, const RunFacts& facts) {
  Result<std::vector<TasksOfRun>> all = read_all(words, true, facts);
  if (!all) return std::unexpected(std::move(all.error()));
  return std::move(all->front());
}

Result<TasksOfRun> read_shown_selection(const SelectionWords& words, const RunFacts& facts) {
  if (words.words.size() != 1 || !words.run_directory.empty()) return read_selection(words, facts);
  const std::string& word = words.words.front();
  std::optional<Error> no_run;
  if (!word.empty() && !word.starts_with(':')) {
    Result<FoundRun> run = choose_run(word, words.when_several, facts);
    if (run) return TasksOfRun{std::move(*run)};
    no_run = std::move(run.error());
  }
  Result<TasksOfRun> selection = read_selection(words, facts);
  if (!selection && no_run) return std::unexpected(std::move(*no_run));
  if (!selection || selection->is_all()) return selection;
  // Before the run starts, a word that is not a run is a mistake.
  const Result<std::unique_ptr<RunTasks>> tasks = facts.tasks_of(selection->run);
  if (!tasks) {
    // The name of a job file is meant as that of its run.
    return std::unexpected(no_run && job::is_named_as_job(word) ? *no_run : tasks.error());
  }
  const auto selected = selected_tasks(**tasks, *selection, SameName::MeansAll, facts);
  if (!selected) return std::unexpected(selected.error());
  return selection;
}

std::set<model::TaskIndex> named_tasks(const TasksOfRun& selection,
                                       const std::vector<journal::TaskRow>& selected) {
  if (!selection.states.empty()) return {};
  const text::TaskChoice choice = choice_among(selected, selection.patterns);
  std::set<model::TaskIndex> named;
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.by_name && meant.tasks.size() == 1) named.insert(selected[meant.tasks.front()].index);
  }
  return named;
}

Result<std::vector<journal::TaskRow>> selected_tasks(RunTasks& tasks, const TasksOfRun& selection,
                                                     SameName same_name, const RunFacts& facts) {
  Result<std::vector<journal::TaskRow>> rows = rows_to_search(tasks, selection.patterns);
  if (!rows) return rows;
  const text::TaskChoice choice = choice_among(*rows, selection.patterns);
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.tasks.empty()) {
      return std::unexpected(no_such_task(tasks, selection, meant.text, *rows, facts));
    }
    if (meant.by_name && meant.tasks.size() > 1 && same_name == SameName::Refuse) {
      return std::unexpected(several_of_name(meant.text, *rows, meant.tasks));
    }
  }
  const std::vector<bool> chosen = choice.chosen();
  const bool over = tasks.is_over();
  std::vector<journal::TaskRow> selected;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!chosen[i]) continue;
    journal::TaskRow& row = (*rows)[i];
    if (over) report::mark_lost(row);
    const bool in_state = selection.states.empty() ||
                          std::ranges::any_of(selection.states, [&row](report::TaskState state) {
                            return report::is_in(row.standing, state);
                          });
    if (in_state) selected.push_back(std::move(row));
  }
  return selected;
}

std::string none_in_state(const TasksOfRun& selection, const RunFacts& facts) {
  std::string states;
  for (const report::TaskState state : selection.states) {
    states += fmt::format("{}:{}", states.empty() ? "" : " or ", report::task_state_word(state));
  }
  if (states.empty()) return fmt::format("'{}' has no tasks", selection.shown);
  return fmt::format("{} of '{}' is {}{}",
                     selection.patterns.empty() ? "no task" : "none of the selected tasks",
                     selection.shown, states, held_instead(selection, facts));
}

Error with_cure_of_interval(const SelectionWords& words, const Error& error) {
  if (words.words.empty()) return error;
  const std::string& last = words.words.back();
  if (!text::number_of(last) && !parse_duration(last)) return error;
  std::string line = "trainyard status --watch";
  for (const std::string& word : words.words | std::views::take(words.words.size() - 1)) {
    line += " " + text::shell_word(word);
  }
  if (!words.run_directory.empty()) line += " --run-dir " + text::shell_word(words.run_directory);
  return Error{fmt::format("{}; --watch takes no interval: type {}", error.message,
                           text::quoted_command(line))};
}

std::string how_to_name_all(std::string_view command, const TasksOfRun& selection) {
  return fmt::format("For all of them, type: trainyard {} {} '*'", command,
                     text::shell_word(selection.shown));
}

std::string names_and_what(const std::vector<journal::TaskRow>& tasks, std::string_view what) {
  constexpr std::size_t kNamedMax = 20;
  std::string text;
  for (const journal::TaskRow& task : tasks | std::views::take(kNamedMax)) {
    text += fmt::format("{} {}\n", report::plain(shown_name(task)), what);
  }
  if (tasks.size() > kNamedMax) text += fmt::format("and {} more\n", tasks.size() - kNamedMax);
  return text;
}

std::string names_and_words(const std::vector<journal::TaskRow>& tasks) {
  constexpr std::size_t kNamedMax = 3;
  std::string text;
  for (const journal::TaskRow& task : tasks | std::views::take(kNamedMax)) {
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", shown_name(task),
                        model::word_for(task.standing));
  }
  if (tasks.size() > kNamedMax) text += fmt::format(", and {} more", tasks.size() - kNamedMax);
  return text;
}

}  // namespace trainyard::app
