#include "trainyard/component_registry.h"

#include <array>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "ranks/command_executor.h"
#include "trainyard/rank_context.h"

namespace trainyard {
void Component::handle_event(const RankEvent&, RankContext&) {}

std::string_view to_text(ArgumentKind kind) {
  static constexpr std::array<std::string_view, 10> kWords{
      "any value",
      "true or false",
      "a whole number",
      "a number",
      "text",
      "a list",
      "a mapping",
      "a component ({type: ..., args: ...} or {ref: id})",
      "a list of components",
      "a mapping of components"};
  return kWords.at(static_cast<std::size_t>(kind));
}

namespace detail {

std::string json_text(bool value) { return Json(value).dump(); }
std::string json_text(std::int64_t value) { return Json(value).dump(); }
std::string json_text(double value) { return Json(value).dump(); }
std::string json_text(std::string_view value) { return Json(value).dump(); }

}  // namespace detail

ArgumentSpec argument(std::string name, ArgumentKind kind) {
  return {.name = std::move(name), .kind = kind, .needed = true};
}

ArgumentSpec optional_argument(std::string name, ArgumentKind kind) {
  std::string otherwise = "null";
  if (kind == ArgumentKind::List || kind == ArgumentKind::Components) otherwise = "[]";
  if (kind == ArgumentKind::Object || kind == ArgumentKind::ComponentMap) otherwise = "{}";
  return {
      .name = std::move(name), .kind = kind, .needed = false, .otherwise = std::move(otherwise)};
}

ArgumentSpec component(std::string name) {
  return optional_argument(std::move(name), ArgumentKind::Component);
}
ArgumentSpec components(std::string name) {
  return optional_argument(std::move(name), ArgumentKind::Components);
}

ComponentRegistry::ComponentRegistry() {
  add(ranks::command_type());
  add(ranks::python_type());
}

void ComponentRegistry::add(Type type) {
  std::string name = type.name;
  const bool fresh = types_.emplace(std::move(name), std::move(type)).second;
  check(fresh, "one type of each name");
}

const ComponentRegistry::Type* ComponentRegistry::find(std::string_view name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> ComponentRegistry::names() const {
  std::vector<std::string_view> names;
  names.reserve(types_.size());
  for (const auto& [name, type] : types_) names.emplace_back(name);
  return names;
}

}  // namespace trainyard
