#include "job/repeat_reader.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/number_text.h"
#include "base/result.h"
#include "settings/setting_value.h"
#include "text/condition.h"

namespace trainyard::job {
namespace {

constexpr std::array<std::string_view, 4> kRepeatKeys{"repeat", "until", "initial", "groups"};
constexpr std::array<text::Elsewhere, 5> kNotOfRepeat{{
    {.key = "tasks", .message = "'tasks' belongs to a group, under the 'groups' of the repeat"},
    {.key = "matrix", .message = "'matrix' belongs to a group, under the 'groups' of the repeat"},
    {.key = "command", .message = "'command' belongs to a task, under 'tasks' of a group"},
    {.key = "name", .message = "a repeat cannot have a name, only its groups"},
    {.key = "needs", .message = "'needs' belongs to a group, under the 'groups' of the repeat"},
}};

std::string meant(const std::optional<std::string_view>& near) {
  return near ? fmt::format(" (did you mean '{}'?)", *near) : std::string();
}

std::uint32_t read_rounds(const text::Complainer& to, const text::YamlNode& node) {
  const auto text = text::read_single(to, node, "repeat");
  if (!text) return 1;
  const auto rounds = static_cast<std::uint32_t>(settings::parse_count(*text).value_or(0));
  if (rounds >= 1 && rounds <= kRoundsMax) return rounds;
  to.complain(node,
              fmt::format("'{}' is not a valid number of rounds (1 to {})", *text, kRoundsMax));
  return 1;
}

/// A name split at a group of the repeat: "server.result.acc" is of "server".
struct Named {
  std::string_view group;
  std::string_view rest;  ///< Behind its dot; empty: all of the group.
};

std::optional<Named> read_named(std::string_view name, const std::vector<std::string>& repeated) {
  std::optional<Named> named;
  for (const std::string& group : repeated) {
    if (name == group) return Named{.group = group};
    const bool begins = name.starts_with(group) && name.substr(group.size()).starts_with('.');
    // Names of groups may have dots themselves: the longest is meant.
    if (!begins || (named && named->group.size() > group.size())) continue;
    named = {.group = group, .rest = name.substr(group.size() + 1)};
  }
  return named;
}

constexpr std::string_view kOfResult = "result.";

/// The key of a result, of "result.acc".
std::string_view key_of_result(std::string_view rest) {
  return rest.starts_with(kOfResult) ? rest.substr(kOfResult.size()) : std::string_view();
}

std::optional<Until> read_until(const text::Complainer& to, const text::YamlNode& node,
                                const std::vector<std::string>& repeated) {
  const auto text = text::read_single(to, node, "until");
  if (!text) return std::nullopt;
  const Result<text::Condition> condition = text::parse_condition(*text);
  const std::string_view name = condition ? std::string_view(condition->name) : *text;
  const auto named = read_named(name, repeated);
  const std::string_view key = named ? key_of_result(named->rest) : std::string_view();
  const auto number = condition ? number_in(condition->value) : std::nullopt;
  if (named && condition && number && !key.empty()) {
    return Until{.text = *text,
                 .place = node.place,
                 .group = std::string(named->group),
                 .key = std::string(key),
                 .is = condition->is,
                 .value = *number};
  }
  const std::size_t dot = name.find(".result.");
  if (!named && dot != std::string_view::npos) {
    const std::string_view group = name.substr(0, dot);
    const std::vector<std::string_view> names(repeated.begin(), repeated.end());
    to.complain(node, fmt::format("until: '{}': no group '{}' is repeated{}", *text, group,
                                  meant(nearest(group, names))));
    return std::nullopt;
  }
  to.complain(
      node,
      fmt::format("until: '{}' must compare a result with a number, as in '{}.result.acc >= 0.97'",
                  *text, repeated.empty() ? "server" : repeated.back()));
  return std::nullopt;
}

/// The value of the round before that a key of `initial` names; nothing after a complaint.
std::optional<NeedsValue> read_initial_key(const text::Complainer& to, const text::YamlNode& key,
                                           const std::vector<std::string>& repeated) {
  const auto named = read_named(key.text, repeated);
  if (named) {
    NeedsValue value{.group = std::string(named->group), .of_round_before = true};
    if (named->rest.empty() || named->rest == "dir") return value;
    value.kind = NeedsValue::Kind::Directories;
    if (named->rest == "dirs") return value;
    value.kind = NeedsValue::Kind::Result;
    value.key = key_of_result(named->rest);
    if (!value.key.empty()) return value;
  }
  std::vector<std::string> known;
  for (const std::string& group : repeated) {
    for (const std::string_view end : {"", ".dir", ".dirs", ".result."}) {
      // A result may have any key.
      const std::size_t dot = end == ".result." ? key.text.find(end) : std::string::npos;
      if (end != ".result.") {
        known.push_back(fmt::format("{}{}", group, end));
      } else if (dot != std::string::npos) {
        known.push_back(group + key.text.substr(dot));
      }
    }
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  to.complain(key, fmt::format("initial: '{}' is not a value of a round{}", key.text,
                               meant(nearest(key.text, names))));
  return std::nullopt;
}

std::vector<InitialSpec> read_initial(const text::Complainer& to, const text::YamlNode& node,
                                      const std::vector<std::string>& repeated) {
  std::vector<InitialSpec> all;
  if (node.kind != text::YamlKind::Mapping) {
    to.complain(node,
                "'initial' must be the values that round 0 uses in place of a round before it, as "
                "in {server.dir: models/first}");
    return all;
  }
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const text::YamlNode& key = *node.items[i];
    const text::YamlNode& value = *node.items[i + 1];
    auto of = read_initial_key(to, key, repeated);
    auto text = text::read_single(to, value, fmt::format("initial: {}", key.text));
    if (!of || !text) continue;
    if (text->contains('\0')) {
      to.complain(value, fmt::format("initial: {}: {}", key.text, text::kNoNul));
    } else if (text->contains("{prev.")) {
      to.complain(
          value, fmt::format("initial: {}: '{}': round 0 has no round before it", key.text, *text));
    } else if (key.text == of->group) {
      all.push_back({.place = value.place, .of = *of, .group = std::move(*text)});
    } else {
      all.push_back({.place = value.place, .of = *of, .text = std::move(*text)});
    }
  }
  return all;
}

}  // namespace

bool is_repeat(const text::YamlNode& node) {
  return node.kind == text::YamlKind::Mapping && node.find("repeat") != nullptr;
}

RepeatSpec read_repeat(const text::Complainer& to, const text::YamlNode& node,
                       const std::vector<std::string>& repeated) {
  text::check_keys(to, node, kRepeatKeys, kNotOfRepeat);
  RepeatSpec repeat;
  repeat.place = node.place;
  repeat.rounds_max = read_rounds(to, *node.find("repeat"));
  if (const text::YamlNode* const until = node.find("until")) {
    repeat.until = read_until(to, *until, repeated);
  }
  if (const text::YamlNode* const initial = node.find("initial")) {
    repeat.initial = read_initial(to, *initial, repeated);
  }
  return repeat;
}

std::vector<const text::YamlNode*> groups_of_repeat(const text::Complainer& to,
                                                    const text::YamlNode& node) {
  const text::YamlNode* const groups = node.find("groups");
  if (groups == nullptr) {
    to.complain(node, "has no 'groups'");
    return {};
  }
  if (groups->kind != text::YamlKind::List || groups->items.empty()) {
    to.complain(
        *groups,
        "'groups' must be a list of groups, each with 'tasks'; begin each group with '- name:'");
    return {};
  }
  std::vector<const text::YamlNode*> all;
  for (const text::YamlNode* const group : groups->items) {
    if (is_repeat(*group)) {
      to.complain(*group,
                  "a 'repeat' cannot contain another repeat; for an inner loop, write a command "
                  "that loops");
    } else {
      all.push_back(group);
    }
  }
  return all;
}

}  // namespace trainyard::job
