// The words between a made-up yard and its agents, as wire/agent.h has them, and the made-up
// network between them: words come late, all of them wait for a while, or the stream that carries
// them ends, and the words in flight arrive or do not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "sim/agenda.h"
#include "sim/random.h"

namespace trainyard::sim {

/// The first word over each stream: as wire::AgentOpen.
struct Opens {
  Duration lease{0};
  Instant until;
  std::uint64_t heard = 0;
};
struct Begins {};
struct Leaves {};
/// The yard's: tasks may run until then. The agent's: that is what its clock shows.
struct Heard {
  std::uint64_t up_to = 0;
  Instant clock;
};
struct Greets {
  std::uint64_t instance = 0;
  std::uint64_t place = 0;
  std::uint64_t heard = 0;
  Instant clock;
};
struct Ready {};

/// A word with a number is sent until it was received, and taken in once.
struct YardWord {
  std::uint64_t number = 0;
  std::variant<Opens, Begins, model::Command, Heard, Leaves> what;
};
struct AgentWord {
  std::uint64_t number = 0;
  std::variant<Greets, Ready, model::What, Heard> what;
};

/// As wire/unheard_lines.h, of words.
template <class Word>
class UnheardWords {
 public:
  const Word& keep(Word word) {
    word.number = heard_ + words_.size() + 1;
    return words_.emplace_back(std::move(word));
  }
  void heard(std::uint64_t up_to) {
    for (; heard_ < up_to && !words_.empty(); ++heard_) words_.pop_front();
  }
  [[nodiscard]] const std::deque<Word>& words() const { return words_; }

 private:
  std::uint64_t heard_ = 0;
  std::deque<Word> words_;
};

/// One direction of the network between a yard and a machine.
class WayThere {
 public:
  WayThere(Agenda& agenda, Random random) : agenda_(agenda), random_(random) {}

  /// In the order in which they were sent.
  void send(Agenda::Step arrive) {
    const Instant there = agenda_.now() + random_.between(Duration{1}, Duration{40});
    last_ = std::max({last_, there, held_until_});
    agenda_.at(last_, std::move(arrive));
  }
  /// Nothing that is sent from now on comes before that.
  void hold_until(Instant then) { held_until_ = std::max(held_until_, then); }

 private:
  Agenda& agenda_;
  Random random_;
  Instant last_;
  Instant held_until_;
};

}  // namespace trainyard::sim
