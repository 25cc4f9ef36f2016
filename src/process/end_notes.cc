#include "process/end_notes.h"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "base/result.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/keeper_message.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/packing.h"

namespace trainyard::process {
namespace {

/// Another one where the record, or a message of the keeper in it, is another.
constexpr std::uint64_t kVersion = 0x7472'6e79'656e'6403;  // "trnyend", and a number.
/// Version, length, checksum.
constexpr std::size_t kPrefix = 3 * sizeof(std::uint64_t);

std::uint64_t checksum(std::string_view body) {
  Fingerprint fingerprint;
  fingerprint.add(body);
  return fingerprint.value();
}

std::optional<ProcessEnded> ended_from(std::string_view message) {
  KeeperMessageReader reader;
  reader.add(message);
  Result<std::optional<KeeperMessage>> read = reader.next();
  if (!read || !*read || reader.holds_a_part()) return std::nullopt;
  auto* const ended = std::get_if<ProcessEnded>(&**read);
  if (ended == nullptr) return std::nullopt;
  return std::move(*ended);
}

std::optional<EndNote> note_from(std::string_view body) {
  sys::Unpacking record(body);
  std::optional<EndNote> note = note_from_head(record.text());
  if (!note) return std::nullopt;
  LeftBehind& left = note->ended.left;
  const bool has_result = record.number<std::uint8_t>() != 0;
  std::string result = record.text();
  if (has_result) left.result = std::move(result);
  left.trouble = record.text();
  left.errors = record.text();
  left.errors_are_output = record.number<std::uint8_t>() != 0;
  return note;
}

}  // namespace

std::optional<EndNote> note_from_head(std::string_view head) {
  sys::Unpacking packed(head);
  EndNote note;
  note.of.execution = packed.number<std::int64_t>();
  note.of.started_unix_ms = packed.number<std::int64_t>();
  note.of.clock_offset = Duration(packed.number<std::int64_t>());
  note.attempt.journal_number = packed.number<std::uint32_t>();
  note.attempt.two_phase = packed.number<std::uint8_t>() != 0;
  note.attempt.ranks = packed.number<std::int32_t>();
  note.attempt.shares_memory = packed.number<std::uint8_t>() != 0;
  std::optional<ProcessEnded> ended = ended_from(packed.text());
  if (!ended) return std::nullopt;
  note.ended = *std::move(ended);
  return note;
}

std::string end_note_head(const EndNote& note) {
  ProcessEnded ended = note.ended;
  ended.key.task = {};
  ended.left = {};
  std::string message;
  append_ended(message, ended);
  sys::Packing head;
  head.add(note.of.execution);
  head.add(note.of.started_unix_ms);
  head.add(std::int64_t{note.of.clock_offset.count()});
  head.add(note.attempt.journal_number);
  head.add(static_cast<std::uint8_t>(note.attempt.two_phase));
  head.add(std::int32_t{note.attempt.ranks});
  head.add(static_cast<std::uint8_t>(note.attempt.shares_memory));
  head.add(message);
  return std::move(head).take();
}

std::string end_note_record(std::string_view head, const LeftBehind& left) {
  sys::Packing packing;
  packing.add(head);
  packing.add(static_cast<std::uint8_t>(left.result.has_value()));
  packing.add(left.result.value_or(std::string()));
  packing.add(left.trouble);
  packing.add(left.errors);
  packing.add(static_cast<std::uint8_t>(left.errors_are_output));
  const std::string body = std::move(packing).take();
  sys::Packing record;
  record.add(kVersion);
  record.add(std::uint64_t{body.size()});
  record.add(checksum(body));
  return std::move(record).take() + body;
}

namespace {

struct WholeNotes {
  std::vector<EndNote> notes;
  std::size_t size = 0;  ///< Size of their records.
};

/// The place of the next record in `bytes`, or its end.
std::size_t next_record(std::string_view bytes) {
  sys::Packing version;
  version.add(kVersion);
  return std::min(bytes.find(std::move(version).take()), bytes.size());
}

WholeNotes read_whole(std::string_view bytes) {
  // Each may cost a checksum of all that is behind it.
  constexpr int kDamagedMax = 16;
  WholeNotes whole;
  const std::size_t all = bytes.size();
  for (int damaged = 0; damaged <= kDamagedMax;) {
    bytes.remove_prefix(next_record(bytes));
    if (bytes.size() < kPrefix) break;
    sys::Unpacking prefix(bytes.substr(sizeof(kVersion)));
    const auto size = prefix.number<std::uint64_t>();
    const auto sum = prefix.number<std::uint64_t>();
    const std::string_view behind = bytes.substr(kPrefix);
    const std::string_view body = behind.substr(0, size);
    const bool is_whole = size <= behind.size() && checksum(body) == sum;
    std::optional<EndNote> note = is_whole ? note_from(body) : std::nullopt;
    if (!note) {
      ++damaged;
      bytes.remove_prefix(1);
      continue;
    }
    whole.notes.push_back(*std::move(note));
    bytes = behind.substr(size);
    whole.size = all - bytes.size();
  }
  return whole;
}

std::expected<sys::OpenedFile, sys::OpenFailure> open_notes(const std::string& path) {
  return sys::open_file(path, {.flags = O_WRONLY | O_APPEND | O_CREAT,
                               .owner = ::geteuid(),
                               .size_max = Bytes{static_cast<std::int64_t>(kEndNotesMax)}});
}

}  // namespace

std::vector<EndNote> read_end_notes(std::string_view bytes) { return read_whole(bytes).notes; }

void cut_incomplete_end_note(const std::string& path) {
  const Result<std::optional<std::string>> text = sys::read_plain_file(
      path, Bytes{static_cast<std::int64_t>(kEndNotesMax)}, sys::Links::Refuse);
  if (!text || !*text) return;
  const std::size_t size = read_whole(**text).size;
  if (size == (*text)->size()) return;
  const auto opened = sys::open_file(path, {.flags = O_WRONLY, .owner = ::geteuid()});
  if (opened) static_cast<void>(::ftruncate(opened->descriptor.get(), static_cast<off_t>(size)));
}

bool add_end_note(const std::string& path, std::string_view record) {
  auto opened = open_notes(path);
  if (!opened && opened.error().number == EACCES) {
    sys::restore_access(path.substr(0, path.rfind('/')));
    opened = open_notes(path);
  }
  // No errno: something else is there. Or a task has taken away the access to the file.
  if (!opened && (opened.error().number == 0 || opened.error().number == EACCES)) {
    sys::clear_place(path);
    opened = open_notes(path);
  }
  if (!opened) return false;
  const auto& [file, about] = *opened;
  if (static_cast<std::size_t>(about.st_size) + record.size() > kEndNotesMax) return false;
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t put = ::write(file.get(), rest.data(), rest.size());
    if (put <= 0) {
      // A record after an incomplete one would not be read.
      static_cast<void>(::ftruncate(file.get(), about.st_size));
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::string note_order(const EndNotes& of, const NotedAttempt& attempt,
                       const EndReader::Question& files) {
  // The exit is not known yet, and takes the place of this one.
  const EndNote note{.of = of,
                     .attempt = attempt,
                     .ended = {.key = {}, .end = model::ExitedWith{0}, .usage = {}, .left = {}}};
  sys::Packing order;
  order.add(of.path);
  order.add(end_note_head(note));
  append_question(order, files);
  return std::move(order).take();
}

void note_exits(std::span<const FoundExit> exits) {
  bool has_noted = false;
  for (const FoundExit& it : exits) {
    if (it.note_order.empty()) continue;
    sys::Unpacking order(it.note_order);
    const std::string path = order.text();
    std::optional<EndNote> note = note_from_head(order.text());
    EndReader::Question question = question_from(order);
    if (!note) continue;
    // The keeper may have died in the middle of a note.
    if (!std::exchange(has_noted, true)) cut_incomplete_end_note(path);
    note->ended.told_to_end = it.exit.was_signalled;
    note->ended.key.attempt = it.exit.key.attempt;
    note->ended.end = std::visit([](const auto& exit) { return model::End(exit); }, it.exit.exit);
    note->ended.at = sys::EventLoop::now();
    if (note->ended.end == model::End(model::ExitedWith{0})) question.errors_path.clear();
    question.note = end_note_head(*note);
    question.note_path = path;
    static_cast<void>(EndReader::read(question));
  }
}

}  // namespace trainyard::process
