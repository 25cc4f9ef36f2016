#include "sys/clock.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <expected>
#include <filesystem>
#include <system_error>

#include <sys/timerfd.h>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

constexpr std::int64_t kMillisecondsPerSecond = 1'000;
constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;

}  // namespace

std::int64_t unix_milliseconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

LocalTime local_time() {
  constexpr int kMonday = 6;  // From Sunday, as the C library counts, in a week of seven.
  const std::time_t now = std::time(nullptr);
  std::tm here{};
  if (::localtime_r(&now, &here) == nullptr) return {};
  return {.day = (here.tm_wday + kMonday) % 7, .minute = here.tm_hour * 60 + here.tm_min};
}

std::int64_t last_midnight_unix_s() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  if (::localtime_r(&now, &day) == nullptr) return now;
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_isdst = -1;
  return std::mktime(&day);
}

Duration boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Duration(now.tv_sec * kMillisecondsPerSecond + now.tv_nsec / kNanosecondsPerMillisecond);
}

std::string name_of_this_boot() {
  constexpr Bytes kMost = kib(1);
  std::string boot = read_file("/proc/sys/kernel/random/boot_id", kMost).value_or("unknown\n");
  while (boot.ends_with('\n')) boot.pop_back();
  std::error_code none;
  const auto processes = std::filesystem::read_symlink("/proc/self/ns/pid", none);
  return boot + "/" + (none ? std::string("unknown") : processes.string());
}

Result<BootAlarm> BootAlarm::make() {
  Descriptor timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.is_open()) return std::unexpected(system_error("cannot make a timer", errno));
  return BootAlarm(std::move(timer));
}

void BootAlarm::set(Duration at) const {
  // A moment of 0 would be none.
  const std::int64_t milliseconds = std::max<std::int64_t>(at.count(), 1);
  itimerspec when{};
  when.it_value = {.tv_sec = milliseconds / kMillisecondsPerSecond,
                   .tv_nsec = milliseconds % kMillisecondsPerSecond * kNanosecondsPerMillisecond};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace trainyard::sys
