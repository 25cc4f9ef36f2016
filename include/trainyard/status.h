// The ten statuses of a task (fedflow `TaskStatus`).
//
// INIT ─start─▶ AVAILABLE ──load──▶ LOADING ──▶ WAITING ──train──▶ TRAINING ──▶ FINISHED ──▶ EXITED
//                  ▲ ▲                 │ out of memory ▲              │ out of memory
//                  │ └── INTERRUPT ◀───┘               └─ INTERRUPT ◀─┤ process and device stay
//                  └──────────────────────── INTERRUPT ◀──────────────┘ a new process
// any stage: exception, death, time limit, kill ──▶ EXCEPTION, or INTERRUPT with a retry left
// EXCEPTION, or skipped ── `trainyard retry` ──▶ INIT; killed before its next attempt ──▶ EXCEPTION
//
// A plain command has no load stage: INIT, AVAILABLE, TRAINING, FINISHED, EXITED. AVAILABLE is a
// task that has been granted what it asked for and whose process is being started.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard {

enum class Status : std::uint8_t {
  Unknown = 0,
  Init = 1,
  Available = 2,
  Loading = 3,
  Waiting = 4,
  Training = 5,
  Finished = 6,
  Exited = 7,
  Exception = 8,
  Interrupt = 9,
};

/// Where in an attempt: what a failure and a retry are counted under.
enum class Stage : std::uint8_t { Load = 0, Train = 1 };

/// "INIT", "AVAILABLE", ...; "LOAD", "TRAIN".
std::string_view to_text(Status status);
std::string_view to_text(Stage stage);

}  // namespace trainyard
