#include "ranks/component_builder.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace trainyard {

struct Arguments::State {
  Json values = Json::object();
  std::stop_token stop;
  std::map<std::string, Part, std::less<>> parts;
  std::map<std::string, std::vector<Part>, std::less<>> lists;
  std::map<std::string, std::map<std::string, Part>, std::less<>> maps;
};

namespace {

template <class Map>
const auto& at(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  check(found != map.end(), "an argument that the type has, and of that kind");
  return found->second;
}

template <class T>
T built_value(const Json& values, std::string_view name) {
  const auto found = values.find(name);
  check(found != values.end(), "an argument that the type has");
  return found->template get<T>();
}

}  // namespace

Arguments::Arguments() : state_(std::make_unique<State>()) {}
Arguments::~Arguments() = default;

const std::stop_token& Arguments::stop() const { return state_->stop; }

void Arguments::read(std::string_view name, bool& value) const {
  value = built_value<bool>(state_->values, name);
}
void Arguments::read(std::string_view name, int& value) const {
  const auto whole = built_value<std::int64_t>(state_->values, name);
  value = static_cast<int>(whole);
  if (value != whole) {
    throw std::invalid_argument(fmt::format("the argument '{}' is {}: too large", name, whole));
  }
}
void Arguments::read(std::string_view name, std::int64_t& value) const {
  value = built_value<std::int64_t>(state_->values, name);
}
void Arguments::read(std::string_view name, double& value) const {
  value = built_value<double>(state_->values, name);
}
void Arguments::read(std::string_view name, std::string& value) const {
  value = built_value<std::string>(state_->values, name);
}
void Arguments::read(std::string_view name, Json& value) const {
  value = built_value<Json>(state_->values, name);
}

const Arguments::Part& Arguments::part(std::string_view name) const {
  return at(state_->parts, name);
}
const std::vector<Arguments::Part>& Arguments::parts(std::string_view name) const {
  return at(state_->lists, name);
}
const std::map<std::string, Arguments::Part>& Arguments::part_map(std::string_view name) const {
  return at(state_->maps, name);
}

void Arguments::complain_of_type(std::string_view name) {
  throw std::invalid_argument(
      fmt::format("the component given as '{}' is of another type than is needed there", name));
}

class ComponentBuilder {
 public:
  ComponentBuilder(const Json& list, const ComponentRegistry& registry, std::stop_token stop)
      : registry_(registry), stop_(std::move(stop)) {
    for (const Json& entry : list) entries_.emplace(entry.at("id").get<std::string>(), &entry);
  }

  std::shared_ptr<Component> of_id(const std::string& id) {
    const auto made = made_.find(id);
    if (made != made_.end()) return made->second;
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || !open_.insert(id).second) {
      throw std::invalid_argument(fmt::format("no component '{}' can be made", id));
    }
    auto component = make(*entry->second);
    made_.emplace(id, component);
    return component;
  }

  std::vector<ranks::BuiltComponents::One> take_nested() { return std::exchange(nested_, {}); }

 private:
  std::shared_ptr<Component> make(const Json& entry) {
    const auto name = entry.at("type").get<std::string>();
    const ComponentRegistry::Type* const type = registry_.find(name);
    if (type == nullptr || !type->make) {
      throw std::invalid_argument(fmt::format("this program cannot make a '{}'", name));
    }
    Arguments arguments;
    arguments.state_->stop = stop_;
    const Json& given = entry.at("args");
    for (const ArgumentSpec& spec : type->arguments) {
      const auto value = given.find(spec.name);
      if (value == given.end()) {
        throw std::invalid_argument(
            fmt::format("'{}' was checked without its '{}'", name, spec.name));
      }
      add(arguments, spec, *value);
    }
    auto component = type->make(arguments);
    if (component == nullptr) throw std::invalid_argument(fmt::format("'{}' makes nothing", name));
    return component;
  }

  void add(Arguments& to, const ArgumentSpec& spec, const Json& value) {
    Arguments::State& state = *to.state_;
    if (spec.kind == ArgumentKind::Component) {
      state.parts[spec.name] = part(value);
    } else if (spec.kind == ArgumentKind::Components) {
      auto& list = state.lists[spec.name];
      for (const Json& each : value) list.push_back(part(each));
    } else if (spec.kind == ArgumentKind::ComponentMap) {
      auto& map = state.maps[spec.name];
      for (const auto& [key, each] : value.items()) map.emplace(key, part(each));
    } else {
      state.values[spec.name] = value;
    }
  }

  std::shared_ptr<Component> part(const Json& value) {
    if (value.is_null()) return nullptr;
    if (value.contains("ref")) return of_id(value.at("ref").get<std::string>());
    auto component = make(value);
    nested_.push_back({.component = component});
    return component;
  }

  const ComponentRegistry& registry_;
  std::stop_token stop_;
  std::map<std::string, const Json*> entries_;
  std::map<std::string, std::shared_ptr<Component>> made_;
  std::set<std::string> open_;  ///< Begun.
  std::vector<ranks::BuiltComponents::One> nested_;
};

ranks::BuiltComponents ranks::build_components(std::string_view json, std::string_view executor,
                                               const ComponentRegistry& registry,
                                               const std::stop_token& stop) {
  const Json list = Json::parse(json);
  ComponentBuilder builder(list, registry, stop);
  ranks::BuiltComponents built;
  for (const Json& entry : list) {
    const auto id = entry.at("id").get<std::string>();
    built.all.push_back({.id = id, .component = builder.of_id(id)});
    if (id == executor) built.executor = dynamic_cast<Executor*>(built.all.back().component.get());
  }
  for (ranks::BuiltComponents::One& each : builder.take_nested())
    built.all.push_back(std::move(each));
  if (built.executor == nullptr) {
    throw std::invalid_argument(fmt::format("'{}' is no executor", executor));
  }
  return built;
}

std::vector<std::string> ranks::BuiltComponents::listens_to() const {
  std::set<std::string> names;
  for (const One& each : all) {
    for (std::string& name : each.component->listens_to()) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

}  // namespace trainyard
