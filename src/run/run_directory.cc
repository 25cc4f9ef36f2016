#include "run/run_directory.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "io/files.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text.front() != '0' &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// One that cannot be looked at counts as free: whoever makes it is told why.
bool is_free(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return true;
  return fs::is_directory(directory, error) && (fs::is_empty(directory, error) || error);
}

}  // namespace

std::string free_run_directory(const std::string& first) {
  std::string directory = first;
  for (int number = 2; !is_free(directory); ++number) {
    directory = fmt::format("{}-{}", first, number);
  }
  return directory;
}

std::vector<std::string> run_directories_like(const std::string& first) {
  const fs::path path(first);
  const std::string parent = path.parent_path().string();
  const std::string name = path.filename().string();
  std::vector<std::string> found;
  for (const std::string& other : io::names_in(parent)) {
    const bool numbered =
        other.starts_with(name + "-") && is_number(std::string_view(other).substr(name.size() + 1));
    if (other == name || numbered) found.push_back(fmt::format("{}/{}", parent, other));
  }
  return found;
}

}  // namespace trainyard
