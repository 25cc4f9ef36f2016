#include "wire/rank.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/utf8.h"
#include "wire/field_reader.h"

namespace trainyard::wire {
namespace {

using nlohmann::json;

constexpr std::int64_t kNumberMax = 1'000'000'000;
constexpr std::size_t kDimensionsMax = 32;

/// Writes one object. JSON that is text already goes in as it is: it was written by one of us.
class ObjectWriter {
 public:
  void text(std::string_view name, std::string_view value) { raw(name, fields_text(json(value))); }
  void number(std::string_view name, std::int64_t value) { raw(name, std::to_string(value)); }
  void flag(std::string_view name, bool value) {
    if (value) raw(name, "true");
  }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) raw(name, fields_text(json(values)));
  }
  /// Left out when it is empty.
  void optional_text(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void optional_raw(std::string_view name, std::string_view value) {
    if (!value.empty()) raw(name, value);
  }
  void raw(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}\"{}\":{}", text_.empty() ? "{" : ",", name, value);
  }
  std::string take() && { return text_.empty() ? "{}" : std::move(text_) + "}"; }

 private:
  std::string text_;
};

void write(ObjectWriter& to, const Payload& payload) {
  to.optional_raw("headers", payload.headers);
  to.optional_raw("cookies", payload.cookies);
  to.optional_raw("values", payload.values);
  if (payload.buffers.empty()) return;
  json buffers = json::array();
  for (const NamedBuffer& each : payload.buffers) {
    buffers.push_back({{"name", each.name}, {"dtype", each.dtype}, {"shape", each.shape}});
    if (each.shared) buffers.back()["shared"] = true;
  }
  to.raw("buffers", fields_text(buffers));
}

// --- reading ---

/// As JSON again; empty: it is not there, or an object without members.
std::string object_of(FieldReader& from, const char* name) {
  const json* const member = from.find(name);
  if (member == nullptr || (member->is_object() && member->empty())) return {};
  if (!member->is_object()) return from.fail(name, "an object"), std::string();
  return fields_text(*member);
}

std::string list_of(FieldReader& from, const char* name) {
  const json* const member = from.find(name);
  if (member == nullptr) return "[]";
  if (!member->is_array()) return from.fail(name, "a list"), std::string();
  return fields_text(*member);
}

std::string anything_of(const FieldReader& from, const char* name) {
  const json* const member = from.find(name);
  return member == nullptr ? std::string() : fields_text(*member);
}

std::optional<int> small_number(FieldReader& from, const char* name) {
  return from.number(name, kNumberMax).transform([](std::int64_t it) {
    return static_cast<int>(it);
  });
}

std::optional<NamedBuffer> buffer_of(const json& from) {
  if (!from.is_object()) return std::nullopt;
  const auto name = from.find("name");
  const auto dtype = from.find("dtype");
  const auto shape = from.find("shape");
  if (name == from.end() || !name->is_string() || dtype == from.end() || !dtype->is_string() ||
      shape == from.end() || !shape->is_array() || shape->size() > kDimensionsMax) {
    return std::nullopt;
  }
  NamedBuffer read{.name = name->get<std::string>(), .dtype = dtype->get<std::string>()};
  for (const json& size : *shape) {
    if (!size.is_number_integer() || size < 0 ||
        (size.is_number_unsigned() &&
         size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))) {
      return std::nullopt;
    }
    read.shape.push_back(size.get<std::int64_t>());
  }
  const auto shared = from.find("shared");
  read.shared = shared != from.end() && shared->is_boolean() && shared->get<bool>();
  return read;
}

std::vector<NamedBuffer> buffers_of(FieldReader& from) {
  const json* const member = from.find("buffers");
  std::vector<NamedBuffer> read;
  if (member == nullptr) return read;
  if (!member->is_array()) return from.fail("buffers", "a list"), read;
  for (const json& each : *member) {
    auto buffer = buffer_of(each);
    if (!buffer) return from.fail("buffers", "a list of {name, dtype, shape}"), read;
    read.push_back(*std::move(buffer));
  }
  return read;
}

Payload payload_of(FieldReader& from) {
  return {.headers = object_of(from, "headers"),
          .cookies = object_of(from, "cookies"),
          .values = object_of(from, "values"),
          .buffers = buffers_of(from)};
}

std::string fields_of(const InitialiseRequest& request) {
  ObjectWriter to;
  to.text("do", "initialise");
  to.raw("components", request.components);
  to.text("executor", request.executor);
  to.number("rank", request.rank);
  to.number("ranks", request.ranks);
  to.flag("buffers", request.buffers_wanted);
  to.number("event_ms", request.event_ms);
  to.optional_raw("context", request.context);
  return std::move(to).take();
}

std::string fields_of(const ExecuteRequest& request) {
  ObjectWriter to;
  to.text("do", "execute");
  to.text("task", request.task);
  write(to, request.payload);
  to.optional_raw("context", request.context);
  return std::move(to).take();
}

std::string fields_of(const CloseRequest&) { return R"({"do":"close"})"; }

std::string fields_of(const EventWord& event) {
  ObjectWriter to;
  to.text("say", "event");
  to.text("name", event.name);
  to.optional_raw("data", event.data);
  to.optional_raw("context", event.context);
  if (event.depth > 0) to.number("depth", event.depth);
  if (event.from_rank) to.number("from_rank", *event.from_rank);
  to.flag("to_group", event.to_group);
  return std::move(to).take();
}

std::string fields_of(const EventDone& done) {
  ObjectWriter to;
  to.text("say", "event-done");
  to.texts("errors", done.errors);
  to.optional_raw("context", done.context);
  return std::move(to).take();
}

std::string fields_of(const StopWord& stop) {
  ObjectWriter to;
  to.text("say", "stop");
  to.text("reason", utf8_prefix(stop.reason, kMessageBytesMax));
  return std::move(to).take();
}

}  // namespace

std::string to_fields(const RankRequest& request) {
  return match(request, [](const auto& it) { return fields_of(it); });
}

std::string to_fields(const RankReply& reply) {
  ObjectWriter to;
  to.text("code", reply.outcome.code);
  to.optional_text("message", utf8_prefix(reply.outcome.message, kMessageBytesMax));
  to.optional_text("traceback", last_of(reply.outcome.traceback, kTracebackBytesMax));
  to.texts("listens", reply.listens);
  write(to, reply.payload);
  to.optional_raw("context", reply.context);
  return std::move(to).take();
}

std::string to_fields(const RankWord& word) {
  return match(word, [](const auto& it) { return fields_of(it); });
}

bool hears(const std::vector<std::string>& listens, std::string_view event) {
  return std::ranges::any_of(
      listens, [event](const std::string& each) { return each == "*" || each == event; });
}

Result<RankRequest> read_rank_request(std::string_view fields) {
  FieldReader from(fields);
  const std::string what = from.needed_text("do");
  RankRequest request = CloseRequest{};
  if (what == "initialise") {
    request = InitialiseRequest{
        .components = list_of(from, "components"),
        .executor = from.needed_text("executor"),
        .rank = small_number(from, "rank").value_or(0),
        .ranks = small_number(from, "ranks").value_or(1),
        .buffers_wanted = from.flag("buffers"),
        .event_ms = small_number(from, "event_ms").value_or(InitialiseRequest().event_ms),
        .context = object_of(from, "context")};
  } else if (what == "execute") {
    request = ExecuteRequest{.task = from.needed_text("task"),
                             .payload = payload_of(from),
                             .context = object_of(from, "context")};
  } else if (what != "close") {
    from.fail_unknown("do", "initialise, execute or close", what);
  }
  return std::move(from).give(std::move(request), "request");
}

Result<RankReply> read_rank_reply(std::string_view fields) {
  FieldReader from(fields);
  RankReply reply{.outcome = {.code = from.needed_text("code"),
                              .message = from.text("message"),
                              .traceback = from.text("traceback")},
                  .listens = from.texts("listens"),
                  .payload = payload_of(from),
                  .context = object_of(from, "context")};
  return std::move(from).give(std::move(reply), "reply");
}

Result<RankWord> read_rank_word(std::string_view fields) {
  FieldReader from(fields);
  const std::string what = from.needed_text("say");
  RankWord word = StopWord{};
  if (what == "event") {
    word = EventWord{.name = from.needed_text("name"),
                     .data = anything_of(from, "data"),
                     .context = object_of(from, "context"),
                     .depth = small_number(from, "depth").value_or(0),
                     .from_rank = small_number(from, "from_rank"),
                     .to_group = from.flag("to_group")};
  } else if (what == "event-done") {
    word = EventDone{.errors = from.texts("errors"), .context = object_of(from, "context")};
  } else if (what == "stop") {
    word = StopWord{.reason = from.text("reason")};
  } else {
    from.fail_unknown("say", "event, event-done or stop", what);
  }
  return std::move(from).give(std::move(word), "word");
}

}  // namespace trainyard::wire
