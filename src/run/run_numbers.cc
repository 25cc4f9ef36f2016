#include "run/run_numbers.h"

#include <algorithm>
#include <charconv>
#include <expected>
#include <filesystem>
#include <functional>
#include <system_error>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "run/run_directory.h"
#include "sys/environment.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

/// Number of times that another run may take the number that we are about to take.
constexpr int kTriesMax = 1000;

std::optional<std::string> target_of(const std::string& link) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(link, error);
  if (error || target.empty()) return std::nullopt;
  return target.string();
}

}  // namespace

std::optional<std::uint32_t> read_run_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = failed == std::errc{} && end == text.data() + text.size();
  if (!whole || text.front() == '0') return std::nullopt;
  return number;
}

Result<std::string> state_of_this_user() {
  const std::optional<std::string> state = sys::variable("XDG_STATE_HOME");
  const std::optional<std::string> home = sys::variable("HOME");
  // A relative path is to be ignored, as the standard of these variables says.
  const bool said = state && state->starts_with('/');
  if (!said && (!home || !home->starts_with('/'))) {
    return std::unexpected(
        Error{"the directory for your state is unknown: set HOME or XDG_STATE_HOME"});
  }
  const std::string parent = said ? *state : *home + "/.local/state";
  return fmt::format("{}/trainyard/{}", parent, sys::host_name());
}

Result<RunNumbers> RunNumbers::of_this_user() {
  Result<std::string> state = state_of_this_user();
  if (!state) return std::unexpected(std::move(state.error()));
  return RunNumbers(*state + "/runs");
}

std::string RunNumbers::link_of(std::uint32_t number) const {
  return fmt::format("{}/{}", directory_, number);
}

std::string RunNumbers::start_link_of(std::uint32_t number) const {
  return link_of(number) + ".from";
}

std::optional<std::string> RunNumbers::directory_of(std::uint32_t number) const {
  return target_of(link_of(number));
}

std::optional<std::string> RunNumbers::start_of(std::uint32_t number) const {
  return target_of(start_link_of(number));
}

std::vector<std::uint32_t> RunNumbers::numbers() const {
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : sys::names_in(directory_)) {
    if (const auto number = read_run_number(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers, std::greater<>());
  return numbers;
}

std::vector<RunNumbers::Numbered> RunNumbers::all() const {
  std::vector<Numbered> all;
  for (const std::uint32_t number : numbers()) {
    std::optional<std::string> directory = directory_of(number);
    if (directory) all.push_back({.number = number, .directory = std::move(*directory)});
  }
  return all;
}

std::vector<std::string> RunNumbers::started_from(const std::string& directory) const {
  std::vector<std::string> found;
  for (Numbered& run : all()) {
    if (start_of(run.number) == directory) found.push_back(std::move(run.directory));
  }
  return found;
}

std::optional<std::uint32_t> RunNumbers::number_of(const std::string& run_directory) const {
  for (const std::uint32_t number : numbers()) {
    if (directory_of(number) == run_directory) return number;
  }
  return std::nullopt;
}

std::string RunNumbers::identity() const {
  const auto facts = sys::entry_facts(directory_);
  if (!facts) return {};
  // In two containers the same path may be two directories, and they may have the same inode.
  Fingerprint fingerprint;
  fingerprint.add(real_directory(directory_));
  fingerprint.add(static_cast<std::int64_t>(facts->inode));
  return fmt::format("{:016x}", fingerprint.value());
}

Result<std::uint32_t> RunNumbers::keep(const std::string& run_directory,
                                       const std::string& started_from) const {
  if (const std::optional<std::uint32_t> number = number_of(run_directory)) return *number;
  return give(run_directory, started_from);
}

Result<std::uint32_t> RunNumbers::give(const std::string& run_directory,
                                       const std::string& started_from) const {
  if (Result<void> made = sys::make_directories(directory_); !made) {
    return std::unexpected(std::move(made.error()));
  }
  const std::vector<Numbered> before = all();
  std::uint32_t number = before.empty() ? 1 : before.front().number + 1;
  std::error_code error;
  for (int tries = 0; tries < kTriesMax; ++tries, ++number) {
    std::filesystem::create_symlink(run_directory, link_of(number), error);
    if (error != std::errc::file_exists) break;
  }
  if (error) {
    return std::unexpected(
        Error{fmt::format("cannot make '{}': {}", link_of(number), error.message())});
  }
  std::error_code ignored;
  // One of a number that was forgotten may have been left by a power failure.
  std::filesystem::remove(start_link_of(number), ignored);
  std::filesystem::create_symlink(started_from, start_link_of(number), ignored);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool same = before[i].directory == run_directory;
    if (same || i + 1 >= kKeptMax) forget(before[i].number);
  }
  return number;
}

void RunNumbers::forget(std::uint32_t number) const {
  std::error_code ignored;
  std::filesystem::remove(start_link_of(number), ignored);
  std::filesystem::remove(link_of(number), ignored);
}

}  // namespace trainyard::run
