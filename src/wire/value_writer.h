// Writes values of the model as compact JSON, by the lists of their fields (wire/struct_fields.h).
// Members with their default are left out, so that most values are short.
//
// No state; any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/time.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

/// Appends text in quotes. Text that is not UTF-8 cannot be in JSON, and becomes an object with its
/// bytes, {"hex":"ff61"}.
void append_text(std::string& out, std::string_view text);

/// Appends the shortest text that is read as the same number. JSON has no word for "nan", "inf" and
/// "-inf": these are in quotes, and all NaNs are the same.
void append_number(std::string& out, double number);
void append_number(std::string& out, std::int64_t number);
void append_number(std::string& out, std::uint64_t number);

/// To the last bit: 0 and -0 are two numbers.
bool is_same_number(double one, double other);

template <class Value>
void append_value(std::string& out, const Value& value);

/// Whether nothing needs to be said of a member for it to be read again as it is.
template <class Value>
bool goes_without_saying(const Value& value, const Value& otherwise) {
  if constexpr (std::is_same_v<Value, double>) {
    return is_same_number(value, otherwise);
  } else {
    return value == otherwise;
  }
}

/// Begins the next member of an object that has been opened.
void append_name(std::string& out, std::string_view name);

template <class Struct, class Value>
void append_member(std::string& out, const Field<Struct, Value>& field, const Struct& whole) {
  const Struct otherwise{};
  const Value& value = whole.*field.member;
  if (goes_without_saying(value, otherwise.*field.member)) return;
  append_name(out, field.name);
  append_value(out, value);
}

/// The member of an object that says what a variant holds.
template <class... Alternatives>
void append_alternative(std::string& out, const std::variant<Alternatives...>& value) {
  append_name(out, WordsOf<std::variant<Alternatives...>>::kAll.at(value.index()));
  std::visit([&out](const auto& held) { append_value(out, held); }, value);
}

template <class Value>
void append_value(std::string& out, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::signed_integral<Value>) {
    append_number(out, std::int64_t{value});
  } else if constexpr (std::unsigned_integral<Value>) {
    append_number(out, std::uint64_t{value});
  } else if constexpr (std::is_same_v<Value, double>) {
    append_number(out, value);
  } else if constexpr (std::is_same_v<Value, Duration>) {
    append_number(out, std::int64_t{value.count()});
  } else if constexpr (std::is_same_v<Value, std::string>) {
    append_text(out, value);
  } else if constexpr (std::is_enum_v<Value>) {
    append_text(out, word_of(value));
  } else if constexpr (NumberOfItsOwn<Value>) {
    append_value(out, only_member(value));
  } else if constexpr (kIsA<Value, std::vector>) {
    out += '[';
    for (const auto& element : value) {
      if (out.back() != '[') out += ',';
      append_value(out, element);
    }
    out += ']';
  } else if constexpr (kIsA<Value, std::optional> || kIsA<Value, std::shared_ptr>) {
    // A member that holds nothing is left out: nothing is what they all hold by default.
    if (value) append_value(out, *value);
  } else if constexpr (kIsA<Value, std::variant>) {
    out += '{';
    append_alternative(out, value);
    out += '}';
  } else {
    out += '{';
    std::apply([&](const auto&... field) { (append_member(out, field, value), ...); },
               fields_of<Value>());
    out += '}';
  }
}

}  // namespace trainyard::wire
