#include "io/keeper_spawn.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "io/descriptor.h"
#include "io/files.h"
#include "io/memory_group.h"
#include "io/pidfd.h"
#include "model/launch.h"

namespace trainyard::io {
namespace {

std::string_view name_of(std::string_view name_and_value) {
  return name_and_value.substr(0, name_and_value.find('='));
}

Result<Descriptor> make_log(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644));
  if (!file.is_open()) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", path), errno));
  }
  return file;
}

/// The same once more, for the other stream.
Result<Descriptor> same_log(const Descriptor& log, const std::string& path) {
  Descriptor file(::fcntl(log.get(), F_DUPFD_CLOEXEC, 0));
  if (!file.is_open()) {
    return std::unexpected(system_error(fmt::format("cannot write '{}'", path), errno));
  }
  return file;
}

bool is_program(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// The file behind the name of a program, as execvp finds it with this PATH in that directory.
std::string find_program(const std::string& name, std::string_view path,
                         const std::string& directory) {
  if (name.contains('/')) return name;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view entry = path.substr(0, colon);
    std::string candidate = absolute_path(entry.empty() ? "." : entry, directory) + "/" + name;
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) return {};
    path.remove_prefix(colon + 1);
  }
}

/// What would make a file that is there run: nothing to add when it is executable.
std::string hint_for(const std::string& name, const std::string& file) {
  if (::access(file.c_str(), X_OK) == 0) return "";
  const std::string extension = std::filesystem::path(name).extension().string();
  std::string hint = fmt::format("; is it executable? try 'chmod +x {}'", name);
  if (extension == ".py") hint += fmt::format(" or 'python3 {}'", name);
  if (extension == ".sh") hint += fmt::format(" or 'sh {}'", name);
  return hint;
}

/// Why a program could not be started, found out after it was tried: the kernel only says that
/// something on the way did not work.
Error explain(const Launch& launch, const std::string& program, int error) {
  const std::string& directory = launch.working_directory;
  if (const Descriptor entered(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      !entered.is_open()) {
    return system_error(fmt::format("cannot enter the directory '{}'", directory), errno);
  }
  if (::access(directory.c_str(), X_OK) != 0) {
    return system_error(fmt::format("cannot enter the directory '{}'", directory), errno);
  }
  const std::string& name = launch.arguments[0];
  const std::string cannot = fmt::format("cannot run '{}'", name);
  const std::string here = absolute_path(program.empty() ? name : program, directory);
  if (program.empty()) {
    const bool near = is_there(here);
    return {fmt::format("{}: no such program on PATH{}", cannot,
                        near ? fmt::format("; did you mean './{}'?", name) : "")};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(here, ignored)) return {cannot + ": it is a directory"};
  switch (error) {
    case EACCES:
      return {fmt::format("{}: permission denied{}", cannot, hint_for(name, here))};
    case ENOENT:
      if (!is_there(here)) break;
      return {cannot + ": its first line names an interpreter that does not exist"};
    case ENOEXEC:
      return {cannot + ": exec format error; does it start with a line like '#!/bin/sh'?"};
    case E2BIG:
      return {cannot + ": its arguments and environment are too long for the system"};
    case EAGAIN:
      return {cannot +
              ": no more processes are allowed (see 'ulimit -u' and the cgroup's pids.max)"};
    default:
      break;
  }
  return system_error(cannot, error);
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<Spawned> watch_process(pid_t pid, std::string_view what) {
  Descriptor pidfd = open_pidfd(pid);
  if (pidfd.is_open()) return Spawned{.pid = pid, .pidfd = std::move(pidfd), .group = {}};
  const int error = errno;
  ::kill(-pid, SIGKILL);
  static_cast<void>(::waitpid(pid, nullptr, 0));
  return std::unexpected(
      system_error(fmt::format("cannot watch the process of '{}'", what), error));
}

/// What happens in the new process between fork and exec.
class Actions {
 public:
  Actions(const std::string& directory, const Streams& streams) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addchdir_np(&files, directory.c_str());
    const bool third = streams.third >= 0;
    if (streams.in >= 0) ::posix_spawn_file_actions_adddup2(&files, streams.in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, streams.out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, streams.err, STDERR_FILENO);
    if (third) ::posix_spawn_file_actions_adddup2(&files, streams.third, STDERR_FILENO + 1);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + (third ? 2 : 1));
    sigset_t signals{};
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    ::posix_spawnattr_setflags(
        &attributes,
        static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  }
  Actions(Actions&&) = delete;
  Actions& operator=(Actions&&) = delete;
  ~Actions() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

/// What a process is to become.
struct Image {
  const char* program = nullptr;
  const char* directory = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  Streams streams;
};

/// In the new process, which is a fork: only what may be called after one. Returns when it cannot.
void become(const Image& image, int door) {
  if (::write(door, "0", 1) != 1) return;
  ::setsid();
  const Streams& streams = image.streams;
  if (streams.in >= 0) ::dup2(streams.in, STDIN_FILENO);
  ::dup2(streams.out, STDOUT_FILENO);
  ::dup2(streams.err, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (streams.third >= 0) ::dup2(streams.third, STDERR_FILENO + 1);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(image.directory) != 0) return;
  ::execve(image.program, image.arguments, image.environment);
}

/// What posix_spawn does, but in the group from its first page on, which that can do itself from
/// glibc 2.39 on. Returns an errno, or 0.
int spawn_inside(const MemoryGroup& group, pid_t& pid, const Image& image) {
  const Descriptor door(::open(group.door().c_str(), O_WRONLY | O_CLOEXEC));
  if (!door.is_open()) return errno;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  const Descriptor told(ends[0]);
  Descriptor tell(ends[1]);
  pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    become(image, door.get());
    const int error = errno;
    static_cast<void>(::write(tell.get(), &error, sizeof(error)));
    ::_exit(EXIT_FAILURE);
  }
  tell.close();
  int error = 0;
  if (::read(told.get(), &error, sizeof(error)) != sizeof(error)) return 0;
  static_cast<void>(::waitpid(pid, nullptr, 0));
  return error;
}

}  // namespace

Spawner::Spawner() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    // When the yard is a task of another one, its tasks do not speak for it there.
    const std::string_view name = name_of(*variable);
    if (name == "TRAINYARD_SOCKET" || name == "TRAINYARD_TOKEN" || name == "TRAINYARD_RANK") {
      continue;
    }
    environment_.emplace_back(*variable);
  }
  for (std::size_t i = 0; i < environment_.size(); ++i) names_.emplace(name_of(environment_[i]), i);
  if (::getrlimit(RLIMIT_NOFILE, &files_of_tasks_) != 0) return;
  files_of_ours_ = files_of_tasks_;
  files_of_ours_.rlim_cur = files_of_ours_.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files_of_ours_) != 0) files_of_ours_ = files_of_tasks_;
}

std::vector<char*> Spawner::environment_of(const Launch& launch) const {
  std::vector<char*> pointers = pointers_to(environment_);
  pointers.pop_back();
  const std::size_t inherited = pointers.size();
  for (const std::string& entry : launch.environment) {
    char* const text = const_cast<char*>(entry.c_str());
    const std::string_view name = name_of(entry);
    if (const auto found = names_.find(name); found != names_.end()) {
      pointers[found->second] = text;
      continue;
    }
    const auto added = pointers.begin() + static_cast<std::ptrdiff_t>(inherited);
    const auto twice = std::find_if(added, pointers.end(),
                                    [name](const char* other) { return name_of(other) == name; });
    if (twice == pointers.end()) {
      pointers.push_back(text);
    } else {
      *twice = text;
    }
  }
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> Spawner::spawn(const Launch& launch, const Streams& streams,
                             const MemoryGroup& group) {
  const std::vector<char*> environment = environment_of(launch);
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const char* const entry : environment) {
    if (entry != nullptr && name_of(entry) == "PATH") path = std::string_view(entry).substr(5);
  }
  const std::string program = find_program(launch.arguments[0], path, launch.working_directory);
  if (program.empty()) return std::unexpected(explain(launch, program, ENOENT));

  const std::vector<char*> arguments = pointers_to(launch.arguments);
  // The new process takes over the limit that is in force at this moment.
  const bool lower = files_of_ours_.rlim_cur != files_of_tasks_.rlim_cur;
  if (lower) ::setrlimit(RLIMIT_NOFILE, &files_of_tasks_);
  pid_t pid = 0;
  int error = 0;
  if (group.is_there()) {
    error = spawn_inside(group, pid,
                         {.program = program.c_str(),
                          .directory = launch.working_directory.c_str(),
                          .arguments = arguments.data(),
                          .environment = environment.data(),
                          .streams = streams});
  } else {
    const Actions actions(launch.working_directory, streams);
    error = ::posix_spawn(&pid, program.c_str(), &actions.files, &actions.attributes,
                          arguments.data(), environment.data());
  }
  if (lower) ::setrlimit(RLIMIT_NOFILE, &files_of_ours_);
  if (error != 0) return std::unexpected(explain(launch, program, error));
  return pid;
}

Result<Logs> Spawner::prepare(const Launch& launch) {
  if (Result<void> made = make_directories(launch.task_directory); !made) {
    return std::unexpected(std::move(made).error());
  }
  if (::unlink(launch.result_path.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(
        system_error(fmt::format("cannot remove the old '{}'", launch.result_path), errno));
  }
  Result<Descriptor> out = make_log(launch.stdout_path);
  if (!out) return std::unexpected(std::move(out.error()));
  const bool same = launch.stderr_path == launch.stdout_path;
  Result<Descriptor> err = same ? same_log(*out, launch.stderr_path) : make_log(launch.stderr_path);
  if (!err) return std::unexpected(std::move(err.error()));
  return Logs{.out = std::move(*out), .err = std::move(*err)};
}

Result<Spawned> Spawner::start(const Launch& launch) {
  if (launch.arguments.empty() || launch.arguments[0].empty()) {
    return std::unexpected(Error{"cannot run a command that is empty"});
  }
  const Result<Logs> logs = prepare(launch);
  if (!logs) return std::unexpected(logs.error());
  return start(launch, {.out = logs->out.get(), .err = logs->err.get()});
}

Result<Spawned> Spawner::start(const Launch& launch, const Streams& streams) {
  Result<MemoryGroup> group = make_group(launch);
  if (!group) return std::unexpected(std::move(group).error());
  const Result<pid_t> pid = spawn(launch, streams, *group);
  if (!pid) return std::unexpected(pid.error());
  Result<Spawned> spawned = watch_process(*pid, launch.arguments[0]);
  if (spawned) spawned->group = std::move(*group);
  return spawned;
}

Result<MemoryGroup> Spawner::make_group(const Launch& launch) {
  if (launch.memory_group.empty()) return MemoryGroup();
  return MemoryGroup::make(launch.memory_group, launch.memory_max);
}

void Spawner::become_task(const Launch& launch, const Logs& logs) const {
  // The keeper is the only one who could see that it goes on without a yard.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "trainyard-task");
  ::dup2(logs.out.get(), STDOUT_FILENO);
  ::dup2(logs.err.get(), STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  for (const int signal : kIgnoredByKeeper) ::signal(signal, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::setrlimit(RLIMIT_NOFILE, &files_of_tasks_);
  // NOLINTBEGIN(concurrency-mt-unsafe): a fresh fork has one thread.
  for (const std::string& entry : launch.environment) {
    const std::string_view name = name_of(entry);
    ::setenv(std::string(name).c_str(), entry.c_str() + std::min(name.size() + 1, entry.size()), 1);
  }
  // NOLINTEND(concurrency-mt-unsafe)
  check(::chdir(launch.task_directory.c_str()) == 0, "a task's directory that was just made");
}

Result<Spawned> Spawner::fork(const Launch& launch, const std::function<int()>& body) {
  const Result<Logs> logs = prepare(launch);
  if (!logs) return std::unexpected(logs.error());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(system_error("cannot fork the process of the task", errno));
  }
  const Descriptor ready(ends[0]);
  Descriptor not_yet(ends[1]);
  const pid_t keeper = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(system_error("cannot fork the process of the task", errno));
  if (pid == 0) {
    ::setsid();
    become_task(launch, *logs);  // Closes `not_yet`.
    // The keeper may have died before it was watched.
    if (::getppid() != keeper) ::_exit(EXIT_FAILURE);
    // What is thrown must not unwind into what the program was doing when the keeper was forked.
    const int code = [&body]() noexcept { return body(); }();
    std::fflush(nullptr);
    ::_exit(code);
  }
  // From then on it leads a session and a group that can be told to end.
  not_yet.close();
  char nothing = 0;
  static_cast<void>(::read(ready.get(), &nothing, 1));
  return watch_process(pid, "the task");
}

}  // namespace trainyard::io
