#include "cli/find_run.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"
#include "base/path_name.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/known_runs.h"
#include "cli/load_options.h"
#include "cli/queued_runs.h"
#include "job/program_as_job.h"
#include "run/begun.h"
#include "run/queue_files.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "settings/configuration.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "text/file_name.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

struct KnownRun {
  std::string directory;
  std::uint32_t number = 0;  ///< 0: it has none on this host.
  bool lives = false;
  bool waits = false;       ///< The queue has still to begin it, or to resume it.
  bool unreadable = false;  ///< It has a journal, which cannot be read.
  /// When its last execution began; 0 for a journal that cannot be read. Looking at a run, or
  /// trying to start one in its place, does not change this, as it does the times of its files.
  std::int64_t started_unix_ms = 0;
  std::int64_t submitted_unix_ms = 0;  ///< Or when its first execution began.

  [[nodiscard]] bool is_active() const { return lives || waits; }
};

/// Numbers of runs by their directories: read once for many.
std::map<std::string, std::uint32_t> numbers_of_runs() {
  std::map<std::string, std::uint32_t> numbers;
  const Result<run::RunNumbers> known = run::RunNumbers::of_this_user();
  if (!known) return numbers;
  for (run::RunNumbers::Numbered& run : known->all()) {
    numbers.emplace(std::move(run.directory), run.number);
  }
  return numbers;
}

KnownRun look_at_run(std::string directory, std::uint32_t number) {
  KnownRun run{.directory = std::move(directory), .number = number};
  run.lives = sys::RunLock::holder(run.directory).has_value();
  run.waits = number != 0 && !run.lives && goes_on_in_queue(run.directory, number);
  run.submitted_unix_ms = run::read_mark(run.directory).submitted_unix_ms;
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run.directory));
  if (!reader) {
    std::error_code ignored;
    run.unreadable = fs::exists(run::journal_path(run.directory), ignored);
    // The mark is gone with the directory of a submission.
    if (run.submitted_unix_ms == 0) run.submitted_unix_ms = time_of_submission(number);
    return run;
  }
  if (const auto executions = reader->executions(); executions && !executions->empty()) {
    run.started_unix_ms = executions->back().started_unix_ms;
    if (run.submitted_unix_ms == 0) run.submitted_unix_ms = executions->front().started_unix_ms;
  }
  return run;
}

/// The directories that hold a run, or were made for a submission in the queue, each once, in no
/// order.
std::vector<KnownRun> runs_in(const std::vector<std::string>& directories) {
  const std::map<std::string, std::uint32_t> numbers = numbers_of_runs();
  std::set<std::string> seen;
  std::vector<KnownRun> runs;
  for (const std::string& directory : directories) {
    std::string real = run::real_directory(directory);
    const auto number = numbers.find(real);
    const bool is_run = holds_run(directory) ||
                        (number != numbers.end() && is_known_without_directory(number->second));
    if (!is_run || !seen.insert(real).second) continue;
    runs.push_back(look_at_run(directory, number == numbers.end() ? 0 : number->second));
  }
  return runs;
}

/// Puts active runs first, then the latest.
void order_by_start(std::vector<KnownRun>& runs) {
  std::ranges::sort(runs, [](const KnownRun& a, const KnownRun& b) {
    return std::tie(b.lives, b.started_unix_ms, a.directory) <
           std::tie(a.lives, a.started_unix_ms, b.directory);
  });
}

/// Orders the runs of one name: active runs first, then those that wait in the queue, then the
/// latest. A run that has never begun counts by the time when it was submitted.
void order_named(std::vector<KnownRun>& runs) {
  const auto key = [](const KnownRun& run) {
    const std::int64_t begun =
        run.started_unix_ms != 0 ? run.started_unix_ms : run.submitted_unix_ms;
    return std::tuple(run.lives, run.waits, run.waits ? run.number : 0U, begun);
  };
  std::ranges::sort(runs, [&key](const KnownRun& a, const KnownRun& b) {
    return key(a) != key(b) ? key(b) < key(a) : a.directory < b.directory;
  });
}

/// The newest first.
void order_by_age(std::vector<KnownRun>& runs) {
  std::ranges::sort(runs, [](const KnownRun& a, const KnownRun& b) {
    return std::tie(b.submitted_unix_ms, b.number, a.directory) <
           std::tie(a.submitted_unix_ms, a.number, b.directory);
  });
}

std::vector<std::string> directories_in(const std::string& parent) {
  std::vector<std::string> directories;
  for (const std::string& name : sys::names_in(parent)) {
    directories.push_back(fmt::format("{}/{}", parent, name));
  }
  return directories;
}

/// The places of runs of this directory: in it, in the configured directory of runs, and others
/// that were started or submitted from here, as with a job file in another directory.
std::vector<std::string> places_of_here(const std::string& here) {
  std::vector<std::string> directories = directories_in(here + "/runs");
  std::ranges::move(started_from(here), std::back_inserter(directories));
  const auto configuration =
      settings::load_configuration({.config_file = {}, .settings = {}, .current_directory = here});
  if (!configuration) return directories;
  const std::string& workdir = configuration->text(settings::Setting::Workdir);
  if (workdir == "auto" || workdir == here) return directories;
  std::ranges::move(directories_in(workdir + "/runs"), std::back_inserter(directories));
  return directories;
}

std::vector<std::string> named_here(const std::string& name, const std::string& here) {
  std::vector<std::string> directories = places_of_here(here);
  // The directory of a submission that waits may be gone.
  const std::string runs = run::real_directory(here + "/runs");
  for (std::string& each : known_runs(name)) {
    if (fs::path(each).parent_path() == runs) directories.push_back(std::move(each));
  }
  std::erase_if(directories, [&name](const std::string& each) {
    return !has_name(each, name) || !is_run(each);
  });
  return directories;
}

bool is_bare_name(const std::string& named) {
  return !named.contains('/') && !named.starts_with('.');
}

/// Whether the word means the newest run here, and not a file of that name.
bool means_last(const std::string& named, const std::string& here) {
  std::error_code ignored;
  return named == text::kLastRun && !fs::exists(absolute_path(named, here), ignored) &&
         named_here(named, here).empty();
}

/// The directories of the runs of a job. 'runs/net-3' may be the third of the job 'net', and the
/// first of the job 'net-3'.
std::vector<std::string> paths_of_job(const job::JobRuns& job) {
  std::vector<std::string> places = run::run_directories_like(job.first);
  std::erase_if(places, [&job](const std::string& place) { return !is_run_of(place, job); });
  return places;
}

constexpr std::string_view kRunNames = "a run is named by its number, name, directory or job file";

Error no_such_run(const std::string& named, const std::string& path) {
  std::error_code ignored;
  if (const auto number = unknown_number_in(named)) return no_run_of_number(*number);
  if (!fs::exists(path, ignored)) {
    if (job::is_named_as_job(named)) return no_such_job_file(named);
    if (is_bare_name(named)) return Error{fmt::format("run '{}' not found; {}", named, kRunNames)};
  }
  return Error{
      fmt::format("no run found in '{}': {}", named,
                  fs::is_directory(path, ignored) ? "it has no journal" : "no such directory")};
}

/// The directories of the runs that a word stands for.
struct Places {
  std::vector<std::string> directories;
  bool is_elsewhere = false;  ///< See FoundRun.
};

/// The directories of runs with this number or name; an error if a directory of this name is
/// another run.
Result<Places> places_known_as(const std::string& named, const std::string& path) {
  std::vector<std::string> known = known_runs(named);
  const std::optional<std::uint32_t> number = run::read_run_number(named);
  const bool is_number = number && !known.empty();
  if (is_number && holds_run(path) && known.front() != run::real_directory(path)) {
    return std::unexpected(
        Error{fmt::format("'{}' is ambiguous: the number of the run in '{}', and the directory of "
                          "the run in './{}'; name the directory",
                          named, known.front(), named)});
  }
  if (is_number && !holds_run(known.front()) && !is_known_without_directory(*number)) {
    return std::unexpected(
        Error{fmt::format("run {} not found: '{}' no longer contains it", named, known.front())});
  }
  if (is_run(path)) return Places{.directories = {path}};
  if (number || !is_bare_name(named)) return Places{.directories = std::move(known)};
  std::vector<std::string> here = named_here(named, fs::path(path).parent_path().string());
  // A directory that has runs in it is itself, whatever runs elsewhere are called.
  const bool is_elsewhere = here.empty() && !known.empty() && !holds_run_directories(path);
  return Places{.directories = std::move(is_elsewhere ? known : here),
                .is_elsewhere = is_elsewhere};
}

/// The directories that a name stands for; `path` is the name as an absolute path.
Result<Places> places_of(const std::string& named, const std::string& path) {
  std::error_code ignored;
  Result<Places> known = places_known_as(named, path);
  if (!known || !known->directories.empty()) return known;
  if (holds_run_directories(path)) return Places{.directories = directories_in(path + "/runs")};
  if (!fs::is_regular_file(path, ignored)) return std::unexpected(no_such_run(named, path));
  const Result<job::LoadOptions> options = load_options(named, {}, {}, {});
  if (!options) return std::unexpected(options.error());
  const Result<job::JobRuns> job = job::Job::runs_of(*options);
  if (!job) return std::unexpected(job.error());
  return Places{.directories = paths_of_job(*job)};
}

/// The word that means this run alone, to type in a command.
std::string own_word(const KnownRun& run) {
  return run.number != 0 ? fmt::format("{}", run.number)
                         : text::shell_word(seen_from_here(run.directory));
}

/// Names the first few of the active runs, which come first in `runs`, and the words that mean one
/// of them alone. `named` is the word that means all of them; empty: none was typed.
template <class IsActive>
Error several_active(const std::vector<KnownRun>& runs, const std::string& named,
                     IsActive is_active) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  std::vector<std::string> words;
  std::size_t more = 0;
  bool some_wait = false;
  for (const KnownRun& run : runs) {
    if (!is_active(run)) break;
    some_wait = some_wait || !run.lives;
    if (names.size() == kShown) {
      ++more;
      continue;
    }
    names.push_back(name_of_run(run.directory));
    words.push_back(own_word(run));
  }
  if (more > 0) {
    names.push_back(fmt::format("{} more", more));
    words.emplace_back("the number of another one");
  }
  return Error{fmt::format(
      "several runs{} are active{}: {}; type {}{}",
      named.empty() ? "" : fmt::format(" of '{}'", named), some_wait ? " or in your queue" : "",
      list_text(names), list_text(words, {.word = "or"}),
      named.empty() ? " to name one" : fmt::format(" instead of '{}'", named))};
}

/// Asks which of several runs is meant, of which it names the first two.
Error several_found(const std::vector<KnownRun>& runs) {
  return Error{fmt::format(
      "several runs found: {}, {}{}; a command that changes a run needs its number or directory",
      name_of_run(runs.at(0).directory), name_of_run(runs.at(1).directory),
      runs.size() > 2 ? ", ..." : "")};
}

/// Refuses to change a run of another directory by its name.
Error only_elsewhere(const KnownRun& run, const std::string& named) {
  return Error{
      fmt::format("'{0}' is {1}, and no run of this directory has this name; type {2} "
                  "instead of '{0}'",
                  named, name_of_run(run.directory), own_word(run))};
}

Error no_run_here(const std::string& named) {
  if (!named.empty()) return Error{fmt::format("no run of '{}' found", named)};
  const std::optional<std::string> last = last_known_run();
  return Error{
      fmt::format("no run found under ./runs: name a run number, a run directory or a job file{}",
                  last ? "; your last run is " + name_of_run(*last) : "")};
}

}  // namespace

Error no_such_job_file(const std::string& named) {
  return Error{fmt::format("job file '{}' not found; {}", named, kRunNames)};
}

std::string cure_of_list(const std::string& named, std::string_view before) {
  std::string cure;
  for (const auto part : std::views::split(named, ',')) {
    const std::string run(std::string_view{part});
    if (!run.empty()) cure += fmt::format(" {}{}", before, text::shell_word(run));
  }
  return named.contains(',') ? "; name each run by itself:" + cure : std::string();
}

bool holds_run(const std::string& directory) {
  std::error_code ignored;
  return fs::exists(run::journal_path(directory), ignored) ||
         fs::exists(run::submission_path(directory), ignored) ||
         sys::RunLock::holder(directory).has_value() || !run::has_begun(directory);
}

bool is_run(const std::string& directory) {
  if (holds_run(directory)) return true;
  std::error_code ignored;
  const auto number = fs::exists(directory, ignored) ? std::nullopt : number_of_run(directory);
  return number && goes_on_in_queue(directory, *number);
}

bool names_run(const std::string& word) {
  if (word == text::kLastRun || !known_runs(word).empty()) return true;
  const Result<std::string> here = sys::current_directory();
  if (!here || run::read_run_number(word) || !is_bare_name(word)) return false;
  return std::ranges::any_of(places_of_here(*here), [&word](const std::string& directory) {
    return has_name(directory, word) && holds_run(directory);
  });
}

bool holds_run_directories(const std::string& directory) {
  std::error_code ignored;
  return fs::is_directory(directory + "/runs", ignored);
}

std::vector<std::string> runs_here() {
  const Result<std::string> here = sys::current_directory();
  if (!here) return {};
  std::vector<std::string> directories = places_of_here(*here);
  std::erase_if(directories, [](const std::string& each) { return !holds_run(each); });
  std::ranges::sort(directories);
  const auto doubled = std::ranges::unique(directories);
  directories.erase(doubled.begin(), doubled.end());
  return directories;
}

Result<std::string> find_run(const std::string& named, WhenSeveral when_several) {
  Result<FoundRun> found = choose_run(named, when_several);
  if (!found) return std::unexpected(std::move(found.error()));
  return std::move(found->directory);
}

Result<FoundRun> choose_run(const std::string& named, WhenSeveral when_several) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  const bool is_last = means_last(named, *here);
  Places places;
  if (named.empty() || is_last) {
    places.directories = places_of_here(*here);
  } else {
    Result<Places> found = places_of(named, absolute_path(named, *here));
    if (!found) return std::unexpected(found.error());
    places = std::move(*found);
  }
  std::vector<KnownRun> runs = runs_in(places.directories);
  if (runs.empty()) return std::unexpected(no_run_here(is_last ? "" : named));
  if (is_last || when_several == WhenSeveral::TakeNewest) {
    order_by_age(runs);
    return FoundRun{.directory = std::move(runs.front().directory),
                    .is_elsewhere = places.is_elsewhere};
  }
  order_by_start(runs);
  // If no run has started, only runs in the queue can be meant.
  const bool some_started = runs.front().lives || runs.front().started_unix_ms != 0;
  const bool by_start = named.empty() && some_started;
  if (!by_start) order_named(runs);
  const auto is_active = [by_start](const KnownRun& run) {
    return by_start ? run.lives : run.is_active();
  };
  const bool several = runs.size() > 1 && is_active(runs[1]);
  if (several && when_several != WhenSeveral::TakeLatest) {
    return std::unexpected(several_active(runs, named, is_active));
  }
  const bool guessed = runs.size() > 1 && !is_active(runs.front());
  if (guessed && when_several == WhenSeveral::Refuse) {
    return std::unexpected(several_found(runs));
  }
  if (places.is_elsewhere && when_several != WhenSeveral::TakeLatest) {
    return std::unexpected(only_elsewhere(runs.front(), named));
  }
  FoundRun found{.directory = runs.front().directory,
                 .candidates = guessed ? runs.size() : 1,
                 .is_elsewhere = places.is_elsewhere};
  const auto waits = std::ranges::find_if(runs, &KnownRun::waits);
  const bool is_newer = waits != runs.end() && waits->number > runs.front().number;
  if (!named.empty() && is_newer) found.newer_in_queue = std::move(waits->directory);
  const auto unreadable = std::ranges::find_if(runs, [&runs](const KnownRun& run) {
    return run.unreadable && !run.is_active() && run.number > runs.front().number;
  });
  if (named.empty() && unreadable != runs.end()) found.unreadable = unreadable->directory;
  return found;
}

Result<std::vector<std::string>> newest_and_unended_runs() {
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  std::vector<KnownRun> runs = runs_in(places_of_here(*here));
  if (runs.empty()) return std::unexpected(no_run_here(""));
  order_by_age(runs);
  std::vector<std::string> directories;
  for (KnownRun& run : runs) {
    if (directories.empty() || run.is_active()) directories.push_back(std::move(run.directory));
  }
  return directories;
}

bool is_run_of(const std::string& run_directory, const job::JobRuns& job) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) {
    const std::string name = run::read_mark(run_directory).name;
    return name.empty() || name == fs::path(job.first).filename().string();
  }
  const auto executions = reader->executions();
  if (!executions || executions->empty()) return true;
  const journal::ExecutionRow& last = executions->back();
  const std::string job_file = run::path_after_move(
      last.job_file, {.was = last.run_directory, .is = run::real_directory(run_directory)});
  std::error_code ignored;
  if (job_file == job.job_file || fs::equivalent(job_file, job.job_file, ignored)) return true;
  return !fs::exists(job_file, ignored) && reader->job_name() == job.job_name;
}

std::vector<std::string> runs_of(const job::JobRuns& job) {
  std::vector<KnownRun> runs = runs_in(paths_of_job(job));
  order_by_start(runs);
  std::vector<std::string> directories;
  for (KnownRun& run : runs) directories.push_back(std::move(run.directory));
  return directories;
}

Result<journal::JournalReader> open_run(const std::string& run_directory) {
  constexpr Duration kBeginsWithin{10'000};
  constexpr Duration kLookEvery{20};
  const std::string path = run::journal_path(run_directory);
  const Duration until = sys::EventLoop::now() + kBeginsWithin;
  sys::EventLoop loop;
  while (true) {
    // Checked first: a yard that is gone now has begun before, if ever.
    const bool lives =
        sys::RunLock::holder(run_directory).has_value() || is_about_to_begin(run_directory);
    Result<journal::JournalReader> reader = journal::JournalReader::open(path);
    if (reader) return reader;
    const Result<bool> begun = run::has_begun(run_directory);
    if (!begun) return std::unexpected(begun.error());
    if (*begun) return journal::JournalReader::open(path);
    if (!lives) {
      if (std::optional<Error> queued = why_not_begun(run_directory)) {
        return std::unexpected(std::move(*queued));
      }
      return reader;
    }
    if (sys::EventLoop::now() > until) {
      return std::unexpected(
          Error{fmt::format("the run in '{}' is starting; try again in a moment", run_directory)});
    }
    const Duration next = sys::EventLoop::now() + kLookEvery;
    while (sys::EventLoop::now() < next) loop.run_once(next - sys::EventLoop::now());
  }
}

Result<std::string> socket_of_run(journal::JournalReader& reader, const std::string& run) {
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(executions.error());
  const std::optional<std::int64_t> holder = sys::RunLock::holder(run);
  const std::string name = name_of_run(run);
  if (executions->empty()) return std::unexpected(Error{fmt::format("{} is not running", name)});
  const bool ended = executions->back().ended.has_value();
  if (!holder) {
    const std::string word = text::shell_word(seen_from_here(run));
    if (!ended) {
      return std::unexpected(Error{fmt::format(
          "{} is not running: 'trainyard status {}' shows how to resume it", name, word)});
    }
    const journal::ExecutionRow& last = executions->back();
    if (!run::is_interrupted(last.how) || last.is_of_program()) {
      return std::unexpected(Error{fmt::format("{} has ended", name)});
    }
    std::string cure = how_queue_resumes(run);
    if (cure.empty()) cure = fmt::format("'trainyard run --resume {}' resumes it", word);
    return std::unexpected(Error{fmt::format("{} has ended: interrupted; {}", name, cure)});
  }
  if (ended) return std::unexpected(Error{fmt::format("{} has no active tasks now", name)});
  if (sys::is_suspended(*holder)) {
    return std::unexpected(
        Error{fmt::format("{} is suspended, as by Ctrl-Z, and does not respond; 'kill -CONT {}' "
                          "resumes it",
                          name, *holder)});
  }
  if (executions->back().socket_path.empty()) {
    return std::unexpected(Error{
        fmt::format("{} has no control socket; the reason was printed when it started", name)});
  }
  return executions->back().socket_path;
}

}  // namespace trainyard::cli
