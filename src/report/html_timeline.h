// Draws a timeline and the memory of the machine below it, as SVG. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "journal/reader.h"
#include "model/ids.h"
#include "report/timeline.h"

namespace trainyard::report {

/// `id_of` names the task of a bar. `samples` may be of the whole run: what lies outside is not
/// drawn. Its size is bounded by Timeline's limits.
std::string timeline_svg(const Timeline& timeline, std::span<const MachineRow> samples,
                         const std::function<std::string(TaskIndex)>& id_of);

}  // namespace trainyard::report
