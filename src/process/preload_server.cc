#include "process/preload_server.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <expected>
#include <initializer_list>
#include <ranges>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/time.h"
#include "sys/files.h"
#include "sys/passing.h"
#include "sys/pidfd.h"

namespace trainyard::process {
namespace {

/// The maximum time that it may run without its socket.
constexpr Duration kEndMax{1000};
/// The longest text of an answer: _TEXT_MAX in preload_server.py.
constexpr std::size_t kTextMax = 4096;

/// A file in memory, to be read from its beginning.
Result<sys::Descriptor> file_with(std::string_view text) {
  const std::string name = "trainyard-preload";
  sys::Descriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file.is_open()) {
    return std::unexpected(sys::system_error("cannot write what a task is started with", errno));
  }
  if (Result<void> written = sys::write_all(file, text, name); !written) {
    return std::unexpected(std::move(written.error()));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// The program that the task becomes, as become_task() in preload_server.py reads it.
std::string text_of(const model::Launch& launch, const std::vector<char*>& environment) {
  std::string text;
  for (const std::string_view path : std::initializer_list<std::string_view>{
           launch.followed_directory(), launch.task_directory, launch.directory_to_make(),
           launch.result_path, launch.result_copy_path, launch.stdout_path, launch.stderr_path,
           launch.working_directory}) {
    text += path;
    text += '\0';
  }
  text += fmt::format("{}", launch.preload.interpreter) + '\0';
  text += fmt::format("{}", launch.arguments.size()) + '\0';
  for (const std::string& argument : launch.arguments) text += argument + '\0';
  for (const char* const variable : environment) {
    if (variable != nullptr) text += std::string(variable) + '\0';
  }
  return text;
}

}  // namespace

Result<PreloadServer> PreloadServer::start(Spawner& spawner, const model::Launch& launch) {
  const model::Preload& preload = launch.preload;
  PreloadServer server;
  server.modules_ = fmt::format("{}", fmt::join(preload.modules, ", "));
  server.log_path_ = preload.log_path;
  const Result<sys::Descriptor> source = file_with(kPreloadSource);
  if (!source) return std::unexpected(source.error());
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));

  model::Launch own;
  own.arguments.assign(launch.arguments.begin(),
                       launch.arguments.begin() + static_cast<std::ptrdiff_t>(preload.interpreter));
  own.arguments.insert(
      own.arguments.end(),
      {"-c", "exec(compile(open(0, closefd=False).read(), 'trainyard-preload', 'exec'))",
       preload.path});
  own.arguments.insert(own.arguments.end(), preload.modules.begin(), preload.modules.end());
  own.environment = preload.environment;
  own.working_directory = launch.working_directory;
  own.stdout_path = own.stderr_path = preload.log_path;
  Result<Spawned> spawned = spawner.start(
      std::move(own), {.in = source->get(), .third = ends->second.get(), .adds_to_logs = true});
  if (!spawned) return std::unexpected(std::move(spawned).error());
  server.start_ = std::move(spawned->start);
  server.pidfd_ = std::move(spawned->pidfd);
  server.socket_ = std::move(ends->first);
  return server;
}

Result<void> PreloadServer::launch(Spawner& spawner, const model::Launch& launch) {
  auto marked = std::make_unique<model::Launch>(launch);
  spawner.mark_variables(*marked);
  const Result<sys::Descriptor> text = file_with(text_of(*marked, spawner.environment_of(*marked)));
  if (!text) return std::unexpected(text.error());
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  Result<MemoryGroup> group = Spawner::make_group(launch);
  if (!group) return std::unexpected(std::move(group).error());
  group_ = std::move(*group);
  asked_for_ = std::move(marked);
  permission_ = std::move(ends->first);
  // If this fails it is about to end, or ends now, and its end tells why.
  const std::array<int, 2> descriptors{text->get(), ends->second.get()};
  if (sys::send_with(socket_.get(), "l", descriptors, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) kill();
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
    // The server is about to exit, and its exit code should tell why.
    if (!sys::wait_until_ended(pidfd_, kEndMax)) kill();
    return std::nullopt;
  }
  if (got > 0) heard_.append(bytes.data(), static_cast<std::size_t>(got));
  const std::optional<Answer> whole = take_answer();
  if (!whole) {
    if (got < 0) kill();
    return std::nullopt;
  }
  if (whole->number < 0 && !ready_) {
    why_ = whole->text;  // It ends of it.
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
  sys::Descriptor permission = std::move(permission_);
  if (whole->number < 0) {
    return std::unexpected(
        sys::system_error("cannot fork the process of the task", static_cast<int>(-whole->number)));
  }
  return let_go(static_cast<pid_t>(whole->number), std::move(permission));
}

/// The process waits until we know it, as it could end without anybody to see it otherwise.
Result<Spawned> PreloadServer::let_go(pid_t pid, sys::Descriptor permission) {
  sys::Descriptor pidfd = sys::open_pidfd(pid);
  siginfo_t about{};
  const bool ours = pidfd.is_open() && ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &about,
                                                WEXITED | WNOHANG | WNOWAIT) == 0;
  if (!ours) return std::unexpected(Error{"cannot watch the process of the task"});
  if (group_.is_there()) {
    const Result<void> taken = group_.take_in(pid);
    if (!taken) return std::unexpected(taken.error());
  }
  static_cast<void>(::send(permission.get(), "g", 1, MSG_NOSIGNAL));
  // From here on it says by this how far it is.
  ::fcntl(permission.get(), F_SETFL, O_NONBLOCK);
  return Spawned{
      .pidfd = std::move(pidfd),
      .group = std::exchange(group_, {}),
      .start = std::make_unique<Start>(std::move(asked_for_), pid, std::move(permission))};
}

std::string PreloadServer::why_late(std::chrono::steady_clock::duration after) const {
  if (!start_->is_on_its_way()) return {};
  return fmt::format(
      "the process that imports {} has not started for {} s: the disk of its log ('{}') or of "
      "its interpreter does not answer",
      modules_, std::chrono::duration<double>(after).count(), log_path_);
}

void PreloadServer::abandon() {
  kill();
  // NOLINTNEXTLINE(bugprone-unused-return-value): nobody has it from here on.
  static_cast<void>(start_.release());
}

void PreloadServer::kill() const { sys::send_signal(pidfd_, SIGKILL); }

bool PreloadServer::has_ended() const { return sys::wait_until_ended(pidfd_, Duration(0)); }

PreloadServer::Ended PreloadServer::bury() const {
  ::kill(-pid(), SIGKILL);
  int status = 0;
  const bool known = ::waitpid(pid(), &status, WNOHANG) == pid();
  if (const auto outcome = start_->outcome(); outcome && !*outcome) {
    return {.why = outcome->error().message, .cured = false};
  }
  const std::string cannot = ready_
                                 ? fmt::format("cannot start from what has imported {}", modules_)
                                 : fmt::format("cannot import {} beforehand", modules_);
  if (known && WIFSIGNALED(status)) {
    return {.why = fmt::format("{}: that process was killed by signal {} (see '{}')", cannot,
                               WTERMSIG(status), log_path_),
            .cured = true};
  }
  const std::string said =
      why_.empty() ? fmt::format("exit code {}", known ? WEXITSTATUS(status) : 0) : why_;
  return {.why = fmt::format("{}: {} (see '{}')", cannot, said, log_path_), .cured = ready_};
}

}  // namespace trainyard::process
