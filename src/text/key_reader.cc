#include "text/key_reader.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "text/placeholder.h"

namespace trainyard::text {

void Complainer::complain(const YamlNode& node, std::string_view message) const {
  mistakes_.add(document_.mistake(node, fmt::format("{}{}", where_, message)));
}

Complainer Complainer::within(std::string_view part) const {
  return {document_, mistakes_, fmt::format("{}{}: ", where_, part)};
}

namespace {

std::string known_keys(std::span<const std::string_view> known) {
  return known.empty() ? "no keys are allowed here"
                       : fmt::format("the known keys are {}", fmt::join(known, ", "));
}

}  // namespace

void check_keys(const Complainer& to, const YamlNode& mapping,
                std::span<const std::string_view> known, std::span<const Elsewhere> elsewhere,
                const KeyCure& cure) {
  std::vector<std::string_view> keys_elsewhere;
  for (const Elsewhere& other : elsewhere) keys_elsewhere.push_back(other.key);
  for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
    const YamlNode& key = *mapping.items[i];
    if (std::ranges::find(known, key.text) != known.end()) continue;
    const auto other = std::ranges::find(elsewhere, key.text, &Elsewhere::key);
    if (other != elsewhere.end()) {
      to.complain(key, other->message);
    } else if (const auto ours = called_otherwise(key.text, keys_elsewhere)) {
      const auto place = std::ranges::find(elsewhere, *ours, &Elsewhere::key);
      to.complain(key, fmt::format("unknown key '{}' (did you mean '{}'?); {}", key.text, *ours,
                                   place->message));
    } else if (const auto meant = nearest(key.text, known)) {
      to.complain(key, fmt::format("unknown key '{}' (did you mean '{}'?)", key.text, *meant));
    } else {
      to.complain(key, fmt::format("unknown key '{}'; {}", key.text,
                                   cure ? std::string(cure(key, *mapping.items[i + 1]))
                                        : known_keys(known)));
    }
  }
}

std::optional<std::string> read_single(const Complainer& to, const YamlNode& node,
                                       std::string_view key) {
  switch (node.kind) {
    case YamlKind::Text:
      return node.text;
    case YamlKind::Null:
      to.complain(node, fmt::format("'{}' has no value", key));
      break;
    case YamlKind::List:
      to.complain(node, fmt::format("'{}' must be a single value, not a list", key));
      break;
    case YamlKind::Mapping:
      // {lr} without quotes is a mapping to YAML, and was meant as a placeholder.
      if (node.items.size() == 2 && node.items[1]->kind == YamlKind::Null &&
          is_identifier(node.items[0]->text)) {
        to.complain(node, fmt::format("'{}' must be a single value; text that starts with a "
                                      "placeholder needs quotes: \"{{{}}}\"",
                                      key, node.items[0]->text));
      } else {
        to.complain(node, fmt::format("'{}' must be a single value, not a mapping", key));
      }
      break;
  }
  return std::nullopt;
}

}  // namespace trainyard::text
