// The kept members of a context, as JSON, so that a run continues its counters where another ended:
//
//   {"total_step": 41, "kept": {"env_step": 4100, "best": 0.5}}
//
//   std::ofstream{"counters.json"} << trainyard::kept_to_json(loop.context()).value();
//   if (auto done = trainyard::resume(loop, saved); !done) return complain(done.error().message);
//
// A member is anything that nlohmann::json can convert. Infinity and NaN, which JSON has no words
// for, are the texts "inf", "-inf" and "nan"; inside of other values they are an error. A number
// that a member cannot hold is an error, too; inside of other values nlohmann::json converts it.
//
// Any thread, while no step runs. Includes all of nlohmann/json.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <exception>
#include <expected>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "trainyard/context.h"
#include "trainyard/json.h"  // IWYU pragma: export
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/result.h"

namespace trainyard {

namespace detail {

Json number_to_json(double value);
/// Nothing, when it is no number either way.
std::optional<double> number_from_json(const Json& value);
/// An error where a number in it is none that JSON has.
[[nodiscard]] Result<void> check_numbers(const Json& value, std::string_view member);
/// The object with the members, when it has these and no others.
[[nodiscard]] Result<const Json*> kept_object(const Json& saved,
                                              std::span<const std::string_view> names);
[[nodiscard]] Result<std::uint64_t> total_step_of(const Json& saved);
std::string misfit_text(const Json& value, std::string_view why);
std::string unlike_text(std::string_view member, const Json& value, std::string_view why);

template <class Member>
[[nodiscard]] Result<Json> member_to_json(std::string_view name, const Member& member) {
  if constexpr (std::floating_point<Member>) {
    return number_to_json(static_cast<double>(member));
  } else {
    Json value = member;
    if (auto known = check_numbers(value, name); !known) return std::unexpected(known.error());
    return value;
  }
}

/// The error says why alone.
template <class Number>
[[nodiscard]] Result<Number> number_that_fits(const Json& value) {
  if constexpr (kIsInteger<Number>) {
    // The conversion would cut off what does not fit.
    const auto number = integer_from_json<Number>(value);
    if (!number) return std::unexpected(Error{"no integer of its size"});
    return *number;
  } else {
    const auto number = number_from_json(value);
    if (!number) return std::unexpected(Error{"no number"});
    if (std::isfinite(*number) &&
        std::abs(*number) > static_cast<double>(std::numeric_limits<Number>::max())) {
      return std::unexpected(Error{"too large"});
    }
    return static_cast<Number>(*number);
  }
}

template <class Member>
[[nodiscard]] Result<void> member_from_json(std::string_view name, const Json& value,
                                            Member& member) {
  try {
    if constexpr (std::floating_point<Member> || kIsInteger<Member>) {
      const auto number = number_that_fits<Member>(value);
      if (!number) return std::unexpected(Error{unlike_text(name, value, number.error().message)});
      member = *number;
    } else {
      value.get_to(member);
    }
  } catch (const std::exception& error) {
    return std::unexpected(Error{unlike_text(name, value, error.what())});
  }
  return {};
}

}  // namespace detail

/// Members of different classes may have one name, and JSON has no two fields of one.
template <ContextType C>
consteval bool names_differ() {
  const auto& names = C::kept.kNames;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) return false;
    }
  }
  return true;
}

template <ContextType C>
[[nodiscard]] Result<Json> kept_to_json(const C& context) {
  static_assert(names_differ<C>(), "two kept members have one name");
  Json kept = Json::object();
  Result<void> well;
  C::kept.for_each(context, [&](std::string_view name, const auto& member) {
    if (!well) return;
    Result<Json> value = detail::member_to_json(name, member);
    if (!value) {
      well = std::unexpected(value.error());
    } else {
      kept[std::string(name)] = *std::move(value);
    }
  });
  if (!well) return std::unexpected(well.error());
  return Json{{"total_step", context.total_step}, {"kept", std::move(kept)}};
}

/// Puts what was saved into the context. Every member must be there, and nothing else; after an
/// error, which names the member, the context is as it was.
template <ContextType C>
[[nodiscard]] Result<void> kept_from_json(const Json& saved, C& context) {
  const Result<const Json*> kept = detail::kept_object(saved, C::kept.kNames);
  if (!kept) return std::unexpected(kept.error());
  const Result<std::uint64_t> total_step = detail::total_step_of(saved);
  if (!total_step) return std::unexpected(total_step.error());
  C read{};
  Result<void> well;
  C::kept.for_each(read, [&](std::string_view name, auto& member) {
    if (well) well = detail::member_from_json(name, (*kept)->at(std::string(name)), member);
  });
  if (!well) return well;
  C::kept.move(read, context);
  context.total_step = *total_step;
  return {};
}

/// Has the pipeline go on after the iteration at whose end this was saved.
template <ContextType C>
[[nodiscard]] Result<void> resume(Pipeline<C>& loop, const Json& saved) {
  Result<void> read = kept_from_json(saved, loop.context());
  if (read) loop.set_done();
  return read;
}

}  // namespace trainyard
