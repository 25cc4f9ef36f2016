#include "ranks/command_ranks.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/environment.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/port_lease.h"
#include "io/process_scan.h"
#include "model/ids.h"
#include "model/rank_share.h"
#include "ranks/launch_line.h"
#include "ranks/log_end.h"
#include "ranks/rank_number.h"

namespace trainyard {
namespace {

constexpr std::size_t kLogLines = 10;
constexpr int kSignalled = 128;
constexpr int kLookAgainMs = 20;
constexpr Duration kSweepMax{5'000};

/// The GPUs that this process has been given, as far as it says. One of two phases sees all that
/// there are, and hears from the yard which it has.
std::vector<GpuIndex> gpus_given() {
  if (io::variable("TRAINYARD_TOKEN")) return {};
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    const std::string value = io::variable(name).value_or("");
    if (value.empty() || value == "-1") continue;
    std::vector<GpuIndex> gpus{{0}};
    for (std::uint32_t i = 0; i < std::ranges::count(value, ','); ++i) gpus.push_back({i + 1});
    return gpus;
  }
  return {};
}

/// What TRAINYARD_DEVICE says to a rank: "cuda:1".
std::string device_of(int rank, int ranks) {
  return device_names(share_of_rank(rank, ranks, gpus_given()));
}

/// An empty log that is nobody else's; an error when it is there.
Result<io::Descriptor> make_log(const std::string& directory, int rank) {
  const std::string path = log_of_rank(directory, rank);
  io::Descriptor log(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (log.is_open()) return log;
  if (errno == EEXIST) {
    return std::unexpected(Error{fmt::format("there are two of rank {}", rank)});
  }
  return std::unexpected(io::system_error(fmt::format("cannot write '{}'", path), errno));
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const std::string why =
      io::system_error(fmt::format("trainyard ranks: cannot run '{}'", command[0]), errno).message +
      "\n";
  static_cast<void>(::write(STDERR_FILENO, why.data(), why.size()));
  constexpr int kNotFound = 127;
  ::_exit(kNotFound);
}

/// The processes that were started, by their numbers.
class Ranks {
 public:
  explicit Ranks(const CommandRanks& options) : options_(options) {}

  Result<int> run();

 private:
  struct Process {
    pid_t pid = 0;
    std::optional<int> rank;  ///< Nothing: the launcher.
    bool ended = false;
  };

  void take_over_signals();
  Result<void> start();
  Result<void> start_one(const std::vector<std::string>& command, std::optional<int> rank);
  void wait();
  void take_signals();
  void reap();
  void end_of(Process& process, int status);
  void end_all(int signal);
  void show_logs(std::optional<int> rank) const;
  void sweep();
  [[nodiscard]] bool all_ended() const { return std::ranges::all_of(processes_, &Process::ended); }

  const CommandRanks& options_;
  std::optional<io::PortLease> lease_;
  io::Descriptor signals_;
  sigset_t before_{};
  std::vector<Process> processes_;
  int code_ = 0;
  int ended_with_ = 0;  ///< The last signal that they were sent; 0: none.
  std::optional<Duration> kill_at_;
};

Result<int> Ranks::run() {
  take_over_signals();
  if (Result<void> started = start(); !started) {
    end_all(SIGKILL);
    sweep();
    return std::unexpected(std::move(started.error()));
  }
  wait();
  sweep();
  return code_;
}

void Ranks::take_over_signals() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t ours{};
  ::sigemptyset(&ours);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&ours, signal);
  // Where it was ignored, children would be gone before they can be waited for.
  ::signal(SIGCHLD, SIG_DFL);
  ::pthread_sigmask(SIG_BLOCK, &ours, &before_);
  signals_ = io::Descriptor(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<void> Ranks::start() {
  if (Result<void> made = io::make_directories(options_.log_directory); !made) return made;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    ::unlink(log_of_rank(options_.log_directory, rank).c_str());
  }
  auto lease = io::PortLease::take();
  RankPlan plan{.ranks = options_.ranks, .port = 0, .command = options_.command};
  if (lease) {
    plan.port = lease->port();
    lease_.emplace(std::move(*lease));
  } else {
    options_.say(lease.error().message + ": there is no MASTER_PORT");
  }
  for (const std::string& each : common_environment(plan)) io::set_variable(each);
  if (options_.launcher.arguments.empty()) {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (Result<void> started = start_one(options_.command, rank); !started) return started;
    }
    return {};
  }
  io::set_variable("TRAINYARD_RANK_LOGS=" + options_.log_directory);
  io::set_variable(fmt::format("TRAINYARD_RANKS={}", options_.ranks));
  plan.command.insert(plan.command.begin(), {options_.self, "rank", "--"});
  const auto line = launch_line(options_.launcher, plan);
  if (!line) return std::unexpected(line.error());
  return start_one(*line, std::nullopt);
}

Result<void> Ranks::start_one(const std::vector<std::string>& command, std::optional<int> rank) {
  io::Descriptor log;
  if (const int number = rank.value_or(0); number > 0) {
    auto made = make_log(options_.log_directory, number);
    if (!made) return std::unexpected(std::move(made.error()));
    log = std::move(*made);
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(io::system_error("cannot start a rank", errno));
  if (pid == 0) {
    // Neither a rank nor a launcher is left behind when we are killed.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    if (log.is_open()) {
      ::dup2(log.get(), STDOUT_FILENO);
      ::dup2(log.get(), STDERR_FILENO);
    }
    if (rank) {
      for (const std::string& each :
           rank_environment({.rank = *rank, .local_rank = *rank, .ranks = {}}, options_.ranks))
        io::set_variable(each);
      io::set_variable("TRAINYARD_DEVICE=" + device_of(*rank, options_.ranks));
    }
    become(command);
  }
  processes_.push_back({.pid = pid, .rank = rank});
  return {};
}

void Ranks::wait() {
  while (!all_ended()) {
    int timeout = -1;
    if (kill_at_) {
      timeout = static_cast<int>(std::max(*kill_at_ - io::EventLoop::now(), Duration{0}).count());
    }
    pollfd waiting{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, timeout);
    if (ready == 0) end_all(SIGKILL);
    if (ready > 0) take_signals();
    reap();
  }
}

void Ranks::take_signals() {
  signalfd_siginfo about{};
  while (::read(signals_.get(), &about, sizeof about) == sizeof about) {
    const auto signal = static_cast<int>(about.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (code_ == 0) code_ = kSignalled + signal;
    // A second one is from somebody in a hurry.
    end_all(ended_with_ == 0 ? SIGTERM : SIGKILL);
  }
}

void Ranks::reap() {
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0;
       pid = ::waitpid(-1, &status, WNOHANG)) {
    const auto found = std::ranges::find(processes_, pid, &Process::pid);
    if (found != processes_.end()) end_of(*found, status);
  }
}

void Ranks::end_of(Process& process, int status) {
  process.ended = true;
  const bool killed = WIFSIGNALED(status);
  const int code = killed ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0 || code_ != 0) return;
  code_ = code;
  const std::string who = process.rank ? fmt::format("rank {}", *process.rank)
                                       : fmt::format("'{}'", options_.launcher.name());
  options_.say(fmt::format("{} {} {}; the others are ended", who,
                           killed ? "was killed by signal" : "exited with code",
                           killed ? WTERMSIG(status) : code));
  show_logs(process.rank);
  end_all(SIGTERM);
}

void Ranks::end_all(int signal) {
  if (ended_with_ == SIGKILL) return;
  ended_with_ = signal;
  kill_at_.reset();
  if (signal == SIGTERM) kill_at_ = io::EventLoop::now() + options_.grace;
  for (const Process& process : processes_) {
    if (!process.ended) ::kill(process.pid, signal);
  }
}

/// What is in the logs of those who do not write where we do.
void Ranks::show_logs(std::optional<int> rank) const {
  const int first = rank.value_or(1);
  const int last = rank.value_or(options_.ranks - 1);
  for (int each = std::max(first, 1); each <= last; ++each) {
    const std::string text = end_of_log(log_of_rank(options_.log_directory, each), kLogLines);
    if (text.empty()) continue;
    options_.say(fmt::format("the end of rank-{}.log:\n{}", each, text));
  }
}

/// Whatever the ranks have started and left behind is a child of ours by now, or of such a one.
void Ranks::sweep() {
  const Duration give_up = io::EventLoop::now() + kSweepMax;
  while (io::EventLoop::now() < give_up) {
    io::ProcessScan scan;
    const auto processes = scan.read_all();
    const auto trees = io::label_trees(processes, [](const io::ProcessStat& process) {
      return process.parent == ::getpid() ? 0 : io::kNoTree;
    });
    bool left = false;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (trees[i] == io::kNoTree) continue;
      left = true;
      ::kill(static_cast<pid_t>(processes[i].pid), SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!left) return;
    pollfd waiting{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, kLookAgainMs);
    take_signals();
  }
}

}  // namespace

Result<int> run_ranks(const CommandRanks& ranks) { return Ranks(ranks).run(); }

Error become_rank(const std::vector<std::string>& command) {
  // Nor are the ranks of a launcher that is killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Result<RankNumber> number = rank_number(io::variable);
  if (!number) return number.error();
  const auto logs = io::variable("TRAINYARD_RANK_LOGS");
  const auto wanted = io::variable("TRAINYARD_RANKS");
  if (!logs || !wanted) return {"this is for 'trainyard ranks --launcher' to call"};
  const int ranks = std::atoi(wanted->c_str());  // NOLINT(cert-err34-c): we have written it.
  if (Result<void> known = check_rank(*number, ranks); !known) return std::move(known.error());
  // The one who makes it is the rank, any other is one too many.
  auto log = make_log(*logs, number->rank);
  if (!log) return std::move(log.error());
  if (number->rank > 0) {
    ::dup2(log->get(), STDOUT_FILENO);
    ::dup2(log->get(), STDERR_FILENO);
  }
  for (const std::string& each : rank_environment(*number, ranks)) io::set_variable(each);
  io::set_variable("TRAINYARD_DEVICE=" + device_of(number->local_rank, ranks));
  become(command);
}

}  // namespace trainyard
