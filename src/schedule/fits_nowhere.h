// Why a task fits on none of the machines of a run, in words for the person who wrote it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"

namespace trainyard::schedule {

/// Nothing when it fits on one of them. Otherwise "where: no machine is called 'lab*'; the machines
/// are here, big1", or with one machine the message of never_fits(), which calls it `here`, or with
/// several "fits on none of lab1, lab2: needs 9 CPUs, lab2 has 8; request at most 8". It names the
/// machine that lacks the fewest of memory, CPUs and GPUs; of several such machines the one that
/// grants the largest part of the scarcest amount, and of equal ones the first.
/// Machines that are made up have no names: they are called `here`, too.
std::optional<Misfit> fits_nowhere(const model::Request& request, const model::Policy& policy,
                                   std::span<const model::NamedMachine> machines,
                                   const MachineText& here = {});

/// "needs 2 TB of disk, the disk of the run directory has 1 TB in total; request less, or ..."
std::string more_than_the_disk(Bytes requested, Bytes total);

}  // namespace trainyard::schedule
