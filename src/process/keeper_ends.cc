// The part of the keeper's process that takes care of what attempts have left behind: it is read
// for the yard, or noted where nobody writes it down any more.
#include <algorithm>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/event.h"
#include "process/end_notes.h"
#include "process/end_reader.h"
#include "process/keeper_attempts.h"
#include "process/keeper_process.h"

namespace trainyard::process {

void KeeperProcess::read_what_is_left(KeeperAttempts::Over over) {
  const bool ran = !std::holds_alternative<model::NotStarted>(over.ended.end);
  if (!ran) over.files = {};
  if (over.ended.end == model::End(model::ExitedWith{0})) over.files.errors_path.clear();
  remember(over);
  if (over.files.result_path.empty() || yard_gone_) return tell_end(over.ended);
  reader_of_ends_.ask(std::move(over.files),
                      [this, ended = std::move(over.ended),
                       seen_at = over.seen_at](EndReader::Answer answer) mutable {
                        // The process that wrote the file was alive then.
                        const Duration wrote = answer.written_at.value_or(Duration{0});
                        if (ended.at) ended.at = std::max(*ended.at, std::min(wrote, seen_at));
                        ended.left = std::move(answer.left);
                        tell_end(ended);
                      });
}

/// Until the yard says that it has written it down; when it is gone already, that is done here.
void KeeperProcess::remember(const KeeperAttempts::Over& over) {
  if (!notes_ || !over.noted) return;
  EndReader::Question question = over.files;
  question.note = end_note_head({.of = *notes_,
                                 .attempt = *over.noted,
                                 .told_to_end = over.told_to_end,
                                 .ended = over.ended});
  question.note_path = notes_->path;
  if (yard_gone_) return note(std::move(question));
  question.told.clear();  // That is asked for now, and once is enough.
  unwritten_.insert_or_assign(over.ended.key, std::move(question));
}

/// In the process that reads what is left, so that a disk which does not answer holds up no end.
void KeeperProcess::note(EndReader::Question question) {
  reader_of_ends_.ask(std::move(question), [](const EndReader::Answer&) {});
}

}  // namespace trainyard::process
