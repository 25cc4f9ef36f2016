#include "run/run_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "sys/files.h"

namespace trainyard::run {
namespace {

namespace fs = std::filesystem;

/// Directory of submissions to a run, each below its number, so that two never share one.
constexpr std::string_view kSubmissions = "submissions";
/// Text of a job, below its run directory.
constexpr std::string_view kKeptJob = "/trainyard.job.yaml";

bool has_moved(const RunMove& move) {
  std::error_code error;
  return !move.was.empty() && move.was != move.is && !fs::equivalent(move.was, move.is, error);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.front() != '0' &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A directory that cannot be looked at counts as free: making it gives the error.
bool is_free(const std::string& directory) {
  if (!sys::exists(directory)) return true;
  std::error_code error;
  return fs::is_directory(directory, error) && (fs::is_empty(directory, error) || error);
}

}  // namespace

std::string real_directory(const std::string& wanted) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(wanted, error);
  return error ? wanted : real.string();
}

std::string path_after_move(const std::string& path, const RunMove& move) {
  if (!has_moved(move) || path.empty()) return path;
  const fs::path file(path);
  const fs::path directory = real_directory(file.parent_path().string());
  return (fs::path(move.is) / directory.lexically_relative(move.was) / file.filename())
      .lexically_normal()
      .string();
}

std::string directory_after_move(const std::string& path, const RunMove& move) {
  if (!has_moved(move) || path.empty()) return path;
  const fs::path directory = real_directory(path);
  const fs::path was = move.was;
  const auto [below, run_below] = std::ranges::mismatch(directory, was);
  // The two have nothing but the root in common.
  if (std::distance(was.begin(), run_below) < 2) return path;
  fs::path common = move.is;
  for (auto part = was.end(); part != run_below;) {
    if (common.filename() != *--part) return path;
    common = common.parent_path();
  }
  for (auto part = below; part != directory.end(); ++part) common /= *part;
  return common.string();
}

std::string free_run_directory(const std::string& first) {
  std::string directory = first;
  for (int number = 2; !is_free(directory); ++number) {
    directory = fmt::format("{}-{}", first, number);
  }
  return directory;
}

std::string mark_of(const std::string& run_directory) {
  return "TRAINYARD_RUN_DIR=" + run_directory;
}

std::string journal_path(const std::string& run_directory) { return run_directory + "/journal.db"; }

std::string reports_directory(const std::string& run_directory) {
  return run_directory + "/reports";
}

std::string ends_path(const std::string& run_directory) {
  return run_directory + "/trainyard.ends";
}

std::string preload_log_path(const std::string& run_directory) {
  return run_directory + "/trainyard.preload.log";
}

std::string run_log_path(const std::string& run_directory) {
  return run_directory + "/trainyard.run.log";
}

std::string submission_path(const std::string& run_directory) {
  return run_directory + "/trainyard.submission";
}

std::string kept_job_path(const std::string& run_directory) {
  return run_directory + std::string(kKeptJob);
}

bool is_kept_job_path(std::string_view job_file) { return job_file.ends_with(kKeptJob); }

std::string kept_files_path(const std::string& run_directory) {
  return run_directory + "/trainyard.files.json";
}

std::string telling_log_path(const std::string& run_directory) {
  return run_directory + "/trainyard.telling.log";
}

std::string on_finish_log_path(const std::string& run_directory) {
  return run_directory + "/trainyard.on-finish.log";
}

bool taken_in_run_directory(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"reports", "lock", "socket", kSubmissions};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("journal") ||
         name.starts_with(".trainyard") || name.starts_with("trainyard.");
}

std::string group_directory(std::uint32_t batch, std::string_view group, bool by_group) {
  const std::string above = batch > 1 ? fmt::format("{}/{}", kSubmissions, batch) : std::string();
  return by_group ? task_directory(above, group) : above;
}

std::string round_directory(std::string_view called, std::uint32_t round, bool by_group) {
  return by_group ? std::string(called) : fmt::format("round-{}", round);
}

std::string task_directory(std::string_view group_directory, std::string_view id) {
  return group_directory.empty() ? std::string(id) : fmt::format("{}/{}", group_directory, id);
}

std::string log_name(std::string_view stream, std::uint32_t attempt) {
  return attempt > 1 ? fmt::format("{}.{}.log", stream, attempt) : fmt::format("{}.log", stream);
}

std::optional<std::string> log_with_text(AttemptLogs logs,
                                         std::optional<Bytes> (*size_of)(const std::string& path)) {
  if (size_of(logs.stderr_path) != Bytes{0}) return std::move(logs.stderr_path);
  const std::optional<Bytes> output = size_of(logs.stdout_path);
  if (!output) return std::move(logs.stderr_path);
  if (*output == Bytes{0}) return std::nullopt;
  return std::move(logs.stdout_path);
}

std::string workers_directory(const std::string& task_directory, std::uint32_t attempt) {
  return attempt > 1 ? fmt::format("{}/workers.{}", task_directory, attempt) : task_directory;
}

std::string result_name(std::uint32_t attempt) { return fmt::format("result.{}.json", attempt); }

std::string report_name(std::string_view group) {
  std::string name(group);
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; }, '_');
  // The page of the run is called index.
  if (name.empty() || name.front() == '.' || name == "index") name.insert(0, 1, '_');
  return name;
}

std::vector<std::string> run_directories_like(const std::string& first) {
  const fs::path path(first);
  const std::string parent = path.parent_path().string();
  const std::string name = path.filename().string();
  std::vector<std::string> found;
  for (const std::string& other : sys::names_in(parent)) {
    if (is_directory_like(other, name)) found.push_back(fmt::format("{}/{}", parent, other));
  }
  return found;
}

bool is_directory_like(std::string_view name, std::string_view first) {
  if (!name.starts_with(first)) return false;
  name.remove_prefix(first.size());
  return name.empty() || (name.front() == '-' && is_number(name.substr(1)));
}

}  // namespace trainyard::run
