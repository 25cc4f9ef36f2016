#include "settings/configuration_reader.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/nearest.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "model/gpu_limits.h"
#include "settings/machine_entries.h"
#include "settings/periods.h"
#include "settings/setting_value.h"
#include "text/file_name.h"
#include "text/key_reader.h"
#include "text/text_file.h"

namespace trainyard::settings {
namespace {

/// How fedflow spelled it, in all its versions.
constexpr std::string_view kOldStrategy = "gpu-priority.stratety";

/// A key of fedflow's that nothing is left to do for: the journal has all that its logs had.
constexpr std::string_view kDebug = "debug";
/// A key that every job file has and no configuration.
constexpr std::string_view kGroups = "groups";
/// Before the settings of tasks: task.directory-grouping.
constexpr std::string_view kTask = "task.";

/// The mistake in its value; nothing where the file sets what holds anyway.
std::optional<std::string> why_no_debug(std::string_view value) {
  if (parse_flag(value) == false) return std::nullopt;
  return fmt::format(
      "debug: there is no debug mode; remove '{}'. The journal contains all events of a run, and "
      "'trainyard status' and 'trainyard logs' show them",
      kDebug);
}

/// Under which there are times of the week beside keys.
constexpr std::string_view kLimits = "limits.";

std::optional<Setting> find_setting(std::string_view key) {
  if (key == kOldStrategy) return Setting::GpuPriorityStrategy;
  const auto found = std::ranges::find(settings(), key, &SettingInfo::key);
  if (found == settings().end()) return std::nullopt;
  return static_cast<Setting>(found - settings().begin());
}

/// Whether keys start with it: "scheduler".
bool is_section(std::string_view key) {
  return std::ranges::any_of(settings(), [key](const SettingInfo& info) {
    return info.key.starts_with(key) && info.key.substr(key.size()).starts_with('.');
  });
}

std::string unknown_key(std::string_view key, std::span<const std::string_view> task_keys) {
  const std::string_view of_task = key.starts_with(kTask) ? key.substr(kTask.size()) : key;
  if (std::ranges::find(task_keys, of_task) != task_keys.end()) {
    return fmt::format(
        "'{0}' is a key of tasks, not a setting; use '--{0}' with a command, or '{0}' in a job "
        "file",
        of_task);
  }
  std::vector<std::string_view> names;
  for (const SettingInfo& info : settings()) {
    names.push_back(info.key);
    const auto dot = info.key.find('.');
    const std::string_view section = info.key.substr(0, dot);
    if (dot != std::string_view::npos && names.end() == std::ranges::find(names, section)) {
      names.push_back(section);
    }
  }
  if (const auto near = nearest(key, names)) {
    return fmt::format("unknown key '{}' (did you mean '{}'?)", key, *near);
  }
  // Somebody who wrote max-process meant scheduler.max-process. Several sections have 'memory'.
  std::vector<std::string_view> meant;
  for (const SettingInfo& info : settings()) {
    const auto dot = info.key.find('.');
    if (dot != std::string_view::npos && info.key.substr(dot + 1) == key) meant.push_back(info.key);
  }
  if (!meant.empty()) {
    return fmt::format("unknown key '{}' (did you mean '{}'?)", key, fmt::join(meant, "' or '"));
  }
  return fmt::format("unknown key '{}'; remove it, and 'trainyard config show' lists the settings",
                     key);
}

/// As it is kept over what a layer before has said.
std::string over(Setting setting, std::string text, const Configuration& configuration) {
  if (setting != Setting::Machines) return text;
  const Result<std::vector<MachineEntry>> named = parse_machines(text);
  return named ? to_text(as_said_before(*named, machines(configuration))) : text;
}

/// One layer that is a file.
class MappingReader {
 public:
  MappingReader(Configuration& configuration, const text::YamlDocument& document,
                const std::string& directory, text::MistakeList& mistakes,
                std::span<const std::string_view> task_keys)
      : configuration_(configuration),
        document_(document),
        directory_(directory),
        mistakes_(mistakes),
        task_keys_(task_keys) {}

  void read(const text::YamlNode& node, const std::string& prefix) {
    std::unordered_set<std::string_view> names;
    const bool was_in_duplicate = in_duplicate_;
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      // One name twice in one mapping is a mistake of the YAML already.
      in_duplicate_ = was_in_duplicate || !names.insert(node.items[i]->text).second;
      read_key(*node.items[i], *node.items[i + 1], prefix + node.items[i]->text);
    }
    in_duplicate_ = was_in_duplicate;
  }

 private:
  void complain(const text::YamlNode& node, std::string message) {
    mistakes_.add(document_.mistake(node, std::move(message)));
  }

  void read_key(const text::YamlNode& key_node, const text::YamlNode& value,
                const std::string& key) {
    const auto setting = find_setting(key);
    if (!setting && key.starts_with(kLimits) && value.kind == text::YamlKind::Mapping) {
      return read_hours(key_node, value);
    }
    if (key == kDebug) {
      if (value.kind == text::YamlKind::Null) return;
      if (auto why = why_no_debug(value.text)) complain(value, std::move(*why));
    } else if (setting) {
      check_twins(*setting, key_node, key);
      read_value(*setting, value, key);
    } else if (!is_section(key)) {
      complain(key_node, unknown_key(key, task_keys_));
    } else if (value.kind == text::YamlKind::Mapping) {
      read(value, key + ".");
    } else if (value.kind != text::YamlKind::Null) {
      complain(value,
               fmt::format("'{}' must have keys, as in {{{}: ...}}", key, first_key_of(key)));
    }
  }

  /// "Mon-Fri 08:00-19:00": {gpus: 2}. All of one file come together, in the place of those of the
  /// layers before.
  void read_hours(const text::YamlNode& key_node, const text::YamlNode& value) {
    const Result<model::GpuHours> hours = model::parse_hours(key_node.text);
    if (!hours) return complain(key_node, hours.error().message);
    const bool right = value.items.size() == 2 && value.items[0]->text == "gpus";
    const auto gpus = right ? parse_gpus(value.items[1]->text)
                            : std::unexpected(Error{"must be {gpus: 2} and nothing else"});
    if (!gpus) return complain(value, fmt::format("{}: {}", key_node.text, gpus.error().message));
    hours_.push_back(*hours);
    hours_.back().gpus_max = *gpus;
    const Result<std::string> text = parse_setting(SettingKind::Hours, model::to_text(hours_));
    if (!text) return complain(key_node, text.error().message);
    configuration_.set(Setting::LimitsHours, *text,
                       {.shown = fmt::format("{}:{}", document_.file(), key_node.place.line),
                        .mistake = document_.mistake(key_node, "")});
  }

  /// `scheduler: {max-process: 4}` and `scheduler.max-process: 5`: neither goes over the other.
  void check_twins(Setting setting, const text::YamlNode& key_node, const std::string& key) {
    const auto [first, fresh] = seen_.try_emplace(setting, Seen{.key = key, .node = &key_node});
    if (fresh || in_duplicate_) return;
    const text::Mistake other = document_.mistake(*first->second.node, "");
    const std::string& name = first->second.key;
    complain(key_node,
             fmt::format("duplicate key '{}'; {} at {}:{}:{}", key,
                         name == key ? "the first is" : fmt::format("as '{}' it is", name),
                         other.file, other.line, other.column));
  }

  static std::string_view first_key_of(std::string_view section) {
    const auto found = std::ranges::find_if(
        settings(), [section](const SettingInfo& info) { return info.key.starts_with(section); });
    return found->key.substr(section.size() + 1);
  }

  void read_value(Setting setting, const text::YamlNode& value, const std::string& key) {
    const SettingInfo& info = settings()[static_cast<std::size_t>(setting)];
    if (info.kind == SettingKind::Machines) {
      return apply_machines(configuration_, document_, value, mistakes_);
    }
    if (value.kind == text::YamlKind::List || value.kind == text::YamlKind::Mapping) {
      complain(value, fmt::format("'{}' must be a single value", key));
      return;
    }
    // A key without a value is what it was.
    if (value.kind == text::YamlKind::Null) return;
    Result<std::string> text = parse_setting(info.kind, value.text);
    if (text && text::find_bad_byte(*text)) text = std::unexpected(Error{"the value is not text"});
    if (!text) {
      complain(value, fmt::format("{}: {}", key, text.error().message));
      return;
    }
    if (info.kind == SettingKind::Path && *text != "auto") {
      *text = absolute_path(*text, directory_);
    }
    configuration_.set(setting, std::move(*text),
                       {.shown = fmt::format("{}:{}", document_.file(), value.place.line),
                        .mistake = document_.mistake(value, "")});
  }

  Configuration& configuration_;
  const text::YamlDocument& document_;
  const std::string& directory_;
  text::MistakeList& mistakes_;
  std::span<const std::string_view> task_keys_;

  struct Seen {
    std::string key;  ///< As it is written, in one.
    const text::YamlNode* node = nullptr;
  };
  std::map<Setting, Seen> seen_;
  std::vector<model::GpuHours> hours_;  ///< Of this file, that are keys of their own.
  bool in_duplicate_ = false;  ///< The value being read is under a key that occurred before.
};

/// A password is not shown, not even where it is wrong.
std::string without_secret(std::string_view given) {
  const auto equals = given.find('=');
  const auto setting = find_setting(given.substr(0, equals));
  const bool secret = setting && equals != std::string_view::npos &&
                      settings()[static_cast<std::size_t>(*setting)].kind == SettingKind::Secret;
  return secret ? fmt::format("{}=******", given.substr(0, equals)) : std::string(given);
}

/// Whether every user can create files in a directory but replace none, as in /tmp.
bool is_for_all_users(const std::string& directory) {
  using std::filesystem::perms;
  constexpr perms kLikeTmp = perms::others_write | perms::sticky_bit;
  std::error_code failed;
  return (std::filesystem::status(directory, failed).permissions() & kLikeTmp) == kLikeTmp;
}

}  // namespace

void apply_mapping(Configuration& configuration, const text::YamlDocument& document,
                   const text::YamlNode& node, const std::string& directory,
                   text::MistakeList& mistakes, std::span<const std::string_view> task_keys) {
  if (node.kind == text::YamlKind::Null) return;
  if (node.kind != text::YamlKind::Mapping) {
    mistakes.add(document.mistake(
        node, "a configuration must be keys with values, as in {scheduler: {max-process: 4}}"));
    return;
  }
  MappingReader(configuration, document, directory, mistakes, task_keys).read(node, "");
}

void apply_machines(Configuration& configuration, const text::YamlDocument& document,
                    const text::YamlNode& value, text::MistakeList& mistakes) {
  // A key without a value is what it was.
  if (value.kind == text::YamlKind::Null) return;
  const auto named =
      read_machines(text::Complainer(document, mistakes, "").within("machines"), value);
  if (!named) return;
  configuration.set(Setting::Machines, over(Setting::Machines, to_text(*named), configuration),
                    {.shown = fmt::format("{}:{}", document.file(), value.place.line),
                     .mistake = document.mistake(value, "")});
}

void apply_config_file(Configuration& configuration, const ConfigurationSources& sources,
                       text::MistakeList& mistakes) {
  const std::string name = sources.config_file.empty() ? kConfigurationFile : sources.config_file;
  const std::string path = absolute_path(name, sources.current_directory);
  std::error_code failed;
  if (sources.config_file.empty() && !std::filesystem::exists(path, failed) && !failed) return;
  if (sources.config_file.empty() && is_for_all_users(sources.current_directory)) {
    mistakes.add({.file = name,
                  .message = fmt::format("every user can create this file here, and its settings "
                                         "may start programs; to read it, use '--config {}'",
                                         name)});
    return;
  }
  const Result<std::string> text = text::read_text_file(path);
  if (!text) {
    const std::string option = sources.config_file.empty() ? "" : "--config ";
    mistakes.add({.file = option + name, .message = text.error().message});
    return;
  }
  const text::YamlDocument document(*text, name);
  mistakes.add(document.mistakes());
  if (document.root() == nullptr) return;
  if (document.root()->find(kGroups) != nullptr) {
    mistakes.add({.file = name,
                  .message = fmt::format(
                      "'{}' is a key of a job file, and this file is read as the "
                      "configuration; {}",
                      kGroups,
                      sources.config_file.empty() ? "rename the job file"
                                                  : "'trainyard config show' lists the settings")});
    return;
  }
  apply_mapping(configuration, document, *document.root(),
                std::filesystem::path(path).parent_path().string(), mistakes, sources.task_keys);
}

void apply_settings(Configuration& configuration, const ConfigurationSources& sources,
                    text::MistakeList& mistakes) {
  for (const std::string& given : sources.settings) {
    const text::Mistake here{.file = fmt::format("--set {}", without_secret(given))};
    const auto complain = [&](std::string message) {
      mistakes.add({.file = here.file, .message = std::move(message)});
    };
    const auto equals = given.find('=');
    if (equals == std::string::npos || equals == 0) {
      complain("must be a key and a value, as in --set scheduler.max-process=4");
      continue;
    }
    const std::string key = given.substr(0, equals);
    if (key == kDebug) {
      if (auto why = why_no_debug(given.substr(equals + 1))) complain(std::move(*why));
      continue;
    }
    if (is_period(key)) {
      const Result<Duration> length = parse_duration(given.substr(equals + 1));
      if (length) configuration.set_period(key, *length);
      if (!length) complain(length.error().message);
      continue;
    }
    const auto setting = find_setting(key);
    if (!setting) {
      complain(is_section(key) ? fmt::format("'{}' is a section; name one of its keys", key)
                               : unknown_key(key, sources.task_keys));
      continue;
    }
    const SettingInfo& info = settings()[static_cast<std::size_t>(*setting)];
    const std::string value = given.substr(equals + 1);
    Result<std::string> text = parse_setting(info.kind, value);
    if (text && text::find_bad_byte(*text)) text = std::unexpected(Error{"the value is not text"});
    if (!text) {
      complain(text.error().message);
      continue;
    }
    if (info.kind == SettingKind::Path && *text != "auto") {
      *text = absolute_path(*text, sources.current_directory);
    }
    configuration.set(*setting, over(*setting, std::move(*text), configuration),
                      {.shown = "--set", .mistake = here});
  }
}

}  // namespace trainyard::settings
