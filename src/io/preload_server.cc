#include "io/preload_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/files.h"
#include "io/keeper_spawn.h"
#include "io/memory_group.h"
#include "io/passing.h"
#include "io/pidfd.h"
#include "io/preload_source.h"
#include "model/launch.h"

namespace trainyard::io {
namespace {

/// How long a process that has been forked and told to go on may take to say that it does.
constexpr int kLetGoMax = 1000;
/// How long it may go on without its socket.
constexpr Duration kEndMax{1000};
/// The longest text of an answer: _TEXT_MAX in preload_server.py.
constexpr std::size_t kTextMax = 4096;
/// How much of the log is searched for what went wrong.
constexpr std::size_t kLogEnd = 16384;

/// A file in memory, to be read from its beginning.
Result<Descriptor> file_with(std::string_view text) {
  const std::string name = "trainyard-preload";
  Descriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file.is_open()) {
    return std::unexpected(system_error("cannot write what a task is started with", errno));
  }
  if (Result<void> written = write_all(file, text, name); !written) {
    return std::unexpected(std::move(written.error()));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// What the task is to become, as become_task() in preload_server.py reads it.
std::string text_of(const Launch& launch, const std::vector<char*>& environment) {
  std::string text = launch.working_directory + '\0' + fmt::to_string(launch.preload.interpreter) +
                     '\0' + fmt::to_string(launch.arguments.size()) + '\0';
  for (const std::string& argument : launch.arguments) text += argument + '\0';
  for (const char* const variable : environment) {
    if (variable != nullptr) text += std::string(variable) + '\0';
  }
  return text;
}

/// The last line that was added to a log after it had that size.
std::string last_line(const std::string& path, std::size_t size_before) {
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(path, ignored);
  if (ignored || size <= size_before) return {};
  std::string text =
      read_end_of_file(path, std::min(kLogEnd, size - size_before)).value_or(std::string());
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<PreloadServer> PreloadServer::start(Spawner& spawner, const Launch& launch) {
  const Preload& preload = launch.preload;
  PreloadServer server;
  server.modules_ = fmt::format("{}", fmt::join(preload.modules, ", "));
  server.log_path_ = preload.log_path;
  const Descriptor log(
      ::open(preload.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (!log.is_open()) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", preload.log_path), errno));
  }
  server.log_size_ = static_cast<std::size_t>(std::max<off_t>(::lseek(log.get(), 0, SEEK_END), 0));
  const Result<Descriptor> source = file_with(kPreloadSource);
  if (!source) return std::unexpected(source.error());
  auto ends = socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));

  Launch own;
  own.arguments.assign(launch.arguments.begin(),
                       launch.arguments.begin() + static_cast<std::ptrdiff_t>(preload.interpreter));
  own.arguments.insert(
      own.arguments.end(),
      {"-c", "exec(compile(open(0, closefd=False).read(), 'trainyard-preload', 'exec'))",
       preload.path});
  own.arguments.insert(own.arguments.end(), preload.modules.begin(), preload.modules.end());
  own.environment = preload.environment;
  own.working_directory = launch.working_directory;
  Result<Spawned> spawned = spawner.start(
      own, {.in = source->get(), .out = log.get(), .err = log.get(), .third = ends->second.get()});
  if (!spawned) return std::unexpected(std::move(spawned).error());
  server.pid_ = spawned->pid;
  server.pidfd_ = std::move(spawned->pidfd);
  server.socket_ = std::move(ends->first);
  return server;
}

Result<void> PreloadServer::launch(Spawner& spawner, const Launch& launch) {
  const Result<Logs> logs = Spawner::prepare(launch);
  if (!logs) return std::unexpected(logs.error());
  const Result<Descriptor> text = file_with(text_of(launch, spawner.environment_of(launch)));
  if (!text) return std::unexpected(text.error());
  auto ends = socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  Result<MemoryGroup> group = Spawner::make_group(launch);
  if (!group) return std::unexpected(std::move(group).error());
  group_ = std::move(*group);
  permission_ = std::move(ends->first);
  // If this fails it is about to end, or ends now, and its end tells why.
  const std::array<int, 4> descriptors{text->get(), logs->out.get(), logs->err.get(),
                                       ends->second.get()};
  if (send_with(socket_.get(), "l", descriptors, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) kill();
  return {};
}

/// Cuts the next whole answer off what has been heard.
std::optional<PreloadServer::Answer> PreloadServer::take_answer() {
  std::int64_t number = 0;
  std::uint32_t length = 0;
  constexpr std::size_t kHead = sizeof(number) + sizeof(length);
  if (heard_.size() < kHead) return std::nullopt;
  std::memcpy(&number, heard_.data(), sizeof(number));
  std::memcpy(&length, heard_.data() + sizeof(number), sizeof(length));
  if (length > kTextMax) {
    kill();
    return std::nullopt;
  }
  if (heard_.size() - kHead < length) return std::nullopt;
  Answer answer{.number = number, .text = heard_.substr(kHead, length)};
  heard_.erase(0, kHead + length);
  return answer;
}

std::optional<Result<Spawned>> PreloadServer::hear() {
  std::array<char, kTextMax> bytes{};
  const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got == 0) {
    // It is about to end, and its exit code should tell why.
    if (!wait_until_ended(pidfd_, kEndMax)) kill();
    return std::nullopt;
  }
  if (got > 0) heard_.append(bytes.data(), static_cast<std::size_t>(got));
  const std::optional<Answer> whole = take_answer();
  if (!whole) {
    if (got < 0) kill();
    return std::nullopt;
  }
  if (whole->number == 0 && !ready_) {
    ready_ = true;
    for (const auto line : std::views::split(whole->text, '\n')) {
      if (!line.empty()) notes_.emplace_back(line.begin(), line.end());
    }
    return std::nullopt;
  }
  if (whole->number == 0 || !is_busy()) {
    kill();
    return std::nullopt;
  }
  const Descriptor permission = std::move(permission_);
  if (whole->number < 0) {
    return std::unexpected(
        system_error("cannot fork the process of the task", static_cast<int>(-whole->number)));
  }
  return let_go(static_cast<pid_t>(whole->number), permission);
}

/// The process waits until we know it, as it could end without anybody to see it otherwise.
Result<Spawned> PreloadServer::let_go(pid_t pid, const Descriptor& permission) {
  Descriptor pidfd = open_pidfd(pid);
  siginfo_t about{};
  const bool ours = pidfd.is_open() && ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &about,
                                                WEXITED | WNOHANG | WNOWAIT) == 0;
  if (!ours) return std::unexpected(Error{"cannot watch the process of the task"});
  if (group_.is_there()) {
    const Result<void> taken = group_.take_in(pid);
    if (!taken) return std::unexpected(taken.error());
  }
  static_cast<void>(::send(permission.get(), "g", 1, MSG_NOSIGNAL));
  pollfd waiting{.fd = permission.get(), .events = POLLIN, .revents = 0};
  static_cast<void>(::poll(&waiting, 1, kLetGoMax));
  char word = 0;
  if (::recv(permission.get(), &word, 1, MSG_DONTWAIT) == 1) {
    return Spawned{.pid = pid, .pidfd = std::move(pidfd), .group = std::exchange(group_, {})};
  }
  ::kill(pid, SIGKILL);  // It is reaped as all are that belong to nobody.
  return std::unexpected(Error{"its process ended before it could start"});
}

void PreloadServer::kill() const { send_signal(pidfd_, SIGKILL); }

bool PreloadServer::has_ended() const { return wait_until_ended(pidfd_, Duration(0)); }

PreloadServer::Ended PreloadServer::bury() const {
  ::kill(-pid_, SIGKILL);
  int status = 0;
  const bool known = ::waitpid(pid_, &status, WNOHANG) == pid_;
  const std::string cannot = ready_
                                 ? fmt::format("cannot start from what has imported {}", modules_)
                                 : fmt::format("cannot import {} beforehand", modules_);
  if (known && WIFSIGNALED(status)) {
    return {.why = fmt::format("{}: that process was killed by signal {} (see '{}')", cannot,
                               WTERMSIG(status), log_path_),
            .cured = true};
  }
  std::string said = last_line(log_path_, log_size_);
  if (said.empty()) said = fmt::format("exit code {}", known ? WEXITSTATUS(status) : 0);
  return {.why = fmt::format("{}: {} (see '{}')", cannot, said, log_path_), .cured = ready_};
}

}  // namespace trainyard::io
