#include "tell/outbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::tell {

void Outbox::say(const Letter& letter, std::string text, bool trouble) {
  lines_.push_back(
      {.text = fmt::format("{}: {}: {}", letter.to, letter.what, text), .trouble = trouble});
}

void Outbox::add(Letter letter, Instant now) {
  if (letters_.size() >= kLettersMax) {
    const auto oldest = std::ranges::find(letters_, false, &Entry::under_way);
    if (oldest == letters_.end()) return say(letter, "not sent: too much is on its way", true);
    say(oldest->letter, "given up: too much waits to be sent", true);
    letters_.erase(oldest);
  }
  letters_.push_back({.id = next_id_++, .letter = std::move(letter), .due = now});
}

std::vector<Outbox::Due> Outbox::take_due(Instant now) {
  std::vector<Due> due;
  for (Entry& entry : letters_) {
    if (entry.under_way || entry.due > now) continue;
    entry.under_way = true;
    ++entry.tries;
    due.push_back({.id = entry.id, .letter = &entry.letter});
  }
  return due;
}

void Outbox::answer(const Answered& answered, Instant now) {
  const auto entry = std::ranges::find(letters_, answered.id, &Entry::id);
  if (entry == letters_.end()) return;
  entry->under_way = false;
  if (answered.answer == Answer::Taken) {
    say(entry->letter, "sent", false);
    letters_.erase(entry);
    return;
  }
  if (answered.answer == Answer::Refused || entry->tries >= kTriesMax) {
    const std::string tries =
        entry->tries == 1 ? "" : fmt::format(" after {} attempts", entry->tries);
    say(entry->letter, fmt::format("not sent{}: {}", tries, answered.how), true);
    letters_.erase(entry);
    return;
  }
  const Duration pause =
      hurried_ ? pause_at_end_ : kPauses.at(static_cast<std::size_t>(entry->tries - 1));
  entry->due = now + pause;
  // The reader needs to know it once.
  say(entry->letter,
      fmt::format("not sent yet: {}; next attempt in {}", answered.how, to_text(pause)),
      entry->tries == 1);
}

void Outbox::hurry(Instant now) {
  hurried_ = true;
  for (Entry& entry : letters_) entry.due = std::min(entry.due, now);
}

std::optional<Instant> Outbox::next() const {
  std::optional<Instant> soonest;
  for (const Entry& entry : letters_) {
    if (!entry.under_way) soonest = soonest ? std::min(*soonest, entry.due) : entry.due;
  }
  return soonest;
}

bool Outbox::has_mail() const {
  return std::ranges::any_of(letters_, [](const Entry& it) { return it.letter.mail != nullptr; });
}

void Outbox::give_up() {
  for (const Entry& entry : letters_) {
    say(entry.letter, "given up: it was not taken in time, and the run is over", true);
  }
  letters_.clear();
}

std::vector<Outbox::Line> Outbox::take_lines() { return std::exchange(lines_, {}); }

}  // namespace trainyard::tell
