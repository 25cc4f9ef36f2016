// The words of `trainyard ranks` and, for launchers, `trainyard rank`, and the commands themselves.
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "cli/with_command.h"
#include "model/rank_environment.h"
#include "ranks/command_ranks.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "text/launcher_text.h"
#include "trainyard/launcher.h"

namespace trainyard::cli {
namespace {

constexpr Duration kGraceMax{86'400'000};

class RanksWords {
 public:
  explicit RanksWords(CLI::App& app);
  [[nodiscard]] std::optional<int> run() const;

 private:
  [[nodiscard]] int run_them() const;

  CLI::App* ranks_ = nullptr;
  CLI::App* rank_ = nullptr;
  int count_ = 0;
  std::string launcher_ = "built-in";
  std::string logs_;
  std::string grace_ = "10s";
};

RanksWords::RanksWords(CLI::App& app) {
  ranks_ = app.add_subcommand("ranks", "Run a command as several ranks");
  ranks_->group(command_groups::kRun);
  constexpr const char* kRanks = "Ranks";
  ranks_->add_option("-n,--ranks", count_, "Number of ranks (required)")
      ->group(kRanks)
      ->type_name(value_kinds::kNumber)
      ->required()
      ->check(whole_number_within(1, model::kRanksMax));
  ranks_
      ->add_option("--launcher", launcher_,
                   "Launcher or JSON list with \"{command}\" (default: built-in)")
      ->group(kRanks)
      ->type_name("built-in|mpirun|torchrun|srun|JSON");
  ranks_->add_option("--logs", logs_, "Directory of the logs (default: the task's, else this one)")
      ->group(option_groups::kOutput)
      ->type_name(value_kinds::kDirectory);
  ranks_->add_option("--grace", grace_, "Time between SIGTERM and SIGKILL (default: 10s)")
      ->group(kRanks)
      ->type_name(value_kinds::kTime)
      ->check(time_within(Duration{0}, kGraceMax));
  takes_command(*ranks_);
  ranks_->footer(
      "Examples:\n"
      "  trainyard ranks -n 4 -- python3 train.py --lr 0.1\n"
      "  trainyard ranks -n 8 --launcher srun -- ./train\n"
      "  trainyard ranks -n 4 --launcher '[\"srun\",\"-n{ranks}\",\"{command}\"]' -- ./train\n"
      "\n"
      "A single word after '--' runs in bash.\n"
      "Sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun does, and\n"
      "TRAINYARD_DEVICE for ranks with GPUs. Rank 0 prints to the terminal, the other ranks to "
      "their\n"
      "logs (rank-1.log). When a rank fails, the other ranks get SIGTERM, then SIGKILL, and\n"
      "their child processes are killed, too.\n"
      "In a job file: 'ranks: 4'.\n"
      "Exit codes: 0 all ranks succeeded; 2 nothing was run; else the code of the first rank that\n"
      "failed (128 + signal, if a signal killed it).");
  rank_ = app.add_subcommand("rank", "Become a rank, for a launcher of 'trainyard ranks'");
  rank_->group("");
  rank_->prefix_command();
}

std::optional<int> RanksWords::run() const {
  if (ranks_->parsed()) return run_them();
  if (!rank_->parsed()) return std::nullopt;
  // Only the launcher of 'trainyard ranks' calls it, with this variable; a user meant 'ranks'.
  if (!sys::variable(ranks::kRanksVariable)) {
    return static_cast<int>(fail("unknown command 'rank' (did you mean 'ranks'?)"));
  }
  const Error why = ranks::become_rank(rank_->remaining());
  sys::write_standard_error(fmt::format("trainyard rank: {}\n", why.message));
  return EXIT_FAILURE;
}

int RanksWords::run_them() const {
  const auto command = typed_command(*ranks_);
  if (!command) return static_cast<int>(fail(command.error()));
  const Result<Launcher> launcher = text::parse_launcher(launcher_);
  if (!launcher) return static_cast<int>(fail(launcher.error()));
  const auto here = sys::current_directory();
  if (!here) return static_cast<int>(fail(here.error()));
  // A reader of the output that goes away does not end the ranks, which have the default.
  std::signal(SIGPIPE, SIG_IGN);
  const Result<int> code =
      ranks::run_ranks({.ranks = count_,
                        .launcher = *launcher,
                        .command = *command,
                        .log_directory = absolute_path(logs_.empty() ? usual_logs() : logs_, *here),
                        .attempt = ranks::own_attempt(),
                        .self = sys::own_program().value_or("trainyard"),
                        .grace = parse_duration(grace_).value(),
                        .say = [](std::string_view what) {
                          sys::write_standard_error(fmt::format("trainyard ranks: {}\n", what));
                        }});
  if (!code) return static_cast<int>(fail(code.error()));
  return *code;
}

}  // namespace

Entry ranks_entry() { return entry<RanksWords>({"ranks", "rank"}); }

}  // namespace trainyard::cli
