#include "process/watchers.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "process/guard.h"
#include "process/keeper.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"

namespace trainyard::process {
namespace {

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_open(std::int64_t pid, const DirectoryIdentity& directory) {
  const std::string descriptors = fmt::format("/proc/{}/fd", pid);
  return std::ranges::any_of(sys::names_in(descriptors), [&](const std::string& number) {
    return directory_at(fmt::format("{}/{}", descriptors, number)) == directory;
  });
}

}  // namespace

std::optional<DirectoryIdentity> directory_at(const std::string& path) {
  struct statx facts{};
  constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_UID;
  const bool found = ::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, kWanted, &facts) == 0;
  if (!found || !S_ISDIR(facts.stx_mode)) return std::nullopt;
  return DirectoryIdentity{.device_major = facts.stx_dev_major,
                           .device_minor = facts.stx_dev_minor,
                           .inode = facts.stx_ino,
                           .owner = facts.stx_uid};
}

std::vector<Watcher> find_watchers() {
  constexpr std::size_t kNameMax = 64;
  const sys::ProcessScan scan;
  std::vector<Watcher> watchers;
  for (const std::string& number : sys::names_in("/proc")) {
    if (!is_number(number)) continue;
    Watcher watcher{.pid = std::stoll(number), .name = {}, .directory = {}};
    watcher.name = scan.read_text(watcher.pid, "comm", kNameMax);
    if (watcher.name.ends_with('\n')) watcher.name.pop_back();
    if (watcher.name != kKeeperName && watcher.name != kGuardName) continue;
    const auto directory = directory_at(fmt::format("/proc/{}/cwd", number));
    const auto process = directory_at(fmt::format("/proc/{}", number));
    const std::optional<sys::ProcessStat> stat = scan.read(watcher.pid);
    if (!directory || !process || !stat) continue;
    // Root sees the processes of everybody, and any user can give a process this name and directory.
    if (process->owner != ::geteuid() && process->owner != directory->owner) continue;
    watcher.directory = *directory;
    if (has_open(stat->parent, watcher.directory)) watcher.yard = stat->parent;
    watchers.push_back(std::move(watcher));
  }
  std::ranges::sort(watchers, {}, &Watcher::pid);
  return watchers;
}

std::vector<Watcher> watchers_of(const std::string& run_directory, std::vector<Watcher> watchers) {
  const auto directory = directory_at(run_directory);
  std::erase_if(watchers, [&](const Watcher& each) { return each.directory != directory; });
  return watchers;
}

bool wait_for_watchers(const std::string& run_directory, Duration most,
                       const std::function<void(const Watcher&)>& on_wait) {
  constexpr Duration kSayAfter{1'000};
  constexpr Duration kLookEvery{20};
  const Duration begin = sys::EventLoop::now();
  bool is_told = !on_wait;
  while (true) {
    // A guard may have forked another keeper meanwhile.
    const std::vector<Watcher> watchers = watchers_of(run_directory);
    if (watchers.empty()) return true;
    const Duration waited = sys::EventLoop::now() - begin;
    if (waited >= most) return false;
    if (waited >= kSayAfter && !std::exchange(is_told, true)) on_wait(watchers.front());
    // Within this time also where the number has come to mean another process.
    const Duration next = std::min(most - waited, kSayAfter);
    const sys::Descriptor process = sys::open_pidfd(watchers.front().pid);
    if (process.is_open()) {
      sys::wait_until_ended(process, next);
    } else {
      sys::let_pass(std::min(next, kLookEvery));
    }
  }
}

}  // namespace trainyard::process
