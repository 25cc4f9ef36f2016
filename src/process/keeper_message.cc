#include "process/keeper_message.h"

#include <algorithm>
#include <cstring>
#include <expected>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "model/event.h"
#include "model/resources.h"
#include "process/end_reader.h"
#include "wire/model_fields.h"

namespace trainyard::process {
namespace {

enum class Kind : std::uint8_t {
  Start = 1,
  Signal = 2,
  Started = 3,
  Ended = 4,
  Note = 5,
  Pulse = 6,
  RankFailed = 7,
  Remove = 8,
  Farewell = 9,
  Notes = 10,
  Written = 11,
  Lease = 12
};
enum class EndKind : std::uint8_t { Exited = 1, Killed = 2, NotStarted = 3, Vanished = 4 };
using Length = std::uint32_t;

/// Writes one message; its length is filled in when it is complete.
class Writer {
 public:
  Writer(std::string& bytes, Kind kind, model::AttemptKey key)
      : bytes_(bytes), start_(bytes.size()) {
    number(Length{0});
    number(static_cast<std::uint8_t>(kind));
    number(key.task.value);
    number(key.attempt);
  }

  template <class Number>
    requires std::is_arithmetic_v<Number>
  void number(Number value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  void text(std::string_view value) {
    number(static_cast<Length>(value.size()));
    bytes_.append(value);
  }
  template <class Number>
  void numbers(const std::vector<Number>& values) {
    number(static_cast<Length>(values.size()));
    for (const Number value : values) number(value);
  }
  /// A rank, or none.
  void rank(std::optional<int> value) { number(std::int32_t{value.value_or(-1)}); }
  void finish() {
    const auto length = static_cast<Length>(bytes_.size() - start_ - sizeof(Length));
    std::memcpy(bytes_.data() + start_, &length, sizeof(length));
  }

 private:
  std::string& bytes_;
  std::size_t start_;
};

/// Reads the fields of one body. After a field that is not there all others are empty, and the
/// whole is bad.
class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {}

  template <class Number>
    requires std::is_arithmetic_v<Number>
  Number number() {
    Number value{};
    const std::string_view bytes = take(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  std::string text() {
    const auto length = number<Length>();
    return std::string(take(length));
  }
  template <class Number>
  std::vector<Number> numbers() {
    std::vector<Number> values;
    for (auto count = number<Length>(); count > 0 && !bad_; --count) {
      values.push_back(number<Number>());
    }
    return values;
  }
  std::optional<int> rank() {
    const auto value = number<std::int32_t>();
    if (value < -1) refuse();
    return value < 0 ? std::nullopt : std::optional<int>(value);
  }
  model::AttemptKey key() {
    const auto task = number<std::uint32_t>();
    return {.task = {task}, .attempt = number<std::uint32_t>()};
  }
  void refuse() { bad_ = true; }
  [[nodiscard]] bool is_bad() const { return bad_; }
  /// True if the fields made up the whole body.
  [[nodiscard]] bool well() const { return !bad_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t length) {
    if (bad_ || length > rest_.size()) {
      bad_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view rest_;
  bool bad_ = false;
};

/// True for the members of a launch that only the yard reads. They may be long.
bool is_of_yard(std::string_view member) {
  return member == "cannot_start" || member == "capped_by" || member == "needed_directories";
}

/// Writes a launch, or a part of it, by the lists of its members.
template <class Value>
void write_member(Writer& writer, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    writer.number(static_cast<std::uint8_t>(value));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    writer.number(value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    writer.text(value);
  } else if constexpr (wire::NumberOfItsOwn<Value>) {
    write_member(writer, wire::only_member(value));
  } else if constexpr (wire::kIsA<Value, std::vector>) {
    writer.number(static_cast<Length>(value.size()));
    for (const auto& element : value) write_member(writer, element);
  } else if constexpr (wire::kIsA<Value, std::optional>) {
    write_member(writer, value.has_value());
    if (value) write_member(writer, *value);
  } else {
    const auto write = [&](const auto& field) {
      if (!is_of_yard(field.name)) write_member(writer, value.*(field.member));
    };
    std::apply([&](const auto&... fields) { (write(fields), ...); }, wire::fields_of<Value>());
  }
}

/// Reads what write_member() has written.
template <class Value>
void read_member(Reader& reader, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    value = reader.number<std::uint8_t>() != 0;
  } else if constexpr (std::is_arithmetic_v<Value>) {
    value = reader.number<Value>();
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = reader.text();
  } else if constexpr (wire::NumberOfItsOwn<Value>) {
    read_member(reader, wire::only_member(value));
  } else if constexpr (wire::kIsA<Value, std::vector>) {
    // Not reserved: the count may be a lie, each element costs its sender at least its length.
    for (auto count = reader.number<Length>(); count > 0 && !reader.is_bad(); --count) {
      read_member(reader, value.emplace_back());
    }
  } else if constexpr (wire::kIsA<Value, std::optional>) {
    if (reader.number<std::uint8_t>() != 0) read_member(reader, value.emplace());
  } else {
    const auto read = [&](const auto& field) {
      if (!is_of_yard(field.name)) read_member(reader, value.*(field.member));
    };
    std::apply([&](const auto&... fields) { (read(fields), ...); }, wire::fields_of<Value>());
  }
}

model::Launch read_launch(Reader& reader) {
  model::Launch launch;
  read_member(reader, launch);
  if (launch.own_ranks) {
    // A path for each rank but the first, which prints where the launch says.
    const auto ranks = static_cast<std::size_t>(std::max(launch.ranks, 0));
    if (launch.own_ranks->log_paths.size() + 1 != ranks || launch.own_ranks->gpus < 0) {
      reader.refuse();
    }
  }
  if (launch.preload.interpreter > launch.arguments.size()) reader.refuse();
  return launch;
}

model::End read_end(Reader& reader) {
  // NOLINTNEXTLINE(*EnumCastOutOfRange): what is out of range is refused below.
  switch (static_cast<EndKind>(reader.number<std::uint8_t>())) {
    case EndKind::Exited:
      return model::ExitedWith{reader.number<std::int32_t>()};
    case EndKind::Killed: {
      const auto signal = reader.number<std::int32_t>();
      const bool out_of_memory = reader.number<std::uint8_t>() != 0;
      return model::KilledBy{.signal = signal,
                             .out_of_memory = out_of_memory,
                             .over_limit = reader.number<std::uint8_t>() != 0};
    }
    case EndKind::NotStarted: {
      std::string why = reader.text();
      return model::NotStarted{.why = std::move(why),
                               .of_machine = reader.number<std::uint8_t>() != 0};
    }
    case EndKind::Vanished:
      return model::Vanished{reader.text()};
  }
  reader.refuse();
  return model::ExitedWith{};
}

model::RanksAtEnd read_ranks(Reader& reader) {
  model::RanksAtEnd ranks;
  ranks.failed = reader.rank();
  ranks.finished = reader.numbers<int>();
  ranks.largest = reader.rank();
  ranks.largest_memory = Bytes{reader.number<std::int64_t>()};
  return ranks;
}

std::optional<Duration> read_moment(Reader& reader) {
  if (reader.number<std::uint8_t>() == 0) return std::nullopt;
  return Duration(reader.number<std::int64_t>());
}

KeeperMessage read_message(Reader& reader) {
  // NOLINTNEXTLINE(*EnumCastOutOfRange): what is out of range is refused below.
  const auto kind = static_cast<Kind>(reader.number<std::uint8_t>());
  const model::AttemptKey key = reader.key();
  switch (kind) {
    case Kind::Start:
      return StartMessage{.key = key, .launch = read_launch(reader)};
    case Kind::Signal:
      return SignalMessage{.key = key,
                           .signal = reader.number<std::uint8_t>(),
                           .grace = Duration(reader.number<std::int64_t>())};
    case Kind::Started:
      return ProcessStarted{.key = key,
                            .pid = reader.number<std::int64_t>(),
                            .others = reader.numbers<std::int64_t>(),
                            .at = Duration(reader.number<std::int64_t>())};
    case Kind::Ended: {
      model::End end = read_end(reader);
      const auto memory = reader.number<std::int64_t>();
      const auto cpu = reader.number<std::int64_t>();
      const auto mark = reader.number<std::int64_t>();
      const auto group_peak = reader.number<std::int64_t>();
      LeftBehind left;
      const bool has_result = reader.number<std::uint8_t>() != 0;
      if (has_result) left.result = reader.text();
      left.trouble = reader.text();
      left.errors = reader.text();
      left.errors_are_output = reader.number<std::uint8_t>() != 0;
      left.has_checkpoint = reader.number<std::uint8_t>() != 0;
      return ProcessEnded{.key = key,
                          .end = std::move(end),
                          .usage = {.memory_peak = {memory}, .cpu_time = Duration(cpu)},
                          .mark = {mark},
                          .group_peak = {group_peak},
                          .left = std::move(left),
                          .ranks = read_ranks(reader),
                          .at = read_moment(reader),
                          .told_to_end = reader.number<std::uint8_t>() != 0};
    }
    case Kind::RankFailed:
      return RankFailed{.key = key, .rank = reader.rank().value_or(0), .end = read_end(reader)};
    case Kind::Note:
      return KeeperNote{.text = reader.text()};
    case Kind::Pulse:
      return Pulse{};
    case Kind::Farewell:
      return Farewell{};
    case Kind::Notes: {
      EndNotes notes{.path = reader.text()};
      notes.execution = reader.number<std::int64_t>();
      notes.started_unix_ms = reader.number<std::int64_t>();
      notes.clock_offset = Duration(reader.number<std::int64_t>());
      return notes;
    }
    case Kind::Written:
      return WrittenMessage{.key = key};
    case Kind::Lease:
      return LeaseMessage{.until = Duration(reader.number<std::int64_t>())};
    case Kind::Remove:
      return RemoveMessage{.yard = reader.number<std::int64_t>(), .directory = reader.text()};
  }
  reader.refuse();
  return SignalMessage{};
}

void write_end(Writer& writer, const model::End& end) {
  const auto kind = [&](EndKind it) { writer.number(static_cast<std::uint8_t>(it)); };
  match(
      end,
      [&](const model::ExitedWith& it) {
        kind(EndKind::Exited);
        writer.number(std::int32_t{it.code});
      },
      [&](const model::KilledBy& it) {
        kind(EndKind::Killed);
        writer.number(std::int32_t{it.signal});
        writer.number(static_cast<std::uint8_t>(it.out_of_memory));
        writer.number(static_cast<std::uint8_t>(it.over_limit));
      },
      [&](const model::NotStarted& it) {
        kind(EndKind::NotStarted);
        writer.text(it.why);
        writer.number(static_cast<std::uint8_t>(it.of_machine));
      },
      [&](const model::Vanished& it) {
        kind(EndKind::Vanished);
        writer.text(it.why);
      });
}

}  // namespace

Result<void> append_start(std::string& bytes, model::AttemptKey key, const model::Launch& launch) {
  const std::size_t start = bytes.size();
  Writer writer(bytes, Kind::Start, key);
  write_member(writer, launch);
  writer.finish();
  const std::size_t size = bytes.size() - start - sizeof(Length);
  if (size <= kKeeperMessageMax) return {};
  bytes.resize(start);
  return std::unexpected(Error{fmt::format("the command and its environment have {}, at most {}",
                                           to_text(Bytes{static_cast<std::int64_t>(size)}),
                                           to_text(Bytes{kKeeperMessageMax}))});
}

void append_signal(std::string& bytes, const SignalMessage& message) {
  Writer writer(bytes, Kind::Signal, message.key);
  writer.number(static_cast<std::uint8_t>(message.signal));
  writer.number(std::int64_t{message.grace.count()});
  writer.finish();
}

void append_started(std::string& bytes, const ProcessStarted& message) {
  Writer writer(bytes, Kind::Started, message.key);
  writer.number(message.pid);
  writer.numbers(message.others);
  writer.number(std::int64_t{message.at.count()});
  writer.finish();
}

void append_ended(std::string& bytes, const ProcessEnded& message) {
  Writer writer(bytes, Kind::Ended, message.key);
  write_end(writer, message.end);
  writer.number(message.usage.memory_peak.count);
  writer.number(std::int64_t{message.usage.cpu_time.count()});
  writer.number(message.mark.count);
  writer.number(message.group_peak.count);
  writer.number(static_cast<std::uint8_t>(message.left.result.has_value()));
  if (message.left.result) writer.text(*message.left.result);
  writer.text(message.left.trouble);
  writer.text(message.left.errors);
  writer.number(static_cast<std::uint8_t>(message.left.errors_are_output));
  writer.number(static_cast<std::uint8_t>(message.left.has_checkpoint));
  writer.rank(message.ranks.failed);
  writer.numbers(message.ranks.finished);
  writer.rank(message.ranks.largest);
  writer.number(message.ranks.largest_memory.count);
  writer.number(static_cast<std::uint8_t>(message.at.has_value()));
  if (message.at) writer.number(std::int64_t{message.at->count()});
  writer.number(static_cast<std::uint8_t>(message.told_to_end));
  writer.finish();
}

void append_note(std::string& bytes, const KeeperNote& message) {
  Writer writer(bytes, Kind::Note, {});
  writer.text(message.text);
  writer.finish();
}

void append_rank_failed(std::string& bytes, const RankFailed& message) {
  Writer writer(bytes, Kind::RankFailed, message.key);
  writer.rank(message.rank);
  write_end(writer, message.end);
  writer.finish();
}

void append_lease(std::string& bytes, const LeaseMessage& message) {
  Writer writer(bytes, Kind::Lease, {});
  writer.number(message.until.count());
  writer.finish();
}

void append_remove(std::string& bytes, const RemoveMessage& message) {
  Writer writer(bytes, Kind::Remove, {});
  writer.number(message.yard);
  writer.text(message.directory);
  writer.finish();
}

void append_pulse(std::string& bytes) { Writer(bytes, Kind::Pulse, {}).finish(); }

void append_notes(std::string& bytes, const EndNotes& message) {
  Writer writer(bytes, Kind::Notes, {});
  writer.text(message.path);
  writer.number(message.execution);
  writer.number(message.started_unix_ms);
  writer.number(std::int64_t{message.clock_offset.count()});
  writer.finish();
}

void append_written(std::string& bytes, const WrittenMessage& message) {
  Writer(bytes, Kind::Written, message.key).finish();
}

void append_farewell(std::string& bytes) { Writer(bytes, Kind::Farewell, {}).finish(); }

void KeeperMessageReader::add(std::string_view bytes) {
  if (at_ > 0) bytes_.erase(0, std::exchange(at_, 0));
  bytes_.append(bytes);
}

Result<std::optional<KeeperMessage>> KeeperMessageReader::next() {
  const std::string_view left = std::string_view(bytes_).substr(at_);
  Length length = 0;
  if (left.size() < sizeof(length)) return std::nullopt;
  std::memcpy(&length, left.data(), sizeof(length));
  if (length > kKeeperMessageMax) {
    return std::unexpected(Error{fmt::format("a message of {} bytes, more than any has", length)});
  }
  if (left.size() < sizeof(length) + length) return std::nullopt;
  Reader reader(left.substr(sizeof(length), length));
  KeeperMessage message = read_message(reader);
  if (!reader.well()) return std::unexpected(Error{"a message that makes no sense"});
  at_ += sizeof(length) + length;
  return message;
}

}  // namespace trainyard::process
