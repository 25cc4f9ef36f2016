#include "settings/setting_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <system_error>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "model/gpu_limits.h"
#include "model/rank_environment.h"
#include "settings/machine_entries.h"

namespace trainyard::settings {
namespace {

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (text.empty() || status != std::errc{} || stop != end || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

template <class T>
Result<std::string> kept_as_written(const Result<T>& value, std::string_view text) {
  if (!value) return std::unexpected(value.error());
  return std::string(text);
}

Result<std::string> parse_strategy(std::string_view text) {
  constexpr std::array<std::string_view, 6> kStrategies{"PCI",         "TOTAL-MEM", "REMAIN-MEM",
                                                        "PERFORMANCE", "BEST-FIT",  "IDLE-FIRST"};
  for (const std::string_view known : kStrategies) {
    if (in_small_letters(text) == in_small_letters(known)) return std::string(known);
  }
  if (const auto meant = nearest(text, kStrategies)) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a valid strategy (did you mean '{}'?)", text, *meant)});
  }
  return std::unexpected(Error{fmt::format(
      "'{}' is not a valid strategy; use PCI, TOTAL-MEM, REMAIN-MEM, PERFORMANCE, BEST-FIT or "
      "IDLE-FIRST",
      text)});
}

/// A bare number gets its unit: "60s".
Result<std::string> seconds_as_written(const Result<Duration>& value, std::string_view text) {
  if (value && number_in(text)) return fmt::format("{}s", text);
  return kept_as_written(value, text);
}

/// One of these, in small letters: "must be auto, none, starttls or tls, not 'x'".
Result<std::string> parse_word(std::string_view text,
                               std::initializer_list<std::string_view> words) {
  std::string small = in_small_letters(text);
  if (std::ranges::find(words, small) != words.end()) return small;
  const std::vector<std::string> all(words.begin(), words.end());
  return std::unexpected(
      Error{fmt::format("must be {}, not '{}'", list_text(all, {.word = "or"}), text)});
}

Result<int> parse_one_to(int most, std::string_view text) {
  const Result<int> number = parse_count(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return std::unexpected(Error{fmt::format("'{}' is not a whole number from 1 to {}", text, most)});
}

/// Less would be over before a busy machine has answered, more is no lease.
Result<Duration> parse_lease(std::string_view text) {
  constexpr Duration kLeast{1'000};
  constexpr Duration kMost{86'400'000};
  const Result<Duration> lease = parse_seconds(text);
  if (!lease || (*lease >= kLeast && *lease <= kMost)) return lease;
  return std::unexpected(Error{fmt::format("must be from 1 second to 1 day, not '{}'", text)});
}

/// On one line, as names where they are no more than that.
Result<std::string> machines_text(std::string_view text) {
  const Result<std::vector<MachineEntry>> machines = parse_machines(text);
  if (!machines) return std::unexpected(machines.error());
  return to_text(*machines);
}

Result<std::string> parse_line(std::string_view text) {
  if (text.find_first_of(std::string_view("\n\r\0", 3)) != std::string_view::npos) {
    return std::unexpected(Error{"must be on one line"});
  }
  return std::string(text);
}

Result<std::string> parse_command(std::string_view text) {
  if (text.find_first_not_of(' ') == std::string_view::npos) {
    return std::unexpected(Error{"the command is empty"});
  }
  return parse_line(text);
}

}  // namespace

Result<bool> parse_flag(std::string_view text) {
  const std::string small = in_small_letters(text);
  if (small == "true") return true;
  if (small == "false") return false;
  std::string_view cure;
  for (const std::string_view yes : {"yes", "on", "y", "1"}) {
    if (small == yes) cure = " (did you mean 'true'?)";
  }
  for (const std::string_view no : {"no", "off", "n", "0"}) {
    if (small == no) cure = " (did you mean 'false'?)";
  }
  return std::unexpected(Error{fmt::format("must be true or false, not '{}'{}", text, cure)});
}

Result<double> parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  const auto number = number_in(percent ? text.substr(0, text.size() - 1) : text);
  if (!number || *number < 0) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a share; write it as in '0.8' or '80%'", text)});
  }
  const double share = *number / (percent ? 100 : 1);
  if (share == 0) {
    return std::unexpected(Error{
        fmt::format("with '{}' no task could start; use a share above 0, up to 1 or 100%", text)});
  }
  // 80 is a percentage; what 1.5 is, nobody knows.
  constexpr double kSurelyPercent = 10;
  if (!percent && share >= kSurelyPercent && share <= 100) {
    return std::unexpected(Error{fmt::format(
        "'{0}' means {1:g}%; a share is at most 100% (did you mean '{0}%'?)", text, 100 * share)});
  }
  if (share > 1) {
    return std::unexpected(
        Error{fmt::format("'{}' is too large; a share must be at most 1 or 100%", text)});
  }
  return share;
}

Result<int> parse_count(std::string_view text) {
  constexpr int kMost = 1'000'000'000;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status == std::errc::result_out_of_range || number > kMost) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a whole number from 0 to {}", text, kMost)});
  }
  if (text.empty() || status != std::errc{} || stop != end || number < 0) {
    return std::unexpected(Error{fmt::format("'{}' is not a whole number of 0 or more", text)});
  }
  return number;
}

Result<bool> parse_try_first(std::string_view text) {
  if (text == "1") return true;
  if (text == "0") return false;
  return std::unexpected(Error{fmt::format("must be 0 or 1, not '{}'", text)});
}

Result<int> parse_gpus(std::string_view text) {
  const auto number = number_in(text);
  if (number && *number > 0 && *number < 1) {
    return std::unexpected(
        Error{fmt::format("'{}' of a GPU cannot be reserved; to share a GPU, set 'gpu-memory' to "
                          "the memory a task needs (10GB, or auto), and 'max-per-gpu' to {:.0f} to "
                          "limit the number of tasks on it",
                          text, std::floor(1 / *number))});
  }
  return parse_count(text);
}

Result<int> parse_max_per_gpu(std::string_view text) {
  const Result<int> number = parse_count(text);
  if (number && *number <= model::kMaxPerGpuMost) return *number;
  return std::unexpected(Error{
      fmt::format("'{}' is not a whole number from 1 to {}, or 0", text, model::kMaxPerGpuMost)});
}

Result<int> parse_ranks(std::string_view text) { return parse_one_to(model::kRanksMax, text); }

Result<Duration> parse_seconds(std::string_view text) {
  const auto number = number_in(text);
  if (!number) return parse_duration(text);
  return parse_duration(fmt::format("{}s", text));
}

Result<model::Cpus> parse_cpus(std::string_view text) {
  constexpr double kMost = 100'000;
  const auto number = number_in(text);
  if (!number || *number < 0 || *number > kMost) {
    // Kubernetes writes thousandths as '500m'.
    const auto milli = text.ends_with('m') ? number_in(text.substr(0, text.size() - 1)) : number;
    const bool is_milli =
        !number && milli && *milli >= 0 && *milli <= kMost * 1000 && *milli == std::round(*milli);
    return std::unexpected(
        Error{is_milli ? fmt::format("'{}' is not a number of CPUs; write {}", text, *milli / 1000)
                       : fmt::format("'{}' is not a number of CPUs, as in 4 or 0.5", text)});
  }
  const double milli = *number * 1000;
  if (std::abs(milli - std::round(milli)) > 1e-6) {
    return std::unexpected(Error{fmt::format("'{}' has more than three decimals", text)});
  }
  return model::Cpus{static_cast<std::int64_t>(std::llround(milli))};
}

Result<MemoryWish> parse_memory(std::string_view text) {
  if (in_small_letters(text) == "auto") {
    return std::unexpected(Error{
        fmt::format("'{}' is not a valid size; leave it out to use the learned estimate", text)});
  }
  constexpr std::string_view kAtLeast = "at least ";
  const bool grows = in_small_letters(text).starts_with(kAtLeast);
  const std::string_view amount = grows ? text.substr(kAtLeast.size()) : text;
  // How others write that a number may grow.
  const bool plus = amount.ends_with('+');
  const bool more = amount.starts_with(">=");
  if (plus || more) {
    const std::string_view meant = plus ? amount.substr(0, amount.size() - 1) : amount.substr(2);
    if (parse_bytes(meant)) {
      return std::unexpected(Error{fmt::format(
          "'{}' is not a valid amount of memory; for one that may grow, write 'at least {}'", text,
          meant.substr(std::min(meant.find_first_not_of(' '), meant.size())))});
    }
  }
  const Result<Bytes> bytes = parse_bytes(amount);
  if (!bytes) return std::unexpected(bytes.error());
  if (grows && *bytes == Bytes{}) {
    return std::unexpected(
        Error{fmt::format("'{}' has no effect; leave it out, or write an amount above 0", text)});
  }
  return MemoryWish{.learned = grows, .bytes = *bytes};
}

Result<MemoryWish> parse_gpu_memory(std::string_view text) {
  if (in_small_letters(text) == "auto") return MemoryWish{.learned = true};
  return parse_memory(text);
}

Result<bool> parse_memory_limit(std::string_view text) {
  const std::string small = in_small_letters(text);
  if (small == "hard") return true;
  if (small == "none") return false;
  return std::unexpected(
      Error{fmt::format("must be hard or none, not '{}'; 'memory' sets the amount", text)});
}

Result<model::GpuMemoryLimit> parse_gpu_memory_limit(std::string_view text) {
  using enum model::GpuMemoryLimit;
  const std::string small = in_small_letters(text);
  if (small == "none") return None;
  if (small == "soft") return Soft;
  if (small == "hard") return Hard;
  return std::unexpected(Error{
      fmt::format("must be none, soft or hard, not '{}'; 'gpu-memory' sets the amount", text)});
}

Result<DeviceWish> parse_device(std::string_view text) {
  const std::string small = in_small_letters(text);
  if (small == "cpu") return DeviceWish{.cpu = true};
  if (small == "cuda") return DeviceWish{};
  constexpr std::string_view kCuda = "cuda:";
  if (small.starts_with(kCuda)) {
    const Result<int> index = parse_count(std::string_view(small).substr(kCuda.size()));
    if (index)
      return DeviceWish{.cpu = false, .gpu = model::GpuIndex{static_cast<std::uint32_t>(*index)}};
  }
  return std::unexpected(Error{
      fmt::format("'{}' is not a valid device; use cpu, cuda (any GPU) or cuda:<index>", text)});
}

/// Less is no log: as sys::bound_log() cannot keep to it.
constexpr Bytes kLogLeast = mb(1);

Result<std::string> parse_setting(SettingKind kind, std::string_view text) {
  switch (kind) {
    case SettingKind::Flag:
      return kept_as_written(parse_flag(text), text);
    case SettingKind::MailSecurity:
      return parse_word(text, {"auto", "none", "starttls", "tls"});
    case SettingKind::OtherUsers:
      return parse_word(text, {"avoid", "share"});
    case SettingKind::Record:
      return parse_word(text, {"usual", "full"});
    case SettingKind::Machines:
      return machines_text(text);
    case SettingKind::Lease:
      return seconds_as_written(parse_lease(text), text);
    case SettingKind::Command:
      return parse_command(text);
    case SettingKind::Share:
      return kept_as_written(parse_share(text), text);
    case SettingKind::Count:
      return kept_as_written(parse_count(text), text);
    case SettingKind::CountOrAuto:
      if (text == "auto") return std::string(text);
      return kept_as_written(parse_count(text), text);
    case SettingKind::Hours: {
      const auto hours = model::hours_from(text);
      if (!hours) return std::unexpected(hours.error());
      return model::to_text(*hours);
    }
    case SettingKind::MaxPerGpu:
      return kept_as_written(parse_max_per_gpu(text), text);
    case SettingKind::Allocations:
      return kept_as_written(parse_one_to(kAllocationsMax, text), text);
    case SettingKind::Tries:
      if (parse_count(text) == 0) {
        return std::unexpected(Error{"must be at least 1, not '0'"});
      }
      return kept_as_written(parse_count(text), text);
    case SettingKind::Seconds:
      return seconds_as_written(parse_seconds(text), text);
    case SettingKind::Size:
      return kept_as_written(parse_bytes(text), text);
    case SettingKind::SizeOrAuto:
      if (text == "auto") return std::string(text);
      return kept_as_written(parse_bytes(text), text);
    case SettingKind::LogSize: {
      if (text == "none") return std::string(text);
      const Result<Bytes> size = parse_bytes(text);
      if (!size || *size >= kLogLeast) return kept_as_written(size, text);
      return std::unexpected(Error{fmt::format(
          "'{}' is too small for a log; use at least {}, or none", text, to_text(kLogLeast))});
    }
    case SettingKind::Port: {
      const auto number = parse_count(text);
      if (number && *number >= 1 && *number <= 65'535) return std::string(text);
      return std::unexpected(Error{fmt::format("'{}' is not a valid port (1 to 65535)", text)});
    }
    case SettingKind::Strategy:
      return parse_strategy(text);
    case SettingKind::Path:
      if (text.empty())
        return std::unexpected(Error{"the path is empty; use 'auto' for the default"});
      return std::string(text);
    case SettingKind::Text:
    case SettingKind::Secret:
      break;
  }
  // A mail server takes what follows the end of a line for its next command.
  return parse_line(text);
}

}  // namespace trainyard::settings
