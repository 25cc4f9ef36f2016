#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ranges>
#include <string>

#include "base/utf8.h"

namespace trainyard {
namespace {

constexpr std::size_t kLongest = 64;
using Row = std::array<std::size_t, kLongest + 1>;

/// Names in other tools, where no spelling mistake leads to ours.
struct OtherNames {
  std::string_view ours;
  std::string_view others;  ///< Separated by blanks, without "--".
};
// The first row that fits counts: a word may stand for a command in one place, for a key in another.
constexpr auto kOtherNames = std::to_array<OtherNames>({
    {.ours = "time-limit",
     .others = "timeout time walltime timeout-s timeout-sec timeout-seconds runtime max-time"},
    {.ours = "memory", .others = "mem mem-limit mem-mb mem-gb mem-per-cpu cpu-memory cpu-mem ram"},
    {.ours = "working-directory", .others = "cwd workdir chdir dir directory working-dir"},
    {.ours = "env", .others = "environment env-vars envs environment-variables"},
    {.ours = "command", .others = "cmd script run entrypoint"},
    {.ours = "retries", .others = "retry nretry max-retries num-retries requeue"},
    {.ours = "max-parallel", .others = "parallel concurrency parallelism"},
    {.ours = "gpu-memory", .others = "vram gpu-mem gpu-ram"},
    {.ours = "gpus", .others = "num-gpus ngpus gpu gpus-per-task gres"},
    {.ours = "cpus", .others = "cores threads num-cpus ncpus cpus-per-task num-threads -c"},
    {.ours = "preemptible", .others = "preempt"},
    {.ours = "now", .others = "force"},
    {.ours = "needs", .others = "depends-on dependency dependencies depends deps after requires"},
    {.ours = "matrix",
     .others = "params parameters grid sweep hyperparameters array seed seeds foreach multirun -m"},
    {.ours = "status", .others = "ps queue show jobs top watch dashboard squeue qstat sacct"},
    {.ours = "kill", .others = "stop scancel qdel"},
    {.ours = "logs", .others = "tail"},
    {.ours = "run", .others = "start srun"},
    {.ours = "retry", .others = "rerun restart requeue"},
    {.ours = "results", .others = "report export best"},
    {.ours = "devices", .others = "gpus gpu nvidia-smi"},
    {.ours = "detach", .others = "background"},
    {.ours = "resume", .others = "continue"},
    {.ours = "clean", .others = "rm delete gc"},
    {.ours = "forget", .others = "clear"},
    {.ours = "fail-fast", .others = "halt"},
    {.ours = "dry-run", .others = "test"},
    {.ours = "each-line", .others = "-a"},
    {.ours = "tasks", .others = "jobs steps task"},
    {.ours = "if", .others = "when"},
    {.ours = "hold", .others = "pause suspend"},
    {.ours = "release", .others = "unpause unhold"},
    {.ours = "submit", .others = "sbatch qsub"},
    {.ours = "update", .others = "set scontrol"},
    {.ours = "machines", .others = "sinfo nodes"},
    {.ours = "on", .others = "nodes -N"},
    {.ours = "priority", .others = "nice"},
    {.ours = "start-after", .others = "begin"},
    {.ours = "failed", .others = "fail"},
    {.ours = "config", .others = "init settings configuration"},
    {.ours = "help", .others = "man"},
    {.ours = "new", .others = "force overwrite restart"},
    {.ours = "where", .others = "partition"},
    {.ours = "ranks", .others = "np ntasks nproc nproc-per-node"},
    {.ours = "run-dir", .others = "output-dir results"},
    {.ours = "name", .others = "-J job-name"},
    {.ours = "watch", .others = "follow -f"},
    {.ours = "follow", .others = "watch -w"},
});

std::string_view without_dashes(std::string_view word) {
  return word.starts_with("--") ? word.substr(2) : word;
}

/// Whether one word is about CPUs and the other about GPUs, which differ in a letter that nobody
/// mistypes.
bool are_of_other_devices(std::string_view a, std::string_view b) {
  return (a.contains("cpu") && b.contains("gpu")) || (a.contains("gpu") && b.contains("cpu"));
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
      const std::size_t replace =
          above[j - 1] + (small_letter(a[i - 1]) == small_letter(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && small_letter(a[i - 1]) == small_letter(b[j - 2]) &&
                           small_letter(a[i - 2]) == small_letter(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
    two_above = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

bool is_among(std::string_view word, std::string_view names) {
  std::string name(without_dashes(word));
  std::ranges::replace(name, '_', '-');
  return std::ranges::any_of(std::views::split(names, ' '),
                             [&name](auto each) { return std::string_view(each) == name; });
}

std::optional<std::string_view> called_otherwise(std::string_view word,
                                                 std::span<const std::string_view> candidates) {
  for (const OtherNames& names : kOtherNames) {
    if (!is_among(word, names.others)) continue;
    const auto found = std::ranges::find(candidates, names.ours, without_dashes);
    if (found != candidates.end()) return *found;
  }
  return std::nullopt;
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  if (const auto other = called_otherwise(word, candidates)) return other;
  // The dashes of an option are never mistyped: "--keep" must not be near "--help".
  std::size_t fewest = std::max<std::size_t>(1, without_dashes(word).size() / 3) + 1;
  std::optional<std::string_view> best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edits(word, candidate);
    // Words without a letter in common are not near: any one-letter word is one edit from another.
    const bool shares_nothing = distance >= std::max(word.size(), candidate.size());
    if (distance >= fewest || shares_nothing || are_of_other_devices(word, candidate)) continue;
    fewest = distance;
    best = candidate;
  }
  return best;
}

}  // namespace trainyard
