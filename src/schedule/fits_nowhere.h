// Why a task fits on none of the machines of a run, in words for the person who wrote it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"

namespace trainyard::schedule {

/// Nothing when it fits on one of them: "where: no machine is called 'lab*'; there are here, big1";
/// of one machine as never_fits() says it, of several "fits on none of lab1, lab2: ..." with what
/// the last one lacks. Machines that are made up have no names.
std::optional<std::string> fits_nowhere(const model::Request& request, const model::Policy& policy,
                                        std::span<const model::NamedMachine> machines);

/// Whether one of them has the names that are wished for, whatever else it lacks.
bool is_somewhere(const model::SiteWish& where, const model::Policy& policy,
                  std::span<const model::NamedMachine> machines);

/// "needs 2 TB of disk, the disk of the run directory has 1 TB in total"
std::string more_than_the_disk(Bytes requested, Bytes total);

}  // namespace trainyard::schedule
