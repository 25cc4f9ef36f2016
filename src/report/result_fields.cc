#include "report/result_fields.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/list_text.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

/// The members of an object, one after the other, verbatim from valid JSON. The library would
/// compare each key with all before it, also within values that are only shown verbatim.
class Members {
 public:
  explicit Members(std::string_view object) : rest_(object.substr(1)) {}

  struct Member {
    std::string_view key;  ///< With its quotes.
    std::string_view value;
  };
  std::optional<Member> next() {
    skip(" \t\r\n,");
    if (rest_.starts_with('}')) return std::nullopt;
    const std::string_view key = take_value();
    skip(" \t\r\n:");
    return Member{.key = key, .value = take_value()};
  }

 private:
  void skip(std::string_view what) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(what), rest_.size()));
  }

  /// Up to the comma, colon or brace that is outside of the value.
  std::string_view take_value() {
    std::size_t end = 0;
    int depth = 0;
    for (bool quoted = false; end < rest_.size(); ++end) {
      const char byte = rest_[end];
      if (quoted && byte == '\\') ++end;
      if (byte == '"') quoted = !quoted;
      if (quoted || byte == '\\') continue;
      if (byte == '{' || byte == '[') ++depth;
      const bool closes = byte == '}' || byte == ']';
      if (depth == 0 && (closes || std::string_view(",: \t\r\n").contains(byte))) break;
      if (closes) --depth;
    }
    const std::string_view value = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end, rest_.size()));
    return value;
  }

  std::string_view rest_;
};

Field field_of(std::string_view quoted_key, std::string_view text) {
  Field field{.key = Json::parse(quoted_key).get<std::string>()};
  if (text.starts_with('{') || text.starts_with('[')) {
    field.kind = FieldKind::Nested;
    field.text = text;
    return field;
  }
  const Json value = Json::parse(text);
  if (value.is_string()) {
    field.kind = FieldKind::Text;
    field.text = value.get<std::string>();
    return field;
  }
  // Verbatim: a double holds no whole number above 2^53, and the library none above 2^64.
  field.text = text;
  if (value.is_boolean()) field.kind = FieldKind::Truth;
  if (value.is_number()) {
    const bool is_whole = text.find_first_of(".eE") == std::string_view::npos;
    field.kind = is_whole ? FieldKind::Integer : FieldKind::Decimal;
    field.number = value.get<double>();
  }
  return field;
}

/// The number of decimals with which the largest value shows about five digits; -1 if the values
/// are too far apart for one form.
int decimals_for(double smallest, double largest) {
  if (largest >= 1e7 || (smallest > 0 && smallest < 1e-3)) return -1;
  if (largest >= 1000) return 1;
  if (largest >= 100) return 2;
  return largest >= 10 ? 3 : 4;
}

std::string show_number(const FieldColumn& column, const Field& field) {
  if (column.percent) return fmt::format("{:.1f} %", field.number * 100);
  if (field.kind == FieldKind::Integer && column.decimals <= 0) return field.text;
  if (column.decimals < 0) return fmt::format("{:.4g}", field.number);
  return fmt::format("{:.{}f}", field.number, column.decimals);
}

}  // namespace

Fields read_fields(std::string_view object) {
  Fields fields;
  if (!object.starts_with('{') || !Json::accept(object)) return fields;
  std::unordered_map<std::string, std::size_t> places;
  Members members(object);
  while (const std::optional<Members::Member> member = members.next()) {
    Field field = field_of(member->key, member->value);
    // If a key occurs twice, the last value counts, in the place of the first.
    const auto [place, is_new] = places.try_emplace(field.key, fields.size());
    if (is_new) {
      fields.push_back(std::move(field));
    } else {
      fields[place->second] = std::move(field);
    }
  }
  return fields;
}

const Field* find_field(const Fields& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

std::string show_field(const FieldColumn& column, const Field* field) {
  if (field == nullptr || field->kind == FieldKind::Null) return "-";
  return field->is_number() ? show_number(column, *field) : field->text;
}

std::string rest_as_json(const Fields& fields, const std::vector<FieldColumn>& columns) {
  std::string rest;
  for (const Field& field : fields) {
    if (std::ranges::find(columns, field.key, &FieldColumn::key) != columns.end()) continue;
    const std::string value =
        field.kind == FieldKind::Text ? text::one_line_json(Json(field.text)) : field.text;
    rest += fmt::format("{}{}:{}", rest.empty() ? "{" : ",", text::one_line_json(Json(field.key)),
                        value);
  }
  return rest.empty() ? rest : rest + "}";
}

void FieldColumns::look_at(const Fields& fields) {
  for (const Field& field : fields) {
    if (field.kind == FieldKind::Nested) {
      const bool is_new = std::ranges::find(nested_, field.key) == nested_.end();
      if (is_new && nested_.size() < kKeysMax) nested_.push_back(field.key);
      continue;
    }
    auto seen = std::ranges::find(seen_, field.key, &Seen::key);
    if (seen == seen_.end()) {
      if (seen_.size() == kKeysMax) continue;
      seen = seen_.insert(seen_.end(), Seen{.key = field.key});
    }
    if (field.kind == FieldKind::Null) continue;
    seen->any = true;
    if (!field.is_number()) {
      seen->numbers_only = false;
      if (field.kind != FieldKind::Text) continue;
      constexpr int kTextColumnsMax = 20;
      if (seen->texts++ == 0) seen->first_text = cut(plain(field.text), kTextColumnsMax);
      continue;
    }
    seen->any_number = true;
    const double size = std::abs(field.number);
    if (size > 0) seen->smallest = seen->smallest > 0 ? std::min(seen->smallest, size) : size;
    seen->largest = std::max(seen->largest, size);
    seen->integers_only = seen->integers_only && field.kind == FieldKind::Integer;
    seen->within_one = seen->within_one && field.number >= 0 && field.number <= 1;
  }
}

FieldColumn FieldColumns::column_of(const Seen& seen) {
  const bool numeric = seen.numbers_only && seen.any;
  const bool percent = seen.any_number && seen.within_one && is_accuracy(seen.key);
  const int decimals = seen.integers_only ? 0 : decimals_for(seen.smallest, seen.largest);
  return {.key = seen.key, .numeric = numeric, .percent = percent, .decimals = decimals};
}

std::vector<std::string> FieldColumns::beyond(std::size_t at_most) const {
  const std::vector<FieldColumn> shown = first(at_most);
  std::vector<std::string> names;
  for (const Seen& seen : seen_) {
    if (std::ranges::find(shown, seen.key, &FieldColumn::key) == shown.end()) {
      names.push_back(seen.key);
    }
  }
  return names;
}

std::vector<FieldColumn> FieldColumns::first(std::size_t at_most) const {
  std::vector<FieldColumn> columns;
  columns.reserve(seen_.size());
  std::ranges::transform(seen_, std::back_inserter(columns), &FieldColumns::column_of);
  if (columns.size() <= at_most) return columns;
  std::vector<FieldColumn> chosen;
  for (const bool scores : {true, false}) {
    std::ranges::copy_if(columns, std::back_inserter(chosen), [scores](const FieldColumn& column) {
      return scores == (is_accuracy(column.key) || score_direction(column.key).has_value());
    });
  }
  chosen.resize(at_most);
  return chosen;
}

std::vector<TextField> FieldColumns::texts() const {
  constexpr std::size_t kNamedMax = 5;
  std::vector<TextField> texts;
  for (const Seen& seen : seen_) {
    const bool number_expected = seen.any_number || score_direction(seen.key).has_value();
    if (seen.texts == 0 || !number_expected || texts.size() == kNamedMax) continue;
    texts.push_back({.key = seen.key,
                     .text = fmt::format("{} is text in {}, such as '{}'", plain(seen.key),
                                         counted(seen.texts, "result"), seen.first_text)});
  }
  return texts;
}

std::string text_field_note(const TextField& field) {
  return field.text + ": only numbers count for averages and the best task";
}

std::string nested_text(const std::vector<std::string>& fields) {
  constexpr std::size_t kNamed = 5;
  if (fields.empty()) return {};
  return "lists and objects left out: " + short_list_text(fields, kNamed);
}

bool is_accuracy(std::string_view key) {
  std::size_t start = key.size();
  while (start > 0 && std::isalnum(static_cast<unsigned char>(key[start - 1])) != 0) --start;
  const std::string_view word = key.substr(start);
  return word == "acc" || word == "accuracy";
}

void BestSoFar::look_at(const std::string& id, const Fields& fields) {
  for (const Field& field : fields) {
    const std::optional<Better> better = score_direction(field.key);
    if (!better || !field.is_number()) continue;
    const auto known =
        std::ranges::find(candidates_, field.key, [](const Candidate& it) { return it.field.key; });
    if (known == candidates_.end()) {
      candidates_.push_back({.better = *better, .id = id, .field = field});
      continue;
    }
    const bool wins = *better == Better::More ? field.number > known->field.number
                                              : field.number < known->field.number;
    if (!wins) continue;
    known->id = id;
    known->field = field;
  }
}

std::vector<std::string> BestSoFar::rivals() const {
  for (const Better better : {Better::More, Better::Less}) {
    std::vector<std::string> keys;
    for (const Candidate& it : candidates_) {
      if (it.better == better) keys.push_back(it.field.key);
    }
    if (keys.size() > 1) return keys;
    if (!keys.empty()) return {};
  }
  return {};
}

std::optional<Best> BestSoFar::best(const std::vector<FieldColumn>& columns) const {
  for (const Better better : {Better::More, Better::Less}) {
    const auto of_kind = [better](const Candidate& it) { return it.better == better; };
    const auto count = std::ranges::count_if(candidates_, of_kind);
    if (count > 1) return std::nullopt;
    if (count == 0) continue;
    const auto& [direction, id, field] = *std::ranges::find_if(candidates_, of_kind);
    const auto column = std::ranges::find(columns, field.key, &FieldColumn::key);
    return Best{.id = id,
                .key = field.key,
                .value = field.number,
                .text = column == columns.end() ? field.text : show_field(*column, &field)};
  }
  return std::nullopt;
}

}  // namespace trainyard::report
