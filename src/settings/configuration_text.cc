// The configuration as people and programs read it: show(), show_json(),
// commented_default(), and what of a machine it leaves to tasks.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedule/gpu_room.h"
#include "settings/configuration.h"
#include "text/readable_json.h"

namespace trainyard::settings {
namespace {

/// A value that YAML reads back as the text it is.
std::string yaml_value(SettingKind kind, const std::string& text) {
  const bool plain = kind != SettingKind::Text && kind != SettingKind::Secret &&
                     kind != SettingKind::Path && kind != SettingKind::Hours;
  if (plain) return text;
  const auto simple = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || std::string_view("/._-").find(byte) != std::string::npos;
  };
  // null, true and the like are words too, and mean something else.
  if (text.starts_with('/') && std::ranges::all_of(text, simple)) return text;
  if (kind == SettingKind::Path && text == "auto") return text;
  return text::one_line_json(text);
}

std::string shown_value(const SettingInfo& info, const std::string& text) {
  if (info.kind == SettingKind::Secret && !text.empty()) return "******";
  return text;
}

constexpr std::string_view kHeading =
    "# trainyard.yaml: how trainyard uses this machine. All keys with their defaults.\n"
    "#\n"
    "# They are overridden, in this order, by `config:` in the job file and by --set key=value.\n"
    "# Sizes: B, kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB (and K, M, G, T) of 1024.\n";

}  // namespace

std::string show(const Configuration& configuration) {
  std::string lines;
  for (std::size_t i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = settings()[i];
    const auto setting = static_cast<Setting>(i);
    const std::string value = shown_value(info, configuration.text(setting));
    lines += fmt::format("{}: {}   # {}\n", info.key, yaml_value(info.kind, value),
                         configuration.origin(setting));
  }
  return lines;
}

std::string show_json(const Configuration& configuration) {
  nlohmann::ordered_json all;
  for (std::size_t i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = settings()[i];
    const auto setting = static_cast<Setting>(i);
    all[std::string(info.key)] = {{"value", shown_value(info, configuration.text(setting))},
                                  {"from", configuration.origin(setting)}};
  }
  return text::readable_json(all);
}

std::string commented_default() {
  std::string text(kHeading);
  std::string_view section;
  for (const SettingInfo& info : settings()) {
    const auto dot = info.key.find('.');
    const bool nested = dot != std::string_view::npos;
    const std::string_view in = nested ? info.key.substr(0, dot) : std::string_view{};
    if (nested && in != section) text += fmt::format("\n{}:\n", in);
    const bool first_of_section = nested && in != section;
    section = in;
    const std::string_view indent = nested ? "  " : "";
    if (!first_of_section) text += '\n';
    std::string_view rest = info.description;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      text += fmt::format("{}# {}\n", indent, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    text += fmt::format("{}{}: {}\n", indent, nested ? info.key.substr(dot + 1) : info.key,
                        yaml_value(info.kind, std::string(info.fallback)));
  }
  return text;
}

std::string machine_text(const model::Capacity& machine, const model::Policy& policy) {
  const Bytes given = memory_to_give(policy, machine);
  return fmt::format("machine: {} CPUs, {} of memory, {} available to tasks ({} stays free)\n",
                     model::as_number(machine.cpus), to_text(machine.memory), to_text(given),
                     to_text(machine.memory - given));
}

std::string gpus_text(const model::Capacity& machine, const model::Policy& policy) {
  std::string text;
  for (const model::Gpu& gpu : machine.gpus) {
    if (gpu.late) {
      text += fmt::format("GPU {} DOES NOT ANSWER: tasks can use it once it does\n", gpu.label());
      continue;
    }
    text += fmt::format("GPU {}: {}, {} of memory, {} available to tasks\n", gpu.label(), gpu.name,
                        to_text(gpu.memory),
                        to_text(gpu.memory - schedule::memory_kept_free(policy, gpu)));
  }
  return text;
}

}  // namespace trainyard::settings
