// The registered types of components, and how a component is made of its configuration.
//
//   struct Trainer : trainyard::Executor {
//     explicit Trainer(const Arguments& given) : rate(given.get<double>("rate")) {}
//     ...
//   };
//   ComponentRegistry registry;
//   registry.add<Trainer>("trainer", {argument("rate", 0.1), component("loss")});
//
// A value that is passed in: there are no others than those that somebody has added here, and the
// two that are always there, `command` and `python` (docs/ranks.md). Fill it first; then any
// thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/component.h"
#include "trainyard/json.h"  // IWYU pragma: export

namespace trainyard {

enum class ArgumentKind : std::uint8_t {
  Any,
  Boolean,
  Integer,
  Number,
  Text,
  List,
  Object,
  Component,     ///< {type: ..., args: ...} or {ref: id}
  Components,    ///< A list of them.
  ComponentMap,  ///< An object of them.
};

/// "a number", "a component"
std::string_view to_text(ArgumentKind kind);

struct ArgumentSpec {
  std::string name = {};
  ArgumentKind kind = ArgumentKind::Any;
  bool needed = true;
  std::string otherwise = {};  ///< JSON; of one that is not needed.
};

namespace detail {

template <class T>
constexpr ArgumentKind kind_of() {
  if (std::is_same_v<T, bool>) return ArgumentKind::Boolean;
  if (std::is_integral_v<T>) return ArgumentKind::Integer;
  if (std::is_floating_point_v<T>) return ArgumentKind::Number;
  if (std::is_convertible_v<T, std::string_view>) return ArgumentKind::Text;
  return ArgumentKind::Any;
}
std::string json_text(bool value);
std::string json_text(std::int64_t value);
std::string json_text(double value);
std::string json_text(std::string_view value);

}  // namespace detail

/// One that must be given: argument<double>("rate").
template <class T>
ArgumentSpec argument(std::string_view name) {
  return {.name = std::string(name), .kind = detail::kind_of<T>(), .needed = true};
}
/// One that has this value otherwise: argument("rate", 0.1).
template <class T>
ArgumentSpec argument(std::string name, const T& otherwise) {
  constexpr ArgumentKind kKind = detail::kind_of<std::decay_t<T>>();
  std::string text;
  if constexpr (kKind == ArgumentKind::Boolean) {
    text = detail::json_text(bool{otherwise});
  } else if constexpr (kKind == ArgumentKind::Integer) {
    text = detail::json_text(static_cast<std::int64_t>(otherwise));
  } else if constexpr (kKind == ArgumentKind::Number) {
    text = detail::json_text(static_cast<double>(otherwise));
  } else {
    text = detail::json_text(std::string_view(otherwise));
  }
  return {.name = std::move(name), .kind = kKind, .needed = false, .otherwise = std::move(text)};
}
/// One of that kind: argument("layers", ArgumentKind::List).
ArgumentSpec argument(std::string name, ArgumentKind kind);
/// One that is {} or [] or null otherwise.
ArgumentSpec optional_argument(std::string name, ArgumentKind kind);
ArgumentSpec component(std::string name);
ArgumentSpec components(std::string name);

/// The checked arguments of a component: one for each argument of its type.
class Arguments {
 public:
  using Part = std::shared_ptr<Component>;
  Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments();

  /// As bool, int, std::int64_t, double, std::string or Json. It is a bug to ask for what is not of
  /// that kind; throws std::invalid_argument for a number that no int can hold.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    T value{};
    read(name, value);
    return value;
  }

  /// Asked to stop when the components are not wanted any more: for what takes long to make.
  [[nodiscard]] const std::stop_token& stop() const;

  /// nullptr when it was given as null, or is disabled. An error of type std::invalid_argument when
  /// it is no C.
  template <std::derived_from<Component> C>
  [[nodiscard]] std::shared_ptr<C> component(std::string_view name) const {
    return cast<C>(name, part(name));
  }
  template <std::derived_from<Component> C>
  [[nodiscard]] std::vector<std::shared_ptr<C>> components(std::string_view name) const {
    std::vector<std::shared_ptr<C>> list;
    for (const Part& each : parts(name)) list.push_back(cast<C>(name, each));
    return list;
  }
  template <std::derived_from<Component> C>
  [[nodiscard]] std::map<std::string, std::shared_ptr<C>> component_map(
      std::string_view name) const {
    std::map<std::string, std::shared_ptr<C>> map;
    for (const auto& [key, each] : part_map(name)) map.emplace(key, cast<C>(name, each));
    return map;
  }

 private:
  friend class ComponentBuilder;
  struct State;

  void read(std::string_view name, bool& value) const;
  void read(std::string_view name, int& value) const;
  void read(std::string_view name, std::int64_t& value) const;
  void read(std::string_view name, double& value) const;
  void read(std::string_view name, std::string& value) const;
  void read(std::string_view name, Json& value) const;
  [[nodiscard]] const Part& part(std::string_view name) const;
  [[nodiscard]] const std::vector<Part>& parts(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, Part>& part_map(std::string_view name) const;
  [[noreturn]] static void complain_of_type(std::string_view name);

  template <class C>
  static std::shared_ptr<C> cast(std::string_view name, const Part& part) {
    auto casted = std::dynamic_pointer_cast<C>(part);
    if (part != nullptr && casted == nullptr) complain_of_type(name);
    return casted;
  }

  std::unique_ptr<State> state_;
};

class ComponentRegistry {
 public:
  using Make = std::function<std::shared_ptr<Component>(const Arguments&)>;
  struct Type {
    std::string name;
    std::vector<ArgumentSpec> arguments;
    bool executes = false;  ///< It is an Executor.
    Make make;              ///< Called in ranks; what it throws ends the launch.
  };

  /// With `command` and `python`.
  ComponentRegistry();

  /// A type whose constructor takes the arguments, or nothing. It is a bug to add a name twice.
  template <std::derived_from<Component> C>
  void add(std::string_view name, const std::vector<ArgumentSpec>& arguments = {}) {
    static_assert(std::constructible_from<C, const Arguments&> || std::default_initializable<C>,
                  "a component is made of its arguments, or of nothing");
    add(Type{.name = std::string(name),
             .arguments = arguments,
             .executes = std::derived_from<C, Executor>,
             .make = [](const Arguments& given) -> std::shared_ptr<Component> {
               if constexpr (std::constructible_from<C, const Arguments&>) {
                 return std::make_shared<C>(given);
               } else {
                 return std::make_shared<C>();
               }
             }});
  }
  void add(Type type);

  /// nullptr when there is none.
  [[nodiscard]] const Type* find(std::string_view name) const;
  /// In order.
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  std::map<std::string, Type, std::less<>> types_;
};

}  // namespace trainyard
