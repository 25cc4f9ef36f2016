// The members of a struct that are written, and their names: one list for each struct, used by both
// wire/value_writer.h and wire/value_reader.h, so that writing and reading cannot differ. Here are
// the kinds of lists; those of the model's structs are beside it.
//
// A member that is added to a struct and to no list does not compile, nor does a new word of an
// enum, or a new alternative of a variant, that has no name here. No state; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace trainyard::wire {

/// A member of a struct, and what it is called in the text.
template <class Struct, class Value>
struct Field {
  std::string_view name;
  Value Struct::* member;
};

template <class Struct, class Value>
constexpr Field<Struct, Value> field(std::string_view name, Value Struct::* member) {
  return {.name = name, .member = member};
}

/// All fields of a struct, as a tuple of Field. Each struct that is written has a list of its own.
template <class Struct>
constexpr auto kFields = nullptr;

/// The only member of a struct that is nothing but a number with a type of its own: it is written
/// as that number.
template <class Struct>
constexpr auto kOnlyMember = nullptr;

/// The name of a struct where it is one of several that a variant may hold.
template <class Struct>
constexpr std::string_view kWordFor;

/// The name of a value of an enum; empty where it is no value of it. Each enum that is written
/// says it in a switch without a default, so that the compiler misses a value that is left out. The
/// values count from 0.
template <class Enum>
constexpr std::string_view word_of(Enum value) = delete;

/// Stands for a value of any type, where nobody asks for it.
struct AnyValue {
  template <class Value>
  constexpr operator Value() const {  // NOLINT(google-explicit-constructor)
    std::unreachable();
  }
};

/// How many members a struct has that can be made from a list of them: as many as it takes values.
template <class Struct, class... Values>
consteval std::size_t member_count() {
  if constexpr (requires { Struct{Values{}..., AnyValue{}}; }) {
    return member_count<Struct, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

template <class Value>
concept NumberOfItsOwn = !std::is_same_v<decltype(kOnlyMember<Value>), const std::nullptr_t>;

/// The list of a struct, which names each of its members.
template <class Struct>
constexpr const auto& fields_of() {
  static_assert(!std::is_same_v<decltype(kFields<Struct>), const std::nullptr_t>,
                "a struct that is written has a list of its fields");
  static_assert(
      std::tuple_size_v<std::decay_t<decltype(kFields<Struct>)>> == member_count<Struct>(),
      "the list of the fields of a struct names each of its members");
  return kFields<Struct>;
}

/// The member itself.
template <class Struct>
constexpr auto& only_member(Struct& value) {
  static_assert(member_count<std::remove_const_t<Struct>>() == 1, "there is no other member");
  return value.*kOnlyMember<std::remove_const_t<Struct>>;
}

/// The words of an enum, by value.
template <class Enum>
constexpr auto words_of() {
  constexpr std::size_t kCount = [] {
    std::size_t count = 0;
    while (!word_of(static_cast<Enum>(count)).empty()) ++count;
    return count;
  }();
  std::array<std::string_view, kCount> words;
  for (std::size_t i = 0; i < kCount; ++i) words.at(i) = word_of(static_cast<Enum>(i));
  return words;
}

/// The words for what a variant may hold, in its order.
template <class Variant>
struct WordsOf;
template <class... Alternatives>
struct WordsOf<std::variant<Alternatives...>> {
  static_assert((!kWordFor<Alternatives>.empty() && ...), "what a variant may hold has a word");
  static constexpr std::array<std::string_view, sizeof...(Alternatives)> kAll{
      kWordFor<Alternatives>...};
};

/// Whether a template made the type, and of what.
template <class Type, template <class...> class Template>
constexpr bool kIsA = false;
template <template <class...> class Template, class... Parts>
constexpr bool kIsA<Template<Parts...>, Template> = true;

}  // namespace trainyard::wire
