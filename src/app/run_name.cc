#include "app/run_name.h"

#include <algorithm>
#include <expected>
#include <ranges>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"
#include "job/program_as_job.h"
#include "run/run_numbers.h"
#include "text/file_name.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

constexpr std::string_view kRunNames = "a run is named by its number, name, directory or job file";

bool is_bare_name(std::string_view word) {
  return !word.empty() && !word.contains('/') && !word.starts_with('.');
}

/// Orders the runs of one name: active runs first, then those that wait in the queue, then the
/// latest. A run that has never started counts by the time when it was submitted.
void order_named(std::vector<KnownRun>& runs) {
  const auto key = [](const KnownRun& run) {
    const std::int64_t started = run.started_ms != 0 ? run.started_ms : run.created_ms;
    return std::tuple(run.is_running, run.is_queued, run.is_queued ? run.number : 0U, started);
  };
  std::ranges::sort(runs, [&key](const KnownRun& a, const KnownRun& b) {
    return key(a) != key(b) ? key(b) < key(a) : a.directory < b.directory;
  });
}

Error no_such_run(const std::string& word, const RunFacts& facts) {
  if (std::optional<Error> unknown = unknown_number(word, facts)) return std::move(*unknown);
  const PathKind kind = facts.kind_of(word);
  if (kind == PathKind::Missing) {
    if (job::is_named_as_job(word)) return no_such_job_file(word);
    if (is_bare_name(word)) return Error{fmt::format("run '{}' not found; {}", word, kRunNames)};
  }
  return Error{
      fmt::format("no run found in '{}': {}", word,
                  kind == PathKind::Directory ? "it has no journal" : "no such directory")};
}

Error no_run_here(const std::string& word, const RunFacts& facts) {
  if (!word.empty()) return Error{fmt::format("no run of '{}' found", word)};
  const std::optional<KnownRun> last = facts.last();
  return Error{
      fmt::format("no run found under ./runs: name a run number, a run directory or a job file{}",
                  last ? "; your last run is " + last->name() : "")};
}

struct Candidates {
  std::vector<KnownRun> runs;
  bool is_elsewhere = false;  ///< See FoundRun.
};

/// The runs that a word stands for; may be none, as for a job file that has never run.
Result<Candidates> candidates_of(const std::string& word, const RunFacts& facts) {
  const std::optional<std::uint32_t> number = run::read_run_number(word);
  const std::optional<KnownRun> numbered = number ? facts.of_number(*number) : std::nullopt;
  const std::optional<KnownRun> at_path = facts.in(word);
  if (numbered && at_path && numbered->real != at_path->real) {
    return std::unexpected(
        Error{fmt::format("'{}' is ambiguous: the number of the run in '{}', and the directory of "
                          "the run in './{}'; name the directory",
                          word, numbered->directory, word)});
  }
  if (numbered && numbered->is_gone) {
    return std::unexpected(Error{
        fmt::format("run {} not found: '{}' no longer contains it", word, numbered->directory)});
  }
  if (at_path) return Candidates{.runs = {*at_path}};
  if (numbered) return Candidates{.runs = {*numbered}};
  // A directory that has runs in it is itself, whatever runs elsewhere are called.
  const bool has_runs = facts.has_runs_in(word);
  if (!number && is_bare_name(word)) {
    std::vector<KnownRun> here = facts.here_named(word);
    if (!here.empty()) return Candidates{.runs = std::move(here)};
    std::vector<KnownRun> elsewhere;
    if (!has_runs) elsewhere = facts.anywhere_named(word);
    if (!elsewhere.empty()) return Candidates{.runs = std::move(elsewhere), .is_elsewhere = true};
  }
  if (has_runs) return Candidates{.runs = facts.below(word)};
  if (facts.kind_of(word) != PathKind::File) return std::unexpected(no_such_run(word, facts));
  Result<std::vector<KnownRun>> of_job = facts.of_job(word);
  if (!of_job) {
    Error error = std::move(of_job.error());
    // A file that is no job file has no runs.
    if (job::is_named_as_job(word)) {
      error.message += "; to name its run, use its number, name or directory";
    }
    return std::unexpected(std::move(error));
  }
  return Candidates{.runs = std::move(*of_job)};
}

/// Names the first few of the active runs, which come first in `runs`, and the words that mean one
/// of them alone. `word` means all of them; empty: none was typed.
template <class IsActive>
Error several_active(const std::vector<KnownRun>& runs, const std::string& word,
                     IsActive is_active) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  std::vector<std::string> words;
  std::size_t more = 0;
  bool some_wait = false;
  for (const KnownRun& run : runs | std::views::take_while(is_active)) {
    some_wait = some_wait || !run.is_running;
    if (names.size() == kShown) {
      ++more;
      continue;
    }
    names.push_back(run.name());
    words.push_back(run.own_word());
  }
  if (more > 0) {
    names.push_back(fmt::format("{} more", more));
    words.emplace_back("the number of another one");
  }
  const std::string any = list_text(words, {.word = "or"});
  return Error{fmt::format("several runs{} are active{}: {}; {}",
                           word.empty() ? "" : fmt::format(" of '{}'", word),
                           some_wait ? " or in your queue" : "", list_text(names),
                           word.empty() ? "name one of them: " + any
                                        : fmt::format("type {} instead of '{}'", any, word))};
}

/// Asks which of several ended runs is meant, and names the first two.
Error several_found(const std::vector<KnownRun>& runs) {
  return Error{fmt::format(
      "several runs found: {}, {}{}; a command that changes a run needs its number or directory",
      runs.at(0).name(), runs.at(1).name(), runs.size() > 2 ? ", ..." : "")};
}

}  // namespace

std::string KnownRun::name() const {
  return number != 0 ? fmt::format("run {} ('{}')", number, shown) : fmt::format("'{}'", shown);
}

std::string KnownRun::own_word() const {
  return number != 0 ? std::to_string(number) : text::shell_word(shown);
}

void order_by_age(std::vector<KnownRun>& runs) {
  std::ranges::sort(runs, [](const KnownRun& a, const KnownRun& b) {
    return std::tie(b.created_ms, b.number, a.directory) <
           std::tie(a.created_ms, a.number, b.directory);
  });
}

void order_by_start(std::vector<KnownRun>& runs) {
  std::ranges::sort(runs, [](const KnownRun& a, const KnownRun& b) {
    return std::tie(b.is_running, b.started_ms, a.directory) <
           std::tie(a.is_running, a.started_ms, b.directory);
  });
}

Result<FoundRun> choose_run(const std::string& word, WhenSeveral when_several,
                            const RunFacts& facts) {
  const bool is_last = word == text::kLastRun && facts.kind_of(word) == PathKind::Missing &&
                       facts.here_named(word).empty();
  Candidates candidates;
  if (word.empty() || is_last) {
    candidates.runs = facts.here();
  } else {
    Result<Candidates> named = candidates_of(word, facts);
    if (!named) return std::unexpected(std::move(named.error()));
    candidates = std::move(*named);
  }
  std::vector<KnownRun>& runs = candidates.runs;
  if (runs.empty()) return std::unexpected(no_run_here(is_last ? "" : word, facts));
  FoundRun found{.run = {}, .named = word, .is_elsewhere = candidates.is_elsewhere};
  const auto take_first = [&runs, &found] {
    found.run = runs.front().directory;
    found.name = runs.front().name();
    found.shown = runs.front().shown;
    found.number = runs.front().number;
    return std::move(found);
  };
  if (is_last || when_several == WhenSeveral::TakeNewest) {
    order_by_age(runs);
    if (!is_last) found.candidates = runs.size();
    found.is_newest = true;
    return take_first();
  }
  order_by_start(runs);
  // If no run has started, only runs in the queue can be meant.
  const bool some_started = runs.front().is_running || runs.front().started_ms != 0;
  const bool by_start = word.empty() && some_started;
  if (!by_start) order_named(runs);
  const auto is_active = [by_start](const KnownRun& run) {
    return by_start ? run.is_running : run.is_active();
  };
  const bool refuses = when_several != WhenSeveral::TakeLatest;
  if (refuses && runs.size() > 1 && is_active(runs[1])) {
    return std::unexpected(several_active(runs, word, is_active));
  }
  const bool guessed = runs.size() > 1 && !is_active(runs.front());
  if (guessed && when_several == WhenSeveral::Refuse) return std::unexpected(several_found(runs));
  if (refuses && candidates.is_elsewhere) {
    return std::unexpected(
        Error{fmt::format("'{0}' is {1}, and no run of this directory has this name; type {2} "
                          "instead of '{0}'",
                          word, runs.front().name(), runs.front().own_word())});
  }
  if (guessed) found.candidates = runs.size();
  const auto is_newer = [&runs](const KnownRun& run) { return run.number > runs.front().number; };
  const auto queued = std::ranges::find_if(runs, &KnownRun::is_queued);
  if (!word.empty() && queued != runs.end() && is_newer(*queued)) {
    found.newer_in_queue = queued->name();
  }
  const auto unreadable = std::ranges::find_if(runs, [&is_newer](const KnownRun& run) {
    return run.is_unreadable && !run.is_active() && is_newer(run);
  });
  if (word.empty() && unreadable != runs.end()) found.unreadable = unreadable->name();
  return take_first();
}

Result<std::vector<std::string>> newest_and_concurrent_runs(const RunFacts& facts) {
  std::vector<KnownRun> runs = facts.here();
  if (runs.empty()) return std::unexpected(no_run_here("", facts));
  order_by_age(runs);
  const std::int64_t newest_ms = runs.front().created_ms;
  std::vector<std::string> directories;
  for (KnownRun& run : runs) {
    if (directories.empty() || run.is_active() || run.ended_ms > newest_ms) {
      directories.push_back(std::move(run.directory));
    }
  }
  return directories;
}

bool names_run(const std::string& word, const RunFacts& facts) {
  if (word == text::kLastRun) return true;
  if (const auto number = run::read_run_number(word)) return facts.of_number(*number).has_value();
  return is_bare_name(word) &&
         (!facts.anywhere_named(word).empty() || !facts.here_named(word).empty());
}

std::optional<Error> unknown_number(std::string_view word, const RunFacts& facts) {
  const std::optional<std::uint32_t> number = run::read_run_number(word.substr(0, word.find('/')));
  if (!number || facts.of_number(*number)) return std::nullopt;
  const std::optional<KnownRun> last = facts.last();
  return Error{
      fmt::format("run {} not found{}", *number, last ? "; the last one is " + last->name() : "")};
}

Error no_such_job_file(const std::string& word) {
  return Error{fmt::format("job file '{}' not found; {}", word, kRunNames)};
}

Error with_cure_of_list(const std::string& word, std::string_view before, Error error) {
  if (!word.contains(',')) return error;
  error.message += "; name each run by itself:";
  for (const auto part : std::views::split(word, ',')) {
    const std::string run(std::string_view{part});
    if (!run.empty()) error.message += fmt::format(" {}{}", before, text::shell_word(run));
  }
  return error;
}

Result<std::vector<FoundRun>> needed_runs(const std::vector<std::string>& words,
                                          const RunFacts& facts) {
  std::vector<FoundRun> needed;
  for (const std::string& word : words) {
    const auto wrong = [&word](std::string_view why) {
      return std::unexpected(Error{fmt::format("--needs {}: {}", word, why)});
    };
    if (word.empty()) return wrong("'' is not the name of a run");
    if (const auto unknown = unknown_number(word, facts)) return wrong(unknown->message);
    if (const auto number = run::read_run_number(word)) {
      needed.push_back({.run = {}, .number = *number});
      continue;
    }
    Result<FoundRun> found = choose_run(word, WhenSeveral::TakeNewest, facts);
    if (!found) return wrong(with_cure_of_list(word, "--needs ", found.error()).message);
    if (found->number == 0) return wrong("it has no number");
    needed.push_back(*std::move(found));
  }
  return needed;
}

Error nothing_to_wait_for(const std::string& word, Error why, const RunFacts& facts) {
  const std::string run = word.substr(0, word.find('/'));
  if (run == word || !names_run(run, facts)) return with_cure_of_list(word, "", std::move(why));
  return Error{fmt::format("'{}' is not a run: {} waits for the whole run", word,
                           text::quoted_command("trainyard wait " + text::shell_word(run)))};
}

std::string name_of_latest(std::string_view name, std::size_t candidates) {
  return fmt::format("{}, the latest of {} runs", name, candidates);
}

std::string which_run_note(const FoundRun& found) {
  if (!found.unreadable.empty()) {
    return fmt::format("the journal of {} cannot be read; this is {}", found.unreadable,
                       found.name);
  }
  const bool is_path = !is_bare_name(found.named) || job::is_named_as_job(found.named);
  const bool is_sure = found.candidates < 2 && found.newer_in_queue.empty() && !found.is_elsewhere;
  if (is_path || is_sure) return {};
  std::string text = fmt::format("'{}' is ", found.named);
  if (!found.newer_in_queue.empty()) {
    text +=
        fmt::format("{}, which is active; {} is in your queue", found.name, found.newer_in_queue);
  } else {
    text += found.candidates < 2 ? found.name
            : found.is_newest
                ? fmt::format("{}, the one created last of {} runs", found.name, found.candidates)
                : name_of_latest(found.name, found.candidates);
  }
  if (found.is_elsewhere) text += "; no run of this directory has this name";
  return text;
}

}  // namespace trainyard::app
