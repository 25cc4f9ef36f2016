#include "ranks/command_executor.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/nearest.h"
#include "base/result.h"
#include "sys/files.h"
#include "sys/stoppable_command.h"
#include "trainyard/rank_context.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"
#include "wire/json_text.h"

namespace trainyard::ranks {
namespace {

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
    auto made = sys::make_private_directory("trainyard-command-");
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
        near ? fmt::format("no command for the task '{}' (did you mean '{}'?)", task, *near)
             : fmt::format("no command for the task '{}'; there are {}", task,
                           fmt::join(known, ", ")));
  }
  const Workspace workspace;
  const std::string values = workspace.path + "/values.json";
  const std::string result = workspace.path + "/result.json";
  if (auto written = sys::replace_file(values, input.values().dump()); !written) {
    throw std::runtime_error(written.error().message);
  }
  std::vector<std::string> command = found->second;
  for (std::string& each : command) each = filled(std::move(each), task, context);
  const auto ended = sys::run_stoppable(
      {.arguments = command,
       .environment = {"TRAINYARD_VALUES=" + values, "TRAINYARD_RESULT=" + result,
                       fmt::format("TRAINYARD_TASK={}", task)}},
      stop);
  if (!ended) throw std::runtime_error(ended.error().message);
  if (stop.stop_requested())
    return Shareable::reply(ReturnCode::TaskAborted, "it was told to stop");
  if (ended->signal != 0 || ended->exit_code != 0) {
    return Shareable::reply(
        ReturnCode::ExecutionException,
        ended->signal != 0 ? fmt::format("'{}' was killed by signal {}", command[0], ended->signal)
                           : fmt::format("'{}' exited with code {}", command[0], ended->exit_code));
  }
  Shareable reply;
  const auto left = sys::read_plain_file(result, Bytes(kResultMax));
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

ComponentRegistry::Type command_type() {
  return {.name = "command",
          .arguments = {argument("commands", ArgumentKind::Object)},
          .executes = true,
          .make = [](const Arguments& given) -> std::shared_ptr<Component> {
            return std::make_shared<CommandExecutor>(given);
          }};
}

ComponentRegistry::Type python_type() {
  return {
      .name = kPythonType,
      .arguments = {argument<std::string>("script"), argument<std::string>("entry"),
                    optional_argument("args", ArgumentKind::Object), argument("python", "python3")},
      .executes = true};
}

}  // namespace trainyard::ranks
