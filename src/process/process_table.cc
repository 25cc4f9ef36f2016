#include "process/process_table.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <expected>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"

namespace trainyard::process {
namespace {

std::int64_t ticks_per_second() {
  static const std::int64_t ticks = std::max(::sysconf(_SC_CLK_TCK), 1L);
  return ticks;
}

/// Takes the next number off a text of numbers between spaces; 0 when there is none.
std::int64_t take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return error == std::errc{} ? number : 0;
}

/// CPU time that has passed on our CPUs, in ticks.
struct CpuTicks {
  std::int64_t busy = 0;
  std::int64_t all = 0;
};

/// Adds up the lines of /proc/stat of those CPUs that we may run on; of a made-up machine, all.
CpuTicks read_cpu_ticks(const hardware::CapacitySources& sources) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  const bool known = !sources.own && ::sched_getaffinity(0, sizeof(ours), &ours) == 0;
  const std::string text = hardware::read_small_file(sources.proc + "/stat");
  std::string_view rest = text;
  CpuTicks ticks;
  while (rest.starts_with("cpu")) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(3);
    if (line.starts_with(' ')) continue;  // The sum of all.
    const std::int64_t number = take_number(line);
    if (known && (number >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(number), &ours))) {
      continue;
    }
    // user, nice, system, idle, iowait, irq, softirq, steal; what guests used is part of user.
    for (int column = 0; column < 8; ++column) {
      const std::int64_t spent = take_number(line);
      ticks.all += spent;
      if (column != 3 && column != 4) ticks.busy += spent;
    }
  }
  return ticks;
}

struct Resident {
  Bytes anonymous;  ///< RssAnon: neither backed by a file nor shared.
  Bytes others;     ///< Memory of files, and memory that processes share.
};

/// As far as statm has it.
Resident resident_memory(const sys::ProcessScan& scan, std::int64_t pid) {
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::string text = scan.read_text(pid, "statm", 128);
  std::string_view rest = text;
  take_number(rest);  // The size of the address space.
  const std::int64_t resident = take_number(rest);
  const std::int64_t shared = take_number(rest);
  return {.anonymous = {std::max<std::int64_t>(resident - shared, 0) * page},
          .others = {shared * page}};
}

/// The number behind the name of a field, in KiB.
Bytes field_of(std::string_view text, std::string_view name) {
  const std::size_t field = text.find(name);
  if (field == std::string_view::npos) return {};
  text.remove_prefix(field + name.size());
  while (text.starts_with('\t')) text.remove_prefix(1);
  return kib(take_number(text));
}

/// RssShmem: what it has of memory that processes share, as the arenas of ranks. Looked at only
/// where there can be much of it, as it costs three times as much as the rest.
Bytes shared_memory(const sys::ProcessScan& scan, std::int64_t pid, const Resident& resident) {
  constexpr Bytes kWorthALook = mib(16);
  if (resident.others < kWorthALook) return {};
  return field_of(scan.read_text(pid, "status", 4096), "\nRssShmem:");
}

struct TreeProcess {
  std::int64_t pid = 0;
  /// Its parent; 0 where the two cannot have one address space.
  std::int64_t forked_from = 0;
};

/// True if a process and its parent have one address space, as a child of vfork() has until it
/// executes a program. False if the kernel does not tell.
bool shares_all_memory(const TreeProcess& process) {
  constexpr int kAddressSpace = 1;  // KCMP_VM
  return process.forked_from != 0 &&
         ::syscall(SYS_kcmp, process.pid, process.forked_from, kAddressSpace, 0, 0) == 0;
}

/// Adds the memory of one process to that of its tree, but for what it shares. All memory of a
/// child of vfork() is counted as its parent's.
void add_memory(TreeUsage& tree, const sys::ProcessScan& scan, const TreeProcess& process) {
  if (shares_all_memory(process)) return;
  const Resident resident = resident_memory(scan, process.pid);
  tree.memory += resident.anonymous;
  tree.shared = std::max(tree.shared, shared_memory(scan, process.pid, resident));
  tree.others = std::max(tree.others, resident.others);
}

/// The children of its main thread.
void add_children(std::vector<TreeProcess>& to, const sys::ProcessScan& scan, std::int64_t pid) {
  const std::string text = scan.read_text(pid, fmt::format("task/{}/children", pid), 4096);
  std::string_view rest = text;
  while (to.size() < ProcessTable::kLookedAtMax) {
    const std::int64_t child = take_number(rest);
    if (child == 0) return;
    to.push_back({.pid = child, .forked_from = pid});
  }
}

}  // namespace

struct ProcessTable::State {
  /// CPU time used up to the last reading.
  struct Used {
    CpuTicks machine;
    std::int64_t ours = 0;
  };

  explicit State(const hardware::CapacitySources& its_sources)
      : sources(its_sources), scan(its_sources.proc) {}

  double used_by_others(const Used& now);

  hardware::CapacitySources sources;
  sys::ProcessScan scan;
  std::optional<Used> last;

  /// The private memory of a process that shares memory.
  struct Own {
    Bytes memory;
    std::chrono::steady_clock::time_point good_until;
    bool seen = true;
  };
  Bytes own_memory(std::int64_t pid);
  /// Forgets the processes that have gone since the last time.
  void forget_unseen();

  std::map<std::int64_t, Own> own;
};

Bytes ProcessTable::State::own_memory(std::int64_t pid) {
  constexpr int kShareOfTime = 50;
  const auto before = std::chrono::steady_clock::now();
  const auto known = own.find(pid);
  if (known != own.end() && before < known->second.good_until) {
    known->second.seen = true;
    return known->second.memory;
  }
  const Bytes memory = field_of(scan.read_text(pid, "smaps_rollup", 4096), "\nPrivate_Dirty:");
  const auto after = std::chrono::steady_clock::now();
  own.insert_or_assign(
      pid, Own{.memory = memory, .good_until = after + kShareOfTime * (after - before)});
  return memory;
}

void ProcessTable::State::forget_unseen() {
  for (auto entry = own.begin(); entry != own.end();) {
    entry = std::exchange(entry->second.seen, false) ? std::next(entry) : own.erase(entry);
  }
}

double ProcessTable::State::used_by_others(const Used& now) {
  const std::optional<Used> before = std::exchange(last, now);
  if (!before) return 0;
  const std::int64_t all = now.machine.all - before->machine.all;
  // Our CPU time falls if no process waited for one of ours: that time is lost, not negative.
  const std::int64_t ours = std::max<std::int64_t>(now.ours - before->ours, 0);
  const std::int64_t others = now.machine.busy - before->machine.busy - ours;
  if (all <= 0) return 0;
  return std::clamp(static_cast<double>(others) / static_cast<double>(all), 0.0, 1.0);
}

ProcessTable::ProcessTable(const hardware::CapacitySources& sources)
    : state_(std::make_unique<State>(sources)) {}
ProcessTable::~ProcessTable() = default;
ProcessTable::ProcessTable(ProcessTable&&) noexcept = default;
ProcessTable& ProcessTable::operator=(ProcessTable&&) noexcept = default;

MachineReading ProcessTable::read(std::span<const std::int64_t> roots,
                                  const std::set<std::int64_t>& sharing) {
  MachineReading reading{.memory_available = hardware::memory_available(state_->sources),
                         .trees = {}};
  reading.trees.resize(roots.size());
  std::unordered_map<std::int64_t, int> tree_of_session;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    tree_of_session.emplace(roots[i], static_cast<int>(i));
  }

  const std::span<const sys::ProcessStat> processes = state_->scan.read_all();
  const std::vector<int> trees = sys::label_trees(processes, [&](const sys::ProcessStat& process) {
    const auto found = tree_of_session.find(process.session);
    return found == tree_of_session.end() ? sys::kNoTree : found->second;
  });
  const std::int64_t self = ::getpid();
  const std::vector<int> of_us = sys::label_trees(
      processes,
      [self](const sys::ProcessStat& process) { return process.pid == self ? 0 : sys::kNoTree; });

  State::Used used{.machine = read_cpu_ticks(state_->sources), .ours = 0};
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const sys::ProcessStat& process = processes[i];
    const std::int64_t ticks = process.cpu_ticks + process.children_ticks;
    // The CPU time of an exited process is added to the one that waited for it, so this sum only
    // grows.
    if (of_us[i] != sys::kNoTree || trees[i] != sys::kNoTree) used.ours += ticks;
    if (trees[i] == sys::kNoTree) continue;
    TreeUsage& tree = reading.trees[static_cast<std::size_t>(trees[i])];
    tree.cpu_time += Duration(ticks * 1000 / ticks_per_second());
    tree.pids.push_back(process.pid);
    const std::int64_t root = roots[static_cast<std::size_t>(trees[i])];
    if (process.pid == root && process.state != 'Z') tree.root_lives = true;
    if (sharing.contains(root)) {
      tree.memory += state_->own_memory(process.pid);
      continue;
    }
    add_memory(tree, state_->scan,
               {.pid = process.pid, .forked_from = process.has_only_forked ? process.parent : 0});
  }
  // Memory that several processes have mapped exists once: the one with the most has all of it, or
  // nearly so.
  for (TreeUsage& tree : reading.trees) tree.memory += tree.shared;
  state_->forget_unseen();
  reading.cpu_used_by_others = state_->used_by_others(used);
  return reading;
}

TreeUsage ProcessTable::look_at(std::int64_t root) const {
  TreeUsage tree;
  std::vector<TreeProcess> processes{{.pid = root}};
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const TreeProcess process = processes[i];
    tree.pids.push_back(process.pid);
    add_memory(tree, state_->scan, process);
    add_children(processes, state_->scan, process.pid);
  }
  std::ranges::sort(tree.pids);
  tree.memory += tree.shared;
  return tree;
}

namespace {

/// A process that is to end. The descriptor is that process for ever, whatever becomes of the pid.
using Ending = std::map<std::int64_t, sys::Descriptor>;

std::set<std::int64_t> ourselves_and_above(const sys::ProcessScan& scan) {
  std::set<std::int64_t> found;
  for (std::int64_t pid = ::getpid(); pid > 0 && found.insert(pid).second;) {
    const std::optional<sys::ProcessStat> process = scan.read(pid);
    if (!process) break;
    pid = process->parent;
  }
  return found;
}

bool has_variable(std::string_view environment, std::string_view name_and_value) {
  while (!environment.empty()) {
    const std::size_t end = environment.find('\0');
    if (environment.substr(0, end) == name_and_value) return true;
    if (end == std::string_view::npos) return false;
    environment.remove_prefix(end + 1);
  }
  return false;
}

/// The user who started a process, also where it has become another one since, as by a setuid
/// program. Nothing when it is gone.
std::optional<uid_t> user_of(const sys::ProcessScan& scan, std::int64_t pid) {
  constexpr std::string_view kField = "\nUid:\t";
  const std::string text = scan.read_text(pid, "status", 4096);
  const std::size_t field = text.find(kField);
  if (field == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(field + kField.size());
  return static_cast<uid_t>(take_number(rest));
}

bool is_left(const Leftovers& leftovers, const sys::ProcessScan& scan, std::int64_t pid) {
  constexpr std::size_t kEnvironmentMax = std::size_t{4} << 20;
  const std::string environment = scan.read_text(pid, "environ", kEnvironmentMax);
  return has_variable(environment, leftovers.mark) &&
         std::ranges::none_of(
             leftovers.but_for,
             [&environment](const std::string& each) { return has_variable(environment, each); }) &&
         user_of(scan, pid) == leftovers.user;
}

/// Finds those that are there now.
Ending find_left(const Leftovers& leftovers) {
  sys::ProcessScan scan;
  const std::set<std::int64_t> spared = ourselves_and_above(scan);
  Ending found;
  for (const sys::ProcessStat& process : scan.read_all()) {
    if (process.state == 'Z' || spared.contains(process.pid)) continue;
    // Opened before it is looked at, so that it is the one that was looked at.
    sys::Descriptor handle = sys::open_pidfd(process.pid);
    if (!handle.is_open()) continue;
    if (is_left(leftovers, scan, process.pid)) found.emplace(process.pid, std::move(handle));
  }
  return found;
}

void signal_all(const Ending& ending, int signal) {
  for (const auto& [pid, handle] : ending) sys::send_signal(handle, signal);
}

/// Forgets those that have ended, waiting for all of them up to `most`.
void wait_for_all(Ending& ending, Duration most) {
  const auto end = std::chrono::steady_clock::now() + most;
  for (auto it = ending.begin(); it != ending.end();) {
    const auto left = std::chrono::ceil<Duration>(end - std::chrono::steady_clock::now());
    const bool ended = sys::wait_until_ended(it->second, left);
    it = ended ? ending.erase(it) : std::next(it);
  }
}

}  // namespace

uid_t user_of_run(const std::string& run_directory) {
  struct stat about{};
  const bool is_owners = ::geteuid() == 0 && ::stat(run_directory.c_str(), &about) == 0;
  return is_owners ? about.st_uid : ::geteuid();
}

std::vector<std::int64_t> processes_left(const Leftovers& leftovers) {
  std::vector<std::int64_t> pids;
  for (const auto& [pid, handle] : find_left(leftovers)) pids.push_back(pid);
  return pids;
}

Result<int> end_processes(const Leftovers& leftovers, Duration grace) {
  // Each round ends what is there and looks for what that left: a process may start another up to
  // the moment when it dies.
  constexpr int kRoundsMax = 20;
  constexpr Duration kAfterKill{5000};
  std::size_t found = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    Ending ending = find_left(leftovers);
    if (ending.empty()) return static_cast<int>(found);
    found += ending.size();
    if (round == 0 && grace.count() > 0) {
      signal_all(ending, SIGTERM);
      wait_for_all(ending, grace);
    }
    signal_all(ending, SIGKILL);
    wait_for_all(ending, kAfterKill);
    if (!ending.empty()) break;
  }
  return std::unexpected(
      Error{fmt::format("cannot end the processes with {} in their environment", leftovers.mark)});
}

}  // namespace trainyard::process
