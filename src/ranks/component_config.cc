#include "ranks/component_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "ranks/command_executor.h"
#include "text/key_reader.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"
#include "wire/field_reader.h"

namespace trainyard::ranks {
namespace {

constexpr std::array<std::string_view, 6> kEntryKeys{"id",   "type", "path",
                                                     "name", "args", "disabled"};
constexpr std::array<std::string_view, 1> kReferenceKeys{"ref"};

/// A plain scalar as YAML 1.2 reads it.
Json scalar(const text::YamlNode& node) {
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (node.text.empty()) return node.text;
  char* end = nullptr;
  const long long whole = std::strtoll(node.text.c_str(), &end, 10);
  const bool has_digits = node.text.find_first_of("0123456789") != std::string::npos;
  if (has_digits && *end == '\0' && std::to_string(whole) == node.text) return whole;
  const double real = std::strtod(node.text.c_str(), &end);
  const bool decimal = node.text.find_first_not_of("+-0123456789.eE") == std::string::npos;
  if (has_digits && decimal && *end == '\0' && std::isfinite(real)) return real;
  return node.text;
}

Json plain(const text::YamlNode& node) {
  switch (node.kind) {
    case text::YamlKind::Null:
      return nullptr;
    case text::YamlKind::Text:
      return scalar(node);
    case text::YamlKind::List: {
      Json list = Json::array();
      for (const text::YamlNode* const item : node.items) list.push_back(plain(*item));
      return list;
    }
    case text::YamlKind::Mapping: {
      Json object = Json::object();
      for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
        object[node.items[i]->text] = plain(*node.items[i + 1]);
      }
      return object;
    }
  }
  return nullptr;
}

std::string with_nearest(const std::string& text, std::string_view word,
                         const std::vector<std::string_view>& known) {
  if (const auto near = nearest(word, known)) {
    return text + fmt::format(" (did you mean '{}'?)", *near);
  }
  return text + fmt::format("; there are {}", fmt::join(known, ", "));
}

/// Reads the list of components. Errors go to the list of mistakes.
class ComponentReader {
 public:
  ComponentReader(const text::YamlDocument& document, const ComponentRegistry& registry,
                  text::MistakeList& mistakes)
      : registry_(registry), top_(document, mistakes, "components: ") {}

  Json read(std::string_view executor);
  [[nodiscard]] bool in_python() const { return in_python_; }

 private:
  /// A component that has an id, and what it refers to.
  struct Entry {
    const text::YamlNode* node = nullptr;
    const ComponentRegistry::Type* type = nullptr;
    bool disabled = false;
    std::set<std::string, std::less<>> refers;
  };
  struct Reference {
    const text::YamlNode* node;
    std::string to;
    std::string from;  ///< The top component that it stands in.
  };

  std::string id_of(const text::Complainer& to, const text::YamlNode& node);
  const ComponentRegistry::Type* type_of(const text::Complainer& to, const text::YamlNode& node);
  Json arguments_of(const text::Complainer& to, const text::YamlNode& node,
                    const ComponentRegistry::Type& type);
  Json value_of(const text::Complainer& to, const text::YamlNode& node, const ArgumentSpec& spec);
  Json part_of(const text::Complainer& to, const text::YamlNode& node);
  void check_executor(const text::YamlNode& list, std::string_view executor);
  void check_references();
  void check_languages(std::string_view executor);
  [[nodiscard]] bool leads_to(const std::string& from, const std::string& to,
                              std::set<std::string>& seen) const;

  const ComponentRegistry& registry_;
  text::Complainer top_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<Reference> references_;
  std::string current_;  ///< The id of the component of the list that is being read.
  bool in_python_ = false;
};

bool is_disabled(const text::Complainer& to, const text::YamlNode& node) {
  const text::YamlNode* const disabled = node.find("disabled");
  if (disabled == nullptr) return false;
  const Json value = plain(*disabled);
  if (!value.is_boolean()) {
    to.complain(*disabled, "'disabled' must be true or false");
    return false;
  }
  return value.get<bool>();
}

std::string ComponentReader::id_of(const text::Complainer& to, const text::YamlNode& node) {
  const text::YamlNode* const id = node.find("id");
  if (id == nullptr) {
    to.complain(node, "'id' is missing");
  } else if (id->text.empty() || !plain(*id).is_string()) {
    to.complain(*id, "'id' must be text, and not empty");
  } else if (const auto twice = entries_.find(id->text); twice != entries_.end()) {
    to.complain(*id, fmt::format("the id '{}' is taken by the component in line {}", id->text,
                                 twice->second.node->place.line));
  } else {
    return id->text;
  }
  return {};
}

const ComponentRegistry::Type* ComponentReader::type_of(const text::Complainer& to,
                                                        const text::YamlNode& node) {
  const text::YamlNode* key = node.find("type");
  std::string_view called = "type";
  for (const std::string_view other : {"path", "name"}) {
    if (key != nullptr) break;
    key = node.find(other);
    called = other;
  }
  if (key == nullptr) {
    to.complain(node, "'type' is missing");
    return nullptr;
  }
  if (key->kind != text::YamlKind::Text || key->text.empty()) {
    to.complain(*key, fmt::format("'{}' must be text, and not empty", called));
    return nullptr;
  }
  if (called == "path" && !key->text.contains('.')) {
    to.complain(*key, fmt::format("invalid path '{}': missing module name", key->text));
    return nullptr;
  }
  const ComponentRegistry::Type* type = registry_.find(key->text);
  if (type == nullptr && called == "path") {
    type = registry_.find(std::string_view(key->text).substr(key->text.rfind('.') + 1));
  }
  if (type == nullptr) {
    to.complain(*key, with_nearest(fmt::format("there is no type '{}'", key->text), key->text,
                                   registry_.names()));
  }
  return type;
}

Json ComponentReader::read(std::string_view executor) {
  const text::YamlNode& root = *top_.document().root();
  Json components = Json::array();
  if (root.kind != text::YamlKind::List) {
    top_.complain(root, "there must be a list");
    return components;
  }
  for (std::size_t i = 0; i < root.items.size(); ++i) {
    const text::YamlNode& node = *root.items[i];
    const text::Complainer to(top_.document(), top_.mistakes(), fmt::format("components/{}: ", i));
    if (node.kind != text::YamlKind::Mapping) {
      to.complain(node, "a component must be a mapping");
      continue;
    }
    const std::string id = id_of(to, node);
    current_ = id;
    const bool disabled = is_disabled(to, node);
    const ComponentRegistry::Type* const type = type_of(to, node);
    if (!id.empty()) entries_[id] = Entry{.node = &node, .type = type, .disabled = disabled};
    if (type == nullptr) continue;
    const Json arguments = arguments_of(to, node, *type);
    text::check_keys(to, node, kEntryKeys, {});
    if (!disabled) {
      components.push_back({{"id", id}, {"type", type->name}, {"args", arguments}});
    }
  }
  check_references();
  check_executor(root, executor);
  return components;
}

Json ComponentReader::arguments_of(const text::Complainer& to, const text::YamlNode& node,
                                   const ComponentRegistry::Type& type) {
  Json values = Json::object();
  const text::YamlNode* const given = node.find("args");
  if (given != nullptr && given->kind != text::YamlKind::Mapping &&
      given->kind != text::YamlKind::Null) {
    to.complain(*given, "'args' must be a mapping");
    return values;
  }
  std::vector<std::string_view> known;
  known.reserve(type.arguments.size());
  for (const ArgumentSpec& spec : type.arguments) known.emplace_back(spec.name);
  const text::Complainer within = to.within(fmt::format("type '{}'", type.name));
  if (given != nullptr && given->kind == text::YamlKind::Mapping)
    text::check_keys(within, *given, known, {});
  for (const ArgumentSpec& spec : type.arguments) {
    const text::YamlNode* const value = given == nullptr ? nullptr : given->find(spec.name);
    if (value != nullptr) {
      values[spec.name] = value_of(within, *value, spec);
    } else if (spec.needed) {
      within.complain(given == nullptr ? node : *given,
                      fmt::format("the argument '{}' is missing", spec.name));
    } else {
      values[spec.name] = Json::parse(spec.otherwise);
    }
  }
  return values;
}

Json ComponentReader::value_of(const text::Complainer& to, const text::YamlNode& node,
                               const ArgumentSpec& spec) {
  const auto wrong = [&] {
    to.complain(node, fmt::format("the argument '{}' must be {}", spec.name, to_text(spec.kind)));
    return Json();
  };
  switch (spec.kind) {
    case ArgumentKind::Component:
      return node.kind == text::YamlKind::Mapping || node.kind == text::YamlKind::Null
                 ? part_of(to, node)
                 : wrong();
    case ArgumentKind::Components: {
      if (node.kind != text::YamlKind::List) return wrong();
      Json list = Json::array();
      for (const text::YamlNode* const item : node.items) list.push_back(part_of(to, *item));
      return list;
    }
    case ArgumentKind::ComponentMap: {
      if (node.kind != text::YamlKind::Mapping) return wrong();
      Json map = Json::object();
      for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
        map[node.items[i]->text] = part_of(to, *node.items[i + 1]);
      }
      return map;
    }
    default:
      break;
  }
  Json value = plain(node);
  // A value that looks like a number is text if text is wanted: `version: 1.10`.
  if (spec.kind == ArgumentKind::Text && node.kind == text::YamlKind::Text) return node.text;
  const bool fits = [&] {
    switch (spec.kind) {
      case ArgumentKind::Boolean:
        return value.is_boolean();
      case ArgumentKind::Integer:
        return value.is_number_integer();
      case ArgumentKind::Number:
        return value.is_number();
      case ArgumentKind::Text:
        return false;
      case ArgumentKind::List:
        return value.is_array();
      case ArgumentKind::Object:
        return value.is_object();
      default:
        return true;
    }
  }();
  return fits ? value : wrong();
}

/// A component in the place of an argument: made there, or another one of the list.
Json ComponentReader::part_of(const text::Complainer& to, const text::YamlNode& node) {
  if (node.kind == text::YamlKind::Null) return nullptr;
  if (node.kind != text::YamlKind::Mapping) {
    to.complain(node, "a component must be a mapping: {type: ..., args: ...} or {ref: id}");
    return nullptr;
  }
  if (const text::YamlNode* const reference = node.find("ref")) {
    text::check_keys(to, node, kReferenceKeys, {});
    if (reference->kind != text::YamlKind::Text || reference->text.empty()) {
      to.complain(*reference, "'ref' must be the id of a component");
      return nullptr;
    }
    references_.push_back({.node = reference, .to = reference->text, .from = current_});
    return {{"ref", reference->text}};
  }
  text::check_keys(to, node, kEntryKeys, {});
  const bool disabled = is_disabled(to, node);
  const ComponentRegistry::Type* const type = type_of(to, node);
  if (type == nullptr) return nullptr;
  if (type->name == kPythonType) {
    to.complain(node, "a component of type 'python' cannot stand within another one");
  }
  const Json arguments = arguments_of(to, node, *type);
  if (disabled) return nullptr;
  return {{"type", type->name}, {"args", arguments}};
}

void ComponentReader::check_references() {
  std::vector<std::string_view> ids;
  ids.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) ids.emplace_back(id);
  for (const Reference& each : references_) {
    const auto target = entries_.find(each.to);
    if (target == entries_.end()) {
      top_.complain(*each.node,
                    with_nearest(fmt::format("there is no component '{}'", each.to), each.to, ids));
      continue;
    }
    if (target->second.disabled) {
      top_.complain(*each.node, fmt::format("the component '{}' is disabled", each.to));
    }
    const auto from = entries_.find(each.from);
    if (from != entries_.end()) from->second.refers.insert(each.to);
  }
  for (const Reference& each : references_) {
    std::set<std::string> seen;
    if (entries_.contains(each.to) && leads_to(each.to, each.from, seen)) {
      top_.complain(*each.node, fmt::format("the component '{}' needs itself, by way of '{}'",
                                            each.from, each.to));
    }
  }
}

bool ComponentReader::leads_to(const std::string& from, const std::string& to,
                               std::set<std::string>& seen) const {
  if (from == to) return true;
  const auto entry = entries_.find(from);
  if (entry == entries_.end() || !seen.insert(from).second) return false;
  return std::ranges::any_of(entry->second.refers,
                             [&](const std::string& next) { return leads_to(next, to, seen); });
}

void ComponentReader::check_executor(const text::YamlNode& list, std::string_view executor) {
  std::vector<std::string_view> executors;
  for (const auto& [id, entry] : entries_) {
    if (entry.type != nullptr && entry.type->executes && !entry.disabled)
      executors.emplace_back(id);
  }
  const auto found = entries_.find(executor);
  if (found == entries_.end()) {
    const std::string text = executor.empty()
                                 ? "no executor is named"
                                 : fmt::format("there is no component '{}' to execute", executor);
    top_.complain(list, executors.empty() ? text + ", and none that could"
                                          : with_nearest(text, executor, executors));
    return;
  }
  const Entry& entry = found->second;
  if (entry.type == nullptr) return;
  if (entry.disabled) {
    top_.complain(*entry.node, fmt::format("the executor '{}' is disabled", executor));
  } else if (!entry.type->executes) {
    top_.complain(*entry.node, fmt::format("'{}' is to execute, and its type '{}' is no executor",
                                           executor, entry.type->name));
  }
  check_languages(executor);
}

/// A rank is one process, of one program.
void ComponentReader::check_languages(std::string_view executor) {
  in_python_ = entries_.find(executor)->second.type->name == kPythonType;
  for (const auto& [id, entry] : entries_) {
    if (entry.type == nullptr || entry.disabled) continue;
    const bool python = entry.type->name == kPythonType;
    if (python == in_python_) continue;
    top_.complain(
        *entry.node,
        fmt::format("'{}' is {}in Python and the executor '{}' is{}: a rank is one program", id,
                    python ? "" : "not ", executor, python ? " not" : ""));
  }
}

}  // namespace

Result<CheckedComponents> check_components(std::string_view text, const std::string& file,
                                           std::string_view executor,
                                           const ComponentRegistry& registry) {
  const text::YamlDocument document(text, file);
  text::MistakeList mistakes;
  mistakes.add(document.mistakes());
  CheckedComponents checked;
  if (mistakes.empty() && document.root() == nullptr) {
    mistakes.add(text::Mistake{.file = file, .message = "components: there are none"});
  }
  if (mistakes.empty()) {
    ComponentReader reader(document, registry, mistakes);
    checked.json = wire::fields_text(reader.read(executor));
    checked.in_python = reader.in_python();
  }
  if (mistakes.empty()) return checked;
  std::vector<std::string> lines;
  for (const text::Mistake& each : std::move(mistakes).take()) lines.push_back(text::to_text(each));
  return std::unexpected(Error{fmt::format("{}", fmt::join(lines, "\n"))});
}

}  // namespace trainyard::ranks
