#include "wire/task.h"

#include <array>
#include <cstdint>
#include <expected>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/utf8.h"
#include "wire/field_reader.h"

namespace trainyard::wire {
namespace {

constexpr std::size_t kCommandBytesMax = 1'000;
constexpr std::size_t kCapsBytesMax = 100;

struct Word {
  model::Said said;
  std::string_view text;
};
constexpr std::array<Word, 6> kSaidWords{
    {{.said = model::Said::Loading, .text = "loading"},
     {.said = model::Said::Loaded, .text = "loaded"},
     {.said = model::Said::Training, .text = "training"},
     {.said = model::Said::Trained, .text = "trained"},
     {.said = model::Said::OutOfMemory, .text = "out-of-memory"},
     {.said = model::Said::Failed, .text = "failed"}}};

/// A member that may be missing. Of what is no text nothing is kept.
std::string text_or_nothing(const nlohmann::json& fields, const char* name) {
  const auto member = fields.find(name);
  return member != fields.end() && member->is_string() ? member->get<std::string>() : std::string();
}

/// A member that is a small object; of anything else nothing is kept.
std::string values_or_nothing(const nlohmann::json& fields) {
  const auto member = fields.find("values");
  if (member == fields.end() || !member->is_object()) return {};
  std::string text = fields_text(*member);
  return text.size() <= kValuesBytesMax ? text : std::string();
}

StageWord word_of(const nlohmann::json& fields) {
  const auto say = fields.find("say");
  if (say == fields.end() || !say->is_string()) {
    return {.said = model::Said::Nonsense, .message = "'say' must be text"};
  }
  const auto said = say->get<std::string>();
  for (const Word& word : kSaidWords) {
    if (word.text != said) continue;
    return {
        .said = word.said,
        .message = std::string(utf8_prefix(text_or_nothing(fields, "message"), kMessageBytesMax)),
        .traceback = last_of(text_or_nothing(fields, "traceback"), kTracebackBytesMax),
        .capped_by = std::string(utf8_prefix(text_or_nothing(fields, "caps"), kCapsBytesMax))};
  }
  return {.said = model::Said::Nonsense,
          .message = fmt::format("it said '{}', which nobody understands",
                                 utf8_prefix(said, kShownBytesMax))};
}

Progress progress_of(const nlohmann::json& fields) {
  Progress progress{.values = values_or_nothing(fields)};
  const auto fraction = fields.find("fraction");
  if (fraction == fields.end() || !fraction->is_number()) return progress;
  const auto value = fraction->get<double>();
  if (value >= 0 && value <= 1) progress.fraction = value;
  return progress;
}

/// A message without a command is one with an empty command: its handler knows what to make of it.
Message message_of(const nlohmann::json& fields) {
  const auto data = fields.find("data");
  return {.command = std::string(utf8_prefix(text_or_nothing(fields, "command"), kCommandBytesMax)),
          .data = data == fields.end() ? "null" : fields_text(*data)};
}

/// As JSON again: what was read was written by fields_text.
nlohmann::json values_of(const std::string& values) {
  return nlohmann::json::parse(values, nullptr, /*allow_exceptions=*/false);
}

std::string task_fields(const StageWord& word) {
  nlohmann::json fields{{"say", "nonsense"}};
  for (const Word& known : kSaidWords) {
    if (known.said == word.said) fields["say"] = known.text;
  }
  if (!word.message.empty()) fields["message"] = utf8_prefix(word.message, kMessageBytesMax);
  if (!word.traceback.empty()) fields["traceback"] = last_of(word.traceback, kTracebackBytesMax);
  if (!word.capped_by.empty()) fields["caps"] = utf8_prefix(word.capped_by, kCapsBytesMax);
  return fields_text(fields);
}

std::string task_fields(const Progress& progress) {
  nlohmann::json fields{{"say", "progress"}};
  if (progress.fraction) fields["fraction"] = *progress.fraction;
  if (!progress.values.empty()) fields["values"] = values_of(progress.values);
  return fields_text(fields);
}

std::string task_fields(const Message& message) {
  return fields_text(
      {{"say", "message"}, {"command", message.command}, {"data", values_of(message.data)}});
}

}  // namespace

std::string values_together(std::string_view earlier, const std::string& later) {
  if (later.empty()) return std::string(earlier);
  auto values = parse_fields(earlier.empty() ? "{}" : earlier);
  const auto over = parse_fields(later);
  if (!values || !over) return later;
  values->update(*over);
  std::string text = fields_text(*values);
  return text.size() <= kValuesBytesMax ? text : later;
}

std::string to_fields(const TaskReport& report) {
  return match(report, [](const auto& it) { return task_fields(it); });
}

std::string to_fields(const TaskOrder& order) {
  return match(order, [](const TrainOrder& it) {
    nlohmann::json fields{{"do", "train"}, {"device", it.device}};
    if (it.gpu_memory_max > Bytes{}) fields["gpu_memory_max"] = it.gpu_memory_max.count;
    if (it.again) fields["again"] = true;
    return fields_text(fields);
  });
}

Result<TaskReport> read_report(std::string_view fields) {
  const auto parsed = parse_fields(fields);
  if (!parsed) return std::unexpected(Error(parsed.error()).in("report"));
  const std::string say = text_or_nothing(*parsed, "say");
  if (say == "progress") return progress_of(*parsed);
  if (say == "message") return message_of(*parsed);
  return word_of(*parsed);
}

Result<TaskOrder> read_order(std::string_view fields) {
  FieldReader from(fields);
  const std::string what = from.needed_text("do");
  if (what != "train") from.fail_unknown("do", "train", what);
  TrainOrder order{.device = from.needed_text("device")};
  const nlohmann::json* const most = from.find("gpu_memory_max");
  if (most != nullptr && most->is_number_integer()) {
    order.gpu_memory_max = Bytes{std::max<std::int64_t>(0, most->get<std::int64_t>())};
  }
  const nlohmann::json* const again = from.find("again");
  order.again = again != nullptr && again->is_boolean() && again->get<bool>();
  return std::move(from).give(TaskOrder(std::move(order)), "order");
}

}  // namespace trainyard::wire
