#include "ranks/python_client.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::ranks {
namespace {

constexpr const char* kBecomeRank =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from trainyard.ranks.process import run_as_rank; run_as_rank()";

/// The number of words of a command line that are the interpreter's.
constexpr std::size_t kInterpreter = 2;

/// The imports that all ranks have in common, as a module.
constexpr const char* kCommon = "trainyard_ranks";
constexpr std::string_view kCommonSource =
    "import trainyard.ranks.process\n"
    "try:\n"
    "    import numpy\n"
    "except Exception:\n"
    "    pass  # Who needs it is told so by his own import.\n";

/// Puts a text there, unless it is.
Result<void> put(const std::string& path, std::string_view text) {
  const auto there =
      sys::read_plain_file(path, Bytes(static_cast<std::int64_t>(text.size())), sys::Links::Refuse);
  if (there && *there == text) return {};
  return sys::replace_file(path, text);
}

/// The directory.
Result<std::string> client_in(std::string directory) {
  Result<void> written = sys::make_directories(directory + "/trainyard/ranks");
  for (const PythonFile& file : kPythonClient) {
    if (written) written = put(fmt::format("{}/{}", directory, file.path), file.text);
  }
  if (written) written = put(fmt::format("{}/{}.py", directory, kCommon), kCommonSource);
  if (!written) return std::unexpected(std::move(written.error()));
  return directory;
}

/// Different for different texts.
std::size_t fingerprint_of_client() {
  std::string all;
  for (const PythonFile& file : kPythonClient) all += file.text;
  return std::hash<std::string>()(all);
}

/// The client in the user's cache directory. Python's compiled files stay there; to compile them
/// takes 30 ms.
Result<std::string> client_in_cache() {
  std::optional<std::string> cache = sys::variable("XDG_CACHE_HOME");
  if (const auto home = sys::variable("HOME"); !cache && home) cache = *home + "/.cache";
  if (!cache) return std::unexpected(Error{"there is no home directory"});
  std::string directory =
      fmt::format("{}/trainyard/client-{:016x}", *cache, fingerprint_of_client());
  if (Result<void> made = sys::make_directories(directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  struct stat about{};
  if (::stat(directory.c_str(), &about) != 0 || about.st_uid != ::geteuid() ||
      (about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return std::unexpected(Error{"others can write to " + directory});
  }
  return client_in(std::move(directory));
}

/// PYTHONPATH with this directory first: it is searched even if Python must not search the current
/// one.
std::string search_path(const std::string& directory, const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PYTHONPATH=";
  std::string before = sys::variable("PYTHONPATH").value_or("");
  for (const std::string& each : environment) {
    if (each.starts_with(kName)) before = each.substr(kName.size());
  }
  return fmt::format("{}{}{}{}", kName, directory, before.empty() ? "" : ":", before);
}

}  // namespace

Result<RankCommand> python_rank(const std::string& components, std::string_view executor,
                                const std::string& directory,
                                const std::vector<std::string>& environment) {
  auto place = client_in_cache();
  if (!place) place = client_in(directory);
  if (!place) return std::unexpected(std::move(place.error()));
  const nlohmann::json list = nlohmann::json::parse(components);
  for (const auto& each : list) {
    if (each.at("id") != executor) continue;
    RankCommand rank;
    rank.line = {each.at("args").at("python").get<std::string>(), "-u", "-c", kBecomeRank, *place};
    rank.preload = {.modules = {kCommon},
                    .interpreter = kInterpreter,
                    .path = sys::current_directory().value_or("/"),
                    .environment = environment,
                    .log_path = directory + "/import.log"};
    rank.preload.environment.push_back(search_path(*place, environment));
    return rank;
  }
  return std::unexpected(Error{"there is no executor"});
}

}  // namespace trainyard::ranks
