#include "process/exit_notes.h"

#include <utility>
#include <variant>

#include "base/time.h"
#include "model/event.h"
#include "sys/event_loop.h"
#include "sys/packing.h"

namespace trainyard::process {

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
    note->told_to_end = it.told_to_end;
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
