// The nodes that Slurm grants: those of the present allocation, and the request for others.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/allocation.h"

namespace trainyard::cli {

/// The name of all these nodes in a list of machines.
inline constexpr const char* kSlurm = "slurm";

/// Whether this process is in an allocation.
bool inside_slurm();

/// The nodes of the present allocation, by their names in Slurm, and the time left of it. An error
/// outside of an allocation, or if `scontrol` does not say.
Result<run::GrantedNodes> slurm_nodes();

/// The words that run a program on a node, with all that the allocation has there, alongside the
/// other steps of the job; the words of the program follow. An empty allocation is the present one.
std::vector<std::string> words_of_srun(const std::string& node, const std::string& allocation);

/// The words that request an allocation with these options, print what was granted
/// (run/allocation.h), and hold it until standard input ends. An error if salloc would hold
/// nothing with one of the options, or an option was meant to be quoted.
Result<std::vector<std::string>> words_of_salloc(const std::vector<std::string>& options);

/// The words that print "over" when nothing of an allocation runs any more. They print nothing as
/// long as that is not known, and never if Slurm may lose track of a process that it should end:
/// only with control groups (ProctrackType) it does not.
std::vector<std::string> words_that_see_its_end(const std::string& allocation);

}  // namespace trainyard::cli
