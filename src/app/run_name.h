// The run that a word means:
//
//   46           its number
//   digits       its name: a run of this directory, else one elsewhere
//   last         the newest run of this directory
//   runs/digits  its directory, or one that has runs/ in it
//   sweep.yaml   its job file
//
// Without a word it is the run of this directory that was started or resumed last, an active run
// before all others; if none has started, the newest in the queue. Pure: RunFacts knows the runs.
//
//   Result<FoundRun> found = choose_run("digits", WhenSeveral::RefuseLive, facts);
//   found->run;  // "/home/me/runs/digits-2"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_facts.h"
#include "base/result.h"

namespace trainyard::app {

/// The choice among several runs of a name, or of no name. A run in the queue counts as active for
/// the commands that refuse, if a name stands for it or no run here has started: a command that
/// changes a run never takes an older one in its place. RefuseLive and Refuse are for commands that
/// change or resume a run: a name that only runs of other directories have is an error for them.
enum class WhenSeveral : std::uint8_t {
  TakeLatest,  ///< An active run, else one that waits in the queue, else the latest.
  TakeNewest,  ///< The run that was submitted or started last, whatever its state.
  RefuseLive,  ///< Like TakeLatest, but an error if several are active.
  Refuse,      ///< Like RefuseLive, but an error if several have ended and none is active.
};

struct FoundRun {
  std::string run;             ///< The directory of the run; absolute.
  std::string named = {};      ///< The word that means it; empty: none was typed.
  std::string name = {};       ///< KnownRun::name().
  std::string shown = {};      ///< `run` as seen from the current directory.
  std::uint32_t number = 0;    ///< As in KnownRun.
  std::size_t candidates = 1;  ///< Number of runs of which this, the latest, was guessed.
  bool is_newest = false;      ///< And guessed by the time of its creation, not of its last start.
  /// The name of the newest run of the same word in the queue, where it is newer than this run.
  std::string newer_in_queue = {};
  /// Where no run was named: the name of a run of a larger number, which is not active and has a
  /// journal that cannot be read. This run may have been resumed since.
  std::string unreadable = {};
  bool is_elsewhere = false;  ///< Named by its name, which no run of this directory has.
};

/// The run that a word means; empty: without a word. A number that is also the name of a directory
/// with another run is an error.
Result<FoundRun> choose_run(const std::string& word, WhenSeveral when_several,
                            const RunFacts& facts);

/// The newest run of this directory, then the others that had not ended when it was created, which
/// may have ended since. An error if there is none.
Result<std::vector<std::string>> newest_and_concurrent_runs(const RunFacts& facts);

/// Puts active runs first, then those that were started or resumed last.
void order_by_start(std::vector<KnownRun>& runs);

/// Puts the newest run first: the one that was submitted or started last.
void order_by_age(std::vector<KnownRun>& runs);

/// Whether a word is the number or the name of a run, or `last`.
bool names_run(const std::string& word, const RunFacts& facts);

/// "run 99 not found; the last one is run 46 ('runs/digits')", for "99" and "99/lr=0.1" where no run
/// has this number; nothing for other words.
std::optional<Error> unknown_number(std::string_view word, const RunFacts& facts);

/// The error for a job file that does not exist.
Error no_such_job_file(const std::string& word);

/// Adds to the error of the word "10,1", which is not a run, "; name each run by itself: --needs 10
/// --needs 1", with `before` before each. Other words keep their error.
Error with_cure_of_list(const std::string& word, std::string_view before, Error error);

/// The runs that the words after `--needs` mean, of which each has a number; of a run that is named by
/// it, the number alone. The error names the word.
Result<std::vector<FoundRun>> needed_runs(const std::vector<std::string>& words,
                                          const RunFacts& facts);

/// The error of `wait` for a word that is not a run. `why` is the cause unless the word names a task
/// of a run or several runs.
Error nothing_to_wait_for(const std::string& word, Error why, const RunFacts& facts);

/// "run 13 ('runs/sweep-2'), the latest of 2 runs".
std::string name_of_latest(std::string_view name, std::size_t candidates);

/// "'sweep' is run 13 ('runs/sweep-2'), the latest of 2 runs", or "'sweep' is run 13
/// ('runs/sweep'), which is active; run 14 ('runs/sweep-2') is in your queue", or "..., the one
/// created last of 2 runs", which may be an older run than the latest. Empty unless several
/// runs have the typed name and at most one of them is active, or no run of this directory has it,
/// which the note says as well. Names the unreadable run where no run was named.
std::string which_run_note(const FoundRun& found);

}  // namespace trainyard::app
