#include "sys/process_limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

using Resource = ProcessLimits::Resource;

/// By the kernel's numbers.
constexpr std::array<std::string_view, 16> kNames{
    "cpu",     "fsize", "data",  "stack",      "core",     "rss",        "nproc",  "nofile",
    "memlock", "as",    "locks", "sigpending", "msgqueue", "nice limit", "rtprio", "rttime"};
static_assert(RLIM_INFINITY == ProcessLimits::kUnlimited);
static_assert(RLIMIT_NOFILE == 7 && RLIMIT_NICE == 13 && RLIMIT_RTTIME == 15);

/// More than any kernel has.
constexpr std::size_t kCpusMax = 65'536;

class CpuSet {
 public:
  static constexpr std::size_t kBytes = CPU_ALLOC_SIZE(kCpusMax);

  cpu_set_t* get() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  void add(std::uint32_t cpu) { CPU_SET_S(cpu, kBytes, get()); }
  bool has(std::uint32_t cpu) { return CPU_ISSET_S(cpu, kBytes, get()); }

 private:
  std::vector<unsigned long> words_ = std::vector<unsigned long>(kBytes / sizeof(unsigned long));
};

Result<std::vector<std::uint32_t>> cpus_of(pid_t pid) {
  CpuSet set;
  if (::sched_getaffinity(pid, CpuSet::kBytes, set.get()) != 0) {
    return std::unexpected(system_error("cannot read the CPUs of a process", errno));
  }
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < kCpusMax; ++cpu) {
    if (set.has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string shown(std::uint64_t limit) {
  return limit == ProcessLimits::kUnlimited ? "unlimited" : std::to_string(limit);
}

/// The lowest nice value that a process may give itself without a capability.
int lowest_nice(const ProcessLimits& has) {
  constexpr std::uint64_t kHighest = 40;
  const std::uint64_t limit =
      has.resources.size() > RLIMIT_NICE ? has.resources[RLIMIT_NICE].soft : 0;
  return std::min(has.nice, 20 - static_cast<int>(std::min(limit, kHighest)));
}

}  // namespace

Result<ProcessLimits> limits_of(std::int64_t pid) {
  const auto number = static_cast<pid_t>(pid);
  auto cpus = cpus_of(number);
  if (!cpus) return std::unexpected(std::move(cpus.error()));
  ProcessLimits limits;
  limits.cpus = std::move(*cpus);
  errno = 0;
  limits.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(number));
  if (errno != 0) {
    return std::unexpected(system_error("cannot read the nice value of a process", errno));
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    struct rlimit limit{};
    if (::prlimit(number, static_cast<__rlimit_resource>(i), nullptr, &limit) != 0) {
      return std::unexpected(system_error("cannot read the limits of a process", errno));
    }
    limits.resources.push_back({.soft = limit.rlim_cur, .hard = limit.rlim_max});
  }
  return limits;
}

void take_limits(const ProcessLimits& limits) {
  CpuSet set;
  for (const std::uint32_t cpu : limits.cpus) {
    if (cpu < kCpusMax) set.add(cpu);
  }
  // Refused when the machine has none of them any more: those that it has stay.
  if (!limits.cpus.empty()) ::sched_setaffinity(0, CpuSet::kBytes, set.get());
  // Before RLIMIT_NICE, by which it may be lowered.
  ::setpriority(PRIO_PROCESS, 0, limits.nice);
  for (std::size_t i = 0; i < std::min(limits.resources.size(), kNames.size()); ++i) {
    const auto resource = static_cast<__rlimit_resource>(i);
    const Resource& wanted = limits.resources[i];
    struct rlimit limit{.rlim_cur = wanted.soft, .rlim_max = wanted.hard};
    if (::setrlimit(resource, &limit) == 0) continue;
    struct rlimit own{};
    if (::getrlimit(resource, &own) != 0) continue;
    limit.rlim_max = std::min<rlim_t>(wanted.hard, own.rlim_max);
    limit.rlim_cur = std::min<rlim_t>(wanted.soft, limit.rlim_max);
    ::setrlimit(resource, &limit);
  }
}

MayRaise may_raise(std::int64_t pid) {
  constexpr unsigned kSysNice = 23;
  constexpr unsigned kSysResource = 24;
  constexpr std::string_view kName = "\nCapEff:\t";
  const std::string status = read_file(fmt::format("/proc/{}/status", pid), kib(64)).value_or("");
  const std::size_t at = status.find(kName);
  if (at == std::string::npos) return {};
  std::uint64_t capabilities = 0;
  const char* const digits = status.data() + at + kName.size();
  std::from_chars(digits, status.data() + status.size(), capabilities, 16);
  return {.nice = ((capabilities >> kSysNice) & 1U) != 0,
          .limits = ((capabilities >> kSysResource) & 1U) != 0};
}

std::vector<std::string> not_to_be_given(const ProcessLimits& has, MayRaise may,
                                         const ProcessLimits& wanted) {
  std::vector<std::string> lacking;
  if (!may.nice && wanted.nice < lowest_nice(has)) {
    lacking.push_back(fmt::format("nice is {}, not {}", lowest_nice(has), wanted.nice));
  }
  if (may.limits) return lacking;
  for (std::size_t i = 0; i < std::min(has.resources.size(), wanted.resources.size()); ++i) {
    const std::uint64_t most = has.resources[i].hard;
    // The soft limit is what a task meets first.
    const Resource& its = wanted.resources[i];
    const std::uint64_t missed = most < its.soft ? its.soft : its.hard;
    if (most >= missed) continue;
    lacking.push_back(
        fmt::format("{} is at most {}, not {}", kNames.at(i), shown(most), shown(missed)));
  }
  return lacking;
}

}  // namespace trainyard::sys
