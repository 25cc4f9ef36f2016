#include "ranks/launch_line.h"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/result.h"
#include "trainyard/launcher.h"

namespace trainyard {
namespace {

constexpr std::string_view kCommand = "{command}";
constexpr std::string_view kMasterAddress = "127.0.0.1";

std::string filled(std::string text, const RankPlan& plan) {
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
      line.push_back(filled(each, plan));
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

std::vector<std::string> common_environment(const RankPlan& plan) {
  std::vector<std::string> environment;
  for (const std::string_view name :
       {"TRAINYARD_RANK", "RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
        "SLURM_LOCALID"}) {
    environment.push_back(fmt::format("{}=", name));
  }
  environment.push_back(fmt::format("WORLD_SIZE={}", plan.ranks));
  environment.push_back(fmt::format("LOCAL_WORLD_SIZE={}", plan.ranks));
  environment.emplace_back("GROUP_RANK=0");
  environment.push_back(fmt::format("MASTER_ADDR={}", kMasterAddress));
  environment.push_back(plan.port == 0 ? "MASTER_PORT=" : fmt::format("MASTER_PORT={}", plan.port));
  return environment;
}

}  // namespace trainyard
