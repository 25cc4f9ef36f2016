#include "ranks/launch_line.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <expected>
#include <string_view>
#include <system_error>
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

/// The largest number of ranks or of a rank, by whatever program sets it.
constexpr int kNumberMax = 1'000'000;

struct Source {
  const char* rank;
  const char* ranks;
  const char* local_rank;
};

constexpr std::array<Source, 6> kSources{{
    {.rank = "TRAINYARD_RANK", .ranks = "WORLD_SIZE", .local_rank = "LOCAL_RANK"},
    {.rank = "RANK", .ranks = "WORLD_SIZE", .local_rank = "LOCAL_RANK"},
    {.rank = "OMPI_COMM_WORLD_RANK",
     .ranks = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK"},
    {.rank = "PMIX_RANK",
     .ranks = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK"},
    {.rank = "PMI_RANK", .ranks = "PMI_SIZE", .local_rank = "MPI_LOCALRANKID"},
    {.rank = "SLURM_PROCID", .ranks = "SLURM_NTASKS", .local_rank = "SLURM_LOCALID"},
}};

/// Nothing when it is not set; an error when it is no number from 0 on.
Result<std::optional<int>> number_in(const Lookup& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  int number = -1;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || rest != end || number < 0 || number > kNumberMax) {
    return std::unexpected(Error{fmt::format("{}='{}' is not a number of a rank", name, *text)});
  }
  return number;
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

Result<RankNumber> rank_number(const Lookup& environment) {
  std::string several;  ///< The variable with a number of ranks above 1.
  for (const Source& source : kSources) {
    const auto rank = number_in(environment, source.rank);
    if (!rank) return std::unexpected(rank.error());
    const auto ranks = number_in(environment, source.ranks);
    if (!ranks) return std::unexpected(ranks.error());
    const bool of_slurm = std::string_view(source.rank) == "SLURM_PROCID";
    if (const int said = ranks->value_or(1); said > 1 && several.empty()) {
      several = fmt::format("{} is {}", source.ranks, said);
    }
    const std::optional<int>& found = *rank;
    if (!found || (of_slurm && ranks->value_or(1) <= 1)) continue;
    const auto local = number_in(environment, source.local_rank);
    if (!local) return std::unexpected(local.error());
    return RankNumber{.rank = *found, .local_rank = local->value_or(*found), .ranks = *ranks};
  }
  if (several.empty()) return RankNumber{.rank = 0, .local_rank = 0};
  return std::unexpected(Error{fmt::format(
      "{}, and nothing says which rank this is (RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, "
      "SLURM_PROCID)",
      several)});
}

Result<void> check_rank(const RankNumber& number, int ranks) {
  if (const int said = number.ranks.value_or(ranks); said != ranks) {
    return std::unexpected(Error{fmt::format(
        "rank {} was started as one of {}, and there must be {}", number.rank, said, ranks)});
  }
  if (number.rank < ranks) return {};
  return std::unexpected(Error{
      fmt::format("rank {} is there, and the last of {} is {}", number.rank, ranks, ranks - 1)});
}

}  // namespace trainyard::ranks
