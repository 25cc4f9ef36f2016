#include "hardware/capacity.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "sys/files.h"

namespace trainyard::hardware {
namespace {

/// Files that the yard and the keeper need: journal, sockets, logs that are being opened.
constexpr std::int64_t kOwnFiles = 64;
/// The yard, the keeper, git, and the shell around them.
constexpr std::int64_t kOwnProcesses = 16;
/// Below this a limit is worth a word: above, nobody has as many tasks at once.
constexpr std::int64_t kWorthANote = 4096;

int cpus_by_affinity() {
  // Room for 8192 CPUs; the call fails when the set is too small for the machine.
  constexpr int kCpusMax = 8192;
  cpu_set_t* const set = CPU_ALLOC(kCpusMax);
  const std::size_t size = CPU_ALLOC_SIZE(kCpusMax);
  const int count = ::sched_getaffinity(0, size, set) == 0
                        ? CPU_COUNT_S(size, set)
                        : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  CPU_FREE(set);
  return std::max(count, 1);
}

std::int64_t limit_of(rlim_t limit) {
  return limit == RLIM_INFINITY || limit > (rlim_t{1} << 40) ? 0 : static_cast<std::int64_t>(limit);
}

CapacitySources::Own ask_the_system(bool raises_limits) {
  CapacitySources::Own own{.cpus = cpus_by_affinity()};
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("SLURM_")) own.environment.emplace_back(*variable);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    if (raises_limits) {
      limit.rlim_cur = limit.rlim_max;
      static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
    }
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) own.files_max = limit_of(limit.rlim_cur);
  }
  if (::geteuid() != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0) {
    own.user_processes_max = limit_of(limit.rlim_cur);
  }
  return own;
}

std::optional<std::int64_t> variable(const CapacitySources::Own& own, std::string_view name) {
  for (const std::string& entry : own.environment) {
    const std::string_view text = entry;
    if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=') continue;
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data() + name.size() + 1, text.data() + text.size(), value);
    if (error == std::errc{} && value > 0) return value;
  }
  return std::nullopt;
}

Bytes memory_total(const std::string& proc) {
  return kib(number_after(read_small_file(proc + "/meminfo"), "MemTotal").value_or(0));
}

void lower(std::optional<std::int64_t>& least, std::optional<std::int64_t> limit) {
  if (limit && (!least || *limit < *least)) least = limit;
}

std::optional<std::int64_t> memory_limit(const Cgroups& groups) {
  std::optional<std::int64_t> least;
  for (const std::string& group : groups.unified) lower(least, read_limit(group + "/memory.max"));
  for (const std::string& group : groups.memory) {
    lower(least, read_limit(group + "/memory.limit_in_bytes"));
  }
  return least;
}

/// In thousandths of a CPU.
std::optional<std::int64_t> quota(std::optional<std::int64_t> time,
                                  std::optional<std::int64_t> period) {
  constexpr std::int64_t kLongestMicroseconds = 1'000'000'000;
  if (!time || !period || *time <= 0 || *period <= 0 || *time > kLongestMicroseconds) {
    return std::nullopt;
  }
  return *time * 1000 / *period;
}

std::optional<std::int64_t> cpu_quota(const Cgroups& groups) {
  std::optional<std::int64_t> least;
  for (const std::string& group : groups.unified) {
    // "150000 100000", or "max 100000".
    const std::string text = read_small_file(group + "/cpu.max");
    const std::size_t space = text.find(' ');
    if (space == std::string::npos) continue;
    lower(least, quota(number_after("time " + text.substr(0, space), "time"),
                       number_after("period " + text.substr(space + 1), "period")));
  }
  for (const std::string& group : groups.cpu) {
    lower(least,
          quota(read_limit(group + "/cpu.cfs_quota_us"), read_limit(group + "/cpu.cfs_period_us")));
  }
  return least;
}

/// How many CPUs a list like "0-3,7" names; nothing for an empty or odd one.
std::optional<std::int64_t> count_cpu_list(std::string_view list) {
  std::int64_t count = 0;
  while (!list.empty() && list.front() >= '0' && list.front() <= '9') {
    std::int64_t first = 0;
    auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), first);
    std::int64_t last = first;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    if (list.starts_with('-')) {
      const auto range = std::from_chars(list.data() + 1, list.data() + list.size(), last);
      list.remove_prefix(static_cast<std::size_t>(range.ptr - list.data()));
    }
    if (error != std::errc{} || last < first || last > (1 << 20)) return std::nullopt;
    count += last - first + 1;
    if (list.starts_with(',')) list.remove_prefix(1);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<std::int64_t> cpuset_size(const Cgroups& groups) {
  std::optional<std::int64_t> least;
  for (const std::string& group : groups.unified) {
    lower(least, count_cpu_list(read_small_file(group + "/cpuset.cpus.effective")));
  }
  for (const std::string& group : groups.cpuset) {
    lower(least, count_cpu_list(read_small_file(group + "/cpuset.effective_cpus")));
    lower(least, count_cpu_list(read_small_file(group + "/cpuset.cpus")));
  }
  return least;
}

/// How many threads our user has, as RLIMIT_NPROC counts them.
std::int64_t threads_of_user(const std::string& proc) {
  std::int64_t count = 0;
  for (const std::string& name : sys::names_in(proc)) {
    struct stat about{};
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (::stat(fmt::format("{}/{}/task", proc, name).c_str(), &about) != 0) continue;
    // The directory has one entry a thread, beside "." and "..".
    if (about.st_uid == ::geteuid())
      count += std::max<std::int64_t>(std::int64_t(about.st_nlink) - 2, 1);
  }
  return count;
}

class Reader {
 public:
  explicit Reader(const CapacitySources& sources)
      : sources_(sources),
        own_(sources.own ? *sources.own : ask_the_system(sources.raises_limits)),
        groups_(find_cgroups(sources.proc, sources.cgroup)) {}

  CapacityReading read() {
    read_cpus();
    read_memory();
    read_processes();
    return std::move(reading_);
  }

 private:
  void read_cpus();
  void read_memory();
  void read_processes();

  void limit_cpus(std::optional<std::int64_t> milli, const char* by) {
    model::Cpus& held = reading_.capacity.cpus;
    if (!milli || *milli >= held.milli) return;
    held.milli = std::max<std::int64_t>(*milli, 1000);
    reading_.notes.push_back(fmt::format("{}: {:g} CPUs", by, static_cast<double>(*milli) / 1000));
  }
  void limit_memory(std::optional<std::int64_t> bytes, const char* by) {
    Bytes& held = reading_.capacity.memory;
    if (!bytes || *bytes >= held.count) return;
    held.count = *bytes;
    reading_.notes.push_back(fmt::format("{}: {} of memory", by, to_text(held)));
  }
  void limit_processes(std::int64_t limit, std::int64_t left, const char* by) {
    model::Capacity& held = reading_.capacity;
    left = std::clamp<std::int64_t>(left, 1, 1 << 30);
    if (held.processes_max != 0 && left >= held.processes_max) return;
    held.processes_max = static_cast<int>(left);
    held.processes_max_reason = by;
    if (left >= kWorthANote) return;
    reading_.notes.push_back(fmt::format("{}: {}, so at most {} {} at once", by, limit, left,
                                         left == 1 ? "task" : "tasks"));
  }

  const CapacitySources& sources_;
  CapacitySources::Own own_;
  Cgroups groups_;
  CapacityReading reading_;
};

void Reader::read_cpus() {
  reading_.capacity.cpus = model::cpus(own_.cpus);
  const auto whole = [](std::optional<std::int64_t> count) {
    return count ? std::optional(*count * 1000) : std::nullopt;
  };
  limit_cpus(whole(cpuset_size(groups_)), "cpuset");
  limit_cpus(cpu_quota(groups_), "cgroup");
  if (variable(own_, "SLURM_JOB_ID")) {
    limit_cpus(whole(variable(own_, "SLURM_CPUS_ON_NODE")), "Slurm job");
  }
}

void Reader::read_memory() {
  reading_.capacity.memory = memory_total(sources_.proc);
  limit_memory(memory_limit(groups_), "cgroup");
  if (!variable(own_, "SLURM_JOB_ID")) return;
  // In MiB; 0 is all of the node, which variable() takes for nothing.
  constexpr std::int64_t kMiB = 1 << 20;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (const auto node = variable(own_, "SLURM_MEM_PER_NODE"); node && *node < kMost) {
    limit_memory(*node * kMiB, "Slurm job");
  }
  if (const auto each = variable(own_, "SLURM_MEM_PER_CPU"); each && *each < kMost / 8192) {
    const std::int64_t count = variable(own_, "SLURM_CPUS_ON_NODE").value_or(own_.cpus);
    limit_memory(*each * kMiB * std::min<std::int64_t>(count, 8192), "Slurm job");
  }
}

void Reader::read_processes() {
  if (own_.files_max > 0) {
    limit_processes(own_.files_max, own_.files_max - kOwnFiles, "open files (ulimit -n)");
  }
  if (own_.user_processes_max > 0) {
    const std::int64_t used = threads_of_user(sources_.proc);
    limit_processes(own_.user_processes_max, own_.user_processes_max - used - kOwnProcesses,
                    "processes of the user (ulimit -u)");
  }
  const auto limit_pids = [&](const std::vector<std::string>& levels) {
    for (const std::string& group : levels) {
      const std::optional<std::int64_t> most = read_limit(group + "/pids.max");
      if (!most) continue;
      const std::int64_t used = read_limit(group + "/pids.current").value_or(0);
      limit_processes(*most, *most - used - kOwnProcesses, "processes of the cgroup (pids.max)");
    }
  };
  limit_pids(groups_.unified);
  limit_pids(groups_.pids);
}

}  // namespace

CapacityReading read_capacity(const CapacitySources& sources) { return Reader(sources).read(); }

Bytes memory_available(const CapacitySources& sources) {
  Bytes least =
      kib(number_after(read_small_file(sources.proc + "/meminfo"), "MemAvailable").value_or(0));
  const Cgroups groups = find_cgroups(sources.proc, sources.cgroup);
  struct Names {
    const char* limit;
    const char* usage;
    const char* cache;
  };
  const auto look = [&](const std::vector<std::string>& levels, const Names& names) {
    for (const std::string& group : levels) {
      const std::optional<std::int64_t> limit = read_limit(group + names.limit);
      if (!limit) continue;
      const std::int64_t usage = read_limit(group + names.usage).value_or(0);
      const std::int64_t cache =
          number_after(read_small_file(group + "/memory.stat"), names.cache).value_or(0);
      least = std::min(least, Bytes{std::max<std::int64_t>(*limit - usage + cache, 0)});
    }
  };
  look(groups.unified,
       {.limit = "/memory.max", .usage = "/memory.current", .cache = "inactive_file"});
  look(groups.memory, {.limit = "/memory.limit_in_bytes",
                       .usage = "/memory.usage_in_bytes",
                       .cache = "total_inactive_file"});
  return least;
}

OomWatch::OomWatch(const CapacitySources& sources) : counter_(sources.proc + "/vmstat") {
  const Cgroups groups = find_cgroups(sources.proc, sources.cgroup);
  const std::string own = !groups.memory.empty()    ? groups.memory.front() + "/memory.oom_control"
                          : !groups.unified.empty() ? groups.unified.front() + "/memory.events"
                                                    : std::string();
  if (oom_kills_in(own)) counter_ = own;
}

std::int64_t OomWatch::kills() const { return oom_kills_in(counter_).value_or(0); }

}  // namespace trainyard::hardware
