#include "cli/selection.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/known_runs.h"
#include "cli/selection_words.h"
#include "job/program_as_job.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "report/task_state.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "text/shell_quote.h"
#include "text/task_pattern.h"

namespace trainyard::cli {
namespace {

/// The run that begins a word, and what the word says of its tasks.
struct RunInWord {
  std::string word;  ///< All of it.
  std::string run;   ///< As find_run() takes it.
  std::string tasks;
  bool is_path = false;  ///< A word that nobody would use for a task: it has a slash, or is a file.
};

/// A run by its path, with the tasks behind it: "runs/digits/train/lr=0.1".
std::optional<RunInWord> path_in(const std::string& word) {
  constexpr int kSlashesOfTask = 2;
  std::string path = word;
  std::string tasks;
  for (int i = 0; i <= kSlashesOfTask; ++i) {
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(path, ignored);
    // A directory of tasks, within a run, looks like a run that has lost its journal.
    const bool has_run = tasks.empty() ? is_run(path) || holds_run_directories(path)
                                       : std::filesystem::exists(run::journal_path(path), ignored);
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

std::optional<RunInWord> run_in(const std::string& word) {
  if (std::optional<RunInWord> path = path_in(word)) return path;
  const std::size_t slash = std::min(word.find('/'), word.size());
  const std::string name = word.substr(0, slash);
  if (!names_run(name)) return std::nullopt;
  return RunInWord{
      .word = word, .run = name, .tasks = word.substr(std::min(slash + 1, word.size()))};
}

/// The meaning of each word by itself.
struct ReadWords {
  std::vector<RunInWord> runs;
  std::vector<text::TaskPattern> patterns;
  std::vector<report::TaskState> states;
};

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

Result<ReadWords> read_words(const SelectionWords& all) {
  ReadWords read;
  for (const std::string& typed : all.words) {
    if (typed.empty()) return std::unexpected(Error{"'' is not the name of a run or a task"});
    const std::string word = without_mark(typed);
    if (word.starts_with(':')) {
      const Result<report::TaskState> state = report::read_task_state(word.substr(1));
      if (!state) return std::unexpected(state.error());
      read.states.push_back(*state);
      continue;
    }
    if (std::optional<RunInWord> run = all.run_directory.empty() ? run_in(word) : std::nullopt) {
      read.runs.push_back(std::move(*run));
      continue;
    }
    if (Result<void> added = add_pattern(word, read.patterns); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return read;
}

/// The tasks of a run that a word means, all of them where there is no word; none where it means
/// nothing there.
std::vector<model::TaskIndex> tasks_meant(const std::string& run, const std::string& word) {
  Result<journal::JournalReader> reader = open_run(run);
  TasksOfRun meant{.run = run, .patterns = {}, .states = {}};
  if (!reader || (!word.empty() && !add_pattern(word, meant.patterns))) return {};
  return tasks_of_patterns(*reader, meant);
}

/// Whether a word means a task of this run. In the run that the word itself may stand for, a name
/// of its group means the same: all of it.
bool means_a_task(const std::string& run, const std::string& word, bool of_itself) {
  Result<journal::JournalReader> reader = open_run(run);
  const Result<text::TaskPattern> pattern = text::TaskPattern::read(word);
  if (!reader || !pattern) return false;
  const Result<journal::JournalReader::Lookup> lookup = reader->look_up(word);
  if (of_itself || (lookup && !lookup->found.empty())) return lookup && !lookup->found.empty();
  return !tasks_meant(run, word).empty();
}

bool may_have_tasks(const std::string& run) {
  std::error_code ignored;
  return std::filesystem::exists(run::journal_path(run), ignored);
}

/// The first word that selects no task in any run here, so that no run need be named for it.
/// Nothing if one of the runs has no tasks yet: it may have such a task.
std::optional<std::string> word_without_meaning(const std::vector<text::TaskPattern>& patterns) {
  const std::vector<std::string> runs = runs_here();
  if (!std::ranges::all_of(runs, may_have_tasks)) return std::nullopt;
  const auto means_nothing = [&runs](const text::TaskPattern& pattern) {
    return std::ranges::none_of(runs, [&pattern](const std::string& run) {
      return !tasks_meant(run, pattern.text()).empty();
    });
  };
  const auto found = std::ranges::find_if(patterns, means_nothing);
  if (runs.empty() || found == patterns.end()) return std::nullopt;
  return found->text();
}

/// "a group" or "a task", of what a word means in this run.
std::string_view kind_meant(const std::string& run, const std::string& word) {
  Result<journal::JournalReader> reader = open_run(run);
  const Result<std::vector<journal::GroupRow>> groups =
      reader ? reader->groups() : std::unexpected(reader.error());
  const bool is_group =
      groups && std::ranges::find(*groups, word, &journal::GroupRow::name) != groups->end();
  return is_group ? "a group" : "a task";
}

/// A number or a bare name of a run may be a task of the run that is taken without a name.
Result<void> check_not_a_task(const RunInWord& word) {
  if (word.is_path) return {};
  const Result<std::string> other = find_run({});
  const Result<std::string> run = find_run(word.run);
  if (!other || !run || !means_a_task(*other, word.word, *other == *run)) return {};
  // "sweep/lr=1" of the run sweep and of its group sweep are the same, and so are the run vit and
  // its only task vit.
  if (*other == *run && tasks_meant(*run, word.tasks) == tasks_meant(*run, word.word)) return {};
  const std::string_view kind = kind_meant(*other, word.word);
  return std::unexpected(Error{
      fmt::format("'{}' is ambiguous: {}, and {} of {}; write '--run-dir {}' for the "
                  "run, or '--run-dir {} {}' for {}",
                  word.word, name_of_run(*run), kind, name_of_run(*other),
                  text::shell_word(seen_from_here(*run)), text::shell_word(seen_from_here(*other)),
                  text::shell_word(word.word), kind == "a group" ? "the group" : "the task")});
}

/// Whether a word means tasks of the run that is taken without a name. This is "train/lr=0.1" as
/// its table shows the task, also if a run has the name of its group, and "train" if only runs of
/// other directories have this name.
bool is_of_current_run(const RunInWord& word) {
  if (word.is_path || run::read_run_number(word.run)) return false;
  const Result<std::string> current = find_run({});
  const Result<FoundRun> named = choose_run(word.run, WhenSeveral::TakeLatest);
  if (word.tasks.empty() && !(named && named->is_elsewhere)) return false;
  return current && means_a_task(*current, word.word, named && named->directory == *current);
}

/// One run may be named by several words: of it the tasks of any of them, or all.
Result<void> add_selected(FoundRun run, const RunInWord& word, const ReadWords& read,
                          std::vector<TasksOfRun>& selections) {
  const auto known = std::ranges::find(selections, run.directory, &TasksOfRun::run);
  if (known == selections.end()) {
    TasksOfRun& added = selections.emplace_back(TasksOfRun{.run = std::move(run.directory),
                                                           .patterns = read.patterns,
                                                           .states = read.states,
                                                           .candidates = run.candidates,
                                                           .named = word.run,
                                                           .newer_in_queue = run.newer_in_queue,
                                                           .is_elsewhere = run.is_elsewhere});
    return word.tasks.empty() ? Result<void>() : add_pattern(word.tasks, added.patterns);
  }
  const bool has_own_tasks = known->patterns.size() > read.patterns.size();
  if (word.tasks.empty()) known->patterns = read.patterns;
  return word.tasks.empty() || !has_own_tasks ? Result<void>()
                                              : add_pattern(word.tasks, known->patterns);
}

/// A name means the latest of its runs, not the one in runs/<name>. An error where another word
/// names that latest run too: the table would lack one of the two runs that are meant.
Result<void> check_named_once(const std::vector<RunInWord>& words,
                              const std::vector<std::string>& runs) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string own = fmt::format("runs/{}", words[i].run);
    if (words[i].is_path || !holds_run(own)) continue;
    if (run::real_directory(own) == run::real_directory(runs[i])) continue;
    for (std::size_t j = 0; j < words.size(); ++j) {
      if (runs[j] != runs[i] || words[j].run == words[i].run) continue;
      return std::unexpected(Error{
          fmt::format("'{}' and '{}' both mean {}; type {} for the run in that directory",
                      words[i].run, words[j].run, name_of_run(runs[i]), text::shell_word(own))});
    }
  }
  return {};
}

/// An error for a directory without a run among the words, where `run`, which is taken without a
/// name, has no tasks that can be read either: that run is not meant. Empty: there is none.
Result<void> check_no_directory_named(const std::vector<text::TaskPattern>& patterns,
                                      const std::string& run) {
  for (const text::TaskPattern& pattern : patterns) {
    std::error_code ignored;
    const bool is_directory =
        pattern.text().contains('/') && std::filesystem::is_directory(pattern.text(), ignored);
    if (!is_directory || (!run.empty() && open_run(run))) continue;
    if (const auto named = find_run(pattern.text()); !named) return std::unexpected(named.error());
  }
  return {};
}

Result<std::vector<TasksOfRun>> selections_of(ReadWords read, const SelectionWords& words) {
  // Next to a word for all tasks, a word is their run.
  const bool has_all =
      std::ranges::find(read.patterns, "*", &text::TaskPattern::text) != read.patterns.end();
  if (!has_all && std::ranges::all_of(read.runs, is_of_current_run)) {
    for (const RunInWord& word : std::exchange(read.runs, {})) {
      if (Result<void> added = add_pattern(word.word, read.patterns); !added) {
        return std::unexpected(std::move(added.error()));
      }
    }
  }
  std::vector<TasksOfRun> selections;
  std::vector<std::string> directories;
  for (const RunInWord& word : read.runs) {
    // Next to another run, too, the word is a run.
    const bool may_be_task = read.runs.size() == 1 && !has_all;
    Result<void> sure = may_be_task ? check_not_a_task(word) : Result<void>();
    if (!sure) return std::unexpected(std::move(sure.error()));
    Result<FoundRun> run = choose_run(word.run, words.when_several);
    if (!run) return std::unexpected(std::move(run.error()));
    directories.push_back(run->directory);
    if (Result<void> added = add_selected(std::move(*run), word, read, selections); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  if (Result<void> once = check_named_once(read.runs, directories); !once) {
    return std::unexpected(std::move(once.error()));
  }
  if (!selections.empty()) return selections;
  Result<FoundRun> run = choose_run(words.run_directory, words.when_several);
  if (words.run_directory.empty()) {
    Result<void> named = check_no_directory_named(read.patterns, run ? run->directory : "");
    if (!named) return std::unexpected(std::move(named.error()));
  }
  if (!run && words.run_directory.empty()) {
    for (const text::TaskPattern& pattern : read.patterns) {
      if (const auto number = unknown_number_in(pattern.text())) {
        return std::unexpected(no_run_of_number(*number));
      }
      std::error_code ignored;
      if (job::is_named_as_job(pattern.text()) &&
          !std::filesystem::exists(pattern.text(), ignored)) {
        return std::unexpected(no_such_job_file(pattern.text()));
      }
    }
    if (const auto word = word_without_meaning(read.patterns)) {
      return std::unexpected(
          Error{fmt::format("no run has the name '{}', and no run here has such a task{}", *word,
                            selection_instead(*word))});
    }
  }
  if (!run) return std::unexpected(std::move(run.error()));
  return std::vector{TasksOfRun{.run = std::move(run->directory),
                                .patterns = std::move(read.patterns),
                                .states = std::move(read.states),
                                .candidates = run->candidates,
                                .named = words.run_directory,
                                .newer_in_queue = std::move(run->newer_in_queue),
                                .unreadable = std::move(run->unreadable),
                                .is_elsewhere = run->is_elsewhere}};
}

/// Whether the shell may have put this word in the place of '*'.
bool is_name_here(const std::string& word) {
  std::error_code ignored;
  return !word.contains('/') && std::filesystem::exists(word, ignored);
}

/// The position of the run whose tasks the other words may be: the first word that can be nothing
/// else than a run, or the first.
std::size_t place_of_run(const std::vector<RunInWord>& runs) {
  const auto sure = std::ranges::find_if(runs, &RunInWord::is_path);
  return sure == runs.end() ? 0 : static_cast<std::size_t>(sure - runs.begin());
}

/// Where several runs may be named: next to the first of them, a word that means a task of that run
/// is the task, as where one run is allowed.
Result<void> take_tasks_of_run(ReadWords& read, WhenSeveral when_several) {
  if (read.runs.size() < 2) return {};
  const RunInWord kept = read.runs[place_of_run(read.runs)];
  const Result<FoundRun> run = choose_run(kept.run, when_several);
  if (!run) return std::unexpected(run.error());
  std::vector<RunInWord> runs;
  for (RunInWord& word : read.runs) {
    const bool is_run =
        word.is_path || word.run == kept.run || !means_a_task(run->directory, word.word, false);
    if (is_run) {
      runs.push_back(std::move(word));
    } else if (Result<void> added = add_pattern(word.word, read.patterns); !added) {
      return added;
    }
  }
  read.runs = std::move(runs);
  return {};
}

/// Keeps one run where several words may be a run. The others are tasks, unless they can only be
/// runs.
Result<void> keep_one_run(ReadWords& read) {
  if (read.runs.size() < 2) return {};
  const std::size_t kept = place_of_run(read.runs);
  for (std::size_t i = 0; i < read.runs.size(); ++i) {
    if (i == kept) continue;
    if (read.runs[i].is_path) {
      const std::string &first = read.runs[kept].word, &second = read.runs[i].word;
      const bool may_be_star = is_name_here(first) && is_name_here(second);
      return std::unexpected(
          Error{fmt::format("only one run is allowed here, not '{}' and '{}'{}", first, second,
                            may_be_star ? "; for all tasks, write '*' in quotes" : "")});
    }
    if (Result<void> added = add_pattern(read.runs[i].word, read.patterns); !added) return added;
  }
  read.runs = {read.runs[kept]};
  return {};
}

}  // namespace

Result<std::vector<TasksOfRun>> read_selections(const SelectionWords& words) {
  Result<ReadWords> read = read_words(words);
  if (!read) return std::unexpected(std::move(read.error()));
  if (Result<void> taken = take_tasks_of_run(*read, words.when_several); !taken) {
    return std::unexpected(std::move(taken.error()));
  }
  return selections_of(std::move(*read), words);
}

Result<TasksOfRun> read_selection(const SelectionWords& words) {
  Result<ReadWords> read = read_words(words);
  if (!read) return std::unexpected(std::move(read.error()));
  if (Result<void> one = keep_one_run(*read); !one) return std::unexpected(std::move(one.error()));
  Result<std::vector<TasksOfRun>> all = selections_of(std::move(*read), words);
  if (!all) return std::unexpected(std::move(all.error()));
  return std::move(all->front());
}

}  // namespace trainyard::cli
