#include "wire/value_reader.h"

#include <charconv>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/utf8.h"
#include "wire/field_reader.h"
#include "wire/json_text.h"

namespace trainyard::wire {
namespace {

/// "1:17: nested deeper than 64", with the member that it is in where that is known.
std::string words_for(const JsonFault& fault) {
  return fault.path.empty() ? to_text(fault) : fmt::format("{}: {}", fault.path, fault.what);
}

/// Reads what append_text() makes of text that is not UTF-8.
std::optional<std::string> text_of_hex(const nlohmann::json& object) {
  const auto digits = object.find("hex");
  if (digits == object.end() || !digits->is_string()) return std::nullopt;
  std::string_view rest = digits->get_ref<const std::string&>();
  if (rest.size() % 2 != 0) return std::nullopt;
  std::string text;
  for (; !rest.empty(); rest.remove_prefix(2)) {
    unsigned char byte = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + 2, byte, 16);
    if (error != std::errc{} || end != rest.data() + 2) return std::nullopt;
    text += static_cast<char>(byte);
  }
  return text;
}

}  // namespace

ValueReader::ValueReader(std::string_view text)
    : whole_(std::make_shared<const Json>(Json::object())) {
  const auto compact = compact_json(text);
  if (!compact) {
    fail(words_for(compact.error()));
  } else if (!compact->mended.empty()) {
    // A mended text would not be the one that was written.
    fail(compact->mended);
  } else {
    Json parsed = Json::parse(compact->text, nullptr, /*allow_exceptions=*/false);
    check(!parsed.is_discarded(), "compact_json gives what can be parsed");
    if (take_object(parsed)) whole_ = std::make_shared<const Json>(std::move(parsed));
  }
}

void ValueReader::fail(std::string what) {
  if (error_) return;
  std::string place;
  for (const Step& step : path_) {
    if (step.name.empty()) {
      place += fmt::format("[{}]", step.index);
    } else {
      place += fmt::format("{}{}", place.empty() ? "" : ".", step.name);
    }
  }
  error_ = Error{std::move(what)};
  if (!place.empty()) error_ = std::move(*error_).in(place);
}

const ValueReader::Json* ValueReader::find(const Json& object, std::string_view name) const {
  if (error_) return nullptr;
  const auto member = object.find(name);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

bool ValueReader::take_object(const Json& from) {
  if (!from.is_object()) fail(fmt::format("must be an object, not {}", from.type_name()));
  return !error_;
}

bool ValueReader::take_flag(const Json& from) {
  if (!from.is_boolean()) return fail("must be true or false"), false;
  return from.get<bool>();
}

std::int64_t ValueReader::take_whole(const Json& from, std::int64_t min, std::int64_t max) {
  constexpr auto kLargest = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const bool held =
      from.is_number_unsigned() ? from.get<std::uint64_t>() <= kLargest : from.is_number_integer();
  const std::int64_t number = held ? from.get<std::int64_t>() : 0;
  if (held && number >= min && number <= max) return number;
  fail(fmt::format("must be a whole number from {} to {}", min, max));
  return 0;
}

std::uint64_t ValueReader::take_count(const Json& from, std::uint64_t max) {
  if (from.is_number_unsigned() && from.get<std::uint64_t>() <= max) {
    return from.get<std::uint64_t>();
  }
  fail(fmt::format("must be a whole number from 0 to {}", max));
  return 0;
}

double ValueReader::take_number(const Json& from) {
  using Limits = std::numeric_limits<double>;
  if (from.is_number()) return from.get<double>();
  if (from == "nan") return Limits::quiet_NaN();
  if (from == "inf") return Limits::infinity();
  if (from == "-inf") return -Limits::infinity();
  fail(R"(must be a number, "nan", "inf" or "-inf")");
  return 0;
}

std::string ValueReader::take_text(const Json& from) {
  if (from.is_string()) return from.get<std::string>();
  if (!from.is_object()) return fail("must be text"), std::string();
  auto text = text_of_hex(from);
  if (!text) fail("must be text, or an object with its bytes as 'hex'");
  return std::move(text).value_or(std::string());
}

std::size_t ValueReader::take_word(const Json& from, std::span<const std::string_view> words) {
  if (from.is_string()) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (from.get_ref<const std::string&>() == words[i]) return i;
    }
  }
  const std::string all = fmt::format("must be one of {}", fmt::join(words, ", "));
  if (!from.is_string()) return fail(all), 0;
  const auto& word = from.get_ref<const std::string&>();
  fail(fmt::format("{}, not '{}'", all, utf8_prefix(word, kShownBytesMax)));
  return 0;
}

std::size_t ValueReader::list_size(const Json& from) {
  if (!from.is_array()) return fail("must be a list"), 0;
  return from.size();
}

const ValueReader::Json& ValueReader::element(const Json& list, std::size_t index) {
  return list[index];
}

std::optional<std::size_t> ValueReader::only_word_in(const Json& object,
                                                     std::span<const std::string_view> words) {
  if (error_) return std::nullopt;
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (find(object, words[i]) == nullptr) continue;
    if (only) {
      return fail(fmt::format("has both '{}' and '{}'", words[*only], words[i])), std::nullopt;
    }
    only = i;
  }
  if (!only) fail(fmt::format("must have one of {}", fmt::join(words, ", ")));
  return only;
}

}  // namespace trainyard::wire
