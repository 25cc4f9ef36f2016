#include "process/keeper_spawn.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "model/set_variables.h"
#include "sys/fork.h"
#include "sys/pidfd.h"

namespace trainyard::process {
namespace {

std::string_view name_of(std::string_view name_and_value) {
  return name_and_value.substr(0, name_and_value.find('='));
}

}  // namespace

Spawner::Spawner(std::vector<int> inherited) : inherited_(std::move(inherited)) {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    // If the yard is a task of another one, its tasks do not speak for it there.
    const std::string_view name = name_of(*variable);
    constexpr std::array<std::string_view, 4> kOfThatTask{"TRAINYARD_SOCKET", "TRAINYARD_TOKEN",
                                                          "TRAINYARD_PHASES", "TRAINYARD_RANK"};
    if (std::ranges::find(kOfThatTask, name) != kOfThatTask.end()) continue;
    environment_.emplace_back(*variable);
  }
  for (std::size_t i = 0; i < environment_.size(); ++i) names_.emplace(name_of(environment_[i]), i);
  own_environment_ = model::without_set_variables(environment_);
  if (::getrlimit(RLIMIT_NOFILE, &files_of_tasks_) != 0) return;
  files_of_ours_ = files_of_tasks_;
  files_of_ours_.rlim_cur = files_of_ours_.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files_of_ours_) != 0) files_of_ours_ = files_of_tasks_;
}

std::vector<char*> Spawner::environment_of(const model::Launch& launch) const {
  const bool is_ours = launch.inherited.empty();
  std::vector<char*> pointers = sys::pointers_to(is_ours ? environment_ : launch.inherited);
  pointers.pop_back();
  const std::size_t fixed = is_ours ? pointers.size() : 0;
  for (const std::string& entry : launch.environment) {
    char* const text = const_cast<char*>(entry.c_str());
    const std::string_view name = name_of(entry);
    if (const auto found = names_.find(name); is_ours && found != names_.end()) {
      pointers[found->second] = text;
      continue;
    }
    const auto added = pointers.begin() + static_cast<std::ptrdiff_t>(fixed);
    const auto twice = std::find_if(added, pointers.end(),
                                    [name](const char* other) { return name_of(other) == name; });
    if (twice == pointers.end()) {
      pointers.push_back(text);
    } else {
      *twice = text;
    }
  }
  // A name alone is one that it is not to have.
  std::erase_if(pointers, [](const char* entry) { return std::strchr(entry, '=') == nullptr; });
  pointers.push_back(nullptr);
  return pointers;
}

void Spawner::mark_variables(model::Launch& launch) const {
  const std::vector<std::string>& inherited =
      launch.inherited.empty() ? own_environment_ : launch.inherited;
  std::vector<std::string_view> before(inherited.begin(), inherited.end());
  before.insert(before.end(), launch.user_variables.begin(), launch.user_variables.end());
  const std::vector<char*> pointers = environment_of(launch);
  const std::vector<std::string_view> now(pointers.begin(), std::prev(pointers.end()));
  std::string mark = fmt::format("{}={}", model::kSetVariables, model::set_variables(before, now));
  launch.environment.push_back(std::move(mark));
}

Result<Spawned> Spawner::start(model::Launch launch, const Extra& extra) {
  Result<MemoryGroup> group = make_group(launch);
  if (!group) return std::unexpected(std::move(group).error());
  Result<Spawned> spawned = start_in(*group, std::move(launch), extra);
  if (spawned) spawned->group = std::move(*group);
  return spawned;
}

Result<Spawned> Spawner::start_in(const MemoryGroup& group, model::Launch launch,
                                  const Extra& extra) {
  if (launch.arguments.empty() || launch.arguments[0].empty()) {
    return std::unexpected(Error{"cannot run a command that is empty"});
  }
  sys::Descriptor door;
  if (group.is_there()) {
    door = sys::Descriptor(::open(group.door().c_str(), O_WRONLY | O_CLOEXEC));
    if (!door.is_open()) {
      return std::unexpected(sys::system_error(
          fmt::format("cannot join the control group '{}'", group.door()), errno));
    }
  }
  mark_variables(launch);
  auto kept = std::make_unique<const model::Launch>(std::move(launch));
  std::vector<char*> environment = environment_of(*kept);
  Result<std::unique_ptr<Start>> start = Start::program(
      std::move(kept), {.environment = std::move(environment),
                        .streams = {.in = extra.in, .third = extra.third, .door = door.get()},
                        .files = files_of_tasks_,
                        .adds_to_logs = extra.adds_to_logs});
  if (!start) return std::unexpected(std::move(start).error());
  return watch(std::move(*start));
}

Result<Spawned> Spawner::watch(std::unique_ptr<Start> start) {
  sys::Descriptor pidfd = sys::open_pidfd(start->pid());
  if (pidfd.is_open()) {
    return Spawned{.pidfd = std::move(pidfd), .group = {}, .start = std::move(start)};
  }
  const int error = errno;
  ::kill(start->pid(), SIGKILL);
  static_cast<void>(::waitpid(start->pid(), nullptr, 0));
  return std::unexpected(sys::system_error("cannot watch the process of the task", error));
}

Result<MemoryGroup> Spawner::make_group(const model::Launch& launch) {
  if (launch.memory_group.empty()) return MemoryGroup();
  return MemoryGroup::make(launch.memory_group,
                           {.memory = launch.memory_max, .regions = launch.region_limits});
}

void Spawner::close_inherited() {
  for (const int number : std::exchange(inherited_, {})) ::close(number);
}

void Spawner::become_task(const model::Launch& launch, sys::Descriptor status) const {
  ::setsid();
  // The keeper is the only one who could see that it goes on without a yard.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "trainyard-task");
  for (const int signal : kIgnoredByKeeper) ::signal(signal, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // The descriptors of the keeper are closed before the task's files are opened, which may take
  // long.
  std::vector<int> kept = inherited_;
  kept.push_back(status.get());
  sys::close_all_but(std::move(kept));
  make_files_or_end(launch, status.get());
  // The closed descriptor reports that the program has begun.
  status.close();
  ::setrlimit(RLIMIT_NOFILE, &files_of_tasks_);
  // NOLINTBEGIN(concurrency-mt-unsafe): a fresh fork has one thread.
  for (const std::string& entry : launch.environment) {
    const std::string_view name = name_of(entry);
    ::setenv(std::string(name).c_str(), entry.c_str() + std::min(name.size() + 1, entry.size()), 1);
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

Result<Spawned> Spawner::fork(model::Launch launch,
                              const std::function<int(const model::Launch&)>& body) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return std::unexpected(sys::system_error("cannot fork the process of the task", errno));
  }
  sys::Descriptor status(ends[0]);
  sys::Descriptor tell(ends[1]);
  mark_variables(launch);
  const pid_t keeper = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    return std::unexpected(sys::system_error("cannot fork the process of the task", errno));
  if (pid == 0) {
    become_task(launch, std::move(tell));
    // The keeper may have died before it was watched.
    if (::getppid() != keeper) ::_exit(EXIT_FAILURE);
    // An exception must not unwind into the code that was running when the keeper was forked.
    const int code = [&]() noexcept { return body(launch); }();
    std::fflush(nullptr);
    ::_exit(code);
  }
  auto kept = std::make_unique<const model::Launch>(std::move(launch));
  return watch(std::make_unique<Start>(std::move(kept), pid, std::move(status)));
}

}  // namespace trainyard::process
