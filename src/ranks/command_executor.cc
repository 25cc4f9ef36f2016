#include "ranks/command_executor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/nearest.h"
#include "base/result.h"
#include "io/descriptor.h"
#include "io/files.h"
#include "io/pidfd.h"
#include "trainyard/component_registry.h"
#include "trainyard/rank_context.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"
#include "wire/json_text.h"

namespace trainyard {
namespace {

constexpr int kKillAfterMs = 5'000;
constexpr std::int64_t kResultMax = std::int64_t{1} << 20;

std::string filled(std::string text, std::string_view task, const RankContext& context) {
  const std::array<std::pair<std::string_view, std::string>, 4> values{
      {{"{task}", std::string(task)},
       {"{rank}", std::to_string(context.rank().value_or(0))},
       {"{local_rank}", std::to_string(context.local_rank())},
       {"{ranks}", std::to_string(context.ranks())}}};
  for (const auto& [placeholder, value] : values) {
    for (std::size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + value.size())) {
      text.replace(at, placeholder.size(), value);
    }
  }
  return text;
}

/// A directory that goes with it.
struct Workspace {
  Workspace() {
    auto made = io::make_private_directory("trainyard-command-");
    if (!made) throw std::runtime_error(made.error().message);
    path = *std::move(made);
  }
  Workspace(Workspace&&) = delete;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

/// Starts it in a process group of its own, with these variables beside ours.
pid_t spawn(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  environment.reserve(variables.size());
  for (const std::string& each : variables) environment.push_back(const_cast<char*>(each.c_str()));
  const auto is_said = [&](std::string_view inherited) {
    const std::string_view name = inherited.substr(0, inherited.find('='));
    return std::ranges::any_of(variables, [name](std::string_view variable) {
      return variable.substr(0, variable.find('=')) == name;
    });
  };
  // Of two with one name a shell takes the last.
  for (char** each = environ; *each != nullptr; ++each) {
    if (!is_said(*each)) environment.push_back(*each);
  }
  environment.push_back(nullptr);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  sigset_t all{};
  ::sigfillset(&all);
  sigset_t none{};
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(),
                                   environment.data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw std::runtime_error(
        io::system_error(fmt::format("cannot run '{}'", command[0]), error).message);
  }
  return pid;
}

/// Its exit status; TERM, then KILL, once `stop` is asked for.
int wait_for(pid_t pid, const std::stop_token& stop) {
  const io::Descriptor ended = io::open_pidfd(pid);
  if (!ended.is_open()) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw std::runtime_error("cannot watch a process: no more descriptors");
  }
  const io::Descriptor stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback wake(stop, [&stopped] {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stopped.get(), &one, sizeof one));
  });
  std::array<pollfd, 2> waiting{{{.fd = ended.get(), .events = POLLIN, .revents = 0},
                                 {.fd = stopped.get(), .events = POLLIN, .revents = 0}}};
  int timeout = -1;
  while (true) {
    const int ready = ::poll(waiting.data(), waiting.size(), timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || waiting[0].revents != 0) break;
    if (waiting[1].revents != 0) {
      waiting[1].fd = -1;
      timeout = kKillAfterMs;
      ::kill(-pid, SIGTERM);
    } else {
      ::kill(-pid, SIGKILL);
      timeout = -1;
    }
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  // What it has left behind in its group.
  ::kill(-pid, SIGKILL);
  return status;
}

std::vector<std::string> command_of(const std::string& task, const Json& given) {
  if (given.is_string() && !given.get_ref<const std::string&>().empty()) {
    return {"/bin/sh", "-c", given.get<std::string>()};
  }
  if (given.is_array() && !given.empty()) {
    std::vector<std::string> command;
    for (const Json& each : given) {
      command.push_back(each.is_string() ? each.get<std::string>() : each.dump());
    }
    return command;
  }
  throw std::invalid_argument(
      fmt::format("the command of '{}' must be a text or a list, and not empty", task));
}

}  // namespace

CommandExecutor::CommandExecutor(const Arguments& given) {
  const auto commands = given.get<Json>("commands");
  for (const auto& [task, command] : commands.items()) {
    commands_.emplace(task, command_of(task, command));
  }
}

Shareable CommandExecutor::execute(std::string_view task, const Shareable& input,
                                   RankContext& context, std::stop_token stop) {
  const auto found = commands_.find(task);
  if (found == commands_.end()) {
    std::vector<std::string_view> known;
    known.reserve(commands_.size());
    for (const auto& [name, command] : commands_) known.emplace_back(name);
    const auto near = nearest(task, known);
    return Shareable::reply(
        ReturnCode::TaskUnknown,
        near ? fmt::format("no command for the task '{}', did you mean '{}'?", task, *near)
             : fmt::format("no command for the task '{}'; there are {}", task,
                           fmt::join(known, ", ")));
  }
  const Workspace workspace;
  const std::string values = workspace.path + "/values.json";
  const std::string result = workspace.path + "/result.json";
  if (auto written = io::replace_file(values, input.values().dump()); !written) {
    throw std::runtime_error(written.error().message);
  }
  std::vector<std::string> command = found->second;
  for (std::string& each : command) each = filled(std::move(each), task, context);
  const int status =
      wait_for(spawn(command, {"TRAINYARD_VALUES=" + values, "TRAINYARD_RESULT=" + result,
                               fmt::format("TRAINYARD_TASK={}", task)}),
               stop);
  if (stop.stop_requested())
    return Shareable::reply(ReturnCode::TaskAborted, "it was told to stop");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Shareable::reply(
        ReturnCode::ExecutionException,
        WIFSIGNALED(status)
            ? fmt::format("'{}' was killed by signal {}", command[0], WTERMSIG(status))
            : fmt::format("'{}' exited with code {}", command[0], WEXITSTATUS(status)));
  }
  Shareable reply;
  const auto left = io::read_plain_file(result, Bytes(kResultMax));
  if (!left) return Shareable::reply(ReturnCode::ExecutionResultError, left.error().message);
  if (!left->has_value()) return reply;
  const auto compact = wire::compact_json(left->value_or(std::string()));
  const Json read = compact ? Json::parse(compact->text, nullptr, false) : Json();
  if (!read.is_object()) {
    return Shareable::reply(ReturnCode::ExecutionResultError,
                            "the command left a result that is no JSON object");
  }
  reply.set_values(read);
  return reply;
}

}  // namespace trainyard
