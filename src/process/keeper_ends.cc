// The part of the keeper's process that takes care of what attempts have left behind: it is read
// for the yard, and noted until the yard has written it down.
#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/end_notes.h"
#include "process/end_reader.h"
#include "process/keeper_attempts.h"
#include "process/keeper_process.h"
#include "sys/files.h"

namespace trainyard::process {

/// The question about what the attempt has left, with the note of its end if it is noted.
EndReader::Question KeeperProcess::question_about(KeeperAttempts::Over& over) {
  const bool ran = !std::holds_alternative<model::NotStarted>(over.ended.end);
  EndReader::Question question;
  if (ran) question = std::move(over.files);
  if (over.ended.end == model::End(model::ExitedWith{0})) question.errors_path.clear();
  const std::optional<EndNotes>& notes = attempts_.end_notes();
  if (notes && over.noted) {
    question.note = end_note_head({.of = *notes, .attempt = *over.noted, .ended = over.ended});
    question.note_path = notes->path;
    unwritten_.insert(over.ended.key);
    ++notes_since_empty_;
  }
  return question;
}

/// The attempt is noted once more when its last process is gone.
void KeeperProcess::note_early(KeeperAttempts::Over over) {
  EndReader::Question question = question_about(over);
  if (question.note.empty()) return;
  question.told.clear();
  question.result_copy_path.clear();
  reader_of_ends_.ask(std::move(question), [](const EndReader::Answer&) {});
}

void KeeperProcess::read_what_is_left(KeeperAttempts::Over over) {
  // The note is made at once: the yard and this process may both be killed before the yard has
  // written the end down.
  EndReader::Question question = question_about(over);
  // Most commands leave nothing that has to be read. Their ends do not wait for the disk of the
  // note: the process that reads writes it, and a disk that does not answer holds up no end.
  const bool leaves_nothing =
      question.result_path.empty() ||
      (question.errors_path.empty() && sys::is_known_to_be_absent(question.result_path));
  const model::AttemptKey key = over.ended.key;
  if (leaves_nothing || yard_gone_) {
    if (!question.note.empty()) note(key, std::move(question), [](const EndReader::Answer&) {});
    return tell_end(over.ended);
  }
  note(key, std::move(question),
       [this, ended = std::move(over.ended),
        seen_at = over.seen_at](EndReader::Answer answer) mutable {
         // The process that wrote the file was alive then.
         const Duration wrote = answer.written_at.value_or(Duration{0});
         if (ended.at) ended.at = std::max(*ended.at, std::min(wrote, seen_at));
         ended.left = std::move(answer.left);
         tell_end(ended);
       });
}

/// Reads what an attempt has left, and notes its end where the question has a note.
void KeeperProcess::note(model::AttemptKey key, EndReader::Question question,
                         std::move_only_function<void(EndReader::Answer)> answer) {
  if (question.note.empty()) {
    return reader_of_ends_.ask(std::move(question), std::move(answer));
  }
  EndReader::Question again = question;
  again.told.clear();  // Once is enough.
  reader_of_ends_.ask(std::move(question),
                      [this, key, again = std::move(again),
                       answer = std::move(answer)](EndReader::Answer given) mutable {
                        // A full disk has room again when the yard is gone, which had reserved some.
                        if (!given.is_noted && unwritten_.contains(key)) {
                          unnoted_.insert_or_assign(key, std::move(again));
                        }
                        answer(std::move(given));
                      });
}

void KeeperProcess::note_again() {
  for (auto& [key, question] : std::exchange(unnoted_, {})) {
    reader_of_ends_.ask(std::move(question), [](const EndReader::Answer&) {});
  }
}

/// Empties the notes now and then, while none of them is needed.
void KeeperProcess::is_written(model::AttemptKey key) {
  unwritten_.erase(key);
  unnoted_.erase(key);
  board_.leave(key);
  const std::optional<EndNotes>& notes = attempts_.end_notes();
  if (!notes || !unwritten_.empty() || notes_since_empty_ < kNotesKept) return;
  notes_since_empty_ = 0;
  EndReader::Question question;
  question.note_path = notes->path;
  reader_of_ends_.ask(std::move(question), [](const EndReader::Answer&) {});
}

}  // namespace trainyard::process
