#include "run/clean_run.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "journal/reader.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/code_copy.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/remove_below.h"

namespace trainyard::run {
namespace {

/// True if a path from the journal leads to a place in the run directory and not out of it.
bool stays_inside(const std::filesystem::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  return std::ranges::none_of(path, [](const std::filesystem::path& part) { return part == ".."; });
}

bool is_submission_without_run(const std::string& run_directory) {
  if (sys::exists(journal_path(run_directory))) return false;
  if (!sys::exists(submission_path(run_directory))) return false;
  const Result<bool> begun = has_begun(run_directory);
  return begun && !*begun;
}

class Cleaner {
 public:
  Cleaner(std::string run_directory, const CleanOptions& options)
      : run_directory_(std::move(run_directory)), options_(options) {}

  void clean_task(const std::string& directory);
  void clean_code();
  void clean_run_files(const std::vector<std::string>& groups);
  void remove_empty_directories();

  Cleaned cleaned;

 private:
  bool clean_directory(const std::string& directory, std::function<bool(std::string_view)> kept);
  [[nodiscard]] std::optional<std::filesystem::path> link_on_way(
      const std::string& directory) const;
  void remove_file(const std::filesystem::path& path);
  void remove_empty(const std::filesystem::path& path);
  void failed(const std::filesystem::path& path, const std::error_code& why);
  [[nodiscard]] std::filesystem::path inside(std::string_view name) const {
    return std::filesystem::path(run_directory_) / name;
  }

  std::string run_directory_;
  CleanOptions options_;
  std::set<std::string> above_;  ///< Directories of groups.
  std::set<std::string> links_;  ///< Deleted links in the place of directories.
};

void Cleaner::failed(const std::filesystem::path& path, const std::error_code& why) {
  if (cleaned.failed.size() >= Cleaned::kFailedMax) return;
  cleaned.failed.push_back(fmt::format("'{}': {}", path.string(), why.message()));
}

/// A file, or the link itself.
void Cleaner::remove_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::exists(status)) return;
  std::uintmax_t size = 0;
  if (std::filesystem::is_regular_file(status)) {
    size = std::filesystem::file_size(path, error);
    if (error) size = 0;
  }
  if (!options_.only_look && !std::filesystem::remove(path, error) && error) {
    failed(path, error);
    return;
  }
  cleaned.bytes += Bytes{static_cast<std::int64_t>(size)};
  ++cleaned.entries;
}

void Cleaner::remove_empty(const std::filesystem::path& path) {
  std::error_code error;
  if (options_.only_look || !std::filesystem::is_empty(path, error) || error) return;
  std::filesystem::remove(path, error);
}

/// The copy of the code, where there is one that is known for it.
void Cleaner::clean_code() {
  if (sys::exists(code_record_path(run_directory_))) {
    clean_directory(std::string(kCodeCopy), [](std::string_view) { return false; });
  }
}

void Cleaner::clean_task(const std::string& directory) {
  if (!stays_inside(directory)) return;
  const bool is_there = clean_directory(directory, [this](std::string_view name) {
    return (options_.keep_results && is_result_file(name)) ||
           (options_.keep_logs && is_log_file(name));
  });
  if (!is_there) return;
  for (std::filesystem::path above = std::filesystem::path(directory).parent_path(); !above.empty();
       above = above.parent_path()) {
    if (!above_.insert(above.string()).second) break;
  }
}

/// The first link on the way to a directory: what is behind it is not of this run.
std::optional<std::filesystem::path> Cleaner::link_on_way(const std::string& directory) const {
  std::filesystem::path path = run_directory_;
  for (const std::filesystem::path& part : std::filesystem::path(directory)) {
    path /= part;
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) return path;
  }
  return std::nullopt;
}

/// Removes the content of a directory, and the directory if nothing of it is kept. False if there
/// is none. Removes a link in its place, or in that of a directory above, unless results or logs
/// are kept: they may be behind the link.
bool Cleaner::clean_directory(const std::string& directory,
                              std::function<bool(std::string_view)> kept) {
  if (const auto link = link_on_way(directory)) {
    if (!options_.keeps_some() && links_.insert(link->string()).second) remove_file(*link);
    return true;
  }
  const std::filesystem::path path = inside(directory);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return false;
  sys::Removed removed = sys::remove_below({.root = run_directory_,
                                            .directory = directory,
                                            .kept = std::move(kept),
                                            .only_look = options_.only_look});
  cleaned.bytes += removed.bytes;
  cleaned.entries += removed.entries;
  for (std::string& why : removed.failed) {
    if (cleaned.failed.size() < Cleaned::kFailedMax) cleaned.failed.push_back(std::move(why));
  }
  remove_empty(path);
  return true;
}

/// Removes the empty directories of groups, the innermost first.
void Cleaner::remove_empty_directories() {
  for (const std::string& each : std::views::reverse(above_)) {
    if (!link_on_way(each)) remove_empty(inside(each));
  }
}

/// The reports of these groups, and the journal with all files next to it. Not the lock, which
/// other processes check as long as there is anything.
void Cleaner::clean_run_files(const std::vector<std::string>& groups) {
  const std::filesystem::path reports = reports_directory(run_directory_);
  std::error_code error;
  if (std::filesystem::is_symlink(reports, error)) {
    // A task may have put it there, and the files beyond it are not of this run.
    remove_file(reports);
  } else {
    remove_file(reports / "index.html");
    for (const std::string& group : groups) {
      remove_file(reports / (report_name(group) + ".html"));
      remove_file(reports / (report_name(group) + ".json"));
    }
    remove_empty(reports);
  }
  remove_file(ends_path(run_directory_));
  remove_file(preload_log_path(run_directory_));
  remove_file(code_record_path(run_directory_));
  for (const auto& path : {run_log_path(run_directory_), submission_path(run_directory_),
                           kept_job_path(run_directory_), kept_files_path(run_directory_),
                           telling_log_path(run_directory_), on_finish_log_path(run_directory_)}) {
    remove_file(path);
  }
  for (const std::string& learned : options_.learned) {
    remove_file(learned);
    remove_empty(std::filesystem::path(learned).parent_path());
  }
  // What a task had put in the place of the journal: a directory may hold files of its own.
  const std::string aside =
      std::filesystem::path(journal_path(run_directory_)).filename().string() + ".other-";
  for (const std::string& name : sys::names_in(run_directory_)) {
    if (name.starts_with(aside) &&
        !std::filesystem::is_directory(std::filesystem::symlink_status(inside(name), error))) {
      remove_file(inside(name));
    }
  }
  for (const std::string_view end : {"-wal", "-shm", "-journal", ""}) {
    remove_file(fmt::format("{}{}", journal_path(run_directory_), end));
  }
}

}  // namespace

Result<Cleaned> clean_run(const std::string& run_directory, const CleanOptions& options) {
  std::optional<sys::RunLock> lock;
  if (options.only_look) {
    if (active_process(run_directory)) {
      return std::unexpected(Error{fmt::format("the run in '{}' is active", run_directory)});
    }
  } else {
    // The run may be active on another machine, and nothing brings its files back.
    Result<sys::RunLock> taken = lock_run(run_directory, PlaceOfLock::Leave);
    if (!taken) return std::unexpected(std::move(taken.error()));
    lock = std::move(*taken);
  }
  Cleaner cleaner(run_directory, options);
  std::vector<std::string> names;
  const bool has_begun = !is_submission_without_run(run_directory);
  if (!has_begun && !options.keeps_some()) cleaner.clean_code();
  if (has_begun) {
    Result<journal::JournalReader> reader =
        journal::JournalReader::open(journal_path(run_directory));
    if (!reader) return std::unexpected(std::move(reader.error()));
    const Result<std::vector<std::string>> directories = reader->task_directories();
    if (!directories) return std::unexpected(directories.error());
    const Result<std::vector<journal::GroupRow>> groups = reader->groups();
    if (!groups) return std::unexpected(groups.error());
    for (const std::string& directory : *directories) cleaner.clean_task(directory);
    if (!options.keeps_some()) cleaner.clean_code();
    for (const journal::GroupRow& group : *groups) names.push_back(group.name);
  }
  cleaner.remove_empty_directories();
  // The journal is what says what belongs to the run: it goes last, and not before all else is
  // gone.
  if (!options.keeps_some() && cleaner.cleaned.failed.empty()) {
    cleaner.clean_run_files(names);
    std::error_code error;
    if (!options.only_look) {
      std::filesystem::remove(run_directory + "/lock", error);
      cleaner.cleaned.is_gone = std::filesystem::remove(run_directory, error) && !error;
    }
  }
  return std::move(cleaner.cleaned);
}

}  // namespace trainyard::run
