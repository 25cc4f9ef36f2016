#include "job/learned_writing.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "job/job.h"
#include "job/task_keys.h"
#include "settings/setting_value.h"
#include "text/mistake.h"
#include "text/scalar_rewrite.h"
#include "text/yaml_reader.h"

namespace trainyard::job {
namespace {

/// A number in the file.
struct Standing {
  std::int64_t value = 0;
  bool grows = false;  ///< "at least"
  bool is_auto = false;
};

std::optional<Standing> read_standing(TaskKey key, const std::string& text) {
  if (key == TaskKey::Duration) {
    const Result<Duration> time = parse_duration(text);
    return time ? std::optional(Standing{.value = time->count()}) : std::nullopt;
  }
  const Result<settings::MemoryWish> size = settings::parse_gpu_memory(text);
  if (!size) return std::nullopt;
  const bool is_auto = size->learned && size->bytes == Bytes{};
  return Standing{
      .value = size->bytes.count, .grows = size->learned && !is_auto, .is_auto = is_auto};
}

std::string text_of(TaskKey key, std::int64_t value) {
  return key == TaskKey::Duration ? time_to_write(Duration{value}) : size_to_write({value});
}

/// Whether it is uncertain that a smaller amount would be enough.
bool is_unsure(const LearnedNumber& number, const LearnedFor& here) {
  const bool other_card = number.key == TaskKey::GpuMemory && !number.from.gpu.empty() &&
                          std::ranges::find(here.gpus, number.from.gpu) == here.gpus.end();
  return number.at_least || number.hard || other_card;
}

/// The value to write there; nothing if the present one may stay.
std::optional<std::string> better(const LearnedNumber& number, const Standing& standing,
                                  const LearnedFor& here) {
  const std::int64_t now = number.should_be;
  const bool unsure = is_unsure(number, here);
  const std::string text = text_of(number.key, now);
  if (standing.is_auto) return unsure ? "at least " + text : text;
  const bool near = std::abs(now - standing.value) * 10 <= standing.value;
  if (near || (unsure && now < standing.value)) return std::nullopt;
  return standing.grows ? "at least " + text : text;
}

class Writer {
 public:
  Writer(std::string_view text, std::string file, const LearnedFor& here)
      : file_(std::move(file)), here_(here) {
    writing_.text = text;
  }

  void look_at(const LearnedGroup& group, const LearnedNumber& number) {
    if (number.should_be == 0) return;
    const std::string_view key = info_of(number.key).name;
    if (!number.said) {
      if (number.key == TaskKey::Duration) return;
      writing_.not_said.push_back(fmt::format("group '{}': {}: {}", group.name, key,
                                              text_of(number.key, number.should_be)));
      return;
    }
    const Job::SaidValue& said = *number.said;
    const auto at_place = [&](std::string_view what) {
      return text::to_text(
          text::Mistake{.file = file_,
                        .line = said.place.line,
                        .column = said.place.column,
                        .message = fmt::format("group '{}': {}: {}", group.name, key, what)});
    };
    if (!said.fixed) {
      writing_.refused.push_back(
          at_place(fmt::format("'{}' has its value from the matrix; edit it by hand", said.text)));
      return;
    }
    const std::optional<Standing> standing = read_standing(number.key, said.text);
    if (!standing) return;
    const std::optional<std::string> to = better(number, *standing, here_);
    if (!to) return;
    // Edits are made one by one, so that a refused edit does not stop the others. The lines keep
    // their place; a value to the right in the same line has moved.
    const text::ScalarEdit edit{
        .place = said.place, .key = std::string(key), .from = said.text, .to = *to};
    edits_.push_back(edit);
    Result<std::string> alone = text::rewrite_scalars(writing_.text, file_, {edit});
    if (!alone) {
      edits_.pop_back();
      writing_.refused.push_back(
          at_place("this is not a plain value in one line for this key alone; edit it by hand"));
      return;
    }
    writing_.written.push_back(at_place(fmt::format("{} becomes {}", said.text, *to)));
  }

  LearnedWriting take() && {
    Result<std::string> text = text::rewrite_scalars(writing_.text, file_, edits_);
    if (text) {
      writing_.text = std::move(*text);
    } else {
      writing_.refused.push_back(text.error().message);
      writing_.written.clear();
    }
    return std::move(writing_);
  }

 private:
  std::string file_;
  const LearnedFor& here_;
  std::vector<text::ScalarEdit> edits_;
  LearnedWriting writing_;
};

}  // namespace

std::string size_to_write(Bytes size) {
  struct Unit {
    std::int64_t bytes;
    std::string_view name;
  };
  constexpr std::array<Unit, 3> kUnits{{{.bytes = 1'000'000'000, .name = "GB"},
                                        {.bytes = 1'000'000, .name = "MB"},
                                        {.bytes = 1'000, .name = "kB"}}};
  std::int64_t step = 1;
  while (size.count / step >= 1'000) step *= 10;
  const std::int64_t rounded = (size.count + step - 1) / step * step;
  const auto unit =
      std::ranges::find_if(kUnits, [&](const Unit& it) { return rounded >= it.bytes; });
  if (unit == kUnits.end()) return "1kB";
  const double count = static_cast<double>(rounded) / static_cast<double>(unit->bytes);
  // Three digits at most, so that these are all that count.
  return fmt::format("{:.4g}{}", count, unit->name);
}

std::string time_to_write(Duration time) {
  const std::int64_t milliseconds = time.count();
  constexpr std::int64_t kSecond = 1'000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  if (milliseconds < kSecond) return fmt::format("{}ms", milliseconds);
  if (milliseconds < 10 * kSecond) {
    constexpr std::int64_t kTenth = kSecond / 10;
    return fmt::format("{:.3g}s", static_cast<double>((milliseconds + kTenth - 1) / kTenth) / 10);
  }
  if (milliseconds < 10 * kMinute) {
    return fmt::format("{}s", (milliseconds + kSecond - 1) / kSecond);
  }
  const std::int64_t minutes = (milliseconds + kMinute - 1) / kMinute;
  if (minutes * kMinute < kHour) return fmt::format("{}m", minutes);
  const std::int64_t rest = minutes % 60;
  return rest == 0 ? fmt::format("{}h", minutes / 60) : fmt::format("{}h{}m", minutes / 60, rest);
}

LearnedWriting write_learned(const LearnedView& view, std::string_view text,
                             const std::string& file, const LearnedFor& here) {
  Writer writer(text, file, here);
  // A number that several groups share by an alias is refused once.
  std::set<std::pair<int, int>> seen;
  for (const LearnedGroup& group : view.groups) {
    for (const LearnedNumber& number : group.numbers) {
      const auto place = number.said ? std::pair(number.said->place.line, number.said->place.column)
                                     : std::pair(0, 0);
      if (number.said && !seen.insert(place).second) continue;
      writer.look_at(group, number);
    }
  }
  return std::move(writer).take();
}

}  // namespace trainyard::job
