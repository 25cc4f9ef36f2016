// The other machines of a run: how they find each other, and what each has of the others. One of
// them has begun the run and lets the others in; each then sends to each.
//
// Belongs to the thread of its loop, which it must not outlive, and goes after the router.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sys/event_loop.h"
#include "workers/datagram.h"
#include "workers/machine.h"
#include "workers/machine_words.h"

namespace trainyard::workers {

/// The machines of a run, as the machine that began it knows them, and the check of each that asks
/// to join. Pure.
class Admission {
 public:
  struct Options {
    MachineEntry own;
    std::string topology;
    std::string when_full;
    int elsewhere = 0;  ///< Workers that others bring, all together.
  };
  explicit Admission(Options options) : options_(std::move(options)) {}

  /// Admits or refuses a machine. A machine that asks again, because the answer was lost, gets the
  /// same answer.
  MachineWelcome ask(const MachineHello& hello);
  /// Workers that nobody has brought yet.
  [[nodiscard]] int awaited() const;
  /// Whether it had been let in before it asked this time.
  [[nodiscard]] bool knows(MachineId id) const;

 private:
  [[nodiscard]] std::string refusal(const MachineHello& hello) const;

  Options options_;
  std::vector<MachineEntry> joined_;  ///< In the order in which they came.
};

class Router;

class Machines {
 public:
  /// Number of foreign messages that are noted.
  static constexpr int kStrayNotesMax = 8;
  static constexpr Duration kAskEvery{200};

  struct Options {
    MachineEntry own;
    std::string topology;
    std::string when_full = {};
    std::string run;
    bool joins = false;
    int elsewhere = 0;
    Duration lost_after{60'000};
    /// Time between two claims of the run, and between two questions of a machine that joins.
    Duration ask_every = kAskEvery;
    /// Time in which no machine is let in after another one has claimed the run: one that has begun
    /// it meanwhile says so within this time.
    Duration doubt{1'000};
    /// Other machines are notified again that the run ends after this time, as messages may be lost.
    Duration repeat_end_after{500};
    std::function<void(const std::string&)> note;
    /// Called when this machine was let in.
    std::function<void(const MachineWelcome&)> on_joined;
    /// Called once, with the reason, when the run cannot continue.
    std::function<void(const std::string&)> on_broken;
    /// Called each time another machine says that the run ends, which it repeats.
    std::function<void(const MachineEnd&)> on_end;
  };
  Machines(sys::EventLoop& loop, std::unique_ptr<Bridge> bridge, Options options);
  Machines(Machines&&) = delete;
  Machines& operator=(Machines&&) = delete;
  ~Machines();

  /// Messages are taken from now on. A machine that joins asks until it is let in; one that begins
  /// the run claims it until has_begun(). The latter needs its router before.
  void start();
  /// Messages of other machines go to this router, which admits those that are known already.
  void set_router(Router& router);
  /// Another machine has joined, as the machine that began the run reports.
  void came(const CameWord& word);
  void left(int number, const std::string& why);

  /// Whether the run is this machine's: no other one holds it, or the one that does was silent for
  /// half of `lost_after`. False in a machine that joins.
  [[nodiscard]] bool has_begun() const { return joined_ && !options_.joins; }
  /// Whether a message of a machine whose workers have not all ended came in the last `within`, or
  /// the connection to the servers was lost since then.
  [[nodiscard]] bool is_any_responding(Duration within) const;

  /// Notifies all other machines that the run ends, and why: also those that are let in later, and
  /// those whose stream stands still because they take nothing.
  void end(const MachineEnd& why);
  /// The first call announces that this machine leaves. True when the other machines have
  /// acknowledged all that was sent to them or, where the run ends, its end, and the connection has
  /// taken all.
  bool leave(const std::string& why);
  /// This machine leaves without that: the others get none of what still waits for room.
  void leave_at_once();

 private:
  void take(std::string_view message);
  void take_hello(const Datagram& datagram);
  /// Takes a greeting of another machine that begins the run, or has begun it.
  void take_claim(const Datagram& datagram, const MachineHello& hello);
  void take_welcome(const Datagram& datagram);
  void take_piece(const Datagram& datagram);
  void take_end(const Datagram& datagram);
  void stray(const std::string& what);
  /// Sends a greeting to the machine that has begun the run. MachineHello says what `to` means.
  void ask(MachineId to);
  void take_no_hub();
  /// Asks to be let in, or claims the run, and ends that when it takes too long. Returns when to
  /// call it again.
  Duration ask_until_joined(Duration now);
  /// The machine that began the run that this one has joined. Null while messages come from it.
  [[nodiscard]] const Machine* silent_hub(Duration now) const;
  void refuse(MachineId whom, const std::string& why);
  /// Another machine may have this run, which is not known yet.
  [[nodiscard]] bool is_in_doubt() const;
  Machine& add(const MachineEntry& entry);
  void change(bool is_up);
  /// The other machines get the reason without the cure, which is this machine's.
  void broken(const std::string& why, std::string_view cure = "");
  /// The run cannot be begun, joined or continued.
  void unable(const std::string& why, std::string_view cure = "");
  void tick();
  void tick_within(Duration delay);
  [[nodiscard]] Duration show_every() const;

  sys::EventLoop& loop_;
  std::unique_ptr<Bridge> bridge_;
  Options options_;
  Admission admission_;
  Router* router_ = nullptr;
  std::map<MachineId, std::unique_ptr<Machine>> machines_;
  std::optional<MachineEnd> end_;  ///< Why the run ends; none: it goes on.
  int last_number_ = 0;
  bool joined_ = false;       ///< It was let in, or the run that it begins is its own.
  int asks_without_hub_ = 0;  ///< Claims that no other machine received.
  bool is_silence_noted_ = false;
  MachineId refused_ = 0;  ///< The last one whose claim was refused.
  int claims_ = 0;         ///< Refused ones of different machines: notes are bounded.
  /// When another machine last claimed the run of this one, or may have done so unnoticed.
  std::optional<Duration> in_doubt_at_;
  bool leaves_ = false;
  bool is_broken_ = false;
  int strays_ = 0;
  Duration asks_since_;   ///< When it began to ask, or was connected again.
  Duration asked_at_{0};  ///< When it last asked.
  std::optional<Duration> down_since_;
  std::optional<sys::EventLoop::TimerId> timer_;
  Duration tick_at_{0};
};

}  // namespace trainyard::workers
