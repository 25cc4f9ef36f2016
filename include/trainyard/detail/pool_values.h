// How the arguments and results of calls are turned into what travels, and back; and what a method
// takes. Not for users. Includes all of nlohmann/json.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"

namespace trainyard::detail {

template <class T>
struct IsTupleOrPair : std::false_type {};
template <class... Each>
struct IsTupleOrPair<std::tuple<Each...>> : std::true_type {};
template <class First, class Second>
struct IsTupleOrPair<std::pair<First, Second>> : std::true_type {};

/// Whether a value can go to another process: see trainyard/pool.h. A view or a pointer has nothing
/// of its own that could.
template <class T>
struct Travels : std::bool_constant<std::is_constructible_v<nlohmann::json, const T&> &&
                                    std::is_default_constructible_v<T> && !std::is_pointer_v<T> &&
                                    !std::is_same_v<T, std::string_view>> {};
template <>
struct Travels<Buffer> : std::true_type {};
template <>
struct Travels<std::vector<Buffer>> : std::true_type {};
template <class... Each>
struct Travels<std::tuple<Each...>> : std::bool_constant<(Travels<Each>::value && ...)> {};
template <class First, class Second>
struct Travels<std::pair<First, Second>>
    : std::bool_constant<Travels<First>::value && Travels<Second>::value> {};

/// Puts values behind each other. One thread.
class ValueWriter {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, Buffer>) {
      payload_.buffers.push_back(value);
    } else if constexpr (std::is_same_v<T, std::vector<Buffer>>) {
      json_.push_back(value.size());
      payload_.buffers.insert(payload_.buffers.end(), value.begin(), value.end());
    } else if constexpr (IsTupleOrPair<T>::value) {
      std::apply([&](const auto&... each) { (put(each), ...); }, value);
    } else {
      json_.push_back(nlohmann::json(value));
    }
  }
  /// Throws where it cannot travel as it is (json_text_of).
  RemotePayload take() && {
    if (!json_.empty()) payload_.json = json_text_of(json_);
    return std::move(payload_);
  }

 private:
  nlohmann::json json_ = nlohmann::json::array();
  RemotePayload payload_;
};

/// Takes them in the same order. Throws where something else has come. One thread.
class ValueReader {
 public:
  explicit ValueReader(RemotePayload payload)
      : json_(json_of(payload)), buffers_(std::move(payload.buffers)) {}

  template <class T>
  T get() {
    if constexpr (std::is_same_v<T, Buffer>) {
      return buffers_.at(buffers_taken_++);
    } else if constexpr (std::is_same_v<T, std::vector<Buffer>>) {
      const auto count = next().get<std::size_t>();
      if (count > buffers_.size() - buffers_taken_) throw std::runtime_error("too few buffers");
      const auto first = buffers_.begin() + static_cast<std::ptrdiff_t>(buffers_taken_);
      buffers_taken_ += count;
      return {first, first + static_cast<std::ptrdiff_t>(count)};
    } else if constexpr (IsTupleOrPair<T>::value) {
      T values;
      std::apply([&](auto&... each) { ((each = get<std::remove_cvref_t<decltype(each)>>()), ...); },
                 values);
      return values;
    } else {
      return next().template get<T>();
    }
  }

 private:
  const nlohmann::json& next() { return json_.at(json_taken_++); }

  nlohmann::json json_;
  std::vector<Buffer> buffers_;
  std::size_t json_taken_ = 0;
  std::size_t buffers_taken_ = 0;
};

template <class R, class... A>
struct Signature {
  using Result = std::remove_cvref_t<R>;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;

  template <auto Method, class T>
  static Result invoke(T& object, Arguments& arguments) {
    return std::apply(
        [&](std::remove_cvref_t<A>&... each) -> Result {
          return std::invoke(Method, object, static_cast<A&&>(each)...);
        },
        arguments);
  }
};

/// A callable of the pool: a member function, a function of the object, or a closure that captures
/// nothing.
template <class F>
struct MethodOf : MethodOf<decltype(+std::declval<const F&>())> {};
template <class C, class R, class... A>
struct MethodOf<R (C::*)(A...)> : Signature<R, A...> {};
template <class C, class R, class... A>
struct MethodOf<R (C::*)(A...) const> : Signature<R, A...> {};
template <class C, class R, class... A>
struct MethodOf<R (C::*)(A...) noexcept> : Signature<R, A...> {};
template <class C, class R, class... A>
struct MethodOf<R (C::*)(A...) const noexcept> : Signature<R, A...> {};
template <class R, class T, class... A>
struct MethodOf<R (*)(T&, A...)> : Signature<R, A...> {};
template <class R, class T, class... A>
struct MethodOf<R (*)(T&, A...) noexcept> : Signature<R, A...> {};

template <auto Value>
struct Constant {};

/// The index of the method among the methods; their number when it is not among them.
template <auto Method, auto... Methods>
consteval std::size_t position_of() {
  std::size_t position = 0;
  const bool found =
      ((std::is_same_v<Constant<Method>, Constant<Methods>> || (++position, false)) || ...);
  return found ? position : sizeof...(Methods);
}

}  // namespace trainyard::detail
