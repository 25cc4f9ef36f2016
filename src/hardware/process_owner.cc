#include "hardware/process_owner.h"

#include <array>
#include <cstddef>
#include <ranges>
#include <string_view>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hardware/cgroup.h"

namespace trainyard::hardware {

std::optional<std::uint32_t> other_user_of(std::int64_t pid) {
  struct stat about{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &about) != 0) return std::nullopt;
  if (about.st_uid == ::geteuid()) return std::nullopt;
  return about.st_uid;
}

std::string name_of_process(std::int64_t pid) {
  std::string name = read_small_file(fmt::format("/proc/{}/comm", pid));
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::optional<std::string> name_of_user(std::uint32_t user) {
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int failed = ::getpwuid_r(user, &entry, room.data(), room.size(), &found);
  if (failed != 0 || found == nullptr) return std::nullopt;
  return entry.pw_name;
}

namespace {

constexpr std::size_t kCommandMax = 200;

/// The words of a file in which each ends with a zero byte.
std::vector<std::string> words_of(const std::string& path) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(read_small_file(path), '\0')) {
    words.emplace_back(word.begin(), word.end());
  }
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& each : environment) {
    const std::string_view text = each;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      return std::string(text.substr(name.size() + 1));
    }
  }
  return {};
}

}  // namespace

model::GpuStranger stranger_of(const GpuProcess& process) {
  return {.user = other_user_of(process.pid),
          .program = name_of_process(process.pid),
          .memory = process.memory_known ? std::optional(process.memory) : std::nullopt,
          .draws = process.draws};
}

ProcessOwner owner_of(std::int64_t pid) {
  ProcessOwner owner;
  struct stat about{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &about) != 0) return owner;
  owner.user = name_of_user(about.st_uid).value_or(std::to_string(about.st_uid));
  owner.command = fmt::format("{}", fmt::join(words_of(fmt::format("/proc/{}/cmdline", pid)), " "));
  if (owner.command.empty()) owner.command = name_of_process(pid);
  if (owner.command.size() > kCommandMax) owner.command.resize(kCommandMax);
  const std::vector<std::string> environment = words_of(fmt::format("/proc/{}/environ", pid));
  owner.group = value_of(environment, "TRAINYARD_GROUP");
  owner.task = value_of(environment, "TRAINYARD_TASK_ID");
  owner.run_directory = value_of(environment, "TRAINYARD_RUN_DIR");
  return owner;
}

std::vector<std::int64_t> ancestors_of(std::int64_t pid) {
  constexpr std::size_t kMost = 64;
  std::vector<std::int64_t> ancestors;
  while (pid > 1 && ancestors.size() < kMost) {
    const std::string stat = read_small_file(fmt::format("/proc/{}/stat", pid));
    // Its name, in brackets, may have anything in it: " (name) S 4711 ...".
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 > stat.size()) break;
    pid = std::atoll(stat.c_str() + end + 4);
    if (pid > 0) ancestors.push_back(pid);
  }
  return ancestors;
}

}  // namespace trainyard::hardware
