#include "sys/process_scan.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::sys {
namespace {

/// "<pid>/<file>" without an allocation.
class ProcessPath {
 public:
  ProcessPath(std::int64_t pid, std::string_view file) {
    char* const last = text_.data() + text_.size() - 1;
    char* end = std::to_chars(text_.data(), last, pid).ptr;
    *end++ = '/';
    end =
        std::copy_n(file.data(), std::min(file.size(), static_cast<std::size_t>(last - end)), end);
    *end = '\0';
  }
  [[nodiscard]] const char* c_str() const { return text_.data(); }

 private:
  std::array<char, 64> text_{};
};

/// Reads until the buffer is full or the file ends; returns how much there was.
std::size_t read_from(int file, std::span<char> buffer) {
  std::size_t had = 0;
  while (had < buffer.size()) {
    const ssize_t got = ::read(file, buffer.data() + had, buffer.size() - had);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    had += static_cast<std::size_t>(got);
  }
  return had;
}

/// Takes the next number off a text of numbers between spaces.
std::optional<std::int64_t> take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

std::optional<ProcessStat> read_stat(int proc, std::int64_t pid) {
  const Descriptor file(::openat(proc, ProcessPath(pid, "stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  // One read is enough: the kernel writes it in one piece, of a few hundred bytes.
  std::array<char, 1024> buffer{};
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
  return parse_process_stat({buffer.data(), length});
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  ProcessStat process;
  const std::optional<std::int64_t> pid = take_number(text);
  // The name may hold anything, so the last bracket ends it.
  const std::size_t bracket = text.rfind(')');
  if (!pid || bracket == std::string_view::npos || text.size() < bracket + 4) return std::nullopt;
  process.pid = *pid;
  process.state = text[bracket + 2];
  text.remove_prefix(bracket + 3);

  // Fields 4 to 22 of proc(5): parent, group, session, ..., utime, stime, cutime, cstime, ...
  std::array<std::int64_t, 19> fields{};
  for (std::int64_t& field : fields) {
    const std::optional<std::int64_t> number = take_number(text);
    if (!number) return std::nullopt;
    field = *number;
  }
  process.parent = fields[0];
  process.group = fields[1];
  process.session = fields[2];
  // Read as the kernel writes them, unsigned, so that no sum of made-up numbers overflows.
  const auto sum = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  };
  process.cpu_ticks = sum(fields[10], fields[11]);
  process.children_ticks = sum(fields[12], fields[13]);
  process.start_ticks = fields[18];
  process.major_faults = fields[8];
  constexpr std::int64_t kKernelThread = 0x0020'0000;  // PF_KTHREAD
  constexpr std::int64_t kForkedNoExecute = 0x40;      // PF_FORKNOEXEC
  process.of_kernel = (fields[5] & kKernelThread) != 0;
  process.has_only_forked = (fields[5] & kForkedNoExecute) != 0;
  return process;
}

ProcessScan::ProcessScan(const std::string& proc)
    : proc_(::open(proc.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

void ProcessScan::list_pids() {
  pids_.clear();
  if (!proc_.is_open() || ::lseek(proc_.get(), 0, SEEK_SET) != 0) return;
  alignas(dirent64) std::array<char, 32768> buffer{};
  for (;;) {
    const ssize_t got = ::getdents64(proc_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      std::uint16_t length = 0;
      std::memcpy(&length, buffer.data() + at + offsetof(dirent64, d_reclen), sizeof(length));
      const char* const name = buffer.data() + at + offsetof(dirent64, d_name);
      std::int64_t pid = 0;
      const auto [end, error] = std::from_chars(name, name + std::strlen(name), pid);
      if (error == std::errc{} && *end == '\0') pids_.push_back(pid);
      at += length;
    }
  }
  std::ranges::sort(pids_);
}

std::span<const ProcessStat> ProcessScan::read_all() {
  // A thread of the kernel stays one for a moment: in so short a time no number is given twice.
  constexpr std::chrono::seconds kMoment{2};
  const auto now = std::chrono::steady_clock::now();
  if (now - std::exchange(looked_at_, now) > kMoment) of_kernel_.clear();
  list_pids();
  processes_.clear();
  std::vector<std::int64_t> of_kernel;
  for (const std::int64_t pid : pids_) {
    const bool known = std::ranges::binary_search(of_kernel_, pid);
    const std::optional<ProcessStat> process = known ? std::nullopt : read(pid);
    if (known || (process && process->of_kernel)) {
      of_kernel.push_back(pid);
    } else if (process) {
      processes_.push_back(*process);
    }
  }
  of_kernel_ = std::move(of_kernel);
  return processes_;
}

std::optional<ProcessStat> ProcessScan::read(std::int64_t pid) const {
  return read_stat(proc_.get(), pid);
}

std::string ProcessScan::read_text(std::int64_t pid, std::string_view file,
                                   std::size_t at_most) const {
  constexpr std::size_t kUsual = 8192;
  const Descriptor opened(
      ::openat(proc_.get(), ProcessPath(pid, file).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  while (opened.is_open() && text.size() < at_most) {
    const std::size_t had = text.size();
    text.resize(std::min(had + std::max(had, kUsual), at_most));
    const std::size_t got = read_from(opened.get(), std::span(text).subspan(had));
    text.resize(had + got);
    if (got == 0) break;
  }
  return text;
}

std::string ProcessScan::program_of(std::int64_t pid) const {
  std::array<char, 4096> path;  // NOLINT(*-member-init): written by readlinkat, and large.
  const ssize_t length =
      ::readlinkat(proc_.get(), ProcessPath(pid, "exe").c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

bool is_suspended(std::int64_t pid) {
  const std::optional<ProcessStat> process = ProcessScan().read(pid);
  return process && (process->state == 'T' || process->state == 't');
}

std::vector<int> label_trees(std::span<const ProcessStat> processes,
                             const std::function<int(const ProcessStat&)>& own_tree) {
  constexpr int kUnknown = -2;
  std::vector<int> trees(processes.size(), kUnknown);
  std::vector<std::size_t> path;
  for (std::size_t start = 0; start < processes.size(); ++start) {
    // Up to the first ancestor whose tree is known, then back down with what it is.
    path.clear();
    int tree = kNoTree;
    for (std::size_t at = start;;) {
      if (trees[at] != kUnknown) {
        tree = trees[at];
        break;
      }
      path.push_back(at);
      // For now: /proc is not read in one instant, so what it says may even be a circle.
      trees[at] = kNoTree;
      tree = own_tree(processes[at]);
      if (tree != kNoTree) break;
      const auto parent =
          std::ranges::lower_bound(processes, processes[at].parent, {}, &ProcessStat::pid);
      if (parent == processes.end() || parent->pid != processes[at].parent) break;
      at = static_cast<std::size_t>(parent - processes.begin());
    }
    for (const std::size_t at : path) trees[at] = tree;
  }
  return trees;
}

ChildList::ChildList()
    : file_(::open(fmt::format("/proc/self/task/{}/children", ::gettid()).c_str(),
                   O_RDONLY | O_CLOEXEC)) {}

std::vector<pid_t> ChildList::read() {
  std::vector<pid_t> children;
  if (!file_.is_open()) {
    for (const ProcessStat& process : scan_.read_all()) {
      if (process.parent == ::getpid()) children.push_back(static_cast<pid_t>(process.pid));
    }
    return children;
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got =
        ::pread(file_.get(), chunk.data(), chunk.size(), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(at, end, pid);
    if (error == std::errc{}) children.push_back(pid);
    at = rest + 1;
  }
  return children;
}

}  // namespace trainyard::sys
