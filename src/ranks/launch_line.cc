#include "ranks/launch_line.h"

#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trainyard::ranks {
namespace {

constexpr std::string_view kCommand = "{command}";

std::string filled_in(std::string text, const RankPlan& plan) {
  for (const auto& [placeholder, value] :
       {std::pair<std::string_view, int>{"{ranks}", plan.ranks}, {"{port}", plan.port}}) {
    for (std::size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at)) {
      text.replace(at, placeholder.size(), std::to_string(value));
    }
  }
  return text;
}

}  // namespace

Result<std::vector<std::string>> launch_line(const Launcher& launcher, const RankPlan& plan) {
  std::vector<std::string> line;
  bool has_command = false;
  for (const std::string& each : launcher.arguments) {
    if (each != kCommand) {
      line.push_back(filled_in(each, plan));
      continue;
    }
    has_command = true;
    line.insert(line.end(), plan.command.begin(), plan.command.end());
  }
  if (has_command) return line;
  return std::unexpected(Error{fmt::format(
      "the launcher '{}' does not say where the command goes: one of its arguments must be {}",
      fmt::join(launcher.arguments, " "), kCommand)});
}

bool starts_descendants(const Launcher& launcher) {
  const std::string name = launcher.name();
  return name == "built-in" || name == "mpirun" || name == "torchrun";
}

}  // namespace trainyard::ranks
