#include "text/launcher_text.h"

#include <algorithm>
#include <array>
#include <expected>
#include <iterator>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "wire/json_text.h"

namespace trainyard {
namespace {

constexpr std::string_view kCommand = "{command}";

Launcher with_more(std::vector<std::string> first, std::vector<std::string> more,
                   const std::vector<std::string>& last) {
  std::ranges::move(more, std::back_inserter(first));
  first.insert(first.end(), last.begin(), last.end());
  return {std::move(first)};
}

}  // namespace

Launcher Launcher::mpirun(std::vector<std::string> more) {
  std::vector<std::string> first{"mpirun", "--bind-to", "none", "--oversubscribe", "-n", "{ranks}"};
  if (::geteuid() == 0) first.emplace_back("--allow-run-as-root");
  return with_more(std::move(first), std::move(more), {std::string(kCommand)});
}

Launcher Launcher::torchrun(std::vector<std::string> more) {
  return with_more({"torchrun", "--nproc_per_node={ranks}", "--nnodes=1", "--node_rank=0",
                    "--master_addr=127.0.0.1", "--master_port={port}", "--max_restarts=0"},
                   std::move(more), {"--no_python", std::string(kCommand)});
}

Launcher Launcher::srun(std::vector<std::string> more) {
  // -K: the end of one rank ends all, like the built-in launcher.
  return with_more({"srun", "-K", "-n", "{ranks}", "--export=ALL"}, std::move(more),
                   {std::string(kCommand)});
}

Result<Launcher> Launcher::named(std::string_view name) {
  if (name == "built-in") return built_in();
  if (name == "mpirun") return mpirun();
  if (name == "torchrun") return torchrun();
  if (name == "srun") return srun();
  constexpr std::array<std::string_view, 4> kNames{"built-in", "mpirun", "torchrun", "srun"};
  const auto near = nearest(name, kNames);
  return std::unexpected(
      Error{near ? fmt::format("unknown launcher '{}' (did you mean '{}'?)", name, *near)
                 : fmt::format("unknown launcher '{}'; use {}, or a list with {{command}} in it",
                               name, fmt::join(kNames, ", "))});
}

std::string Launcher::name() const {
  if (arguments.empty()) return "built-in";
  return arguments[0].substr(arguments[0].rfind('/') + 1);
}

Result<Launcher> text::parse_launcher(std::string_view text) {
  if (!text.starts_with('[')) return Launcher::named(text);
  if (const auto checked = wire::compact_json(text); !checked) {
    return std::unexpected(
        Error{fmt::format("a list must be valid JSON, as in [\"mpirun\", \"{{command}}\"]; {}",
                          wire::to_text(checked.error()))});
  }
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool texts =
      list.is_array() && std::ranges::all_of(list, [](const auto& it) { return it.is_string(); });
  if (!texts || list.empty()) {
    return std::unexpected(Error{"a launcher must be a name or a list of texts"});
  }
  const auto arguments = list.get<std::vector<std::string>>();
  if (std::ranges::find(arguments, "{command}") == arguments.end()) {
    return std::unexpected(Error{"a launcher must have {command} as one of its arguments"});
  }
  return Launcher::command(arguments);
}

}  // namespace trainyard
