#include "wire/parallel_record.h"

#include <algorithm>
#include <array>
#include <expected>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "wire/field_reader.h"

namespace trainyard::wire {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::array<std::string_view, 4> kKinds{"barrier", "ready", "room", "event"};
constexpr std::int64_t kMsMax = std::int64_t{1'000} * 3'600 * 24 * 3'650;
constexpr std::int64_t kCountMax = std::int64_t{1} << 53;
constexpr std::size_t kRecordNameMax = 256;
constexpr std::int64_t kNodeMax = 65'535;

json of(const WorkerLife& it) {
  json life{{"number", it.number}, {"from_ms", it.from_ms}};
  if (it.came_ms) life["came_ms"] = *it.came_ms;
  if (it.to_ms) life["to_ms"] = *it.to_ms;
  if (!it.outcome.empty()) life["outcome"] = it.outcome;
  return life;
}

json of(const WorkerWait& it) {
  return {{"for", kKinds.at(std::to_underlying(it.kind))},
          {"name", it.name},
          {"whom", it.whom},
          {"from_ms", it.from_ms},
          {"to_ms", it.to_ms},
          {"waited_ms", it.waited_ms},
          {"count", it.count}};
}

json of(const WaitTotal& it) {
  return {{"for", kKinds.at(std::to_underlying(it.kind))},
          {"name", it.name},
          {"whom", it.whom},
          {"waited_ms", it.waited_ms},
          {"count", it.count}};
}

json of(const WorkerRecord& it);

template <class Value>
json all_of(const std::vector<Value>& values) {
  json list = json::array();
  for (const Value& each : values) list.push_back(of(each));
  return list;
}

json of(const WorkerRecord& it) {
  return {{"node", it.node},
          {"roles", it.roles},
          {"lives", all_of(it.lives)},
          {"lives_left_out", it.lives_left_out},
          {"waits", all_of(it.waits)},
          {"totals", all_of(it.totals)},
          {"waited_beside_ms", it.waited_beside_ms}};
}

/// The members of a list, where there is one.
template <class Read>
void each_of(FieldReader& from, const char* name, std::size_t max, Read read) {
  if (from.find(name) == nullptr) return;
  for (const json& one : from.needed_list(name, max)) read(one);
}

/// Each of a list of objects, as `read` reads it.
template <class Value>
std::vector<Value> objects_of(FieldReader& from, const char* name, std::size_t max,
                              Value (*read)(FieldReader&)) {
  std::vector<Value> values;
  each_of(from, name, max, [&](const json& one) {
    FieldReader inner = FieldReader::of(one);
    values.push_back(read(inner));
    from.fail_as(inner);
  });
  return values;
}

std::int64_t milliseconds(FieldReader& from, const char* name) {
  return from.number(name, kMsMax).value_or(0);
}

std::uint64_t count_in(FieldReader& from, const char* name) {
  return static_cast<std::uint64_t>(from.number(name, kCountMax).value_or(0));
}

WaitKind kind_in(FieldReader& from) {
  const std::string word = from.text("for", kRecordNameMax);
  const auto* const found = std::ranges::find(kKinds, word);
  if (found == kKinds.end()) {
    from.fail("for", "barrier, ready, room or event");
    return WaitKind::Event;
  }
  return static_cast<WaitKind>(found - kKinds.begin());
}

std::vector<int> whom_in(FieldReader& from) {
  std::vector<int> nodes;
  each_of(from, "whom", kRecordWhomMax, [&](const json& one) {
    if (!one.is_number_integer() || one < 0 || one > kNodeMax) {
      return from.fail("whom", "numbers of workers");
    }
    nodes.push_back(one.get<int>());
  });
  return nodes;
}

WorkerLife read_life(FieldReader& from) {
  WorkerLife read{.number = static_cast<std::uint32_t>(
                      from.number("number", std::numeric_limits<std::uint32_t>::max()).value_or(0)),
                  .from_ms = milliseconds(from, "from_ms"),
                  .came_ms = from.number("came_ms", kMsMax),
                  .to_ms = from.number("to_ms", kMsMax),
                  .outcome = from.text("outcome", kRecordNameMax)};
  if (read.to_ms.value_or(read.from_ms) < read.from_ms) from.fail("to_ms", "after 'from_ms'");
  return read;
}

WorkerWait read_wait(FieldReader& from) {
  WorkerWait read{.kind = kind_in(from),
                  .name = from.text("name", kRecordNameMax),
                  .whom = whom_in(from),
                  .from_ms = milliseconds(from, "from_ms"),
                  .to_ms = milliseconds(from, "to_ms"),
                  .waited_ms = milliseconds(from, "waited_ms"),
                  .count = count_in(from, "count")};
  if (read.to_ms < read.from_ms) from.fail("to_ms", "after 'from_ms'");
  return read;
}

WaitTotal read_total(FieldReader& from) {
  return {.kind = kind_in(from),
          .name = from.text("name", kRecordNameMax),
          .whom = whom_in(from),
          .waited_ms = milliseconds(from, "waited_ms"),
          .count = count_in(from, "count")};
}

WorkerRecord read_worker(FieldReader& from) {
  WorkerRecord read;
  read.node = static_cast<int>(from.number("node", kNodeMax).value_or(0));
  each_of(from, "roles", kRecordWhomMax, [&](const json& one) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kRecordNameMax) {
      return from.fail("roles", "short texts");
    }
    read.roles.push_back(one.get<std::string>());
  });
  read.lives = objects_of(from, "lives", kRecordLivesMax, &read_life);
  read.waits = objects_of(from, "waits", kRecordWaitsMax, &read_wait);
  read.totals = objects_of(from, "totals", kRecordTotalsMax, &read_total);
  read.lives_left_out = count_in(from, "lives_left_out");
  read.waited_beside_ms = milliseconds(from, "waited_beside_ms");
  return read;
}

}  // namespace

std::string_view to_text(WaitKind kind) { return kKinds.at(std::to_underlying(kind)); }

std::string to_text(const ParallelRecord& record) {
  return fields_text({{"format", kFormat},
                      {"span_ms", record.span_ms},
                      {"ended", record.ended},
                      {"workers", all_of(record.workers)}});
}

Result<ParallelRecord> read_parallel_record(std::string_view text) {
  if (text.size() > kRecordBytesMax) {
    return std::unexpected(Error{fmt::format("it is larger than {} MiB", kRecordBytesMax >> 20U)});
  }
  FieldReader from(text);
  ParallelRecord record;
  if (from.number("format", kFormat).value_or(0) != kFormat) from.fail("format", "1");
  record.span_ms = milliseconds(from, "span_ms");
  record.ended = from.flag("ended");
  record.workers = objects_of(from, "workers", kRecordWorkersMax, &read_worker);
  return std::move(from).give(std::move(record), "record");
}

}  // namespace trainyard::wire
