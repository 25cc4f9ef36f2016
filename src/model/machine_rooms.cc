#include "model/machine_rooms.h"

#include <utility>
#include <variant>

namespace trainyard::model {

void MachineRooms::hear(const What& what) {
  if (const auto* const joined = std::get_if<MachineJoined>(&what)) {
    join(joined->machine, joined->name);
  } else if (const auto* const gone = std::get_if<MachineGone>(&what)) {
    rooms_.erase(gone->machine);
  }
}

void MachineRooms::join(MachineIndex machine, std::string name) {
  names_[machine] = std::move(name);
}

void MachineRooms::see(MachineIndex machine, Headroom room) { rooms_[machine] = std::move(room); }

const Headroom& MachineRooms::room_of(const Reason& reason) const {
  static const Headroom nothing;
  if (const auto found = rooms_.find(reason.machine); found != rooms_.end()) return found->second;
  return rooms_.empty() ? nothing : rooms_.begin()->second;
}

std::string_view MachineRooms::name_for(const Reason& reason) const {
  const auto found = names_.find(reason.machine);
  return is_of_machine(reason.cause) && found != names_.end() ? std::string_view(found->second)
                                                              : std::string_view();
}

std::string MachineRooms::there_are() const {
  std::string names;
  for (const auto& [machine, name] : names_) {
    if (rooms_.contains(machine)) names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return names;
  return (names.contains(',') ? "; the available machines are "
                              : "; the only available machine is ") +
         names;
}

std::string MachineRooms::reason_text(const Reason& reason, std::string_view first) const {
  std::string text = model::reason_text(reason, room_of(reason), first);
  if (reason.cause == Cause::Elsewhere) return text + there_are();
  const std::string_view name = names_.size() > 1 ? name_for(reason) : std::string_view();
  return name.empty() || text.empty() ? text : "on " + std::string(name) + ": " + text;
}

}  // namespace trainyard::model
