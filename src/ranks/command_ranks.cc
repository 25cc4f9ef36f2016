#include "ranks/command_ranks.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/rank_environment.h"
#include "process/keeper.h"
#include "process/port_lease.h"
#include "ranks/launch_line.h"
#include "ranks/log_end.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/this_process.h"

namespace trainyard::ranks {
namespace {

constexpr std::size_t kLogLines = 10;
constexpr int kSignalled = 128;
/// The attempt that the keeper of this program has.
constexpr model::AttemptKey kKey{.task = {0}, .attempt = 1};

/// The number of GPUs of this process, by its environment. A task of two phases sees all GPUs, and
/// receives its own from the yard.
int gpus_given() {
  if (sys::variable("TRAINYARD_TOKEN") && sys::variable("TRAINYARD_PHASES") != "1") return 0;
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    if (const int gpus = model::gpus_in(sys::variable(name).value_or("")); gpus > 0) return gpus;
  }
  return 0;
}

/// The value of TRAINYARD_DEVICE for a rank: "cuda:1".
std::string device_of(int rank, int ranks) {
  std::vector<model::GpuIndex> gpus(static_cast<std::size_t>(gpus_given()));
  for (std::uint32_t gpu = 0; gpu < gpus.size(); ++gpu) gpus[gpu] = {gpu};
  return model::device_names(model::share_of_rank(rank, ranks, gpus));
}

int code_of(const model::End& end) {
  const auto* const exited = std::get_if<model::ExitedWith>(&end);
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  if (killed != nullptr) return kSignalled + killed->signal;
  return exited != nullptr ? exited->code : EXIT_FAILURE;
}

/// The one attempt, from its start to its end.
class Run {
 public:
  explicit Run(const CommandRanks& options) : options_(options) {}

  Result<int> run();

 private:
  [[nodiscard]] bool own() const { return options_.launcher.arguments.empty(); }
  [[nodiscard]] std::string log_of(int rank) const {
    return log_of_rank(options_.log_directory, rank, options_.attempt);
  }
  [[nodiscard]] Result<void> check_logs() const;
  Result<model::Launch> launch();
  Result<void> add_launcher(model::Launch& launch);
  void hear(const process::KeeperNews& news);
  void has_ended(const model::End& end);
  void take_signal(process::Keeper& keeper, int signal);
  void show_logs(int first, int last) const;

  const CommandRanks& options_;
  std::optional<process::PortLease> lease_;  ///< For ranks of another launcher.
  std::optional<Result<int>> code_;          ///< Once they have ended.
  int signal_ = 0;                           ///< The first that we got.
  bool failed_ = false;                      ///< A rank, before we got any.
};

Result<int> Run::run() {
  if (Result<void> made = sys::make_directories(options_.log_directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  if (Result<void> writable = check_logs(); !writable) {
    return std::unexpected(std::move(writable.error()));
  }
  Result<model::Launch> launch = this->launch();
  if (!launch) return std::unexpected(std::move(launch.error()));
  sys::EventLoop loop;  // The keeper listens there until it is gone.
  Result<process::Keeper> keeper =
      process::Keeper::fork({.stop_grace = options_.grace,
                             .keeps_streams = true,
                             // Processes that died with their keeper are not started again.
                             .replacements_max = 0});
  if (!keeper) return std::unexpected(std::move(keeper.error()));
  loop.watch_signals({SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
    take_signal(*keeper, signal);
    loop.after(options_.grace, [&keeper] { keeper->signal(kKey, SIGKILL); });
  });
  keeper->listen(loop, [this](std::span<const process::KeeperNews> news) {
    for (const process::KeeperNews& each : news) hear(each);
  });
  keeper->start(kKey, *launch);
  while (!code_) loop.run_once(std::nullopt);
  if (signal_ != 0 && !failed_ && code_->has_value()) return kSignalled + signal_;
  return *std::move(code_);
}

/// Opens the logs as the ranks do: a rank that cannot would end the others, which have begun. Keeps
/// what is in them, for the case that no rank begins.
Result<void> Run::check_logs() const {
  for (int rank = own() ? 1 : 0; rank < options_.ranks; ++rank) {
    const auto log = sys::open_log(log_of(rank), sys::IfThere::Append);
    if (!log) {
      return std::unexpected(Error{
          fmt::format("{}; '--logs DIRECTORY' sets another place for logs", log.error().message)});
    }
  }
  return {};
}

Result<model::Launch> Run::launch() {
  Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  model::Launch launch{.arguments = options_.command,
                       .working_directory = *std::move(here),
                       .task_directory = options_.log_directory,
                       .ranks = options_.ranks};
  // Processes of a keeper do not speak for the task that it is, but ranks do.
  for (const char* const name : {"TRAINYARD_SOCKET", "TRAINYARD_TOKEN", "TRAINYARD_PHASES"}) {
    if (const auto value = sys::variable(name)) {
      launch.environment.push_back(fmt::format("{}={}", name, *value));
    }
  }
  if (!own()) {
    if (Result<void> added = add_launcher(launch); !added) {
      return std::unexpected(std::move(added.error()));
    }
    return launch;
  }
  model::OwnRanks& ranks = launch.own_ranks.emplace();
  ranks.gpus = gpus_given();
  for (int rank = 1; rank < options_.ranks; ++rank) ranks.log_paths.push_back(log_of(rank));
  return launch;
}

Result<void> Run::add_launcher(model::Launch& launch) {
  // A rank makes its own log: see become_rank().
  std::error_code ignored;
  for (int rank = 0; rank < options_.ranks; ++rank) std::filesystem::remove(log_of(rank), ignored);
  RankPlan plan{.ranks = options_.ranks, .port = 0, .command = {options_.self, "rank", "--"}};
  plan.command.insert(plan.command.end(), options_.command.begin(), options_.command.end());
  if (auto lease = process::PortLease::take()) {
    plan.port = lease->port();
    lease_.emplace(std::move(*lease));
  } else {
    options_.say(lease.error().message + ": there is no MASTER_PORT");
  }
  auto line = launch_line(options_.launcher, plan);
  if (!line) return std::unexpected(std::move(line.error()));
  launch.arguments = *std::move(line);
  std::ranges::move(model::common_rank_environment(options_.ranks, plan.port),
                    std::back_inserter(launch.environment));
  launch.environment.push_back("TRAINYARD_RANK_LOGS=" + options_.log_directory);
  launch.environment.push_back(fmt::format("{}={}", kRanksVariable, options_.ranks));
  return {};
}

void Run::hear(const process::KeeperNews& news) {
  match(
      news, [](const process::ProcessStarted&) {},
      [this](const process::RankFailed& it) {
        failed_ = true;
        // A rank that could not be started is our error.
        if (std::holds_alternative<model::NotStarted>(it.end)) return;
        options_.say(model::to_text(it.rank, it.end) + "; the other ranks are killed");
        show_logs(it.rank, it.rank);
      },
      [this](const process::ProcessEnded& it) { has_ended(it.end); },
      [this](const process::KeeperNote& it) { options_.say(it.text); },
      [](const process::KeeperHeard&) {}, [](const process::KeeperDied&) {},
      [](const process::KeeperReplaced&) {},
      [this](const process::KeeperGone& it) {
        options_.say(it.why);
        if (!code_) code_ = EXIT_FAILURE;
      });
}

void Run::has_ended(const model::End& end) {
  if (const auto* const not_started = std::get_if<model::NotStarted>(&end)) {
    code_ = std::unexpected(Error{not_started->why});
    return;
  }
  code_ = code_of(end);
  if (own() || code_ == 0 || signal_ != 0) return;
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  options_.say(fmt::format("'{}' {} {}", options_.launcher.name(),
                           killed != nullptr ? "was killed by signal" : "exited with code",
                           killed != nullptr ? killed->signal : **code_));
  show_logs(1, options_.ranks - 1);
}

void Run::take_signal(process::Keeper& keeper, int signal) {
  // A second one is from a user in a hurry.
  keeper.signal(kKey, signal_ == 0 ? SIGTERM : SIGKILL, options_.grace);
  if (signal_ == 0) signal_ = signal;
}

/// Reports the ends of the logs of ranks that do not write where we do.
void Run::show_logs(int first, int last) const {
  for (int rank = std::max(first, 1); rank <= last; ++rank) {
    const std::string text = end_of_log(log_of(rank), kLogLines);
    if (text.empty()) continue;
    options_.say(fmt::format("the end of {}:\n{}",
                             std::filesystem::path(log_of(rank)).filename().string(), text));
  }
}

}  // namespace

Result<int> run_ranks(const CommandRanks& ranks) { return Run(ranks).run(); }

Error become_rank(const std::vector<std::string>& command) {
  // The ranks of a launcher that is killed are not left behind.
  sys::end_with_parent();
  const Result<RankNumber> number = rank_number(sys::variable);
  if (!number) return number.error();
  const auto logs = sys::variable("TRAINYARD_RANK_LOGS");
  const auto wanted = sys::variable(kRanksVariable);
  if (!logs || !wanted) return Error{"this is for 'trainyard ranks --launcher' to call"};
  const int ranks = std::atoi(wanted->c_str());  // NOLINT(cert-err34-c): we have written it.
  if (Result<void> known = check_rank(*number, ranks); !known) return std::move(known.error());
  // The one that makes it is the rank, any other is one too many.
  const auto log =
      sys::open_log(log_of_rank(*logs, number->rank, own_attempt()), sys::IfThere::Refuse);
  if (!log) return log.error();
  if (!log->is_open()) return Error{fmt::format("two processes are rank {}", number->rank)};
  if (number->rank > 0) sys::print_to(*log);
  for (const std::string& each : model::rank_environment(
           {.rank = number->rank, .local_rank = number->local_rank, .ranks = ranks})) {
    sys::set_variable(each);
  }
  sys::set_variable("TRAINYARD_DEVICE=" + device_of(number->local_rank, ranks));
  return sys::become(command);
}

std::uint32_t own_attempt() {
  const std::string text = sys::variable("TRAINYARD_ATTEMPT").value_or("");
  const int attempt = std::atoi(text.c_str());  // NOLINT(cert-err34-c): 0 when it is none.
  return static_cast<std::uint32_t>(std::max(attempt, 1));
}

}  // namespace trainyard::ranks
