#include "run/unknown_attempts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/list_text.h"
#include "journal/reader.h"
#include "run/run_directory.h"
#include "sys/boot_clock.h"
#include "sys/clock.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

/// The error names as many task directories as a user reads.
constexpr std::size_t kNamesMax = 3;

/// The content of directories. A run may have many tasks that have not started, which have no
/// directory of their own: they cost no look each.
class Listing {
 public:
  bool has(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const auto [directory, is_new] = names_.try_emplace(path.substr(0, slash));
    if (is_new) {
      std::vector<std::string> names = sys::names_in(directory->first);
      directory->second = {names.begin(), names.end()};
    }
    return directory->second.contains(path.substr(slash + 1));
  }

 private:
  std::map<std::string, std::set<std::string>> names_;
};

bool is_written_since(const std::string& path, std::int64_t unix_ms) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 && about.st_mtim.tv_sec * 1'000 >= unix_ms;
}

}  // namespace

Result<void> check_attempts_are_known(const std::string& run_directory) {
  auto reader = journal::JournalReader::open(journal_path(run_directory));
  if (!reader) return {};
  const auto tasks = reader->unfinished_places();
  if (!tasks) return {};
  const std::int64_t booted = sys::unix_milliseconds() - sys::boot_clock().count();
  Listing listing;
  std::vector<std::string> unknown;
  for (const journal::TaskPlace& task : *tasks) {
    const std::string directory = run_directory + "/" + task.directory;
    const std::string log = directory + "/" + log_name("stdout", task.attempt + 1);
    if (listing.has(directory) && is_written_since(log, booted)) unknown.push_back(task.directory);
  }
  if (unknown.empty()) return {};
  const std::size_t others = unknown.size() - std::min(unknown.size(), kNamesMax);
  unknown.resize(unknown.size() - others);
  if (others > 0) {
    unknown.push_back(
        fmt::format("{} more task {}", others, others == 1 ? "directory" : "directories"));
  }
  return std::unexpected(Error{fmt::format(
      "the journal of '{}' does not contain the last attempts of its tasks, whose logs are in {}: "
      "journal.db-wal is missing or damaged. Put it back, or move these directories away to run "
      "the tasks again",
      run_directory, list_text(unknown))});
}

}  // namespace trainyard::run
