#include "settings/made_up_machines.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "settings/setting_value.h"

namespace trainyard::settings {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Its parts lie in the text, so that a mistake is told with its place.
class MachinesReader {
 public:
  explicit MachinesReader(std::string_view text) : text_(text) {}

  Result<std::vector<MadeUpMachines>> read() {
    std::vector<MadeUpMachines> kinds;
    int machines = 0;
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find('+', begin), text_.size());
      Result<MadeUpMachines> kind = read_kind(trimmed(text_.substr(begin, end - begin)));
      if (!kind) return std::unexpected(std::move(kind.error()));
      machines += kind->count;
      if (machines > kMadeUpMachinesMax) {
        return wrong(text_.substr(begin, 0),
                     fmt::format("at most {} machines are allowed in total", kMadeUpMachinesMax));
      }
      kinds.push_back(*std::move(kind));
      begin = end + 1;
    }
    return kinds;
  }

 private:
  /// "'2x(4y80GB)', character 4: '4y80GB' is ..."
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view part, const std::string& why) const {
    return std::unexpected(
        Error{fmt::format("'{}', character {}: {}", text_, part.data() - text_.data() + 1, why)});
  }

  /// "8x(4x80GB, 64 CPUs)"
  [[nodiscard]] Result<MadeUpMachines> read_kind(std::string_view text) const {
    MadeUpMachines kind;
    const std::size_t open = text.find('(');
    if (text.empty()) return wrong(text_, "a machine is missing: 8x(4x80GB) is one kind");
    if (open == std::string_view::npos) {
      return wrong(
          text, fmt::format("'{}' is not valid; write it as in 8x(4x80GB, 64 CPUs, 512GB)", text));
    }
    if (!text.ends_with(')') || text.find('(', open + 1) != std::string_view::npos) {
      return wrong(text.substr(open), "a ')' is missing at the end of a machine");
    }
    if (const std::string_view before = trimmed(text.substr(0, open)); !before.empty()) {
      const auto count = parse_count(trimmed(before.substr(0, before.size() - 1)));
      if (!before.ends_with('x') || !count || *count < 1 || *count > kMadeUpMachinesMax) {
        return wrong(before, fmt::format("'{}' is not a number of machines, as 8x is", before));
      }
      kind.count = *count;
    }
    const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    for (std::size_t begin = 0; begin <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      const std::string_view part = inside.substr(begin, end - begin);
      const std::string_view said = trimmed(part);
      Result<void> added = add_part(said.empty() ? part.substr(0, 0) : said, kind);
      if (!added) return std::unexpected(std::move(added.error()));
      begin = end + 1;
    }
    return kind;
  }

  /// "4x80GB", "64 CPUs" or "512GB".
  [[nodiscard]] Result<void> add_part(std::string_view part, MadeUpMachines& kind) const {
    if (part.empty())
      return wrong(part, "GPUs (4x80GB), CPUs (64 CPUs) or memory (512GB) is missing");
    for (const std::string_view unit : {"CPUs", "CPU"}) {
      if (!part.ends_with(unit)) continue;
      const auto cpus = parse_cpus(trimmed(part.substr(0, part.size() - unit.size())));
      if (!cpus) return wrong(part, cpus.error().message);
      if (kind.cpus) return wrong(part, "its CPUs are given twice");
      kind.cpus = *cpus;
      return {};
    }
    const std::size_t times = part.find('x');
    if (times != std::string_view::npos) return add_gpus(part, times, kind);
    const Result<Bytes> memory = parse_bytes(part);
    if (!memory) return wrong(part, memory.error().message);
    if (kind.memory) {
      return wrong(part, fmt::format("its memory is given twice; write a GPU as 1x{}", part));
    }
    kind.memory = *memory;
    return {};
  }

  [[nodiscard]] Result<void> add_gpus(std::string_view part, std::size_t times,
                                      MadeUpMachines& kind) const {
    const auto count = parse_count(trimmed(part.substr(0, times)));
    if (!count || *count < 1)
      return wrong(part, fmt::format("'{}' is not valid; write it as in 4x80GB", part));
    const std::string_view memory = trimmed(part.substr(times + 1));
    const Result<Bytes> each = parse_bytes(memory);
    if (!each) return wrong(memory.empty() ? part : memory, each.error().message);
    if (*each == Bytes{}) return wrong(memory, "a GPU must have memory");
    if (kind.gpus.size() + static_cast<std::size_t>(*count) > kMadeUpGpusMax) {
      return wrong(part, fmt::format("a machine may have at most {} GPUs", kMadeUpGpusMax));
    }
    kind.gpus.insert(kind.gpus.end(), static_cast<std::size_t>(*count), *each);
    return {};
  }

  std::string_view text_;
};

std::string without_blanks(Bytes bytes) {
  std::string text = to_text(bytes);
  std::erase(text, ' ');
  return text;
}

}  // namespace

Result<std::vector<MadeUpMachines>> parse_made_up_machines(std::string_view text) {
  return MachinesReader(text).read();
}

std::string to_text(const MadeUpMachines& kind) {
  std::vector<std::string> parts;
  for (auto gpu = kind.gpus.begin(); gpu != kind.gpus.end();) {
    const auto next = std::find_if(gpu, kind.gpus.end(), [gpu](Bytes it) { return it != *gpu; });
    parts.push_back(fmt::format("{}x{}", next - gpu, without_blanks(*gpu)));
    gpu = next;
  }
  if (kind.cpus) {
    parts.push_back(fmt::format("{} CPU{}", model::as_number(*kind.cpus),
                                kind.cpus == model::cpus(1) ? "" : "s"));
  }
  if (kind.memory) parts.push_back(without_blanks(*kind.memory));
  return fmt::format("{}x({})", kind.count, fmt::join(parts, ", "));
}

}  // namespace trainyard::settings
