#include "sys/this_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/fork.h"
#include "sys/open_file.h"

namespace trainyard::sys {
namespace {

/// The memory from which the kernel reads the command line, by two fields of /proc/self/stat. It is
/// ours: argv is there, and a fresh fork does not read that again.
std::span<char> command_line() {
  constexpr int kAfterName = 3;  // The first field behind the name, counted as proc(5) does.
  constexpr int kBegin = 48;
  std::array<char, 4096> text{};
  const Descriptor file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t got = file.is_open() ? ::read(file.get(), text.data(), text.size()) : 0;
  std::string_view rest(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t name_end = rest.rfind(") ");
  if (name_end == std::string_view::npos) return {};
  rest.remove_prefix(name_end + 2);
  for (int field = kAfterName; field < kBegin; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return {};
    rest.remove_prefix(space + 1);
  }
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;
  const char* const end = rest.data() + rest.size();
  const auto [next, error] = std::from_chars(rest.data(), end, from);
  if (next != end) std::from_chars(next + 1, end, to);
  if (from == 0 || to <= from) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives it as a number.
  return {reinterpret_cast<char*>(from), to - from};
}

}  // namespace

Result<std::string> own_program() {
  constexpr const char* kLink = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink(kLink, error);
  if (error) {
    return std::unexpected(Error{"cannot find out which program this is: " + error.message()});
  }
  // An update has removed the file or put another one in its place. The kernel still finds the
  // program by the process that runs it.
  if (!std::filesystem::equivalent(self, kLink, error)) {
    return fmt::format("/proc/{}/exe", own_pid());
  }
  return self.string();
}

std::string rename_process(const std::string& name) {
  ::prctl(PR_SET_NAME, name.c_str());
  const std::span<char> text = command_line();
  if (text.empty()) return {};
  std::string before(text.begin(), text.end());
  std::ranges::fill(text, '\0');
  std::ranges::copy(std::string_view(name).substr(0, text.size() - 1), text.begin());
  return before;
}

void restore_command_line(const std::string& text) {
  const std::span<char> there = command_line();
  if (there.size() == text.size()) std::ranges::copy(text, there.begin());
}

std::int64_t own_pid() { return ::getpid(); }

Result<Descriptor> open_log(const std::string& path, IfThere if_there) {
  const int flags = if_there == IfThere::Empty ? O_TRUNC : if_there == IfThere::Refuse ? O_EXCL : 0;
  auto log = open_file(path, {.flags = O_WRONLY | O_CREAT | O_APPEND | flags, .mode = 0644});
  if (log) return std::move(log->descriptor);
  if (log.error().number == EEXIST) return Descriptor();
  return std::unexpected(std::move(log.error().error));
}

void print_to(const Descriptor& log) {
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
}

void end_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

Result<void> allow_open_files(std::uint64_t count) {
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return std::unexpected(system_error("cannot read how many files may be open", errno));
  }
  if (files.rlim_cur >= count) return {};
  if (files.rlim_max < count) {
    return std::unexpected(Error{fmt::format(
        "{} open files are needed, but {} are allowed (ulimit -Hn); start it from a shell with a "
        "higher limit",
        count, files.rlim_max)});
  }
  files.rlim_cur = count;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    return std::unexpected(system_error("cannot allow more open files", errno));
  }
  return {};
}

void survive_file_size_limit() {
  // Unlike SIG_IGN, a handler is not inherited by other programs.
  std::signal(SIGXFSZ, [](int) {});
}

namespace {

sigset_t file_size_signal() {
  sigset_t set{};
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

FileSizeLimitGuard::FileSizeLimitGuard() {
  const sigset_t held = file_size_signal();
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

FileSizeLimitGuard::~FileSizeLimitGuard() {
  // The program held it back before, and takes it in its own way.
  if (::sigismember(&before_, SIGXFSZ) == 1) return;
  const sigset_t held = file_size_signal();
  constexpr timespec kNoWait{};
  while (::sigtimedwait(&held, nullptr, &kNoWait) > 0) continue;
  ::pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

void end_at_once(std::string_view text, int exit_code) {
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
  ::_exit(exit_code);
}

void end_by_signal(int signal) {
  ::prctl(PR_SET_DUMPABLE, 0);
  make_signals_default();
  std::raise(signal);
  // Signals of its own do not kill the first process of a container. Shells exit like this, too.
  constexpr int kShellCode = 128;
  std::_Exit(kShellCode + signal);
}

Error become(const std::vector<std::string>& command) {
  const std::vector<char*> arguments = pointers_to(command);
  ::execvp(arguments[0], arguments.data());
  return system_error(fmt::format("cannot run '{}'", command[0]), errno);
}

}  // namespace trainyard::sys
