#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {
namespace {

constexpr std::size_t kLongest = 64;
using Row = std::array<std::size_t, kLongest + 1>;

/// What other tools call something, where no spelling mistake leads to our name.
struct OtherName {
  std::string_view word;
  std::string_view ours;
};
constexpr std::array<OtherName, 109> kOtherNames{
    {{.word = "timeout", .ours = "time-limit"},
     {.word = "time", .ours = "time-limit"},
     {.word = "walltime", .ours = "time-limit"},
     {.word = "timeout-s", .ours = "time-limit"},
     {.word = "timeout-sec", .ours = "time-limit"},
     {.word = "timeout-seconds", .ours = "time-limit"},
     {.word = "runtime", .ours = "time-limit"},
     {.word = "max-time", .ours = "time-limit"},
     {.word = "mem", .ours = "memory"},
     {.word = "mem-limit", .ours = "memory"},
     {.word = "mem-mb", .ours = "memory"},
     {.word = "mem-gb", .ours = "memory"},
     {.word = "ram", .ours = "memory"},
     {.word = "cwd", .ours = "working-directory"},
     {.word = "workdir", .ours = "working-directory"},
     {.word = "chdir", .ours = "working-directory"},
     {.word = "dir", .ours = "working-directory"},
     {.word = "directory", .ours = "working-directory"},
     {.word = "working-dir", .ours = "working-directory"},
     {.word = "environment", .ours = "env"},
     {.word = "env-vars", .ours = "env"},
     {.word = "envs", .ours = "env"},
     {.word = "environment-variables", .ours = "env"},
     {.word = "cmd", .ours = "command"},
     {.word = "script", .ours = "command"},
     {.word = "run", .ours = "command"},
     {.word = "entrypoint", .ours = "command"},
     {.word = "retry", .ours = "retries"},
     {.word = "nretry", .ours = "retries"},
     {.word = "max-retries", .ours = "retries"},
     {.word = "num-retries", .ours = "retries"},
     {.word = "parallel", .ours = "max-parallel"},
     {.word = "concurrency", .ours = "max-parallel"},
     {.word = "parallelism", .ours = "max-parallel"},
     {.word = "num-gpus", .ours = "gpus"},
     {.word = "ngpus", .ours = "gpus"},
     {.word = "gpu", .ours = "gpus"},
     {.word = "preempt", .ours = "preemptible"},
     {.word = "force", .ours = "now"},
     {.word = "depends-on", .ours = "needs"},
     {.word = "dependencies", .ours = "needs"},
     {.word = "depends", .ours = "needs"},
     {.word = "deps", .ours = "needs"},
     {.word = "after", .ours = "needs"},
     {.word = "requires", .ours = "needs"},
     {.word = "params", .ours = "matrix"},
     {.word = "parameters", .ours = "matrix"},
     {.word = "grid", .ours = "matrix"},
     {.word = "sweep", .ours = "matrix"},
     {.word = "hyperparameters", .ours = "matrix"},
     {.word = "ls", .ours = "status"},
     {.word = "list", .ours = "status"},
     {.word = "ps", .ours = "status"},
     {.word = "queue", .ours = "status"},
     {.word = "show", .ours = "status"},
     {.word = "jobs", .ours = "status"},
     {.word = "stop", .ours = "kill"},
     {.word = "tail", .ours = "logs"},
     {.word = "start", .ours = "run"},
     {.word = "rerun", .ours = "retry"},
     {.word = "report", .ours = "results"},
     {.word = "gpus", .ours = "devices"},
     {.word = "background", .ours = "detach"},
     {.word = "continue", .ours = "resume"},
     {.word = "rm", .ours = "clean"},
     {.word = "delete", .ours = "clean"},
     {.word = "cores", .ours = "cpus"},
     {.word = "threads", .ours = "cpus"},
     {.word = "num-cpus", .ours = "cpus"},
     {.word = "ncpus", .ours = "cpus"},
     {.word = "cpus-per-task", .ours = "cpus"},
     {.word = "num-threads", .ours = "cpus"},
     {.word = "jobs", .ours = "tasks"},
     {.word = "steps", .ours = "tasks"},
     {.word = "when", .ours = "if"},
     {.word = "top", .ours = "status"},
     {.word = "watch", .ours = "status"},
     {.word = "squeue", .ours = "status"},
     {.word = "qstat", .ours = "status"},
     {.word = "sacct", .ours = "status"},
     {.word = "pause", .ours = "hold"},
     {.word = "suspend", .ours = "hold"},
     {.word = "unpause", .ours = "release"},
     {.word = "restart", .ours = "retry"},
     {.word = "requeue", .ours = "retry"},
     {.word = "restart", .ours = "resume"},
     {.word = "sbatch", .ours = "submit"},
     {.word = "qsub", .ours = "submit"},
     {.word = "srun", .ours = "run"},
     {.word = "scancel", .ours = "kill"},
     {.word = "qdel", .ours = "kill"},
     {.word = "set", .ours = "update"},
     {.word = "scontrol", .ours = "update"},
     {.word = "sinfo", .ours = "machines"},
     {.word = "nodes", .ours = "machines"},
     {.word = "nvidia-smi", .ours = "devices"},
     {.word = "export", .ours = "results"},
     {.word = "best", .ours = "results"},
     {.word = "init", .ours = "config"},
     {.word = "force", .ours = "new"},
     {.word = "overwrite", .ours = "new"},
     {.word = "array", .ours = "matrix"},
     {.word = "seed", .ours = "matrix"},
     {.word = "partition", .ours = "where"},
     {.word = "output-dir", .ours = "run-dir"},
     {.word = "results", .ours = "run-dir"},
     {.word = "-J", .ours = "name"},
     {.word = "job-name", .ours = "name"},
     {.word = "follow", .ours = "watch"}}};

std::string_view without_dashes(std::string_view word) {
  return word.starts_with("--") ? word.substr(2) : word;
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
  std::string key(without_dashes(word));
  std::ranges::replace(key, '_', '-');
  // Some words stand for a command in one place and for a key in another.
  for (const OtherName& other : kOtherNames) {
    if (other.word != key) continue;
    const auto found = std::ranges::find(candidates, other.ours, without_dashes);
    if (found != candidates.end()) return *found;
  }
  return std::nullopt;
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
