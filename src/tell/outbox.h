// The letters to send, until each is sent or given up, and the times of their retries. A server
// that does not take one delays no other letter. Pure; the caller passes the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "tell/mail_text.h"

namespace trainyard::tell {

struct Letter {
  std::string to;    ///< For people: "notify: hooks.example.com".
  std::string what;  ///< For people: "the first failure".
  /// The index of its address, and the body posted there; a mail has neither.
  std::optional<std::size_t> address;
  std::string body;
  /// Shared with whoever sends it: its pages may have megabytes.
  std::shared_ptr<const Mail> mail;
};

enum class Answer : std::uint8_t {
  Taken,
  Refused,  ///< And would be again.
  NotNow,   ///< Nobody answered, or not with a yes; another time it may be taken.
};

class Outbox {
 public:
  /// How many letters may wait; of more the oldest that is not under way is given up.
  static constexpr std::size_t kLettersMax = 64;
  /// Pauses between tries, while the run is active.
  static constexpr std::array<Duration, 4> kPauses{Duration{5'000}, Duration{30'000},
                                                   Duration{120'000}, Duration{600'000}};
  /// Pause between two tries after the run is over.
  static constexpr Duration kPauseAtEnd{1'000};
  static constexpr int kTriesMax = static_cast<int>(kPauses.size()) + 1;

  explicit Outbox(Duration pause_at_end = kPauseAtEnd) : pause_at_end_(pause_at_end) {}

  void add(Letter letter, Instant now);

  struct Due {
    std::uint64_t id = 0;
    const Letter* letter = nullptr;  ///< Until the next call.
  };
  /// Those that are to be tried now: they are under way then, until they are answered.
  std::vector<Due> take_due(Instant now);
  struct Answered {
    std::uint64_t id = 0;
    Answer answer = Answer::Taken;
    std::string how;  ///< For people: "Connection refused", "answers 500".
  };
  void answer(const Answered& answered, Instant now);

  /// The run is over: what waits for another try is tried at once, and pauses are short.
  void hurry(Instant now);

  /// When something is due; nothing while nothing waits for its time.
  [[nodiscard]] std::optional<Instant> next() const;
  [[nodiscard]] bool empty() const { return letters_.empty(); }
  /// Whether a mail waits or is under way.
  [[nodiscard]] bool has_mail() const;
  /// All that is left, as lines: nobody waits for it any more.
  void give_up();

  /// A line of what happened. Those that nobody has to know are for the log alone.
  struct Line {
    std::string text;
    bool trouble = false;
  };
  std::vector<Line> take_lines();

 private:
  struct Entry {
    std::uint64_t id = 0;
    Letter letter;
    int tries = 0;
    Instant due;
    bool under_way = false;
  };
  using Place = std::deque<Entry>::iterator;
  void say(const Letter& letter, std::string text, bool trouble);

  Duration pause_at_end_;
  std::deque<Entry> letters_;
  std::vector<Line> lines_;
  std::uint64_t next_id_ = 1;
  bool hurried_ = false;
};

}  // namespace trainyard::tell
