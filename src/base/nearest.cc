#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {
namespace {

constexpr std::size_t kLongest = 64;
using Row = std::array<std::size_t, kLongest + 1>;

/// What other tools call something, where no spelling mistake leads to our name.
struct OtherWords {
  std::string_view meant;  ///< Our name; for `commands` a sentence, where "{}" is a typed number.
  std::string_view words;  ///< Separated by blanks, without "--".
  std::string_view commands = {};  ///< Commands, or the program, without a name for it.
};
constexpr std::string_view kRuns =
    "'trainyard status' shows active runs, 'trainyard clean --older 0s --dry-run' lists ended ones";
// The first row that fits counts: a word may stand for a command in one place, for a key in another.
constexpr auto kOtherWords = std::to_array<OtherWords>({
    {.meant = kRuns, .words = "ls list runs history", .commands = "trainyard"},
    {.meant = "'trainyard drain gpu:2 --end' makes a GPU available again",
     .words = "undrain",
     .commands = "trainyard"},
    {.meant = "'trainyard logs ... | tail -n 20' shows the last lines",
     .words = "tail lines -n",
     .commands = "logs"},
    {.meant = "the output of tasks is in the run directory, and 'trainyard logs' shows it",
     .words = "output -o",
     .commands = "run submit"},
    {.meant = "'trainyard results --csv > results.csv' writes a file",
     .words = "output -o",
     .commands = "results"},
    {.meant = "the job file needs no option before it",
     .words = "file -f",
     .commands = "run submit plan"},
    {.meant = "'trainyard run --detach' prints only the number of the run",
     .words = "quiet -q",
     .commands = "run"},
    {.meant = "'--set scheduler.max-process={}' limits the tasks that run at once",
     .words = "jobs max-parallel max-procs parallel -j -n",
     .commands = "run submit plan"},
    {.meant = "'trainyard submit --needs RUN' starts after another run",
     .words = "dependency depends-on after",
     .commands = "run"},
    {.meant = "'timeout 1h trainyard wait ...' waits for at most an hour",
     .words = "timeout",
     .commands = "wait"},
    {.meant = "tasks always get SIGTERM, then SIGKILL: 'trainyard kill TASK'",
     .words = "-9 -15 -KILL -TERM -s signal",
     .commands = "kill"},
    {.meant = "to kill all tasks of a run, type: trainyard kill RUN '*'",
     .words = "all",
     .commands = "kill"},
    {.meant = "'trainyard clean --older 0s --dry-run' shows what would be deleted of all runs here",
     .words = "all *",
     .commands = "clean"},
    {.meant = "name the tasks without an option: trainyard retry RUN lr=1e-3",
     .words = "only",
     .commands = "retry"},
    {.meant = "name the tasks without an option: trainyard logs lr=1e-3",
     .words = "task tasks",
     .commands = "logs"},
    {.meant = "without names of tasks, 'trainyard retry' runs all failed ones again",
     .words = "failed retry-failed resume-failed rerun-failed",
     .commands = "run retry"},
    {.meant = "'fail-fast: true' in a group of the job file kills its tasks when one fails",
     .words = "halt",
     .commands = "run submit plan"},
    {.meant = "'trainyard retry --memory' sets it for failed tasks that run again",
     .words = "memory",
     .commands = "update"},
    {.meant = "'--over seed' averages over the key 'seed', for each combination of the other keys",
     .words = "group-by by mean",
     .commands = "results"},
    {.meant = "'--sort -COLUMN' shows the tasks with the largest value in this column first",
     .words = "best top",
     .commands = "results"},
    {.meant = "'--where acc>0.9' shows only the tasks that meet a condition",
     .words = "filter",
     .commands = "results"},
    {.meant = "'--csv', '--markdown' and '--json' set the format",
     .words = "format",
     .commands = "results"},
    {.meant = "name the state without an option, as :failed",
     .words = "failed",
     .commands = "status logs"},
    {.meant = "'trainyard hold' keeps waiting tasks of a run from starting",
     .words = "hold",
     .commands = "run submit"},
    {.meant = "'trainyard run --on HOSTS' runs a job on other machines",
     .words = "nodes",
     .commands = "submit"},
    {.meant = "time-limit",
     .words = "timeout time walltime timeout-s timeout-sec timeout-seconds runtime max-time"},
    {.meant = "memory", .words = "mem mem-limit mem-mb mem-gb mem-per-cpu ram"},
    {.meant = "working-directory", .words = "cwd workdir chdir dir directory working-dir"},
    {.meant = "env", .words = "environment env-vars envs environment-variables"},
    {.meant = "command", .words = "cmd script run entrypoint"},
    {.meant = "retries", .words = "retry nretry max-retries num-retries"},
    {.meant = "max-parallel", .words = "parallel concurrency parallelism"},
    {.meant = "gpu-memory", .words = "vram gpu-mem gpu-ram"},
    {.meant = "gpus", .words = "num-gpus ngpus gpu gpus-per-task"},
    {.meant = "cpus", .words = "cores threads num-cpus ncpus cpus-per-task num-threads"},
    {.meant = "preemptible", .words = "preempt"},
    {.meant = "now", .words = "force"},
    {.meant = "needs", .words = "depends-on dependency dependencies depends deps after requires"},
    {.meant = "matrix", .words = "params parameters grid sweep hyperparameters array seed seeds"},
    {.meant = "status", .words = "ps queue show jobs top watch dashboard squeue qstat sacct"},
    {.meant = "kill", .words = "stop scancel qdel"},
    {.meant = "logs", .words = "tail"},
    {.meant = "run", .words = "start srun"},
    {.meant = "retry", .words = "rerun restart requeue"},
    {.meant = "results", .words = "report export best"},
    {.meant = "devices", .words = "gpus nvidia-smi"},
    {.meant = "detach", .words = "background"},
    {.meant = "resume", .words = "continue"},
    {.meant = "clean", .words = "rm delete gc"},
    {.meant = "forget", .words = "clear"},
    {.meant = "fail-fast", .words = "halt"},
    {.meant = "dry-run", .words = "test"},
    {.meant = "each-line", .words = "-a"},
    {.meant = "tasks", .words = "jobs steps"},
    {.meant = "if", .words = "when"},
    {.meant = "hold", .words = "pause suspend"},
    {.meant = "release", .words = "unpause unhold"},
    {.meant = "submit", .words = "sbatch qsub"},
    {.meant = "update", .words = "set scontrol"},
    {.meant = "machines", .words = "sinfo nodes"},
    {.meant = "on", .words = "nodes"},
    {.meant = "priority", .words = "nice"},
    {.meant = "start-after", .words = "begin"},
    {.meant = "failed", .words = "fail"},
    {.meant = "config", .words = "init"},
    {.meant = "help", .words = "man"},
    {.meant = "new", .words = "force overwrite restart"},
    {.meant = "where", .words = "partition"},
    {.meant = "run-dir", .words = "output-dir results"},
    {.meant = "name", .words = "-J job-name"},
    {.meant = "watch", .words = "follow -f"},
    {.meant = "follow", .words = "watch -w"},
});

std::string_view without_dashes(std::string_view word) {
  return word.starts_with("--") ? word.substr(2) : word;
}

/// The word as the table has it.
std::string key_of(std::string_view word) {
  std::string key(without_dashes(word));
  std::ranges::replace(key, '_', '-');
  return key;
}

bool is_among(std::string_view word, std::string_view words) {
  return std::ranges::any_of(std::views::split(words, ' '),
                             [word](auto each) { return std::string_view(each) == word; });
}

char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Optimal string alignment distance: Levenshtein's, with a swap of neighbours as one edit. Small
/// and capital letters are the same.
std::size_t edits(std::string_view a, std::string_view b) {
  Row two_above{};
  Row above{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = above[j - 1] + (small(a[i - 1]) == small(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && small(a[i - 1]) == small(b[j - 2]) &&
                           small(a[i - 2]) == small(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
    two_above = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

std::optional<std::string_view> called_otherwise(std::string_view word,
                                                 std::span<const std::string_view> candidates) {
  const std::string key = key_of(word);
  for (const OtherWords& other : kOtherWords) {
    if (!other.commands.empty() || !is_among(key, other.words)) continue;
    const auto found = std::ranges::find(candidates, other.meant, without_dashes);
    if (found != candidates.end()) return *found;
  }
  return std::nullopt;
}

std::string other_way(std::string_view command, std::string_view word, std::string_view number) {
  const std::string key = key_of(word);
  const auto way = std::ranges::find_if(kOtherWords, [&](const OtherWords& other) {
    return is_among(command, other.commands) && is_among(key, other.words);
  });
  if (way == kOtherWords.end()) return {};
  std::string cure(way->meant);
  if (const std::size_t at = cure.find("{}"); at != std::string::npos) cure.replace(at, 2, number);
  return cure;
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  if (const auto other = called_otherwise(word, candidates)) return other;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string_view> best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edits(word, candidate);
    // Words without a letter in common are not near: any one-letter word is one edit from another.
    const bool shares_nothing = distance >= std::max(word.size(), candidate.size());
    if (distance >= fewest || shares_nothing) continue;
    fewest = distance;
    best = candidate;
  }
  return best;
}

}  // namespace trainyard
