#include "cli/ranks_words.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/value_kinds.h"
#include "model/rank_share.h"
#include "ranks/command_ranks.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/this_process.h"
#include "text/launcher_text.h"
#include "trainyard/launcher.h"

namespace trainyard::cli {
namespace {

constexpr double kGraceMax = 86'400;
/// Those of our options whose value is the next word.
constexpr std::array<std::string_view, 5> kWithValue{"-n", "--ranks", "--launcher", "--logs",
                                                     "--grace"};

/// CLI11 does not know of what follows the options.
class WithCommand : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (usage.ends_with('\n')) usage.pop_back();
    return usage + " -- command [arguments...]\n";
  }
};

/// Beside the other files of a task, or where we are.
std::string usual_logs() { return sys::variable("TRAINYARD_TASK_DIR").value_or("."); }

}  // namespace

RanksWords::RanksWords(CLI::App& app) {
  ranks_ = app.add_subcommand("ranks", "Run a command as several ranks, ended together");
  ranks_->add_option("-n,--ranks", count_, "How many")
      ->type_name(value_kinds::kNumber)
      ->required()
      ->check(CLI::Range(1, model::kRanksMax));
  ranks_
      ->add_option("--launcher", launcher_,
                   "built-in, mpirun, torchrun, srun, or a JSON list with \"{command}\" in it")
      ->type_name("built-in|mpirun|torchrun|srun|JSON");
  ranks_
      ->add_option("--logs", logs_,
                   "Where rank-1.log and so on go (default: the task's directory, else here)")
      ->type_name(value_kinds::kFile);
  ranks_->add_option("--grace", grace_, "Seconds between TERM and KILL (default: 10)")
      ->type_name(value_kinds::kNumber)
      ->check(CLI::Range(0.0, kGraceMax));
  ranks_->prefix_command();
  ranks_->formatter(std::make_shared<WithCommand>());
  ranks_->footer(
      "Each rank finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its "
      "environment,\n"
      "as torchrun sets them, and TRAINYARD_DEVICE where it has GPUs. Rank 0 writes to the "
      "terminal.\n"
      "When one fails the others get TERM, then KILL; nothing that they have started is left.\n"
      "A job file says the same with 'ranks: 4'.\n"
      "Examples:\n"
      "  trainyard ranks -n 4 -- python3 train.py --lr 0.1\n"
      "  trainyard ranks -n 8 --launcher srun -- ./train\n"
      "  trainyard ranks -n 4 --launcher '[\"mpirun\", \"-n\", \"{ranks}\", \"{command}\"]' -- "
      "./train\n"
      "Exit codes: 0 all ranks ended well, else that of the first that failed (128 and the signal\n"
      "for one that was killed); 2 nothing was run.");
  rank_ = app.add_subcommand("rank", "");
  rank_->group("");
  rank_->prefix_command();
}

std::vector<const char*> RanksWords::without_separator(std::span<const char* const> words) {
  std::vector<const char*> kept(words.begin(), words.end());
  const std::string_view command = kept.size() > 1 ? kept[1] : "";
  if (command != "ranks" && command != "rank") return kept;
  // Before the command are options; one further on belongs to the command.
  for (std::size_t at = 2; at < kept.size(); ++at) {
    const std::string_view word = kept[at];
    if (word == "--") {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
    if (!word.starts_with('-')) break;
    if (std::ranges::find(kWithValue, word) != kWithValue.end()) ++at;
  }
  return kept;
}

std::optional<int> RanksWords::run() const {
  if (ranks_->parsed()) return run_them();
  if (!rank_->parsed()) return std::nullopt;
  const Error why = ranks::become_rank(rank_->remaining());
  std::cerr << "trainyard rank: " << why.message << '\n' << std::flush;
  return EXIT_FAILURE;
}

int RanksWords::run_them() const {
  const std::vector<std::string> command = ranks_->remaining();
  if (command.empty()) {
    return static_cast<int>(fail("which command? 'trainyard ranks -n 4 -- python3 train.py'"));
  }
  const Result<Launcher> launcher = text::parse_launcher(launcher_);
  if (!launcher) return static_cast<int>(fail(launcher.error()));
  const auto here = sys::current_directory();
  if (!here) return static_cast<int>(fail(here.error()));
  const Result<int> code = ranks::run_ranks(
      {.ranks = count_,
       .launcher = *launcher,
       .command = command,
       .log_directory = sys::absolute_path(logs_.empty() ? usual_logs() : logs_, *here),
       .attempt = ranks::own_attempt(),
       .self = sys::own_program().value_or("trainyard"),
       .grace = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(grace_)),
       .say = [](std::string_view what) {
         std::cerr << "trainyard ranks: " << what << '\n' << std::flush;
       }});
  if (!code) return static_cast<int>(fail(code.error()));
  return *code;
}

}  // namespace trainyard::cli
