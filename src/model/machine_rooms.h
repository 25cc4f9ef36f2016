// The last reported headroom of each machine of a run, and reasons to wait with its numbers: room
// is short on one machine, so its numbers are shown. Not for decisions. Any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/event.h"
#include "model/ids.h"
#include "model/waiting.h"

namespace trainyard::model {

class MachineRooms {
 public:
  /// Takes in that a machine joins, or is gone. What is free on one that is gone is not there any
  /// more; that it was there is known still.
  void hear(const What& what);
  void join(MachineIndex machine, std::string name);
  void see(MachineIndex machine, Headroom room);

  /// That of the machine that the reason names. Where nothing was said of that, the first other
  /// one's, as what is of the whole run stands in each; and nothing is free where there is none.
  [[nodiscard]] const Headroom& room_of(const Reason& reason) const;

  /// The machine that the reason is about; empty where it is about none.
  [[nodiscard]] std::string_view name_for(const Reason& reason) const;

  /// As reason_text(), with the machine before it where there is or was more than one: "on lab1:
  /// needs 5 GB of memory, 4 GB available". Where none of them will do, with those that there are.
  [[nodiscard]] std::string reason_text(const Reason& reason, std::string_view first = {}) const;

 private:
  /// "; the available machines are lab1, lab2"
  [[nodiscard]] std::string there_are() const;

  std::map<MachineIndex, std::string> names_;
  std::map<MachineIndex, Headroom> rooms_;
};

}  // namespace trainyard::model
