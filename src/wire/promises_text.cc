#include "wire/promises_text.h"

#include <algorithm>
#include <charconv>
#include <expected>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "base/time.h"
#include "base/utf8.h"
#include "model/resources.h"

namespace trainyard::wire {
namespace {

constexpr std::string_view kPromiseMagic = "trainyard-promises 1 ";
static_assert(kPromiseSealBytes == kPromiseMagic.size() + 12 + 1 + 8 + 1 + 16 + 1);
/// No number is larger: so many of them add up to one that still is a number.
constexpr std::int64_t kPromiseNumberMax = std::int64_t{1} << 53U;

std::uint64_t checksum_of(std::uint64_t sequence, std::string_view text) {
  Fingerprint sum;
  sum.add(static_cast<std::int64_t>(sequence));
  sum.add(text);
  return sum.value();
}

/// Takes what comes before the separator off the text, and the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Text that is safe on a terminal, and not too long.
std::string shown_name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const Utf8Character next = utf8_character(text);
    const bool bad = !next.valid || acts_on_a_terminal(next.code_point);
    append_utf8(name, bad ? kReplacementCharacter : next.code_point);
    text.remove_prefix(next.bytes);
  }
  return std::string(utf8_prefix(name, kPromiseNameMax));
}

/// Letters, digits and a few signs: what UUIDs and tickets are made of.
bool is_plain_word(std::string_view word) {
  return !word.empty() && word.size() <= kPromiseNameMax && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':' || c == '/';
  });
}

/// The numbers of a line, "memory=12 cpus=3": by name, 0 where it is missing.
class Numbers {
 public:
  static std::optional<Numbers> in(std::string_view line) {
    Numbers numbers;
    while (!line.empty()) {
      std::string_view word = take_until(line, ' ');
      if (word.empty()) continue;
      const std::string_view name = take_until(word, '=');
      const std::optional<std::int64_t> value = whole_number<std::int64_t>(word);
      if (!value || *value < 0 || *value > kPromiseNumberMax) return std::nullopt;
      if (numbers.all_.size() >= kMax) return std::nullopt;
      numbers.all_.emplace_back(name, *value);
    }
    return numbers;
  }

  [[nodiscard]] std::int64_t of(std::string_view name) const {
    const auto found = place_of(name);
    return found == all_.end() ? 0 : found->second;
  }
  [[nodiscard]] bool has(std::string_view name) const { return place_of(name) != all_.end(); }
  [[nodiscard]] Bytes bytes(std::string_view name) const { return {of(name)}; }
  [[nodiscard]] int count(std::string_view name, std::int64_t most = 1'000'000) const {
    return static_cast<int>(std::min(of(name), most));
  }

 private:
  using Named = std::pair<std::string_view, std::int64_t>;
  [[nodiscard]] std::vector<Named>::const_iterator place_of(std::string_view name) const {
    return std::ranges::find(all_, name, &Named::first);
  }

  static constexpr std::size_t kMax = 16;
  std::vector<Named> all_;
};

void append_held(std::string& text, std::string_view word, const model::HeldPromise& held) {
  if (held == model::HeldPromise{}) return;
  fmt::format_to(std::back_inserter(text), "{} memory={} unused={} cpus={} tasks={} since={}\n",
                 word, held.memory.count, held.unused.count, held.cpus.milli, held.tasks,
                 held.since_unix_s);
  for (const model::CardPromise& card : held.cards) {
    fmt::format_to(std::back_inserter(text),
                   "{}-card {} memory={} unused={} tasks={} whole={} used={} most={} since={}\n",
                   word, card.uuid, card.memory.count, card.unused.count, card.tasks,
                   card.whole ? 1 : 0, card.sharing.utilization, card.sharing.max_per_gpu,
                   card.since_unix_s);
  }
}

void read_held(const Numbers& numbers, model::HeldPromise& held) {
  held.memory = numbers.bytes("memory");
  held.unused = std::min(held.memory, numbers.bytes("unused"));
  held.cpus = {numbers.of("cpus")};
  held.tasks = numbers.count("tasks");
  held.since_unix_s = numbers.of("since");
}

bool read_card(std::string_view line, model::HeldPromise& held) {
  const std::string_view uuid = take_until(line, ' ');
  const std::optional<Numbers> numbers = Numbers::in(line);
  if (!is_plain_word(uuid) || !numbers || held.cards.size() >= kPromiseCardsMax) return false;
  const auto place = std::ranges::lower_bound(held.cards, uuid, {}, &model::CardPromise::uuid);
  if (place != held.cards.end() && place->uuid == uuid) return false;
  held.cards.insert(place,
                    {.uuid = std::string(uuid),
                     .memory = numbers->bytes("memory"),
                     .unused = std::min(numbers->bytes("memory"), numbers->bytes("unused")),
                     .tasks = numbers->count("tasks"),
                     .whole = numbers->of("whole") != 0,
                     .sharing = {.utilization = numbers->count("used"),
                                 .max_per_gpu = numbers->count("most", model::kMaxPerGpuMost)},
                     .since_unix_s = numbers->of("since")});
  return true;
}

bool read_drop_outs(std::string_view line, std::vector<model::DropOuts>& drop_outs) {
  const std::string_view uuid = take_until(line, ' ');
  const std::optional<Numbers> numbers = Numbers::in(line);
  if (!is_plain_word(uuid) || !numbers || drop_outs.size() >= kPromiseCardsMax) return false;
  drop_outs.push_back(
      {.uuid = std::string(uuid),
       .number = numbers->count("gpu"),
       .slice = numbers->has("slice") ? std::optional(numbers->count("slice")) : std::nullopt,
       .times = numbers->count("times"),
       .avoided_until_unix_s = numbers->of("until")});
  return true;
}

/// False where the line is not as it should be.
bool read_line(std::string_view line, model::Promises& promises) {
  const std::string_view word = take_until(line, ' ');
  if (word == "ticket") {
    promises.ticket = std::string(line);
    return is_plain_word(line);
  }
  if (word == "run") {
    const std::optional<std::uint32_t> number = whole_number<std::uint32_t>(take_until(line, ' '));
    promises.run = number.value_or(0);
    promises.name = shown_name(line);
    return number.has_value();
  }
  if (word == "numbering") {
    promises.numbering = std::string(line);
    return is_plain_word(line);
  }
  if (word == "held-card") return read_card(line, promises.held);
  if (word == "claimed-card") return read_card(line, promises.claimed);
  if (word == "drop-outs") return read_drop_outs(line, promises.drop_outs);
  if (word != "machine" && word != "held" && word != "claimed" && word != "want") return true;
  const std::optional<Numbers> numbers = Numbers::in(line);
  if (!numbers) return false;
  if (word == "machine") {
    promises.memory_total = numbers->bytes("memory");
    promises.cpus_total = {numbers->of("cpus")};
  } else if (word == "want") {
    promises.want = model::Want{.memory = numbers->bytes("memory"),
                                .cpus = {numbers->of("cpus")},
                                .gpus = numbers->count("gpus"),
                                .gpu_memory = numbers->bytes("gpu-memory"),
                                .since_unix_s = numbers->of("since")};
  } else {
    read_held(*numbers, word == "held" ? promises.held : promises.claimed);
  }
  return true;
}

}  // namespace

std::string to_text(const model::Promises& promises) {
  std::string text = fmt::format("ticket {}\nrun {} {}\n", promises.ticket, promises.run,
                                 shown_name(promises.name));
  if (!promises.numbering.empty()) text += fmt::format("numbering {}\n", promises.numbering);
  fmt::format_to(std::back_inserter(text), "machine memory={} cpus={}\n",
                 promises.memory_total.count, promises.cpus_total.milli);
  append_held(text, "held", promises.held);
  append_held(text, "claimed", promises.claimed);
  if (const std::optional<model::Want>& want = promises.want) {
    fmt::format_to(std::back_inserter(text),
                   "want memory={} cpus={} gpus={} gpu-memory={} since={}\n", want->memory.count,
                   want->cpus.milli, want->gpus, want->gpu_memory.count, want->since_unix_s);
  }
  for (const model::DropOuts& it : promises.drop_outs) {
    fmt::format_to(std::back_inserter(text), "drop-outs {} gpu={}{} times={} until={}\n", it.uuid,
                   it.number, it.slice ? fmt::format(" slice={}", *it.slice) : "", it.times,
                   it.avoided_until_unix_s);
  }
  return text;
}

Result<model::Promises> promises_from(std::string_view text) {
  if (text.size() > kPromiseBytesMax) {
    return std::unexpected(Error{fmt::format("has more than {} bytes", kPromiseBytesMax)});
  }
  model::Promises promises;
  for (int number = 1; !text.empty(); ++number) {
    if (!read_line(take_until(text, '\n'), promises)) {
      return std::unexpected(Error{fmt::format("line {} is no promise", number)});
    }
  }
  if (promises.ticket.empty()) return std::unexpected(Error{"has no ticket"});
  return promises;
}

std::string seal_of(std::string_view text, std::uint64_t sequence) {
  constexpr std::uint64_t kSequences = 1'000'000'000'000;
  sequence %= kSequences;
  return fmt::format("{}{:012} {:08} {:016x}\n", kPromiseMagic, sequence, text.size(),
                     checksum_of(sequence, text));
}

std::string sealed(std::string_view text, std::uint64_t sequence) {
  return seal_of(text, sequence) + std::string(text);
}

std::optional<std::string_view> unsealed(std::string_view file) {
  if (file.size() < kPromiseSealBytes || !file.starts_with(kPromiseMagic)) return std::nullopt;
  std::string_view line =
      file.substr(kPromiseMagic.size(), kPromiseSealBytes - kPromiseMagic.size());
  const auto sequence = whole_number<std::uint64_t>(take_until(line, ' '));
  const auto size = whole_number<std::size_t>(take_until(line, ' '));
  const auto checksum = whole_number<std::uint64_t>(take_until(line, '\n'), 16);
  if (!sequence || !size || !checksum || !line.empty()) return std::nullopt;
  file.remove_prefix(kPromiseSealBytes);
  if (*size > file.size()) return std::nullopt;
  const std::string_view text = file.substr(0, *size);
  if (checksum_of(*sequence, text) != *checksum) return std::nullopt;
  return text;
}

std::string to_text(std::span<const model::Drain> drains) {
  std::string text;
  for (const model::Drain& drain : drains) {
    fmt::format_to(std::back_inserter(text), "{} until={} now={}\n", drain.uuid, drain.until_unix_s,
                   drain.now ? 1 : 0);
  }
  return text;
}

std::vector<model::Drain> drains_from(std::string_view text) {
  std::vector<model::Drain> drains;
  while (!text.empty() && drains.size() < kDrainsMax) {
    std::string_view line = take_until(text, '\n');
    const std::string_view uuid = take_until(line, ' ');
    const std::optional<Numbers> numbers = Numbers::in(line);
    if (!is_plain_word(uuid) || !numbers) continue;
    drains.push_back({.uuid = std::string(uuid),
                      .until_unix_s = numbers->of("until"),
                      .now = numbers->of("now") != 0});
  }
  return drains;
}

std::string neighbours_text(std::span<const model::Neighbour> neighbours) {
  std::string text;
  for (const model::Neighbour& it : neighbours) {
    fmt::format_to(std::back_inserter(text),
                   "neighbour uid={} ours={} midnight={} waits={} first={} {}\n", it.user,
                   it.is_ours ? 1 : 0, it.midnight_unix_s, it.waits.count(), it.goes_first ? 1 : 0,
                   shown_name(it.user_name));
    text += to_text(it.its);
  }
  return text;
}

std::vector<model::Neighbour> neighbours_from(std::string_view text) {
  std::vector<model::Neighbour> neighbours;
  constexpr std::string_view kNeighbour = "neighbour ";
  while (text.starts_with(kNeighbour)) {
    text.remove_prefix(kNeighbour.size());
    std::string_view line = take_until(text, '\n');
    constexpr int kNumbers = 5;
    std::string_view name = line;
    for (int i = 0; i < kNumbers; ++i) take_until(name, ' ');
    line = line.substr(0, line.size() - name.size());
    const std::optional<Numbers> numbers = Numbers::in(line);
    const std::size_t end = std::min(text.find("\nneighbour "), text.size());
    const Result<model::Promises> its = promises_from(text.substr(0, end));
    if (!numbers || !its) break;
    neighbours.push_back({.user = static_cast<std::uint32_t>(numbers->of("uid")),
                          .is_ours = numbers->of("ours") != 0,
                          .user_name = shown_name(name),
                          .midnight_unix_s = numbers->of("midnight"),
                          .waits = Duration(numbers->of("waits")),
                          .goes_first = numbers->of("first") != 0,
                          .its = *its});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return neighbours;
}

}  // namespace trainyard::wire
