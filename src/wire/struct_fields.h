// The members of a struct that are written, and their names: one list for each struct, used by both
// wire/value_writer.h and wire/value_reader.h, so that writing and reading cannot differ. Here are
// the kinds of lists; wire/model_fields.h has those of the model's structs.
//
//   TRAINYARD_FIELDS(model::AttemptKey, task, attempt);
//
// A member has the same name in the text as in C++: renaming it changes what is written. The lists
// are macros because C++23 cannot name the members of a struct by itself.
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

/// Macro(Type, argument) for each argument, of which there are up to 64.
#define TRAINYARD_EACH(Macro, Type, ...) \
  __VA_OPT__(TRAINYARD_SCAN_64(TRAINYARD_EACH_STEP(Macro, Type, __VA_ARGS__)))
#define TRAINYARD_EACH_STEP(Macro, Type, first, ...) \
  Macro(Type, first) __VA_OPT__(TRAINYARD_EACH_AGAIN TRAINYARD_PARENS(Macro, Type, __VA_ARGS__))
#define TRAINYARD_EACH_AGAIN() TRAINYARD_EACH_STEP
#define TRAINYARD_PARENS ()
// A step is found by the scan that follows the one that wrote it.
#define TRAINYARD_SCAN_64(...) \
  TRAINYARD_SCAN_16(TRAINYARD_SCAN_16(TRAINYARD_SCAN_16(TRAINYARD_SCAN_16(__VA_ARGS__))))
#define TRAINYARD_SCAN_16(...) \
  TRAINYARD_SCAN_4(TRAINYARD_SCAN_4(TRAINYARD_SCAN_4(TRAINYARD_SCAN_4(__VA_ARGS__))))
#define TRAINYARD_SCAN_4(...) \
  TRAINYARD_SCAN(TRAINYARD_SCAN(TRAINYARD_SCAN(TRAINYARD_SCAN(__VA_ARGS__))))
#define TRAINYARD_SCAN(...) __VA_ARGS__

/// Defines kFields of a struct.
#define TRAINYARD_FIELDS(Struct, ...)                    \
  template <>                                            \
  inline constexpr auto kFields<Struct> = std::tuple {   \
    TRAINYARD_EACH(TRAINYARD_FIELD, Struct, __VA_ARGS__) \
  }
#define TRAINYARD_FIELD(Struct, member_name) field(#member_name, &Struct::member_name),

/// Defines kWordFor and kFields of a struct that a variant may hold.
#define TRAINYARD_ALTERNATIVE(word, Struct, ...)             \
  template <>                                                \
  inline constexpr std::string_view kWordFor<Struct> = word; \
  TRAINYARD_FIELDS(Struct, __VA_ARGS__)

/// Defines kOnlyMember of a struct.
#define TRAINYARD_NUMBER(Struct, member_name) \
  template <>                                 \
  inline constexpr auto kOnlyMember<Struct> { \
    &Struct::member_name                      \
  }

/// Defines word_of() of an enum: TRAINYARD_WORDS(Answer, (Yes, "yes"), (No, "no"));
#define TRAINYARD_WORDS(Enum, ...)                                       \
  template <>                                                            \
  constexpr std::string_view word_of(Enum value) {                       \
    using enum Enum;                                                     \
    switch (value) { TRAINYARD_EACH(TRAINYARD_WORD, Enum, __VA_ARGS__) } \
    return {};                                                           \
  }                                                                      \
  static_assert(!word_of(static_cast<Enum>(0)).empty(), "the values of an enum count from 0")
#define TRAINYARD_WORD(Enum, value_and_word) TRAINYARD_CASE value_and_word
#define TRAINYARD_CASE(Value, word) \
  case Value:                       \
    return word;

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
