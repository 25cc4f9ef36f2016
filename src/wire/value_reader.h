// Reads values of the model from JSON that anybody may have written, by the lists of their fields
// (wire/struct_fields.h). A missing or null member has its default value. Unknown members are
// skipped, so that messages of a newer version can be read.
//
// The first fault is kept, with its place, as in "sampled.tasks[3].memory: must be a whole number":
// values that are read after it are meaningless. The reader goes no deeper than the types, however
// deep the text is. One thread. Values are copies.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "base/time.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

class ValueReader {
 public:
  using Json = nlohmann::json;

  /// Text that is no JSON object is the first fault.
  explicit ValueReader(std::string_view text);

  /// The object that the text is.
  [[nodiscard]] const Json& whole() const { return *whole_; }
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  /// A fault of what is being read.
  void fail(std::string what);
  /// The value that was read, unless something was wrong with it: `what`.
  template <class Value>
  Result<Value> give(Value value, const char* what) && {
    if (error_) return std::unexpected(std::move(*error_).in(what));
    return value;
  }

  template <class Value>
  void read(const Json& from, Value& into);
  /// A member of the object; nothing changes where it is not there.
  template <class Value>
  void read_member(const Json& object, std::string_view name, Value& into);
  /// Reads a variant: exactly one of the members that have the words for it.
  template <class... Alternatives>
  void read_alternative(const Json& object, std::variant<Alternatives...>& into);

 private:
  /// Where something is in what it is in.
  struct Step {
    std::string_view name;  ///< Empty: it is in a list.
    std::size_t index = 0;
  };

  /// Nullptr: it is not there, or something was wrong before.
  const Json* find(const Json& object, std::string_view name) const;
  bool take_object(const Json& from);
  bool take_flag(const Json& from);
  std::int64_t take_whole(const Json& from, std::int64_t min, std::int64_t max);
  std::uint64_t take_count(const Json& from, std::uint64_t max);
  double take_number(const Json& from);
  std::string take_text(const Json& from);
  /// The index of the word among `words`.
  std::size_t take_word(const Json& from, std::span<const std::string_view> words);
  std::size_t list_size(const Json& from);
  static const Json& element(const Json& list, std::size_t index);
  std::optional<std::size_t> only_word_in(const Json& object,
                                          std::span<const std::string_view> words);

  template <class Value>
  void read_list(const Json& from, std::vector<Value>& into);

  std::shared_ptr<const Json> whole_;
  std::vector<Step> path_;  ///< To what is being read.
  std::optional<Error> error_;
};

template <class Value>
void ValueReader::read(const Json& from, Value& into) {
  if constexpr (std::is_same_v<Value, bool>) {
    into = take_flag(from);
  } else if constexpr (std::signed_integral<Value>) {
    using Limits = std::numeric_limits<Value>;
    into = static_cast<Value>(take_whole(from, Limits::min(), Limits::max()));
  } else if constexpr (std::unsigned_integral<Value>) {
    into = static_cast<Value>(take_count(from, std::numeric_limits<Value>::max()));
  } else if constexpr (std::is_same_v<Value, double>) {
    into = take_number(from);
  } else if constexpr (std::is_same_v<Value, Duration>) {
    using Limits = std::numeric_limits<Duration::rep>;
    into = Duration(take_whole(from, Limits::min(), Limits::max()));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    into = take_text(from);
  } else if constexpr (std::is_enum_v<Value>) {
    static constexpr auto kWords = words_of<Value>();
    into = static_cast<Value>(take_word(from, kWords));
  } else if constexpr (NumberOfItsOwn<Value>) {
    read(from, only_member(into));
  } else if constexpr (kIsA<Value, std::vector>) {
    read_list(from, into);
  } else if constexpr (kIsA<Value, std::optional>) {
    read(from, into.emplace());
  } else if constexpr (kIsA<Value, std::shared_ptr>) {
    auto held = std::make_shared<std::remove_const_t<typename Value::element_type>>();
    read(from, *held);
    into = std::move(held);
  } else if constexpr (kIsA<Value, std::variant>) {
    if (take_object(from)) read_alternative(from, into);
  } else {
    if (!take_object(from)) return;
    std::apply(
        [&](const auto&... field) { (read_member(from, field.name, into.*field.member), ...); },
        fields_of<Value>());
  }
}

template <class Value>
void ValueReader::read_member(const Json& object, std::string_view name, Value& into) {
  const Json* const member = find(object, name);
  if (member == nullptr) return;
  path_.push_back({.name = name});
  read(*member, into);
  path_.pop_back();
}

template <class... Alternatives>
void ValueReader::read_alternative(const Json& object, std::variant<Alternatives...>& into) {
  static constexpr auto kWords = WordsOf<std::variant<Alternatives...>>::kAll;
  const std::optional<std::size_t> which = only_word_in(object, kWords);
  if (!which) return;
  const auto read_if = [&]<class Alternative>(std::size_t index, Alternative value) {
    if (index != *which) return;
    read_member(object, kWords.at(index), value);
    into = std::move(value);
  };
  std::size_t index = 0;
  (read_if(index++, Alternatives{}), ...);
}

template <class Value>
void ValueReader::read_list(const Json& from, std::vector<Value>& into) {
  const std::size_t size = list_size(from);
  into.reserve(size);
  for (std::size_t i = 0; i < size && !failed(); ++i) {
    path_.push_back({.index = i});
    read(element(from, i), into.emplace_back());
    path_.pop_back();
  }
}

}  // namespace trainyard::wire
