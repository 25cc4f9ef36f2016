#include "wire/rank.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/result.h"
#include "base/utf8.h"
#include "wire/fields.h"

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

// --- reading: the first fault is kept, what is read after it means nothing ---

class ObjectReader {
 public:
  explicit ObjectReader(std::string_view text) {
    auto parsed = parse_fields(text);
    if (parsed) {
      fields_ = std::move(*parsed);
    } else {
      error_ = std::move(parsed.error());
    }
  }

  std::string text(const char* name) {
    const json* const member = find(name);
    if (member == nullptr) return {};
    if (!member->is_string()) return fail(name, "text"), std::string();
    return member->get<std::string>();
  }
  /// A member that must be there.
  std::string needed_text(const char* name) {
    if (!error_ && !fields_.contains(name)) error_ = Error{fmt::format("'{}' is missing", name)};
    return text(name);
  }
  std::optional<int> number(const char* name) {
    const json* const member = find(name);
    if (member == nullptr) return std::nullopt;
    if (!member->is_number_integer() || *member < 0 || *member > kNumberMax) {
      return fail(name, "a whole number"), std::nullopt;
    }
    return member->get<int>();
  }
  bool flag(const char* name, bool otherwise = false) {
    const json* const member = find(name);
    if (member == nullptr) return otherwise;
    if (!member->is_boolean()) return fail(name, "true or false"), otherwise;
    return member->get<bool>();
  }
  /// As JSON again.
  std::string object(const char* name) {
    const json* const member = find(name);
    if (member == nullptr || (member->is_object() && member->empty())) return {};
    if (!member->is_object()) return fail(name, "an object"), std::string();
    return fields_text(*member);
  }
  std::string list(const char* name) {
    const json* const member = find(name);
    if (member == nullptr) return "[]";
    if (!member->is_array()) return fail(name, "a list"), std::string();
    return fields_text(*member);
  }
  std::string anything(const char* name) {
    const json* const member = find(name);
    return member == nullptr || member->is_null() ? std::string() : fields_text(*member);
  }
  std::vector<std::string> texts(const char* name) {
    const json* const member = find(name);
    std::vector<std::string> read;
    if (member == nullptr) return read;
    if (!member->is_array()) return fail(name, "a list"), read;
    for (const json& each : *member) {
      if (!each.is_string()) return fail(name, "a list of texts"), read;
      read.push_back(each.get<std::string>());
    }
    return read;
  }
  std::vector<NamedBuffer> buffers() {
    const json* const member = find("buffers");
    std::vector<NamedBuffer> read;
    if (member == nullptr) return read;
    if (!member->is_array()) return fail("buffers", "a list"), read;
    for (const json& each : *member) {
      auto buffer = buffer_of(each);
      if (!buffer) return fail("buffers", "a list of {name, dtype, shape}"), read;
      read.push_back(*std::move(buffer));
    }
    return read;
  }
  void fail(const char* name, std::string_view what) {
    if (!error_) error_ = Error{fmt::format("'{}' must be {}", name, what)};
  }

  /// What was read, unless something was wrong.
  template <class Value>
  Result<Value> give(Value value, const char* what) && {
    if (error_) return std::unexpected(std::move(*error_).in(what));
    return value;
  }

 private:
  const json* find(const char* name) const {
    if (error_) return nullptr;
    const auto member = fields_.find(name);
    return member == fields_.end() ? nullptr : &*member;
  }

  static std::optional<NamedBuffer> buffer_of(const json& from) {
    if (!from.is_object()) return std::nullopt;
    const auto name = from.find("name");
    const auto dtype = from.find("dtype");
    const auto shape = from.find("shape");
    if (name == from.end() || !name->is_string() || dtype == from.end() || !dtype->is_string() ||
        shape == from.end() || !shape->is_array() || shape->size() > kDimensionsMax) {
      return std::nullopt;
    }
    NamedBuffer read{
        .name = name->get<std::string>(), .dtype = dtype->get<std::string>(), .shape = {}};
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

  json fields_;
  std::optional<Error> error_;
};

Payload payload_of(ObjectReader& from) {
  return {.headers = from.object("headers"),
          .cookies = from.object("cookies"),
          .values = from.object("values"),
          .buffers = from.buffers()};
}

std::string fields_of(const InitialiseRequest& request) {
  ObjectWriter to;
  to.text("do", "initialise");
  to.raw("components", request.components);
  to.text("executor", request.executor);
  to.number("rank", request.rank);
  to.number("ranks", request.ranks);
  to.flag("result", request.result_wanted);
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
  ObjectReader from(fields);
  const std::string what = from.needed_text("do");
  RankRequest request = CloseRequest{};
  if (what == "initialise") {
    request = InitialiseRequest{
        .components = from.list("components"),
        .executor = from.needed_text("executor"),
        .rank = from.number("rank").value_or(0),
        .ranks = from.number("ranks").value_or(1),
        .result_wanted = from.flag("result"),
        .event_ms = from.number("event_ms").value_or(InitialiseRequest().event_ms),
        .context = from.object("context")};
  } else if (what == "execute") {
    request = ExecuteRequest{.task = from.needed_text("task"),
                             .payload = payload_of(from),
                             .context = from.object("context")};
  } else if (what != "close") {
    from.fail("do", fmt::format("initialise, execute or close, not '{}'",
                                utf8_prefix(what, kShownBytesMax)));
  }
  return std::move(from).give(std::move(request), "request");
}

Result<RankReply> read_rank_reply(std::string_view fields) {
  ObjectReader from(fields);
  RankReply reply{.outcome = {.code = from.needed_text("code"),
                              .message = from.text("message"),
                              .traceback = from.text("traceback")},
                  .listens = from.texts("listens"),
                  .payload = payload_of(from),
                  .context = from.object("context")};
  return std::move(from).give(std::move(reply), "reply");
}

Result<RankWord> read_rank_word(std::string_view fields) {
  ObjectReader from(fields);
  const std::string what = from.needed_text("say");
  RankWord word = StopWord{};
  if (what == "event") {
    word = EventWord{.name = from.needed_text("name"),
                     .data = from.anything("data"),
                     .context = from.object("context"),
                     .depth = from.number("depth").value_or(0),
                     .from_rank = from.number("from_rank"),
                     .to_group = from.flag("to_group")};
  } else if (what == "event-done") {
    word = EventDone{.errors = from.texts("errors"), .context = from.object("context")};
  } else if (what == "stop") {
    word = StopWord{.reason = from.text("reason")};
  } else {
    from.fail("say", fmt::format("event, event-done or stop, not '{}'",
                                 utf8_prefix(what, kShownBytesMax)));
  }
  return std::move(from).give(std::move(word), "word");
}

}  // namespace trainyard::wire
